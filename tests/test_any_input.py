"""Whatever comes in, a JointPMFError comes out if anything does: no other exception, no warning.

Every public function and method is called with a valid set of arguments, in which one after the
other is replaced by values of every kind. Tables of odd cells are made by hypothesis.
"""

import datetime
import inspect
import socket
import warnings
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from types import FunctionType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from support.feasibility import feasible
from support.odd_values import HALF, ODD, Plain
from support.public_calls import CALLS, OURS, PMF, ROWS, UNCERTAINTY

OWN_ERRORS = {
    ("callback", "class"),  # int(step, pmf), as it was asked for
    ("validation", "class"),
    ("query", "class"),
}
"""Functions of the user's own, by argument and value: what they raise passes through."""


@pytest.fixture(autouse=True, scope="module")
def _files(tmp_path_factory):
    """Work in a folder that has the files which calls read, and without a network."""
    folder = tmp_path_factory.mktemp("any")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(socket.socket, "connect", _no_network)
        patch.setattr(socket, "getaddrinfo", _no_network)  # else the name is waited for
        PMF.save("model.jpmf")
        UNCERTAINTY.save("sure.jpmf")
        ROWS.write_csv("rows.csv")
        yield


def _no_network(*_):
    raise OSError("no network in tests")


def outcome(function, **arguments):
    """Return what a call returns, or the sentence of its error; it raises and warns no other."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning, module="jointpmf.estimators")
        warnings.filterwarnings("ignore", message="X (does not have|has) (valid )?feature names")
        try:
            return function(**arguments)
        except jp.JointPMFError as error:
            return error


def assert_sound(found):
    """Check that an error is a sentence, and that a model is a distribution."""
    if isinstance(found, jp.JointPMFError):
        assert "\n" not in str(found)
        assert 0 < len(str(found)) < 400
    model = getattr(found, "pmf", found)
    if isinstance(model, jp.JointPMF) and len(model.domain):
        assert feasible(model)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_an_argument_of_any_kind_works_or_is_refused_in_a_sentence(call):
    assert_sound(outcome(call.function, **call.arguments))
    for k, name in enumerate(call.parameters):
        for label in list(ODD)[k % call.every :: call.every]:
            given = {**call.arguments, name: ODD[label]()}
            own = TypeError if (name, label) in OWN_ERRORS else ()
            try:
                with suppress(own):
                    assert_sound(outcome(call.function, **given))
            except BaseException as error:
                raise AssertionError(f"{call.name}({name}={label}): {error!r}") from error


def public_callables():
    """Return the names of all public functions, classes and methods."""
    for name in jp.__all__:
        thing = getattr(jp, name)
        if callable(thing):
            yield name
        if not inspect.isclass(thing):
            continue
        for method in dir(thing):
            own = inspect.getattr_static(thing, method)
            is_method = isinstance(own, (classmethod, staticmethod, FunctionType))
            is_ours = "jointpmf." in str(getattr(getattr(thing, method), "__module__", ""))
            if is_method and is_ours and not method.startswith("_"):
                yield f"{name}.{method}"


def test_every_public_function_is_called():
    listed = {call.name.partition(" ")[0] for call in CALLS} | set(OURS)
    assert not [name for name in public_callables() if name not in listed]


def test_valid_arguments_work():
    refused = [
        call.name
        for call in CALLS
        if isinstance(outcome(call.function, **call.arguments), jp.JointPMFError)
    ]
    assert not refused


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**127, 10**400, 10**5000]),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 5e-324, 1e308, np.inf, -np.inf, np.nan]),
    st.sampled_from([np.float32("nan"), np.frombuffer(b"\1\0\0\0\0\0\xf8\xff")[0], np.int8(3)]),
    st.sampled_from(["", "a", "1", "nan", HALF, "a\0b", "\x1b[2J", "\u202e", "long" * 500]),
    st.sampled_from([b"", b"a", b"\xff"]),
    st.builds(
        Decimal,
        st.sampled_from(["1", "1.0", "0.1", "NaN", "sNaN", "NaN123", "Infinity", "1e30", "1e-30"]),
    ),
    st.sampled_from([Decimal("1e999999"), Decimal("1e-999999"), Decimal("-1e400")]),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(10**400, 3), 1j, complex("nan")]),
    st.sampled_from([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.time(12)]),
    st.sampled_from(
        [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)]
    ),
    st.sampled_from([datetime.timedelta.max, datetime.timedelta(0), pd.NaT, pd.NA]),
    st.sampled_from([np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64(3, "Y")]),
    st.sampled_from([(), (1, 2), ("a", None), frozenset({1}), Plain, ..., range(2)]),
    st.builds(Plain),
    st.builds(lambda: [1]),
    st.builds(lambda: {"a": 1}),
    st.builds(lambda: np.array([1, 2])),
)
"""Cells of every kind, the ordinary ones more often."""


def columns_of(n_rows):
    """Return columns of one or two kinds of cells, so that some of them can be learned."""
    kinds = st.lists(CELLS, min_size=1, max_size=3)
    return kinds.flatmap(
        lambda few: st.lists(st.sampled_from(few), min_size=n_rows, max_size=n_rows)
    )


COLUMNS = st.integers(1, 5).flatmap(lambda n: st.lists(columns_of(n), min_size=1, max_size=3))


def as_rows(columns):
    return [list(row) for row in zip(*columns, strict=True)]


def as_array(columns):
    array = np.empty((len(columns[0]), len(columns)), object)
    for n, column in enumerate(columns):
        for row, cell in enumerate(column):
            array[row, n] = cell
    return array


def as_pandas(columns):
    named = {f"c{n}": pd.Series(column, dtype=object) for n, column in enumerate(columns)}
    return pd.DataFrame(named)


def as_polars(columns):
    """Return columns of Polars' own types where it finds one, and of objects otherwise."""
    return pl.DataFrame([polars_series(f"c{n}", column) for n, column in enumerate(columns)])


def polars_series(name, column):
    try:
        return pl.Series(name, column)
    except BaseException:  # also the panics of Polars itself
        return pl.Series(name, column, dtype=pl.Object)


def as_arrow(columns):
    return pa.table({f"c{n}": arrow_array(column) for n, column in enumerate(columns)})


def arrow_array(column):
    try:
        return pa.array(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([str(type(cell)) for cell in column])


KINDS = {
    "rows": as_rows,
    "array": as_array,
    "pandas": as_pandas,
    "polars": as_polars,
    "arrow": as_arrow,
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
class TestTablesOfOddCells:
    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(columns=COLUMNS)
    def test_are_encoded_and_decoded_to_what_they_were_or_refused(self, make, columns):
        codes = outcome(jp.encode, table=make(columns))
        assert_sound(codes)
        if isinstance(codes, jp.JointPMFError):
            return
        repr(codes)
        pmf = jp.random_pmf(codes.domain, 1, random_state=0)
        for backend in ("polars", "pandas", "pyarrow"):
            table = outcome(pmf.sample, n=3, random_state=0, backend=backend)
            assert_sound(table)
            if not isinstance(table, jp.JointPMFError):
                again = outcome(jp.encode, table=table, domain=codes.domain)
                assert_sound(again)
                if isinstance(again, jp.Codes):  # floats of fractions are none of the levels
                    wanted = pmf.sample(3, random_state=0, backend="codes")
                    np.testing.assert_array_equal(again.array, wanted)

    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(columns=COLUMNS)
    def test_are_fitted_filled_and_saved_or_refused(self, make, columns):
        quick = {"rank": 1, "max_iter": 1, "random_state": 0}
        found = outcome(jp.fit_rows, source=make(columns), **quick)
        assert_sound(found)
        if isinstance(found, jp.JointPMFError):
            return
        assert_sound(outcome(jp.impute, pmf=found.pmf, table=make(columns)))
        assert_sound(outcome(jp.summary, pmf=found.pmf, table=make(columns)))
        assert_sound(outcome(found.pmf.save, path="odd.jpmf"))
        assert_sound(outcome(found.pmf.explore, path="odd.html"))
