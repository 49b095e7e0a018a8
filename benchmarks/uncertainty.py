"""How often intervals hold the truth, and what replicates cost.

Coverage of nominal 90 % intervals over planted models (8 × 4 levels, rank 3, 2,000 rows, 20 %
missing), each data set from a model of its own: of rows; of triples counted over such rows, by
likelihood and by squares; and of rows in clusters of 20 that share a component and half of their
cells, with and without `groups`. Every data set has a line per kind of question in
`results/uncertainty.csv`; a run adds those that are not there yet.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
from rich.progress import track

import jointpmf as jp
from benchmarks.measure import print_lines
from jointpmf.command.demo import BINS
from jointpmf.judge.information import best_permutation

Found = TypeVar("Found")

RESULTS = Path(__file__).parent / "results"
N_ROWS, N_LEVELS, N_VARIABLES, RANK, MISSING = 2_000, 4, 8, 3, 0.2
CLUSTER, ALIKE = 20, 0.5
"""Rows of a cluster, which have one component; and the part of their cells that are the same."""

N_REPLICATES, LEVEL = 100, 0.9
GIVEN = [{"x0": 0, "x1": 1}, {"x0": 2, "x1": 3}]
KINDS = ("marginals", "conditionals", "expectations", "profiles", "sizes")
ASKED = {"rows": (86, 94), "triples": (86, 94), "triples, squares": (86, 94), "groups": (85, 95)}


def truth_of(number: int) -> jp.JointPMF:
    """Return a planted model."""
    generator = np.random.default_rng([0, number])
    columns = [generator.dirichlet(np.ones(N_LEVELS), RANK).T for _ in range(N_VARIABLES)]
    domain = jp.Domain.of_sizes([N_LEVELS] * N_VARIABLES)
    return jp.JointPMF(domain, np.full(RANK, 1 / RANK), columns)


def rows_of(truth: jp.JointPMF, number: int, is_clustered: bool) -> tuple[jp.Codes, np.ndarray]:
    """Return rows with holes, and the cluster of each."""
    generator = np.random.default_rng([1, number])
    clusters = np.arange(N_ROWS) // CLUSTER
    if is_clustered:  # given the component the cells of a row stay independent
        component = generator.choice(RANK, clusters[-1] + 1, p=truth.weights)
        first = drawn(truth, component, generator)[clusters]
        own = drawn(truth, component[clusters], generator)
        rows = np.where(generator.random(own.shape) < ALIKE, first, own)
    else:
        rows = np.array(truth.sample(N_ROWS, random_state=generator, backend="codes"))
    rows[generator.random(rows.shape) < MISSING] = jp.MISSING
    return jp.Codes(truth.domain, rows), clusters


def drawn(truth: jp.JointPMF, component: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return a row for each of some components."""
    rows = np.empty((len(component), N_VARIABLES), np.int8)
    for n, factor in enumerate(truth.factors):
        above = generator.random((len(component), 1)) > factor.cumsum(axis=0).T[component]
        rows[:, n] = above.sum(axis=1).clip(0, N_LEVELS - 1)
    return rows


def answers(pmf: jp.JointPMF) -> dict[str, float]:
    """Return what is asked of a model, by kind and number; components only of a single fit."""
    found: dict[str, np.ndarray] = {
        "marginals": np.concatenate([pmf.marginal([n]).table() for n in pmf.domain.names[:3]]),
        "conditionals": np.concatenate([pmf.condition(g).marginal(["x2"]).table() for g in GIVEN]),
        "expectations": np.array(
            [pmf.condition(g).marginal(["x2"]).table() @ np.arange(N_LEVELS) for g in GIVEN]
        ),
    }
    if pmf.rank == RANK:
        found["profiles"] = np.concatenate([factor.ravel() for factor in pmf.factors[:3]])
        found["sizes"] = pmf.weights
    return {f"{kind} {k}": float(x) for kind, xs in found.items() for k, x in enumerate(xs)}


def fit_of(kind: str, codes: jp.Codes) -> jp.Solution:
    """Return the fit of one kind, by default settings."""
    if kind == "triples":
        return jp.fit_marginals(jp.MarginalSet.from_table(codes, 3), RANK, random_state=0)
    if kind == "triples, squares":
        triples = jp.MarginalSet.from_table(codes, 3)
        return jp.fit_marginals(triples, RANK, loss="squares", random_state=0)
    return jp.fit_rows(codes, RANK, random_state=0)


def covered(kind: str, number: int) -> list[dict[str, object]]:
    """Return which intervals of a data set hold the truth."""
    truth = truth_of(number)
    codes, clusters = rows_of(truth, number, kind in ("groups", "naive"))
    found = fit_of(kind, codes)
    sure = found.uncertainty(
        N_REPLICATES, random_state=number, groups=clusters if kind == "groups" else None
    )
    if found.pmf.rank == RANK:
        truth = truth.reordered(best_permutation(found.pmf, truth))
    wanted = answers(truth)
    frame = sure.interval(answers, LEVEL)
    lines: dict[str, list[bool]] = {}
    for what, low, high in frame.select("quantity", "low", "high").rows():
        lines.setdefault(what.split()[0], []).append(low <= wanted[what] <= high)
    return [
        {"fit": kind, "set": number, "kind": what, "held": sum(held), "asked": len(held)}
        for what, held in lines.items()
    ]


def on_file() -> pl.DataFrame:
    """Return what was measured so far."""
    path = RESULTS / "uncertainty.csv"
    if path.exists():
        return pl.read_csv(path)
    names = {"fit": pl.String, "set": pl.Int64, "kind": pl.String}
    return pl.DataFrame(schema={**names, "held": pl.Int64, "asked": pl.Int64})


def keep(kind: str, n_sets: int) -> None:
    """Measure the data sets of a kind of fit that are not on file."""
    done = set(on_file().filter(pl.col("fit") == kind)["set"])
    for number in track([k for k in range(n_sets) if k not in done], kind):
        lines = pl.DataFrame(covered(kind, number))
        pl.concat([on_file(), lines]).write_csv(RESULTS / "uncertainty.csv")


def coverage_lines() -> list[tuple[str, str, str, str]]:
    """Return how often the intervals of each kind held the truth, in percent."""
    lines = []
    for (fit,), table in on_file().group_by("fit", maintain_order=True):
        n_sets = table["set"].n_unique()
        for kind in KINDS:
            own = table.filter(pl.col("kind") == kind)
            if not len(own):
                continue
            held, n_asked = own["held"].to_numpy(), own["asked"].to_numpy()
            shares = held / n_asked
            error = 100 * shares.std(ddof=1) / np.sqrt(len(shares))
            low, high = ASKED.get(str(fit), (0, 100))
            bound = f"{low}–{high} %" if fit in ASKED and kind != "sizes" else "shown"
            measured = f"{100 * held.sum() / n_asked.sum():.1f} ± {error:.1f} %"
            lines.append((f"{fit}: {kind}", measured, f"{n_sets} data sets, nominal 90 %", bound))
    return lines


def costs() -> list[tuple[str, str, str, str]]:
    """Return what 200 replicates cost, beside the fit itself."""
    domain = jp.Domain.of_sizes([5] * 10)
    truth = jp.random_pmf(domain, 10, random_state=0)
    generator = np.random.default_rng(0)
    rows = np.array(truth.sample(100_000, random_state=generator, backend="codes"))
    rows[generator.random(rows.shape) < 0.3] = jp.MISSING
    fit, found = timed(lambda: jp.fit_rows(jp.Codes(domain, rows), 10, random_state=0))
    replicates, _ = timed(lambda: found.uncertainty(200, random_state=0))
    line = f"fit {fit:.0f} s, replicates {replicates:.0f} s"
    large = ("200 replicates, 100,000 × 10, rank 10", f"{replicates / fit:.2f} fits", line, "15 ×")
    fit, found = timed(lambda: jp.fit_rows(jp.datasets.anes96(), 5, bins=BINS, random_state=0))
    replicates, _ = timed(lambda: found.uncertainty(200, random_state=0))
    line = f"fit {fit:.1f} s, rank 5"
    return [large, ("200 replicates, survey", f"{replicates:.1f} s", line, "10 s")]


def timed(work: Callable[[], Found]) -> tuple[float, Found]:
    """Return how long something took, and what it gave."""
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def main() -> None:
    """Measure what is asked for, and write the summary."""
    parser = argparse.ArgumentParser()
    kinds = [*ASKED, "naive"]
    parser.add_argument("--fits", nargs="*", default=kinds, choices=kinds)
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--no-costs", action="store_true")
    asked = parser.parse_args()
    logging.getLogger("jointpmf").setLevel(logging.ERROR)
    for kind in asked.fits:
        keep(kind, asked.sets)
    lines = coverage_lines() + ([] if asked.no_costs else costs())
    print_lines("How sure", lines)
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    head = "| what | measured | beside it | asked |\n|---|---|---|---|\n"
    (RESULTS / "uncertainty.md").write_text(f"# How sure\n\n{head}{table}\n")


if __name__ == "__main__":
    main()
