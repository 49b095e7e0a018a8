"""Counting all triples of a million incomplete rows, against numpy's bincount alone."""

from __future__ import annotations

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines, seconds
from jointpmf.marginals.counting import count_tables, names_of_order, positions_of
from jointpmf.threads import limited_to, n_threads

N_ROWS, N_VARIABLES, SIZE, MISSING_PART = 10**6, 10, 10, 0.3


def main() -> None:
    """Measure and print."""
    generator = np.random.default_rng(0)
    rows = generator.integers(0, SIZE, (N_ROWS, N_VARIABLES))
    rows[generator.random(rows.shape) < MISSING_PART] = jp.MISSING
    codes = jp.Codes(jp.Domain.of_sizes([SIZE] * N_VARIABLES), rows)
    triples = positions_of(codes.domain, names_of_order(codes.domain, 3))

    def index(triple: tuple[int, ...]) -> np.ndarray:
        a, b, c = (rows[:, n] for n in triple)
        return ((a * SIZE + b) * SIZE + c)[(a >= 0) & (b >= 0) & (c >= 0)]

    def numpy_counts(indices: list[np.ndarray]) -> list[np.ndarray]:
        return [np.bincount(i, minlength=SIZE**3) for i in indices]

    indices = [index(triple) for triple in triples]
    ours = count_tables(codes, triples, None)
    for table, expected in zip(ours, numpy_counts(indices), strict=True):
        assert np.array_equal(np.asarray(table).ravel(), expected)
    alone = seconds(lambda: numpy_counts(indices), 5)
    built = seconds(lambda: numpy_counts([index(triple) for triple in triples]), 1)
    mine = seconds(lambda: count_tables(codes, triples, None), 5)
    with limited_to(1):
        single = seconds(lambda: count_tables(codes, triples, None), 5)
    print_lines(
        "All 120 triples of 1e6 × 10 rows, ten levels, 30 % missing",
        [
            (
                f"from codes to counts, {n_threads()} threads",
                f"{1e3 * mine:.0f} ms",
                f"bincount of ready indices {1e3 * alone:.0f} ms: {mine / alone:.2f}×",
                "at most 3×",
            ),
            (
                "  one thread",
                f"{1e3 * single:.0f} ms",
                f"the same: {single / alone:.2f}×; indices built too {1e3 * built:.0f} ms: "
                f"{single / built:.2f}×",
                "",
            ),
        ],
    )


if __name__ == "__main__":
    main()
