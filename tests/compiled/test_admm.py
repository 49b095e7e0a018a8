"""One block of ADMM, against the solution of its least-squares problem."""

import numpy as np
import pytest

from jointpmf.compiled.simplex import solve_block


@pytest.mark.parametrize("per_row", [True, False])
def test_a_feasible_solution_is_found(per_row):
    generator = np.random.default_rng(0)
    root = generator.random((3, 3))
    gram = root @ root.T + np.eye(3)
    if per_row:
        expected = generator.dirichlet(np.ones(4), 3)
    else:
        expected = generator.dirichlet(np.ones(3))[:, None]
    value = np.full(expected.shape, 1 / expected.shape[per_row])
    found = solve_block(gram, gram @ expected, value, np.zeros_like(value), per_row, 2000, 1e-12)
    np.testing.assert_allclose(value, expected, atol=1e-9)
    assert 0 < found[0] < 2000


def test_the_first_step_solves_the_shifted_problem():
    generator = np.random.default_rng(0)
    root = generator.normal(size=(9, 7))
    gram, cross, value = root.T @ root, generator.random((7, 4)), np.full((7, 4), 0.25)
    rho, dual = np.trace(gram) / 7, np.zeros((7, 4))
    expected = np.linalg.solve(gram + rho * np.eye(7), cross + rho * value)
    solve_block(gram, cross, value, dual, True, 1, 0.0)
    np.testing.assert_allclose(value - dual, expected, atol=1e-12)
    np.testing.assert_allclose(value.sum(axis=1), 1, atol=1e-14)
