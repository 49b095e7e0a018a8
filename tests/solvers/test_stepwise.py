"""EM that sees each row once: its steps are those in plain numpy, and no row is impossible."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from jointpmf.point import Point
from jointpmf.rows.table import ColumnRows, Rows
from jointpmf.solvers.loop import Loop
from jointpmf.solvers.stepwise import steps_of
from support import oracle

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3, 3]), rank=2, random_state=3)


def holed(n_rows, seed, part=0.15):
    generator = np.random.default_rng(seed)
    rows = np.array(TRUTH.sample(n_rows, random_state=generator, backend="codes"), int)
    rows[generator.random(rows.shape) < part] = jp.MISSING
    return rows


def steps_from(pmf, codes, weights=None, **smoothing):
    """Return what learns step by step, from a model of the first rows on."""
    fit = EMFit(2, Loop(max_iter=10, tol=0.0), **smoothing)
    return fit.stepwise(Rows.of_codes(codes, weights), Point.of_pmf(pmf))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("towards", ["uniform", "marginal"])
def test_steps_are_those_in_plain_numpy(smoothing, towards):
    generator = np.random.default_rng(5)
    rows, weights = holed(300, seed=5), generator.exponential(size=300) + 0.1
    codes = jp.Codes(TRUTH.domain, rows[:100])
    steps = steps_from(TRUTH, codes, weights[:100], smoothing=smoothing, towards=towards)
    by_hand = oracle.StepwiseEM(rows[:100], weights[:100], TRUTH, smoothing, towards)
    for begin, end in ((100, 105), (105, 106), (106, 290), (290, 300)):
        (some,) = steps_of(jp.Codes(TRUTH.domain, rows[begin:end]), weights[begin:end], 200)
        assert steps.add(some) is steps.history[-1]
        by_hand.add(rows[begin:end], weights[begin:end])
        pmf = jp.JointPMF.at(steps.point(), TRUTH.domain)
        for mine, other in zip(pmf.factors, by_hand.pmf().factors, strict=True):
            assert np.allclose(mine, other, atol=1e-12)
        assert np.allclose(pmf.weights, by_hand.pmf().weights, atol=1e-12)
    outcome = steps.outcome()
    assert outcome.objective == pytest.approx(-by_hand.log_likelihood / weights.sum(), rel=1e-12)
    assert [step.iteration for step in outcome.history] == [1, 2, 3, 4]
    assert outcome.status is jp.Status.ONE_PASS


def test_a_row_that_cannot_happen_is_made_possible():
    domain = jp.Domain.of_sizes([3, 2])
    apart = jp.JointPMF(domain, [0.5, 0.5], [[[1, 0], [0, 1], [0, 0]], [[1, 0], [0, 1]]])
    steps = steps_from(apart, jp.Codes(domain, np.array([[0, 0], [1, 1]] * 10)))
    new = np.array([[2, 0], [0, 1]])
    steps.add(ColumnRows.of_codes(jp.Codes(domain, new)))
    assert np.isfinite(steps.outcome().objective)
    assert (jp.JointPMF.at(steps.point(), domain).probability(new) > 0).all()


def test_rows_without_a_cell_are_no_step():
    steps = steps_from(TRUTH, jp.Codes(TRUTH.domain, holed(50, seed=0)))
    before = steps.point()
    empty = jp.Codes(TRUTH.domain, np.full((5, 5), jp.MISSING))
    assert steps.add(ColumnRows.of_codes(empty)) is None
    after = steps.point()
    np.testing.assert_array_equal(before.weights, after.weights)
    np.testing.assert_array_equal(before.factors, after.factors)
    assert steps.history == []
