"""The published maximum log-likelihoods of poLCA's examples, by default settings.

Needs the folder `latent-class` in `JOINTPMF_DATA`.
"""

from __future__ import annotations

import os
import time

import polars as pl

import jointpmf as jp
from benchmarks.measure import print_lines

PUBLISHED = [
    ("carcinoma", 2, "-317.2568"),
    ("carcinoma", 3, "-293.705"),
    ("carcinoma", 4, "-289.2858"),
    ("cheating", 2, "-440.0271"),
    ("election", 1, "-18647.31"),
    ("election", 2, "-17344.92"),
    ("election", 3, "-16714.66"),
]
"""poLCA 1.6; election on the complete cases of its twelve trait items."""


def read(folder: str, name: str) -> pl.DataFrame:
    """Return the items of an example, missing answers included."""
    table = pl.read_csv(f"{folder}/latent-class/{name}.csv.gz")
    if name == "cheating":
        return table.drop("GPA")
    return table[:, :12] if name == "election" else table


def main() -> None:
    """Fit and print."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("latent_class: set JOINTPMF_DATA to a folder with latent-class/carcinoma.csv.gz …")
        return
    lines = []
    for name, rank, published in PUBLISHED:
        table = read(folder, name).drop_nulls()
        lines.append((f"{name}, rank {rank}", *found(table, rank), published))
    table = read(folder, "election")
    what = f"election, rank 3, all {len(table)} rows with missing answers"
    lines.append((what, *found(table, 3), "at least -21311.54"))
    print_lines("Maximum log-likelihoods, default settings", lines)


def found(table: pl.DataFrame, rank: int) -> tuple[str, str]:
    """Return the maximum and the time."""
    begin = time.perf_counter()
    solution = jp.fit_rows(table, rank, random_state=0)
    took = time.perf_counter() - begin
    return f"{jp.summary(solution.pmf, table).log_likelihood:.4f}", f"{took:.2f} s"


if __name__ == "__main__":
    main()
