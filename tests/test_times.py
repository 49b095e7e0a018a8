"""Times are ordered and cut like numbers, in every table, and come out as times."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.encode import encode
from jointpmf.domain import level_of
from jointpmf.times import kind_of_times, seconds_of, texts_of_times, time_in, time_of
from support.tables import any_table, cells_of, codes_of, levels_of

DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=7 * k) for k in range(60)]

CELLS = {
    "date": DAYS,
    "datetime": [dt.datetime(2020, 1, 1) + dt.timedelta(minutes=50 * k) for k in range(60)],
    "time": [dt.time(k % 24, k) for k in range(60)],
    "duration": [dt.timedelta(minutes=50 * k) for k in range(60)],
}

EDGES = {
    "date": [DAYS[0], DAYS[20], DAYS[-1]],
    "datetime": ["2020-01-01", "2020-01-01 12:00", "2021-01-01"],
    "time": ["00:00", dt.time(12), "23:59:59"],
    "duration": ["0", dt.timedelta(hours=10), dt.timedelta(days=9)],
}

any_time = pytest.mark.parametrize("kind", CELLS)


@any_table
@any_time
def test_they_are_levels_in_their_order_without_values(table, kind):
    cells = CELLS[kind][7::-3]
    variable = encode(table([*cells, None])).domain["x0"]
    assert list(variable.levels) == sorted(cells)
    assert variable.values is None


@any_table
@any_time
def test_many_must_be_cut(table, kind):
    with pytest.raises(jp.JointPMFError, match=r"'x0' has 60 distinct times, more than 50: bin it"):
        encode(table(CELLS[kind]), max_levels=50)


@any_table
@any_time
def test_bins_by_count_hold_equal_shares_and_one_number_is_enough(table, kind):
    codes = encode(table([*CELLS[kind], None]), bins=3, max_levels=50)
    variable = codes.domain["x0"]
    assert variable.time == kind
    assert np.bincount(codes.array[:-1, 0]).tolist() == [20, 20, 20]
    assert codes.array[-1, 0] == jp.MISSING
    seconds = np.array([seconds_of(cell, kind) for cell in CELLS[kind]])
    means = [seconds[codes.array[:-1, 0] == k].mean() for k in range(3)]
    assert variable.values == pytest.approx(means, rel=1e-12)
    assert codes.domain == encode(table([*CELLS[kind], None]), bins={"x0": 3}).domain


@any_table
@any_time
def test_edges_may_be_times_or_texts(table, kind):
    codes = encode(table([*CELLS[kind], None]), bins={"x0": EDGES[kind]})
    cut = time_in(EDGES[kind][1], kind) if isinstance(EDGES[kind][1], str) else EDGES[kind][1]
    expected = [int(cell >= cut) for cell in CELLS[kind]]
    assert codes_of(codes) == [*expected, jp.MISSING]


@any_time
def test_cells_and_edges_mean_the_same_to_a_variable(kind):
    variable = encode([[cell] for cell in CELLS[kind]], bins={"x0": 4}).domain["x0"]
    coded = codes_of(encode([[cell] for cell in CELLS[kind]], jp.Domain([variable])))
    assert [variable.code(cell) for cell in CELLS[kind]] == coded
    assert len(set(coded)) == 4
    for other in CELLS.keys() - {kind, "date", "datetime"}:
        with pytest.raises(jp.JointPMFError, match="has no level"):
            variable.code(CELLS[other][0])
    with pytest.raises(jp.JointPMFError, match="has no level"):
        variable.code(5.0)


def test_bins_print_as_times():
    dates = encode([[day] for day in DAYS], bins={"x0": 2}).domain["x0"]
    assert dates.levels == ("<2020-07-26", ">=2020-07-26")
    midnights = encode(pd.DataFrame({"x0": pd.to_datetime(DAYS)}), bins={"x0": 2}).domain["x0"]
    assert midnights.levels == dates.levels
    minutes = encode([[cell] for cell in CELLS["datetime"]], bins={"x0": 2}).domain["x0"]
    assert minutes.levels == ("<2020-01-02 00:35:00", ">=2020-01-02 00:35:00")
    edges = encode([[day] for day in DAYS], bins={"x0": EDGES["date"]}).domain["x0"]
    assert edges.levels == ("2020-01-01..2020-05-20", "2020-05-20..2021-02-17")


def test_a_time_zone_is_a_matter_of_writing():
    zone = dt.timezone(dt.timedelta(hours=5))
    here = [moment.replace(tzinfo=dt.UTC) for moment in CELLS["datetime"]]
    there = [moment.astimezone(zone) for moment in here]
    domain = encode([[cell] for cell in CELLS["datetime"]], bins={"x0": 3}).domain
    expected = codes_of(encode([[cell] for cell in CELLS["datetime"]], domain))
    for cells in (here, there):
        for table in (pl.DataFrame({"x0": cells}), pd.DataFrame({"x0": cells})):
            assert codes_of(encode(table, domain)) == expected


@any_time
def test_a_model_of_bins_comes_back_from_its_file(tmp_path, kind):
    table = [[cell, k % 2] for k, cell in enumerate(CELLS[kind])]
    pmf = jp.fit_rows(table, 1, bins={"x0": 3}).pmf
    pmf.save(tmp_path / "m.safetensors")
    again = jp.load(tmp_path / "m.safetensors")
    assert again.domain == pmf.domain
    assert again.domain["x0"].time == kind
    assert (again.log_probability(table) == pmf.log_probability(table)).all()


@pytest.mark.parametrize(
    "backend", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)
@pytest.mark.parametrize("strategy", ["auto", "mode", "expectation", "sample"])
def test_holes_are_filled_with_times(backend, strategy):
    early, late = DAYS[:30], DAYS[30:]
    table = backend({"when": [*early, *late, None, None], "half": [0] * 30 + [1] * 30 + [0, 1]})
    model = jp.PMFImputer(2, bins={"when": 6}, strategy=strategy, random_state=0).fit(table)
    filled = cells_of(model.transform(table), "when")
    assert filled[:60] == [*early, *late]
    assert {type(cell) for cell in filled} == {dt.date}
    assert filled[60] < filled[61]


def test_a_column_of_dates_is_cut_by_estimators_by_itself():
    model = jp.PMFEstimator(1).fit(pl.DataFrame({"when": DAYS}))
    assert model.domain_["when"].time == "date"
    assert model.domain_["when"].size < 10


def test_a_text_is_a_time_of_its_bin_or_level():
    cut = encode([[day] for day in DAYS], bins={"x0": EDGES["date"]}).domain["x0"]
    assert level_of(cut, "2020-01-02") == cut.levels[0]
    whole = encode([[moment] for moment in CELLS["datetime"]], max_levels=60).domain["x0"]
    assert level_of(whole, "2020-01-01 00:50") == CELLS["datetime"][1]
    with pytest.raises(jp.JointPMFError, match="has no level '1999-01-01'"):
        level_of(cut, "1999-01-01")


def test_text_files_have_dates_too(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{day},{moment}" for day, moment in zip(DAYS, CELLS["datetime"], strict=True)]
    path.write_text("\n".join(["when,moment", *rows, ",", ""]))
    domain = jp.fit_rows(path, 1).pmf.domain
    assert domain["when"].levels == tuple(DAYS)
    assert domain["moment"].levels == tuple(CELLS["datetime"])
    bins = {"when": 3, "moment": EDGES["datetime"]}
    cut = jp.fit_rows(path, 1, bins=bins).pmf.domain
    table = pl.DataFrame({"when": DAYS, "moment": CELLS["datetime"]})
    assert cut == encode(table, bins=bins).domain
    with pytest.raises(jp.JointPMFError, match=r"'when' holds '2020-01-01' in row 0"):
        jp.fit_rows(path, 1, domain=encode(table[5:], bins={"when": [DAYS[5], DAYS[59]]}).domain)
    path.write_text(
        "when\n" + "\n".join(str(dt.date(2020, 1, 1) + dt.timedelta(k)) for k in range(101))
    )
    with pytest.raises(jp.JointPMFError, match="'when' has more than 100 different times: cut it"):
        jp.fit_rows(path, 1)


@pytest.mark.parametrize("text", ["2020-13-01", "2020-1-1", "20200101", "soon"])
def test_what_only_looks_like_a_date_stays_what_it_is(tmp_path, text):
    (tmp_path / "t.csv").write_text(f"when\n2020-01-01\n{text}\n")
    levels = jp.fit_rows(tmp_path / "t.csv", 1).pmf.domain["when"].levels
    assert set(levels) == {"2020-01-01", text}


BAD = {
    "numbers": (DAYS, [0, 1], "edges of column 'x0' must increase and be of type date"),
    "no date": (DAYS, ["2020-01-01", "soon"], "edges of column 'x0' .* such as '2020-01-31'"),
    "downwards": (DAYS, ["2021-01-01", "2020-01-01"], "edges of column 'x0' must increase"),
    "another kind": (DAYS, ["12:00", "13:00"], "edges of column 'x0'"),
    "outside": (DAYS, ["2020-01-02", "2022-01-01"], "'x0' holds 2020-01-01 in row 0, outside of"),
    "times for numbers": ([1, 2, 3], DAYS[:2], "edges of column 'x0' must increase and be numbers"),
}


@pytest.mark.parametrize(("cells", "edges", "says"), BAD.values(), ids=BAD)
def test_bad_edges_are_named(cells, edges, says):
    with pytest.raises(jp.JointPMFError, match=says):
        encode([[cell] for cell in cells], bins={"x0": edges})


def test_numbers_and_times_in_batches_are_not_mixed():
    from jointpmf.data.levels import LevelCollector, LevelRules

    collector = LevelCollector(LevelRules(bins={"a": 2}))
    for cells in ([None], DAYS, [None]):
        collector.add(pl.DataFrame({"a": cells}))
    assert collector.domain()["a"].time == "date"
    with pytest.raises(jp.JointPMFError, match="'a' cannot be binned: it mixes numbers and times"):
        collector.add(pl.DataFrame({"a": [1.5]}))


@pytest.mark.parametrize("time", ["day", 3])
def test_a_variable_knows_four_kinds(time):
    with pytest.raises(jp.JointPMFError, match=r"time of variable 'a' must be 'date', .* it is"):
        jp.Variable("a", ("x", "y"), edges=(0, 1, 2), time=time)
    with pytest.raises(jp.JointPMFError, match="belongs to edges"):
        jp.Variable("a", ("x", "y"), time="date")


MOMENTS = {
    "date": st.dates(dt.date(1800, 1, 1), dt.date(2200, 1, 1)),
    "datetime": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "time": st.times(),
    "duration": st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)),
}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_seconds_and_texts_keep_every_time_and_their_order(data):
    kind = data.draw(st.sampled_from(sorted(MOMENTS)))
    one, other = data.draw(MOMENTS[kind]), data.draw(MOMENTS[kind])
    first, second = seconds_of(one, kind), seconds_of(other, kind)
    assert time_of(first, kind) == one
    assert (first < second) == (one < other)
    (text,) = texts_of_times([first], kind)
    if kind != "duration":
        assert seconds_of(time_in(text, kind), kind) == first
    assert kind_of_times([type(one), type(other)]) == kind


def test_levels_of_dates_are_unchanged_by_numpy():
    array = np.array(DAYS, "M8[D]")[:, None]
    assert levels_of(encode(array)) == DAYS
