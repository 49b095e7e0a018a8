"""How much of what tables know a fit uses: its divergence over the smallest that is possible.

Eight variables of five levels, rank 6, all triples counted over rows of which 20 % of the cells are
missing, random models. The measure is KL(truth ‖ fit) over the Cramér–Rao bound of the rows, a mean
over the models. The limit from the tables is the least that any estimate has that sees the triples
and not the rows; both come from `error_limits`. As in `benchmarks.estimation` every fit is averaged
with the product of its own marginals, as one row. The fit by likelihood ends with the efficient
step where two starts agree (docs/math.md, eq. 51). Results are written beside this file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import polars as pl
from paper.error_limits import error_limits
from rich.progress import track

import jointpmf as jp
from benchmarks.estimation import (
    MISSING_PART,
    N_ROWS,
    N_TRUTHS,
    RANK,
    RESULTS,
    holed,
    planted,
    text_of_means,
    with_one_row,
)

METHODS: dict[str, Callable[[jp.Codes, jp.MarginalSet, int], jp.JointPMF]] = {
    "least squares": lambda rows, triples, seed: fitted(triples, seed, "squares"),
    "likelihood": lambda rows, triples, seed: fitted(triples, seed, "likelihood"),
    "EM on the rows": lambda rows, triples, seed: jp.fit_rows(rows, RANK, random_state=seed).pmf,
}
LIMIT = "limit from the triples"


def fitted(triples: jp.MarginalSet, seed: int, loss: str) -> jp.JointPMF:
    """Return the fit to all triples."""
    return jp.fit_marginals(triples, RANK, loss=loss, random_state=seed).pmf


def main() -> None:
    """Fit and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=N_TRUTHS)
    n_models = parser.parse_args().models
    lines: list[tuple[int, int, str, float]] = []
    for seed in track(range(n_models), "efficiency"):
        lines += ratios(seed)
        table = pl.DataFrame(lines, ["model", "rows", "method", "ratio"], orient="row")
        table.write_csv(RESULTS / "efficiency.csv")
    (RESULTS / "efficiency.md").write_text(text(table))
    print(text(table))


def ratios(seed: int) -> list[tuple[int, int, str, float]]:
    """Return the divergence of each method over the bound of the rows, for one model."""
    truth, generator, lines = planted(seed), np.random.default_rng(1000 + seed), []
    limits = error_limits(truth, 3, n_rows=1, missing=MISSING_PART, n_samples=200_000)
    bound, limit = limits.kl_bound or np.nan, limits.kl_limit or np.nan
    for n_rows in N_ROWS:
        rows = holed(truth, n_rows, generator)
        triples = jp.MarginalSet.from_table(rows, order=3)
        for name, fit in METHODS.items():
            found = with_one_row(fit(rows, triples, seed), n_rows)
            ratio = jp.kl_divergence(truth, found).value / (bound / n_rows)
            lines.append((seed, n_rows, name, ratio))
        lines.append((seed, n_rows, LIMIT, limit / bound))
    return lines


def text(table: pl.DataFrame) -> str:
    """Return means and standard errors of the ratios as a table."""
    title = "KL(truth ‖ fit) over the Cramér–Rao bound of the rows: mean ± standard error"
    return text_of_means(table, title, [*METHODS, LIMIT], "ratio", 3, "benchmarks.efficiency")


if __name__ == "__main__":
    main()
