"""What `jointpmf.plan` says before a fit against what the fit then took: seconds and memory.

Rows are drawn from a random model of the rank that is fitted. Each fit has a process of its own
and ends as it would by default; the plan is then asked about as many iterations as it made. Memory
is what Python and NumPy held at most, the codes included, in a second fit of few iterations.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jointpmf as jp
from benchmarks.measure import peak_bytes
from jointpmf.threads import n_threads

RESULTS = Path(__file__).parent / "results"

CASES = [
    (2_000, 6, 3, 2),
    (20_000, 10, 4, 5),
    (5_000, 20, 4, 20),
    (1_000_000, 5, 3, 3),
    (20_000, 100, 4, 5),
    (200_000, 10, 4, 5),
    (100_000, 200, 4, 10),
    (1_000, 20_000, 2, 2),
]
"""Rows, variables, levels and rank."""

HEADER = ("rows", "variables", "levels", "rank", "iterations", "took", "planned",
          "took / planned", "held", "planned", "held / planned", "the plan itself")  # fmt: skip


def measured(case: tuple[int, int, int, int]) -> dict[str, float]:
    """Return what a fit takes, and what was planned for its iterations."""
    n_rows, n_variables, levels, rank = case
    truth = jp.random_pmf(jp.Domain.of_sizes([levels] * n_variables), rank, random_state=0)
    codes = jp.Codes(truth.domain, truth.sample(n_rows, random_state=0, backend="codes"))

    def fit(rows: jp.Codes, **options: Any) -> jp.Solution:
        return jp.fit_rows(rows, rank, random_state=0, **options)

    fit(jp.Codes(codes.domain, codes.array[:300]), max_iter=2)  # all is compiled by now
    begin = time.perf_counter()
    solution = fit(codes)
    took = time.perf_counter() - begin
    jp.plan(*case)
    begin = time.perf_counter()
    plan = jp.plan(*case, n_iter=solution.n_iter)
    planning = time.perf_counter() - begin
    held = codes.array.nbytes + peak_bytes(lambda: fit(codes, max_iter=2))
    return {
        "n_iter": solution.n_iter, "took": took, "seconds": plan.seconds, "planning": planning,
        "held": held, "memory": plan.memory,
    }  # fmt: skip


def line_of(case: tuple[int, ...], found: dict[str, float]) -> list[str]:
    """Return a line of the table."""
    return [
        *(f"{size:,}" for size in case),
        f"{found['n_iter']:.0f}",
        f"{found['took']:.3g} s",
        f"{found['seconds']:.3g} s",
        f"{found['took'] / found['seconds']:.2f}",
        f"{found['held'] / 1e6:.3g} MB",
        f"{found['memory'] / 1e6:.3g} MB",
        f"{found['held'] / found['memory']:.2f}",
        f"{found['planning']:.2f} s",
    ]


def main() -> None:
    """Print and write the table; each fit has a process of its own."""
    lines = [list(HEADER), ["---:"] * 12]
    for case in CASES:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.plan", json.dumps(case)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        lines.append(line_of(case, json.loads(done.stdout)))
        print(" | ".join(lines[-1]), flush=True)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    about = f"{datetime.date.today()}, {n_threads()} threads (`python -m benchmarks.plan`)."
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "plan.md").write_text(
        f"# What was planned, and what it took\n\n{about}\n\n{table}\n"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measured(tuple(json.loads(sys.argv[1])))))
    else:
        main()
