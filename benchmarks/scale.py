"""A thousand variables: the objective over all subsets from rows, against tables and against EM."""

from __future__ import annotations

import datetime
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import jointpmf as jp
from benchmarks.measure import gemm_flops, print_lines, seconds
from benchmarks.reference import ReferenceSweep
from jointpmf.point import Point
from jointpmf.rows.table import ColumnRows, Rows
from jointpmf.show import plots
from jointpmf.solvers.em import EM
from jointpmf.solvers.implicit import ImplicitLeastSquares
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.starts.random import random_point
from jointpmf.threads import n_threads, one_blas_thread

Line = tuple[str, str, str, str]

RESULTS = Path(__file__).parent / "results"
RANK = 10
BIG = {"n_variables": 1000, "levels": 4, "n_rows": 10**6}
N_BIG = 20
N_TURNS = 8


def rows_of_model(n_variables: int, levels: int, n_rows: int) -> jp.Codes:
    """Return rows of a random model, made a few at a time."""
    truth = jp.random_pmf(jp.Domain.of_sizes([levels] * n_variables), RANK, random_state=0)
    array = np.empty((n_rows, n_variables), np.int8, order="F")
    for begin in range(0, n_rows, 20_000):
        part = array[begin : begin + 20_000]
        part[:] = truth.sample(len(part), random_state=begin, backend="codes")
    return jp.Codes(truth.domain, array)


def exactness() -> list[Line]:
    """Return the largest relative differences of gram, cross and cost to those of tables."""
    lines = []
    for missing in (0.0, 0.3):
        for order in (2, 3, 4):
            codes = rows_of_model(8, 4, 5000)
            holes = np.random.default_rng(0).random(codes.array.shape) < missing
            codes = jp.Codes(codes.domain, np.where(holes, -1, codes.array))
            point = random_point(codes.domain, RANK, np.random.default_rng(1))
            marginals = jp.MarginalSet.from_table(codes, order)
            tables = CoupledLeastSquares(marginals, RANK, "counts")
            implicit = ImplicitLeastSquares(ColumnRows.of_codes(codes), RANK, order)
            pairs = list(zip(implicit.sweep(point), tables.sweep(point), strict=True))
            gram = max(_difference(a.gram, b.gram) for a, b in pairs)
            cross = max(_difference(a.cross, b.cross) for a, b in pairs)
            cost = _difference(implicit.cost(point), tables.cost(point))
            what = f"order {order}, {missing:.0%} missing: gram, cross, cost"
            lines.append((what, f"{gram:.0e}, {cross:.0e}, {cost:.0e}", "", "1e-12"))
    return lines


def _difference(found: Any, expected: Any) -> float:
    return float(np.abs(np.asarray(found) - expected).max() / np.abs(expected).max())


def against_tables() -> list[Line]:
    """Return the time of one sweep over all triples, both ways and by one einsum per marginal."""
    codes = rows_of_model(40, 5, 20_000)
    marginals = jp.MarginalSet.from_table(codes, 3)
    pmf = jp.random_pmf(codes.domain, RANK, random_state=1)
    point = Point.of_pmf(pmf)
    tables = CoupledLeastSquares(marginals, RANK, "counts")
    implicit = ImplicitLeastSquares(ColumnRows.of_codes(codes), RANK, 3)
    slow, fast = (seconds(lambda p=p: list(p.sweep(point))) for p in (tables, implicit))  # type: ignore[misc]
    reference = ReferenceSweep(marginals, RANK, max_iter=1, tol=0.0)
    einsum = seconds(lambda: reference(pmf.weights, pmf.factors), repeats=1)
    flops = 8.0 * codes.array.size * 12  # e_1 … e_3 out and in again, two sums by level
    limit = flops / gemm_flops()
    what = "N=40, I=5, M=20,000, F=10: a sweep over all triples"
    return [
        (
            what,
            f"{1e3 * fast:.2f} ms",
            f"our tables {1e3 * slow:.2f} ms: {slow / fast:.1f}×",
            "20×",
        ),
        ("the same", "", f"one einsum per marginal {einsum:.2f} s: {einsum / fast:.0f}×", ""),
        ("the same", "", f"its arithmetic at the speed of GEMM {1e3 * limit:.2f} ms", ""),
    ]


def sweep_of(n_variables: int, n_rows: int) -> Callable[[], object]:
    """Return what makes one implicit sweep."""
    codes = rows_of_model(n_variables, 4, n_rows)
    point = random_point(codes.domain, RANK, np.random.default_rng(0))
    problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), RANK, 3)
    return lambda: list(problem.sweep(point))


def best_in_turns(runs: list[Callable[[], object]]) -> np.ndarray:
    """Return the shortest time of each, all tried in turns: a busy moment concerns them all."""
    return np.min([[seconds(run, repeats=2) for run in runs] for _ in range(N_TURNS)], axis=0)


def linearity() -> list[Line]:
    """Return the slopes of the time of a sweep in the variables and in the rows; plot them."""
    cases = {
        "variables": [(n, 20_000) for n in (50, 100, 200, 400, 1000)],
        "rows": [(50, m) for m in (10_000, 30_000, 100_000, 300_000, 1_000_000)],
    }
    lines = []
    with plots.style():
        figure = Figure(figsize=(8, 3.2))
        axes = figure.subplots(1, 2)
    for k, (ax, (what, sizes)) in enumerate(zip(axes, cases.items(), strict=True)):
        x = np.array([size[k] for size in sizes], float)
        y = best_in_turns([sweep_of(*size) for size in sizes])
        slope = float(np.polyfit(np.log(x), np.log(y), 1)[0])
        times = ", ".join(f"{1e3 * t:.3g}" for t in y)
        lines.append((f"time of a sweep against {what}", f"slope {slope:.3f}", f"{times} ms",
                      "0.9 to 1.1"))  # fmt: skip
        ax.loglog(x, 1e3 * y, "o-", color=plots.BLUE, label=f"measured, slope {slope:.2f}")
        ax.loglog(x, 1e3 * y[-1] * x / x[-1], "--", color=plots.GREY, label="linear")
        ax.set(xlabel=what, ylabel="milliseconds per sweep")
        ax.legend()
    for ending in ("png", "svg"):
        figure.savefig(RESULTS / f"scale.{ending}", dpi=150)
    return lines


def against_em() -> list[Line]:
    """Return the cost per cell of a sweep, of an EM iteration and of its single passes."""
    lines = []
    for n_variables, n_rows in ((40, 100_000), (1000, 20_000)):
        codes = rows_of_model(n_variables, 4, n_rows)
        point = random_point(codes.domain, RANK, np.random.default_rng(0))
        problem = ImplicitLeastSquares(ColumnRows.of_codes(codes), RANK, 3)
        sweep = seconds(lambda: list(problem.sweep(point)), repeats=5)  # noqa: B023
        passes, iterations = [], []
        for kind in (Rows, ColumnRows):
            solver = EM(kind.of_codes(codes), RANK)
            state = solver.start(point)
            passes.append(seconds(lambda: solver.plain_step(state), repeats=5))  # noqa: B023
            iterations.append(seconds(lambda: solver.step(state), repeats=5))  # noqa: B023
        per_cell = 1e9 / codes.array.size
        for what, times in (("iteration", iterations), ("pass", passes)):
            lines.append((
                f"N={n_variables}, M={n_rows}: ns per cell of a sweep",
                f"{sweep * per_cell:.2f}",
                f"an EM {what} {times[0] * per_cell:.2f} ({sweep / times[0]:.1f}×), from columns "
                f"{times[1] * per_cell:.2f} ({sweep / times[1]:.1f}×)",
                "3×",
            ))  # fmt: skip
    return lines


def whole_fits() -> list[Line]:
    """Return the time of all triples of 300 variables with holes, fitted to the end, beside EM."""
    truth = jp.random_pmf(jp.Domain.of_sizes([4] * 300), 8, random_state=0)
    array = truth.sample(50_000, random_state=0, backend="codes").astype(np.int8)
    array[np.random.default_rng(0).random(array.shape) < 0.2] = -1
    codes, times = jp.Codes(truth.domain, array), {}
    for method in ("marginals", "likelihood"):
        few = jp.Codes(truth.domain, array[:500])
        jp.fit_rows(few, 8, objective=method, max_iter=8, random_state=0)  # all is compiled by now
        begin = time.process_time()
        jp.fit_rows(codes, 8, objective=method, random_state=0)
        times[method] = time.process_time() - begin
    ratio = times["marginals"] / times["likelihood"]
    what = "N=300, I=4, M=50,000, 20 % missing, F=8: a fit to all triples, processor time"
    return [(what, f"{times['marginals']:.1f} s",
             f"EM {times['likelihood']:.1f} s: {ratio:.2f}×", "5×")]  # fmt: skip


def big_fit(method: str) -> None:
    """Fit the big table in this process, and print what it took as JSON."""
    codes = rows_of_model(**BIG)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    solution = jp.fit_rows(codes, RANK, objective=method, max_iter=N_BIG, random_state=0)
    print(json.dumps({
        "seconds": time.perf_counter() - begin,
        "iterating": solution.history[-1].seconds - solution.history[0].seconds,
        "n_iter": solution.n_iter,
        "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "before": 1024 * before,
        "codes": codes.array.nbytes,
        "source": str(solution.source),
    }))  # fmt: skip


def big_fits() -> list[Line]:
    """Return time and memory of both methods on the big table, each in a process of its own."""
    lines = []
    for method in ("marginals", "likelihood"):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale", method],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
        planned = jp.plan(BIG["n_rows"], BIG["n_variables"], BIG["levels"], RANK, method,
                          n_iter=found["n_iter"])  # fmt: skip
        lines += [
            (f"N=1000, I=4, M=1e6, F=10, {method}: {found['n_iter']} iterations",
             f"{found['seconds']:.0f} s", f"planned {planned.seconds:.0f} s", "within 2×"),
            ("peak memory of the process, in units of the codes",
             f"{found['peak'] / found['codes']:.2f}", f"{found['before'] / found['codes']:.2f} "
             "before the fit", "2.5"),
        ]  # fmt: skip
    return lines


def main() -> None:
    """Print all figures."""
    with one_blas_thread:
        lines = exactness() + against_tables() + against_em() + linearity()
    lines += whole_fits() + big_fits()
    print_lines("All subsets from rows", lines)
    table = [
        f"| {' | '.join(line)} |" for line in [("what", "measured", "beside it", "asked"), *lines]
    ]
    table.insert(1, "|---|---|---|---|")
    about = f"{datetime.date.today()}, {n_threads()} threads (`python -m benchmarks.scale`)."
    text = "\n".join(["# A thousand variables", "", about, "", *table, "", "![](scale.png)", ""])
    (RESULTS / "scale.md").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        big_fit(sys.argv[1])
    else:
        main()
