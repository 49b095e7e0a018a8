"""Tables on Dask and on Spark: the rows stay with the workers, and only sums come back.

The only file that knows dask and pyspark. Every partition becomes a `Part`, made once and kept
where it was made. A task goes out to the parts with the engine's own graph or query, so that the
engine also repeats what a lost worker had done. Sums are added in pairs of neighbours, always the
same ones, so that the bits do not depend on which worker was first.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.columns import check_shares
from jointpmf.data.encode import encode
from jointpmf.data.given_scales import Scales
from jointpmf.data.levels import LevelCollector, LevelRules
from jointpmf.domain import Domain, check_distinct
from jointpmf.errors import JointPMFError, shown
from jointpmf.rows.parts import (
    CountLevels,
    DrawSample,
    Expect,
    HashRows,
    Part,
    PartedRows,
    Parts,
    Reweighted,
    S,
    Task,
)
from jointpmf.threads import limited_to

if TYPE_CHECKING:
    from jointpmf.data.given_scales import Levels

ENGINES = {"dask.dataframe": "Dask", "pyspark.sql": "Spark"}
"""Where the DataFrames of each engine live; to know them, it need not be imported."""

GROUP = 16
"""Sums that one task adds; a power of two, so that the pairs are those of one large tree."""

_MOST_COPIED = 2**20
"""Bytes of a task that goes to Dask's partitions one by one, which is faster; a larger one goes to
its workers, and from one to the next."""

_ALIGNED = 64
"""Bytes of a cache line, on which each array begins in a file."""

_MAX_MOVES = 3
"""How often parts are made again because they are asked for on another machine."""

LOST = ("Python worker exited unexpectedly", "ExecutorLostFailure", "MemoryError")
"""How Spark says that a worker has died."""

EMPTY = "the table is empty: there is nothing to fit"


def engine_of(table: Any) -> str | None:
    """Return "Dask" or "Spark" for a table of theirs, and None for any other."""
    for kind in type(table).__mro__:
        for module, engine in ENGINES.items():
            if kind.__name__ == "DataFrame" and kind.__module__.startswith(module):
                return engine
    return None


@contextmanager
def distributed_rows(
    frame: Any,
    domain: Domain | None = None,
    most_copied: int = _MOST_COPIED,
    levels: Levels | None = None,
) -> Iterator[PartedRows]:
    """Give the rows of a Dask or Spark DataFrame, coded and kept by the workers until the end.

    Without a domain its levels are found first, in a pass of their own: then they are those that
    `encode` finds in the whole table, in the order of the scales that `levels` are.
    """
    scales = Scales.of(levels)
    names = list(frame.columns)
    check_distinct(names, "the table")
    for name in names:
        if not isinstance(name, str):
            raise JointPMFError(f"column names must be strings, not {shown(name)}")
    if domain is not None:
        check_shares(names, domain)
        names = [name for name in names if name in domain]
    is_spark = engine_of(frame) == "Spark"
    source: _Source
    source = _SparkSource(frame, names) if is_spark else _DaskSource(frame, names, most_copied)
    if domain is None:
        domain = source.levels().domain(scales)
    with source.coded(domain) as parts:
        rows = PartedRows(parts)
        if not rows.levels.n_rows and not rows.levels.n_empty:
            raise JointPMFError(EMPTY)
        yield rows


@dataclass(frozen=True)
class Piece:
    """A partition as the engine gives it: a pandas or PyArrow table that should have some columns.

    Empty ones, of which nothing is asked, are as good as none.
    """

    index: int
    table: Any
    names: Sequence[str]

    def check_columns(self) -> None:
        """Raise if a column is not there, which Dask does not check."""
        there = getattr(self.table, "column_names", self.table.columns)
        lacking = [name for name in self.names if name not in there]
        if lacking:
            raise JointPMFError(f"partition {self.index} lacks the column {lacking[0]!r}")


@dataclass(frozen=True)
class FindLevels:
    """The task of finding the levels of all columns."""

    max_levels: int = 100_000
    """A column with more levels is not discrete; what is found travels to the caller."""

    def __call__(self, piece: Piece) -> LevelCollector:
        """Return the levels of a piece."""
        found = LevelCollector(
            LevelRules(
                max_levels=self.max_levels,
                too_many_numbers=(
                    "column {name!r} has more than {max_numbers} distinct {what}: cut it into "
                    "bins, or give a domain in which its variable has edges"
                ),
                too_many_levels=(
                    f"column {{name!r}} has more than {self.max_levels} levels, too many to "
                    "learn from"
                ),
                empty=EMPTY,
            )
        )
        if len(piece.table):
            piece.check_columns()
            found.add(piece.table, piece.names)
        return found


@dataclass(frozen=True)
class MakePart:
    """The task of making codes."""

    domain: Domain

    def __call__(self, piece: Piece) -> Part:
        """Return a piece as rows that a fit can work on."""
        if not len(piece.table):
            nothing = np.empty((0, len(self.domain)), np.int8)
            return Part.to_keep(piece.index, Codes(self.domain, nothing))
        piece.check_columns()
        try:
            return Part.to_keep(piece.index, encode(piece.table, self.domain))
        except JointPMFError as error:
            raise JointPMFError(f"in partition {piece.index}, {error}") from None


STEPS: dict[type, str] = {
    FindLevels: "finding the levels of the columns",
    MakePart: "making codes",
    CountLevels: "making codes and counting levels",
    DrawSample: "drawing a sample of the rows",
    Expect: "computing expected counts",
    HashRows: "hashing the rows for the checkpoint",
    Reweighted: "computing with resampled rows",
}
"""What each task does. Dask makes codes when something is first asked of them."""


def summed(sums: Sequence[S]) -> S:
    """Return the sum of all, added in pairs of neighbours."""
    while len(sums) > 1:
        pairs = [sums[k : k + 2] for k in range(0, len(sums), 2)]
        sums = [pair[0].merged(pair[1]) if len(pair) > 1 else pair[0] for pair in pairs]
    return sums[0]


@contextmanager
def _said_plainly(task: object) -> Iterator[None]:
    """Turn what an engine raises into a sentence, where there is one."""
    try:
        yield
    except JointPMFError:
        raise
    except Exception as error:
        text = str(error)
        own = re.search(r"^jointpmf\.errors\.JointPMFError: (.+)$", text, re.MULTILINE)
        if own:
            raise JointPMFError(own[1].strip()) from None
        is_lost = type(error).__name__ == "KilledWorker" or isinstance(error, MemoryError)
        if is_lost or any(words in text for words in LOST):
            step = STEPS.get(type(task), type(task).__name__)
            raise JointPMFError(
                f"workers died or ran out of memory while {step}: use smaller partitions, or "
                "workers with more memory"
            ) from error
        raise


class _Source(Protocol):
    """A table of an engine."""

    def levels(self) -> LevelCollector:
        """Return the levels of its columns."""

    def coded(self, domain: Domain) -> AbstractContextManager[Parts]:
        """Give its rows as codes, kept by the workers."""


class _DaskSource:
    """A Dask DataFrame."""

    def __init__(self, frame: Any, names: list[str], most_copied: int) -> None:
        self._most_copied = most_copied
        self._pieces = [Piece(k, table, names) for k, table in enumerate(frame.to_delayed())]

    def levels(self) -> LevelCollector:
        """Return the levels of its columns."""
        return _dask_total(FindLevels(), self._pieces, self._most_copied)

    def coded(self, domain: Domain) -> AbstractContextManager[Parts]:
        """Give its rows as codes, kept by the workers."""
        return nullcontext(_DaskParts(domain, self._pieces, self._most_copied))


class _DaskParts:
    """Parts that Dask's workers keep; the engine makes those of a lost worker again."""

    def __init__(self, domain: Domain, pieces: Sequence[Any], most_copied: int) -> None:
        import dask

        self.domain, self._most_copied = domain, most_copied
        task = MakePart(domain)
        with _said_plainly(task):
            self._parts = dask.persist(*_dask_shares(task, pieces, most_copied))

    def total(self, task: Task[S]) -> S:
        """Return the sum of a task's results over all parts."""
        return _dask_total(task, self._parts, self._most_copied)


def _dask_total(task: Any, items: Sequence[Any], most_copied: int) -> Any:
    import dask

    sums = _dask_shares(task, items, most_copied)
    while len(sums) > GROUP:  # the workers add first, group by group
        sums = [dask.delayed(summed)(sums[k : k + GROUP]) for k in range(0, len(sums), GROUP)]
    with _said_plainly(task):
        return summed(dask.compute(*sums))


def _dask_shares(task: Any, items: Sequence[Any], most_copied: int) -> list[Any]:
    """Return what a task will make of each item.

    The task is in the graph: what is scattered would be lost for good with a worker.
    """
    import cloudpickle
    import dask

    if len(cloudpickle.dumps(task)) * len(items) <= most_copied:
        run = dask.delayed(partial(_share, task), pure=False)
        return [run(item) for item in items]
    carried = dask.delayed(task, traverse=False)
    return [dask.delayed(_share)(carried, item) for item in items]


def _share(task: Callable[[Any], Any], item: Any) -> Any:
    """Return what a task makes of one item, on one thread: the engine runs several at a time."""
    with limited_to(1):
        return task(item)


class _SparkSource:
    """A Spark DataFrame."""

    def __init__(self, frame: Any, names: list[str]) -> None:
        from pyspark.sql.functions import col

        if "connect" in type(frame).__module__:
            raise JointPMFError(
                "Spark Connect has no RDDs, which are needed: use a classic session"
            )
        # names of our own, because dots would mean fields; times as pandas would show them
        plain = frame.toDF(*[f"x{n}" for n in range(len(frame.columns))])
        self._frame = plain.select(
            [
                col(x).cast("timestamp_ntz") if kind == "timestamp" else col(x)
                for name, (x, kind) in zip(frame.columns, plain.dtypes, strict=True)
                if name in names
            ]
        )
        self._names = names

    def levels(self) -> LevelCollector:
        """Return the levels of its columns."""
        return _spark_total(FindLevels(), self._results(FindLevels()))

    @contextmanager
    def coded(self, domain: Domain) -> Iterator[Parts]:
        """Give its rows as codes, kept by the workers."""
        folder = f"jointpmf-{uuid4().hex}"
        parts = self._results(_KeepPart(MakePart(domain), folder)).persist()
        try:
            yield _SparkParts(domain, parts)
        finally:
            parts.unpersist()
            count = max(parts.getNumPartitions(), 1)
            parts.context.parallelize(range(count), count).foreach(partial(_forget, folder))

    def _results(self, task: Callable[[Piece], Any]) -> Any:
        """Return what a task makes of each partition, as an RDD."""
        results = partial(_arrow_results, task, self._names)
        return self._frame.mapInArrow(results, "result binary").rdd.map(_result)


class _SparkParts:
    """Parts that Spark's workers keep in files; the engine makes those of a lost one again."""

    def __init__(self, domain: Domain, parts: Any) -> None:
        self.domain = domain
        self._parts = parts

    def total(self, task: Task[S]) -> S:
        """Return the sum of a task's results over all parts."""
        shares = self._parts.map(partial(_share_of_kept, task))
        for _ in range(_MAX_MOVES):
            try:
                return _spark_total(task, shares)
            except Exception as error:
                if _NOT_HERE not in str(error):
                    raise
                self._parts.unpersist(blocking=True)
        return _spark_total(task, shares)


_NOT_HERE = "the part is kept by another machine"


@dataclass(frozen=True)
class _KeepPart:
    """The task of making a part and writing it to a file of the worker's machine.

    Spark would hand a part that it keeps to Python anew in every pass; a file is mapped.
    """

    make: MakePart
    folder: str

    def __call__(self, piece: Piece) -> str:
        """Return the path of a piece's part."""
        folder = Path(_spark_folder(), self.folder)
        folder.mkdir(exist_ok=True)
        path = folder / f"{piece.index}-{uuid4().hex}"
        arrays: list[pickle.PickleBuffer] = []
        head = pickle.dumps(self.make(piece), protocol=5, buffer_callback=arrays.append)
        sizes = [array.raw().nbytes for array in arrays]
        with open(path, "xb") as file:
            pickle.dump((sizes, head), file)
            for array in arrays:
                file.seek(-file.tell() % _ALIGNED, os.SEEK_CUR)
                file.write(array.raw())
        return str(path)


@lru_cache(maxsize=1)
def _part_in(path: str) -> Part:
    """Return the part in a file, whose arrays are those of the file.

    A worker keeps the last one that it mapped, until it maps another one or ends: in the next pass
    it is often asked for the same.
    """
    if not os.path.exists(path):
        raise RuntimeError(_NOT_HERE)
    with open(path, "rb") as file:
        sizes, head = pickle.load(file)
        end = file.tell()
        memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    arrays = []
    for size in sizes:
        begin = -(-end // _ALIGNED) * _ALIGNED
        end = begin + size
        arrays.append(memory[begin:end])
    return pickle.loads(head, buffers=arrays)


def _share_of_kept(task: Callable[[Part], Any], path: str) -> Any:
    """Return what a task makes of a part in a file."""
    return _spark_share(task, _part_in(path))


def _forget(folder: str, _: int) -> None:
    """Delete the parts that are kept here; this worker also lets go of the one that it mapped."""
    _part_in.cache_clear()
    rmtree(Path(_spark_folder(), folder), ignore_errors=True)


def _spark_folder() -> str:
    """Return the folder that Spark has for a session, and deletes with it."""
    from pyspark import SparkFiles

    return SparkFiles.getRootDirectory()


def _spark_share(task: Callable[[Any], Any], item: Any) -> Any:
    """Return what a task makes of one item, and keep what it has loaded out of Spark's way."""
    share = _share(task, item)
    _keep_loaded(type(task).__name__)
    return share


@cache
def _keep_loaded(_kind: str) -> None:
    # Spark collects garbage after every task, which would look at all of numba each time
    gc.collect()
    gc.freeze()


def _arrow_results(
    task: Callable[[Piece], Any], names: list[str], batches: Iterator[Any]
) -> Iterator[Any]:
    """Yield what a task makes of a partition, as Spark takes it, unless that is empty."""
    import pyarrow as pa
    from pyspark import TaskContext

    found = [batch for batch in batches if len(batch)]
    if not found:
        return
    index = TaskContext.get().partitionId()
    table = pa.Table.from_batches(found).rename_columns(names)
    result = pickle.dumps(_spark_share(task, Piece(index, table, names)))
    yield pa.RecordBatch.from_pydict({"result": [result]})


def _result(row: Any) -> Any:
    return pickle.loads(row.result)


def _spark_total(task: Any, shares: Any) -> Any:
    with _said_plainly(task):
        n_groups = -(-shares.getNumPartitions() // GROUP)
        if n_groups > 1:  # the workers add first, group by group
            shares = shares.mapPartitionsWithIndex(_numbered).groupByKey(n_groups)
            groups = shares.mapValues(_summed_in_order).collect()
            sums = [share for _, share in sorted(groups, key=itemgetter(0))]
        else:
            sums = shares.collect()  # in the order of the partitions
    if not sums:
        raise JointPMFError(EMPTY)
    return summed(sums)


def _numbered(partition: int, shares: Iterator[Any]) -> Iterator[tuple[int, tuple[int, Any]]]:
    """Yield each share with its group, and its place in it."""
    return ((partition // GROUP, (partition % GROUP, share)) for share in shares)


def _summed_in_order(shares: Iterable[tuple[int, Any]]) -> Any:
    return summed([share for _, share in sorted(shares, key=itemgetter(0))])
