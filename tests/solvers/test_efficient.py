"""The step that makes a fit to tables efficient, and what tables tell of who is in them."""

import numpy as np
import pytest
from paper.error_limits import error_limits

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.solvers.efficient import can_step, efficient_step, observed_part
from jointpmf.solvers.table_jacobian import slices_of
from support.feasibility import feasible
from support.planted import planted

SIZES = [3, 3, 3, 3]


@pytest.fixture
def truth():
    return planted(SIZES, 2, seed=0, concentration=2.0)


def as_pmf(domain, point):
    factors = np.split(point.factors, np.cumsum(domain.sizes)[:-1])
    return jp.JointPMF(domain, point.weights, factors)


def shaken(pmf, size):
    """Return a point near a model."""
    generator = np.random.default_rng(0)
    factors = [
        (1 - size) * a + size * generator.dirichlet(np.ones(len(a)), 2).T for a in pmf.factors
    ]
    return Point.of_pmf(jp.JointPMF(pmf.domain, pmf.weights, factors))


def counted(truth, n_rows, missing, generator):
    rows = np.array(truth.sample(n_rows, random_state=generator, backend="codes"))
    rows[generator.random(rows.shape) < missing] = jp.MISSING
    return jp.MarginalSet.from_table(jp.Codes(truth.domain, rows), order=3)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_its_error_is_the_smallest_that_is_possible(truth, missing):
    """From the truth itself the step is an estimate, and the best one."""
    generator, errors = np.random.default_rng(1), []
    for _ in range(40):
        tables = counted(truth, 20_000, missing, generator)
        found = efficient_step(truth.domain, tables.measurements, Point.of_pmf(truth))
        errors.append(jp.kl_divergence(truth, as_pmf(truth.domain, found)).value)
    limits = error_limits(truth, 3, n_rows=20_000, missing=missing)
    assert np.mean(errors) == pytest.approx(limits.kl_limit, rel=0.2)


def test_exact_tables_lead_to_the_model(truth):
    tables, begin = truth.marginals(3).measurements, shaken(truth, 1e-2)
    found = efficient_step(truth.domain, tables, begin)
    before, after = (jp.factor_error(truth, as_pmf(truth.domain, p)) for p in (begin, found))
    assert after < 0.1 * before
    found = efficient_step(truth.domain, tables, begin, n_steps=3)
    assert jp.factor_error(truth, as_pmf(truth.domain, found)) < 1e-2 * after


def test_it_stays_feasible_and_leaves_a_part_of_everything(truth):
    tables = counted(truth, 50, 0.2, np.random.default_rng(0)).measurements
    begin = shaken(truth, 0.2)
    found = efficient_step(truth.domain, tables, begin)
    assert feasible(as_pmf(truth.domain, found))
    assert (found.factors > 0.05 * begin.factors).all()
    assert not np.array_equal(found.factors, begin.factors)


def test_tables_that_do_not_determine_a_model_leave_it_as_it_is(truth):
    tables, begin = truth.marginals(2).measurements, shaken(truth, 1e-2)
    assert efficient_step(truth.domain, tables, begin) is begin


def test_tables_of_any_kind_are_taken(truth):
    banded = np.asarray(truth.marginals(3)[0].table)
    banded = np.stack([banded[:, :, 0], banded[:, :, 1:].sum(axis=2)], axis=2)
    tables = jp.MarginalSet(
        truth.domain,
        [
            jp.Marginal(("x0", "x1", "x2"), banded, n_obs=500, levels={"x2": [0, (1, 2)]}),
            *list(truth.marginals(3))[1:],
        ],
    ).measurements
    begin = shaken(truth, 1e-2)
    found = efficient_step(truth.domain, tables, begin)
    before, after = (jp.factor_error(truth, as_pmf(truth.domain, p)) for p in (begin, found))
    assert after < 0.2 * before


class TestObservedPart:
    def part(self, truth, tables):
        found = observed_part(slices_of(tables.measurements), Point.of_pmf(truth), truth.domain)
        return None if found is None else found[0]

    @pytest.mark.parametrize("missing", [0.2, 0.5])
    def test_tables_show_how_many_cells_are_missing(self, truth, missing):
        generator = np.random.default_rng(0)
        parts = [self.part(truth, counted(truth, 5000, missing, generator)) for _ in range(10)]
        assert np.mean(parts) == pytest.approx(1 - missing, abs=0.1)

    def test_tables_of_the_same_people_agree(self, truth):
        tables = counted(truth, 500, 0.0, np.random.default_rng(0))
        assert self.part(truth, tables) == pytest.approx(1)

    def test_tables_of_different_people_share_nobody_or_few(self, truth):
        generator = np.random.default_rng(0)
        tables = [counted(truth, 3000, 0.0, generator)[k] for k in range(4)]
        found = self.part(truth, jp.MarginalSet(truth.domain, tables))
        assert found is None or found < 0.5

    def test_tables_without_common_variables_tell_nothing(self, truth):
        tables = truth.marginals(subsets=[["x0", "x1"], ["x2", "x3"]])
        assert self.part(truth, tables) is None


def test_large_tables_are_left_alone(truth):
    assert can_step(truth.domain, truth.marginals(3).measurements, 2)
    assert not can_step(truth.domain, truth.marginals(3).measurements, 10**6)


def test_pseudo_counts_draw_it_towards_what_they_say(truth):
    """With very many of them the columns go to where they are, as far as a step may."""
    tables = counted(truth, 500, 0.2, np.random.default_rng(0)).measurements
    begin = Point.of_pmf(truth)
    even = np.full((12, 1), 1 / 3)
    distances = []
    for smoothing in (0.0, 1.0, 30.0):
        found = efficient_step(truth.domain, tables, begin, smoothing * 3 * even)
        distances.append(float(np.abs(found.factors - even).sum()))
    assert distances[0] > distances[1] > distances[2]


def test_a_model_in_which_nothing_can_move_stays():
    domain = jp.Domain.of_sizes([1, 1])
    only = Point(np.ones(1), np.ones((2, 1)))
    tables = jp.MarginalSet(domain, [jp.Marginal(("x0", "x1"), [[7]])]).measurements
    assert efficient_step(domain, tables, only) is only
