"""How often tests refute the rank that a table was drawn with: VLMR beside the bootstrap."""

from __future__ import annotations

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines

N_TABLES = 40
"""Tables that are drawn from each model."""

N_BOOTSTRAP = 19
"""Tables that each bootstrap test simulates: its p-value can be 0.05."""

MODELS = [(1, 6, 2, 0.8, 500), (2, 6, 2, 0.8, 1000), (2, 6, 3, 0.7, 500), (3, 6, 3, 0.8, 1000)]
"""Rank, variables, levels, the probability of the level that a component prefers, and rows."""


def planted(rank: int, n_variables: int, size: int, sure: float) -> jp.JointPMF:
    """Return a model whose components prefer different levels and are of different sizes."""
    factors = []
    for n in range(n_variables):
        factor = np.full((size, rank), (1 - sure) / (size - 1))
        for f in range(rank):
            factor[(f + n * (f > 1)) % size, f] = sure
        factors.append(factor)
    weights = np.arange(rank, 0, -1) + 1.0
    domain = jp.Domain.of_sizes([size] * n_variables)
    return jp.JointPMF(domain, weights / weights.sum(), factors)


def refuted(truth: jp.JointPMF, rank: int, n_rows: int) -> tuple[float, float, float]:
    """Return how often each test refutes the rank at 5 %: VLMR, adjusted, and the bootstrap."""
    p_values = []
    for seed in range(N_TABLES):
        rows = truth.sample(n_rows, random_state=seed, backend="codes")
        codes = jp.Codes(truth.domain, rows)
        curve = jp.choose_rank(codes, [rank, rank + 1], criterion="bic", random_state=0)
        by_simulation = jp.bootstrap_test(codes, rank, n_bootstrap=N_BOOTSTRAP, random_state=0)
        vlmr = curve.vlmr(rank)
        p_values.append((vlmr.p_value, vlmr.adjusted_p_value, by_simulation.p_value))
    first, second, third = (np.array(p_values) <= 0.05).mean(axis=0)
    return float(first), float(second), float(third)


def main() -> None:
    """Simulate and print."""
    lines = []
    for rank, n_variables, size, sure, n_rows in MODELS:
        found = refuted(planted(rank, n_variables, size, sure), rank, n_rows)
        first, second, third = (f"{100 * share:.0f} %" for share in found)
        what = f"rank {rank}, {n_variables} × {size} levels, {n_rows} rows"
        lines.append((what, first, second, third))
    title = f"Refuted at 5 %, of {N_TABLES} tables: VLMR, adjusted, bootstrap"
    print_lines(title, lines)


if __name__ == "__main__":
    main()
