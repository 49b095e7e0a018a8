"""Does one call find the best optimum: ten seeds of the default against the best of random starts.

Each table is fitted at several ranks: by the default `fit_rows(rows, rank)` with ten seeds, and
from 100 random starts (`Search(start="random")`, fewer on larger tables), whose best is what the
default is compared with. Two optima are the same if they differ by less than 1e-6 of themselves. A
run has missed if it is worse than the best random start by more than that, and has missed in
silence if it is worse by more than 1e-4 and did not warn, because it found its optimum twice.

Seconds are those of all threads together. An iteration of EM is timed over ten random starts, in
turn with the default; ten random starts cost as many as all of them have in the mean.

Every fit is a line of `results/starts.csv`, and a run makes only those that are not there;
`--again` forgets those of the default, and keeps the random starts that they are compared with.

Needs the folders `survey`, `latent-class`, `ratings` and `density` in `JOINTPMF_DATA`.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from rich.progress import track

import jointpmf as jp
from benchmarks.latent_class import read as read_latent_class
from benchmarks.measure import page_table, print_lines
from benchmarks.planted import Planted
from benchmarks.tables import BFI_ITEMS

RESULTS = Path(__file__).parent / "results"
SAME, WORSE = 1e-6, 1e-4
"""Parts of a log-likelihood by which equal optima may differ, and by which a run must not be worse
without a warning."""

TEN, MOST = 10, 3.0
"""Random starts that the cost of the default is compared with, and how often it may be theirs."""

FIRST_SEED = 1000
"""Seed of the first random start."""

SCHEMA = {
    "set": pl.String,
    "rank": pl.Int64,
    "start": pl.String,
    "seed": pl.Int64,
    "objective": pl.Float64,
    "starts": pl.Int64,
    "agreed": pl.Int64,
    "iterations": pl.Int64,
    "seconds": pl.Float64,
}
"""Of one fit; the objective is the mean negative log-likelihood of a row, in nats. Random starts
that were not timed have no seconds."""


class Set(NamedTuple):
    """A table, and how often it is fitted."""

    read: Callable[[Path], jp.Codes]
    ranks: tuple[int, ...] = tuple(range(2, 9))
    n_seeds: int = 10
    n_random: int = 100


def survey(path: Path, choose: pl.Expr, bins: dict[str, int] | None = None) -> jp.Codes:
    """Return some columns of a table."""
    return jp.encode(pl.read_csv(path, null_values=["NA", ""]).select(choose), bins=bins)


def bfi(folder: Path) -> jp.Codes:
    """Return 25 answers of 2,800 people about their personality."""
    return survey(folder / "survey" / "bfi.csv.gz", pl.col(BFI_ITEMS))


def gss(folder: Path) -> jp.Codes:
    """Return nine facts about 21,483 people, numbers in bins."""
    return survey(folder / "survey" / "gss_cat.csv.gz", pl.all(), {"age": 6, "tvhours": 5})


def movielens(folder: Path, genre: str) -> jp.Codes:
    """Return ratings of the ten most rated movies of a genre, most of them missing."""
    return survey(folder / "ratings" / f"movielens_{genre}.csv.gz", pl.exclude("userId"))


def jester(folder: Path) -> jp.Codes:
    """Return 9,000 rows of 100 binary variables."""
    with np.load(folder / "density" / "jester.npz") as file:
        return jp.Codes(jp.Domain.of_sizes([2] * 100), file["train"])


def many_answers(folder: Path) -> jp.Codes:
    """Return as many rows as a large survey has: those of bfi, a tenth of the answers moved by one.

    Drawn with replacement; 24 items.
    """
    codes, generator = bfi(folder), np.random.default_rng(0)
    rows = np.array(codes.array[generator.integers(codes.n_rows, size=66_690), :24])
    steps = generator.choice([-1, 0, 1], p=[0.05, 0.9, 0.05], size=rows.shape)
    domain = jp.Domain(codes.domain.variables[:24])
    moved = np.clip(rows + steps, 0, np.array(domain.sizes) - 1)
    return jp.Codes(domain, np.where(rows < 0, jp.MISSING, moved))


SETS = {
    "election": Set(lambda folder: jp.encode(read_latent_class(str(folder), "election"))),
    "movielens, action": Set(lambda folder: movielens(folder, "action")),
    "movielens, animation": Set(lambda folder: movielens(folder, "animation")),
    "movielens, romance": Set(lambda folder: movielens(folder, "romance")),
    "bfi": Set(bfi),
    "gss_cat": Set(gss),
    "jester": Set(jester),
    "bfi, 66,690 rows": Set(many_answers, (4, 5, 6), 5, TEN),
    "planted, 300,000 rows": Set(
        lambda _: Planted(20, (5,), 6, 300_000, 0.1, 1.0, 2.0).rows(), (6,), 3, TEN
    ),
    "planted, 1,000,000 rows": Set(
        lambda _: Planted(10, (4,), 5, 1_000_000, 0.1, 1.0, 2.0).rows(), (5,), 3, TEN
    ),
}


def main() -> None:
    """Fit what is not on file yet, and write the summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--ranks", nargs="+", type=int)
    parser.add_argument("--again", action="store_true", help="make the default's fits again")
    asked = parser.parse_args()
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("starts: set JOINTPMF_DATA to a folder with survey/bfi.csv.gz and the other sets")
        return
    logging.getLogger("jointpmf").setLevel(logging.ERROR)  # what they would say is counted
    jp.fit_rows(Planted(4, (3,), 2, 100).rows(), 2, random_state=0)  # compiles
    for name in asked.sets:
        rows = SETS[name].read(Path(folder))
        ranks = [rank for rank in SETS[name].ranks if not asked.ranks or rank in asked.ranks]
        for rank in track(ranks, name):
            keep(name, rank, asked.again, rows)
            (RESULTS / "starts.md").write_text(text(on_file()))
    lines = [summary(name, rank, fits) for (name, rank), fits in groups(on_file())]
    print_lines("Runs of the default", [printed(line) for line in lines])


def keep(name: str, rank: int, is_again: bool, rows: jp.Codes) -> None:
    """Make the fits of one rank that are not on file, and put them there."""
    fits = on_file()
    mine = (pl.col("set") == name) & (pl.col("rank") == rank)
    known = fits.filter(mine)
    if is_again:
        known = known.filter(pl.col("start") == "random")
    if len(known.filter(pl.col("start") == "default")) < SETS[name].n_seeds:
        timed = pl.DataFrame(list(timed_fits(name, rank, rows)), SCHEMA, orient="row")
        keys = ["start", "seed"]
        known = pl.concat([known.join(timed, on=keys, how="anti"), timed])
    done = set(known.filter(pl.col("start") == "random")["seed"])
    seeds = [seed for seed in random_seeds(SETS[name].n_random) if seed not in done]
    more = [(*fit(name, rank, rows, "random", seed)[:-1], None) for seed in seeds]
    found = pl.concat([fits.filter(~mine), known, pl.DataFrame(more, SCHEMA, orient="row")])
    order = {key: k for k, key in enumerate(SETS)}
    by = [pl.col("set").replace_strict(order), "rank", "start", "seed"]
    found.sort(by).write_csv(RESULTS / "starts.csv")


def random_seeds(count: int) -> range:
    """Return the seeds of some random starts."""
    return range(FIRST_SEED, FIRST_SEED + count)


def timed_fits(name: str, rank: int, rows: jp.Codes) -> Iterator[tuple[Any, ...]]:
    """Yield the default's fits, and ten random starts in turn with them."""
    n_seeds = SETS[name].n_seeds
    of_turn = np.array_split(random_seeds(TEN), n_seeds)
    for seed in range(n_seeds):
        yield fit(name, rank, rows, "default", seed)
        for other in of_turn[seed]:
            yield fit(name, rank, rows, "random", int(other))


def fit(name: str, rank: int, rows: jp.Codes, start: str, seed: int) -> tuple[Any, ...]:
    """Return the line of one fit."""
    search = jp.Search(start="random") if start == "random" else None
    begin = time.process_time()
    found = jp.fit_rows(rows, rank, search=search, random_state=seed)
    took = time.process_time() - begin
    how = found.objective, found.n_starts, found.n_agreed, found.n_iter
    return name, rank, start, seed, *how, took


def on_file() -> pl.DataFrame:
    """Return all fits so far."""
    path = RESULTS / "starts.csv"
    return pl.read_csv(path, schema=SCHEMA) if path.exists() else pl.DataFrame(schema=SCHEMA)


def groups(fits: pl.DataFrame) -> Iterator[tuple[tuple[str, int], pl.DataFrame]]:
    """Yield the fits of each set and rank that the default was tried on."""
    for (name, rank), part in fits.group_by("set", "rank", maintain_order=True):
        if (part["start"] == "default").any():
            yield (str(name), int(rank)), part


class Summary(NamedTuple):
    """What the default did on one table at one rank."""

    name: str
    rank: int
    runs: int
    found: int
    best: int
    """Runs at the best optimum of all that are on file, those of the default too."""
    worst: float
    """How much worse than the best random start the worst run is, relative."""
    silent: int
    warned: int
    agreed: float
    starts: float
    n_random: int
    random_found: int
    seconds: float
    ratio: float


def summary(name: str, rank: int, fits: pl.DataFrame) -> Summary:
    """Return what the default did on one table at one rank."""
    ours = fits.filter(pl.col("start") == "default")
    random = fits.filter(pl.col("start") == "random")
    target = random["objective"].to_numpy().min()
    gaps = ours["objective"].to_numpy() / target - 1
    is_alone = ours["agreed"].to_numpy() < 2
    to_best = fits["objective"].to_numpy() / fits["objective"].to_numpy().min() - 1
    seconds = ours["seconds"].to_numpy().mean()
    timed = random.drop_nulls("seconds")
    pace = timed["seconds"].to_numpy().sum() / timed["iterations"].to_numpy().sum()
    return Summary(
        name=name,
        rank=rank,
        runs=len(ours),
        found=int((gaps <= SAME).sum()),
        best=int((to_best[(fits["start"] == "default").to_numpy()] <= SAME).sum()),
        worst=float(gaps.max()),
        silent=int(((gaps > WORSE) & ~is_alone).sum()),
        warned=int(is_alone.sum()),
        agreed=ours["agreed"].to_numpy().mean(),
        starts=ours["starts"].to_numpy().mean(),
        n_random=len(random),
        random_found=int((random["objective"].to_numpy() / target - 1 <= SAME).sum()),
        seconds=seconds,
        ratio=seconds / (TEN * pace * random["iterations"].to_numpy().mean()),
    )


def printed(line: Summary) -> tuple[str, str, str, str]:
    """Return a line of the table on the screen."""
    return (
        f"{line.name}, rank {line.rank}",
        f"{line.found} of {line.runs} found, worst {line.worst:+.1e}, {line.silent} in silence; "
        f"{line.ratio:.2f} × ten random",
        f"{line.random_found} of {line.n_random} random starts",
        f"all; at most {MOST:g} × ten random",
    )


def text(fits: pl.DataFrame) -> str:
    """Return the summary as a page."""
    lines = [summary(name, rank, part) for (name, rank), part in groups(fits)]
    runs, found = sum(line.runs for line in lines), sum(line.found for line in lines)
    head = (
        "table", "rank", "as good as the best random start", "best of all", "worst gap",
        "missed in silence", "warned", "agreed, of starts", "random starts that found it",
        "CPU seconds", "× ten random starts",
    )  # fmt: skip
    rows = [
        f"| {line.name} | {line.rank} | {line.found} of {line.runs} | {line.best} "
        f"| {line.worst:+.1e} | {line.silent} | {line.warned} "
        f"| {line.agreed:.1f} of {line.starts:.1f} | {line.random_found} of {line.n_random} "
        f"| {line.seconds:.2f} | {line.ratio:.2f} |".replace("-", "−")
        for line in lines
    ]
    dearest = max(lines, key=lambda line: line.ratio)
    return "\n".join(
        [
            "# The default against random starts: is the best optimum found?",
            "",
            "`fit_rows(rows, rank, random_state=seed)`, ten seeds (fewer on larger tables), beside "
            "the best of random starts (`python -m benchmarks.starts`). As good: within "
            f"{SAME:g} of its log-likelihood, or better. Best of all: within {SAME:g} of the best "
            "that any run has found, the default's too. Worst gap: relative, of the worst run; "
            f"negative if it is better. Missed in silence: worse by more than {WORSE:g}, without "
            "a warning. Warned: the best optimum was found by one start only. Seconds are of all "
            "threads together, a mean.",
            "",
            f"**{found} of {runs} runs ({found / runs:.1%})** are as good as the best random "
            f"start; {sum(line.silent for line in lines)} missed in silence, "
            f"{sum(line.warned for line in lines)} warned. The dearest: "
            f"{dearest.name}, rank {dearest.rank}, {dearest.ratio:.2f} × ten random starts.",
            "",
            *page_table(head, rows),
            "",
        ]
    )


if __name__ == "__main__":
    main()
