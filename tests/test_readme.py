"""The README's code runs and prints what the README says; its map of the house is true."""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jointpmf
from jointpmf.cli import app
from jointpmf.datasets import anes96

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SOURCE = Path(jointpmf.__file__).parent


def check_code(text):
    """Run all blocks of code, one after the other; those that print say so."""
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", text, re.DOTALL)
    assert len(blocks) == len(re.findall("```python", text))
    namespace = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        assert printed.getvalue() == expected


def test_the_code_prints_what_it_says():
    check_code(README)


def test_the_code_on_scale_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_code((ROOT / "docs" / "scale.md").read_text())


@pytest.mark.skipif(
    not Path(os.environ.get("JOINTPMF_DATA", "nowhere"), "ratings").is_dir(),
    reason="JOINTPMF_DATA names no folder with ratings",
)
def test_the_code_on_ratings_prints_what_it_says():
    check_code((ROOT / "docs" / "ratings.md").read_text())


def test_the_command_prints_what_it_says(tmp_path, monkeypatch):
    table = anes96()
    table.loc[::4, "vote"] = None
    table.to_csv(tmp_path / "survey.csv", index=False)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for call in ("\n" + block).split("\n$ ")[1:]:
        line, _, expected = call.partition("\n")
        if "*" in line:  # the shell's own work, and tables that are not here
            continue
        words = shlex.split(line, comments=True)
        result = CliRunner().invoke(app, words[1:])
        assert words[0] == "jointpmf"
        assert result.exit_code == 0, (line, result.output)
        if expected.strip():
            assert printed_words(result.stdout) == printed_words(expected), line


def printed_words(text):
    """Return what was printed without its layout and its bars, which depend on the terminal."""
    return [word for word in text.split() if word.isascii()]


def test_the_map_names_every_file():
    named = re.findall(r"`([\w/]+\.py)`", README.split("## The house")[1])
    files = {str(f.relative_to(SOURCE)) for f in SOURCE.rglob("*.py") if f.name != "__init__.py"}
    assert set(named) - {"tests/oracle.py"} == files


DOORS = {("solvers.loop", "report")}
"""Methods that open what is built on their class, when they are called: `Solution.report`."""


def test_a_file_imports_only_from_files_above_it():
    named = re.findall(r"`([\w/]+\.py)`", README.split("## The house")[1])
    order = [name.removesuffix(".py").replace("/", ".") for name in named]
    for position, module in enumerate(order[:-1]):
        text = (SOURCE / named[position]).read_text()
        for below in order[position + 1 :]:
            if (module, below) in DOORS:
                assert not re.search(rf"^from jointpmf\.{below}\b", text, re.MULTILINE)
                continue
            assert not re.search(rf"from jointpmf\.{below}\b|import {below}\b", text), (
                module,
                below,
            )


HOMES = {
    "dask": "distributed.py",
    "narwhals": "encoding.py",
    "pandas": "datasets.py",
    "pyspark": "distributed.py",
    "statsmodels": "datasets.py",
}


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_known_to_one_file_only(library):
    users = {
        f.name
        for f in SOURCE.rglob("*.py")
        if re.search(rf"^\s*(import|from) {library}\b", f.read_text(), re.MULTILINE)
    }
    assert users == {HOMES[library]}


def test_every_cited_equation_exists():
    equations = set(
        re.findall(r"^\*\*\((\d+)\)", (ROOT / "docs/math.md").read_text(), re.MULTILINE)
    )
    for file in SOURCE.rglob("*.py"):
        cited = re.findall(r"eq\. (\d+)(?: and (\d+))?", file.read_text())
        for number in filter(None, (n for pair in cited for n in pair)):
            assert number in equations, (file.name, number)
