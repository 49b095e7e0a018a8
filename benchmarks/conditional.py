"""P(one variable | all others) for 100,000 rows, against the bare numpy computation."""

from __future__ import annotations

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines, seconds
from jointpmf.threads import limited_to, n_threads

N_ROWS, SIZES, RANK = 100_000, [10] * 10, 10


def main() -> None:
    """Measure and print."""
    pmf = jp.random_pmf(jp.Domain.of_sizes(SIZES), RANK, random_state=0)
    rows = np.array(pmf.sample(N_ROWS, random_state=0, backend="codes"))

    def bare() -> np.ndarray:
        posterior = np.tile(pmf.weights, (N_ROWS, 1))
        for n in range(1, len(SIZES)):
            posterior *= pmf.factors[n][rows[:, n]]
        posterior /= posterior.sum(axis=1, keepdims=True)
        return posterior @ pmf.factors[0].T

    np.testing.assert_allclose(pmf.predict_proba(rows, "x0"), bare(), atol=1e-14)
    plain = seconds(bare)
    ours = seconds(lambda: pmf.predict_proba(rows, "x0"))
    with limited_to(1):
        single = seconds(lambda: pmf.predict_proba(rows, "x0"))
    lines = [
        (
            what,
            f"{1e3 * took:.1f} ms",
            f"numpy {1e3 * plain:.1f} ms: {took / plain:.2f}×",
            "at most 2×",
        )
        for what, took in ((f"{n_threads()} threads", ours), ("one thread", single))
    ]
    print_lines("P(x0 | the other nine) of 100,000 rows from an array, rank 10", lines)


if __name__ == "__main__":
    main()
