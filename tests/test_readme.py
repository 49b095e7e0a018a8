"""The README's code prints what the README says; its table of the package layout is true."""

import re
import tomllib
from pathlib import Path

import pytest

import jointpmf
from jointpmf.data.datasets import anes96
from support.imports import LAYERS
from support.prose import ROOT, broken_links, check_code, check_commands, cited_equations

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


def test_the_map_has_one_row_per_folder_and_file():
    """Of the root; what is inside a folder, the folder's `__init__` says."""
    rows = re.findall(
        r"^\| `(\w+/|\w+\.py)` \|", README.split("## Package layout")[1], re.MULTILINE
    )
    files = [path.name for path in SOURCE.glob("*.py")]
    folders = [f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")]
    assert sorted(rows) == sorted(files + folders)


def test_the_map_goes_from_left_to_right():
    """As the layers do: a row needs only what is above it; the public face comes first."""
    rows = re.findall(r"^\| `(\w+)[/.]", README.split("## Package layout")[1], re.MULTILINE)
    layers = [next(k for k, names in enumerate(LAYERS) if row in names) for row in rows[1:]]
    assert rows[0] == "__init__"
    assert layers == sorted(layers)


def test_every_cited_equation_exists():
    equations = re.findall(r"^\*\*\((\d+)\)", (ROOT / "docs/math.md").read_text(), re.MULTILINE)
    for file in SOURCE.rglob("*.py"):
        for word, numbers in cited_equations(file.read_text()):
            assert set(numbers) <= set(map(int, equations)), (file.name, numbers)
            assert word == ("eq." if len(numbers) == 1 else "eqs."), (file.name, numbers)


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("(docs/math.md, eq. 5)", [("eq.", [5])]),
        ("eqs. 32 and 33", [("eqs.", [32, 33])]),
        ("eqs. 6–8, of which", [("eqs.", [6, 7, 8])]),
        ("eqs. 28 to 30; eq. 2", [("eqs.", [28, 29, 30]), ("eq.", [2])]),
        ("eqs. 1, 4 and 6–7", [("eqs.", [1, 4, 6, 7])]),
        ("over a line's end (eq.\n    17)", [("eq.", [17])]),
        ("in a comment (eqs. 6\n    # and 7)", [("eqs.", [6, 7])]),
        ("as in eq. 14, and 20 more", [("eq.", [14])]),
        ("a freq. 5", []),
    ],
)
def test_citations_are_read_in_the_plural_and_over_lines(text, cited):
    assert cited_equations(text) == cited
