"""Biased matrix factorization of scikit-surprise, with all that it leaves open chosen fairly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pandas as pd
from surprise import SVD, Dataset, Reader

import jointpmf as jp

GRID: dict[str, tuple[Any, ...]] = {
    "n_epochs": (10, 20, 40, 80, 160, 320, 640),
    "reg_all": (0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
    "n_factors": (2, 5, 10, 20, 50, 100),
}
"""Settings in the order in which they are searched."""

FEW_EPOCHS = 40
FIRST = (
    ({"n_epochs": 20, "reg_all": 0.05, "n_factors": 10}, FEW_EPOCHS),
    ({"n_epochs": 40, "reg_all": 0.02, "n_factors": 20}, FEW_EPOCHS),
    ({"n_epochs": 160, "reg_all": 0.05, "n_factors": 20}, max(GRID["n_epochs"])),
)
"""Where the search begins, and the most epochs that it may go to: there are several valleys, few
epochs have the best of theirs, and many too."""


class Judge(Protocol):
    """What predictions of hidden ratings are judged by."""

    row: np.ndarray
    item: np.ndarray

    def rmse(self, predicted: np.ndarray) -> float:
        """Return the root of the mean squared error."""


def trainset_of(ratings: jp.Ratings) -> Any:
    """Return known ratings as scikit-surprise wants them: user, item and rating by position."""
    user, item = np.nonzero(ratings.codes.array != jp.MISSING)
    scale = np.array(ratings.scale, float)
    rating = scale[ratings.codes.array[user, item]]
    table = pd.DataFrame({"user": user, "item": item, "rating": rating})
    reader = Reader(rating_scale=(scale[0], scale[-1]))
    return Dataset.load_from_df(table, reader).build_full_trainset()


def factorized(trainset: Any, shape: tuple[int, int], setting: dict[str, Any]) -> np.ndarray:
    """Return the predictions of all ratings; who is unknown gets what is known of the rest."""
    model = SVD(random_state=0, **setting).fit(trainset)
    users = [trainset.to_raw_uid(k) for k in range(trainset.n_users)]
    items = [trainset.to_raw_iid(k) for k in range(trainset.n_items)]
    of_user, of_item = np.zeros((shape[0], 1)), np.zeros((1, shape[1]))
    of_user[users, 0], of_item[0, items] = model.bu, model.bi
    both = np.zeros(shape)
    both[np.ix_(users, items)] = model.pu @ model.qi.T
    low, high = trainset.rating_scale
    return np.clip(trainset.global_mean + of_user + of_item + both, low, high)


def tuned_factorization(
    ratings: jp.Ratings, judge: Judge, max_epochs: int = max(GRID["n_epochs"])
) -> Iterator[tuple[dict[str, Any], float, np.ndarray]]:
    """Yield every setting that is tried, its seconds and its predictions of all ratings.

    From several points of the grid one setting is varied at a time, by steps while that helps,
    until no step does. (All of the grid takes several minutes of a core for one split of Jester.)
    """
    trainset = trainset_of(ratings)
    costs: dict[tuple[Any, ...], float] = {}

    def tried(setting: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float, np.ndarray]]:
        key = tuple(setting.values())
        if key not in costs:
            begin = time.perf_counter()
            table = factorized(trainset, ratings.codes.array.shape, setting)
            seconds = time.perf_counter() - begin
            costs[key] = judge.rmse(table[judge.row, judge.item])
            yield setting, seconds, table

    for first, most in FIRST:
        within = min(most, max_epochs)
        grid = {**GRID, "n_epochs": tuple(n for n in GRID["n_epochs"] if n <= within)}
        best, before = first, None
        yield from tried(best)
        while best != before:
            before = best
            for name, choices in grid.items():
                for step in (1, -1):
                    while 0 <= (k := choices.index(best[name]) + step) < len(choices):
                        other = {**best, name: choices[k]}
                        yield from tried(other)
                        if costs[tuple(other.values())] >= costs[tuple(best.values())]:
                            break
                        best = other
