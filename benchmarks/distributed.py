"""One EM pass over ten million rows: in memory, on Dask and on Spark, both cores each.

The rows are Parquet files that the engines read themselves. Counts must be the same ones. Rows that
repeat are worked on once in memory, but once per partition on workers, so that many partitions take
longer. Results are written beside this file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
from distributed import Client, LocalCluster
from pyspark.sql import SparkSession

import jointpmf as jp
from benchmarks.likelihood import planted
from benchmarks.measure import print_lines
from jointpmf.data.decode import decode
from jointpmf.point import Point
from jointpmf.rows.distributed import distributed_rows
from jointpmf.rows.parts import PartedRows
from jointpmf.rows.table import AnyRows, TableRows, rows_of_codes
from jointpmf.threads import row_blocks

N_ROWS, SIZES, RANK, MISSING_PART, N_WORKERS, N_FILES = 10**7, [5] * 10, 10, 0.3, 2, 8
N_TURNS = 30
ASKED = {
    f"Dask, {N_WORKERS} partitions": "at most 1.5×",
    f"Spark, {N_WORKERS} partitions": "at most 3×",
}
RESULTS = Path(__file__).parent / "results"


class Measured(NamedTuple):
    """What an engine took: to find levels and make codes, for a pass, and for one in memory."""

    reading: float
    one_pass: float
    in_memory: float


def main() -> None:
    """Measure, print and write the table."""
    truth, codes = planted(N_ROWS, SIZES, RANK, 0.5, MISSING_PART, 0)
    in_memory = rows_of_codes(codes)
    here = pass_over(in_memory, truth)
    with tempfile.TemporaryDirectory() as folder:
        table = decode(codes)
        for k, (first, end) in enumerate(row_blocks(N_ROWS, N_ROWS // N_FILES)):
            table[first:end].write_parquet(f"{folder}/{k}.parquet")
        del table
        found = {}
        with dask_cluster():
            for n in (N_WORKERS, N_FILES):
                frame = dd.read_parquet(folder).repartition(npartitions=n)
                found[f"Dask, {n} partitions"] = measured(frame, truth, in_memory, here)
        with spark_session() as session:
            frame = session.read.parquet(folder).coalesce(N_WORKERS)
            found[f"Spark, {N_WORKERS} partitions"] = measured(frame, truth, in_memory, here)
            own = spark_itself(frame)
    write(found, own)


def measured(
    frame: Any, truth: jp.JointPMF, in_memory: TableRows, here: Callable[[], float]
) -> Measured:
    """Return what an engine takes, after a check that it counts what is counted in memory."""
    begin = time.perf_counter()
    with distributed_rows(frame) as rows:
        reading = time.perf_counter() - begin
        check_counts(rows, in_memory)
        return Measured(reading, *side_by_side(pass_over(rows, truth), here))


def spark_itself(frame: Any) -> float:
    """Return how long Spark takes to find the distinct rows, and to hand all of them to Python."""
    return seconds(frame.distinct().count) + seconds(frame.mapInArrow(n_rows_of, "n long").collect)


def n_rows_of(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield how many rows there are, which is the least that Python can do with them."""
    yield pa.RecordBatch.from_pydict({"n": [sum(map(len, batches))]})


def pass_over(rows: AnyRows, truth: jp.JointPMF) -> Callable[[], float]:
    """Return what does an E-step at the true model, and returns the log-likelihood."""
    expectation = rows.expectation(RANK)
    stack = expectation.stack(Point.of_pmf(truth))
    return lambda: expectation.counts(stack)[1]


def side_by_side(there: Callable[[], float], here: Callable[[], float]) -> tuple[float, float]:
    """Return the best times of two passes in turns, so that both meet the same machine."""
    assert np.isclose(there(), here(), rtol=1e-12)
    times = [(seconds(there), seconds(here)) for _ in range(N_TURNS)]
    return min(first for first, _ in times), min(second for _, second in times)


def seconds(function: Callable[[], object]) -> float:
    """Return the time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def check_counts(rows: PartedRows, in_memory: TableRows) -> None:
    """Raise unless the workers count what is counted in memory."""
    assert rows.domain == in_memory.domain
    assert np.array_equal(rows.counts, in_memory.counts)


@contextmanager
def dask_cluster() -> Iterator[None]:
    """Let Dask work in processes of one thread."""
    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster),
    ):
        yield


@contextmanager
def spark_session() -> Iterator[Any]:
    """Give a session of Spark with as many threads."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder: Any = SparkSession.builder
    session = builder.master(f"local[{N_WORKERS}]").config(map=options).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def write(found: dict[str, Measured], own: float) -> None:
    """Print the table, and write it."""
    title = (
        f"{N_ROWS:,} × {len(SIZES)} × {SIZES[0]} levels, {MISSING_PART:.0%} missing, rank {RANK}, "
        f"{N_WORKERS} cores"
    )
    text = [
        "# One EM pass: on Dask and Spark, and in memory",
        "",
        f"{title} (`python -m benchmarks.distributed`). The best of {N_TURNS} passes, in turns "
        "with passes in memory. Reading is finding the levels and making the codes, once; a "
        f"`distinct` of Spark and a map that counts the rows in Python took {own:.1f} s together.",
        "",
        "| where | reading (s) | one pass (s) | in memory (s) | ratio |",
        "|---|---:|---:|---:|---:|",
    ]
    lines = []
    for engine, (reading, there, here) in found.items():
        ratio = f"{there / here:.2f}×"
        beside = f"in memory {here:.3f} s: {ratio}"
        lines.append((f"{engine}, one pass", f"{there:.3f} s", beside, ASKED.get(engine, "")))
        text.append(f"| {engine} | {reading:.1f} | {there:.3f} | {here:.3f} | {ratio} |")
    spark = list(found)[-1]
    reading = found[spark].reading
    beside = f"Spark's distinct and map {own:.1f} s: {reading / own:.2f}×"
    lines.append((f"{spark}, reading", f"{reading:.1f} s", beside, "at most 1×"))
    print_lines(title, lines)
    (RESULTS / "distributed.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
