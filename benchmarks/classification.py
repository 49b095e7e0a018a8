"""Classes of four well-known sets and a made one, features complete and with 30 % deleted.

The made one is a whole grid of features with a class by nested rules, as large as the well-known
set of nursery applications. Random splits, a fifth for the test. `PMFClassifier()` chooses its
rank and when to stop inside of the training part. Beside it histogram gradient boosting with its
own way of missing values; seconds are of one fit, the shortest of all splits. Needs the folder
`classification` in `JOINTPMF_DATA`.
"""

from __future__ import annotations

import os
import time
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from rich.progress import track
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

import jointpmf as jp
from benchmarks.measure import print_lines

SETS = {
    "car": ("class", 0.94),
    "house-votes-84": ("Class", 0.94),
    "mushroom": ("class", 0.997),
    "credit_crx": ("class", 0.85),
}
"""The column with the class, and the accuracy asked."""

N_SPLITS, DELETED_PART = 10, 0.3


class Scores(NamedTuple):
    """How well one method does on one split, and how long its fit takes."""

    accuracy: float
    log_loss: float
    holed: float
    seconds: float


def main() -> None:
    """Measure and print."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("classification: set JOINTPMF_DATA to a folder with classification/car.csv.gz …")
        return
    for name, (target, asked) in SETS.items():
        table = pl.read_csv(f"{folder}/classification/{name}.csv.gz", infer_schema=False)
        features = table.drop(target).with_columns(map(as_numbers, table.drop(target)))
        compare(name, features, table[target].to_numpy(), f"at least {asked}")
    compare("a grid of rules", *grid_of_rules(), "report")


def compare(name: str, features: pl.DataFrame, labels: np.ndarray, asked: str) -> None:
    """Print what we and boosting reach on one set."""
    splits = track(range(N_SPLITS), name, transient=True)
    found = [both_scores(features, labels, seed) for seed in splits]
    print_lines(f"{name}, {len(features)} rows, {N_SPLITS} splits", lines_of(found, asked))


def grid_of_rules() -> tuple[pl.DataFrame, np.ndarray]:
    """Return all combinations of eight features, and a class that follows from them by rules."""
    grid = np.array(list(product(*map(range, (3, 5, 4, 4, 3, 2, 3, 3)))))
    work = grid[:, 0] + grid[:, 1]
    home = np.maximum(grid[:, 2:4].sum(axis=1) / 2, grid[:, 4:6].sum(axis=1))
    need = 1.2 * work + 0.6 * home + 1.5 * (grid[:, 6] == 2) + 2.2 * grid[:, 7]
    classes = np.digitize(need, np.quantile(need[grid[:, 7] < 2], [0.04, 0.53]))
    labels = np.where(grid[:, 7] == 2, "refused", np.array(["last", "later", "first"])[classes])
    texts = {f"feature {n}": pl.Series(column).cast(pl.String) for n, column in enumerate(grid.T)}
    return pl.DataFrame(texts), labels


def as_numbers(column: pl.Series) -> pl.Series:
    """Return a column without empty texts; as numbers, if fractions are among them."""
    known = column.replace("", None)
    has_fractions = known.drop_nulls().str.contains(r"^\d+\.\d+$").any()
    return known.cast(pl.Float64) if has_fractions else known


def lines_of(found: list[tuple[Scores, Scores]], asked: str) -> list[tuple[str, str, str, str]]:
    """Return what is printed of all splits."""
    ours, boosting = (np.array(scores) for scores in zip(*found, strict=True))
    mine, theirs = (Scores(*scores.mean(axis=0).tolist()) for scores in (ours, boosting))
    seconds, of_boosting = ours[:, 3].min(), boosting[:, 3].min()
    deleted = f"{DELETED_PART:.0%} of the test features deleted"
    return [
        (
            "accuracy",
            f"{mine.accuracy:.4f}",
            f"boosting {theirs.accuracy:.4f}",
            asked,
        ),
        ("log-loss", f"{mine.log_loss:.4f}", f"boosting {theirs.log_loss:.4f}", "report"),
        (deleted, f"{mine.holed:.4f}", f"boosting {theirs.holed:.4f}", "report"),
        (
            "a fit",
            f"{seconds:.2f} s, {seconds / of_boosting:.1f}×",
            f"boosting {of_boosting:.2f} s",
            "at most 5×",
        ),
    ]


def both_scores(features: pl.DataFrame, labels: np.ndarray, seed: int) -> tuple[Scores, Scores]:
    """Return what we and boosting reach on one split."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(features))
    test, train = np.split(order, [len(order) // 5])
    deleted = generator.random((len(test), features.width)) < DELETED_PART
    whole = features[test]
    holed = whole.with_columns(
        pl.when(pl.Series(~deleted[:, n])).then(pl.col(name)).alias(name)
        for n, name in enumerate(features.columns)
    )
    texts = [n for n, kind in enumerate(features.dtypes) if kind == pl.String]
    codes = np.column_stack([as_codes(column) for column in features])
    boosting = HistGradientBoostingClassifier(categorical_features=texts, random_state=seed)
    ours = jp.PMFClassifier(random_state=seed)
    holed_codes = np.where(deleted, np.nan, codes[test])
    return (
        scores(ours, features[train], labels[train], whole, holed, labels[test]),
        scores(boosting, codes[train], labels[train], codes[test], holed_codes, labels[test]),
    )


def as_codes(column: pl.Series) -> np.ndarray:
    """Return a column as boosting reads it: texts as whole numbers, what is missing as NaN."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical).to_physical()
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy()


def scores(
    model: Any, train: Any, labels: np.ndarray, whole: Any, holed: Any, right: np.ndarray
) -> Scores:
    """Return what a model reaches."""
    begin = time.perf_counter()
    model.fit(train, labels)
    seconds = time.perf_counter() - begin
    probabilities = model.predict_proba(whole)
    return Scores(
        float((model.classes_[probabilities.argmax(axis=1)] == right).mean()),
        float(log_loss(right, probabilities, labels=model.classes_)),
        float((model.predict(holed) == right).mean()),
        seconds,
    )


if __name__ == "__main__":
    main()
