"""The installed command, run as a person would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jointpmf as jp
from jointpmf import demo
from jointpmf.datasets import anes96

COMMAND = str(Path(sys.executable).with_name("jointpmf"))


def run(*arguments):
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, env=environment, timeout=120
    )


def test_the_demo_beats_the_most_common_answer_and_shows_queries():
    result = run("demo")
    assert result.returncode == 0, result.stderr
    total = next(line for line in result.stdout.splitlines() if "│ all" in line)
    gain = float(total.split("│")[-2])
    assert gain > 5
    assert result.stdout.count(">>> pmf.") == len(demo.QUERIES) == 3
    assert "Dole" in result.stdout


def test_the_version_and_the_help():
    assert run("version").stdout.strip() == jp.__version__
    result = run("--help")
    assert result.returncode == 0
    for word in ("demo", "version", "jointpmf demo"):
        assert word in result.stdout


def test_an_unknown_command_is_a_usage_error():
    result = run("dance")
    assert result.returncode == 2
    assert "dance" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_survey_without_its_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(jp.JointPMFError, match=r"jointpmf\[demo\]"):
        anes96()


def test_importing_the_library_brings_neither_pandas_nor_matplotlib():
    code = (
        "import sys, jointpmf; "
        "print([m for m in ('pandas', 'matplotlib', 'statsmodels', 'pyarrow') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "[]"
