"""Many rows in memory and on disk: distinct rows, the search for a start, passes; in one run.

Times are CPU time, of all threads together and the least of several, because passes and what they
are compared with then do not depend on what else the machine does. The unit of a fit is a pass of
EM over all rows that are kept. Another number of rows can be given as an argument.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import jointpmf as jp
from benchmarks.likelihood import Line, planted
from benchmarks.measure import print_lines
from jointpmf.fit.likelihood import EMFit
from jointpmf.point import Point
from jointpmf.rows.distinct import kinds_if_few, kinds_of_rows
from jointpmf.rows.source import Source, Table
from jointpmf.rows.spool import Spool, SpooledRows
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.em import EM
from jointpmf.solvers.loop import Loop

N_ROWS, RANK, MISSING_PART, PIECE = 5_000_000, 5, 0.2, 500_000


def main() -> None:
    """Measure and print."""
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else N_ROWS
    jp.fit_rows(planted(70_000, [5] * 10, RANK, 1.0, MISSING_PART, 1)[1], RANK)  # compiles
    for size in (5, 10):
        truth, codes = planted(n_rows, [size] * 10, RANK, 1.0, MISSING_PART, 0)
        title = f"{n_rows:,} × 10 × {size} levels, {MISSING_PART:.0%} missing, rank {RANK}"
        print_lines(title, [*distinct(codes), *passes(truth, codes), *fits(truth, codes)])


def cpu_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the least CPU time of several runs; the first, which may compile, does not count."""
    function()
    return min(once(function) for _ in range(repeats))


def once(function: Callable[[], object]) -> float:
    """Return the CPU time of one run."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


def distinct(codes: jp.Codes) -> list[Line]:
    """Return the lines on distinct rows, beside a sort of as many numbers."""
    kinds = kinds_of_rows(codes, None)
    found = cpu_seconds(lambda: kinds_of_rows(codes, None))
    skipped = cpu_seconds(lambda: kinds_if_few(codes, None, most=0.0))
    keys = np.random.default_rng(0).permutation(codes.n_rows)
    sort = cpu_seconds(lambda: np.sort(keys), 1)
    return [
        (
            f"distinct rows: {len(kinds.weights):,}",
            f"{1e3 * found:.0f} ms",
            f"numpy's sort of as many numbers {1e3 * sort:.0f} ms",
            "",
        ),
        ("  found that they do not repeat", f"{1e3 * skipped:.0f} ms", "", ""),
    ]


def pass_seconds(source: Source | ColumnRows, truth: jp.JointPMF) -> float:
    """Return the time of one pass of EM."""
    solver = EM(source, truth.rank)
    state = solver.start(Point.of_pmf(truth))
    return cpu_seconds(lambda: solver.plain_step(state), 5)


def passes(truth: jp.JointPMF, codes: jp.Codes) -> list[Line]:
    """Return the lines on passes over all rows, in memory and spooled."""
    memory = pass_seconds(ColumnRows.as_they_are(codes), truth)
    table = Table.of_codes(codes)
    kept = pass_seconds(table, truth)
    with spooled(codes) as spool:
        source = SpooledRows(spool)
        disk = pass_seconds(source, truth)
    speed = codes.array.nbytes / disk / 1e6
    return [
        (
            "a pass, spooled, in the page cache",
            f"{1e3 * disk:.0f} ms",
            f"in memory {1e3 * memory:.0f} ms: {disk / memory:.2f}×; {speed:.0f} MB/s of codes",
            "at most 1.5×",
        ),
        ("a pass over what is kept in memory", f"{1e3 * kept:.0f} ms", f"{len(table.rows):,}", ""),
    ]


def spooled(codes: jp.Codes) -> Spool:
    """Return a table in a temporary file."""
    spool = Spool(codes.domain)
    for begin in range(0, codes.n_rows, PIECE):
        spool.add(jp.Codes(codes.domain, codes.array[begin : begin + PIECE]))
    return spool


def fits(truth: jp.JointPMF, codes: jp.Codes) -> list[Line]:
    """Return the lines on fits in memory and spooled, in passes over the rows."""
    table = Table.of_codes(codes)
    lines = lines_of_fit("in memory", table, truth)
    with spooled(codes) as spool:
        lines += lines_of_fit("spooled", SpooledRows(spool), truth)
    whole = once(lambda: jp.fit_rows(codes, RANK, random_state=0))
    unit = pass_seconds(table, truth)
    beside = f"{whole / unit:.0f} passes, distinct rows and all"
    return [*lines, ("fit_rows", f"{whole:.2f} s", beside, "")]


def lines_of_fit(where: str, source: Source, truth: jp.JointPMF) -> list[Line]:
    """Return the lines on one fit: the search for its start, and the rest."""
    unit = pass_seconds(source, truth)
    em = EMFit(RANK, Loop(0, 1e-10))
    start = once(lambda: em.run(source, np.random.default_rng(0)))
    found = replace(em, loop=Loop(2000, 1e-10)).run(source, np.random.default_rng(0))
    return [
        (
            f"start, {where}",
            f"{start:.2f} s: {start / unit:.1f} passes",
            f"found by {found.n_agreed} of {found.n_starts} starts",
            "at most 20 passes",
        ),
        (f"  iterations from there, {where}", f"{found.n_iter}", "", ""),
    ]


if __name__ == "__main__":
    main()
