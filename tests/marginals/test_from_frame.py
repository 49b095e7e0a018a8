"""`Marginal.from_frame`: frames of any library and shape, matched by labels; totals left out."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf import JointPMFError, Marginal, MarginalSet
from jointpmf.marginals.reading import arguments_of_frame

DOMAIN = jp.Domain(
    [
        jp.Variable("age", ("young", "middle", "old")),
        jp.Variable("vote", ("no", "yes")),
        jp.Variable("size", (1, 2)),
    ]
)
COUNTS = np.array([[[3, 1], [4, 2]], [[5, 9], [2, 6]], [[5, 3], [5, 8]]])
PAIR = COUNTS.sum(axis=2)


def rows():
    """Return a person per row, as pandas, in an order that is not the domain's."""
    people = [
        {"age": DOMAIN["age"].levels[i], "vote": DOMAIN["vote"].levels[j], "size": k + 1}
        for (i, j, k), count in np.ndenumerate(COUNTS)
        for _ in range(count)
    ]
    return pd.DataFrame(people).sample(frac=1, random_state=0)


def long():
    return rows().groupby(["vote", "age"]).size().rename("count").reset_index()


def wide(**more):
    table = {"age": ["old", "young", "middle"]} | {
        vote: [PAIR[i, j] for i in (2, 0, 1)] for j, vote in enumerate(["no", "yes"])
    }
    return pl.DataFrame(table | more)


def placed(marginal, domain=None):
    """Return the table in the order of the domain, as a set has it."""
    domain = DOMAIN.project([name for name in DOMAIN.names if name in marginal.names])
    return MarginalSet(domain, [marginal])[0]


def crosstab(**options):
    table = rows()
    return pd.crosstab(table["vote"], table["age"], **options)


FRAMES = {
    "crosstab": lambda: Marginal.from_frame(crosstab()),
    "crosstab with totals": lambda: Marginal.from_frame(crosstab(margins=True)),
    "crosstab with other totals": lambda: Marginal.from_frame(
        crosstab(margins=True, margins_name="Total")
    ),
    "crosstab as a table": lambda: Marginal.from_frame(crosstab().reset_index()),
    "crosstab without names": lambda: Marginal.from_frame(
        pd.crosstab(rows()["vote"].to_numpy(), rows()["age"].to_numpy()), names=["vote", "age"]
    ),
    "index without a name": lambda: Marginal.from_frame(
        pd.DataFrame(PAIR, list(DOMAIN["age"].levels), ["no", "yes"]), names=["age", "vote"]
    ),
    "pivot with the name of its value": lambda: Marginal.from_frame(
        rows().pivot_table(index="age", columns="vote", values=["size"], aggfunc="count")
    ),
    "sizes of groups": lambda: Marginal.from_frame(rows().groupby(["vote", "age"]).size()),
    "counts of values": lambda: Marginal.from_frame(rows()[["age", "vote"]].value_counts()),
    "long": lambda: Marginal.from_frame(long()),
    "long in Polars": lambda: Marginal.from_frame(pl.DataFrame(long())),
    "long in PyArrow": lambda: Marginal.from_frame(pl.DataFrame(long()).to_arrow()),
    "long, lazily": lambda: Marginal.from_frame(pl.DataFrame(long()).lazy()),
    "long with another value": lambda: Marginal.from_frame(
        pl.DataFrame(long()).rename({"count": "people"}), value="people"
    ),
    "long with names": lambda: Marginal.from_frame(
        pl.DataFrame(long()).rename({"count": "people"}), names=["age", "vote"]
    ),
    "long with a column too many": lambda: Marginal.from_frame(
        pl.DataFrame(long()).with_columns(note=pl.lit("x")), names=["age", "vote"], value="count"
    ),
    "counted by Polars": lambda: Marginal.from_frame(
        pl.DataFrame(rows()).group_by("vote", "age").len()
    ),
    "wide": lambda: Marginal.from_frame(wide(), names=["age", "vote"]),
    "wide with a corner": lambda: Marginal.from_frame(wide().rename({"age": r"age \ vote"})),
    "wide with a total": lambda: Marginal.from_frame(
        wide().with_columns(Total=pl.col("no") + pl.col("yes")), names=["age", "vote"]
    ),
    "text": lambda: Marginal.from_frame(
        wide().with_columns(pl.all().cast(pl.String) + " "), names=["age", "vote"]
    ),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_any_frame_of_the_same_counts_is_the_same_marginal(frame):
    marginal = placed(FRAMES[frame]())
    assert marginal.names == ("age", "vote")
    np.testing.assert_allclose(marginal.table, PAIR / PAIR.sum())
    assert marginal.n_rows == PAIR.sum()


@pytest.mark.parametrize("options", [{}, {"margins": True}])
def test_a_crosstab_of_three_variables(options):
    table = rows()
    for down, across in ((["age", "size"], ["vote"]), (["vote"], ["size", "age"])):
        frame = pd.crosstab([table[n] for n in down], [table[n] for n in across], **options)
        marginal = placed(Marginal.from_frame(frame))
        np.testing.assert_allclose(marginal.table, COUNTS / COUNTS.sum())


@given(st.permutations(range(3)), st.permutations(range(2)))
@settings(max_examples=10, deadline=None)
def test_the_order_of_rows_and_columns_does_not_matter(down, across):
    frame = wide()[list(down)].select("age", *[["no", "yes"][k] for k in across])
    marginal = placed(Marginal.from_frame(frame, names=["age", "vote"]))
    np.testing.assert_allclose(marginal.table, PAIR / PAIR.sum())


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_any_table_printed_in_any_order_with_totals_is_read_back(data):
    shape = data.draw(st.sampled_from([(3, 2), (2, 3, 2), (4, 3)]))
    counts = np.array(data.draw(st.lists(st.integers(1, 3_000_000), min_size=12, max_size=12)))
    counts = counts[: np.prod(shape)].reshape(shape)
    names = ["x", "y", "z"][: len(shape)]
    printed = counts
    for k in range(len(shape)):  # the last entry of each axis is now its total
        printed = np.concatenate([printed, printed.sum(axis=k, keepdims=True)], axis=k)
    labels = [
        [*(f"{n}{i}" for i in range(size)), "Total"] for n, size in zip(names, shape, strict=True)
    ]
    rows = [
        [*(own[i] for own, i in zip(labels, place, strict=True)), f"{count:,}"]
        for place, count in np.ndenumerate(printed)
    ]
    rows = data.draw(st.permutations(rows))
    frame = pl.DataFrame(rows, [*names, "count"], orient="row")
    domain = jp.Domain([jp.Variable(n, own[:-1]) for n, own in zip(names, labels, strict=True)])
    if data.draw(st.booleans()):
        frame = frame.pivot(on=names[-1], index=names[:-1], values="count")
    marginal = Marginal.from_frame(frame, names=names)
    np.testing.assert_allclose(MarginalSet(domain, [marginal])[0].table, counts / counts.sum())


def test_what_else_is_known_is_passed_on():
    frame = wide().with_columns(pl.col("no", "yes") / pl.sum_horizontal("no", "yes"))
    marginal = Marginal.from_frame(frame, names=["age", "vote"], given=["age"], n_obs=[9, 5, 7])
    assert (marginal.given, marginal.n_rows) == (("age",), 21)
    partial = Marginal.from_frame(wide(), names=["age", "vote"], where={"size": 1})
    assert partial.where == {"size": 1}


def test_bands_are_said_by_labels():
    frame = pl.DataFrame({"age": ["30+", "young"], "no": [17, 7], "yes": [22, 3]})
    marginal = Marginal.from_frame(
        frame, names=["age", "vote"], levels={"age": {"30+": ["middle", "old"]}}
    )
    assert marginal.levels["age"] == [("middle", "old"), "young"]
    measured = MarginalSet(DOMAIN.project(["age", "vote"]), [marginal]).measurements[0]
    assert measured.sets[0].tolist() == [[False, True, True], [True, False, False]]


def test_a_list_of_levels_leaves_the_others_out():
    frame = wide().with_columns(base=pl.lit(1000))
    marginal = Marginal.from_frame(frame, names=["age", "vote"], levels={"vote": ["yes", "no"]})
    np.testing.assert_allclose(placed(marginal).table, PAIR / PAIR.sum())


def test_levels_that_the_domain_spells_otherwise_are_matched():
    frame = pl.DataFrame({"size": ["2 ", "1"], "vote": [" yes", "no"], "count": [3, 1]})
    marginal = Marginal.from_frame(frame, domain=DOMAIN)
    assert marginal.levels == {"size": [2, 1], "vote": ["yes", "no"]}


def test_an_order_of_names_is_that_of_the_axes():
    frame = pl.DataFrame(
        [
            *[("a", 1, "u", 3), ("a", 2, "u", 5), ("b", 1, "u", 1), ("b", 2, "u", 2)],
            *[("a", 1, "v", 6), ("a", 2, "v", 7), ("b", 1, "v", 8), ("b", 2, "v", None)],
            *[("a", 1, "Total", 9), ("a", 2, "Total", 12), ("b", 1, "Total", 9)],
            ("b", 2, "Total", 6),
        ],
        ["x", "y", "z", "count"],
        orient="row",
    )
    marginal = Marginal.from_frame(frame, names=["z", "y", "x"], given=["x", "y"])
    assert marginal.table.shape == (2, 2, 2)
    assert marginal.n_obs.tolist() == [[9, 9], [12, 6]]


def test_a_column_of_noise():
    frame = pl.DataFrame(
        {"x": ["a", "b", "c"], "estimate": ["10%", "*", "85%"], "error": [2, 0, 5]}
    )
    found = arguments_of_frame(frame, None, "estimate", None, {"noise": "error"})
    assert (found["names"], found["noise"].tolist()) == (("x",), [0.02, 0.05, 0.05])
    assert Marginal.from_frame(frame, value="estimate", noise="error").noise.shape == (3,)
    short = frame.with_columns(pl.Series("error", [2, 1, None]))
    with pytest.raises(JointPMFError, match="a cell without noise"):
        arguments_of_frame(short, None, "estimate", None, {"noise": "error"})
    with pytest.raises(JointPMFError, match="no column 'sd'"):
        arguments_of_frame(frame, None, "estimate", None, {"noise": "sd"})
    with pytest.raises(JointPMFError, match="not a long table"):
        arguments_of_frame(wide(sd=[1, 2, 3]), ["age", "vote"], None, None, {"noise": "sd"})


def test_a_level_that_is_called_like_a_total(caplog):
    domain = jp.Domain([jp.Variable("done", ("None", "Some", "All")), DOMAIN["vote"]])
    frame = pl.DataFrame({"done": ["All", "None", "Some"], "no": [7, 3, 4], "yes": [3, 1, 2]})
    marginal = Marginal.from_frame(frame, names=["done", "vote"], domain=domain)
    assert marginal.levels["done"] == ["All", "None", "Some"]
    assert not caplog.text


def test_notes_below_a_table_are_left_out(caplog):
    frame = pl.DataFrame(
        {"age": ["old", "young", "Source: the office"], "no": [1, 2, None], "yes": [3, 4, None]}
    )
    assert Marginal.from_frame(frame, names=["age", "vote"]).levels["age"] == ["old", "young"]
    assert "'Source: the office'" in caplog.text


class TestTotals:
    def test_a_total_is_said_in_the_log(self, caplog):
        caplog.set_level(logging.INFO, "jointpmf")
        Marginal.from_frame(crosstab(margins=True))
        assert "the totals of 'vote' were left out" in caplog.text
        assert not [record for record in caplog.records if record.levelno > logging.INFO]

    def test_a_sum_by_another_name_is_left_out_with_a_warning(self, caplog):
        frame = wide().with_columns(persons=pl.col("no") + pl.col("yes"))
        marginal = Marginal.from_frame(frame, names=["age", "vote"])
        np.testing.assert_allclose(placed(marginal).table, PAIR / PAIR.sum())
        assert "'persons' of 'vote' is the sum of all other entries" in caplog.text
        assert "levels" in caplog.text

    def test_a_sum_that_is_listed_is_a_level(self, caplog):
        frame = wide().with_columns(All=pl.col("no") + pl.col("yes"))
        levels = {"vote": ["no", "yes", "All"]}
        marginal = Marginal.from_frame(frame, names=["age", "vote"], levels=levels)
        assert marginal.levels["vote"] == ["no", "yes", "All"]
        assert not caplog.text

    def test_probabilities_of_which_one_is_the_sum_of_the_others_are_kept(self, caplog):
        frame = pl.DataFrame({"x": ["a", "b", "c"], "u": [0.1, 0.15, 0.25], "v": [0.1, 0.15, 0.25]})
        assert Marginal.from_frame(frame, names=["x", "y"]).table.shape == (3, 2)
        assert not caplog.text

    def test_one_number_is_not_enough_to_drop_it(self, caplog):
        frame = pl.DataFrame({"x": ["a", "b", "c"], "count": [30, 60, 90]})
        assert Marginal.from_frame(frame).table.shape == (3,)
        assert "'c' of 'x' is the sum of all other entries and was kept" in caplog.text

    def test_a_total_that_is_larger_is_said(self, caplog):
        frame = pl.DataFrame({"x": ["a", "b", "Total"], "count": [30, 60, 120]})
        assert Marginal.from_frame(frame).n_rows == 90
        assert "a total of 'x' is 120, but its parts sum to 90" in caplog.text

    @pytest.mark.parametrize("cell", ["60", "*"])
    def test_a_total_that_is_less_than_what_is_shown_is_refused(self, cell):
        frame = pl.DataFrame({"x": ["a", "b", "c", "Total"], "count": ["30", "60", cell, "80"]})
        with pytest.raises(JointPMFError, match=r"total of 'x' in the frame is 80, less than"):
            Marginal.from_frame(frame)

    def test_totals_say_what_hidden_cells_are_a_part_of(self):
        frame = pl.DataFrame({"x": ["a", "b", "c", "Total"], "count": ["30", "<6", "66", "100"]})
        marginal = Marginal.from_frame(frame)
        assert (marginal.n_rows, marginal.bounds) == (100, (0, 5))
        given = pl.DataFrame(
            {"x": ["a", "b"], "u": ["3", "20"], "v": ["*", "30"], "Total": ["40", "50"]}
        )
        marginal = Marginal.from_frame(given, names=["x", "y"], given=["x"])
        assert marginal.n_obs.tolist() == [40, 50]

    def test_totals_of_rows_are_summed_where_there_is_none_of_all(self):
        frame = {"x": ["a", "b"], "u": ["3", "20"], "v": ["*", "30"], "Total": ["40", "50"]}
        assert Marginal.from_frame(pl.DataFrame(frame), names=["x", "y"]).n_rows == 90

    def test_the_distribution_of_everyone_below_row_percentages_is_left_out(self):
        frame = pl.DataFrame(
            {"x": ["a", "b", "Total"], "u": ["30%", "60%", "40%"], "v": ["70%", "40%", "60%"]}
        )
        marginal = Marginal.from_frame(frame, names=["x", "y"], given=["x"])
        np.testing.assert_allclose(marginal.table, [[0.3, 0.7], [0.6, 0.4]])


class TestPercentages:
    def test_percentages_are_parts_of_one(self):
        frame = pl.DataFrame({"x": ["a", "b"], "count": ["12.5%", "87.5%"]})
        assert Marginal.from_frame(frame).table.tolist() == [0.125, 0.875]

    def test_row_percentages_that_do_not_say_so_are_refused(self):
        frame = pl.DataFrame({"x": ["a", "b"], "u": ["30%", "60%"], "v": ["70%", "40%"]})
        with pytest.raises(JointPMFError, match=r"within each level of 'x': give given=\['x'\]"):
            Marginal.from_frame(frame, names=["x", "y"])

    @pytest.mark.parametrize("margins", [False, True])
    def test_row_percentages_of_a_crosstab(self, margins):
        frame = crosstab(normalize="index", margins=margins)
        with pytest.raises(JointPMFError, match=r"within each level of 'vote': give given=\['vote"):
            Marginal.from_frame(frame)
        marginal = Marginal.from_frame(frame, given=["vote"])
        np.testing.assert_allclose(marginal.table.sum(axis=1), 1)
        assert marginal.table.shape == (2, 3)

    def test_percentages_that_sum_to_something_else(self):
        frame = pl.DataFrame({"x": ["a", "b"], "count": ["12%", "60%"]})
        with pytest.raises(JointPMFError, match=r"sum to 72, not to 100; .* given"):
            Marginal.from_frame(frame)


LONG = {"x": ["a", "b"], "y": ["c", "d"], "count": [1, 2]}


@pytest.mark.parametrize(
    ("frame", "options", "says"),
    [
        ([[1, 2]], {}, "must be a pandas, Polars or PyArrow frame, not list"),
        (pl.Series([1, 2]), {}, "a column alone has no labels"),
        ({}, {}, "the frame has no rows"),
        ({"x": [], "count": []}, {}, "the frame has no rows"),
        (LONG, {"names": "x"}, r"such as \['x'\]"),
        (LONG, {"value": "n"}, "has no column 'n'; its columns are 'x', 'y', 'count'"),
        (LONG, {"value": "count", "names": ["x", "z"]}, "has no column 'z'"),
        ({"x": ["a", "b"], "y": ["c", "d"]}, {}, "a last column 'count' or 'probability', not 'y'"),
        ({"age": ["a"], "no": [1], "yes": [2]}, {}, "name all variables with names"),
        ({"age": ["a"], "no": [1], "yes": [2]}, {"names": ["age"]}, "levels are above its columns"),
        ({"age": ["a"], "Unnamed: 1": [1], "yes": [2]}, {"names": ["age", "v"]}, "merged cells"),
        ({"x": ["a", None], "y": ["c", "d"], "count": [1, 2]}, {}, "has no 'x' in row 1: .*merged"),
        ({"x": ["a", "a"], "count": [1, 2]}, {}, "lists a cell twice: the cell x='a'"),
        ({"x": ["a", "b"], "count": ["1", "two"]}, {}, "cell x='b' of the frame holds 'two'"),
        ({"x": ["a", "b"], "count": ["1%", "2"]}, {}, "holds '2', but other cells"),
        ({"x": ["a", "b"], "count": ["*", ".."]}, {}, "all cells of the frame are suppressed"),
        ({"x": ["All"], "count": [3]}, {}, "only totals of 'x'"),
        ({"x": [[1], [2]], "count": [1, 2]}, {}, r"a label must be a text or a number, not \[1\]"),
        (LONG, {"levels": {"z": ["a"]}}, "none of its variables 'x', 'y'"),
        (LONG, {"levels": {"x": ["c"]}}, "none of its labels 'a', 'b'"),
        (LONG, {"levels": {"x": [("a", "b")]}}, "must be a mapping from the table's labels"),
        (LONG, {"n_obs": {"a": 3}, "given": ["x"]}, "a number for each label of 'x'; see 'b'"),
        (LONG, {"n_obs": {"a": 3}}, "needs one variable in given"),
        (
            {"age": ["no", "yes"], "vote": ["young", "old"], "count": [1, 2]},
            {"domain": DOMAIN},
            "the labels of 'age' in the frame, 'no', 'yes', are levels of 'vote': give names",
        ),
        ({"age": ["Young", "old"], "count": [1, 2]}, {"domain": DOMAIN}, "has no level 'Young'"),
    ],
)
def test_bad_frames(frame, options, says):
    with pytest.raises(JointPMFError, match=says):
        Marginal.from_frame(pl.DataFrame(frame) if isinstance(frame, dict) else frame, **options)


def test_a_label_that_two_types_share_is_refused():
    frame = pd.DataFrame({"x": [1, "1"], "count": [3, 4]})
    with pytest.raises(JointPMFError, match="label '1' of 'x' twice"):
        Marginal.from_frame(frame)


CELLS = ["1", "2", "*", "<6", "12%", "Total", "All", "a", "b", "", "1,234", "12,5", None, "-", "-3"]
HEADS = ["x", "y", "z", "count", r"a \ b", "Total", "", "value", "probability"]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_frame_is_read_or_refused_in_one_sentence(data):
    header = data.draw(st.lists(st.sampled_from(HEADS), min_size=1, max_size=4, unique=True))
    size = data.draw(st.integers(0, 4))
    column = st.lists(st.sampled_from(CELLS), min_size=size, max_size=size)
    frame = pl.DataFrame({name: pl.Series(data.draw(column), dtype=pl.String) for name in header})
    names = st.lists(st.sampled_from(["x", "y", "z", "b"]), max_size=3)
    options = {
        "names": data.draw(st.none() | names),
        "value": data.draw(st.sampled_from([None, "count", "value", "q"])),
        "given": data.draw(st.lists(st.sampled_from(["x", "y"]), max_size=2)),
        "levels": data.draw(st.sampled_from([{}, {"x": ["a"]}, {"y": {"a": ["a", "b"]}}])),
        "n_obs": data.draw(st.sampled_from([None, 100, 0, [3, 4], {"a": 3}])),
    }
    sentence = ""
    try:
        assert (Marginal.from_frame(frame, **options).table >= 0).any()
    except JointPMFError as error:
        sentence = str(error)
    assert "\n" not in sentence
