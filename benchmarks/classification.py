"""Classes of three well-known sets, features complete and with 30 % of them deleted.

Ten random splits, a fifth for the test. `PMFClassifier()` chooses its rank and when to stop inside
of the training part. Beside it naive Bayes, and histogram gradient boosting with its own way of
missing values. Needs the folder `classification` in `JOINTPMF_DATA`.
"""

from __future__ import annotations

import os
import time

import numpy as np
import polars as pl
from rich.progress import track
from sklearn.ensemble import HistGradientBoostingClassifier

import jointpmf as jp
from benchmarks.measure import print_lines

SETS = {
    "car": ("class", 0.94, 0.84),
    "house-votes-84": ("Class", 0.94, 0.91),
    "mushroom": ("class", 0.997, 0.945),
}
"""The column with the class, the accuracy asked, and what is known of naive Bayes."""

N_SPLITS, DELETED_PART = 10, 0.3


def main() -> None:
    """Measure and print."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("classification: set JOINTPMF_DATA to a folder with classification/car.csv.gz …")
        return
    for name, (target, asked, bayes) in SETS.items():
        table = pl.read_csv(f"{folder}/classification/{name}.csv.gz", infer_schema=False)
        features = table.drop(target).with_columns(pl.all().replace("", None))
        found = [
            accuracies(features, table[target].to_numpy(), seed)
            for seed in track(range(N_SPLITS), name, transient=True)
        ]
        ours, holed, boosted, boosted_holed, took = np.mean(found, axis=0)
        print_lines(
            f"{name}, {len(table)} rows, {N_SPLITS} splits",
            [
                (
                    "accuracy",
                    f"{ours:.4f}, {took:.1f} s a fit",
                    f"boosting {boosted:.4f}; naive Bayes {bayes}",
                    f"at least {asked}",
                ),
                (
                    f"{DELETED_PART:.0%} of the test features deleted",
                    f"{holed:.4f}",
                    f"boosting {boosted_holed:.4f}",
                    "report",
                ),
            ],
        )


def accuracies(
    features: pl.DataFrame, labels: np.ndarray, seed: int
) -> tuple[float, float, float, float, float]:
    """Return our accuracies and boosting's, complete and with holes, and our seconds."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(features))
    test, train = np.split(order, [len(order) // 5])
    deleted = generator.random((len(test), features.width)) < DELETED_PART
    begin = time.perf_counter()
    ours = jp.PMFClassifier(random_state=seed).fit(features[train], labels[train])
    took = time.perf_counter() - begin
    codes = jp.encode(features).array.astype(float)
    codes[codes < 0] = np.nan
    categories = [n for n in range(features.width) if np.nanmax(codes[:, n]) > 1]
    boosting = HistGradientBoostingClassifier(categorical_features=categories, random_state=seed)
    boosting.fit(codes[train], labels[train])
    whole = features[test]
    holed = whole.with_columns(
        pl.when(pl.Series(~deleted[:, n])).then(pl.col(name)).alias(name)
        for n, name in enumerate(features.columns)
    )
    right = labels[test]
    return (
        float((ours.predict(whole) == right).mean()),
        float((ours.predict(holed) == right).mean()),
        float((boosting.predict(codes[test]) == right).mean()),
        float((boosting.predict(np.where(deleted, np.nan, codes[test])) == right).mean()),
        took,
    )


if __name__ == "__main__":
    main()
