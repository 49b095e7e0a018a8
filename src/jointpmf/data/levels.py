"""The one collector of levels: of a whole table, of batches, of a file, of workers' partitions.

A collector takes tables one after the other, two collectors merge into one, and at the end there is
a domain: the same one, however the rows were divided.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.bands import sorted_bands
from jointpmf.data.binning import binned_variable
from jointpmf.data.codes import Codes
from jointpmf.data.columns import columns_of, columns_ready
from jointpmf.data.given_scales import Scales
from jointpmf.domain import Domain, Variable, listing_of_texts
from jointpmf.errors import JointPMFError
from jointpmf.times import are_comparable, are_numeric, kind_of_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from jointpmf.data.binning import Cut
    from jointpmf.data.columns import Column, Columns

logger = logging.getLogger("jointpmf")

_FEWEST_UNIQUE = 50
"""Observed cells from which on a column is told to be nearly unique."""


@dataclass(frozen=True)
class LevelRules:
    """How many levels a column may have, which columns are cut, and what the user is told.

    The sentences name the column as `{name}`, the number of its levels as `{count}`, how many
    numbers there may be as `{max_numbers}`, and what they are, numbers or times, as `{what}`.
    """

    max_numbers: int = 100
    """A column of more distinct numbers or times is taken for a continuous one."""
    max_levels: int | None = None
    """A column of more levels, of any kind, is refused."""
    may_be_unique: bool = True
    """Whether to accept a column of more than `max_numbers` levels that seldom repeat, like ids."""
    typed: Callable[[list[Any]], list[Any]] | None = None
    """What turns the levels of a column into others when all are known, as texts into numbers."""
    missing_code: Any = None
    """What means missing beside None and the like, as in `encode`."""
    bins: Mapping[str, Cut] = field(default_factory=dict)
    """How to cut columns, by name."""
    other_bins: int | None = None
    """Into how many bins to cut every other column of too many numbers, if it is added whole."""
    max_binned: int | None = None
    """Numbers by which a column is cut; of more of them every second one is dropped."""
    too_many_numbers: str = (
        "column {name!r} has {count} distinct {what}, more than {max_numbers}: "
        "bin it with bins={{{name!r}: 8}}, or raise max_levels"
    )
    too_many_levels: str = "column {name!r} has {count} levels, too many to learn from"
    no_cell: str = "column {name!r} has no observed cell"
    empty: str = "the table is empty: there is nothing to learn the levels from"


@dataclass
class ColumnLevels:
    """The levels of one column, as far as it has been read.

    Attributes
    ----------
    levels : dict
        All levels that were seen, and of each how many came before it.
    kinds : set of types
        The types of the levels, also of those that are equal to levels of another type.
    own_order : list or None
        All levels that the column's type lists itself, in its order, if it does.
    is_ordered : bool
        Whether that order is meant, which in pandas the type says.
    """

    name: str
    rules: LevelRules
    levels: dict[Any, int]
    kinds: set[type]
    own_order: list[Any] | None = None
    is_ordered: bool = False
    n_observed: int = 0

    @classmethod
    def of(cls, column: Column, rules: LevelRules) -> ColumnLevels:
        """Return the levels of a column."""
        levels = column.distinct
        kinds = set(map(type, levels))
        order, is_ordered, n_observed = column.own_order, column.is_ordered, column.n_observed
        return cls(
            column.name, rules, _numbered(levels), kinds, order, is_ordered, n_observed
        )._checked()

    def copy(self) -> ColumnLevels:
        """Return the same levels, which can be added to."""
        return replace(self, levels=dict(self.levels), kinds=set(self.kinds))

    def update(self, other: Any) -> None:
        """Add the levels of more rows; an order that a type has counts if all agree on it."""
        if other.levels or other.own_order is not None:
            if not self.levels and self.own_order is None:
                self.own_order, self.is_ordered = other.own_order, other.is_ordered
            elif self.own_order != other.own_order:
                self.own_order, self.is_ordered = None, False
            for level in other.levels:
                self.levels.setdefault(level, len(self.levels))
            self.kinds |= other.kinds
            self.n_observed += other.n_observed
        self._checked()

    def variable(self, scales: Scales) -> Variable:
        """Return the variable that the whole column is, its levels in the order of their scale."""
        found = self._typed()._checked(is_whole=True)
        own = found.own_order
        levels = found._sorted() if own is None else own
        given: Sequence[Any] | None
        given = scales.levels_of(found.name, levels, levels if found.is_ordered else None)
        if given is None and not found.is_ordered and levels == found._sorted_texts(levels):
            given = found._sorted_bands(levels)
        return Variable(found.name, levels if given is None else given)

    @staticmethod
    def _sorted_texts(levels: list[Any]) -> list[str] | None:
        """Return levels sorted, if they are texts: that is no order of their own."""
        return sorted(levels) if all(isinstance(level, str) for level in levels) else None

    def _sorted_bands(self, levels: list[str]) -> Sequence[str]:
        """Return texts sorted, by their numbers if they are bands; warn if texts seldom repeat."""
        bands = sorted_bands(levels)
        if bands is not None and bands != levels:
            text = listing_of_texts(bands, 16)
            logger.info(
                "the levels of column %r are sorted as bands of numbers: %s", self.name, text
            )
        n_observed, count = self.n_observed, len(self.levels)
        if bands is None and n_observed >= _FEWEST_UNIQUE and 2 * count > n_observed:
            logger.warning(
                "column %r holds %d different texts in %d rows, like names or ids: leave it out, "
                "or join its levels to fewer; a model cannot learn from texts that seldom repeat",
                self.name,
                count,
                n_observed,
            )
        return levels if bands is None else bands

    @property
    def _are_measured(self) -> bool:
        return are_numeric(self.kinds) or kind_of_times(self.kinds) is not None

    def _checked(self, is_whole: bool = False) -> ColumnLevels:
        """Return the levels themselves, or raise if they are too many, or too few in the end."""
        rules, count = self.rules, len(self.levels)
        if is_whole and not count:
            raise self._error(rules.no_cell)
        if self.own_order is None and count > rules.max_numbers and self._are_measured:
            raise self._error(rules.too_many_numbers)
        is_unique = is_whole and count > rules.max_numbers and 2 * count > self.n_observed
        if rules.max_levels is not None and count > rules.max_levels:
            are_measured = self._typed()._are_measured
            raise self._error(rules.too_many_numbers if are_measured else rules.too_many_levels)
        if is_unique and self.own_order is None and not rules.may_be_unique:
            raise self._error(rules.too_many_levels)
        return self

    def _error(self, sentence: str) -> JointPMFError:
        limit, count = self.rules.max_numbers, len(self.levels)
        what = "times" if kind_of_times(self.kinds) else "numbers"
        return JointPMFError(
            sentence.format(name=self.name, count=count, max_numbers=limit, what=what)
        )

    def _typed(self) -> ColumnLevels:
        """Return the levels as what their texts stand for, if the rules say so."""
        if self.rules.typed is None:
            return self
        levels = self.rules.typed(list(self.levels))
        return replace(self, levels=_numbered(levels), kinds=set(map(type, levels)))

    def _sorted(self) -> list[Any]:
        levels = list(self.levels)
        if float in self.kinds and len(self.kinds) > 1 and are_numeric(self.kinds, Real):
            with suppress(OverflowError):
                floats = list(map(float, levels))
                levels = floats if floats == levels else levels
        try:
            return sorted(levels)
        except TypeError:
            kinds = sorted({type(level).__name__ for level in levels})
            raise JointPMFError(
                f"column {self.name!r} mixes cells of types {', '.join(kinds)}, which have no order"
            ) from None


def _numbered(levels: Iterable[Any]) -> dict[Any, int]:
    return {level: k for k, level in enumerate(dict.fromkeys(levels))}


@dataclass
class ColumnNumbers:
    """The numbers of one column that will be cut into bins; of very many, evenly spaced ones.

    Attributes
    ----------
    numbers : list of arrays
        The cells of every `stride`-th row of those read, NaN where they are missing.
    time : str or None
        Which kind of time they are the seconds of.
    """

    name: str
    rules: LevelRules
    bins: Cut
    numbers: list[np.ndarray]
    n_rows: int
    time: str | None = None
    stride: int = 1
    levels: dict[Any, int] = field(default_factory=dict)
    """None, as long as it is not known where to cut."""

    @classmethod
    def of(cls, column: Column, rules: LevelRules, bins: Cut) -> ColumnNumbers:
        """Return the numbers of a column, or raise if it holds something else."""
        missing = column.missing
        observed = column.numbers
        if observed is None:
            if column.n_observed:
                raise JointPMFError(
                    f"column {column.name!r} cannot be binned: it does not hold numbers or times"
                )
            observed = np.empty(0)
        numbers = observed
        if len(observed) < len(missing):
            numbers = np.full(len(missing), np.nan)
            numbers[~missing] = observed
        return cls(column.name, rules, bins, [numbers], len(missing), column.time)

    def copy(self) -> ColumnNumbers:
        """Return the same numbers, which can be added to."""
        return replace(self, numbers=list(self.numbers))

    def update(self, other: Any) -> None:
        """Add the numbers of more rows."""
        if self._is_empty:
            self.time = other.time
        elif not other._is_empty and not are_comparable(self.time, other.time):
            raise JointPMFError(
                f"column {self.name!r} cannot be binned: it mixes numbers and times"
            )
        while self.stride < other.stride:
            self._drop_every_second()
        first = -(-(-self.n_rows % self.stride) // other.stride)
        self.numbers.append(np.concatenate(other.numbers)[first :: self.stride // other.stride])
        self.n_rows += other.n_rows
        while self.rules.max_binned is not None and self._n_kept > self.rules.max_binned:
            self._drop_every_second()

    @property
    def _is_empty(self) -> bool:
        return all(np.isnan(part).all() for part in self.numbers)

    @property
    def _n_kept(self) -> int:
        return sum(map(len, self.numbers))

    def _drop_every_second(self) -> None:
        self.numbers = [np.concatenate(self.numbers)[::2]]
        self.stride *= 2

    def variable(self, scales: Scales) -> Variable:
        """Return the variable that the column's bins are; they have an order of their own."""
        if self.name in scales.by_name:
            raise JointPMFError(f"column {self.name!r} has both bins and levels: leave one out")
        numbers = np.concatenate(self.numbers)
        missing = np.isnan(numbers)
        if missing.all():
            raise JointPMFError(self.rules.no_cell.format(name=self.name))
        return binned_variable(self.name, numbers[~missing], missing, self.bins, self.time)


def _found_in(column: Column, rules: LevelRules) -> ColumnLevels | ColumnNumbers:
    """Return the levels of a column, or its numbers if it is to be cut."""
    bins = rules.bins.get(column.name)
    is_continuous = rules.other_bins is not None and column.is_measured
    if bins is None and is_continuous and len(column.distinct) > rules.max_numbers:
        bins = rules.other_bins
    if bins is None:
        return ColumnLevels.of(column, rules)
    return ColumnNumbers.of(column, rules, bins)


def learned_variable(column: Column, rules: LevelRules, scales: Scales | None = None) -> Variable:
    """Return the variable that a whole column is."""
    return _found_in(column, rules).variable(scales or Scales())


class LevelCollector:
    """The columns and levels of tables, as if they came at once."""

    def __init__(self, rules: LevelRules | None = None) -> None:
        self.rules = LevelRules() if rules is None else rules
        self._found: dict[str, ColumnLevels | ColumnNumbers] = {}
        self._given: Domain | None = None

    def add(self, table: Any, names: Sequence[str] | None = None) -> int:
        """Add the levels of a table, or of some of its columns; return how many rows it has."""
        if isinstance(getattr(table, "codes", None), Codes):
            table = table.codes  # of Ratings
        if isinstance(table, Codes):
            if table.domain != (self._given or table.domain):
                raise JointPMFError("the codes are over another domain than those before")
            self._given = table.domain
            return table.n_rows
        n_rows, columns = columns_of(table, None, self.rules.missing_code)
        if n_rows:
            for _ in self._taken(columns, names):
                pass
        return n_rows

    def add_coded(self, table: Any, names: Sequence[str]) -> list[np.ndarray]:
        """Add the levels of some columns, and return their codes by the order levels came in.

        Of columns that are cut there are numbers instead, NaN where a cell is missing.
        """
        columns = columns_of(table, None, self.rules.missing_code)[1]
        return [
            np.concatenate(own.numbers)
            if isinstance(own, ColumnNumbers)
            else column.codes(self._found[column.name].levels)
            for column, own in self._taken(columns, names)
        ]

    def add_texts(self, name: str, texts: Iterable[str | None], n_observed: int) -> None:
        """Add the levels of a column that are texts, and how many of its cells hold one."""
        levels = _numbered(sorted(text for text in texts if text is not None))
        found = ColumnLevels(name, self.rules, levels, {str}, n_observed=n_observed)
        self._take(found._checked())

    def first_levels(self, name: str) -> list[Any]:
        """Return the levels of a column in the order in which they came; none if it is cut."""
        return list(self._found[name].levels)

    def _taken(
        self, columns: Columns, names: Sequence[str] | None
    ) -> Iterator[tuple[Column, ColumnLevels | ColumnNumbers]]:
        """Take columns in one after the other, and yield what was found in each."""
        some = columns if names is None else {name: columns[name] for name in names}
        for column in columns_ready(some):
            found = _found_in(column, self.rules)
            self._take(found)
            yield column, found

    def _take(self, found: ColumnLevels | ColumnNumbers) -> None:
        if found.name in self._found:
            self._found[found.name].update(found)
        else:
            self._found[found.name] = found

    def merged(self, other: LevelCollector) -> LevelCollector:
        """Return a collector of what both have found; both stay as they are."""
        both = LevelCollector(self.rules)
        both._given = self._given or other._given
        for found in (*self._found.values(), *other._found.values()):
            both._take(found.copy())
        return both

    def domain(self, scales: Scales | None = None, names: Sequence[str] | None = None) -> Domain:
        """Return the domain of all tables, in which levels have the order of their scales.

        Variables have the order in which they were found, or that of `names`.
        """
        if self._given is not None:
            return self._given
        if not self._found:
            raise JointPMFError(self.rules.empty)
        scales = scales or Scales()
        scales.check_names(list(self._found))
        variables = [self._found[name].variable(scales) for name in names or self._found]
        scales.check_used(variables)
        return Domain(variables)
