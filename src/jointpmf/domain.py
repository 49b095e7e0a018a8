"""What can happen: variables, their levels in order, and the numbers that levels stand for.

Nothing here holds data. Names and levels are the user's own; a code is a level's position.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.errors import (
    JointPMFError,
    check_size,
    checked_text,
    float_array,
    instance_of,
    items_of,
    listing,
    on_line,
    shown,
    text_of_count,
    whole_number,
)
from jointpmf.times import (
    TooFineError,
    is_kind_of_time,
    kind_of_times,
    plain_time,
    seconds_of,
    time_in,
)

MISSING = -1
"""The code of a cell that was not observed."""

_NOT_PLAIN = (np.datetime64, np.timedelta64, datetime.datetime, datetime.timedelta)
"""Times that may be another library's, or in another unit, than what they are equal to."""

_BYTES_PER_LEVEL = 140
"""Memory that a level takes, about: the level itself, its value, and where it is found again."""


@dataclass(frozen=True)
class Variable:
    """One discrete variable: its name and its levels, in order.

    Parameters
    ----------
    name : str
        What the user calls it.
    levels : sequence of hashable
        What it can be. At least one, all different.
    values : sequence of float, optional
        The number each level stands for, used by expectations. Levels that are
        numbers are their own values.
    edges : sequence of float, optional
        For a binned variable, the `len(levels) + 1` increasing cut points: level `i` is
        `edges[i] <= x < edges[i + 1]`, and the last level includes its upper edge.
    time : {"date", "datetime", "time", "duration"}, optional
        For bins of times, which kind they are; edges and values are then seconds: from 1970, from
        midnight, or of the duration.

    Examples
    --------
    >>> rating = Variable("rating", levels=(1, 2, 3))
    >>> rating.size, rating.values, rating.code(3)
    (3, (1.0, 2.0, 3.0), 2)
    """

    name: str
    levels: Sequence[Hashable]
    values: Sequence[float] | None = None
    edges: Sequence[float] | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        self._check_order()
        with holding_times(f"variable {shown(self.name)}"):
            levels = tuple(map(_plain, self.levels))
        object.__setattr__(self, "levels", levels)
        numeric = bool(self.levels) and all(map(_is_number, self.levels))
        if self.values is None and numeric:
            object.__setattr__(self, "values", self.levels)
        for field in ("values", "edges"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, self._floats(field))
        self._validate()

    def _check_order(self) -> None:
        levels = self.levels
        unordered = isinstance(levels, (str, bytes, set, frozenset))
        if unordered or not isinstance(levels, Iterable) or getattr(levels, "ndim", 1) == 0:
            raise JointPMFError(
                f"the levels of variable {shown(self.name)} must be a list or a tuple, "
                f"not the {type(levels).__name__} {shown(levels)}"
            )

    def _floats(self, field: str) -> tuple[float, ...]:
        what = f"the {field} of variable {shown(self.name)}"
        given = getattr(self, field)
        is_array = isinstance(given, np.ndarray) and given.ndim == 1
        numbers = given if is_array else items_of(given, f"{what} must be a list of numbers")
        return tuple(float_array(numbers, f"{what} are not numbers").ravel().tolist())

    def _validate(self) -> None:
        if not isinstance(self.name, str):
            raise JointPMFError(f"a variable's name must be a string, not {shown(self.name)}")
        if not self.levels:
            raise JointPMFError(f"variable {self.name!r} has no level")
        if any(map(is_missing, self.levels)):
            raise JointPMFError(f"variable {self.name!r} has a missing value among its levels")
        if len(self._code_of) != len(self.levels):
            raise JointPMFError(f"variable {self.name!r} has a level twice: {listing(self.levels)}")
        if self.values is not None and len(self.values) != len(self.levels):
            raise JointPMFError(
                f"variable {self.name!r} has {self.size} levels but {len(self.values)} values"
            )
        if self.values is not None and not all(map(math.isfinite, self.values)):
            raise JointPMFError(f"variable {self.name!r} has a value that is not finite")
        if self.edges is not None and len(self.edges) != len(self.levels) + 1:
            raise JointPMFError(
                f"variable {self.name!r} has {len(self.levels)} bins but {len(self.edges)} edges"
            )
        if self.edges is not None and not all(low < high for low, high in pairwise(self.edges)):
            raise JointPMFError(f"the edges of variable {self.name!r} must increase")
        if self.time is not None and (self.edges is None or not is_kind_of_time(self.time)):
            raise JointPMFError(
                f"the time of variable {self.name!r} must be 'date', 'datetime', 'time' or "
                f"'duration', and belongs to edges; it is {shown(self.time)}"
            )

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @cached_property
    def _code_of(self) -> dict[Hashable, int]:
        try:
            return {_plain(level): code for code, level in enumerate(self.levels)}
        except TypeError:
            raise JointPMFError(
                f"the levels of variable {self.name!r} must be hashable, such as text or numbers"
            ) from None

    @cached_property
    def _level_of_text(self) -> dict[str, Hashable]:
        """The level of each text; of two with the same text the first."""
        levels = reversed(self.levels)
        return {text_of(form): level for level in levels for form in (_plain(level), level)}

    @cached_property
    def _kind_of_times(self) -> str | None:
        return self.time or kind_of_times(map(type, self.levels))

    def __contains__(self, level: object) -> bool:
        """Tell whether `level` is one of the levels."""
        try:
            return _plain(level) in self._code_of
        except (TypeError, TooFineError):
            return False

    def code(self, level: object) -> int:
        """Return the position of a level; for a binned variable, that of the bin of a number."""
        found = self._found(level)
        if found is None:
            raise JointPMFError(
                f"variable {self.name!r} has no level {shown(level)}; "
                f"its levels are {listing(self.levels)}"
            )
        return found

    def _found(self, level: object) -> int | None:
        return self._code_of[_plain(level)] if level in self else self._bin_of(level)

    def _bin_of(self, x: Any) -> int | None:
        if self.edges is None:
            return None
        if self.time is not None:
            x = seconds_of(_plain(x), self.time)
        is_number = isinstance(x, Real) and not isinstance(x, bool)
        if not is_number:
            return None
        if not self.edges[0] <= x <= self.edges[-1]:
            return None
        return min(bisect_right(self.edges, x) - 1, self.size - 1)


@contextmanager
def holding_times(what: str) -> Iterator[None]:
    """Name what holds times that cannot be levels."""
    try:
        yield
    except TooFineError as error:
        raise JointPMFError(f"{what} holds {error}") from None


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is missing, in any library's spelling: None, NaN, NaT, NA."""
    if cell is None or type(cell).__name__ == "NAType":
        return True
    try:
        return bool(cell != cell)
    except Exception:  # an array or a column is no cell at all, so not a missing one
        return isinstance(cell, Decimal)  # a signalling NaN, which is never compared


def _plain(level: Any) -> Hashable:
    """Return a scalar of numpy or pandas as the Python object that is equal to it, if there is."""
    if isinstance(level, _NOT_PLAIN):
        return plain_time(level)
    return level.item() if isinstance(level, np.generic) else level


def _is_number(level: object) -> bool:
    return isinstance(level, (Real, Decimal)) and not isinstance(level, np.timedelta64)


@dataclass(frozen=True)
class Domain:
    """The variables of a joint distribution, in order.

    Examples
    --------
    >>> domain = Domain([Variable("vote", ("no", "yes")), Variable("rating", (1, 2, 3))])
    >>> domain.names, domain.sizes
    (('vote', 'rating'), (2, 3))
    >>> domain.project(["rating"]).names
    ('rating',)
    """

    variables: Sequence[Variable]

    def __post_init__(self) -> None:
        variables = items_of(self.variables, "a Domain is made of a list of Variables")
        object.__setattr__(self, "variables", tuple(variables))
        for variable in self.variables:
            if not isinstance(variable, Variable):
                raise JointPMFError(f"a Domain is made of Variables, not of {shown(variable)}")
        check_distinct(self.names, "the domain")

    @classmethod
    def of_sizes(cls, sizes: Iterable[int], names: Sequence[str] | None = None) -> Domain:
        """Return variables x0, x1, … whose levels are 0, 1, …, size − 1.

        Examples
        --------
        >>> Domain.of_sizes([2, 3])["x1"].levels
        (0, 1, 2)
        """
        listed = items_of(sizes, "give a list of sizes, such as [2, 3]")
        sizes = [whole_number(size, "a size", 1) for size in listed]
        names = [f"x{n}" for n in range(len(sizes))] if names is None else name_list(names)
        if len(names) != len(sizes):
            raise JointPMFError(f"there are {len(names)} names for {len(sizes)} sizes")
        n_levels = sum(sizes)
        check_size(_BYTES_PER_LEVEL * n_levels, f"a domain of {text_of_count(n_levels)} levels")
        return cls(
            tuple(Variable(name, tuple(range(k))) for name, k in zip(names, sizes, strict=True))
        )

    def __repr__(self) -> str:
        """Name the first variables, and say how many there are."""
        return f"Domain({some_names(self.names)}; {len(self)} variables, {sum(self.sizes)} levels)"

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, in order."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The variables' numbers of levels, in order."""
        return tuple(variable.size for variable in self.variables)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each variable begins when all levels of all variables are listed, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)]).astype(np.int64)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.names)}

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        """Iterate over the variables, in order."""
        return iter(self.variables)

    def __contains__(self, name: object) -> bool:
        """Tell whether a variable has this name."""
        return name in self._position

    def __getitem__(self, name: str) -> Variable:
        """Return the variable of this name."""
        return self.variables[self.index(name)]

    def index(self, name: str) -> int:
        """Return the position of the variable of this name."""
        try:
            return self._position[name]
        except (KeyError, TypeError):
            raise JointPMFError(
                f"there is no variable {shown(name)}; the variables are {listing(self.names)}"
            ) from None

    def indices(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of several variables; none may be named twice."""
        names = name_list(names)
        positions = tuple(self.index(name) for name in names)
        check_distinct(names, "the list of variables")
        return positions

    def project(self, names: Iterable[str]) -> Domain:
        """Return the domain of these variables only, in the order asked."""
        return Domain(tuple(self.variables[n] for n in self.indices(names)))


def some_names(names: Sequence[str], limit: int = 6, width: int = 24) -> str:
    """Return the first names, none of them long, for what is printed of an object.

    Examples
    --------
    >>> some_names(["age", "a" * 30, "vote"], limit=2, width=8)
    'age, aaaaaaa…, …'
    """
    short = [name if len(name) <= width else f"{name[: width - 1]}…" for name in names[:limit]]
    return ", ".join(map(on_line, short)) + (", …" if len(names) > limit else "")


def checked_domain(domain: Any) -> Domain:
    """Return a domain, or raise if something else was given as one."""
    return instance_of(domain, Domain, "a domain")


def name_list(names: Iterable[str]) -> list[str]:
    """Return names as a list, or raise if they are a text or nothing to list."""
    if isinstance(names, str):
        raise JointPMFError(f"give a list of names, such as [{names!r}], not the text {names!r}")
    return [checked_text(name, "a name") for name in items_of(names, "give a list of names")]


def check_distinct(names: Sequence[str], where: str) -> None:
    """Raise if a name stands twice in a list of names."""
    if len(set(names)) != len(names):
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise JointPMFError(f"{where} names {twice!r} twice")


_BOOLEANS = {"true": True, "false": False}


def text_of(level: Any) -> str:
    """Return a level as one would type it.

    Examples
    --------
    >>> text_of(True), text_of(2.5), text_of(datetime.date(2020, 1, 31))
    ('true', '2.5', '2020-01-31')
    """
    if isinstance(level, bool):
        return str(level).lower()
    if isinstance(level, (datetime.date, datetime.time)):
        return level.isoformat()
    return str(level)


def level_of(variable: Variable, text: str) -> Hashable:
    """Return the level that a text stands for; in a binned variable a number falls in its bin.

    Examples
    --------
    >>> level_of(Variable("rating", (1, 2, 3)), "2")
    2
    >>> level_of(Variable("age", ("<30", ">=30"), edges=(0, 30, 99)), "41")
    '>=30'
    """
    found = matching_level(variable, text.strip())
    if found is None:
        raise JointPMFError(
            f"variable {variable.name!r} has no level {shown(text)}; its levels are "
            f"{listing_of_texts(variable.levels)}"
        )
    return found


def evidence_of(domain: Domain, given: Sequence[str]) -> dict[str, list[Hashable]]:
    """Return evidence from texts such as `party=independent` or `age=18-29|30-44`.

    Examples
    --------
    >>> domain = Domain([Variable("age", ("18-29", "30-44", "45+")), Variable("sex", ("f", "m"))])
    >>> evidence_of(domain, ["age=18-29|30-44", "sex=f"])
    {'age': ['18-29', '30-44'], 'sex': ['f']}
    """
    evidence: dict[str, list[Hashable]] = {}
    for text in given:
        name, levels = name_and_rest(text, domain.names, "name=level")
        if name in evidence:
            raise JointPMFError(
                f"{name!r} is given twice; if it may be either, write {name}=one|other"
            )
        evidence[name] = _levels_of(domain[name], levels)
    return evidence


def _levels_of(variable: Variable, text: str) -> list[Hashable]:
    """Return the levels that a text names: one, which may itself contain a bar, or several."""
    whole = matching_level(variable, text.strip())
    parts = [text] if whole is not None else text.split("|")
    return list(dict.fromkeys(level_of(variable, part) for part in parts))


def name_and_rest(text: str, names: Sequence[str], form: str) -> tuple[str, str]:
    """Return a name and what follows its equals sign; names and levels may contain one too.

    Examples
    --------
    >>> name_and_rest("a=b=c", ["a=b", "d"], "name=level")
    ('a=b', 'c')
    """
    cuts = [k for k, character in enumerate(text) if character == "="]
    if not cuts:
        raise JointPMFError(f"write {form}, not {shown(text)}")
    known = [k for k in cuts if text[:k].strip() in names] or [k for k in cuts if text[:k] in names]
    if not known:
        raise JointPMFError(
            f"there is no variable {shown(text[: cuts[0]])}; the variables are {listing(names)}"
        )
    name = text[: known[0]]
    return name if name in names else name.strip(), text[known[0] + 1 :]


def listing_of_texts(levels: Sequence[Any], limit: int = 8) -> str:
    """Return levels as a readable list, each as one would type it.

    Examples
    --------
    >>> listing_of_texts((True, False, 3))
    'true, false, 3'
    """
    return listing(levels, limit, show=lambda level: shown(text_of(level))[1:-1])


def matching_level(variable: Variable, text: str) -> Hashable | None:
    """Return the level that a text stands for, or None if there is none.

    Examples
    --------
    >>> matching_level(Variable("member", (False, True)), "True")
    True
    """
    if text in variable:
        return text
    if text in variable._level_of_text:
        return variable._level_of_text[text]
    if (boolean := _BOOLEANS.get(text.lower())) is not None and any(
        level is boolean for level in variable.levels
    ):
        return boolean
    kind = variable._kind_of_times
    for item in (number_in(text), None if kind is None else time_in(text, kind)):
        with suppress(JointPMFError):
            if item is not None and (code := variable._found(item)) is not None:
                return variable.levels[code]
    return None


def number_in(text: str) -> float | None:
    """Return the number that a text is, if it is one.

    Examples
    --------
    >>> number_in("12"), number_in("1e3"), number_in("twelve")
    (12, 1000.0, None)
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
