"""Who rated what how: long tables ⇄ wide codes, what to recommend, and how sure that is.

A rating table is a table like any other, with a row per user and a variable per item: it is
fitted by `fit_cells(ratings)` or `fit_rows(ratings, …)`, and an item that a user did not rate is a
missing cell.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.data.encoding import (
    MAX_NUMERIC_LEVELS,
    Codes,
    code_dtype,
    encode,
    levels_and_codes,
    some_cells,
    table_of,
)
from jointpmf.domain import MISSING, Domain, Variable, check_distinct
from jointpmf.errors import JointPMFError, listing, one_of, shown, whole_number
from jointpmf.pmf import JointPMF, seeded_generator
from jointpmf.threads import one_blas_thread, row_blocks

logger = logging.getLogger("jointpmf")

ROUNDING = 1e-9
"""Differences below this part of a step are taken for rounding, and so for a tie."""

BLOCK = 8192
"""Users whose expectations of all items are held at once."""


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Who rated what how: one row per user, one variable per item.

    Parameters
    ----------
    users : array of shape (users,)
        The users' ids, all different.
    codes : Codes
        A row per user and a variable per item; all variables have the same levels, the scale,
        which are numbers.

    Examples
    --------
    >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
    >>> ratings = Ratings(np.array([7, 9]), Codes(domain, np.array([[2, -1], [0, 1]])))
    >>> ratings
    Ratings(2 users × 2 items, 3 ratings on 1 .. 3, 75 % known)
    >>> ratings.wide()["Brazil"].to_list()
    [None, 2]
    """

    users: np.ndarray
    codes: Codes

    def __post_init__(self) -> None:
        if not isinstance(self.codes, Codes):
            raise JointPMFError(f"codes must be Codes, not {type(self.codes).__name__}")
        if not len(self.codes.domain):
            raise JointPMFError("there is no item")
        is_array = isinstance(self.users, np.ndarray)
        ids = self.users.tolist() if is_array else _listed(self.users, "users")
        object.__setattr__(self, "users", _id_array(ids))
        if not all(isinstance(one, Hashable) for one in ids):
            raise JointPMFError("users must be a list of ids, such as numbers or text")
        if len(ids) != self.codes.n_rows or not ids:
            raise JointPMFError(f"there are {len(ids)} users for {self.codes.n_rows} rows of codes")
        check_distinct(ids, "the list of users")
        _checked_scale(self.scale, f"the levels of item {self.items[0]!r}")
        for variable in self.codes.domain:
            if variable.levels != self.scale:
                raise JointPMFError(
                    f"item {variable.name!r} has the levels {listing(variable.levels)}, but "
                    f"{self.items[0]!r} has {listing(self.scale)}"
                )

    @property
    def items(self) -> tuple[str, ...]:
        """The items' names, in order."""
        return self.codes.domain.names

    @property
    def scale(self) -> tuple[Any, ...]:
        """The ratings that can be given, from the lowest to the highest."""
        return tuple(self.codes.domain.variables[0].levels)

    @cached_property
    def n_ratings(self) -> int:
        """Number of ratings that are known."""
        return int(self._known.sum())

    @property
    def density(self) -> float:
        """Part of all ratings that is known."""
        return self.n_ratings / self.codes.array.size

    @property
    def _known(self) -> np.ndarray:
        return self.codes.array != MISSING

    def __len__(self) -> int:
        """Return the number of users."""
        return len(self.users)

    def __repr__(self) -> str:
        """Count users, items and ratings, and name the ends of the scale."""
        percent = 100 * self.density
        known = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
        return (
            f"Ratings({len(self):,} users × {len(self.items):,} items, {self.n_ratings:,} ratings "
            f"on {self.scale[0]} .. {self.scale[-1]}, {known} % known)"
        )

    def wide(self, backend: str = "polars") -> Any:
        """Return a table with the column "user" and one per item, null where it is not rated.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of table.
        """
        if "user" in self.items:
            raise JointPMFError("an item is named 'user', as the column of the users is")
        columns = {name: (self.scale, self.codes.array[:, n]) for n, name in enumerate(self.items)}
        return table_of({"user": (self.users, np.arange(len(self))), **columns}, backend)

    def long(self, backend: str = "polars") -> Any:
        """Return a table with a row per rating: user, item (its name) and rating.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of table.

        Examples
        --------
        >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
        >>> Ratings([7, 9], Codes(domain, [[2, -1], [0, 1]])).long().rows()
        [(7, 'Alien', 3), (9, 'Alien', 1), (9, 'Brazil', 2)]
        """
        rows, places = np.nonzero(self._known)
        columns = {
            "user": (self.users, rows),
            "item": (self.items, places),
            "rating": (self.scale, self.codes.array[rows, places]),
        }
        return table_of(columns, backend)

    def without(self, hidden: Any) -> Ratings:
        """Return the ratings with some cells unrated; a user without any rating left stays.

        Parameters
        ----------
        hidden : array of bool of shape (users, items)
            Which cells.
        """
        hidden = np.asarray(hidden)
        if hidden.shape != self.codes.array.shape or hidden.dtype != bool:
            raise JointPMFError(
                f"hidden must be truth values of shape {self.codes.array.shape}, "
                f"not of type {hidden.dtype} and shape {hidden.shape}"
            )
        return Ratings(
            self.users, Codes(self.codes.domain, np.where(hidden, MISSING, self.codes.array))
        )

    def split(self, fraction: float, random_state: Any = None) -> np.ndarray:
        """Return, of shape (users, items), a random part of the known ratings, such as to hide.

        Parameters
        ----------
        fraction : float
            How many: round(fraction · n_ratings), exactly.
        random_state : int or numpy Generator, optional
            The same seed gives the same part.

        Examples
        --------
        >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
        >>> ratings = Ratings([7, 9], Codes(domain, [[2, -1], [0, 1]]))
        >>> hidden = ratings.split(1 / 3, random_state=0)
        >>> ratings.without(hidden).n_ratings
        2
        """
        fraction = _share(fraction, "the fraction")
        count = round(fraction * self.n_ratings)
        return some_cells(self.codes, count, seeded_generator(random_state))

    def rated(self) -> Ratings:
        """Return the ratings of those items that somebody rated: what can be fitted.

        Examples
        --------
        >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
        >>> Ratings([7, 9], Codes(domain, [[-1, 1], [-1, 2]])).rated().items
        ('Brazil',)
        """
        places = np.flatnonzero(self._known.any(axis=0))
        if not len(places):
            raise JointPMFError("no item has a rating")
        domain = self.codes.domain.project([self.items[place] for place in places])
        return Ratings(self.users, Codes(domain, self.codes.array[:, places]))


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
        Only so many items: those with the most ratings, the most rated first, ties in ascending
        order. Users who rated none of the items that are kept are left out.
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
    middles = (values[1:] + values[:-1]) / 2 + ROUNDING * np.diff(values)
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
        allowed = _checked_scale(scale, "the scale")
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
    if not all(map(_is_finite_number, numbers)):
        culprit = next(number for number in numbers if not _is_finite_number(number))
        raise JointPMFError(f"column {name!r} holds {shown(culprit)}, which is no rating")
    if len(numbers) > MAX_NUMERIC_LEVELS:
        raise JointPMFError(
            f"column {name!r} has {len(numbers)} distinct numbers, more than {MAX_NUMERIC_LEVELS}: "
            "round them to a scale first, or give the scale"
        )
    return tuple(numbers)


def _checked_scale(scale: Any, what: str) -> tuple[Any, ...]:
    levels = tuple(scale) if isinstance(scale, Iterable) else ()
    numbers = bool(levels) and all(map(_is_finite_number, levels))
    if not numbers or not all(low < high for low, high in pairwise(levels)):
        raise JointPMFError(f"{what} must be increasing numbers, not {shown(scale)}")
    return levels


def _is_finite_number(level: Any) -> bool:
    is_number = isinstance(level, (Real, Decimal)) and not isinstance(level, bool)
    return is_number and math.isfinite(level)


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
    """Return an item's id as text; whole numbers that a hole in the column made floats, as such."""
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _most_rated(long: _Long, n_items: int | None) -> list[int]:
    counts = np.bincount(long.item, minlength=len(long.items))
    rated = np.flatnonzero(counts)
    if n_items is None:
        return rated.tolist()
    n_items = whole_number(n_items, "n_items", 1)
    if n_items > len(rated):
        raise JointPMFError(f"n_items is {n_items}, but only {len(rated)} items are rated")
    return rated[np.argsort(-counts[rated], kind="stable")[:n_items]].tolist()


def _named_items(items: Iterable[Any]) -> list[str]:
    names = [_name_of(one) for one in _listed(items, "items")]
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
    return Ratings(_id_array(long.users)[has_any], Codes(domain, array))


def _listed(ids: Any, what: str) -> list[Any]:
    if isinstance(ids, (str, set, frozenset)) or not isinstance(ids, Iterable):
        raise JointPMFError(f"{what} must be a list of ids, not {shown(ids)}")
    return list(ids)


def _id_array(ids: Sequence[Any]) -> np.ndarray:
    """Return ids as numbers where they are, and as objects otherwise, which changes no text."""
    kinds = set(map(type, ids))
    if kinds in ({int}, {float}):
        return np.array(ids)
    array = np.empty(len(ids), object)
    array[:] = ids
    return array


def with_unrated_items(pmf: JointPMF, ratings: Ratings) -> JointPMF:
    """Return a model that has all items: those it lacks are distributed as all ratings are.

    A model cannot be fitted to an item that nobody rated (`Ratings.rated` leaves it out). Such an
    item is independent of the others here, and a warning names it.

    Examples
    --------
    >>> domain = Domain([Variable("Alien", (1, 2)), Variable("Brazil", (1, 2))])
    >>> ratings = Ratings([7, 8, 9], Codes(domain, [[1, -1], [1, -1], [0, -1]]))
    >>> pmf = JointPMF(domain.project(["Alien"]), [1.0], [[[0.5], [0.5]]])
    >>> with_unrated_items(pmf, ratings).marginal(["Brazil"]).table().round(2).tolist()
    [0.33, 0.67]
    """
    lacking = [variable for variable in ratings.codes.domain if variable.name not in pmf.domain]
    if not lacking:
        return pmf
    if not ratings.n_ratings:
        raise JointPMFError("there is no rating to tell how items are rated")
    logger.warning(
        "the model does not know %s, predicted as all ratings are distributed",
        listing(variable.name for variable in lacking),
    )
    known = ratings.codes.array[ratings._known]
    shares = np.bincount(known, minlength=len(ratings.scale)) / len(known)
    factor = np.tile(shares[:, None], pmf.rank)
    domain = Domain((*pmf.domain, *lacking))
    return JointPMF(domain, pmf.weights, [*pmf.factors, *[factor] * len(lacking)])


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
        How probable it is at least that the rating lies in low .. high, the shortest such range
        of levels, and the most probable one of that length.
    backend : {"polars", "pandas", "pyarrow"}
        The kind of table.

    Returns
    -------
    table
        The columns user, item, expected (the mean of the rating given all of the user's ratings),
        low and high; per user the highest expectation first, ties in the order of the items.

    Examples
    --------
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
    probability = _share(probability, "the probability")
    _check_knows(pmf, ratings)
    rows = _rows_of(ratings, users)
    codes = Codes(ratings.codes.domain, ratings.codes.array[rows])
    # an item that is recommended is not rated, so that all evidence is the same for all of them
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
        for begin, end in row_blocks(len(rows), BLOCK) or [(0, 0)]
    ]
    at, places, expected, low, high = map(np.concatenate, zip(*blocks, strict=True))
    at += np.repeat(np.arange(len(blocks)) * BLOCK, [len(block[0]) for block in blocks])
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
    asked = _listed(users, "users")
    row_of = {one: row for row, one in enumerate(ratings.users.tolist())}
    unknown = [one for one in asked if not isinstance(one, Hashable) or one not in row_of]
    if unknown:
        raise JointPMFError(f"there is no user {listing(unknown)} in the ratings")
    check_distinct(asked, "the list of users")
    return np.array([row_of[one] for one in asked], np.int64)


def _highest(
    expected: np.ndarray, is_open: np.ndarray, n: int, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the places of the n highest open cells of each row, in order."""
    step = ROUNDING * ((values[-1] - values[0]) or 1.0)
    loss = np.where(is_open, -np.round(expected / step), np.inf)
    order = np.argsort(loss, axis=1, kind="stable")[:, :n]
    at, column = np.nonzero(np.take_along_axis(is_open, order, axis=1))
    return at, order[at, column]


def shortest_ranges(probabilities: np.ndarray, probability: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last code of each row's shortest range that is so probable.

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
        is_enough = inside.max(axis=1) >= probability - ROUNDING
        found = left[is_enough]
        low[found] = np.round(inside[is_enough] / ROUNDING).argmax(axis=1)
        high[found] = low[found] + width - 1
        left = left[~is_enough]
    return low, high


def coverage(probabilities: Any, truth: Any, level: Any) -> Any:
    """Return how often what happened lies in the most probable levels that have a probability.

    Levels enter the set from the most probable on, ties in their order, until the set has the
    probability `level`. The level at the border counts by the part of it that the set needs, so
    that a calibrated model has a coverage of exactly `level` on average, whatever the steps of
    its distributions.

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
    try:
        probabilities, truth = np.asarray(probabilities, float), np.asarray(truth)
    except (TypeError, ValueError):
        raise JointPMFError("probabilities and truth must be arrays of numbers") from None
    if probabilities.ndim != 2 or not len(probabilities):
        raise JointPMFError(
            f"probabilities must be of shape (rows, levels), not {probabilities.shape}"
        )
    if truth.shape != probabilities.shape[:1] or truth.dtype.kind not in "iu":
        raise JointPMFError(
            f"truth must be {len(probabilities)} codes, one per row of the probabilities, "
            f"not of type {truth.dtype} and shape {truth.shape}"
        )
    sums = np.abs(probabilities.sum(axis=1) - 1) <= 1e-6
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
    levels = np.asarray(level)
    is_number = levels.dtype.kind in "iuf"
    if not is_number or not ((levels > 0) & (levels < 1)).all():
        raise JointPMFError(f"level must lie between 0 and 1, not {shown(level)}")
    return levels


def _share(number: Any, what: str) -> float:
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    if not is_number or not 0 <= float(number) <= 1:
        raise JointPMFError(f"{what} must be a number from 0 to 1, not {shown(number)}")
    return float(number)
