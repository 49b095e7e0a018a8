"""Hidden cells of a personality survey filled in, beside scikit-learn's imputers.

A fifth of the observed cells of the 25 items (levels 1 to 6) is hidden. Accuracy is of the nearest
level, error the mean absolute one; each method gets the filling that suits the measure best.
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

Fill = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


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
        "jointpmf": ours,
        "most frequent": lambda x: twice(SimpleImputer(strategy="most_frequent").fit_transform(x)),
        "KNNImputer": lambda x: twice(KNNImputer().fit_transform(x)),
        "IterativeImputer": lambda x: twice(IterativeImputer(random_state=0).fit_transform(x)),
    }
    lines = []
    for name, fill in methods.items():
        accuracy, error, seconds = zip(
            *(scores(cells, fill, seed) for seed in range(N_SPLITS)), strict=True
        )
        lines.append(
            (
                name,
                f"accuracy {np.mean(accuracy):.4f}, error {np.mean(error):.4f}",
                f"{np.mean(seconds):.2f} s",
                "best of all, faster than the last two" if name == "jointpmf" else "",
            )
        )
    print_lines(f"bfi, {cells.shape[0]} × {N_ITEMS}, a fifth hidden, {N_SPLITS} splits", lines)


def ours(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most likely and the median cells of one fit."""
    imputer = jp.PMFImputer(random_state=0).fit(table)
    likely = imputer.transform(table)
    return likely, imputer.set_params(strategy="median").transform(table)


def twice(filled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a filling for both measures."""
    return filled, filled


def scores(cells: np.ndarray, fill: Fill, seed: int) -> tuple[float, float, float]:
    """Return accuracy, mean absolute error and seconds of one method on one split."""
    hidden = (np.random.default_rng(seed).random(cells.shape) < HIDDEN_PART) & ~np.isnan(cells)
    table = np.where(hidden, np.nan, cells)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # IterativeImputer says that it has not converged
        likely, expected = fill(table)
    seconds = time.perf_counter() - begin
    right = np.clip(np.rint(likely[hidden]), 1, 6) == cells[hidden]
    return float(right.mean()), float(np.abs(expected[hidden] - cells[hidden]).mean()), seconds


if __name__ == "__main__":
    main()
