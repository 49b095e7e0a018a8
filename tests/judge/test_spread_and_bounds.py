"""Where the data do not decide: the spread lies within the bounds, and the truth too."""

import numpy as np
import pytest

import jointpmf as jp
from support.planted import planted


@pytest.mark.parametrize("seed", range(6))
def test_the_spread_is_within_the_bounds_and_so_is_the_truth(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(2, 4, size=3)
    truth = planted(sizes, 2, seed=seed)
    marginals = truth.marginals(order=2)
    fitted = jp.fit_marginals(marginals, rank=3, random_state=0)
    cell, table = {"x0": 0, "x1": 0, "x2": 1}, truth.table()
    part = {"x0": 0, "x2": 1}, {"x1": 0}
    query, given = part if seed % 2 else (cell, None)
    answer = table[0, 0, 1] / (table[:, 0].sum() if seed % 2 else 1)
    low, high = jp.bounds(marginals, query, given)
    assert low - 1e-9 <= answer <= high + 1e-9
    spread = fitted.spread(query, given=given, n_starts=2, random_state=0)
    slack = 5e-4 / table[:, 0].sum()  # a fit meets tables to 1e-4, not exactly
    assert low - slack <= spread.low <= spread.estimate <= spread.high <= high + slack
    assert spread.high > spread.low + 1e-5
