"""One AO-ADMM sweep: against one einsum per marginal and mode, against GEMM, dense and sparse.

The quadruples are those of the ten jokes that almost all users of Jester rated, if JOINTPMF_DATA
names a folder that has ratings/jester10.csv.gz; otherwise 25,000 rows of a random model stand in.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

import jointpmf as jp
from benchmarks.measure import gemm_flops, peak_bytes, print_lines, seconds
from benchmarks.reference import ReferenceSweep
from jointpmf.marginals.tables import TableLimits
from jointpmf.point import Point
from jointpmf.solvers.aoadmm import AOADMM, Inner
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.threads import one_blas_thread

Line = tuple[str, str, str, str]

PRODUCTS_PER_TABLE = 2
"""Modes of a table that cannot share work in a sweep: its head's and its tail's."""


def against_einsum(inner: int) -> Line:
    """Return the ratio to the reference sweep, both with the same number of inner steps."""
    truth = jp.random_pmf(jp.Domain.of_sizes([10] * 5), 10, random_state=0)
    start = jp.random_pmf(truth.domain, 10, random_state=1)
    marginals = truth.marginals(3)
    reference = ReferenceSweep(marginals, 10, max_iter=inner, tol=0.0)
    slow = seconds(lambda: reference(start.weights, start.factors))
    with one_blas_thread:
        solver = AOADMM(CoupledLeastSquares(marginals, 10), Inner(inner, 0.0, 0.0))
        state = solver.step(solver.start(Point.of_pmf(start)))
        fast = seconds(lambda: [solver.step(state) for _ in range(50)]) / 50
    return (
        f"N=5, I=10, F=10, triples, {inner} inner steps",
        f"{1e3 * fast:.3f} ms",
        f"einsum {1e3 * slow:.2f} ms: {slow / fast:.1f}×",
        "at least 20×",
    )


def jester_rows() -> tuple[str, np.ndarray]:
    """Return 25,000 rows of ten variables with levels 0..20, and where they come from."""
    file = Path(os.environ.get("JOINTPMF_DATA", "")) / "ratings" / "jester10.csv.gz"
    if file.is_file():
        ratings = pl.read_csv(file).drop("userId").fill_null(0).to_numpy()
        return "Jester", ratings.astype(int) - 1
    model = jp.random_pmf(jp.Domain.of_sizes([21] * 10), 20, random_state=0)
    return "a random model (set JOINTPMF_DATA for Jester)", model.sample(25_000, backend="codes")


def quadruples() -> list[Line]:
    """Return the figures of all 210 quadruples of ten variables of 21 levels at rank 20."""
    source, rows = jester_rows()
    domain = jp.Domain.of_sizes([21] * 10)
    sparse = jp.MarginalSet.from_table(rows, order=4, domain=domain)
    dense = jp.MarginalSet.from_table(
        rows, order=4, domain=domain, limits=TableLimits(sparse_below=0.0)
    )
    cells = sum(m.table.size for m in dense)
    tables = {"dense": dense, "sparse": sparse}
    size = {kind: sum(m.table.nbytes for m in tables[kind]) for kind in tables}
    gemm = PRODUCTS_PER_TABLE * 2 * cells * 20 / gemm_flops()
    start = Point.of_pmf(jp.random_pmf(domain, 20, random_state=0))

    def sweeps(marginals: jp.MarginalSet) -> None:
        solver = AOADMM(CoupledLeastSquares(marginals, 20))
        solver.step(solver.step(solver.start(start)))

    time, peak = {}, {}
    with one_blas_thread:
        for kind, marginals in tables.items():
            solver = AOADMM(CoupledLeastSquares(marginals, 20))
            state = solver.step(solver.start(start))
            time[kind] = seconds(lambda s=solver, at=state: s.step(at))  # type: ignore[misc]
            peak[kind] = size[kind] + peak_bytes(lambda m=marginals: sweeps(m))  # type: ignore[misc]
    return [
        (
            f"N=10, I=21, F=20, quadruples of {source}, dense",
            f"{1e3 * time['dense']:.1f} ms",
            f"GEMM {1e3 * gemm:.1f} ms: {time['dense'] / gemm:.2f}×",
            "at most 3×",
        ),
        (
            "  peak memory with the tables",
            f"{peak['dense'] / 1e6:.0f} MB",
            f"tables {size['dense'] / 1e6:.0f} MB: {peak['dense'] / size['dense']:.2f}×",
            "at most 1.3×",
        ),
        (
            "  the same, sparse",
            f"{1e3 * time['sparse']:.1f} ms",
            f"dense {1e3 * time['dense']:.1f} ms: {time['dense'] / time['sparse']:.2f}×",
            "at least 5×",
        ),
        (
            "  peak memory, sparse",
            f"{peak['sparse'] / 1e6:.0f} MB",
            f"dense {peak['dense'] / 1e6:.0f} MB: {peak['dense'] / peak['sparse']:.2f}×",
            "at least 5×",
        ),
    ]


def main() -> None:
    """Measure and print."""
    lines = [against_einsum(inner) for inner in (10, 50)]
    print_lines("One AO-ADMM sweep", lines + quadruples())


if __name__ == "__main__":
    main()
