"""A long table, with a row per rating → `Ratings`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointpmf.data.codes import Codes, code_dtype
from jointpmf.data.encode import levels_and_codes
from jointpmf.data.ratings import Ratings, checked_scale, id_array, id_list, is_finite_number
from jointpmf.domain import MISSING, Domain, Variable, check_distinct, name_list
from jointpmf.errors import JointPMFError, listing, one_of, shown, text_of_count, whole_number

logger = logging.getLogger("jointpmf")

_MAX_SCALE = 100
"""A column with more distinct numbers is no scale of ratings."""

TIE = 1e-9
"""Means closer to the middle of two levels, in parts of their distance, count as a tie."""


def pivot_ratings(
    table: Any,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    *,
    scale: Iterable[float] | None = None,
    items: Iterable[Any] | None = None,
    n_items: int | None = None,
    duplicates: str = "error",
) -> Ratings:
    """Return the ratings of a long table, which has a row per rating.

    Rows without a rating (null, NaN) are left out. The order of the rows does not matter, except
    for `duplicates="last"`. Users and items come in ascending order.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, or array
        The ratings; the columns of an array are named x0, x1, …
    user, item, rating : str
        The columns that hold who rated what how. Ids may be numbers or text; items are named by
        their text, so that item 7 becomes the variable "7".
    scale : increasing numbers, optional
        The ratings that can be given; by default those that occur.
    items : sequence of ids or names, optional
        Which items, in this order. One that nobody rated is kept, as an empty column, and a
        warning names it.
    n_items : int, optional
        How many items to keep: those with the most ratings, the most rated first, ties in
        ascending order. Users who rated none of the items that are kept are left out.
    duplicates : {"error", "last", "mean"}
        What to do where a user rated an item more than once: refuse; take the last row of the
        table; or take the level nearest to the mean, of two equally near ones the lower.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"user": [9, 7, 9], "item": ["A", "A", "B"], "rating": [1, 3, 2]})
    >>> ratings = pivot_ratings(table, scale=range(1, 6))
    >>> ratings
    Ratings(2 users × 2 items, 3 ratings on 1 .. 5, 75 % known)
    >>> ratings.wide().rows()
    [(7, 3, None), (9, 1, 2)]
    """
    one_of(duplicates, ("error", "last", "mean"), "duplicates")
    user, item, rating = name_list((user, item, rating))
    if items is not None and n_items is not None:
        raise JointPMFError("give either items or n_items, not both")
    long = _read_long(table, (user, item, rating), scale).once(duplicates)
    names = _item_names(long.items)
    if items is None:
        chosen = _most_rated(long, n_items)
        kept = [names[place] for place in chosen]
    else:
        kept = _named_items(items)
        place_of = {name: place for place, name in enumerate(names)}
        chosen = [place_of.get(name, MISSING) for name in kept]
    return _spread_wide(long, kept, chosen)


@dataclass(frozen=True)
class _Long:
    """A long table as codes: one entry per rating, none of them missing."""

    users: list[Any]
    items: list[Any]
    scale: tuple[Any, ...]
    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray

    @property
    def pairs(self) -> np.ndarray:
        """One number per (user, item)."""
        return self.user.astype(np.int64) * len(self.items) + self.item

    def once(self, duplicates: str) -> _Long:
        """Return the table with every pair of user and item at most once."""
        pairs = self.pairs
        ordered = np.sort(pairs)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(repeated):
            return self
        if duplicates == "error":
            raise self._duplicated(np.unique(repeated))
        if duplicates == "last":
            last = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
            return self._with(pairs[last], self.rating[last])
        distinct, place = np.unique(pairs, return_inverse=True)
        values = np.array(self.scale, float)
        sums = np.bincount(place, values[self.rating])
        return self._with(distinct, nearest_levels(sums / np.bincount(place), values))

    def _with(self, pairs: np.ndarray, rating: np.ndarray) -> _Long:
        user, item = np.divmod(pairs, len(self.items))
        return _Long(self.users, self.items, self.scale, user, item, rating)

    def _duplicated(self, pairs: np.ndarray) -> JointPMFError:
        few = [
            f"user {shown(self.users[pair // len(self.items)])} and "
            f"item {shown(self.items[pair % len(self.items)])}"
            for pair in pairs[:3].tolist()
        ]
        verb = "is" if len(pairs) == 1 else "are"
        count = f"{len(pairs):,} pair{'s' * (len(pairs) > 1)} of user and item {verb}"
        rest = f" and {len(pairs) - 3:,} more" if len(pairs) > 3 else ""
        return JointPMFError(
            f"{count} rated more than once, {'; '.join(few)}{rest}: "
            "choose duplicates='last' or 'mean'"
        )


def nearest_levels(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the codes of the levels nearest to numbers, of two equally near ones the lower.

    Examples
    --------
    >>> nearest_levels(np.array([1.4, 1.5, 9.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0, 0, 2]
    """
    middles = (values[1:] + values[:-1]) / 2 + TIE * np.diff(values)
    return np.searchsorted(middles, numbers, side="left")


def _read_long(table: Any, names: Sequence[str], scale: Iterable[float] | None) -> _Long:
    check_distinct(names, "the list of columns")
    (users, user), (items, item), (numbers, rating) = levels_and_codes(table, names)
    is_rated = rating != MISSING
    if not is_rated.any():
        raise JointPMFError(f"column {names[2]!r} holds no rating")
    for name, codes in zip(names, (user, item), strict=False):
        lost = np.flatnonzero(is_rated & (codes == MISSING))
        if len(lost):
            raise JointPMFError(f"column {name!r} is missing in row {lost[0]}, which has a rating")
    if not is_rated.all():
        user, item, rating = user[is_rated], item[is_rated], rating[is_rated]
    if scale is None:
        allowed = _learned_scale(numbers, names[2])
    else:
        allowed = checked_scale(scale, "the scale")
    code_of = {level: code for code, level in enumerate(allowed)}
    coded = np.array([code_of.get(number, MISSING) for number in numbers], np.int32)[rating]
    if (coded == MISSING).any():
        first = int((coded == MISSING).argmax())
        raise JointPMFError(
            f"the rating {shown(numbers[rating[first]])} of user {shown(users[user[first]])} for "
            f"item {shown(items[item[first]])} lies outside of the scale {listing(allowed)}"
        )
    return _Long(users, items, allowed, user, item, coded)


def _learned_scale(numbers: Sequence[Any], name: str) -> tuple[Any, ...]:
    if not all(map(is_finite_number, numbers)):
        culprit = next(number for number in numbers if not is_finite_number(number))
        raise JointPMFError(f"column {name!r} holds {shown(culprit)}, which is no rating")
    if len(numbers) > _MAX_SCALE:
        raise JointPMFError(
            f"column {name!r} has {len(numbers)} distinct numbers, more than {_MAX_SCALE}: "
            "round them to a scale first, or give the scale"
        )
    return tuple(numbers)


def _item_names(items: Sequence[Any]) -> list[str]:
    names: dict[str, Any] = {}
    for one in items:
        other = names.setdefault(_name_of(one), one)
        if other is not one:
            raise JointPMFError(
                f"the items {shown(other)} and {shown(one)} would have the same name "
                f"{_name_of(one)!r}"
            )
    return list(names)


def _name_of(item: Any) -> str:
    """Return an item's id as text; 7.0, as pandas has it beside a missing id, is "7"."""
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _most_rated(long: _Long, n_items: int | None) -> list[int]:
    counts = np.bincount(long.item, minlength=len(long.items))
    rated = np.flatnonzero(counts)
    if n_items is None:
        return rated.tolist()
    n_items = whole_number(n_items, "n_items", 1)
    if n_items > len(rated):
        raise JointPMFError(
            f"n_items is {text_of_count(n_items)}, but only {len(rated)} items are rated"
        )
    return rated[np.argsort(-counts[rated], kind="stable")[:n_items]].tolist()


def _named_items(items: Iterable[Any]) -> list[str]:
    names = [_name_of(one) for one in id_list(items, "items")]
    if not names:
        raise JointPMFError("the list of items is empty")
    check_distinct(names, "the list of items")
    return names


def _spread_wide(long: _Long, names: Sequence[str], chosen: Sequence[int]) -> Ratings:
    """Return the ratings of the chosen items, which are places, or MISSING if nobody rated it."""
    column_of = np.full(len(long.items) + 1, MISSING)
    column_of[list(chosen)] = np.arange(len(chosen))
    column_of[MISSING] = MISSING  # where the items that nobody rated were written
    column = column_of[long.item]
    kept = column != MISSING
    if not kept.any():
        raise JointPMFError(f"nobody rated any of the items {listing(names)}")
    user, column, rating = long.user[kept], column[kept], long.rating[kept]
    has_any = np.bincount(user, minlength=len(long.users)) > 0
    row_of = np.cumsum(has_any) - 1
    array = np.full((int(has_any.sum()), len(names)), MISSING, code_dtype(len(long.scale)), "F")
    array[row_of[user], column] = rating
    unrated = [name for name, n in zip(names, array.max(axis=0), strict=True) if n == MISSING]
    if unrated:
        logger.warning("nobody rated %s", listing(unrated))
    domain = Domain(tuple(Variable(name, long.scale) for name in names))
    return Ratings(id_array(long.users)[has_any], Codes(domain, array))
