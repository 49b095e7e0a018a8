"""Moves from an optimum: feasible, nothing impossible, another point, and the same for a seed."""

import numpy as np
import pytest

from jointpmf.data.codes import Codes
from jointpmf.point import Point
from jointpmf.rows.table import Rows, log_likelihoods
from jointpmf.solvers.starts.moves import moved
from support import oracle
from support.feasibility import is_feasible


def rows_and_point(rank, seed=0):
    """Return a table, and a model of it with zeros."""
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, 4)
    table = oracle.random_table(generator, domain, 60, 0.3)
    table[0] = 0
    rows = Rows.of_codes(Codes(domain, table))
    corners = [np.eye(size)[:, generator.integers(size, size=rank)] for size in domain.sizes]
    return rows, Point(generator.dirichlet(np.ones(rank)), np.concatenate(corners))


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
@pytest.mark.parametrize("k", range(5))
def test_a_move_leads_elsewhere_and_all_rows_can_happen(rank, k):
    rows, point = rows_and_point(rank)
    before = point.weights.copy(), point.factors.copy()
    found = moved(point, rows, k, np.random.default_rng(0))
    assert is_feasible(rows.domain, found.weights, found.factors)
    assert np.isfinite(log_likelihoods(rows, found)).all()
    assert not np.allclose(found.factors, point.factors)
    np.testing.assert_array_equal(point.weights, before[0])
    np.testing.assert_array_equal(point.factors, before[1])
    again = moved(point, rows, k, np.random.default_rng(0))
    np.testing.assert_array_equal(found.factors, again.factors)


def test_some_moves_disturb_all_components_and_the_others_one_or_two():
    rows, point = rows_and_point(5)
    n_moved = []
    for k in range(5):
        found = moved(point, rows, k, np.random.default_rng(1))
        # what stays where it is only gets a part of the marginals
        kept = 0.98 * point.factors + 0.02 * rows.marginal[:, None]
        n_moved.append(int((np.abs(found.factors - kept) > 1e-9).any(axis=0).sum()))
    assert n_moved[0] == n_moved[2] == n_moved[4] == 5
    assert (n_moved[1], n_moved[3]) == (2, 1)
