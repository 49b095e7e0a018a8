"""Bad input gets one clear sentence that names the culprit, as a JointPMFError."""

import logging
import resource

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.encode import encode
from jointpmf.marginals.tables import SparseTable
from support.small_fits import settings

DOMAIN = jp.Domain.of_sizes([2, 3], names=["a", "b"])
PMF = jp.random_pmf(DOMAIN, rank=2, random_state=0)
NAMED = PMF.reordered(names=["first", "second"])
OWN = jp.random_pmf(
    jp.Domain([jp.Variable("component", ("cpu", "disk", "fan")), *DOMAIN]), rank=2, random_state=0
)
ROWS = pl.DataFrame({"a": [0, 1, 1], "b": [2, 0, 1]})
EVEN = np.full((2, 3), 1 / 6)
ONE_SIDED = jp.JointPMF(DOMAIN, [1.0], [[[1.0], [0.0]], [[0.5], [0.5], [0.0]]])


def cases(*rows):
    return pytest.mark.parametrize(
        ("call", "message"), [pytest.param(call, message, id=name) for name, call, message in rows]
    )


def assert_refused(call, message):
    with pytest.raises(jp.JointPMFError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def sparse(values):
    return SparseTable.of_cells(np.array([0, 4]), np.array(values), (2, 3))


def marginal(table, names=("a", "b"), n_obs=None):
    return jp.Marginal(names, table, n_obs=n_obs)


def with_cell(value):
    table = EVEN.copy()
    table[1, 2] = value
    return table


@cases(
    ("all suppressed", lambda: marginal(EVEN * np.nan), "all cells .*'a', 'b' are suppressed"),
    ("infinite", lambda: marginal(with_cell(np.inf)), "'a', 'b'.*infinite"),
    ("negative", lambda: marginal(with_cell(-0.1)), "'a', 'b'.*negative"),
    ("all zero", lambda: marginal(EVEN * 0), "'a', 'b'.*zero everywhere"),
    ("empty", lambda: marginal(np.zeros((2, 0))), "'a', 'b'"),
    ("sparse NaN", lambda: marginal(sparse([np.nan, 1])), "'a', 'b'.*NaN"),
    ("sparse negative", lambda: marginal(sparse([-1.0, 3.0])), "'a', 'b'.*negative"),
    ("sparse negative count", lambda: marginal(sparse([-1, 3])), "negative"),
    ("sparse all zero", lambda: marginal(sparse([0, 0])), "'a', 'b'.*zero everywhere"),
    ("text", lambda: marginal([["x", "y"]]), "'a', 'b'.*numbers"),
    ("complex", lambda: marginal(EVEN * 1j), "'a', 'b'.*numbers"),
    ("ragged", lambda: marginal([[1], [1, 2]]), "'a', 'b'.*numbers"),
    ("too few axes", lambda: marginal([1, 2]), "'a', 'b'.* 1 axes for 2 variables"),
    ("too many axes", lambda: marginal(EVEN, ["a"]), "'a'.* 2 axes for 1 variables"),
    ("no variable", lambda: marginal(1.0, []), "at least one variable"),
    ("a variable twice", lambda: marginal(EVEN, ["a", "a"]), "'a' twice"),
    ("names as text", lambda: marginal(EVEN, "ab"), "such as .*'ab'"),
    ("n_obs of zero", lambda: marginal(EVEN, n_obs=0), "'a', 'b'.*n_obs=0"),
    ("n_obs negative", lambda: marginal(EVEN, n_obs=-5), "'a', 'b'.*n_obs=-5"),
    ("n_obs NaN", lambda: marginal(EVEN, n_obs=np.nan), "'a', 'b'.*n_obs=nan"),
    ("n_obs of text", lambda: marginal(EVEN, n_obs="7"), "'a', 'b'.*n_obs"),
    ("n_obs of another total", lambda: marginal(EVEN * 60, n_obs=7), "'a', 'b'.* 60.*n_obs=7"),
)
def test_a_table_that_is_no_marginal_is_refused(call, message):
    assert_refused(call, message)


def marginal_set(*marginals):
    return jp.MarginalSet(DOMAIN, marginals, strict=True)


@cases(
    ("none", lambda: marginal_set(), "at least one marginal"),
    ("not a marginal", lambda: marginal_set(EVEN), "Marginal"),
    ("shape", lambda: marginal_set(marginal(EVEN.T)), r"'a', 'b'.*\(3, 2\).*\(2, 3\)"),
    ("shape of turned axes", lambda: marginal_set(marginal(EVEN, ["b", "a"])), "'b', 'a'"),
    ("unknown variable", lambda: marginal_set(marginal(EVEN, ["a", "z"])), "no variable 'z'"),
    ("variable without a marginal", lambda: marginal_set(marginal([1, 1], ["a"])), "'b'"),
    (
        "other totals",
        lambda: marginal_set(marginal(EVEN * 60), marginal([10, 20], ["a"])),
        "'a', 'b' sums to 60 .*'a' to 30",
    ),
    (
        "other totals on turned axes",
        lambda: marginal_set(marginal(EVEN * 60), marginal(EVEN.T * 30, ["b", "a"])),
        "60 .*'a', 'b' to 30",
    ),
)
def test_marginals_that_are_no_set_are_refused(call, message):
    assert_refused(call, message)


def test_other_totals_are_fine_with_explicit_n_obs():
    tables = marginal(EVEN * 60, n_obs=60), marginal([15, 15], ["a"], n_obs=30)
    assert [kept.n_obs for kept in marginal_set(*tables)] == [60, 30]


TWICE = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=["a", "b", "a"])
NUMBERED = pd.DataFrame([[1, 2]])
HOLES = pl.DataFrame({"a": [1, 2], "gone": [None, None]})
ANSWERS = pl.DataFrame({"a": ["no", "yes", "perhaps"]})
ORDERED = pd.DataFrame({"a": pd.Categorical(["x", "y"], ["x", "y"], ordered=True)})
CODES = jp.Codes(DOMAIN, [[0, 1]])


@cases(
    ("text", lambda: encode("table.csv"), "not str"),
    ("None", lambda: encode(None), "not NoneType"),
    ("number", lambda: encode(3), "not int"),
    ("dict", lambda: encode({"a": [1]}), "not dict"),
    ("generator", lambda: encode(row for row in [[1]]), "not generator"),
    ("pandas series", lambda: encode(pd.Series([1, 2])), "not Series"),
    ("Polars series", lambda: encode(pl.Series([1, 2])), "not Series"),
    ("one dimension", lambda: encode(np.zeros(3)), "two dimensions, not 1"),
    ("three dimensions", lambda: encode(np.zeros((2, 2, 2))), "two dimensions, not 3"),
    ("ragged rows", lambda: encode([[1], [1, 2]]), "same length"),
    ("pandas without rows", lambda: encode(pd.DataFrame({"a": []})), "empty"),
    ("pandas without columns", lambda: encode(pd.DataFrame(index=range(3))), "empty"),
    ("Polars without rows", lambda: encode(pl.DataFrame({"a": []})), "empty"),
    ("Polars without columns", lambda: encode(pl.DataFrame()), "empty"),
    ("lazy without columns", lambda: encode(pl.LazyFrame()), "empty"),
    ("PyArrow without columns", lambda: encode(pa.table({})), "empty"),
    ("array without rows", lambda: encode(np.zeros((0, 2))), "empty"),
    ("array without columns", lambda: encode(np.zeros((2, 0))), "empty"),
    ("a pandas name twice", lambda: encode(TWICE), "'a'.*(twice|2 times)"),
    ("a PyArrow name twice", lambda: encode(pa.table([[1], [2]], ["a", "a"])), "'a'"),
    ("a name that is no text", lambda: encode(NUMBERED), "strings, not 0"),
    ("a column without a cell", lambda: encode(HOLES), "'gone' has no observed cell"),
    ("array column without a cell", lambda: encode([[1, None]]), "'x1' has no observed"),
    ("mixed types", lambda: encode(pd.DataFrame({"a": ["x", 1]})), "'a' mixes .*int, str"),
    ("lists in pandas", lambda: encode(pd.DataFrame({"a": [[1], [2]]})), "'a'"),
    ("lists in Polars", lambda: encode(pl.DataFrame({"a": [[1], [2]]})), "'a'"),
    ("infinite numbers", lambda: encode(pl.DataFrame({"a": [1.0, np.inf]})), "'a'.*not finite"),
    ("columns for variables", lambda: encode(np.zeros((2, 3)), DOMAIN), "3 columns for 2"),
    ("unknown", lambda: encode(ROWS, DOMAIN, unknown="drop"), "unknown .*'drop'"),
    ("a level not in a scale", lambda: encode(ANSWERS, levels=["no", "yes"]), "'perhaps' of .*'a'"),
    ("a scale against a type", lambda: encode(ORDERED, levels=["y", "x"]), "contradicts .*'a'"),
    ("a code that is a level", lambda: encode(ROWS, DOMAIN, missing_code=1), "level of .*'a'"),
    ("bins of no column", lambda: encode(ROWS, bins={"z": 2}), "'z', which is no column"),
    ("bins and domain", lambda: encode(ROWS, DOMAIN, bins={"a": 2}), "bins"),
    ("bins of text", lambda: encode(np.array([["x"]]), bins={"x0": 2}), "'x0' cannot be binned"),
    ("no bin", lambda: encode(ROWS, bins={"a": 0}), "'a' .*one bin, not 0"),
    ("falling edges", lambda: encode(ROWS, bins={"a": [0, 5, 1]}), "'a' must increase"),
    ("one edge", lambda: encode(ROWS, bins={"a": [0]}), "'a' must increase"),
    ("NaN edge", lambda: encode(ROWS, bins={"a": [0, np.nan, 1]}), "'a' must increase"),
    ("edges beyond floats", lambda: encode(ROWS, bins={"a": [0, 10**400]}), "'a' must increase"),
    ("edges of text", lambda: encode(ROWS, bins={"a": ["x", "y"]}), "'a' must .*numbers"),
    ("bins of a word", lambda: encode(ROWS, bins={"a": "many"}), "'a' must .*'many'"),
    ("half a bin", lambda: encode(ROWS, bins={"a": 2.5}), "'a' must .*2.5"),
    ("bins of True", lambda: encode(ROWS, bins={"a": True}), "'a' must .*True"),
    ("bins as a list", lambda: encode(ROWS, bins=["a"]), r"bins must be .*\['a'\]"),
    ("bins as a number", lambda: encode(ROWS, bins=0), "bins must be .*0"),
    ("bins of inf", lambda: encode([[1.0], [np.inf]], bins={"x0": 2}), "'x0' .*infinite"),
    ("bins beyond floats", lambda: encode([[1], [10**400]], bins={"x0": 2}), "'x0' .*beyond"),
    ("levels beyond floats", lambda: encode([[1], [10**400]]), "'x0'"),
    ("bins of codes", lambda: encode(CODES, bins={"a": 2}), "bins"),
    ("max_levels", lambda: encode(ROWS, max_levels="x"), "max_levels .*'x'"),
    ("no Domain", lambda: encode(ROWS, ["a", "b"]), r"a Domain, not \['a', 'b'\]"),
    ("other codes", lambda: encode(CODES, jp.Domain.of_sizes([2])), "none of the variables 'x0'"),
    ("ragged tuples", lambda: encode(((1, "x"), (1,))), "same length"),
    ("ragged arrays", lambda: encode([np.zeros(2), np.zeros(3)]), "same length"),
    ("rows of dicts", lambda: encode([{"a": 1}]), "two dimensions, not 1"),
    ("lists in a list", lambda: encode([[1], [[1, 2]]]), "'x0' holds cells that cannot be levels"),
    ("arrays in pandas", lambda: encode(pd.DataFrame({"a": [np.eye(2), 1]})), "'a' holds cells"),
    ("lists in PyArrow", lambda: encode(pa.table({"a": [[1], [2]]})), "'a' holds cells"),
    ("mixed types in a list", lambda: encode([["x"], [1]]), "'x0' mixes .*int, str"),
    ("codes of halves", lambda: jp.Codes(DOMAIN, [[0, 1], [0, 0.5]]), "0.5 .*'b' in row 1.*whole"),
    ("codes infinite", lambda: jp.Codes(DOMAIN, [[0, np.inf]]), "inf .*'b' in row 0.*outside"),
    ("codes of text", lambda: jp.Codes(DOMAIN, [["0", "1"]]), "codes must be whole numbers"),
    ("codes of truth", lambda: jp.Codes(DOMAIN, [[True, False]]), "codes must be .*bool"),
    ("codes of objects", lambda: jp.Codes(DOMAIN, [[0, None]]), "codes must be .*object"),
    ("codes ragged", lambda: jp.Codes(DOMAIN, [[0, 1], [0]]), "codes .*same length"),
    ("codes of no table", lambda: jp.Codes(DOMAIN, 3), r"shape \(\) do not fit 2"),
    ("codes without a domain", lambda: jp.Codes([2, 3], [[0, 1]]), "a Domain, not"),
    ("code too large", lambda: jp.Codes(DOMAIN, [[0, 1], [1, 3]]), "code 3 .*'b' in row 1 lies"),
    ("code too small", lambda: jp.Codes(DOMAIN, [[0, 1], [-2, 0]]), "code -2 .*'a' in row 1 lies"),
    ("codes too large", lambda: jp.Codes(DOMAIN, [[2, 0]]), "outside of its variable's levels"),
    ("codes too small", lambda: jp.Codes(DOMAIN, [[-2, 0]]), "outside of its variable's levels"),
    ("codes of a shape", lambda: jp.Codes(DOMAIN, [[0, 0, 0]]), r"\(1, 3\) do not fit 2"),
)
def test_what_is_no_table_of_rows_is_refused(call, message):
    assert_refused(call, message)


def counted(order=2, sample_weight=None, subsets=None, rows=ROWS):
    return jp.MarginalSet.from_table(rows, order, sample_weight, subsets=subsets)


NEVER_TOGETHER = pl.DataFrame({"a": [0, None, 1], "b": [None, 1, 0], "c": [0, 1, None]})


@cases(
    ("order 0", lambda: counted(0), "order .*not 0"),
    ("order too large", lambda: counted(3), "order 3 need 3 variables; there are 2"),
    ("order no integer", lambda: counted(1.0), "order .*not 1.0"),
    ("order bool", lambda: counted(True), "order .*not True"),
    ("order 0 of a PMF", lambda: PMF.marginals(0), "order .*not 0"),
    ("order too large of a PMF", lambda: PMF.marginals(3), "there are 2"),
    ("no row observes", lambda: counted(3, rows=NEVER_TOGETHER), "'a', 'b', 'c' together"),
    ("weight negative", lambda: counted(sample_weight=[1, 1, -2]), "row 2 is -2"),
    ("weight NaN", lambda: counted(sample_weight=[1, np.nan, 1]), "row 1 is nan"),
    ("weight infinite", lambda: counted(sample_weight=[np.inf, 1, 1]), "row 0 is inf"),
    ("weights too few", lambda: counted(sample_weight=[1, 1]), "2 sample weights for 3 rows"),
    ("weights of two axes", lambda: counted(sample_weight=[[1]] * 3), "sample weights"),
    ("weights of text", lambda: counted(sample_weight=["x"] * 3), "sample weights.*numbers"),
    ("weights all zero", lambda: counted(sample_weight=[0, 0, 0]), "'a', 'b' together"),
    ("unknown name in a subset", lambda: counted(subsets=[["a", "z"]]), "no variable 'z'"),
    ("name twice in a subset", lambda: counted(subsets=[["b", "b"]]), "'b' twice"),
    ("subset as text", lambda: counted(subsets=["ab"]), "'ab'"),
    ("subset of nothing", lambda: counted(subsets=[["a", "b"], []]), "at least one variable"),
    ("no subset", lambda: counted(subsets=[]), "at least one marginal"),
    ("subsets without a variable", lambda: counted(subsets=[["a"]]), "'b'"),
)
def test_what_cannot_be_counted_is_refused(call, message):
    assert_refused(call, message)


def fit(rank=2, given=None, **options):
    given = PMF.marginals(2) if given is None else given
    return jp.fit_marginals(given, rank, **settings(**options))


OTHER_RANK = jp.random_pmf(DOMAIN, rank=3, random_state=0)
OTHER_DOMAIN = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)


@cases(
    ("not a set", lambda: fit(given=[1]), "MarginalSet, not list"),
    ("method", lambda: fit(method="magic"), "method .*'magic'"),
    ("start", lambda: fit(start="magic"), "start .*'magic'"),
    ("start of an array", lambda: fit(start=np.ones(2)), "start"),
    ("start of a wrong rank", lambda: fit(start=OTHER_RANK), "start .*rank 3.*rank 2"),
    ("start of a wrong domain", lambda: fit(start=OTHER_DOMAIN), "start .*domain"),
    ("tol negative", lambda: fit(tol=-1e-3), "tol .*-0.001"),
    ("tol NaN", lambda: fit(tol=np.nan), "tol .*nan"),
    ("tol of text", lambda: fit(tol="x"), "tol .*'x'"),
    ("max_iter negative", lambda: fit(max_iter=-1), "max_iter .*-1"),
    ("max_iter no integer", lambda: fit(max_iter=2.5), "max_iter .*2.5"),
    ("weighting negative", lambda: fit(weighting=[-1]), "weights of marginals"),
    ("weighting NaN", lambda: fit(weighting=[np.nan]), "weights of marginals"),
    ("weighting all zero", lambda: fit(weighting=[0]), "weights of marginals.*not all 0"),
    ("weighting too long", lambda: fit(weighting=[1, 1]), "2 weights for 1 marginals"),
    ("weighting of one number", lambda: fit(weighting=2.0), "weight"),
    ("weighting of a word", lambda: fit(weighting="rows"), "weighting .*'rows'"),
    ("weighting of text", lambda: fit(weighting=["x"]), "weighting .*numbers"),
    ("weighting by no counts", lambda: fit(weighting="counts"), "n_obs.*a, b"),
)
def test_a_fit_that_makes_no_sense_is_refused(call, message):
    assert_refused(call, message)


def fit_rows(rows=ROWS, rank=2, **options):
    return jp.fit_rows(rows, rank, **settings(**{"domain": DOMAIN, "random_state": 0} | options))


UNSEEN = np.array([[0, -1], [1, -1]])
WEIGHED = np.array([[0, -1], [1, -1], [1, 2]])
NOTHING = np.array([[-1, -1], [-1, -1]])
MASK = np.zeros((3, 2), bool)
COLUMN_MASK = np.array([[False, True]] * 3)


@cases(
    ("no table", lambda: fit_rows(3), "not int"),
    ("no file", lambda: fit_rows("nowhere.csv"), "nowhere.csv"),
    ("no files", lambda: fit_rows(["a.csv", "nowhere.csv"]), "a.csv"),
    ("a kind of file", lambda: fit_rows(__file__), "test_bad_input.py"),
    ("no rows", lambda: fit_rows(pl.DataFrame({"a": [], "b": []})), "empty"),
    ("no rows of codes", lambda: fit_rows(jp.Codes(DOMAIN, np.zeros((0, 2), int))), "empty"),
    ("a column without a cell", lambda: fit_rows(UNSEEN), "'b' has no observed cell"),
    ("no cell at all", lambda: fit_rows(NOTHING), "'a', 'b' has no observed cell"),
    (
        "a column that weighs nothing",
        lambda: fit_rows(WEIGHED, sample_weight=[1, 1, 0]),
        "'b' has no observed cell",
    ),
    ("unknown level", lambda: fit_rows([[0, 1], [0, 9]]), "'b' holds 9 in row 1"),
    ("infinite cell", lambda: fit_rows([[0, 1], [0, np.inf]]), "'b' holds inf in row 1"),
    ("weight negative", lambda: fit_rows(sample_weight=[1, 1, -2]), "row 2 is -2"),
    ("weight NaN", lambda: fit_rows(sample_weight=[1, np.nan, 1]), "row 1 is nan"),
    ("weight infinite", lambda: fit_rows(sample_weight=[np.inf, 1, 1]), "row 0 is inf"),
    ("weights all zero", lambda: fit_rows(sample_weight=[0, 0, 0]), "all sample weights are zero"),
    ("weights too few", lambda: fit_rows(sample_weight=[1, 1]), "2 sample weights for 3 rows"),
    ("weights of two axes", lambda: fit_rows(sample_weight=[[1, 1, 1]]), "3 sample weights"),
    ("weights of text", lambda: fit_rows(sample_weight=["x"] * 3), "sample weights .*numbers"),
    ("objective", lambda: fit_rows(objective="magic"), "objective .*'magic'"),
    ("weights huge", lambda: fit_rows(sample_weight=[1, 1, 1e51]), "weights go beyond 1e.50"),
    ("weights tiny", lambda: fit_rows(sample_weight=[5e-324, 0, 5e-324]), "all below 1e-300"),
    ("objective of a word", lambda: fit_rows(objective="likelihood"), "objective .*'likelihood'"),
    ("search", lambda: fit_rows(search="rows"), "search must be a Search, not 'rows'"),
    ("objective of an array", lambda: fit_rows(objective=np.ones(2)), "objective .*array"),
    ("max_iter negative", lambda: fit_rows(max_iter=-1), "max_iter .*-1"),
    ("max_iter no integer", lambda: fit_rows(max_iter=2.5), "max_iter .*2.5"),
    ("max_iter bool", lambda: fit_rows(max_iter=True), "max_iter .*True"),
    ("tol negative", lambda: fit_rows(tol=-1e-3), "tol .*-0.001"),
    ("tol NaN", lambda: fit_rows(tol=np.nan), "tol .*nan"),
    ("tol infinite", lambda: fit_rows(tol=np.inf), "tol .*inf"),
    ("tol of text", lambda: fit_rows(tol="x"), "tol .*'x'"),
    ("tol True", lambda: fit_rows(tol=True), "tol .*True"),
    ("tol of an array", lambda: fit_rows(tol=np.ones(2)), "tol .*array"),
    ("n_starts zero", lambda: fit_rows(n_starts=0), "n_starts .*not 0"),
    ("n_starts no integer", lambda: fit_rows(n_starts=1.5), "n_starts .*1.5"),
    ("n_average zero", lambda: fit_rows(n_average=0), "n_average .*not 0"),
    ("n_average of text", lambda: fit_rows(n_average="2"), "n_average .*'2'"),
    ("smoothing negative", lambda: fit_rows(smoothing=-0.5), "smoothing .*-0.5"),
    ("smoothing NaN", lambda: fit_rows(smoothing=np.nan), "smoothing .*nan"),
    ("smoothing of text", lambda: fit_rows(smoothing="much"), "smoothing .*'much'"),
    ("smoothing True", lambda: fit_rows(smoothing=True), "smoothing .*True"),
    ("towards an array", lambda: fit_rows(towards=np.ones(2)), "towards .*array"),
    ("towards", lambda: fit_rows(smoothing=1.0, towards="mean"), "towards .*'mean'"),
    ("start", lambda: fit_rows(start="magic"), "start .*'magic'"),
    ("start of the other method", lambda: fit_rows(start="algebraic"), "start .*'algebraic'"),
    ("start of an array", lambda: fit_rows(start=np.ones(2)), "start .*array"),
    ("start None", lambda: fit_rows(start=None), "start .*None"),
    ("start of a wrong rank", lambda: fit_rows(start=OTHER_RANK), "start .*rank 3.*not of rank 2"),
    ("start of a wrong domain", lambda: fit_rows(start=OTHER_DOMAIN), "start .*x0.*domain"),
    ("callback", lambda: fit_rows(callback=3), "callback .*callable.*3"),
    ("random_state", lambda: fit_rows(random_state="x"), "random_state .*'x'"),
    ("a domain that is none", lambda: fit_rows(domain=["a", "b"]), "a Domain"),
    ("bins of no column", lambda: fit_rows(domain=None, bins={"z": 2}), "'z'.*no column"),
    ("validation 0", lambda: fit_rows(validation=0), "validation .*fraction.*not 0"),
    ("validation 1", lambda: fit_rows(validation=1), "validation .*fraction.*not 1"),
    ("validation -0.1", lambda: fit_rows(validation=-0.1), "validation .*not -0.1"),
    ("validation NaN", lambda: fit_rows(validation=np.nan), "validation .*not nan"),
    ("validation infinite", lambda: fit_rows(validation=np.inf), "validation .*not inf"),
    ("validation of no row", lambda: fit_rows(validation=0.01), "both sides, not 0.01"),
    ("validation of all rows", lambda: fit_rows(validation=0.99), "both sides, not 0.99"),
    ("validation True", lambda: fit_rows(validation=True), "validation .*not a bool"),
    ("validation of text", lambda: fit_rows(validation="x"), "not str"),
    ("validation unknown", lambda: fit_rows(validation=[[0, 9]]), "'b' holds 9 in row 0"),
    ("validation of no cell", lambda: fit_rows(validation=NOTHING), "validation .*observed cell"),
    ("no validation cell", lambda: fit_rows(validation=MASK), "no cell of the validation part"),
    (
        "validation cells of a shape",
        lambda: fit_rows(validation=MASK[:2]),
        r"validation cells of shape \(2, 2\).*\(3, 2\)",
    ),
    (
        "validation cells as a list of a shape",
        lambda: fit_rows(validation=MASK[:2].tolist()),
        r"validation cells of shape \(2, 2\).*\(3, 2\)",
    ),
    ("a hidden column", lambda: fit_rows(validation=COLUMN_MASK), "'b' has no observed cell"),
)
def test_rows_that_cannot_be_fitted_are_refused(call, message):
    assert_refused(call, message)


def elsewhere(source=None, **options):
    """Fit rows that are not in memory: batches."""
    return fit_rows([ROWS] if source is None else source, **options)


@cases(
    ("validation", lambda: elsewhere(validation=0.5), "validation does not apply to rows that"),
    ("n_starts", lambda: elsewhere(n_starts=2), "n_starts does not apply to rows that"),
    ("n_average", lambda: elsewhere(n_average=2), "n_average does not apply to rows that"),
    ("sample weights", lambda: elsewhere(sample_weight=[1] * 3), "sample_weight does not apply to"),
    ("bins", lambda: elsewhere(bins=3, domain=None), "bins does not apply to batches"),
    ("once", lambda: elsewhere(iter([ROWS]), validation=0.5), "rows that come once: leave it out"),
    ("start", lambda: elsewhere(start="algebraic"), "start .*'algebraic'"),
    ("rank", lambda: elsewhere(rank=0), "rank .*not 0"),
    ("unknown level", lambda: elsewhere([ROWS, [[0, 9]]]), "batch 1: column 'b' holds 9 in row 0"),
)
def test_what_needs_all_rows_in_memory_is_refused_elsewhere(call, message):
    assert_refused(call, message)


class TestOddRowsAreFitted:
    def test_rows_without_a_cell_are_ignored_and_counted(self, caplog):
        rows = np.array([[0, 2], [1, 0], [1, 1]])
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            found = fit_rows(np.vstack([NOTHING, rows]), smoothing=0.1).pmf
        assert "2 rows have no observed cell and are ignored" in caplog.text
        np.testing.assert_array_equal(found.table(), fit_rows(rows, smoothing=0.1).pmf.table())

    def test_a_level_never_seen_has_probability_zero(self):
        pmf = fit_rows([[0, 2], [1, 0], [0, 0]]).pmf
        np.testing.assert_array_equal(pmf.factors[1][1], 0)
        assert np.isfinite(pmf.table()).all()

    @pytest.mark.parametrize("start", ["auto", "rows", "random"])
    def test_a_rank_above_the_number_of_distinct_rows_fits_and_warns(self, caplog, start):
        solution = fit_rows(rank=7, start=start)
        assert "the rank 7 is larger than the number of distinct rows, 3" in caplog.text
        assert solution.objective == pytest.approx(np.log(3), abs=1e-6)
        assert np.isfinite(solution.pmf.table()).all()

    def test_a_single_row_is_certain(self, caplog):
        assert fit_rows([[1, 2]], rank=1).pmf.table()[1, 2] == 1
        assert not caplog.records

    def test_an_impossible_row_has_log_probability_minus_infinity_and_is_named(self, caplog):
        logs = ONE_SIDED.log_probability([[0, 0], [0, 2], [1, 0]])
        np.testing.assert_allclose(logs, [np.log(0.5), -np.inf, -np.inf])
        assert "2 rows have probability zero, row 1 first" in caplog.text


def choose(ranks=(1, 2), criterion="bic", rows=ROWS, **options):
    return jp.choose_rank(rows, ranks, criterion, **settings(**{"domain": DOMAIN} | options))


def folds(**options):
    return choose(criterion="validation", **options)


@cases(
    ("no rank", lambda: choose([]), r"ranks must be a list .* \[\]"),
    ("rank 0", lambda: choose([1, 0]), "rank .*not 0"),
    ("rank no integer", lambda: choose([1.5]), "rank .*1.5"),
    ("rank of text", lambda: choose("ab"), "ranks .*'ab'"),
    ("one rank", lambda: choose(3), "ranks must be a list .*not 3"),
    ("rank None", lambda: choose(None), "ranks must be a list .*not None"),
    ("ranks of None", lambda: choose([None]), "rank .*None"),
    ("ranks of booleans", lambda: choose([True]), "rank .*True"),
    ("criterion", lambda: choose(criterion="magic"), "criterion .*'magic'"),
    ("criterion in capitals", lambda: choose(criterion="BIC"), "criterion .*'BIC'"),
    ("criterion of an array", lambda: choose(criterion=np.ones(2)), "criterion .*array"),
    ("criterion None", lambda: choose(criterion=None), "criterion .*None"),
    ("too many folds", lambda: folds(n_folds=4), "3 rows .*4 folds"),
    ("one fold", lambda: folds(n_folds=1), "n_folds .*not 1"),
    ("folds no integer", lambda: folds(n_folds=2.5), "n_folds .*2.5"),
    ("rows for a criterion", lambda: choose(validation=ROWS), "criterion='validation'"),
    ("validation of no cell", lambda: folds(validation=NOTHING), "no held-out row"),
    ("validation as a part", lambda: folds(validation=2.0), "both sides, not 2"),
    ("validation unknown", lambda: folds(validation=[[0, 9]]), "'b' holds 9 in row 0"),
    ("no rows", lambda: choose(rows=np.zeros((0, 2))), "empty"),
    ("a column without a cell", lambda: choose(rows=UNSEEN), "'b' has no observed cell"),
    ("weight negative", lambda: choose(sample_weight=[1, 1, -2]), "row 2 is -2"),
    ("weights all zero", lambda: choose(sample_weight=[0, 0, 0]), "all sample weights are zero"),
    ("weights too few", lambda: folds(sample_weight=[1, 1]), "2 sample weights for 3 rows"),
    ("random_state", lambda: choose(random_state="x"), "random_state .*'x'"),
    ("smoothing", lambda: choose(smoothing=-1), "smoothing .*-1"),
    ("smoothing True", lambda: choose(smoothing=True), "smoothing .*True"),
    ("towards", lambda: choose(towards=np.ones(2)), "towards .*array"),
    ("max_iter", lambda: choose(max_iter=-1), "max_iter .*-1"),
    ("tol", lambda: choose(tol=True), "tol .*True"),
    ("weights huge", lambda: choose(sample_weight=[1, 1, 1e51]), "weights go beyond 1e.50"),
)
def test_a_rank_that_cannot_be_chosen_is_refused(call, message):
    assert_refused(call, message)


def bootstrap(rank=1, rows=ROWS, **options):
    return jp.bootstrap_test(rows, rank, **({"domain": DOMAIN, "n_bootstrap": 1} | options))


@cases(
    ("no tables", lambda: bootstrap(n_bootstrap=0), "n_bootstrap .*not 0"),
    ("tables no integer", lambda: bootstrap(n_bootstrap=9.5), "n_bootstrap .*9.5"),
    ("no rows", lambda: bootstrap(rows=np.zeros((0, 2))), "empty"),
    ("a column without a cell", lambda: bootstrap(rows=UNSEEN), "'b' has no observed cell"),
    ("random_state", lambda: bootstrap(random_state="x"), "random_state .*'x'"),
    ("tol", lambda: bootstrap(tol=-1), "tol .*-1"),
    ("tol True", lambda: bootstrap(tol=True), "tol .*True"),
)
def test_what_cannot_be_tested_is_refused(call, message):
    assert_refused(call, message)


@cases(
    ("no model", lambda: jp.summary(None, ROWS), "JointPMF, not of None"),
    ("no table", lambda: jp.summary(PMF, 3), "not int"),
    ("no rows", lambda: jp.summary(PMF, np.zeros((0, 2))), "no row"),
    ("no cell", lambda: jp.summary(PMF, NOTHING), "no row .*observed cell"),
    ("unknown level", lambda: jp.summary(PMF, [[0, 9]]), "'b' holds 9 in row 0"),
    ("weight negative", lambda: jp.summary(PMF, ROWS, [1, -1, 1]), "row 1 is -1"),
    ("weights too few", lambda: jp.summary(PMF, ROWS, [1]), "1 sample weights for 3 rows"),
    (
        "sizes by no column",
        lambda: jp.summary(PMF, ROWS).sizes_by("town"),
        "no column 'town'; the columns are 'a', 'b'",
    ),
    (
        "sizes by no column of codes",
        lambda: jp.summary(PMF, jp.Codes(DOMAIN, [[0, 1]])).sizes_by("town"),
        "no column 'town'; the columns are 'a', 'b'",
    ),
    ("sizes by a number", lambda: jp.summary(PMF, ROWS).sizes_by(3), "label for each row, not 3"),
    ("sizes by a table", lambda: jp.summary(PMF, ROWS).sizes_by(np.eye(3)), "label for each row"),
    (
        "labels of two kinds",
        lambda: jp.summary(PMF, ROWS).sizes_by([1, "1", 2]),
        "'labels' mixes cells of types int, str",
    ),
    ("labels too few", lambda: jp.summary(PMF, ROWS).sizes_by(["x"]), "1 labels for 3 rows"),
    (
        "sizes as a frame",
        lambda: jp.summary(PMF, ROWS).sizes_by("a").to_frame("excel"),
        "backend .*'excel'",
    ),
    ("posteriors", lambda: jp.summary(PMF, ROWS).posteriors("excel"), "backend .*'excel'"),
    (
        "a component of a column's name",
        lambda: jp.summary(PMF.reordered(names=["x", "most likely"]), ROWS).posteriors(),
        "component is called 'most likely'.*another name",
    ),
    ("average of nothing", lambda: jp.average([]), "one JointPMF or more"),
    ("average of None", lambda: jp.average(None), "one JointPMF or more"),
    ("average of one without a list", lambda: jp.average(PMF), "one JointPMF or more"),
    ("average of arrays", lambda: jp.average([EVEN]), "JointPMF"),
    ("average of domains", lambda: jp.average([PMF, OTHER_DOMAIN]), "same domain"),
    ("weight of a model negative", lambda: jp.average([PMF, PMF], [1, -1]), "model 1 is -1"),
    ("weight of a model NaN", lambda: jp.average([PMF, PMF], [np.nan, 1]), "model 0 is nan"),
    ("weights of models zero", lambda: jp.average([PMF, PMF], [0, 0]), "models are zero"),
    ("weights of models", lambda: jp.average([PMF, PMF], [1]), "1 weights for 2 models"),
    ("weights of models text", lambda: jp.average([PMF], ["x"]), "weights are not numbers"),
)
def test_what_cannot_be_summarised_or_averaged_is_refused(call, message):
    assert_refused(call, message)


@pytest.mark.parametrize(
    "ask",
    [fit, lambda rank: fit_rows(rank=rank), bootstrap, lambda rank: jp.random_pmf(DOMAIN, rank)],
    ids=["fit", "fit rows", "bootstrap", "random"],
)
@pytest.mark.parametrize("rank", [0, -1, 1.5, 2.0, True, None, "2"])
def test_a_rank_that_is_no_positive_whole_number_is_refused(ask, rank):
    assert_refused(lambda: ask(rank), f"rank .*not {rank!r}")


def pmf(weights=PMF.weights, first=PMF.factors[0], second=PMF.factors[1]):
    return jp.JointPMF(DOMAIN, weights, [first, second])


def of_factors(factors):
    return jp.JointPMF(DOMAIN, PMF.weights, factors)


@cases(
    ("weights negative", lambda: pmf([-0.5, 1.5]), "weights .*non-negative"),
    ("weights NaN", lambda: pmf([np.nan, 1.0]), "weights .*finite"),
    ("weights infinite", lambda: pmf([np.inf, 1.0]), "weights .*finite"),
    ("weights of another sum", lambda: pmf([0.5, 0.6]), "weights .*sum to one"),
    ("weights of two axes", lambda: pmf([[0.5, 0.5], [0.5, 0.5]]), "weights .*vector"),
    ("weights of one number", lambda: pmf(1.0), "weights .*vector"),
    ("weights empty", lambda: pmf([]), "weights"),
    ("weights of text", lambda: pmf(["x", "y"]), "weights .*numbers"),
    ("factor negative", lambda: pmf(second=[[2, 1], [-1, 0], [0, 0]]), "'b' .*non-negative"),
    ("factor NaN", lambda: pmf(second=PMF.factors[1] * np.nan), "'b' .*finite"),
    ("factor of another sum", lambda: pmf(first=PMF.factors[0] * 2), "'a' .*sum to one"),
    ("factor transposed", lambda: pmf(second=np.full((2, 3), 0.5)), r"'b' .*\(2, 3\).*\(3, 2\)"),
    ("factor of one axis", lambda: pmf(first=[0.5, 0.5]), r"'a' .*\(2,\).*\(2, 2\)"),
    ("factor of another rank", lambda: pmf([1.0]), r"'a' .*\(2, 2\).*\(2, 1\)"),
    ("factor too few", lambda: of_factors(PMF.factors[:1]), "1 factors for 2 variables"),
    ("no factors", lambda: of_factors(None), "factors"),
)
def test_weights_and_factors_that_are_no_distribution_are_refused(call, message):
    assert_refused(call, message)


LARGE = jp.random_pmf(jp.Domain.of_sizes([10] * 12), rank=1, random_state=0)
HUGE = jp.random_pmf(jp.Domain.of_sizes([10] * 40), rank=1, random_state=0)
WORDS = jp.random_pmf(jp.Domain([jp.Variable("vote", ("no", "yes"))]), rank=1, random_state=0)


@cases(
    ("unknown variable", lambda: PMF.condition({"z": 0}), "no variable 'z'"),
    ("unknown level", lambda: PMF.condition({"b": 7}), "'b' has no level 7"),
    ("unknown level in a set", lambda: PMF.condition({"b": {0, 7}}), "'b' has no level 7"),
    ("missing level", lambda: PMF.condition({"b": None}), "'b' has no level None"),
    ("likelihood of a shape", lambda: PMF.condition({"b": np.ones(2)}), r"'b' .*\(2,\)"),
    ("likelihood negative", lambda: PMF.condition({"a": np.array([-1.0, 1.0])}), "'a' .*least 0"),
    ("likelihood NaN", lambda: PMF.condition({"a": np.array([np.nan, 1.0])}), "'a' .*finite"),
    ("likelihood of text", lambda: PMF.condition({"a": np.array(["x", "y"])}), "'a' .*numbers"),
    ("unknown component", lambda: PMF.condition({"component": 2}), "'component' has no level 2"),
    ("component below 0", lambda: PMF.condition({"component": -1}), "'component' has no level -1"),
    (
        "unknown component name",
        lambda: NAMED.condition({"component": "c"}),
        "no level 'c'.*'first'",
    ),
    ("number of no component", lambda: NAMED.condition({"component": {0, 2}}), "no level 2"),
    (
        "likelihood of components",
        lambda: PMF.condition({"component": np.ones(3)}),
        r"'component' must be 2 numbers",
    ),
    (
        "a variable takes the component's name",
        lambda: OWN.condition({"component": 2}),
        "'component' has no level 2.*this model has a variable 'component'.*latent class",
    ),
    (
        "a likelihood for a variable of the component's name",
        lambda: OWN.condition({"component": np.ones(2)}),
        "must be 3 numbers.*this model has a variable 'component'",
    ),
    (
        "component asked for twice",
        lambda: PMF.marginal(["component", "component"]),
        "'component' twice",
    ),
    ("evidence of no names", lambda: PMF.condition([("a", 0)]), "evidence"),
    ("names of too many", lambda: PMF.reordered(names=["x", "y", "z"]), "each of 2 components"),
    ("names of too few", lambda: PMF.reordered(names=["x"]), "each of 2 components, not .'x',"),
    ("a name twice", lambda: PMF.reordered(names=["x", "x"]), "components names 'x' twice"),
    ("a name that is empty", lambda: PMF.reordered(names=["x", " "]), "must be a text, not ' '"),
    ("a name that is no text", lambda: PMF.reordered(names=["x", 1]), "must be a text, not 1"),
    ("names as a text", lambda: PMF.reordered(names="xy"), "list of names, .*not 'xy'"),
    ("names as a number", lambda: PMF.reordered(names=2), "list of names, .*not 2"),
    ("order of another word", lambda: PMF.reordered("weight"), "'size', .* not 'weight'"),
    ("order with one twice", lambda: PMF.reordered([0, 0]), r"0 to 1, each once, not \[0, 0\]"),
    ("order of too few", lambda: PMF.reordered([1]), "0 to 1, each once"),
    ("order of no components", lambda: PMF.reordered(["a", "b"]), "0 to 1, each once"),
    ("order of booleans", lambda: PMF.reordered([False, True]), "0 to 1, each once"),
    ("order as a number", lambda: PMF.reordered(1), "0 to 1, each once, not 1"),
    (
        "names of a model that is made",
        lambda: jp.JointPMF(DOMAIN, PMF.weights, PMF.factors, ["x"]),
        "each of 2 components",
    ),
    ("evidence impossible", lambda: ONE_SIDED.condition({"a": 1}), "'a': 1.* probability zero"),
    ("evidence of no level", lambda: PMF.condition({"a": set()}), "'a'.* probability zero"),
    ("sample given", lambda: ONE_SIDED.sample(2, given={"b": 2}), "'b': 2.* probability zero"),
    ("sample of -1 rows", lambda: PMF.sample(-1), "number of rows .*not -1"),
    ("sample of half a row", lambda: PMF.sample(0.5), "number of rows .*not 0.5"),
    ("sample of a backend", lambda: PMF.sample(2, backend="excel"), "backend .*'excel'"),
    ("no most likely row", lambda: PMF.most_likely(0), "n must .*at least 1, not 0"),
    ("half a most likely row", lambda: PMF.most_likely(0.5), "n must .*not 0.5"),
    ("most likely without nodes", lambda: PMF.most_likely(max_nodes=0), "max_nodes .*not 0"),
    ("most likely given", lambda: ONE_SIDED.most_likely(given={"a": 1}), "probability zero"),
    ("most likely given names", lambda: PMF.most_likely(given=["a"]), "evidence must be a mapping"),
    ("most likely of a backend", lambda: PMF.most_likely(backend="codes"), "backend .*'codes'"),
    ("most likely in column a", lambda: PMF.most_likely(column="a"), "variable is called 'a'"),
    ("frame of a backend", lambda: PMF.to_frame("excel"), "backend .*'excel'"),
    ("frame with column 3", lambda: PMF.to_frame(column=3), "column must be a name, not 3"),
    ("frame with column b", lambda: PMF.to_frame(column="b"), "variable is called 'b'"),
    ("frame too large", lambda: HUGE.to_frame(), "40 variables would take"),
    ("frame above a limit", lambda: PMF.to_frame(max_bytes=143), "144 bytes, more than 143 bytes"),
    ("frame of a summary", lambda: jp.summary(PMF, ROWS).to_frame("excel"), "backend .*'excel'"),
    ("table too large", lambda: LARGE.table(), "12 variables would take 7.28 TiB"),
    ("table much too large", lambda: HUGE.table(), r"40 variables would take 10\^41 bytes"),
    ("table above a limit", lambda: PMF.table(max_bytes=47), "48 bytes, more than 47 bytes"),
    ("marginal of an unknown name", lambda: PMF.marginal(["a", "z"]), "no variable 'z'"),
    ("marginal of a name twice", lambda: PMF.marginal(["a", "a"]), "'a' twice"),
    ("marginal of text", lambda: PMF.marginal("a"), r"such as \['a'\]"),
    ("unknown target", lambda: PMF.predict_proba(ROWS, "z"), "no variable 'z'"),
    ("target without values", lambda: WORDS.expectation([["no"]], "vote"), "'vote' .*numeric"),
    ("unknown level in a row", lambda: PMF.probability([[0, 1], [0, 9]]), "'b' holds 9 in row 1"),
)
def test_a_question_that_has_no_answer_is_refused(call, message):
    assert_refused(call, message)


WIDE = jp.Domain.of_sizes([2] * 60)
WIDE_PMF = jp.random_pmf(WIDE, rank=1, random_state=0)
WIDE_ROWS = WIDE_PMF.sample(9, random_state=0)
NINE = jp.Domain.of_sizes([3, 3])


@cases(
    ("a size", lambda: jp.Domain.of_sizes([10**9]), "1,000,000,000 levels would take 130 GiB"),
    ("two sizes", lambda: jp.Domain.of_sizes([2, 10**18]), r"10\^18 levels would take 10\^20 byte"),
    ("many sizes", lambda: jp.Domain.of_sizes([10**8] * 9), "900,000,000 levels would take"),
    ("rank of rows", lambda: fit_rows(rank=10**12), "rank 1,000,000,000,000 would take 7.28 TiB"),
    ("rank of digits", lambda: fit_rows(rank=10**30), r"rank 10\^30 would take 10\^31 bytes"),
    ("rank of tables", lambda: fit(rank=10**12), "would take 7.28 TiB, more memory than there is"),
    ("random rank", lambda: jp.random_pmf(NINE, 10**12), "would take 43.7 TiB"),
    ("bootstrapped rank", lambda: bootstrap(rank=10**12), "would take 7.28 TiB"),
    ("ranks to choose from", lambda: choose([1, 10**12]), "would take 7.28 TiB"),
    (
        "rank to identify",
        lambda: jp.identifiability(NINE, 10**12, order=2),
        "would take 43.7 TiB",
    ),
    (
        "rank of an estimator",
        lambda: jp.PMFEstimator(rank=10**12).fit(ROWS),
        "would take 7.28 TiB",
    ),
    (
        "rank of a part",
        lambda: jp.PMFEstimator(rank=10**12).partial_fit(ROWS),
        "would take 7.28 TiB",
    ),
    ("a sample", lambda: PMF.sample(10**15), r"10\^15 rows would take 28.4 PiB"),
    ("a sample of codes", lambda: PMF.sample(10**15, backend="codes"), "28.4 PiB"),
    ("a sample of digits", lambda: PMF.sample(10**40), r"10\^40 rows would take 10\^42 bytes"),
    ("a population", lambda: PMF.population(10**15), r"10\^15 rows would take 28.4 PiB"),
    (
        "marginals of rows",
        lambda: jp.MarginalSet.from_table(WIDE_ROWS, order=4),
        "the 487,635 marginals of order 4 would take 1.36 GiB and more: lower the order",
    ),
    ("marginals of a model", lambda: WIDE_PMF.marginals(order=4), "487,635 marginals of order 4"),
    ("marginals of half", lambda: WIDE_PMF.marginals(30), r"the 10\^17 marginals of order 30"),
    ("an order of digits", lambda: WIDE_PMF.marginals(10**20), "there are 60"),
    ("bins", lambda: encode(ROWS, bins={"a": 10**20}), r"10\^20 bins of 'a' would take 10\^23"),
)
def test_what_no_memory_could_hold_is_refused_at_once(call, message):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(call, message)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


LONG = jp.Domain([jp.Variable("n" * 5000, ("l" * 5000, "k" * 5000)), *DOMAIN])
LONG_PMF = jp.random_pmf(LONG, rank=2, random_state=0)
MANY = jp.Domain([jp.Variable(f"{n} {'m' * 79}", (0, 1)) for n in range(20)])


@cases(
    ("no such variable", lambda: LONG.index("z"), "no variable 'z'; the variables are 'nnn"),
    ("a long name", lambda: DOMAIN.index("z" * 5000), "the variables are 'a', 'b'"),
    ("many long names", lambda: MANY.index("z"), "'0 mmm.* and 19 more"),
    ("no such level", lambda: LONG_PMF.condition({"n" * 5000: "z"}), "its levels are 'lll"),
    ("a long level", lambda: LONG.variables[0].code("z" * 5000), "s no level 'zzz"),
    ("a level twice", lambda: jp.Variable("n" * 5000, [1, 1]), "^variable 'nnn.*twice"),
    ("a name twice", lambda: LONG.indices(["n" * 5000] * 2), "^the list of .*twice"),
    ("a model without", lambda: encode(pl.DataFrame({"z" * 5000: [1]}), DOMAIN), "none of the va"),
    ("a long path", lambda: jp.load("p" * 5000), "^cannot read|too long"),
    ("a long folder", lambda: PMF.save("p" * 5000 + "/m"), "^cannot write ppp"),
    ("a path of lines", lambda: PMF.save("none\n\x1b[2J/m"), "cannot write none ␛"),
    ("a path of text", lambda: PMF.save(b"bytes"), "named by a path, not by b'bytes'"),
    ("no path", lambda: PMF.save(None), "named by a path, not by None"),
    ("a number for a path", lambda: PMF.save(1), "named by a path, not by 1"),
    ("a null character", lambda: PMF.save("a\0b"), r"without null characters, not 'a.x00b'"),
    ("a fit to a device", lambda: jp.fit_rows("/dev/zero", 1), "it is a device, not a file"),
)
def test_a_sentence_stays_short_and_on_its_line_whatever_the_names(call, message):
    assert_refused(call, message)
