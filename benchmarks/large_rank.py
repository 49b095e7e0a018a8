"""Passes and predictions of thousands of components, beside products of matrices.

A pass of EM multiplies, for each row and component, one number per observed cell, and then adds as
many. The limit is a product of matrices of just these multiply-adds, in doubles: rows times
observed cells times components, once for a prediction, twice for a pass. A matrix of ones and
zeros with a column for each level would need as many times more as a variable has levels. All is
of one thread, in seconds of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines
from jointpmf.fit.settings import Traits
from jointpmf.point import Point
from jointpmf.rows.table import Rows
from jointpmf.solvers.trait_sums import RowSums
from jointpmf.threads import limited_to, one_blas_thread
from jointpmf.traits import Scores, Space, TraitModel

N_ROWS, N_VARIABLES, RANK, HIDDEN = 25_000, 100, 2048, 0.2


def main() -> None:
    """Measure and print."""
    for size in (2, 21):
        domain = jp.Domain([jp.Variable(f"x{n}", range(size)) for n in range(N_VARIABLES)])
        truth = jp.random_pmf(domain, RANK, random_state=0)
        codes = truth.sample(N_ROWS, random_state=0, backend="codes")
        hidden = np.random.default_rng(0).random(codes.shape) < HIDDEN
        table = jp.Codes(domain, np.where(hidden, -1, codes))
        title = f"{N_ROWS} × {N_VARIABLES} cells of {size} levels, {HIDDEN:.0%} missing"
        with one_blas_thread, limited_to(1):
            print_lines(f"{title}, rank {RANK}", [*of_model(truth, table), of_traits(table)])


def of_model(pmf: jp.JointPMF, table: jp.Codes) -> list[tuple[str, str, str, str]]:
    """Return the lines of free components."""
    rows = Rows.of_codes(table)
    expectation = rows.expectation(RANK)
    stack = expectation.stack(Point.of_pmf(pmf))
    n_cells = round((1 - HIDDEN) * N_VARIABLES)
    once, again = products(n_cells, np.float64)
    return [
        line("a pass of EM", lambda: expectation.counts(stack), once + again),
        line("predict_proba", lambda: pmf.predict_proba(table, "x0"), once),
    ]


def of_traits(table: jp.Codes) -> tuple[str, str, str, str]:
    """Return the line of components at points, whose passes are products themselves."""
    rows, traits, generator = Rows.of_codes(table), Traits(), np.random.default_rng(0)
    scores = Scores.of(table.domain, rows.marginal)
    space = Space.drawn(RANK, traits.count, traits.waves, traits.pace, generator)
    coefficients = 0.1 * generator.normal(size=(scores.offsets[-1], space.features.shape[1]))
    model = TraitModel(scores, space, np.zeros(table.domain.offsets[-1]), coefficients)
    sums, weights = RowSums(rows, scores), np.full(RANK, 1 / RANK)
    limit = sum(products(len(coefficients) + N_VARIABLES, np.float32))
    return line("a pass over traits", lambda: sums.sums(model, weights), limit)


def products(n_columns: int, dtype: type) -> tuple[float, float]:
    """Return the seconds of the products from rows to components, and back."""
    rows: np.ndarray = np.ones((N_ROWS, n_columns), dtype)
    columns: np.ndarray = np.ones((n_columns, RANK), dtype)
    both = rows @ columns
    return processor_seconds(lambda: rows @ columns), processor_seconds(lambda: rows.T @ both)


def processor_seconds(run: Callable[[], object]) -> float:
    """Return the least time of the processor of several runs, after one that may compile."""
    run()
    found = []
    for _ in range(3):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def line(what: str, run: Callable[[], object], limit: float) -> tuple[str, str, str, str]:
    """Return what a run takes beside its limit."""
    took = processor_seconds(run)
    return (
        what,
        f"{took:.2f} s, {took / limit:.1f}×",
        f"the product of matrices {limit:.2f} s",
        "at most 2×",
    )


if __name__ == "__main__":
    main()
