"""Rows that come some at a time: batches of tables, files, and streams that can be read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jointpmf.compiled.cells import n_observed
from jointpmf.data.codes import Codes
from jointpmf.data.columns import check_missing_code
from jointpmf.data.encode import ReadOptions, encode
from jointpmf.data.given_scales import Scales
from jointpmf.data.levels import LevelCollector, LevelRules
from jointpmf.domain import name_list
from jointpmf.errors import JointPMFError, is_unicode, listing, shown, whole_number

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile
    from jointpmf.domain import Domain
    from jointpmf.rows.weighted import WeightedCodes


_BATCH_LEVELS = LevelRules(
    too_many_numbers=(
        "column {name!r} has more than {max_numbers} distinct {what}: give a domain in which it "
        "is binned, such as encode(some rows, bins={{{name!r}: 8}}).domain"
    ),
    empty="the batches are empty: there is nothing to learn the levels from",
)
"""How the levels of batches are learned where no domain is given."""


@dataclass(frozen=True)
class Files:
    """Tables on disk, as a source of rows.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV, TSV, NDJSON (also .gz, .zst) or Parquet, a folder of Parquet files, or "-" for stdin.
        Several files are one table.
    missing : sequence of str
        Texts that mean a missing cell, besides the usual ones.
    only, drop : sequence of str
        Columns to use, or to leave out.
    memory : int or str, optional
        What the whole process may take, in bytes or as a text such as "2GB". Rows that do not fit
        are kept on disk, as codes. By default half of what is free.
    weights : str, optional
        A column that holds what each row counts for, and is not a variable of the model: the
        `sample_weight` of a table in memory.

    Examples
    --------
    >>> Files("survey.csv", drop=["person"], weights="household weight").drop
    ['person']
    """

    paths: Any
    missing: Sequence[str] = ()
    only: Sequence[str] = ()
    drop: Sequence[str] = ()
    memory: int | str | None = None
    weights: str | None = None

    def __post_init__(self) -> None:
        for field in ("missing", "only", "drop"):
            object.__setattr__(self, field, name_list(getattr(self, field)))
        if not all(map(is_unicode, self.missing)):
            raise JointPMFError(
                f"no file can hold one of the missing texts {listing(self.missing)}"
            )
        if self.memory is not None and not isinstance(self.memory, str):
            whole_number(self.memory, "memory", 1, most=2**60)

    def kept_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns that are variables."""
        names, weights = name_list(names), self._weights()
        for name in (*self.only, *self.drop, *weights):
            if name not in names:
                raise JointPMFError(f"there is no column {name!r}; there are {listing(names)}")
        left_out = {*self.drop, *weights}
        kept = [n for n in names if (not self.only or n in self.only) and n not in left_out]
        if not kept:
            raise JointPMFError("no columns are left")
        return kept

    def _weights(self) -> list[str]:
        if self.weights is None:
            return []
        if not isinstance(self.weights, str):
            raise JointPMFError(
                f"the weights of a file are the name of a column, not {shown(self.weights)}"
            )
        if self.weights in self.only:
            raise JointPMFError(f"column {self.weights!r} cannot be a variable and the weights")
        return [self.weights]


class Reading(Protocol):
    """Something that rows can be read from, some at a time."""

    @property
    def domain(self) -> Domain:
        """What can happen."""

    @property
    def is_read_once(self) -> bool:
        """Whether the rows come only once."""

    def batches(self) -> Iterator[WeightedCodes]:
        """Yield the codes of the rows, some at a time, and what they count for."""


class FileReading:
    """The rows of a table on disk."""

    is_read_once = False

    def __init__(self, table: TableFile, files: Files, options: ReadOptions) -> None:
        names = files.kept_names(table.columns)
        if "" in names:
            raise JointPMFError(
                f"column {table.columns.index('') + 1} of {table.name} has no name; leave it out"
            )
        from jointpmf.data.file_codes import codes_in  # Polars, when it is needed
        from jointpmf.data.learned_codes import LearnedCodes

        self.table, self.files = table, files
        missing_code, weights = options.missing_code, files.weights
        domain, levels = options.domain, options.levels
        check_missing_code(missing_code, domain)
        if domain is None:
            bins = options.bins or {}
            learned = LearnedCodes(table, names, bins, levels, missing_code, weights)
            self.domain, self._batches = learned.domain, learned.batches
        else:
            self.domain = domain
            self._batches = partial(codes_in, table, domain, weights, missing_code)

    def batches(self) -> Iterator[WeightedCodes]:
        """Yield the codes of the rows, some at a time, and what they count for."""
        return self._batches()


class Batches:
    """Tables that come one after the other, and can be read once or many times.

    Parameters
    ----------
    batches : iterable of tables, or a callable that returns one
        A list or a callable can be read again; an iterator can be read once.
    domain : Domain, optional
        What can happen; by default it is learned in a first reading, which an iterator does not
        allow.
    levels, missing_code
        How the tables are read, see `encode`.
    """

    def __init__(
        self,
        batches: Any,
        domain: Domain | None = None,
        levels: Any = None,
        missing_code: Any = None,
    ) -> None:
        self._missing_code = missing_code
        self._batches: Iterable[Any] | Callable[[], Iterable[Any]] = batches
        self.is_read_once = isinstance(batches, Iterator)
        self._n_rows: int | None = None
        self.domain = self._learned_domain(Scales.of(levels)) if domain is None else domain

    def _tables(self) -> Iterator[Any]:
        tables = self._batches() if callable(self._batches) else self._batches
        if not isinstance(tables, Iterable):
            raise JointPMFError(
                f"the callable must return an iterable of tables, not {shown(tables)}"
            )
        return iter(tables)

    def _learned_domain(self, scales: Scales) -> Domain:
        """Return the domain of all batches, which are then read a second time."""
        if self.is_read_once:
            raise JointPMFError(
                "batches that can be read only once, such as a generator, need a domain: pass "
                "domain=, or a list of tables, or a function that returns a new generator"
            )
        rules, n_rows = replace(_BATCH_LEVELS, missing_code=self._missing_code), 0
        collector = LevelCollector(rules)
        for k, table in enumerate(self._tables()):
            try:
                n_rows += collector.add(table)
            except JointPMFError as error:
                raise JointPMFError(f"batch {k}: {error}") from None
        self._n_rows = n_rows
        return collector.domain(scales)

    def batches(self) -> Iterator[WeightedCodes]:
        """Yield the codes of each batch; each row counts for one."""
        n_rows = 0
        for k, table in enumerate(self._tables()):
            try:
                codes = encode(table, self.domain, missing_code=self._missing_code)
            except JointPMFError as error:
                raise JointPMFError(f"batch {k}: {error}") from None
            n_rows += codes.n_rows
            yield codes, None
        if not n_rows and not self._n_rows:
            raise JointPMFError("the batches are empty: there is nothing to fit")
        if self._n_rows not in (None, n_rows):
            raise JointPMFError(
                f"the batches had {self._n_rows} rows when they were read first and {n_rows} when "
                "they were read again; a callable must return a new iterator each time"
            )


def are_batches(source: Any) -> bool:
    """Tell whether a source is several tables: an iterator, a callable, or a list of tables.

    Examples
    --------
    >>> are_batches([np.zeros((2, 3))]), are_batches([[0, 1], [1, 1]])
    (True, False)
    """
    if isinstance(source, Iterator):
        return True
    if callable(source) and not hasattr(source, "columns"):
        return True
    return isinstance(source, (list, tuple)) and any(map(_is_table, source))


def _is_table(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return item.ndim == 2
    return isinstance(item, (Codes, Mapping)) or hasattr(item, "columns")


class Stream:
    """Rows of codes that come once, taken any number at a time."""

    def __init__(self, reading: Reading) -> None:
        self.domain = reading.domain
        self.n_rows = 0
        """How many rows were taken so far."""
        self._batches = reading.batches()
        self._waiting: list[np.ndarray] = []

    def take(self, n_rows: int) -> Codes:
        """Return the next rows: `n_rows` of them, or fewer at the end."""
        while sum(map(len, self._waiting)) < n_rows:
            codes, _ = next(self._batches, (None, None))
            if codes is None:
                break
            says_something = n_observed(codes.columns) > 0
            whole = says_something.all()
            self._waiting.append(codes.array if whole else codes.array[says_something])
        first, *others = self._waiting or [np.empty((0, len(self.domain)))]
        rows = np.concatenate([first, *others]) if others else first  # a large one is not copied
        self._waiting = [rows[n_rows:]] if len(rows) > n_rows else []
        self.n_rows += min(len(rows), n_rows)
        return Codes(self.domain, rows[:n_rows])
