"""Holes filled: of which kind and type, with what, and by which strategy."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.data.decode import filled
from jointpmf.predict.impute import impute
from support import oracle

N_ROWS = 40
COIN = np.random.default_rng(0).integers(2, size=N_ROWS)
HOLES = range(1, N_ROWS, 7)
PAIRS = {
    "str": ("a", "b"),
    "int": (3, 4),
    "float": (0.5, 1.5),
    "bool": (False, True),
    "datetime": (dt.datetime(2024, 1, 1), dt.datetime(2024, 6, 1)),
    "date": (dt.date(2024, 1, 1), dt.date(2024, 6, 1)),
}


def column(kind):
    """Return a column that the coin decides, with holes, and without them."""
    cells = [PAIRS[kind][side] for side in COIN]
    return [None if row in HOLES else cell for row, cell in enumerate(cells)], cells


def as_list(cells):
    return cells.to_pylist() if isinstance(cells, pa.ChunkedArray) else list(cells)


def imputed(table, **options):
    return jp.PMFImputer(2, **{"random_state": 0, "tol": 1e-6} | options).fit_transform(table)


PANDAS = {
    "str": ("str", "str"),
    "string": ("str", "string"),
    "category": ("str", "category"),
    "ordered": ("str", pd.CategoricalDtype(["b", "never", "a"], ordered=True)),
    "numbers in categories": ("int", pd.CategoricalDtype([4, 3])),
    "object": ("bool", object),
    "Int64": ("int", "Int64"),
    "UInt8": ("int", "UInt8"),
    "float64": ("float", "float64"),
    "float32": ("float", "float32"),
    "whole floats": ("int", "float64"),
    "Float64": ("float", "Float64"),
    "boolean": ("bool", "boolean"),
    "datetime": ("datetime", "datetime64[us]"),
    "datetime ns": ("datetime", "datetime64[ns]"),
    "datetime with zone": ("datetime", "datetime64[us, Europe/Berlin]"),
    "arrow": ("int", pd.ArrowDtype(pa.int16())),
    "arrow text": ("str", pd.ArrowDtype(pa.string())),
}
POLARS = {
    "String": ("str", pl.String),
    "Categorical": ("str", pl.Categorical),
    "Enum": ("str", pl.Enum(["b", "never", "a"])),
    "Int8": ("int", pl.Int8),
    "UInt64": ("int", pl.UInt64),
    "Float32": ("float", pl.Float32),
    "Float64": ("float", pl.Float64),
    "Boolean": ("bool", pl.Boolean),
    "Date": ("date", pl.Date),
    "Datetime": ("datetime", pl.Datetime("us")),
}
PYARROW = {
    "string": ("str", pa.string()),
    "large_string": ("str", pa.large_string()),
    "dictionary": ("str", pa.dictionary(pa.int8(), pa.string())),
    "ordered dictionary": ("str", pa.dictionary(pa.int32(), pa.large_string(), ordered=True)),
    "int8": ("int", pa.int8()),
    "uint64": ("int", pa.uint64()),
    "float": ("float", pa.float32()),
    "double": ("float", pa.float64()),
    "bool": ("bool", pa.bool_()),
    "date32": ("date", pa.date32()),
    "timestamp": ("datetime", pa.timestamp("s")),
}
ONE_OF_EACH = ["str", "int", "float", "bool", "datetime"]


class TestSameKindOut:
    @pytest.mark.parametrize(("kind", "dtype"), PANDAS.values(), ids=PANDAS)
    def test_pandas_keeps_types_index_and_order(self, kind, dtype):
        with_holes, complete = column(kind)
        index = pd.Index([f"row {k % 9}" for k in range(N_ROWS)], name="some twice")
        cells = pd.Series(with_holes, index, dtype=dtype)
        table = pd.DataFrame({"z": COIN, "cells": cells, "a": COIN}, index)
        before = table.copy(deep=True)
        model = jp.PMFImputer(2, smoothing=0, random_state=0).fit(table)
        expected = table.assign(cells=pd.Series(complete, index, dtype))
        assert expected["cells"].notna().all()
        for strategy in ("mode", "sample"):
            out = model.set_params(strategy=strategy).transform(table)
            pd.testing.assert_frame_equal(out, expected)
        pd.testing.assert_frame_equal(table, before)

    @pytest.mark.parametrize(("kind", "dtype"), POLARS.values(), ids=POLARS)
    def test_polars_keeps_types_and_order(self, kind, dtype):
        with_holes, complete = column(kind)
        table = pl.DataFrame({"z": COIN, "cells": pl.Series(with_holes, dtype=dtype), "a": COIN})
        before = table.clone()
        out = imputed(table, smoothing=0)
        assert table.equals(before)
        assert isinstance(out, pl.DataFrame)
        assert out.schema == table.schema
        assert out["cells"].to_list() == complete
        assert out.drop("cells").equals(table.drop("cells"))

    @pytest.mark.parametrize(("kind", "dtype"), PYARROW.values(), ids=PYARROW)
    def test_pyarrow_keeps_types_and_order(self, kind, dtype):
        with_holes, complete = column(kind)
        values = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
        cells = pa.array(with_holes, values).cast(dtype)
        table = pa.table({"z": COIN, "cells": cells, "a": COIN})
        out = imputed(table, smoothing=0)
        assert table["cells"].to_pylist() == with_holes
        assert isinstance(out, pa.Table)
        assert out.schema == table.schema
        assert out["cells"].to_pylist() == complete
        assert out.drop("cells").equals(table.drop("cells"))

    def test_pyarrow_in_several_chunks_is_filled(self):
        with_holes, complete = column("str")
        cells = pa.chunked_array([with_holes[:13], with_holes[13:]])
        out = imputed(pa.table({"z": COIN, "cells": cells}), smoothing=0)
        assert out["cells"].to_pylist() == complete

    @pytest.mark.parametrize(
        "names", [[3, 1], [("a", 1), ("b", 2)], [0.5, 1.5]], ids=["whole", "pairs", "floats"]
    )
    def test_names_that_are_no_text_come_back(self, names):
        with_holes, complete = column("str")
        table = pd.DataFrame({"z": COIN, "cells": with_holes})
        table.columns = columns = pd.Index(names)
        out = imputed(table, smoothing=0)
        pd.testing.assert_index_equal(out.columns, columns)
        assert out.iloc[:, 1].tolist() == complete
        assert table.columns is columns

    @pytest.mark.parametrize(
        "make", [np.array, lambda rows, _: rows.tolist()], ids=["array", "list"]
    )
    def test_arrays_and_lists_become_arrays(self, make):
        with_holes, complete = column("str")
        rows = np.array([COIN.tolist(), with_holes], object).T
        out = imputed(make(rows, object), smoothing=0)
        assert isinstance(out, np.ndarray)
        assert out[:, 1].tolist() == complete
        assert rows[:, 1].tolist() == with_holes

    def test_arrays_of_floats_stay_floats(self):
        X = np.column_stack([COIN, COIN]).astype(float)
        X[list(HOLES), 1] = np.nan
        before = X.copy()
        out = imputed(X, smoothing=0)
        assert out.dtype == float
        assert out[:, 1].tolist() == COIN.tolist()
        np.testing.assert_array_equal(X, before)

    def test_all_types_together_and_nothing_missing_is_the_same_table(self):
        complete = pl.DataFrame({kind: column(kind)[1] for kind in ONE_OF_EACH})
        model = jp.PMFImputer(2, random_state=0).fit(complete)
        for table in (complete, complete.to_pandas(), complete.to_arrow()):
            assert type(model.transform(table)) is type(table)
            assert model.transform(table).equals(table)

    def test_a_row_with_nothing_in_it_gets_the_most_likely_levels(self):
        table = pl.DataFrame({kind: column(kind)[0] for kind in ONE_OF_EACH})
        model = jp.PMFImputer(1, random_state=0).fit(table)
        empty = pl.DataFrame([[None] * 5], table.schema, orient="row")
        likely = tuple(table[kind].drop_nulls().mode()[0] for kind in ONE_OF_EACH)
        assert model.transform(empty).row(0) == likely

    def test_a_level_that_was_never_seen_stays_and_says_nothing(self):
        with_holes, _ = column("str")
        table = pl.DataFrame({"z": COIN, "cells": with_holes})
        model = jp.PMFImputer(2, random_state=0).fit(table)
        out = model.transform(pl.DataFrame({"z": [7, None, None], "cells": [None, None, "q"]}))
        assert out["cells"].to_list()[2] == "q"
        assert out["z"].to_list()[0] == 7
        assert out["cells"][0] == out["cells"][1]
        assert out["z"][2] == out["z"][1]


class TestSetOutput:
    ARRAY = np.array([COIN.tolist(), column("str")[0]], object).T

    @pytest.mark.parametrize(
        ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)]
    )
    @pytest.mark.parametrize("source", [np.asarray, pd.DataFrame, pl.DataFrame], ids=str)
    def test_the_kind_asked_for_comes_out(self, backend, kind, source):
        X = self.ARRAY if source is np.asarray else source({"z": COIN, "cells": column("str")[0]})
        out = jp.PMFImputer(2, smoothing=0).set_output(transform=backend).fit_transform(X)
        assert isinstance(out, kind)
        assert list(out.columns) == (["x0", "x1"] if source is np.asarray else ["z", "cells"])
        assert as_list(out[out.columns[1]]) == column("str")[1]

    def test_pandas_keeps_its_index(self):
        index = pd.Index(range(N_ROWS, 0, -1))
        table = pd.DataFrame({"z": COIN, "cells": column("str")[0]}, index)
        out = jp.PMFImputer(2).set_output(transform="pandas").fit_transform(table)
        pd.testing.assert_index_equal(out.index, index)

    def test_the_names_that_come_out_are_those_that_came_in(self):
        table = pl.DataFrame({"z": COIN, "cells": column("str")[0]})
        assert jp.PMFImputer(2).fit(table).get_feature_names_out().tolist() == ["z", "cells"]
        assert jp.PMFImputer(2).fit(self.ARRAY).get_feature_names_out().tolist() == ["x0", "x1"]


DOMAIN = jp.Domain(
    [
        jp.Variable("vote", ("no", "yes", "perhaps")),
        jp.Variable("rating", (1, 2, 5)),
        jp.Variable("age", ("young", "old"), (20.0, 60.0), (0.0, 40.0, 90.0)),
    ]
)
PMF = jp.random_pmf(DOMAIN, 3, random_state=1)
ROWS = [
    ("no", 1, 30.0),
    ("no", None, 30.0),
    (None, 2, None),
    (None, None, 70.0),
    ("yes", None, None),
    (None, None, None),
]
TABLE = pl.DataFrame(ROWS, ["vote", "rating", "age"], orient="row")


def prediction(row, name):
    """Return P(variable | the row's observed cells) from the dense joint."""
    codes = jp.encode(TABLE, DOMAIN).array[row]
    return oracle.row_prediction(PMF, codes, DOMAIN.index(name))


def cell_of(name, code):
    variable = DOMAIN[name]
    return variable.levels[code] if variable.edges is None else variable.values[code]


class TestStrategies:
    def test_the_mode_is_the_most_likely_level_given_the_row(self):
        out = impute(PMF, TABLE, "mode")
        for row, cells in enumerate(ROWS):
            for name, cell in zip(DOMAIN.names, cells, strict=True):
                expected = cell_of(name, prediction(row, name).argmax()) if cell is None else cell
                assert out[name][row] == expected

    def test_by_default_numbers_get_their_median_and_everything_else_its_mode(self):
        out = impute(PMF, TABLE)
        for name, strategy in (("vote", "mode"), ("rating", "median"), ("age", "median")):
            assert out[name].equals(impute(PMF, TABLE, strategy)[name])
        assert not out.equals(impute(PMF, TABLE, "mode"))
        assert out.equals(impute(PMF, TABLE, {"vote": "auto"}))
        assert out.equals(impute(PMF, TABLE, "auto"))

    def test_levels_that_do_not_increase_have_no_median_by_default(self):
        downwards = jp.Domain([jp.Variable("a", (5, 3, 1))])
        pmf = jp.JointPMF(downwards, [1.0], [np.array([[0.2], [0.35], [0.45]])])
        assert impute(pmf, [[None]]).tolist() == [[1]]
        upwards = jp.Domain([jp.Variable("a", (1, 3, 5))])
        pmf = jp.JointPMF(upwards, [1.0], [np.array([[0.2], [0.35], [0.45]])])
        assert impute(pmf, [[None]]).tolist() == [[3]]

    def test_the_median_is_the_first_level_with_half_of_the_probability_up_to_it(self):
        out = impute(PMF, TABLE, "median")
        for row, cells in enumerate(ROWS):
            for name, cell in zip(DOMAIN.names, cells, strict=True):
                below = np.flatnonzero(prediction(row, name).cumsum() >= 0.5)
                assert out[name][row] == (cell_of(name, below[0]) if cell is None else cell)
        assert not out.equals(impute(PMF, TABLE, "mode"))

    def test_the_expectation_is_the_mean_over_levels_given_the_row(self):
        out = impute(PMF, TABLE, {"rating": "expectation", "age": "expectation"})
        for row, cells in enumerate(ROWS):
            for name, cell in zip(DOMAIN.names[1:], cells[1:], strict=True):
                mean = prediction(row, name) @ np.array(DOMAIN[name].values)
                assert out[name][row] == pytest.approx(mean if cell is None else cell)

    def test_variables_that_a_mapping_does_not_name_get_their_mode(self):
        mixed = impute(PMF, TABLE, {"rating": "expectation"})
        modes = impute(PMF, TABLE)
        assert mixed["vote"].to_list() == modes["vote"].to_list()
        assert mixed["age"].to_list() == modes["age"].to_list()
        assert mixed["rating"].to_list() != modes["rating"].to_list()
        assert impute(PMF, TABLE, {}).equals(modes)

    def test_a_binned_variable_is_filled_with_the_mean_of_its_bin(self):
        for strategy in ("mode", "sample"):
            out = impute(PMF, TABLE, strategy, 0)
            assert out["age"].dtype == pl.Float64
            assert set(out["age"][[2, 4, 5]]) <= {20.0, 60.0}
            assert out["age"][[0, 1, 3]].to_list() == [30.0, 30.0, 70.0]

    @pytest.mark.parametrize("row", [2, 3, 4, 5])
    def test_the_cells_of_a_row_are_drawn_together(self, row):
        n = 20_000
        many = pl.DataFrame([ROWS[row]] * n, TABLE.schema, orient="row")
        drawn = impute(PMF, many, "sample", 0)
        codes = jp.encode(drawn, DOMAIN).array
        found = oracle.count_table(codes, [0, 1, 2], DOMAIN.sizes) / n
        given = {
            name: DOMAIN[name].levels[DOMAIN[name].code(cell)]
            for name, cell in zip(DOMAIN.names, ROWS[row], strict=True)
            if cell is not None
        }
        table = oracle.joint(PMF)
        for n_axis, variable in enumerate(DOMAIN):
            if variable.name in given:
                likelihood = oracle.likelihood_of(variable, given[variable.name])
                shape = [-1 if k == n_axis else 1 for k in range(3)]
                table = table * likelihood.reshape(shape)
        expected = table / table.sum()
        spread = np.sqrt(expected * (1 - expected) / n)
        assert (np.abs(found - expected) <= 4.5 * spread + 1e-12).all()

    def test_draws_repeat_with_their_seed_and_differ_without(self):
        many = pl.concat([TABLE] * 20)
        first, second, other = (impute(PMF, many, "sample", seed) for seed in (1, 1, 2))
        assert first.equals(second)
        assert not first.equals(other)

    def test_draws_from_one_generator_differ(self):
        many, generator = pl.concat([TABLE] * 20), np.random.default_rng(0)
        assert not impute(PMF, many, "sample", generator).equals(
            impute(PMF, many, "sample", generator)
        )

    def test_the_imputer_draws_the_same_with_a_seed_and_anew_with_a_random_state(self):
        table = pl.DataFrame({"a": [0, 1, None] * 20, "b": [None, 0, 1] * 20})
        seeded = jp.PMFImputer(1, strategy="sample", random_state=0).fit(table)
        assert seeded.transform(table).equals(seeded.transform(table))
        state = np.random.RandomState(0)
        moving = jp.PMFImputer(1, strategy="sample", random_state=state).fit(table)
        assert not moving.transform(table).equals(moving.transform(table))

    def test_a_mixed_strategy_draws_only_what_it_names(self):
        many = pl.concat([TABLE] * 50)
        out = impute(PMF, many, {"rating": "sample"}, 0)
        modes = impute(PMF, many)
        assert out["vote"].equals(modes["vote"])
        assert out["age"].equals(modes["age"])
        assert not out["rating"].equals(modes["rating"])

    def test_an_expectation_between_whole_numbers_makes_the_column_floats(self):
        table = TABLE.select("rating", "vote")
        for source in (table, table.to_pandas(), table.to_arrow()):
            out = impute(PMF, source, {"rating": "expectation"})
            cells = as_list(out["rating"])
            assert cells[0] == 1
            assert cells[1] not in (1, 2, 5)
            assert 1 < cells[1] < 5

    @pytest.mark.parametrize("levels", [(-1, 1), (0, 1)], ids=["a level", "missing"])
    def test_minus_one_is_filled_where_the_domain_does_not_have_it(self, levels):
        domain = jp.Domain([jp.Variable("p", levels), jp.Variable("q", (0, 1))])
        pmf = jp.JointPMF(domain, [1.0], [np.array([[0.1], [0.9]])] * 2)
        rows = np.array([[-1, 0], [1, -1]])
        expected = [[-1, 0], [1, 1]] if -1 in levels else [[1, 0], [1, 1]]
        assert impute(pmf, rows).tolist() == expected

    def test_another_code_can_mean_missing(self):
        pmf = jp.JointPMF(jp.Domain.of_sizes([2]), [1.0], [np.array([[0.1], [0.9]])])
        assert impute(pmf, np.array([[9], [0]]), missing_code=9).tolist() == [[1], [0]]
        with pytest.raises(jp.JointPMFError, match=r"missing_code is 0, .* level of .*'x0'"):
            impute(pmf, np.array([[9], [0]]), missing_code=0)

    def test_an_array_is_filled_by_position_and_keeps_what_is_known(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3], names=["p", "q"]), 2, random_state=0)
        rows = np.array([[0, -1], [-1, 2], [1, 1]])
        out = impute(pmf, rows, "mode")
        assert out.dtype == rows.dtype
        assert out[[0, 1, 2, 2], [0, 1, 0, 1]].tolist() == [0, 2, 1, 1]
        assert out[0, 1] == pmf.condition({"p": 0}).table().argmax()
        assert out[1, 0] == pmf.condition({"q": 2}).table().argmax()
        assert rows[0, 1] == -1

    def test_columns_that_the_model_does_not_know_stay(self):
        table = TABLE.with_columns(note=pl.Series(["x", None] * 3))
        out = impute(PMF, table)
        assert out["note"].to_list() == ["x", None] * 3
        assert out.drop("note").equals(impute(PMF, TABLE))

    @pytest.mark.parametrize(
        ("strategy", "sentence"),
        [
            ("mean", "the strategy must be .*'mode'.* not 'mean'"),
            (None, "the strategy must be .*'mode'.* not None"),
            ({"vote": "mean"}, "the strategy must be .*'mode'.* not 'mean'"),
            ({"weather": "mode"}, "there is no variable 'weather'"),
            ("expectation", "the levels of 'vote' have no numeric values to average"),
            ({"vote": "expectation"}, "the levels of 'vote' have no numeric values to average"),
        ],
        ids=str,
    )
    def test_a_bad_one_gives_a_sentence(self, strategy, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            impute(PMF, TABLE, strategy)
        with pytest.raises(jp.JointPMFError, match=sentence):
            jp.PMFImputer(2, strategy=strategy, bins={"age": 2}).fit(TABLE).transform(TABLE)


def test_the_imputer_fills_a_column_of_many_numbers_with_numbers_near_it():
    generator = np.random.default_rng(0)
    coin = generator.integers(2, size=300)
    age = coin * 40 + generator.uniform(20, 30, size=300)
    hidden = generator.random(300) < 0.2
    table = pl.DataFrame({"coin": coin, "age": np.where(hidden, np.nan, age)})
    for strategy in ("mode", "expectation", "sample"):
        out = jp.PMFImputer(2, strategy={"age": strategy}, random_state=0).fit_transform(table)
        assert out.schema == table.schema
        assert np.abs(out["age"].to_numpy() - age)[hidden].mean() < 8  # of both halves: 20
        assert (out["age"].to_numpy() == age)[~hidden].all()


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("kind", [pl.Datetime, pl.Duration])
def test_times_are_filled_in_their_own_unit(kind, unit):
    days = pl.Series([dt.timedelta(days=1), None, dt.timedelta(days=1)])
    if kind is pl.Datetime:
        days = dt.datetime(2024, 6, 1) + days
    table = pl.DataFrame({"z": [0, 0, 0], "cells": days.cast(kind(unit))})
    out = jp.PMFImputer(1, random_state=0).fit_transform(table)
    assert out["cells"].to_list() == [table["cells"][0]] * 3
    assert out.schema == table.schema


def test_whole_floats_fill_a_column_of_whole_numbers():
    table = pd.DataFrame({"x0": pd.array([1, None], "Int64")})
    out = filled(table, {"x0": np.array([0.0, 3.0])})
    assert out["x0"].tolist() == [1, 3]
    assert out["x0"].dtype == "Int64"


def test_set_output_knows_what_to_do_with_pyarrow():
    table = pa.table({"a": ["x", "y", None, "x"] * 5, "b": [1, 2, 1, 1] * 5})
    imputer = jp.PMFImputer(2, random_state=0).set_output(transform="pandas")
    out = imputer.fit_transform(table)
    assert isinstance(out, pd.DataFrame)
    assert out["a"].notna().all()
