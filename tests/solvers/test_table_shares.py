"""How much each of several models counts: beside the E-step of their average."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.solvers.table_cells import CellProbabilities
from jointpmf.solvers.table_shares import Witness, best_shares, expected_shares
from support.small_tables import DOMAIN, KINDS, TRUTH, cells_of

MODELS = [jp.random_pmf(DOMAIN, rank, random_state=rank) for rank in (1, 2, 4)]


def predicted(cells, models=MODELS):
    return [cells.expectation(pmf.rank).probabilities(Point.of_pmf(pmf)) for pmf in models]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_that_of_em_on_the_average(kind):
    cells, shares = cells_of(kind), np.array([0.2, 0.5, 0.3])
    whole = jp.average(MODELS, shares)
    expectation = cells.expectation(whole.rank)
    counts = expectation.counts(expectation.stack(Point.of_pmf(whole)))[0][-1]
    by_model = [part.sum() for part in np.split(counts[: whole.rank], [1, 3])]
    together = CellProbabilities(*map(np.column_stack, zip(*predicted(cells), strict=True)))
    np.testing.assert_allclose(expected_shares(cells, together, shares), by_model, rtol=1e-9)


def test_the_truth_counts_for_most():
    cells, models = cells_of(), [TRUTH, *MODELS]
    shares = best_shares([Witness(cells, predicted(cells, models), np.zeros(4))])
    assert shares.argmax() == 0
    assert shares[0] > 0.9
    assert shares.sum() == pytest.approx(1)


def test_who_is_flattered_counts_for_less():
    cells = cells_of()
    models = predicted(cells, [TRUTH, TRUTH])
    even = best_shares([Witness(cells, models, np.zeros(2))])
    uneven = best_shares([Witness(cells, models, np.array([0.0, 0.01]))])
    np.testing.assert_allclose(even, 0.5)
    assert uneven[0] > 0.9


def test_a_witness_counts_by_its_weight():
    cells, other = cells_of(), cells_of("bands")
    first, second = (Witness(one, predicted(one), np.zeros(3)) for one in (cells, other))
    alone = best_shares([first])
    np.testing.assert_array_equal(best_shares([first, second._replace(weight=0.0)]), alone)
