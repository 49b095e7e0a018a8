"""What `import jointpmf` imports, that its names resolve, and that each of them teaches."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import is_dataclass
from enum import Enum

import pytest

import jointpmf as jp
from support.imports import reached

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

WITHOUT = """
import numpy as np
import polars as pl
import jointpmf as jp

rows = [["rain", 1, 0.5], ["rain", 1, 1.5], ["sun", 2, 0.5], ["sun", None, 2.5]] * 10
X = np.array(rows, object)
y = ["wet", "wet", "dry", "dry"] * 10
table = pl.DataFrame(rows, ["sky", "size", "x"], orient="row", strict=False)
tables = [X, rows, table]
{more}
for one in tables:
    pmf = jp.fit_rows(one, 2, random_state=0).pmf
    assert pmf.rank == 2 and len(pmf.mode(one, pmf.domain.names[1])) == 40
    density = jp.PMFEstimator(1).fit(one)
    assert np.isfinite(density.score_samples(one)).all()
    assert jp.PMFClassifier(2, random_state=0).fit(one, y).predict(one).tolist() == y
    assert jp.PMFRegressor(2, random_state=0).fit(one, [0, 0, 5, 5] * 10).predict(one)[0] < 1
    filled = jp.PMFImputer(1).fit_transform(one)
    kind = np.ndarray if isinstance(one, list) else type(one)
    assert type(filled) is kind, type(filled)
    assert jp.encode(filled).array.min() == 0
assert jp.PMFClassifier(random_state=0).fit(table, y).predict(table).tolist() == y
assert isinstance(pmf.sample(3, random_state=0, backend="polars"), pl.DataFrame)
assert isinstance(jp.impute(pmf, table), pl.DataFrame)
polars_out = jp.PMFImputer(2).set_output(transform="polars").fit_transform(X)
assert isinstance(polars_out, pl.DataFrame)
assert not {{name.split(".")[0] for name in sys.modules}} & {names!r}
"""


def run(code):
    """Run Python code in a process of its own, where warnings are errors, and return its output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestLazyNames:
    def test_importing_imports_nothing_heavy(self):
        loaded = set(run("import sys, jointpmf; print(*sys.modules)").split())
        heavy = {"pandas", "matplotlib", "dask", "pyspark", "sklearn", "numba", "polars", "scipy"}
        assert "jointpmf" in loaded
        assert not loaded & heavy

    def test_what_is_public_is_listed_and_nothing_else(self):
        listed = run("import jointpmf as jp; jp.Domain; print(*dir(jp))").split()
        assert listed == sorted({*jp.__all__, "datasets", "plots", "__version__"})

    def test_there_are_few_names(self):
        assert len(jp.__all__) <= 45

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="'jointpmf' has no attribute 'nothing'"):
            _ = jp.nothing

    def test_no_name_stands_twice_or_is_private(self):
        assert len(set(jp.__all__)) == len(jp.__all__)
        assert not [name for name in jp.__all__ if name.startswith("_")]

    def test_every_name_resolves_once_and_for_all(self):
        first = {name: getattr(jp, name) for name in jp.__all__}
        for module in submodules():
            importlib.import_module(module)
        assert {name: getattr(jp, name) for name in jp.__all__} == first
        assert set(jp.__all__) <= vars(jp).keys()
        assert callable(jp.identifiability)
        assert callable(jp.summary)

    def test_submodules_that_were_imported_first_hide_no_name_and_are_not_listed(self):
        listed, hidden = run(
            "import importlib, inspect\n"
            f"for module in {submodules()}: importlib.import_module(module)\n"
            "import jointpmf as jp\n"
            "jp.Domain; print(*dir(jp))\n"
            "from jointpmf import *\n"
            "assert callable(jp.identifiability) and callable(jp.summary)\n"
            "print(*[name for name in jp.__all__ if inspect.ismodule(globals()[name])])"
        ).split("\n")[:2]
        assert listed.split() == sorted({*jp.__all__, "datasets", "plots", "__version__"})
        assert hidden.split() == []


def submodules():
    found = pkgutil.walk_packages(jp.__path__, "jointpmf.")
    return [module.name for module in found if not module.name.endswith("__main__")]


class TestWithoutLibraries:
    def test_without_pandas_everything_but_pandas_works(self):
        pyarrow = "import pyarrow as pa; tables.append(pa.table(table.to_dict(as_series=False)))"
        run((BLOCK + WITHOUT).format(names={"pandas"}, more=pyarrow))

    def test_without_pyarrow_everything_but_pyarrow_works(self):
        pandas = "import pandas as pd; tables.append(pd.DataFrame(rows, columns=table.columns))"
        run((BLOCK + WITHOUT).format(names={"pyarrow"}, more=pandas))


RESULTS = {  # they have attributes, and the function that returns one has the example
    "Solution": "fit.solution",
    "Start": "fit.solution",
    "FittedTo": "fit.solution",
    "Status": "solvers.loop",
    "BootstrapTest": "judge.bootstrap",
    "Bounds": "judge.bounds",
    "Goodness": "judge.goodness",
    "Identifiability": "judge.identifiability",
    "RankCurve": "judge.curve",
    "Summary": "judge.summary",
}


class TestDocstrings:
    def test_missing_is_a_number_and_cannot_say_what_it_is(self):
        assert jp.MISSING == -1

    @pytest.mark.parametrize("name", sorted(set(jp.__all__) - {"MISSING"}))
    def test_every_name_begins_with_a_sentence(self, name):
        assert inspect.getdoc(getattr(jp, name)).splitlines()[0].endswith(".")

    @pytest.mark.parametrize("name", sorted(set(jp.__all__) - {"MISSING"} - RESULTS.keys()))
    def test_every_name_has_a_runnable_example(self, name):
        text = vars(getattr(jp, name))["__doc__"] if inspect.isclass(getattr(jp, name)) else None
        text = text or inspect.getdoc(getattr(jp, name))
        assert doctest.DocTestParser().get_examples(text)

    @pytest.mark.parametrize("name", sorted(RESULTS))
    def test_only_plain_results_go_without(self, name):
        result = getattr(importlib.import_module(f"jointpmf.{RESULTS[name]}"), name)
        assert is_dataclass(result) or issubclass(result, Enum)
        assert getattr(jp, name, result) is result
        assert inspect.getdoc(result).splitlines()[0].endswith(".")


def test_whatever_is_public_imports_what_keeps_logs_from_being_printed():
    modules = reached(only_at_module_level=True)

    def all_of(module):
        found, waiting = set(), [module]
        while waiting:
            found.add(one := waiting.pop())
            waiting += modules[one] - found
        return found

    public = {*jp._HOME.values(), *jp._MODULES.values()}
    assert [name for name in sorted(public) if "errors" not in all_of(name)] == []
