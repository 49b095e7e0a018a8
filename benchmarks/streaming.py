"""A file that is larger than the memory: how much the command takes of it, and how long.

A Parquet file of 50 million rows of ten variables (five levels, 10 % missing, from a model of rank
5) is made in a temporary folder, and `jointpmf fit` runs on it in a process of its own with 1 GB.
Another number of rows can be given as an argument. The result is written beside this file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines
from jointpmf.threads import n_threads

N_ROWS, N_VARIABLES, SIZE, RANK, MISSING_PART = 50_000_000, 10, 5, 5, 0.1
PIECE, MAX_ITER, BUDGET = 10**6, 10, 10**9
RESULTS = Path(__file__).parent / "results"

COMMAND = """
import logging
from jointpmf.command.main import main

logging.basicConfig(format="%(created).2f %(message)s")
logging.getLogger("jointpmf").setLevel("INFO")
main()
"""
"""The command, with what the library logs, and when, on stderr."""

PHASES = {
    "the levels": "imports, and levels of the columns",
    "the codes": "codes, to disk",
    "a model of": "start, on a sample",
    "all rows were": "one pass in steps",
}
"""What is logged at the end of each part of the work, and what to call that."""

EM_PHASE = f"EM, {MAX_ITER} iterations"


def main() -> None:
    """Make the file, fit it, print and write what that took."""
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else N_ROWS
    with tempfile.TemporaryDirectory(prefix="jointpmf-") as folder:
        path = f"{folder}/rows.parquet"
        # in a process of its own: what this one has held would count as the command's
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(write_rows, path, n_rows).result()
        file_size = os.path.getsize(path)
        times, peak = measured(path)
    lines = lines_of(n_rows, file_size, times, peak)
    title = f"{n_rows:,} × {N_VARIABLES} variables, rank {RANK}, {n_threads()} threads"
    print_lines(title, lines)
    if n_rows == N_ROWS:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "streaming.md").write_text(text(title, lines))


def write_rows(path: str, n_rows: int) -> None:
    """Write rows of a random model with holes, a piece at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    truth = jp.random_pmf(jp.Domain.of_sizes([SIZE] * N_VARIABLES), RANK, random_state=0)
    generator = np.random.default_rng(0)
    schema = pa.schema([(name, pa.int64()) for name in truth.domain.names])
    with parquet.ParquetWriter(path, schema) as writer:
        for begin in range(0, n_rows, PIECE):
            size = min(PIECE, n_rows - begin)
            codes = truth.sample(size, random_state=generator, backend="codes").astype(np.int64)
            holes = generator.random(codes.shape) < MISSING_PART
            columns = [pa.array(codes[:, n], mask=holes[:, n]) for n in range(N_VARIABLES)]
            writer.write_table(pa.table(columns, schema=schema))


def measured(path: str) -> tuple[dict[str, float], int]:
    """Return the seconds of each part of a fit, and the most memory that it held."""
    begin = time.time()
    options = ["--rank", str(RANK), "--memory", f"{BUDGET}", "--max-iter", str(MAX_ITER)]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "fit", path, "-o", os.devnull, *options],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    times = {}
    for line in process.stderr:
        when, _, what = line.partition(" ")
        for first_words, name in PHASES.items():
            if what.startswith(first_words):
                times[name], begin = float(when) - begin, float(when)
    times[EM_PHASE] = time.time() - begin
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise SystemExit("the fit failed")
    return times, usage.ru_maxrss * 1024


def lines_of(
    n_rows: int, file_size: int, times: dict[str, float], peak: int
) -> list[tuple[str, str, str, str]]:
    """Return what was measured, line by line."""
    codes = n_rows * N_VARIABLES
    passes = {PHASES["all rows were"]: 1, EM_PHASE: 2 * MAX_ITER + 1}
    lines = [("peak memory", f"{peak / 1e6:.0f} MB", "", f"below {BUDGET / 1e6:.0f} MB")]
    for name, seconds in times.items():
        beside = ""
        if name in passes:
            speed = passes[name] * codes / seconds
            most = f"at most {passes[name]} passes over " if passes[name] > 1 else ""
            beside = f"{most}{codes / 1e6:.0f} MB of codes: {speed / 1e6:.0f} MB/s"
        elif "sample" not in name:
            beside = f"{file_size / 1e6:.0f} MB of Parquet: {file_size / seconds / 1e6:.0f} MB/s, "
            beside += f"{codes / seconds / 1e6:.1f} million cells/s"
        lines.append((name, f"{seconds:.1f} s", beside, ""))
    return lines


def text(title: str, lines: list[tuple[str, str, str, str]]) -> str:
    """Return the lines as a page."""
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        f"# A file within 1 GB\n\n{title} (`python -m benchmarks.streaming`).\n\n"
        f"| what | measured | beside it | asked |\n|---|---:|---|---|\n{rows}\n"
    )


if __name__ == "__main__":
    main()
