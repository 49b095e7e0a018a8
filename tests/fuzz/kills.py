"""`jointpmf fit --checkpoint --memory`, killed again and again: the same model in the end."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import strategies as st

import jointpmf as jp

RUN = "from jointpmf.command.main import main; main()"


@cache
def _table():
    """Return a folder with a table that takes some seconds to fit."""
    folder = tempfile.TemporaryDirectory()
    truth = jp.random_pmf(jp.Domain.of_sizes([4] * 12), 4, 0)
    rows = truth.sample(20_000, random_state=0)
    pl.DataFrame(rows).write_csv(f"{folder.name}/rows.csv")
    return folder


@cache
def _memory():
    """Return so little memory that rows are kept on disk: the command says what itself needs."""
    asked = ["fit", f"{_table().name}/rows.csv", "-o", "m.safetensors", "--memory", "1MB"]
    said = subprocess.run([sys.executable, "-c", RUN, *asked], capture_output=True, text=True)
    needed = re.search(r"needs about (\d+)MB", said.stderr)
    return f"{int(needed[1]) + 60}MB"  # what it reads takes some more


def _begun(output):
    folder = _table().name
    arguments = ["fit", f"{folder}/rows.csv", "-o", f"{folder}/{output}", "--rank", "4"]
    arguments += ["--memory", _memory(), "--checkpoint", f"{folder}/{output}-runs"]
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _ended(process):
    output, _ = process.communicate()
    assert process.returncode in (0, 3), (process.returncode, output.decode())
    assert b"Traceback" not in output, output.decode()
    assert b"Exception ignored" not in output, output.decode()


@cache
def _whole():
    _ended(_begun("whole.safetensors"))
    return jp.load(f"{_table().name}/whole.safetensors")


def attack(data):
    """Kill or interrupt a fit some times, then let it end."""
    whole, folder = _whole(), Path(_table().name)
    name = f"{len(os.listdir(folder))}.safetensors"
    for seconds in data.draw(st.lists(st.floats(0.5, 8), min_size=1, max_size=4)):
        process = _begun(name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(data.draw(st.sampled_from([signal.SIGKILL, signal.SIGINT])))
        process.communicate()
    _ended(_begun(name))
    found = jp.load(folder / name)
    np.testing.assert_array_equal(found.weights, whole.weights)
    for a, b in zip(found.factors, whole.factors, strict=True):
        np.testing.assert_array_equal(a, b)
