"""Between what answers are, among models that fit as well: beside exact linear programs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import jointpmf as jp
from jointpmf.fit.members import members_of
from jointpmf.judge.smooth_query import question_of
from jointpmf.judge.spread import Effort, Starts, spread_from, starts_of_tables
from jointpmf.judge.valley import RowValley, TableValley
from jointpmf.judge.walk import Walker
from jointpmf.point import Point
from jointpmf.rows.source import Table
from support.feasibility import feasible

FEW = {"n_starts": 4, "random_state": 0}


def planted(seed, sizes, rank=4):
    """Return a model with clear components."""
    rng = np.random.default_rng(seed)
    domain = jp.Domain.of_sizes(sizes)
    factors = [rng.dirichlet(np.full(size, 0.5), rank).T for size in sizes]
    return jp.JointPMF(domain, rng.dirichlet(np.ones(rank)), factors)


def cells_of(domain):
    return np.indices(domain.sizes).reshape(len(domain), -1)


def indicator(domain, evidence):
    """Return which cells of the joint have the evidence."""
    cells = cells_of(domain)
    masks = [np.isin(cells[domain.index(k)], list(one)) for k, one in evidence.items()]
    return np.logical_and.reduce([np.ones(cells.shape[1], bool), *masks]).astype(float)


def exact_bounds(pmf, subsets, value, given):
    """Return the least and the most of E[value · given] / P(given) over all joints of the tables.

    By the linear program of Charnes and Cooper: cells are divided by P(given).
    """
    domain, equations = pmf.domain, []
    for names in subsets:
        for levels in np.ndindex(*(domain[name].size for name in names)):
            cell = indicator(domain, {n: {i} for n, i in zip(names, levels, strict=True)})
            equations.append((cell, pmf.marginal(names).table()[levels]))
    return ends_of(equations, value, given)


def ends_of(equations, value, given):
    """Return the least and the most over all joints in which indicators have expectations."""
    rows = [[*cell, -expected] for cell, expected in equations]
    rows.append([*given, 0.0])
    right = np.zeros(len(rows))
    right[-1] = 1.0
    cost = np.array([*(value * given), 0.0])
    ends = [linprog(sign * cost, A_eq=np.array(rows), b_eq=right) for sign in (1, -1)]
    assert all(end.status == 0 for end in ends)
    return ends[0].fun, -ends[1].fun


def pairs_of(domain):
    names = domain.names
    return [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]


class TestBesideLinearPrograms:
    """At a rank that represents any joint, the ends are those over all joints."""

    @pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 7, 8, 11, 12, 13, 18])
    def test_a_probability_from_pairs(self, seed):
        """Among these seeds are all sizes, with high and low ranks, that the first 20 have."""
        sizes = np.random.default_rng(seed).integers(2, 4, size=3)
        truth, is_high = planted(seed, sizes), seed % 4 > 0
        domain = truth.domain
        rank = math.prod(domain.sizes) if is_high else 3
        marginals = truth.marginals(order=2)
        solution = jp.fit_marginals(marginals, rank, loss="likelihood", random_state=0)
        asked = dict.fromkeys(domain.names, 0)
        found = solution.spread(asked, **FEW)
        value = indicator(domain, {name: {0} for name in domain.names})
        low, high = exact_bounds(solution.pmf, pairs_of(domain), value, np.ones(len(value)))
        assert low - 1e-6 <= found.low <= found.estimate <= found.high <= high + 1e-6
        if is_high:
            assert found.low == pytest.approx(low, abs=1e-3)
            assert found.high == pytest.approx(high, abs=1e-3)
            assert found.low - 1e-4 <= truth.table().flat[0] <= found.high + 1e-4
            for other in (1, 2):
                fit = jp.fit_marginals(marginals, rank, loss="likelihood", random_state=other)
                assert found.low - 1e-4 <= fit.pmf.table().flat[0] <= found.high + 1e-4

    def test_a_conditional_and_an_expected_value(self):
        truth = planted(3, [3, 2, 2])
        domain, subsets = truth.domain, pairs_of(truth.domain)
        solution = jp.fit_marginals(truth.marginals(order=2), 12, random_state=0)
        given = indicator(domain, {"x1": {1}, "x2": {0}})
        part = indicator(domain, {"x0": {0, 2}})
        asked = solution.spread({"x0": {0, 2}}, given={"x1": 1, "x2": 0}, **FEW)
        assert list(asked) == pytest.approx(
            exact_bounds(solution.pmf, subsets, part, given), abs=1e-3
        )
        mean = solution.spread("x0", given={"x1": 1, "x2": 0}, **FEW)
        numbers = cells_of(domain)[0].astype(float)
        assert list(mean) == pytest.approx(
            exact_bounds(solution.pmf, subsets, numbers, given), abs=1e-3
        )

    def test_tables_of_bands_parts_and_percentages(self):
        """Each kind of table is met: coarse levels, part of the people, and slices."""
        truth = planted(5, [3, 2, 2])
        joint, domain = truth.table(), truth.domain
        banded = np.stack([joint[0], joint[1:].sum(axis=0)]).sum(axis=2)
        tables = [
            jp.Marginal(("x0", "x1"), banded, levels={"x0": [0, (1, 2)]}),
            jp.Marginal(("x0",), joint[:, :, 1].sum(axis=1), where={"x2": 1}),
            jp.Marginal(("x1", "x2"), 100 * _by_rows(joint.sum(axis=0)), given=["x1"]),
        ]
        known = jp.MarginalSet(domain, tables)
        solution = jp.fit_marginals(known, 12, random_state=0)
        found = solution.spread({"x0": 2, "x1": 0, "x2": 1}, **FEW)
        equations = [(np.ones(12), 1.0)]
        for table in known.measurements:
            shares = table.predicted(solution.pmf.weights, solution.pmf.factors)
            equations += [(cell, 0.0) for cell in centred_cells(domain, table, shares)]
        value = indicator(domain, {"x0": {2}, "x1": {0}, "x2": {1}})
        exact = ends_of(equations, value, np.ones(12))
        assert list(found) == pytest.approx(exact, abs=1e-3)
        assert found.low - 1e-4 <= joint[2, 0, 1] <= found.high + 1e-4
        assert feasible(found.lowest)

    def test_rows_that_show_pairs_are_as_pairs(self):
        """Rows with one hole each: the likelihood knows the tables of pairs, and no more."""
        truth = planted(8, [2, 2, 2])
        rows = np.array(truth.sample(3000, random_state=0, backend="codes"))
        rows[np.arange(3000), np.arange(3000) % 3] = -1
        codes = jp.Codes(truth.domain, rows)
        pmf = jp.fit_rows(codes, 8, random_state=0, tol=1e-12, max_iter=20000).pmf
        valley = RowValley(Table.of_codes(codes), Point.of_pmf(pmf))
        starts = Starts(pmf, [pmf], valley).found(Effort(3), np.random.default_rng(0))
        question = question_of({"x0": 0, "x1": 0, "x2": 0}, None, pmf.domain)
        found = spread_from(pmf, starts, question, 150)
        value = indicator(pmf.domain, {name: {0} for name in pmf.domain.names})
        exact = exact_bounds(pmf, pairs_of(pmf.domain), value, np.ones(8))
        assert list(found) == pytest.approx(exact, abs=1e-3)
        likelihoods = [one.log_probability(codes).mean() for one in (pmf, found.lowest)]
        assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-5)


def centred_cells(domain, table, shares):
    """Yield, for each cell of a table, its indicator less its share of its slice's."""
    outside = {domain.names[n]: set(np.flatnonzero(mask)) for n, mask in table.where}
    names = [domain.names[n] for n in table.positions]
    for entries in np.ndindex(*shares.shape):
        levels = [set(np.flatnonzero(one[k])) for one, k in zip(table.sets, entries, strict=True)]
        cell = dict(zip(names, levels, strict=True))
        fixed = {names[k]: cell[names[k]] for k in table.given}
        whole = indicator(domain, outside | fixed)
        yield indicator(domain, outside | cell) - shares[entries] * whole


def _by_rows(table):
    return table / table.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def solution():
    """Return a fit that pairs leave open."""
    return jp.fit_marginals(planted(1, [2, 3, 2]).marginals(order=2), 4, random_state=0)


ASKED = {"x0": 0, "x1": 1, "x2": 0}


class TestSpread:
    def test_the_models_give_the_answers_and_fit_as_well(self, solution):
        found = solution.spread(ASKED, **FEW)
        low, high = found
        assert (low, high) == (found.low, found.high)
        assert found.lowest.table()[0, 1, 0] == pytest.approx(low)
        assert found.highest.table()[0, 1, 0] == pytest.approx(high)
        assert found.estimate == pytest.approx(solution.pmf.table()[0, 1, 0])
        for model in (found.lowest, found.highest):
            assert model.rank == 4
            assert feasible(model)
            for names in pairs_of(model.domain):
                gaps = model.marginal(names).table() - solution.pmf.marginal(names).table()
                assert np.abs(gaps).max() < 2e-6

    def test_its_text(self, solution):
        found = solution.spread(ASKED, **FEW)
        assert not found.is_unique
        low = f"{found.low:.4g}" if found.low > 1e-4 * found.high else "0"
        assert str(found).startswith(f"{found.estimate:.4g}, between {low} and {found.high:.4g}: ")
        assert "models of this rank fit as well that give other answers (4 starts)" in str(found)

    def test_the_same_seed_gives_the_same_bits(self, solution):
        first, second = (solution.spread(ASKED, n_starts=3, random_state=5) for _ in range(2))
        assert tuple(first) == tuple(second)

    def test_it_is_wider_than_the_fits_that_were_averaged(self, solution):
        rank = solution.pmf.rank // solution.n_averaged
        answers = []
        for begin in range(0, solution.pmf.rank, rank):
            part = slice(begin, begin + rank)
            weights = solution.pmf.weights[part] * solution.n_averaged
            member = [factor[:, part] for factor in solution.pmf.factors]
            answers.append(jp.JointPMF(solution.pmf.domain, weights, member).table()[0, 1, 0])
        low, high = solution.spread(ASKED, **FEW)
        assert low < min(answers)
        assert max(answers) < high

    def test_an_answer_that_the_tables_determine(self, solution):
        found = solution.spread({"x0": 0, "x1": 1}, **FEW)
        assert found.high - found.low < 1e-5
        assert "give the same answer" in found.reason

    def test_any_function(self, solution):
        by_name = solution.spread(ASKED, n_starts=1, random_state=0)
        found = solution.spread(lambda pmf: pmf.table()[0, 1, 0], n_starts=1, random_state=0)
        assert list(found) == pytest.approx(list(by_name), abs=1e-3)

    def test_a_fit_that_is_unique(self):
        truth = planted(0, [3, 3, 3, 3], 2)
        solution = jp.fit_marginals(truth.marginals(order=3), 2, random_state=0)
        assert solution.is_unique
        found = solution.spread(dict.fromkeys(truth.domain.names, 0))
        assert found.is_unique
        assert found.low == found.high == found.estimate
        assert str(found) == f"{found.estimate:.4g}: the tables determine the model of this rank"
        assert found.lowest is found.highest is solution.pmf

    def test_one_fit_by_squares(self):
        truth = planted(1, [2, 3, 2])
        solution = jp.fit_marginals(truth.marginals(order=2), 4, loss="squares", random_state=0)
        found = solution.spread(ASKED, **FEW)
        assert found.low <= found.estimate <= found.high
        assert found.high - found.low > 0.004

    def test_what_is_impossible_stays_so(self):
        domain = jp.Domain.of_sizes([2, 2, 2])
        joint = np.array([[[0.2, 0.1], [0.15, 0.05]], [[0.1, 0.1], [0.3, 0.0]]])
        truth = jp.JointPMF(
            domain, joint.ravel(), [np.eye(2)[:, code] for code in cells_of(domain)]
        )
        known = jp.MarginalSet(
            domain, truth.marginals(order=2).marginals, [{"x0": 1, "x1": 1, "x2": 1}]
        )
        solution = jp.fit_marginals(known, 6, random_state=0)
        found = solution.spread({"x0": 0, "x1": 0, "x2": 0}, **FEW)
        for model in (found.lowest, found.highest):
            assert model.table()[1, 1, 1] == 0

    def test_progress_is_shown_on_request(self, solution, capsys):
        quiet = solution.spread(ASKED, n_starts=1, random_state=0)
        shown = solution.spread(ASKED, n_starts=1, random_state=0, verbose=True)
        assert tuple(quiet) == tuple(shown)
        assert capsys.readouterr().out == ""


def test_fits_that_no_single_model_averages_have_their_own_valleys():
    """At rank 2 no model predicts the tables of an average; each fit keeps its own."""
    fits = [planted(seed, [3, 3, 3], 2) for seed in (0, 1)]
    mean = jp.average(fits)
    tables = mean.marginals(order=2).measurements
    starts = starts_of_tables(mean, members_of(mean, 2), tables, keeps_zeros=False)
    found = starts.found(Effort(2), np.random.default_rng(0))
    assert len(found) == 2
    question = question_of({"x0": 0, "x1": 0, "x2": 0}, None, mean.domain)
    for start, fit in zip(found, fits, strict=True):
        assert start.walker.valley is not starts.valley
        for sign in (-1, 1):
            end = start.walker.walked(start.values, question, sign, 50)
            model = jp.JointPMF.at(start.walker.point_at(end.values), mean.domain)
            for names in pairs_of(mean.domain):
                gaps = model.marginal(names).table() - fit.marginal(names).table()
                assert np.abs(gaps).max() < 2e-6


class TestBadInput:
    @pytest.mark.parametrize(
        ("query", "given", "sentence"),
        [
            ({"x9": 0}, None, "x9"),
            ({"x0": 7}, None, "7"),
            ("x9", None, "x9"),
            ({}, None, "a query is evidence"),
            (3, None, "a query is evidence"),
            ({"x0": 0}, ["x1"], "given must be a mapping"),
            ({"x0": 0}, {"x9": 0}, "x9"),
            (lambda pmf: 1.0, {"x0": 0}, "given belongs to evidence or a name"),
            (lambda pmf: 1 / 0, None, "the query raised ZeroDivisionError"),
            (lambda pmf: math.nan, None, "the query returned nan"),
            (lambda pmf: pmf.table(), None, "the query must return a number"),
            (lambda pmf: "high", None, "the query must return a number, not 'high'"),
        ],
    )
    def test_a_query_that_cannot_be_answered(self, solution, query, given, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            solution.spread(query, given=given, n_starts=1)

    def test_a_variable_without_values(self):
        domain = jp.Domain([jp.Variable("sky", ("sun", "rain")), jp.Variable("x", (0, 1))])
        pmf = jp.random_pmf(domain, 2, random_state=0)
        solution = jp.fit_marginals(pmf.marginals(order=2), 2, random_state=0)
        with pytest.raises(jp.JointPMFError, match="'sky' has no expected value"):
            solution.spread("sky")

    def test_what_has_probability_zero(self):
        domain = jp.Domain.of_sizes([2, 2])
        sure = jp.JointPMF(domain, [1.0], [[[1.0], [0.0]], [[0.5], [0.5]]])
        question = question_of({"x1": 0}, {"x0": 1}, domain)
        with pytest.raises(jp.JointPMFError, match=r"'x0'.*probability zero"):
            question.value(Point.of_pmf(sure))

    def test_a_solution_without_tables_or_rows(self):
        solution = jp.fit_rows([["rain", "wet"], ["sun", "dry"]], 1, random_state=0)
        gone = replace(solution, reopen=None)
        with pytest.raises(jp.JointPMFError, match="needs the tables or the rows of the fit"):
            gone.spread({"x0": "rain"})

    def test_rows_that_are_not_in_memory(self):
        rows = jp.Codes(jp.Domain.of_sizes([2, 2]), [[0, 1], [1, 0], [1, 1]])
        solution = jp.fit_rows([rows], 1, domain=rows.domain, random_state=0)
        with pytest.raises(jp.JointPMFError, match="needs them in memory"):
            solution.spread({"x0": 0})

    def test_no_starts(self, solution):
        with pytest.raises(jp.JointPMFError, match="n_starts"):
            solution.spread(ASKED, n_starts=0)

    def test_a_model_that_is_too_large(self):
        domain = jp.Domain.of_sizes([60, 60, 60])
        tables = jp.random_pmf(domain, 2, random_state=0).marginals(order=2)
        solution = jp.fit_marginals(tables, 40, loss="squares", random_state=0, max_iter=1)
        with pytest.raises(jp.JointPMFError, match="rank 40 over 3 variables from 10800 cells"):
            solution.spread({"x0": 0})


def test_slopes_are_those_of_differences():
    """Of a probability, an expected value, and any function."""
    pmf = planted(2, [3, 2, 2], 3)
    point, domain = Point.of_pmf(pmf), pmf.domain
    walker = Walker(TableValley(domain, pmf.marginals(order=2).measurements, point, 1e-6), 3)
    values = point.vector
    for query, given in (({"x0": {0, 2}}, {"x1": 1}), ("x0", {"x2": 0})):
        exact = question_of(query, given, domain)
        asked = question_of(
            lambda pmf, one=exact: one.value(Point.of_pmf(pmf)), None, domain
        ).slope(point)
        slopes = [walker.centred(one, values) for one in (exact.slope(point), asked)]
        assert np.allclose(*slopes, atol=1e-5)


def test_the_jacobian_of_rows_is_that_of_differences():
    pmf = planted(2, [3, 2, 2], 3)
    codes = jp.Codes(pmf.domain, [[0, 1, -1], [2, -1, 0], [0, 1, -1], [1, 1, 1], [-1, -1, -1]])
    point = Point.of_pmf(pmf)
    valley = RowValley(Table.of_codes(codes), point)
    walker = Walker(valley, 3)
    values, found = point.vector, valley.jacobian(point)
    assert valley.n_shown == 3
    assert not valley.gaps(point).any()
    change = np.random.default_rng(0).standard_normal(len(values)) * 1e-7
    moved = at(walker, values * (1 + walker.centred(change, values)))
    assert np.allclose(
        valley.gaps(moved), found @ (values * walker.centred(change, values)), atol=1e-12
    )


def at(walker, values):
    return walker.point_at(walker.mixed(values, values, 0.5))


class TestRows:
    def test_rows_that_determine_the_model_leave_no_spread(self):
        truth = planted(2, [3, 3, 3], 2)
        found = jp.fit_rows(truth.sample(2000, random_state=0), 2, random_state=0)
        spread = found.spread({"x0": 0, "x1": 1})
        assert spread.high - spread.low < 1e-4
        assert "determine" in spread.reason or "same answer" in spread.reason

    def test_variables_that_no_row_has_together_leave_one(self):
        rows = np.array(planted(2, [2, 2, 2], 2).sample(300, random_state=0, backend="codes"))
        rows[:150, 0] = rows[150:, 2] = -1
        found = jp.fit_rows(jp.Codes(jp.Domain.of_sizes([2, 2, 2]), rows), 4, random_state=0)
        low, high = found.spread({"x0": 0, "x2": 0}, random_state=0)
        assert high > low + 0.01

    def test_a_blend_of_unequal_fits_is_one_model(self):
        pmfs = [planted(seed, [2, 2, 2], 2) for seed in (1, 2)]
        blend = jp.average(pmfs, weights=[0.3, 0.7])
        rows = jp.Codes(blend.domain, blend.sample(200, random_state=0, backend="codes"))
        found = replace(jp.fit_rows(rows, 4, random_state=0), pmf=blend, n_averaged=2)
        low, high = found.spread({"x0": 0}, given={"x1": 0}, n_starts=2, random_state=0)
        assert low <= high
