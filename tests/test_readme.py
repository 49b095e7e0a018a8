"""The README's code runs and prints what the README says; its map of the house is true."""

import re
import tomllib
from pathlib import Path

import pytest

import jointpmf
from jointpmf.data.datasets import anes96
from support.prose import ROOT, broken_links, check_code, check_commands

README = (ROOT / "README.md").read_text()
SOURCE = Path(jointpmf.__file__).parent


def test_the_code_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_code(README)


def test_the_command_prints_what_it_says(tmp_path, monkeypatch):
    table = anes96()
    table.loc[::4, "vote"] = None
    table.to_csv(tmp_path / "survey.csv", index=False)
    monkeypatch.chdir(tmp_path)
    check_commands(README)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name):
    assert broken_links(ROOT / name) == []


def test_extras_are_installed_in_one_way():
    """By the name of what is installed already, which works in any folder."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *SOURCE.rglob("*.py")]
    for file in files:
        for what in re.findall(r"pip install '([^']*)'", file.read_text()):
            named = re.fullmatch(r"jointpmf\[(\w+)\]", what)
            assert named, (file.name, what)
            assert named[1] in extras["optional-dependencies"], (file.name, what)


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
    "dask": {"rows/distributed.py"},
    "narwhals": {"data/columns.py", "data/decode.py"},
    "pandas": {"data/datasets.py"},
    "pyspark": {"rows/distributed.py"},
    "statsmodels": {"data/datasets.py"},
}


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_known_in_one_place_only(library):
    users = {
        f.relative_to(SOURCE).as_posix()
        for f in SOURCE.rglob("*.py")
        if re.search(rf"^\s*(import|from) {library}\b", f.read_text(), re.MULTILINE)
    }
    assert users == HOMES[library]


def test_every_cited_equation_exists():
    equations = set(
        re.findall(r"^\*\*\((\d+)\)", (ROOT / "docs/math.md").read_text(), re.MULTILINE)
    )
    for file in SOURCE.rglob("*.py"):
        cited = re.findall(r"eq\. (\d+)(?: and (\d+))?", file.read_text())
        for number in filter(None, (n for pair in cited for n in pair)):
            assert number in equations, (file.name, number)
