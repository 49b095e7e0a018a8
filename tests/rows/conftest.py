"""One cluster of Dask and one session of Spark for all tests of rows, and frames of both."""

import logging
import os
import sys
import warnings
from pathlib import Path

import dask
import dask.dataframe as dd
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of Dask, each with a nanny that starts it again.

    They end with the file that uses them: also where they have nothing to do they take time.
    """
    levels = [(handler, handler.level) for handler in logging.getLogger().handlers]
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster),
    ):
        for handler, level in levels:  # it has silenced those of pytest, too, for all tests
            handler.setLevel(level)
        yield cluster


@pytest.fixture(scope="session")
def spark():
    """Two threads of Spark, each with a Python process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    tests = str(Path(__file__).parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # for short
        # workers of both kinds, of frames and of RDDs, come from one process that has all loaded
        "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
        "spark.log.level": "OFF",
        "spark.python.daemon.module": "support.spark_daemon",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # to compile takes longer than to run
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "America/Lima",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _without_cluster():
    """Let Dask work in this process, unless a test asks for the cluster."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def on_cluster(cluster):
    """Let Dask work on the cluster."""
    with dask.config.set(scheduler="distributed"):
        yield cluster


@pytest.fixture
def frame_of(request):
    """Return what makes a frame of an engine of a pandas table, in so many partitions."""
    if request.param == "dask":
        request.getfixturevalue("on_cluster")
        return lambda table, n=3: dd.from_pandas(table, npartitions=n, sort=False)
    session = request.getfixturevalue("spark")
    return lambda table, n=3: session.createDataFrame(
        pa.Table.from_pandas(table, preserve_index=False)
    ).repartition(n)
