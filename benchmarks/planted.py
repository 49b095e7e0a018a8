"""Does one call reach the truth: models of many shapes, planted, and the default fit of their rows.

For each model: the default's mean log-likelihood of a row minus the truth's on the same rows, which
should not be negative; the same where EM begins at the truth, which ends at the optimum beside it;
and of random starts. The error of the factors stands beside its Cramér–Rao prediction for that many
rows. Where the model is too large for that, or has columns that are nearly zero, it stands beside
the error if the component of each row were known, which many variables nearly tell.

Every fit is a line of `results/planted.csv`. A run makes those of models that are not there;
`--again` makes all that are asked for, but for the predictions.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from paper.error_limits import error_limits
from rich.progress import track

import jointpmf as jp
from benchmarks.measure import page_table, print_lines

RESULTS = Path(__file__).parent / "results"
MOST_PARAMETERS, MOST_VARIABLES, N_SAMPLES = 3_000, 50, 100_000
"""Of the largest models whose Cramér–Rao bound is computed, and rows over which it is averaged."""

TOLERANCE, SAME = 1e-9, 1e-6
"""Nats per row by which a log-likelihood may be below the truth's, and below that of an optimum."""

PREDICTIONS = ("Cramér–Rao", "known components")


class Planted:
    """A model that rows are drawn from.

    Parameters
    ----------
    n_variables : int
        How many variables there are.
    levels : tuple of int
        Their numbers of levels, in turns.
    rank, n_rows : int
        Components of the model, and rows that are drawn.
    missing : float
        Part of the cells that is missing at random.
    columns, weights : float
        Concentrations of the Dirichlet distributions that columns and weights are drawn from; 1 is
        uniform. Weights are equal without.
    """

    def __init__(
        self,
        n_variables: int,
        levels: tuple[int, ...],
        rank: int,
        n_rows: int,
        missing: float = 0.0,
        columns: float = 1.0,
        weights: float | None = None,
    ) -> None:
        self.sizes = list(islice(cycle(levels), n_variables))
        self.rank, self.n_rows, self.missing = rank, n_rows, missing
        self.columns, self.weights = columns, weights

    @property
    def name(self) -> str:
        """All that makes it, in words."""
        levels = "/".join(str(size) for size in dict.fromkeys(self.sizes))
        weights = "equal" if self.weights is None else f"Dirichlet {self.weights:g}"
        return (
            f"{len(self.sizes)} × {levels}, rank {self.rank}, {self.n_rows:,} rows, "
            f"{self.missing:.0%} missing, columns {self.columns:g}, weights {weights}"
        )

    @cached_property
    def truth(self) -> jp.JointPMF:
        """The model."""
        generator, rank = np.random.default_rng([0, *self.sizes, self.rank]), self.rank
        columns = [generator.dirichlet(np.full(size, self.columns), rank).T for size in self.sizes]
        weights = np.full(rank, 1 / rank)
        if self.weights is not None:
            weights = generator.dirichlet(np.full(rank, self.weights))
        return jp.JointPMF(jp.Domain.of_sizes(self.sizes), weights, columns)

    def rows(self) -> jp.Codes:
        """Return its rows."""
        generator = np.random.default_rng([1, self.n_rows])
        rows = np.array(self.truth.sample(self.n_rows, random_state=generator, backend="codes"))
        if self.missing:
            rows[generator.random(rows.shape) < self.missing] = jp.MISSING
        return jp.Codes(self.truth.domain, rows)

    def predicted_error(self) -> tuple[str, int, None, float]:
        """Return which prediction there is, and what it says of the factors' error."""
        truth, n_variables = self.truth, len(self.sizes)
        n_parameters = self.rank * (sum(self.sizes) - n_variables + 1) - 1
        is_small = n_parameters <= MOST_PARAMETERS and n_variables <= MOST_VARIABLES
        if is_small and self.columns >= 1:  # else a sample misses what is rare
            limits = error_limits(
                truth, 1, n_rows=self.n_rows, missing=self.missing, n_samples=N_SAMPLES
            )
            return PREDICTIONS[0], 0, None, limits.factor_bound
        counted = self.n_rows * (1 - self.missing) * truth.weights
        errors = [
            np.sqrt((factor * (1 - factor) / counted).sum() / (factor**2).sum())
            for factor in truth.factors
        ]
        return PREDICTIONS[1], 0, None, float(np.mean(errors))


MODELS = [
    Planted(8, (2,), 2, 1_000),
    Planted(8, (2,), 3, 10_000, 0.2, 1.0, 2.0),
    Planted(8, (3,), 2, 200_000, 0.0, 3.0),
    Planted(8, (3,), 5, 200_000, 0.5, 1.0),
    Planted(8, (5,), 6, 1_000, 0.2, 1.0, 2.0),
    Planted(8, (5,), 6, 100_000, 0.2, 1.0, 2.0),
    Planted(8, (10,), 4, 1_000, 0.5, 3.0),
    Planted(8, (20,), 10, 20_000, 0.0, 0.3, 2.0),
    Planted(10, (2,), 8, 10_000, 0.0, 1.0, 2.0),
    Planted(10, (10,), 10, 100_000, 0.3, 1.0, 2.0),
    Planted(10, (20,), 15, 200_000, 0.1, 1.0, 2.0),
    Planted(12, (4,), 5, 2_000, 0.1, 3.0, 2.0),
    Planted(15, (3,), 8, 5_000, 0.0, 0.3),
    Planted(15, (6,), 3, 1_000, 0.5, 0.3, 2.0),
    Planted(20, (3,), 4, 1_000, 0.3, 0.3, 2.0),
    Planted(20, (2,), 10, 50_000, 0.2, 1.0),
    Planted(20, (5,), 6, 100_000, 0.0, 3.0, 2.0),
    Planted(20, (2, 4, 8, 20), 8, 20_000, 0.3, 1.0, 2.0),
    Planted(25, (6,), 7, 3_000, 0.0, 3.0, 2.0),
    Planted(30, (4,), 20, 30_000, 0.1, 1.0, 2.0),
    Planted(30, (10,), 30, 50_000, 0.0, 0.3, 2.0),
    Planted(40, (3,), 12, 10_000, 0.5, 0.3, 2.0),
    Planted(50, (2,), 20, 20_000, 0.0, 1.0),
    Planted(50, (2,), 20, 20_000, 0.3, 3.0, 2.0),
    Planted(50, (5,), 10, 200_000, 0.2, 1.0, 2.0),
    Planted(60, (4,), 15, 1_000, 0.0, 1.0, 2.0),
    Planted(80, (8,), 6, 10_000, 0.4, 3.0),
    Planted(100, (2,), 8, 100_000, 0.1, 3.0),
    Planted(100, (3,), 12, 20_000, 0.0, 1.0, 2.0),
    Planted(100, (3,), 30, 20_000, 0.2, 0.3, 2.0),
    Planted(100, (20,), 5, 5_000, 0.5, 1.0, 2.0),
    Planted(200, (2,), 25, 10_000, 0.2, 1.0, 2.0),
    Planted(200, (6,), 10, 3_000, 0.0, 0.3),
    Planted(300, (2,), 4, 100_000, 0.5, 3.0),
    Planted(300, (4,), 8, 20_000, 0.2, 1.0, 2.0),
    Planted(500, (3,), 10, 10_000, 0.3, 1.0, 2.0),
    Planted(500, (10,), 3, 1_000, 0.5, 0.3, 2.0),
    Planted(1_000, (2,), 5, 20_000, 0.2, 1.0, 2.0),
    Planted(1_000, (3,), 30, 5_000, 0.5, 1.0, 2.0),
    Planted(1_000, (5,), 12, 5_000, 0.0, 3.0, 2.0),
]

SCHEMA = {
    "model": pl.String,
    "start": pl.String,
    "seed": pl.Int64,
    "gain": pl.Float64,
    "error": pl.Float64,
    "starts": pl.Int64,
    "agreed": pl.Int64,
    "seconds": pl.Float64,
}
"""Of one fit: nats per row above the truth's, error of the factors, CPU seconds. A prediction is a
line too, with an error only."""

SEARCHES: dict[str, Callable[[jp.JointPMF], jp.Search | None]] = {
    "default": lambda truth: None,
    "truth": lambda truth: jp.Search(start=truth),
    "random": lambda truth: jp.Search(start="random"),
}
N_SEEDS = {"default": 3, "truth": 1, "random": 3}


def main() -> None:
    """Fit the models that are not on file yet, and write the summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", type=int, help="positions in the list, from 0")
    parser.add_argument("--again", action="store_true", help="also those that are on file")
    asked = parser.parse_args()
    logging.getLogger("jointpmf").setLevel(logging.ERROR)  # what they would say is counted
    jp.fit_rows(Planted(4, (3,), 2, 100).rows(), 2, random_state=0)  # compiles
    chosen = MODELS if asked.models is None else [MODELS[k] for k in asked.models]
    for model in track(chosen, "planted"):
        keep(model, asked.again)
        (RESULTS / "planted.md").write_text(text(on_file()))
    print_lines("Planted models", [printed(line) for line in summaries(on_file())])


def keep(model: Planted, is_again: bool) -> None:
    """Make the fits of a model that are not on file, and put them there."""
    table = on_file()
    known = table.filter(pl.col("model") == model.name)
    predicted = known.filter(pl.col("start").is_in(PREDICTIONS))
    if len(known) and not is_again:
        return
    lines = list(measured(model))
    if not len(predicted):
        lines.append((model.name, *model.predicted_error()))
    found = pl.DataFrame(
        [line + (None,) * (len(SCHEMA) - len(line)) for line in lines], SCHEMA, orient="row"
    )
    order = {each.name: k for k, each in enumerate(MODELS)}
    others = table.filter(pl.col("model") != model.name)
    found = pl.concat([others, found, predicted])
    by = pl.col("model").replace_strict(order)
    found.sort(by, maintain_order=True).write_csv(RESULTS / "planted.csv")


def on_file() -> pl.DataFrame:
    """Return all fits so far."""
    path = RESULTS / "planted.csv"
    return pl.read_csv(path, schema=SCHEMA) if path.exists() else pl.DataFrame(schema=SCHEMA)


def measured(model: Planted) -> Iterator[tuple[Any, ...]]:
    """Yield the fits of a model."""
    rows, truth = model.rows(), model.truth
    is_seen = (rows.array >= 0).any(axis=1)
    base = float(truth.log_probability(rows)[is_seen].mean())
    for start, search in SEARCHES.items():
        for seed in range(N_SEEDS[start]):
            begin = time.process_time()
            found = jp.fit_rows(rows, model.rank, search=search(truth), random_state=seed)
            took = time.process_time() - begin
            error = jp.factor_error(truth, found.pmf)
            gain = -found.objective - base
            yield model.name, start, seed, gain, error, found.n_starts, found.n_agreed, took


class Summary(NamedTuple):
    """What became of a model; of the default the worst seed."""

    model: str
    gain: float
    truth_gain: float
    random_gain: float
    """Of the best random start."""
    behind: int
    """Seeds of the default that end below what EM from the truth reaches."""
    warned: int
    error: float
    truth_error: float
    predicted: float
    is_bound: bool
    agreed: float
    starts: float
    seconds: float
    ratio: float


def summaries(table: pl.DataFrame) -> list[Summary]:
    """Return what became of each model."""
    found = []
    for (name,), part in table.group_by("model", maintain_order=True):
        of = {str(start): rows for (start,), rows in part.group_by("start")}
        ours, truth, random = of["default"], of["truth"], of["random"]
        (prediction,) = (of[name] for name in PREDICTIONS if name in of)
        gains, seconds = ours["gain"].to_numpy(), ours["seconds"].to_numpy().mean()
        line = Summary(
            model=str(name),
            gain=gains.min(),
            truth_gain=truth["gain"][0],
            random_gain=random["gain"].to_numpy().max(),
            behind=int((gains < truth["gain"][0] - SAME).sum()),
            warned=int((ours["agreed"].to_numpy() < 2).sum()),
            error=ours["error"].to_numpy().max(),
            truth_error=truth["error"][0],
            predicted=prediction["error"][0],
            is_bound=prediction["start"][0] == PREDICTIONS[0],
            agreed=ours["agreed"].to_numpy().mean(),
            starts=ours["starts"].to_numpy().mean(),
            seconds=seconds,
            ratio=seconds / (10 * random["seconds"].to_numpy().mean()),
        )
        found.append(line)
    return found


def printed(line: Summary) -> tuple[str, str, str, str]:
    """Return a line of the table on the screen."""
    return (
        line.model,
        f"{line.gain:+.2e} nats per row, {line.agreed:.1f} of {line.starts:.1f} starts",
        f"{line.truth_gain:+.2e} beside the truth",
        "at least 0",
    )


def text(table: pl.DataFrame) -> str:
    """Return the summary as a page."""
    lines = summaries(table)
    below = sum(line.gain < -TOLERANCE for line in lines)
    behind = sum(line.behind > 0 for line in lines)
    head = (
        "model", "default", "beside the truth", "random", "seeds behind", "warned",
        "factor error", "beside the truth", "predicted", "agreed, of starts", "CPU seconds",
        "× ten random starts",
    )  # fmt: skip
    rows = [
        f"| {line.model} | {line.gain:+.2e} | {line.truth_gain:+.2e} | {line.random_gain:+.2e} "
        f"| {line.behind} | {line.warned} | {line.error:.4f} | {line.truth_error:.4f} "
        f"| {line.predicted:.4f}{'' if line.is_bound else ' *'} "
        f"| {line.agreed:.1f} of {line.starts:.1f} | {line.seconds:.1f} | {line.ratio:.2f} |"
        for line in lines
    ]
    return "\n".join(
        [
            "# Planted models: does one call reach the truth?",
            "",
            f"{len(lines)} models of random columns (`python -m benchmarks.planted`). Mean "
            "log-likelihoods of a row above the truth's on the same rows, in nats: of the default, "
            "the worst of three seeds; of EM that begins at the truth; and of the best of three "
            f"random starts. Behind: seeds that end more than {SAME:g} below EM from the truth. "
            "Warned: seeds whose best optimum was found by one start only. Errors of the factors: "
            "of the default, the largest; of EM from the truth; and the Cramér–Rao bound to first "
            "order, with * that of known components. Seconds are of all threads together.",
            "",
            f"**{len(lines) - below} of {len(lines)}** end at or above the truth with all seeds; "
            f"{behind} with a seed below what EM from the truth reaches.",
            "",
            *page_table(head, [row.replace("-", "−") for row in rows]),
            "",
        ]
    )


if __name__ == "__main__":
    main()
