"""Whatever the user has, opened: a table in memory, files, batches, a Dask or Spark frame."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jointpmf.data.codes import checked_weights
from jointpmf.data.encode import ReadOptions, encode
from jointpmf.errors import JointPMFError
from jointpmf.rows.distributed import distributed_rows, engine_of
from jointpmf.rows.reading import Batches, FileReading, Files, Reading, are_batches
from jointpmf.rows.source import Source, Table
from jointpmf.rows.spool import Spool, SpooledRows
from jointpmf.rows.weighted import WeightedCodes, joined

if TYPE_CHECKING:
    from jointpmf.domain import Domain

logger = logging.getLogger("jointpmf")


@contextmanager
def opened(
    source: Any, options: ReadOptions, sample_weight: Any
) -> Iterator[Source | FileReading | Batches]:
    """Give what a user has as a source of rows, or as something rows can be read from."""
    domain, levels = options.domain, options.levels
    bins, missing_code = options.bins, options.missing_code
    if engine := engine_of(source):
        what = f"a {engine} table"
        _refuse(what, sample_weight=sample_weight, bins=bins, missing_code=missing_code)
        with distributed_rows(source, domain, levels=levels) as rows:
            yield rows
    elif isinstance(source, FileReading):
        _refuse("a file", sample_weight=sample_weight)
        yield source
    elif (files := _files_of(source)) is not None:
        _refuse("a file", sample_weight=sample_weight)
        with opened_files(files, domain, bins, levels, missing_code) as reading:
            yield reading
    elif are_batches(source):
        _refuse("batches", sample_weight=sample_weight, bins=bins)
        yield Batches(source, domain, levels, missing_code)
    else:
        codes = encode(source, domain, bins=bins, levels=levels, missing_code=missing_code)
        yield Table.of_codes(codes, checked_weights(sample_weight, codes.n_rows))


def _refuse(kind: str, **asked: Any) -> None:
    """Raise if something was asked for that such a source cannot do."""
    for name, value in asked.items():
        if value is not None:
            instead = "leave it out"
            if (name, kind) == ("sample_weight", "a file"):
                instead = "name a column of it, Files(path, weights=...)"
            raise JointPMFError(f"{name} does not apply to {kind}: {instead}")


def _files_of(source: Any) -> Files | None:
    """Return a path, or several of them, as files; None for anything else."""
    if isinstance(source, Files):
        return source
    paths = source if isinstance(source, (list, tuple)) else [source]
    are_paths = bool(paths) and all(isinstance(path, (str, os.PathLike)) for path in paths)
    return Files(source) if are_paths else None


@contextmanager
def opened_files(
    files: Files, domain: Domain | None, bins: Any, levels: Any = None, missing_code: Any = None
) -> Iterator[FileReading]:
    """Give the rows of tables on disk, whose levels are known.

    `bins` and `levels` may be functions that give them from the names of the columns.
    """
    from jointpmf.data.table_files import open_tables  # Polars, which fits in memory do not need

    with open_tables(files.paths, files.missing) as table:
        if files.memory is not None and table.is_read_ahead:
            raise JointPMFError(
                f"{table.name} is packed by zstandard, which cannot be read within a limit of "
                "memory: unpack it, or pack it by gzip"
            )
        names = files.kept_names(table.columns)
        bins = bins(names) if callable(bins) else bins
        levels = levels(names) if callable(levels) else levels
        reading = FileReading(table, files, ReadOptions(domain, bins, levels, missing_code))
        logger.info("the levels of %d columns are known", len(reading.domain))
        yield reading


@contextmanager
def kept(
    reading: Reading, can_hold: Callable[[int], bool] | None, block_bytes: int = 2**24
) -> Iterator[Source]:
    """Give rows that were read: in memory if there is room for them, else on disk.

    `can_hold` is asked with the number of rows; without it all rows go to disk.
    """
    with Spool(reading.domain, block_bytes) as spool:
        held = _read(reading, spool, can_hold)
        if held is None:
            logger.info("the codes of %d rows are on disk", spool.n_rows)
            yield SpooledRows(spool)
        else:
            logger.info("%d rows were read", held[0].n_rows)
            yield Table.of_codes(*held)


def _read(
    reading: Reading, spool: Spool, can_hold: Callable[[int], bool] | None
) -> WeightedCodes | None:
    """Return the codes of all rows, or put them in the spool if they would take too much."""
    n_rows = 0
    held: list[WeightedCodes] = []
    for codes, weights in reading.batches():
        held.append((codes, weights))
        n_rows += codes.n_rows
        if can_hold is None or not can_hold(n_rows):
            for one in held:
                spool.add(*one)
            held.clear()
    if spool.n_rows or can_hold is None:
        for one in held:
            spool.add(*one)
        return None
    return joined(held)
