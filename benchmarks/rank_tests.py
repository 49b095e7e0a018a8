"""How often the bootstrap test rejects the rank that a table was drawn with."""

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


def rejected(truth: jp.JointPMF, rank: int, n_rows: int) -> float:
    """Return the share of tables for which the test rejects the rank at 5 %."""
    p_values = []
    for seed in range(N_TABLES):
        rows = truth.sample(n_rows, random_state=seed, backend="codes")
        codes = jp.Codes(truth.domain, rows)
        test = jp.bootstrap_test(codes, rank, n_bootstrap=N_BOOTSTRAP, random_state=0)
        p_values.append(test.p_value)
    return float((np.array(p_values) <= 0.05).mean())


def main() -> None:
    """Simulate and print."""
    lines = []
    for rank, n_variables, size, sure, n_rows in MODELS:
        share = rejected(planted(rank, n_variables, size, sure), rank, n_rows)
        what = f"rank {rank}, {n_variables} × {size} levels, {n_rows} rows"
        lines.append((what, f"{100 * share:.0f} %", "", "5 %"))
    print_lines(f"Rejected at 5 %, of {N_TABLES} tables", lines)


if __name__ == "__main__":
    main()
