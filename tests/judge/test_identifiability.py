"""What can be known: rank of the Jacobian, advice, warnings of a fit, and error limits."""

import logging
import math
from itertools import combinations

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.solvers.curvature import Tangent
from jointpmf.solvers.jacobian import jacobian_rank
from jointpmf.solvers.table_jacobian import TableCurvature
from support.oracle import jacobian


def names(*subsets):
    return [tuple(f"x{n}" for n in subset) for subset in subsets]


def domain_of(*sizes):
    return jp.Domain.of_sizes(list(sizes))


def feasible_directions(sizes, rank):
    """Return a basis of all changes that keep every sum, from those sums."""
    simplices = [np.ones((1, rank))]
    simplices += [np.kron(np.ones((1, size)), np.eye(rank)) for size in sizes]
    sums = np.zeros((sum(map(len, simplices)), rank * (1 + sum(sizes))))
    row = column = 0
    for block in simplices:
        sums[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    _, values, right = np.linalg.svd(sums)
    return right[len(values) :].T


def jacobian_by_brute_force(pmf, subsets):
    j = jacobian(subsets, pmf.weights, pmf.factors, np.ones(len(subsets)))
    return j @ feasible_directions(pmf.domain.sizes, pmf.rank)


SMALL = {
    "pairs": ([3, 2, 4], 2, [(0, 1), (0, 2), (1, 2)]),
    "triples": ([2, 2, 2, 2], 2, list(combinations(range(4), 3))),
    "triples beyond": ([2, 2, 2, 2], 3, list(combinations(range(4), 3))),
    "one triple": ([3, 3, 2], 2, [(0, 1, 2)]),
    "mixed": ([3, 2, 3, 2], 2, [(0, 1, 2), (2, 3), (0,)]),
    "singles": ([3, 2, 3], 2, [(0,), (1,), (2,)]),
    "rank one": ([3, 2, 3], 1, [(0,), (1, 2)]),
}


class TestJacobian:
    @pytest.mark.parametrize("case", SMALL)
    @pytest.mark.parametrize("seed", range(3))
    def test_its_rank_at_a_model_is_that_by_brute_force(self, case, seed):
        sizes, rank, subsets = SMALL[case]
        pmf = jp.random_pmf(domain_of(*sizes), rank, seed)
        report = jp.identifiability(pmf.marginals(subsets=names(*subsets)), rank, pmf=pmf)
        j = jacobian_by_brute_force(pmf, subsets)
        assert report.n_parameters == j.shape[1]
        assert report.jacobian_rank == np.linalg.matrix_rank(j, tol=1e-8 * np.linalg.norm(j, 2))
        assert report.identifiable == (report.jacobian_rank == j.shape[1])

    @pytest.mark.parametrize("case", SMALL)
    def test_its_generic_rank_is_that_by_brute_force(self, case):
        sizes, rank, subsets = SMALL[case]
        pmf = jp.random_pmf(domain_of(*sizes), rank, 8)
        j = jacobian_by_brute_force(pmf, subsets)
        report = jp.identifiability(pmf.marginals(subsets=names(*subsets)), rank)
        assert report.jacobian_rank == np.linalg.matrix_rank(j, tol=1e-8 * np.linalg.norm(j, 2))

    @pytest.mark.parametrize("case", SMALL)
    def test_the_equations_are_the_independent_cells(self, case):
        sizes, rank, subsets = SMALL[case]
        everything = np.eye(math.prod(sizes)).reshape(*sizes, -1)
        cells = [
            everything.sum(axis=tuple(n for n in range(len(sizes)) if n not in subset))
            for subset in subsets
        ]
        rows = np.concatenate([c.reshape(-1, math.prod(sizes)) for c in cells])
        pmf = jp.random_pmf(domain_of(*sizes), rank, 0)
        report = jp.identifiability(pmf.marginals(subsets=names(*subsets)), rank)
        assert report.n_equations == np.linalg.matrix_rank(rows) - 1


class TestLargestRank:
    @pytest.mark.parametrize(
        ("n_variables", "size", "largest", "bound"), [(10, 2, 16, 16), (5, 4, 23, 23), (4, 2, 2, 3)]
    )
    def test_of_all_triples(self, n_variables, size, largest, bound):
        domain = domain_of(*[size] * n_variables)
        report = jp.identifiability(domain, largest, order=3)
        assert report.identifiable
        assert (report.largest_rank, report.is_largest) == (largest, True)
        assert report.counting_bound == bound
        assert not jp.identifiability(domain, largest + 1, order=3).identifiable

    @pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (2, 5, 3), (2, 2, 2, 2, 2, 2)])
    def test_of_pairs_is_one(self, sizes):
        assert jp.identifiability(domain_of(*sizes), 1, order=2).identifiable
        for rank in (2, 3):
            report = jp.identifiability(domain_of(*sizes), rank, order=2)
            assert report.identifiable is False
            assert report.largest_rank == 1

    def test_a_rank_above_the_counting_bound_is_never_identifiable(self):
        """However many parameters that rank has."""
        for rank in (4, 60, 600):
            report = jp.identifiability(domain_of(2, 2, 2, 2), rank, order=3)
            assert rank > report.counting_bound
            assert report.identifiable is False
            assert "not identifiable" in str(report)


class TestForms:
    def test_a_set_a_domain_and_a_tuple_say_the_same(self):
        pmf = jp.random_pmf(domain_of(3, 2, 4, 2), 2, 0)
        reports = [
            jp.identifiability(pmf.marginals(3), 2),
            jp.identifiability(pmf.domain, 2, order=3),
            jp.identifiability((pmf.domain, 3), 2),
        ]
        assert reports[0] == reports[1] == reports[2]

    def test_a_marginal_given_twice_adds_nothing(self):
        pmf = jp.random_pmf(domain_of(3, 2, 4), 2, 0)
        twice = jp.MarginalSet(pmf.domain, [*pmf.marginals(2), *pmf.marginals(2)])
        assert jp.identifiability(twice, 2) == jp.identifiability(pmf.marginals(2), 2)

    def test_some_triples_can_be_enough_and_fewer_not(self):
        pmf = jp.random_pmf(domain_of(4, 4, 4, 4, 4), 3, 0)
        enough = pmf.marginals(subsets=names((0, 1, 2), (2, 3, 4)))
        assert jp.identifiability(enough, 3).identifiable
        too_few = pmf.marginals(subsets=names((0, 1, 2), (3, 4)))
        assert jp.identifiability(too_few, 3).identifiable is False

    @pytest.mark.parametrize(
        ("known", "options"),
        [("triples", {}), (domain_of(2, 2), {}), (domain_of(2, 2), {"order": 3}), (None, {})],
    )
    def test_what_is_known_must_be_said(self, known, options):
        with pytest.raises(jp.JointPMFError):
            jp.identifiability(known, 2, **options)

    @pytest.mark.parametrize("rank", [0, -1, 1.5, "two"])
    def test_the_rank_must_be_a_positive_whole_number(self, rank):
        with pytest.raises(jp.JointPMFError, match="rank"):
            jp.identifiability(domain_of(2, 2, 2), rank, order=3)

    def test_the_model_must_be_of_that_rank_and_domain(self):
        pmf = jp.random_pmf(domain_of(3, 3, 3), 2, 0)
        with pytest.raises(jp.JointPMFError, match="rank 3"):
            jp.identifiability(pmf.domain, 3, order=3, pmf=pmf)
        with pytest.raises(jp.JointPMFError):
            jp.identifiability(domain_of(3, 3, 4), 2, order=3, pmf=pmf)


class TestTablesOfAnyKind:
    """Bands, parts of the population, percentages and suppressed cells see a model too."""

    @pytest.fixture
    def truth(self):
        return jp.random_pmf(domain_of(3, 4, 2, 3), 2, 0)

    def banded(self, truth, first, second, **bands):
        """Return a pair of variables of which some have bands."""
        table = truth.marginal([first, second]).table()
        for name, entries in bands.items():
            axis = [first, second].index(name)
            table = np.stack([table.take(e, axis).sum(axis) for e in entries], axis)
        return jp.Marginal((first, second), table, levels=bands)

    def rank_by_differences(self, marginals, pmf):
        """Return the rank of the derivatives of what is published, by differences."""
        directions = feasible_directions(pmf.domain.sizes, pmf.rank)
        at = np.concatenate([pmf.weights, *(a.ravel() for a in pmf.factors)])
        ends = np.cumsum([pmf.rank, *(a.size for a in pmf.factors)])[:-1]

        def cells(vector):
            weights, *factors = np.split(vector, ends)
            factors = [a.reshape(-1, pmf.rank) for a in factors]
            return np.concatenate(
                [m.predicted(weights, factors)[~np.isnan(m.counts)] for m in marginals.measurements]
            )

        columns = [(cells(at + 1e-5 * d) - cells(at - 1e-5 * d)) / 2e-5 for d in directions.T]
        return np.linalg.matrix_rank(np.array(columns), tol=1e-7)

    def mixed(self, truth):
        held = truth.marginal(["x2", "x3"]).table()
        held[0, 1] = np.nan
        part = truth.condition({"x3": 0}).marginal(["x0", "x1", "x2"]).table()
        rows = truth.marginal(["x0", "x2"]).table()
        return jp.MarginalSet(
            truth.domain,
            [
                self.banded(truth, "x0", "x1", x1=[(0, 1), (2, 3)]),
                jp.Marginal(("x0", "x1", "x2"), part, where={"x3": 0}),
                jp.Marginal(("x2", "x3"), held, n_obs=100),
                jp.Marginal(("x0", "x2"), rows / rows.sum(1, keepdims=True), [9] * 3, given=["x0"]),
            ],
        )

    def test_the_rank_is_that_by_differences(self, truth):
        marginals = self.mixed(truth)
        report = jp.identifiability(marginals, 2, pmf=truth)
        assert report.jacobian_rank == self.rank_by_differences(marginals, truth)
        assert report.identifiable == (report.jacobian_rank == report.n_parameters)
        assert report.condition is not None

    def test_its_words_say_what_the_tables_are(self, truth):
        known = jp.identifiability(self.mixed(truth), 2).known
        assert known == (
            "3 pairs and 1 triple, 1 of them in bands, 1 within part of the population, 1 as "
            "percentages within levels, 1 with cells that were not published, of 4 variables"
        )

    def test_noise_adds_no_words(self, truth):
        tables = [jp.Marginal(m.names, m.table, 100, noise=0.1) for m in truth.marginals(2)]
        known = jp.identifiability(jp.MarginalSet(truth.domain, tables), 2).known
        assert known == "6 pairs of 4 variables"

    def test_bands_see_less_than_levels(self):
        truth = jp.random_pmf(domain_of(4, 4, 4), 2, 0)
        whole = truth.table()
        assert jp.identifiability(truth.marginals(3), 2).identifiable
        halves = [(0, 1), (2, 3)]
        for axis in range(3):
            whole = np.stack([whole.take(e, axis).sum(axis) for e in halves], axis)
        names = ("x0", "x1", "x2")
        coarse = jp.Marginal(names, whole, levels=dict.fromkeys(names, halves))
        report = jp.identifiability(jp.MarginalSet(truth.domain, [coarse]), 2)
        assert report.identifiable is False
        assert report.n_equations == 7

    def test_bands_that_overlap_can_say_all_that_levels_do(self, truth):
        bands = {"x1": [(0, 1), (1, 2), (2, 3), (3,)]}
        tables = [self.banded(truth, "x0", "x1", **bands), *truth.marginals(3)]
        general = jp.identifiability(jp.MarginalSet(truth.domain, tables), 2)
        plain = jp.identifiability(truth.marginals(3), 2)
        for name in ("identifiable", "jacobian_rank", "n_equations", "largest_rank"):
            assert getattr(general, name) == getattr(plain, name)

    def test_tables_of_too_many_cells_are_not_decided(self, truth):
        curvature = TableCurvature(truth.domain, self.mixed(truth).measurements)
        generator = np.random.default_rng(0)
        assert jacobian_rank(curvature, 2, None, generator) is not None
        curvature.n_formed = 10**9
        assert jacobian_rank(curvature, 2, None, generator) is None


class TestText:
    def test_pairs_are_named_and_triples_advised(self):
        text = str(jp.identifiability(domain_of(*[4] * 5), 5, order=2))
        assert text.startswith("From all pairs of 5 variables, rank 5 is not identifiable")
        assert "add triples" in text
        assert "lower the rank to 1" in text

    def test_an_identifiable_model_needs_no_advice(self):
        text = str(jp.identifiability(domain_of(*[4] * 5), 5, order=3))
        assert text.startswith("From all triples of 5 variables, rank 5 is locally identifiable")
        assert "not identifiable" not in text
        assert "add" not in text
        assert "largest identifiable rank is 23" in text

    def test_some_marginals_are_counted(self):
        pmf = jp.random_pmf(domain_of(3, 3, 3, 3), 2, 0)
        text = str(jp.identifiability(pmf.marginals(subsets=names((0, 1, 2), (2, 3))), 2))
        assert "From 2 pairs and triples of 4 variables" in text

    def test_the_condition_number_is_told(self):
        pmf = jp.random_pmf(domain_of(4, 4, 4), 2, 0)
        report = jp.identifiability(pmf.marginals(3), 2, pmf=pmf)
        assert f"condition number is {report.condition:.2g}" in str(report)


class TestPaperCondition:
    def test_the_stack_counts_by_a_sum_and_not_a_product(self):
        """Two variables of ten levels and four of two: the sum is 5, the product 16."""
        domain = domain_of(10, 10, 2, 2, 2, 2)
        assert jp.identifiability(domain, 5, order=3).paper_condition
        report = jp.identifiability(domain, 8, order=3)
        assert math.prod(domain.sizes[2:]) >= 8
        assert not report.paper_condition
        assert "sufficient condition" not in str(report)

    def test_it_needs_triples(self):
        assert not jp.identifiability(domain_of(*[5] * 4), 2, order=2).paper_condition
        report = jp.identifiability(domain_of(*[5] * 4), 2, order=3)
        assert report.paper_condition
        assert "sufficient condition for uniqueness holds" in str(report)

    def test_it_only_holds_where_the_jacobian_agrees(self):
        for size, rank in ((3, 2), (3, 4), (4, 6), (4, 9), (5, 11)):
            report = jp.identifiability(domain_of(*[size] * 4), rank, order=3)
            assert report.identifiable or not report.paper_condition


class TestCondition:
    def test_it_is_that_of_the_jacobian(self):
        pmf = jp.random_pmf(domain_of(4, 3, 4), 2, 0)
        report = jp.identifiability(pmf.marginals(3), 2, pmf=pmf)
        free = np.zeros(2 * (1 + 4 + 3 + 4), bool)
        tangent = Tangent.at(Point.of_pmf(pmf), pmf.domain.offsets, free)
        z = np.column_stack([tangent.expand(e) for e in np.eye(report.n_parameters)])
        j = jacobian([(0, 1, 2)], pmf.weights, pmf.factors, [1.0])
        assert report.identifiable
        assert report.condition == pytest.approx(np.linalg.cond(j @ z), rel=1e-6)

    def test_it_is_infinite_where_the_model_is_not_identifiable(self):
        pmf = jp.random_pmf(domain_of(4, 3, 4), 2, 0)
        assert jp.identifiability(pmf.marginals(2), 2, pmf=pmf).condition == math.inf

    def test_it_is_of_a_model_only(self):
        assert jp.identifiability(domain_of(4, 3, 4), 2, order=3).condition is None

    def test_two_equal_components_are_not_identifiable_there(self):
        generic = jp.random_pmf(domain_of(4, 3, 4), 2, 0)
        equal = [factor[:, [0, 0]] for factor in generic.factors]
        pmf = jp.JointPMF(generic.domain, [0.5, 0.5], equal)
        report = jp.identifiability(pmf.marginals(3), 2, pmf=pmf)
        assert report.identifiable is False
        assert report.condition == math.inf


class TestFits:
    def fit(self, marginals, rank, caplog):
        """Return a fit and the warnings it logged."""
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            solution = jp.fit_marginals(marginals, rank, random_state=0)
        return solution, [line for line in caplog.messages if "not identifiable" in line]

    @pytest.mark.parametrize(
        ("sizes", "order", "rank"),
        [((4, 4, 4, 4), 2, 2), ((4, 4, 4, 4), 2, 5), ((3, 3, 3), 3, 5), ((2, 2, 2), 3, 40)],
    )
    def test_a_rank_that_is_not_identifiable_is_warned_of(self, sizes, order, rank, caplog):
        marginals = jp.random_pmf(domain_of(*sizes), 2, 0).marginals(order)
        solution, warnings = self.fit(marginals, rank, caplog)
        assert solution.status is jp.Status.NOT_UNIQUE
        assert len(warnings) == 1
        assert f"rank {rank} " in warnings[0]
        assert "other models" in str(solution)

    @pytest.mark.parametrize(("sizes", "rank"), [((4, 4, 4, 4), 3), ((2, 3, 4, 5), 2)])
    def test_a_rank_that_is_identifiable_is_not(self, sizes, rank, caplog):
        truth = jp.random_pmf(domain_of(*sizes), rank, 0)
        rows = truth.sample(2000, random_state=0, backend="codes")
        for marginals in (
            truth.marginals(3),
            jp.MarginalSet.from_table(rows, 3, domain=truth.domain),
        ):
            solution, warnings = self.fit(marginals, rank, caplog)
            assert solution.status is jp.Status.CONVERGED
            assert not warnings

    def test_a_rank_of_thousands_of_parameters_above_any_bound_is_warned_of(self, caplog):
        marginals = jp.random_pmf(domain_of(2, 2, 2), 2, 0).marginals(3)
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            solution = jp.fit_marginals(marginals, 600, method="aoadmm", tol=1, random_state=0)
        assert solution.status is jp.Status.NOT_UNIQUE
        assert any("not identifiable" in line for line in caplog.messages)

    def test_contradicting_marginals_are_named_worst_first(self):
        truth = jp.random_pmf(domain_of(4, 4, 4, 4), 2, 0)
        wrong = jp.Marginal(("x1", "x3"), np.eye(4) / 4)
        marginals = jp.MarginalSet(truth.domain, [*truth.marginals(3), wrong])
        solution = jp.fit_marginals(marginals, 2, random_state=0)
        residuals = solution.residuals
        norms = [norm for _, norm in residuals]
        assert {names for names, _ in residuals} == {tuple(m.names) for m in marginals}
        assert norms == sorted(norms, reverse=True)
        fitted = solution.pmf.marginal(("x1", "x3")).table()
        assert residuals[0] == (("x1", "x3"), pytest.approx(np.linalg.norm(fitted - wrong.table)))
        total = sum(norm**2 for norm in norms)
        assert solution.objective == pytest.approx(total / 2, rel=1e-9)

    @pytest.mark.parametrize("last", [0, 1])
    def test_two_tables_of_the_same_variables_both_count(self, last):
        """One is the truth's and one contradicts it: the worst of both is reported."""
        truth = jp.random_pmf(domain_of(4, 4, 4, 4), 2, 0)
        tables = [truth.marginals(subsets=[("x1", "x3")])[0], jp.Marginal(("x1", "x3"), np.eye(4))]
        pair = [tables[1 - last], tables[last]]
        pair = [jp.Marginal(m.names, m.table / m.table.sum()) for m in pair]
        marginals = jp.MarginalSet(truth.domain, [*truth.marginals(3), *pair])
        solution = jp.fit_marginals(marginals, 2, random_state=0)
        fitted = solution.pmf.marginal(("x1", "x3")).table()
        worst = max(np.linalg.norm(fitted - m.table) for m in pair)
        assert solution.residuals[0] == (("x1", "x3"), pytest.approx(worst))
