"""Drawing a million rows of ten variables, beside what only making the random numbers takes."""

from __future__ import annotations

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines, seconds

N_ROWS = 10**6


def main() -> None:
    """Measure and print."""
    pmf = jp.random_pmf(jp.Domain.of_sizes([10] * 10), 10, random_state=0)
    generator = np.random.default_rng(0)
    numbers = seconds(lambda: generator.random((11, N_ROWS)), 3)
    lines = []
    for backend, given in (("codes", None), ("polars", None), ("codes", {"x3": {1, 2}})):
        time = seconds(
            lambda b=backend, g=given: pmf.sample(N_ROWS, g, random_state=0, backend=b),  # type: ignore[misc]
            3,
        )
        lines.append(
            (
                f"{backend}{', given a set of levels' if given else ''}",
                f"{time:.2f} s",
                f"random numbers alone {numbers:.2f} s: {time / numbers:.1f}×",
                "about a second",
            )
        )
    print_lines("Sampling 1e6 × 10 rows, rank 10", lines)


if __name__ == "__main__":
    main()
