"""Fits in several processes: with one empty compile cache, by joblib, and where executors die."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import jointpmf as jp
from support.small_fits import DOMAIN, ROWS
from support.sources import planted_table

FIT = "from fuzz.workers import numbers_of_a_fit as fit; import sys; sys.stdout.buffer.write(fit())"


def numbers_of(pmf):
    """Return all numbers of a model, to compare bits."""
    return np.concatenate([pmf.weights[None], *pmf.factors]).tobytes()


def numbers_of_a_fit():
    """Return the numbers of a small fit."""
    return numbers_of(jp.fit_rows(ROWS, 3, domain=DOMAIN, random_state=0, max_iter=50).pmf)


def environment(**more):
    """Return the environment of a process that imports what this one does."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | more


def attack(data):
    """Fit in two processes at once that share an empty compile cache, or two of joblib's."""
    if data.draw(st.booleans()):
        from joblib import Parallel, delayed

        found = Parallel(n_jobs=2, backend="loky")(delayed(numbers_of_a_fit)() for _ in range(2))
    else:
        with tempfile.TemporaryDirectory() as cold:
            process = [sys.executable, "-c", FIT]
            env = environment(NUMBA_CACHE_DIR=cold)
            two = [subprocess.Popen(process, stdout=subprocess.PIPE, env=env) for _ in range(2)]
            found = [one.communicate()[0] for one in two]
        assert [one.returncode for one in two] == [0, 0]
    assert found == [numbers_of_a_fit()] * 2


@cache
def _cluster():
    """Return Spark with two executors, processes of their own, and a table of some parts."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": environment()["PYTHONPATH"],
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    table = planted_table()
    table["truth"] = table["truth"].astype(object).where(table["truth"].notna(), None)
    return spark, spark.createDataFrame(table).repartition(4).cache()


def _executors(spark):
    """Return the processes of this cluster's executors."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    own = "CoarseGrainedExecutorBackend", spark.sparkContext.applicationId
    lines = [line for line in listed.stdout.splitlines() if all(word in line for word in own)]
    return [int(line.split()[0]) for line in lines]


def _fitted(**more):
    return numbers_of(
        jp.fit_rows(_cluster()[1], 3, random_state=0, max_iter=12, tol=0.0, **more).pmf
    )


@cache
def _undisturbed():
    return _fitted()


def kill_executor(data):
    """Kill one of Spark's executors in the middle of a fit, while it works: the same bits."""
    at, seconds, killed = data.draw(st.integers(1, 11)), data.draw(st.floats(0, 1)), []

    def kill():
        killed.extend(_executors(_cluster()[0])[:1])
        os.kill(killed[0], signal.SIGKILL)

    timer = threading.Timer(seconds, kill)

    def begin(step, _):
        if step.iteration == at and not timer.ident:
            timer.start()

    assert _undisturbed() == _fitted(callback=begin)
    timer.join()
    assert killed
