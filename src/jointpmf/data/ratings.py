"""`Ratings`: who rated what how, with a row per user and a variable per item.

A rating table is a table like any other: `fit_rows(ratings)` fits it, and an item that a user did
not rate is a missing cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from jointpmf.data.codes import Codes, some_cells
from jointpmf.data.decode import table_of
from jointpmf.domain import MISSING, check_distinct
from jointpmf.errors import (
    JointPMFError,
    float_of,
    is_hashable,
    items_of,
    listing,
    rectangle,
    seeded_generator,
    shown,
)
from jointpmf.errors import fraction as checked_fraction


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
    >>> from jointpmf import Domain, Variable
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
        is_array = isinstance(self.users, np.ndarray) and self.users.ndim == 1
        ids = self.users.tolist() if is_array else id_list(self.users, "users")
        object.__setattr__(self, "users", id_array(ids))
        if not all(map(is_hashable, ids)):
            raise JointPMFError("users must be a list of ids, such as numbers or text")
        if len(ids) != self.codes.n_rows or not ids:
            raise JointPMFError(f"there are {len(ids)} users for {self.codes.n_rows} rows of codes")
        check_distinct(ids, "the list of users")
        checked_scale(self.scale, f"the levels of item {self.items[0]!r}")
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
        return int(self.known.sum())

    @property
    def density(self) -> float:
        """Which part of all cells is rated."""
        return self.n_ratings / self.codes.array.size

    @property
    def known(self) -> np.ndarray:
        """Which cells are rated, as booleans of shape (users, items)."""
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
        >>> from jointpmf import Domain, Variable
        >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
        >>> Ratings([7, 9], Codes(domain, [[2, -1], [0, 1]])).long().rows()
        [(7, 'Alien', 3), (9, 'Alien', 1), (9, 'Brazil', 2)]
        """
        rows, places = np.nonzero(self.known)
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
        hidden = rectangle(hidden, "cells that are hidden")
        if hidden.shape != self.codes.array.shape or hidden.dtype != bool:
            raise JointPMFError(
                f"hidden must be booleans of shape {self.codes.array.shape}, "
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
        >>> from jointpmf import Domain, Variable
        >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
        >>> ratings = Ratings([7, 9], Codes(domain, [[2, -1], [0, 1]]))
        >>> hidden = ratings.split(1 / 3, random_state=0)
        >>> ratings.without(hidden).n_ratings
        2
        """
        count = round(checked_fraction(fraction, "the fraction") * self.n_ratings)
        return some_cells(self.codes, count, seeded_generator(random_state))

    def rated(self) -> Ratings:
        """Return the ratings of those items that somebody rated: what can be fitted.

        Examples
        --------
        >>> from jointpmf import Domain, Variable
        >>> domain = Domain([Variable("Alien", (1, 2, 3)), Variable("Brazil", (1, 2, 3))])
        >>> Ratings([7, 9], Codes(domain, [[-1, 1], [-1, 2]])).rated().items
        ('Brazil',)
        """
        places = np.flatnonzero(self.known.any(axis=0))
        if not len(places):
            raise JointPMFError("no item has a rating")
        domain = self.codes.domain.project([self.items[place] for place in places])
        return Ratings(self.users, Codes(domain, self.codes.array[:, places]))


def checked_scale(scale: Any, what: str) -> tuple[Any, ...]:
    """Return the ratings that can be given, or raise if they are not increasing numbers."""
    levels = tuple(items_of(scale, f"{what} must be increasing numbers"))
    numbers = bool(levels) and all(map(is_finite_number, levels))
    if not numbers or not all(low < high for low, high in pairwise(levels)):
        raise JointPMFError(f"{what} must be increasing numbers, not {shown(scale)}")
    return levels


def is_finite_number(level: Any) -> bool:
    """Tell whether a level is a finite number; a boolean is none."""
    if isinstance(level, Decimal):
        return level.is_finite()
    return math.isfinite(float_of(level))


def id_list(ids: Any, what: str) -> list[Any]:
    """Return ids as a list, or raise if they have no order."""
    otherwise = f"{what} must be a list of ids"
    if isinstance(ids, (set, frozenset)):
        raise JointPMFError(f"{otherwise}, not {shown(ids)}")
    return items_of(ids, otherwise)


def id_array(ids: Sequence[Any]) -> np.ndarray:
    """Return ids as numbers if all of them are, and otherwise as objects, which changes no text."""
    kinds = set(map(type, ids))
    if kinds in ({int}, {float}):
        return np.array(ids)
    array = np.empty(len(ids), object)
    array[:] = ids
    return array
