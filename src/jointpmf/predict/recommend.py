"""What to recommend to whom, how sure that is, and whether predictions are calibrated.

`recommend` answers from a model and what the users rated before; `coverage` compares predicted
distributions with what happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.decode import table_of
from jointpmf.data.encode import encode
from jointpmf.data.pivot import TIE
from jointpmf.data.ratings import Ratings, id_list
from jointpmf.domain import MISSING, check_distinct
from jointpmf.errors import (
    JointPMFError,
    float_array,
    fraction,
    is_hashable,
    listing,
    rectangle,
    shown,
    whole_number,
)
from jointpmf.pmf import JointPMF
from jointpmf.probabilities import SUM_TOLERANCE
from jointpmf.threads import one_blas_thread, row_blocks

_USERS_AT_ONCE = 8192
"""Users whose expectations of all items are held in memory at once."""


def recommend(
    pmf: JointPMF,
    ratings: Ratings,
    n: int = 10,
    users: Iterable[Any] | None = None,
    *,
    probability: float = 0.8,
    backend: str = "polars",
) -> Any:
    """Return the n unrated items each user is expected to rate highest, with how sure that is.

    Parameters
    ----------
    pmf : JointPMF
        The joint distribution of the items' ratings; it may have other variables too.
    ratings : Ratings
        What the users rated. One who rated nothing is answered from the marginals.
    n : int
        How many items per user; there are fewer rows where a user left fewer items unrated.
    users : sequence of ids, optional
        For whom, in this order; by default for all.
    probability : float
        The rating lies in low .. high with at least this probability; it is the shortest such
        range of levels, and of those the most probable.
    backend : {"polars", "pandas", "pyarrow"}
        The kind of table.

    Returns
    -------
    table
        The columns user, item, expected (the mean of the rating given all of the user's ratings),
        low and high; per user the highest expectation first, ties in the order of the items.

    Examples
    --------
    >>> from jointpmf import Codes, Domain, JointPMF, Ratings, Variable
    >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
    >>> alike = JointPMF(domain, [0.2, 0.3, 0.5], [np.eye(3), np.eye(3)])
    >>> ratings = Ratings(["ann", "bob"], Codes(domain, [[2, -1], [-1, -1]]))
    >>> for row in recommend(alike, ratings).rows():
    ...     print(*row[:2], round(row[2], 12), *row[3:])
    ann Brazil 3.0 3 3
    bob Alien 2.3 2 3
    bob Brazil 2.3 2 3
    """
    n = whole_number(n, "n", 1)
    probability = fraction(probability, "the probability")
    _check_knows(pmf, ratings)
    rows = _rows_of(ratings, users)
    codes = Codes(ratings.codes.domain, ratings.codes.array[rows])
    # a recommended item is unrated, so a user's evidence is the same for all of them
    evidence = encode(codes, pmf.domain)
    factors = [pmf.factors[place] for place in pmf.domain.indices(ratings.items)]
    values = np.array(ratings.codes.domain.variables[0].values)
    blocks = [
        _best_of_block(
            pmf.responsibilities(Codes(pmf.domain, evidence.array[begin:end])),
            factors,
            values,
            codes.array[begin:end] == MISSING,
            n,
            probability,
        )
        for begin, end in row_blocks(len(rows), _USERS_AT_ONCE) or [(0, 0)]
    ]
    at, places, expected, low, high = map(np.concatenate, zip(*blocks, strict=True))
    at += np.repeat(np.arange(len(blocks)) * _USERS_AT_ONCE, [len(block[0]) for block in blocks])
    columns = {
        "user": (ratings.users, rows[at]),
        "item": (ratings.items, places),
        "expected": expected,
        "low": (ratings.scale, low),
        "high": (ratings.scale, high),
    }
    return table_of(columns, backend)


def _best_of_block(
    posterior: np.ndarray,
    factors: Sequence[np.ndarray],
    values: np.ndarray,
    is_open: np.ndarray,
    n: int,
    probability: float,
) -> tuple[np.ndarray, ...]:
    """Return row, item, expectation, low and high of the n best open cells of each row."""
    with one_blas_thread:
        expected = posterior @ np.stack([values @ factor for factor in factors], axis=1)
        rows, places = _highest(expected, is_open, n, values)
        low, high = np.empty((2, len(rows)), np.int64)
        ends = np.cumsum(np.bincount(places, minlength=len(factors)))
        by_item = np.split(np.argsort(places, kind="stable"), ends[:-1])
        for factor, here in zip(factors, by_item, strict=True):
            mixed = posterior[rows[here]] @ factor.T
            low[here], high[here] = shortest_ranges(mixed, probability)
    return rows, places, expected[rows, places], low, high


def _check_knows(pmf: JointPMF, ratings: Ratings) -> None:
    if not isinstance(pmf, JointPMF):
        raise JointPMFError(f"the model must be a JointPMF, not {type(pmf).__name__}")
    if not isinstance(ratings, Ratings):
        raise JointPMFError(
            f"ratings must be what pivot_ratings returns, not {type(ratings).__name__}"
        )
    for variable in ratings.codes.domain:
        if variable.name not in pmf.domain:
            raise JointPMFError(
                f"the model does not know item {variable.name!r}; "
                "with_unrated_items adds what nobody rated"
            )
        if variable != pmf.domain[variable.name]:
            raise JointPMFError(
                f"item {variable.name!r} has the levels {listing(pmf.domain[variable.name].levels)}"
                f" in the model, but the ratings have the scale {listing(variable.levels)}"
            )


def _rows_of(ratings: Ratings, users: Iterable[Any] | None) -> np.ndarray:
    if users is None:
        return np.arange(len(ratings))
    asked = id_list(users, "users")
    row_of = {one: row for row, one in enumerate(ratings.users.tolist())}
    unknown = [one for one in asked if not is_hashable(one) or one not in row_of]
    if unknown:
        raise JointPMFError(f"there is no user {listing(unknown)} in the ratings")
    check_distinct(asked, "the list of users")
    return np.array([row_of[one] for one in asked], np.int64)


def _highest(
    expected: np.ndarray, is_open: np.ndarray, n: int, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the places of the n highest open cells of each row, in order."""
    step = TIE * ((values[-1] - values[0]) or 1.0)
    loss = np.where(is_open, -np.round(expected / step), np.inf)
    order = np.argsort(loss, axis=1, kind="stable")[:, :n]
    at, column = np.nonzero(np.take_along_axis(is_open, order, axis=1))
    return at, order[at, column]


def shortest_ranges(probabilities: np.ndarray, probability: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last code of each row's shortest range of this probability.

    Of several ranges of that length it is the most probable one, and then the lowest.

    Examples
    --------
    >>> shortest_ranges(np.array([[0.1, 0.5, 0.3, 0.1], [0.9, 0.0, 0.0, 0.1]]), 0.8)
    (array([1, 0]), array([2, 0]))
    """
    n_rows, size = probabilities.shape
    sums = np.hstack([np.zeros((n_rows, 1)), probabilities.cumsum(axis=1)])
    low, high = np.zeros(n_rows, np.int64), np.full(n_rows, size - 1)
    left = np.arange(n_rows)
    for width in range(1, size):
        inside = sums[left, width:] - sums[left, :-width]
        is_enough = inside.max(axis=1) >= probability - TIE
        found = left[is_enough]
        low[found] = np.round(inside[is_enough] / TIE).argmax(axis=1)
        high[found] = low[found] + width - 1
        left = left[~is_enough]
    return low, high


def coverage(probabilities: Any, truth: Any, level: Any) -> Any:
    """Return how often what happened lies in the most probable levels that have a probability.

    Levels enter the set from the most probable on, ties in their order, until the set has the
    probability `level`. The level at the border counts by the part of it that the set needs, so
    that a calibrated model has a coverage of exactly `level` on average, also where its
    distributions have few levels.

    Parameters
    ----------
    probabilities : array of shape (rows, size)
        Predictive distributions, such as `pmf.predict_proba` returns.
    truth : array of shape (rows,)
        Codes of what happened.
    level : float or array of float
        The nominal probability, between 0 and 1.

    Returns
    -------
    float, or array of the shape of `level`
        Below `level` the model is too sure, above it not sure enough.

    Examples
    --------
    >>> coverage([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]], [1, 0], 0.625)
    0.25
    """
    probabilities, truth = _checked_predictions(probabilities, truth)
    levels = _checked_levels(level)
    codes = np.arange(probabilities.shape[1])
    own = np.take_along_axis(probabilities, truth[:, None], axis=1)
    is_ahead = (probabilities > own) | ((probabilities == own) & (codes < truth[:, None]))
    ahead, own = (probabilities * is_ahead).sum(axis=1), own[:, 0]
    safe = np.where(own > 0, own, 1.0)  # what cannot happen is in no set
    parts = [
        np.where(own > 0, np.clip((one - ahead) / safe, 0, 1), 0.0).mean() for one in levels.flat
    ]
    return np.array(parts).reshape(levels.shape) if levels.ndim else float(parts[0])


def _checked_predictions(probabilities: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
    probabilities = float_array(probabilities, "probabilities and truth must be arrays of numbers")
    truth = rectangle(truth, "truth")
    if probabilities.ndim != 2 or not len(probabilities):
        raise JointPMFError(
            f"probabilities must be of shape (rows, levels), not {probabilities.shape}"
        )
    if truth.shape != probabilities.shape[:1] or truth.dtype.kind not in "iu":
        raise JointPMFError(
            f"truth must be {len(probabilities)} codes, one per row of the probabilities, "
            f"not of type {truth.dtype} and shape {truth.shape}"
        )
    sums = np.abs(probabilities.sum(axis=1) - 1) <= SUM_TOLERANCE
    improper = np.flatnonzero(~(sums & (probabilities >= 0).all(axis=1)))
    if len(improper):
        raise JointPMFError(
            f"the probabilities of row {improper[0]} must be non-negative and sum to one"
        )
    outside = np.flatnonzero((truth < 0) | (truth >= probabilities.shape[1]))
    if len(outside):
        raise JointPMFError(
            f"the code {truth[outside[0]]} of row {outside[0]} is none of the "
            f"{probabilities.shape[1]} levels"
        )
    return probabilities, truth.astype(np.int64)


def _checked_levels(level: Any) -> np.ndarray:
    levels = rectangle(level, "levels")
    is_number = levels.dtype.kind in "iuf"
    if not is_number or not ((levels > 0) & (levels < 1)).all():
        raise JointPMFError(f"level must lie between 0 and 1, not {shown(level)}")
    return levels
