"""Tables I and II of the paper: recovery of random joint PMFs from pairs, triples and quadruples.

Five variables of ten levels, rank 5, 10 and 15, uniform entries; exact marginals (Table I), or
marginals of the joint plus white noise of σ = 1e-6 projected on the simplex (Table II). AO-ADMM
from a random start with 1500 iterations, and the default method; twenty models each, the mean of
both errors under the best permutation, beside the paper's own numbers and what theory expects.

The paper draws the weights uniformly too. Some are then close to zero, and their components can
hardly be seen; with equal weights the paper's numbers are met. So both are run, and both shown.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import jointpmf as jp
from jointpmf.compiled.simplex import project_simplex
from paper.error_limits import error_limits

RESULTS = Path(__file__).parent / "results"
KINDS = {2: "pairs", 3: "triples", 4: "quadruples"}
RANKS = (5, 10, 15)
WEIGHTS = {"uniform": "drawn uniformly, as the paper describes", "equal": "all equal"}
METHODS: dict[str, dict[str, Any]] = {
    "AO-ADMM": {"method": "aoadmm", "search": jp.Search(start="random")},
    "default": {},
}
SIGMA = 1e-6

NOTE = """Means over the runs, under the best permutation. `paper`: its own number. `AO-ADMM`: the
paper's algorithm from a random start. `default`: `fit_marginals` with its defaults. `predicted`:
what least squares on these marginals should have, to first order in the noise; `bound`: the
Cramér-Rao bound, all of the noisy joint known. From pairs the model is not identifiable."""

PAPER = {
    # (noisy, rank, order): the paper's mean relative error of factors and of the tensor
    (False, 5, 2): (0.235, 0.124),
    (False, 5, 3): (1.24e-6, 2.80e-7),
    (False, 5, 4): (8.64e-11, 1.53e-11),
    (False, 10, 2): (0.412, 0.176),
    (False, 10, 3): (6.91e-5, 1.36e-5),
    (False, 10, 4): (2.17e-9, 3.37e-10),
    (False, 15, 2): (0.433, 0.194),
    (False, 15, 3): (8.56e-4, 1.47e-4),
    (False, 15, 4): (8.95e-7, 3.63e-8),
    (True, 5, 2): (0.305, 0.17),
    (True, 5, 3): (4.5e-3, 4.4e-3),
    (True, 5, 4): (4.1e-3, 4.0e-3),
    (True, 10, 2): (0.41, 0.181),
    (True, 10, 3): (10.3e-3, 6.7e-3),
    (True, 10, 4): (9.2e-3, 6.1e-3),
    (True, 15, 2): (0.428, 0.19),
    (True, 15, 3): (16.2e-3, 8.4e-3),
    (True, 15, 4): (14.1e-3, 7.7e-3),
}


@dataclass(frozen=True)
class Run:
    """One random model: what is known of it, and what came of it."""

    noisy: bool
    weights: str
    rank: int
    order: int
    number: int


@dataclass(frozen=True)
class Outcome:
    """Errors and seconds of both methods, and the errors that theory expects under noise."""

    run: Run
    figures: dict[str, float]


def random_truth(run: Run) -> jp.JointPMF:
    """Return the model that a run is about: uniform entries, uniform or equal weights."""
    drawn = jp.random_pmf(jp.Domain.of_sizes([10] * 5), run.rank, random_state=run.number)
    if run.weights == "uniform":
        return drawn
    return jp.JointPMF(drawn.domain, np.full(run.rank, 1 / run.rank), drawn.factors)


def observed_marginals(truth: jp.JointPMF, order: int, noise_seed: int | None) -> jp.MarginalSet:
    """Return exact marginals, or those of the joint plus noise, projected on the simplex."""
    if noise_seed is None:
        return truth.marginals(order)
    joint = truth.table()
    noise = np.random.default_rng(noise_seed).normal(scale=SIGMA, size=joint.shape)
    noisy = (joint + noise).ravel()
    project_simplex(noisy)
    whole = noisy.reshape(joint.shape)
    tables = []
    for marginal in truth.marginals(order):
        kept = truth.domain.indices(marginal.names)
        rest = tuple(n for n in range(joint.ndim) if n not in kept)
        tables.append(jp.Marginal(marginal.names, whole.sum(axis=rest)))
    return jp.MarginalSet(truth.domain, tables)


def run_once(run: Run, max_iter: int) -> Outcome:
    """Return what both methods make of a run: truth, noise and start are those of its number."""
    truth = random_truth(run)
    noise_seed = 10_000 + run.number if run.noisy else None
    marginals = observed_marginals(truth, run.order, noise_seed)
    figures = {}
    for name, options in METHODS.items():
        budget: dict[str, Any] = {"max_iter": max_iter, "tol": 0} if name == "AO-ADMM" else {}
        begin = time.perf_counter()
        seed = 20_000 + run.number
        solution = jp.fit_marginals(
            marginals, run.rank, loss="squares", random_state=seed, **options, **budget
        )
        figures[f"seconds {name}"] = time.perf_counter() - begin
        figures[f"factor {name}"] = jp.factor_error(truth, solution.pmf)
        figures[f"tensor {name}"] = jp.tensor_error(truth, solution.pmf)
    if run.noisy and run.order > 2:
        limits = error_limits(truth, run.order, sigma=SIGMA)
        figures |= {
            "factor predicted": limits.factor_predicted,
            "factor bound": limits.factor_bound,
            "tensor predicted": limits.tensor_predicted,
            "tensor bound": limits.tensor_bound,
        }
    return Outcome(run, figures)


def run_all(n_runs: int, max_iter: int) -> list[Outcome]:
    """Return all runs of both tables, with a progress bar."""
    asked = [
        Run(noisy, weights, rank, order, number)
        for noisy in (False, True)
        for weights in WEIGHTS
        for rank in RANKS
        for order in KINDS
        for number in range(n_runs)
    ]
    run_once(Run(True, "uniform", 5, 3, 0), 2)  # compile once, before the processes start
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    context = multiprocessing.get_context("spawn")
    with Progress(*columns) as bar, ProcessPoolExecutor(os.cpu_count(), context) as pool:
        task = bar.add_task("Tables I and II", total=len(asked))
        found = []
        for future in as_completed([pool.submit(run_once, run, max_iter) for run in asked]):
            found.append(future.result())
            bar.advance(task)
    return sorted(found, key=lambda outcome: astuple(outcome.run))


def summary(found: list[Outcome], noisy: bool, weights: str) -> list[dict[str, object]]:
    """Return one line per rank and kind of marginal: means, the paper's numbers beside ours."""
    lines = []
    for rank in RANKS:
        for order, kind in KINDS.items():
            asked = (noisy, weights, rank, order)
            mine = [o.figures for o in found if astuple(o.run)[:4] == asked]
            line: dict[str, object] = {"rank": rank, "marginals": kind}
            for error, paper in zip(("factor", "tensor"), PAPER[noisy, rank, order], strict=True):
                line[f"{error} paper"] = paper
                for name in METHODS:
                    line[f"{error} {name}"] = _mean(mine, f"{error} {name}")
                line[f"{error} default worst"] = max(f[f"{error} default"] for f in mine)
                for theory in ("predicted", "bound") if noisy else ():
                    line[f"{error} {theory}"] = _mean(mine, f"{error} {theory}")
            for name in METHODS:
                line[f"seconds {name}"] = _mean(mine, f"seconds {name}")
            lines.append(line)
    return lines


def _mean(figures: list[dict[str, float]], name: str) -> float:
    return float(np.mean([f.get(name, np.nan) for f in figures]))


def write_table(name: str, title: str, parts: dict[str, list[dict[str, object]]]) -> None:
    """Write a table, in a part per kind of weights, as CSV and as markdown."""
    RESULTS.mkdir(exist_ok=True)
    rows = [{"weights": weights} | line for weights, lines in parts.items() for line in lines]
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(cell, 2) for key, cell in row.items()} for row in rows)
    text = f"# {title}\n\n{NOTE}\n"
    for weights, lines in parts.items():
        text += f"\n## Weights {WEIGHTS[weights]}\n\n"
        text += f"| {' | '.join(lines[0])} |\n|{'---|' * len(lines[0])}\n"
        for line in lines:
            text += f"| {' | '.join(_cell(content, 2) for content in line.values())} |\n"
    (RESULTS / f"{name}.md").write_text(text)


def as_rich(title: str, lines: list[dict[str, object]]) -> Table:
    """Return a part of a table for the terminal."""
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1))
    for key in lines[0]:
        table.add_column(key.replace(" ", "\n"), no_wrap=True)
    for line in lines:
        table.add_row(*(_cell(content, 1) for content in line.values()))
    return table


def _cell(content: object, digits: int) -> str:
    if isinstance(content, float):
        return "" if np.isnan(content) else f"{content:.{digits}e}"
    return str(content)


def main() -> None:
    """Run both tables, write them and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="random models per cell")
    parser.add_argument("--iterations", type=int, default=1500, help="AO-ADMM sweeps per fit")
    options = parser.parse_args()
    found = run_all(options.runs, options.iterations)
    console = Console(width=180)
    for name, noisy, what in (
        ("table1", False, "Table I: relative errors, exact marginals"),
        ("table2", True, "Table II: relative errors, noise of σ = 1e-6"),
    ):
        title = f"{what} ({options.runs} runs, {options.iterations} AO-ADMM sweeps)"
        parts = {weights: summary(found, noisy, weights) for weights in WEIGHTS}
        write_table(name, title, parts)
        for weights, lines in parts.items():
            console.print(as_rich(f"{title}, weights {WEIGHTS[weights]}", lines))


if __name__ == "__main__":
    main()
