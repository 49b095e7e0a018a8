"""Hidden cells of a personality survey filled in, beside scikit-learn's imputers.

A fifth of the observed cells of the 25 items (levels 1 to 6) is hidden. Accuracy is of the nearest
level; error is the mean absolute one, of what was filled in and of the nearest level to it.
Needs `survey/bfi.csv.gz` in `JOINTPMF_DATA`.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

import jointpmf as jp
from benchmarks.measure import print_lines

HIDDEN_PART, N_ITEMS, N_SPLITS = 0.2, 25, 3

Fill = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    """Measure and print."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("imputation: set JOINTPMF_DATA to a folder with survey/bfi.csv.gz")
        return
    table = pl.read_csv(f"{folder}/survey/bfi.csv.gz", null_values=["NA", ""])
    items = [name for name in table.columns if name[0] in "ACENO" and name[1:].isdigit()]
    cells = table.select(items).to_numpy().astype(float)
    assert cells.shape[1] == N_ITEMS
    methods: dict[str, Fill] = {
        "jointpmf, median": jp.PMFImputer(strategy="median", random_state=0).fit_transform,
        "jointpmf, mode": jp.PMFImputer(strategy="mode", random_state=0).fit_transform,
        "most frequent": SimpleImputer(strategy="most_frequent").fit_transform,
        "KNNImputer": KNNImputer().fit_transform,
        "IterativeImputer": IterativeImputer(random_state=0).fit_transform,
    }
    lines = []
    for name, fill in methods.items():
        accuracy, error, rounded, seconds = np.mean(
            [scores(cells, fill, seed) for seed in range(N_SPLITS)], axis=0
        )
        lines.append(
            (
                name,
                f"accuracy {accuracy:.4f}, error {error:.4f}, to the nearest level {rounded:.4f}",
                f"{seconds:.2f} s",
                "best of all, faster than the last two" if name == "jointpmf, median" else "",
            )
        )
    print_lines(f"bfi, {cells.shape[0]} × {N_ITEMS}, a fifth hidden, {N_SPLITS} splits", lines)


def scores(cells: np.ndarray, fill: Fill, seed: int) -> tuple[float, float, float, float]:
    """Return accuracy, mean absolute errors and seconds of one method on one split."""
    hidden = (np.random.default_rng(seed).random(cells.shape) < HIDDEN_PART) & ~np.isnan(cells)
    table = np.where(hidden, np.nan, cells)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # IterativeImputer says that it has not converged
        filled = fill(table)[hidden]
    seconds = time.perf_counter() - begin
    truth, nearest = cells[hidden], np.clip(np.rint(filled), 1, 6)
    error, rounded = (float(np.abs(guess - truth).mean()) for guess in (filled, nearest))
    return float((nearest == truth).mean()), error, rounded, seconds


if __name__ == "__main__":
    main()
