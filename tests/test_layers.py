"""The package layers: a folder imports only from folders to its left, and without cycles."""

import re
from graphlib import CycleError, TopologicalSorter

import pytest

from support.imports import LAYERS, SOURCE, imports, reached, trees

UPWARD = {
    ("marginals.marginal_set", "show.notebook"),  # _repr_html_
    ("pmf", "show.notebook"),  # _repr_html_
    ("pmf", "show.explorer.page"),  # explore
    ("pmf", "predict.population"),  # population
    ("pmf", "fit.unrated"),  # with_unrated_items
    ("fit.solution", "show.notebook"),  # _repr_html_
    ("fit.solution", "show.report.page"),  # report
    ("fit.solution", "judge.replicates"),  # uncertainty
    ("fit.solution", "judge.member_range"),  # member_range
    ("judge.bootstrap", "show.notebook"),  # _repr_html_
    ("judge.goodness", "show.notebook"),  # _repr_html_
    ("judge.identifiability", "show.notebook"),  # _repr_html_
    ("judge.curve", "show.notebook"),  # _repr_html_
    ("judge.summary", "show.notebook"),  # _repr_html_
    ("judge.uncertainty", "show.notebook"),  # _repr_html_
}
"""Who imports from folders to its right, inside a method for people that is named beside it."""

LAYER = {unit: number for number, units in enumerate(LAYERS) for unit in units}


def unit(module):
    """Return the folder of a module, or the module itself if it is a file of the root."""
    return module.partition(".")[0]


def is_downward(found):
    """Tell whether an import goes to the left, to the same folder, or from file to file."""
    here, there = unit(found.module), unit(found.target)
    are_files = not (SOURCE / here).is_dir() and not (SOURCE / there).is_dir()
    return (
        here == there
        or LAYER[there] < LAYER[here]
        or (LAYER[there] == LAYER[here] and are_files)
        or found.name == "__version__"
    )


def pairs(found):
    """Return which module imports which, sorted, one pair per line."""
    return "\n".join(sorted({f"{f.module} imports {f.target}" for f in found}))


def test_every_file_has_a_layer():
    assert {unit(module) for module in trees()} == set(LAYER)


def test_a_folder_imports_only_from_folders_to_its_left():
    wrong = [f for f in imports() if not is_downward(f) and (f.module, f.target) not in UPWARD]
    assert not wrong, pairs(wrong)


def test_what_goes_to_the_right_is_imported_inside_a_method():
    early = [f for f in imports() if (f.module, f.target) in UPWARD and not f.is_lazy]
    assert not early, pairs(early)


def test_nothing_is_listed_that_is_not_imported():
    missing = UPWARD - {(f.module, f.target) for f in imports()}
    assert not missing, sorted(missing)


def test_no_import_goes_in_a_circle():
    graph = {
        module: {there for there in targets if there and (module, there) not in UPWARD}
        for module, targets in reached().items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


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
