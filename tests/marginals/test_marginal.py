"""Tables as they are published: bands, parts of the population, slices, suppressed cells."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.marginals.measurement import likely_given

DOMAIN = jp.Domain(
    [
        jp.Variable("age", ("0-17", "18-39", "40-64", "65+")),
        jp.Variable("income", ("low", "high")),
        jp.Variable("sex", ("f", "m")),
    ]
)
TRUTH = jp.random_pmf(DOMAIN, 3, random_state=4)
OTHERS = [jp.Marginal(("income", "sex"), TRUTH.marginal(["income", "sex"]).table())]


def in_a_set(marginal):
    return jp.MarginalSet(
        DOMAIN, [marginal, jp.Marginal(("age", "sex"), np.ones((4, 2)) / 8), *OTHERS]
    )


def predicted(marginal):
    return marginal.measured(DOMAIN, 1.0).predicted(TRUTH.weights, TRUTH.factors)


def test_bands():
    bands = {"age": [("0-17", "18-39"), ["40-64", "65+"]]}
    marginal = jp.Marginal(("age", "income"), np.ones((2, 2)), levels=bands)
    whole = TRUTH.marginal(["age", "income"]).table()
    assert np.allclose(predicted(marginal), [whole[:2].sum(axis=0), whole[2:].sum(axis=0)])
    assert not in_a_set(marginal).is_plain


def test_bands_that_leave_levels_out_are_of_those_who_are_left():
    grown = {"age": ["18-39", "40-64", "65+"]}
    marginal = jp.Marginal(("age", "income"), np.ones((3, 2)), levels=grown)
    whole = TRUTH.marginal(["age", "income"]).table()[1:]
    assert np.allclose(predicted(marginal), whole / whole.sum())


def test_levels_in_another_order_are_put_in_theirs():
    table = np.arange(1.0, 9).reshape(2, 4)
    shuffled = ["65+", "0-17", "40-64", "18-39"]
    marginal = jp.Marginal(("income", "age"), table, levels={"age": shuffled})
    found = in_a_set(marginal)
    assert found.is_plain
    assert found[0].names == ("age", "income")
    assert np.allclose(found[0].table, table[:, [1, 3, 2, 0]].T / table.sum())
    assert found[0].n_obs == table.sum()


def test_part_of_the_population():
    marginal = jp.Marginal(("income", "sex"), np.ones((2, 2)), where={"age": ("40-64", "65+")})
    whole = TRUTH.condition({"age": ["40-64", "65+"]}).marginal(["income", "sex"]).table()
    assert np.allclose(predicted(marginal), whole)


def test_a_variable_may_be_an_axis_and_say_who():
    marginal = jp.Marginal(("age",), [1, 1, 0, 0], where={"age": ("0-17", "18-39")})
    whole = TRUTH.marginal(["age"]).table()
    assert np.allclose(predicted(marginal), [*(whole[:2] / whole[:2].sum()), 0, 0])


@pytest.mark.parametrize("unit", [1, 100])
def test_slices(unit):
    shares = unit * np.array([[0.9, 0.4, 0.3, 0.6], [0.1, 0.6, 0.7, 0.4]])
    marginal = jp.Marginal(("income", "age"), shares, given=["age"], n_obs=50)
    assert np.allclose(marginal.table, shares / unit)
    assert repr(marginal) == "Marginal(income | age: 2×4, n_obs=200)"
    whole = TRUTH.marginal(["income", "age"]).table()
    assert np.allclose(predicted(marginal), whole / whole.sum(axis=0))


def test_slices_of_counts_know_their_sizes():
    marginal = jp.Marginal(("income", "age"), [[9, 4, 3, 6], [1, 6, 7, 40]], given=["age"])
    assert marginal.n_obs.tolist() == [10, 10, 10, 46]
    assert np.allclose(marginal.table.sum(axis=0), 1)


def test_suppressed_cells():
    table = np.array([[40, np.nan], [30, 10], [5, np.nan], [3, 2]])
    marginal = jp.Marginal(("age", "income"), table, bounds=(0, 5))
    assert np.nansum(marginal.table) == pytest.approx(1)
    measured = marginal.measured(DOMAIN, 1.0)
    assert np.isnan(measured.n_obs)
    assert (measured.least, measured.most) == (0, 5)
    known = jp.Marginal(("age", "income"), table, n_obs=100).measured(DOMAIN, 1.0)
    assert known.n_obs == 100
    assert np.nansum(known.counts) == pytest.approx(90)


def test_bounds_as_they_are_printed():
    for text, most in (("<6", 5), ("≤5", 5), ("<=4", 4)):
        assert jp.Marginal(("sex",), [9, np.nan], bounds=text).bounds == (0, most)


@pytest.mark.parametrize("n_obs", [None, 500])
def test_parts_that_were_not_published_are_what_is_left(n_obs):
    marginal = jp.Marginal(("age",), [0.4, np.nan, 0.35, np.nan], n_obs)
    measured = marginal.measured(DOMAIN, 500)
    assert measured.n_obs == 500
    assert measured.counts[[0, 2]].tolist() == pytest.approx([200, 175])


def test_tables_without_a_size_count_as_the_others_do():
    bands = {"age": [("0-17", "18-39"), ("40-64", "65+")]}
    tables = [
        jp.Marginal(("age", "income"), [[0.1, 0.2], [0.3, 0.4]], levels=bands),
        jp.Marginal(("age", "sex"), np.full((4, 2), 25.0), n_obs=200),
        jp.Marginal(("income", "sex"), [[100, 200], [50, 50]], n_obs=400),
    ]
    sizes = [np.nansum(m.counts) for m in jp.MarginalSet(DOMAIN, tables).measurements]
    assert sizes == pytest.approx([300, 200, 400])


@pytest.mark.parametrize(
    ("table", "given"),
    [
        ([[90, 10], [55, 45.2]], (0,)),
        ([[0.9, 0.5, 0.2], [0.1, 0.5, 0.8]], (1,)),
        ([[[90, 10], [80, 20]], [[55, 45], [30, 70]]], (0, 1)),
        ([[[40, 10], [30, 20]], [[5, 45], [40, 10]]], (0,)),
        ([[1, 0], [0, 1]], ()),
        ([[30, 20], [10, 40]], ()),
        ([0.3, 0.7], ()),
        ([60, 40], ()),
    ],
)
def test_what_looks_like_row_percentages(table, given):
    assert likely_given(np.array(table, float)) == given


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jp.Marginal(("sex", "age"), [[90, 10], [55, 45]]), r"pass given=\['sex'\]"),
        (
            lambda: in_a_set(jp.Marginal(("age",), [1, 2], levels={"age": ["0-17", "90+"]})),
            "'age' has no level '90\\+'",
        ),
        (lambda: in_a_set(jp.Marginal(("age",), [1, 2], levels={"age": [(), "65+"]})), "no level"),
        (
            lambda: in_a_set(jp.Marginal(("age",), [1, 2, 3], levels={"age": ["0-17", "65+"]})),
            r"shape \(3,\), but its axes have \(2,\) entries",
        ),
        (lambda: jp.Marginal(("age",), [1, 2], levels={"sex": ["f", "m"]}), "none of its axes"),
        (lambda: jp.Marginal(("age", "sex"), np.ones((4, 2)), given=["vote"]), "none of its axes"),
        (lambda: jp.Marginal(("age",), np.ones(4), given=["age"]), "all axes .* are given"),
        (
            lambda: in_a_set(jp.Marginal(("age",), np.ones(4), where={"sex": []})),
            "leaves nobody: it names no level of 'sex'",
        ),
        (
            lambda: jp.Marginal(("income", "sex"), [[0.5, 0.2], [0.5, 0.2]], given=["sex"]),
            "sums to 0.4, not to 1",
        ),
        (
            lambda: jp.Marginal(("a", "b"), [[45.5, 51.5], [40, 60], [30, 70]], given=["a"]),
            "a slice of the table of 'a', 'b' sums to 97, not to 100",
        ),
        (lambda: jp.Marginal(("sex",), [np.nan, np.nan]), "all cells of the table of 'sex' are s"),
        (
            lambda: jp.Marginal(("age",), [30, 20, np.nan, 4], n_obs=50),
            "published cells .* sum to 54, but n_obs is 50",
        ),
        (
            lambda: jp.Marginal(("age",), [30, 20, np.nan, 4], n_obs=-1),
            "must be positive",
        ),
        (lambda: jp.Marginal(("age",), [30, -2, np.nan, 4]), "negative or infinite cell"),
        (lambda: jp.Marginal(("age",), [3, np.nan], n_obs="many"), "n_obs .* must be a number"),
        (
            lambda: jp.Marginal(("a", "b"), [[3, 4], [5, 9]], given=["a"], n_obs=[1, 2, 3]),
            "one for each of its 2 slices",
        ),
        (lambda: jp.Marginal(("age",), [3, np.nan], bounds="few"), "like .0, 5. or '<6'"),
        (lambda: jp.Marginal(("age",), [3, np.nan], bounds=(5, 2)), "bounds of the table"),
        (lambda: jp.Marginal(("age",), [3, 4], levels=[1, 2]), "levels .* must be a mapping"),
        (lambda: jp.Marginal(("age",), [3, 4], where="f"), "where .* must be a mapping"),
        (lambda: jp.Marginal(("age", "b"), [[3, 4]], given="b"), "give a list of names, such as"),
        (
            lambda: in_a_set(jp.Marginal(("age",), [1, 2], levels={"age": "65+"})),
            "levels of 'age' must be a list, not '65\\+'",
        ),
        (
            lambda: in_a_set(jp.Marginal(("age",), [1, 2, 3, 4], where={"age": ("0-17", "18-39")})),
            "leaves nobody in its entry '40-64' of 'age'",
        ),
        (
            lambda: in_a_set(
                jp.Marginal(
                    ("age", "sex"), np.ones((4, 2)), given=["age"], where={"age": ("0-17", "65+")}
                )
            ),
            "leaves nobody in its entry '18-39' of 'age'",
        ),
        (
            lambda: jp.Marginal(("age", "sex"), [[np.nan] * 2, [3, 4]], given=["age"]),
            "all cells of a slice of the table of 'age', 'sex' are suppressed; leave",
        ),
        (
            lambda: jp.Marginal(("age", "sex"), [[0, 0], [3, 4]], given=["age"]),
            "a slice of the table of 'age', 'sex' is zero everywhere; leave",
        ),
        (
            lambda: jp.Marginal(("age",), [10, 20, np.nan, np.nan], 100, bounds="<6"),
            "leave 70 for 2 suppressed ones, which bounds say are from 0 to 5 each",
        ),
        (
            lambda: jp.Marginal(("age",), [10, 20, np.nan, np.nan], 32, bounds=(3, 5)),
            "leave 2 for 2 suppressed ones, which bounds say are from 3 to 5 each",
        ),
        (
            lambda: jp.Marginal(("sex",), [1.2, 3.4], 500),
            "sums to 4.6, which is neither one nor its n_obs=500; divide weighted counts",
        ),
        (lambda: jp.Marginal((1, 2), np.ones((2, 2))), "a name must be a text, not 1"),
    ],
)  # fmt: skip
def test_bad_input(make, message):
    with pytest.raises(jp.JointPMFError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_rounded_cells_may_leave_a_little_more_than_bounds_say():
    rounded = jp.Marginal(("age",), [10, 20, np.nan, np.nan], 45, bounds="<6", rounding=5)
    assert rounded.n_rows == 45


def test_where_may_leave_entries_empty_that_nobody_is_counted_in():
    table = jp.Marginal(("age",), [1, 2, 0, 0], where={"age": ("0-17", "18-39")})
    assert predicted(table)[2:].tolist() == [0, 0]


@pytest.mark.parametrize("table", [[0.5, 0.8], [0.1, 0.2], [45.5, 54.5]])
def test_shares_of_bands_do_not_say_how_many_people_they_are_of(table):
    bands = {"age": [("0-17", "18-39"), ("18-39", "40-64")]}
    assert jp.Marginal(("age",), table, levels=bands).n_rows is None
    assert jp.Marginal(("age",), [5, 8], levels=bands).n_rows == 13


class TestCounted:
    CODES = TRUTH.sample(500, random_state=0, backend="codes")

    def counted(self, marginal):
        return marginal.measured(DOMAIN, 500).counted(self.CODES, np.random.default_rng(0))

    def seen(self, *masks):
        return np.logical_and.reduce([mask[self.CODES[:, n]] for n, mask in masks]).sum()

    def test_whole_tables(self):
        found = self.counted(jp.Marginal(("sex", "age"), np.ones((2, 4)) / 8, 500))
        rows = jp.Codes(DOMAIN, self.CODES)
        whole = jp.MarginalSet.from_table(rows, subsets=[("age", "sex"), ("income",)])
        assert np.array_equal(found.counts, np.round(500 * whole[0].table).T)

    @pytest.mark.parametrize("bands", [[(0, 1), (2, 3)], [(0, 1, 2, 3), (1, 2), (2,)]])
    def test_bands_that_may_overlap(self, bands):
        levels = [tuple(DOMAIN["age"].levels[i] for i in band) for band in bands]
        even = np.ones((len(bands), 2)) / len(bands) / 2
        marginal = jp.Marginal(("age", "sex"), even, 500, levels={"age": levels})
        expected = [
            [self.seen((0, np.isin(range(4), band)), (2, np.arange(2) == sex)) for sex in (0, 1)]
            for band in bands
        ]
        assert self.counted(marginal).counts.tolist() == expected

    def test_as_many_people_as_it_had_of_those_it_is_about(self):
        marginal = jp.Marginal(("income",), [0.5, np.nan], 20, where={"sex": "f"})
        found = self.counted(marginal)
        women = self.CODES[self.CODES[:, 2] == 0][:20]
        assert found.counts[0] == (women[:, 1] == 0).sum()
        assert np.isnan(found.counts[1])
        assert found.n_obs == 20

    def test_slices(self):
        marginal = jp.Marginal(("income", "sex"), [[60, 45], [40, 55]], given=["sex"], n_obs=250)
        found = self.counted(marginal)
        assert found.n_obs.tolist() == [(self.CODES[:, 2] == sex).sum() for sex in (0, 1)]


class TestNoise:
    def test_cells_may_be_negative(self):
        marginal = jp.Marginal(("sex",), [95.0, -3.0], noise=2.0)
        assert marginal.n_rows == 92
        np.testing.assert_allclose(marginal.table, [95 / 92, -3 / 92])
        np.testing.assert_allclose(marginal.noise, 2 / 92)

    def test_it_is_in_the_unit_of_the_table(self):
        marginal = jp.Marginal(("sex",), [0.62, 0.39], n_obs=500, noise=0.02)
        found = marginal.measured(DOMAIN, 1.0)
        np.testing.assert_allclose(found.counts, [310, 195])
        np.testing.assert_allclose(found.noise, [10, 10])

    def test_of_slices(self):
        parts = [[62, 51], [38, 48]]
        marginal = jp.Marginal(("sex", "income"), parts, [200, 50], given=["income"], noise=1.0)
        np.testing.assert_allclose(marginal.measured(DOMAIN, 1.0).noise, [[2, 0.5], [2, 0.5]])

    @pytest.mark.parametrize("noise", [0, -1, np.nan, np.inf, [1.0, 0.0], "much", [1, 2, 3]])
    def test_bad_noise(self, noise):
        with pytest.raises(jp.JointPMFError, match=r"noise of the table of 'sex' must be"):
            jp.Marginal(("sex",), [10, 20], noise=noise)

    def test_all_suppressed(self):
        with pytest.raises(jp.JointPMFError, match="all cells of the table of 'sex'"):
            jp.Marginal(("sex",), [np.nan, np.nan], noise=1)

    def test_nobody(self):
        with pytest.raises(jp.JointPMFError, match="say how many rows"):
            jp.Marginal(("sex",), [-5.0, 2.0], noise=3)


class TestAgreement:
    FIRST = jp.Marginal(("sex",), [100, 200])

    def set_of(self, counts, **how):
        second = jp.Marginal(("sex", "income"), counts, **how)
        rest = [jp.Marginal((name,), np.full(DOMAIN[name].size, 1 / DOMAIN[name].size))
                for name in DOMAIN.names if name not in ("sex", "income")]  # fmt: skip
        return partial(jp.MarginalSet, DOMAIN, [self.FIRST, second, *rest])

    def test_totals_that_differ_are_said_with_names_and_amounts(self, caplog):
        made = self.set_of([[60, 40], [100, 110]])()
        assert "'sex' sums to 300 and that of 'income', 'sex' to 310" in caplog.text
        assert [m.n_rows for m in made][:2] == [300, 310]

    def test_a_strict_set_refuses_them(self):
        with pytest.raises(jp.JointPMFError, match="sums to 300"):
            self.set_of([[60, 40], [100, 110]])(strict=True)

    def test_rounding_explains_them(self, caplog):
        self.set_of([[60, 40], [100, 110]], rounding=5)(strict=True)
        assert not caplog.text

    def test_rounding_explains_differences_of_what_tables_share(self):
        exact = jp.Marginal(("sex",), [0.3337, 0.6663])
        rough = jp.Marginal(("sex", "income"), [[0.13, 0.2], [0.27, 0.4]], rounding=0.01)
        rest = [jp.Marginal((name,), np.full(DOMAIN[name].size, 1 / DOMAIN[name].size))
                for name in DOMAIN.names if name not in ("sex", "income")]  # fmt: skip
        assert not jp.MarginalSet(DOMAIN, [exact, rough, *rest]).disagreements()
        sure = replace(rough, rounding=0.0)
        assert jp.MarginalSet(DOMAIN, [exact, sure, *rest]).disagreements()

    @pytest.mark.parametrize("rounding", [-1, np.nan, "five"])
    def test_bad_rounding(self, rounding):
        with pytest.raises(jp.JointPMFError, match="rounding of the table of 'sex'"):
            jp.Marginal(("sex",), [10, 20], rounding=rounding)


@pytest.mark.parametrize("n_obs", [None, [[5, 10], [15, 20], [25, 30], [35, 40]]])
def test_given_variables_are_in_the_order_of_the_axes(n_obs):
    table = np.full((4, 2, 2), 0.5)
    first, second = (
        jp.Marginal(("age", "income", "sex"), table, n_obs, given=given)
        for given in (["age", "income"], ["income", "age"])
    )
    assert first.given == second.given == ("age", "income")
    for marginal in (first, second):
        assert np.isfinite(jp.fit_marginals(in_a_set(marginal), 2, max_iter=3).objective)
