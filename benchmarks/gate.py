"""Quality gate: compare the fits of this source tree with a stored baseline.

`make gate` measures every figure and prints one table: figure, baseline, now, verdict. The baseline
is `results/gate.json`. Figures that the file lacks are added to it; `--accept NAME ...` replaces
figures whose name starts with NAME, and nothing else does, except that a better optimum replaces
the best known one. The exit status is 1 if a rule is broken.

Parts
-----
optimum
    `fit_rows(rows, rank)` with two seeds per table and rank. A hit is within 1e-6 of the best known
    objective, relative. A silent miss is worse by more than 1e-5 although two restarts agreed.
    Rules: at most one hit fewer than the baseline, no more silent misses, and none where restarts
    ran on samples of the rows.
density
    Mean log-likelihood of the test rows of `fit_rows(train, validation=valid)`. Larger sets are
    fitted to their first rows (`DENSITIES`). Rule: at most 0.02 nats lower.
tables
    `fit_marginals(tables)`: mean log-likelihood of complete test rows, with 0.1 % of independence
    mixed in so that zeros stay finite; and the worst total variation between a given table and the
    model, also as a multiple of the sampling noise √(cells / 2πn). Rules: at most 0.02 nats lower;
    the total variation at most 0.002 larger.
ratings
    RMSE of hidden ratings over that of tuned biased matrix factorization. Rule: at most 0.5 % up.
uncertainty
    Coverage of 90 % intervals of eight conditional probabilities over 40 planted models. Rule: 86 %
    to 94 %.
exact
    Table I of the paper, triples: the largest factor error of ten models. Rule: at most 1e-12.
time
    Processor seconds of some calls, alternating with a git worktree of the baseline's commit, as a
    ratio of the shortest times. Rule: at most 1.2.

Fits run in one process per core with one thread each; results do not depend on that.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import jointpmf as jp
from benchmarks import starts, tables, uncertainty
from benchmarks.planted import Planted

ROOT = Path(__file__).parent.parent
BASELINE = ROOT / "benchmarks" / "results" / "gate.json"
SEEDS = (0, 1)
SAME, WORSE = 1e-6, 1e-5
N_MODELS, N_EXACT, SMALL = 40, 10, 300


def data() -> Path:
    """Return the folder with the data sets."""
    return Path(os.environ["JOINTPMF_DATA"])


def jester10() -> jp.Codes:
    """Return the ratings of ten jokes on 21 levels."""
    frame = pl.read_csv(data() / "ratings" / "jester10.csv.gz", null_values=["NA", ""])
    return jp.encode(frame.select(pl.exclude("userId", "user")))


def listed(name: str) -> jp.Codes:
    """Return a table of the benchmark of starts."""
    return starts.SETS[name].read(data())


OPTIMA: dict[str, tuple[Callable[[], jp.Codes], tuple[int, ...]]] = {
    "election": (partial(listed, "election"), (3, 6, 8)),
    "movielens action": (partial(listed, "movielens, action"), (3, 5)),
    "movielens animation": (partial(listed, "movielens, animation"), (3, 5)),
    "movielens romance": (partial(listed, "movielens, romance"), (3, 5)),
    "bfi": (partial(listed, "bfi"), (4, 8)),
    "gss_cat": (partial(listed, "gss_cat"), (4, 6)),
    "jester10": (jester10, (4, 6)),
    "planted 60 × 4": (Planted(60, (4,), 15, 1_000, 0.0, 1.0, 2.0).rows, (15,)),
    "planted 50 × 2": (Planted(50, (2,), 20, 20_000).rows, (20,)),
    "planted 12 × 4": (Planted(12, (4,), 3, 2_000, 0.1, 3.0, 2.0).rows, (3,)),
    "planted 30 × 6": (Planted(30, (6,), 8, 40_000, 0.0, 1.0, 2.0).rows, (8,)),
}
"""Tables, and the ranks they are fitted at."""

TABLES = [
    ("nltcs", "pairs", None),
    ("nltcs", "triples", None),
    ("nltcs", "mixed", None),
    ("gss_cat", "pairs", None),
    ("gss_cat", "mixed", None),
    ("bfi, 8 items", "pairs", None),
    ("bfi, 8 items", "mixed", None),
    ("nltcs", "pairs", SMALL),
    ("nltcs", "triples", SMALL),
    ("gss_cat", "pairs", SMALL),
]
"""Sets of `benchmarks.tables`, kinds of tables, and how many rows they count."""

RATINGS = ("action", "animation", "romance", "jester")
DENSITIES = {"jester": 1_000, "kdd": 4_000, "plants": 2_000, "nltcs": None}
"""Sets, and how many of their first rows are fitted."""

TIMED = ("election 6", "jester10 6", "bfi 8", "nltcs density", "nltcs pairs", "gss_cat mixed")
PARTS = ("optimum", "density", "tables", "ratings", "uncertainty", "exact", "time")

Figures = dict[str, Any]


def optimum(name: str, rank: int, seed: int) -> Figures:
    """Return where the default fit of one seed ended."""
    found = jp.fit_rows(OPTIMA[name][0](), rank, random_state=seed)
    is_sampled = found.start is not None and found.start.n_rows is not None
    line = {"objective": found.objective, "agreed": found.n_agreed, "sampled": is_sampled}
    return {f"optimum {name} rank {rank} seed {seed}": line}


def density_splits(name: str) -> list[jp.Codes]:
    """Return the train, valid and test rows of a set."""
    with np.load(data() / "density" / f"{name}.npz") as file:
        domain = jp.Domain.of_sizes([2] * file["train"].shape[1])
        return [
            jp.Codes(domain, file[part][: DENSITIES[name] if part == "train" else None])
            for part in ("train", "valid", "test")
        ]


def density(name: str) -> Figures:
    """Return the log-likelihood of test rows."""
    train, valid, test = density_splits(name)
    found = jp.fit_rows(train, validation=valid, random_state=0)
    return {f"density {name}": float(found.pmf.log_probability(test).mean())}


def known_tables(
    name: str, which: str, n_rows: int | None
) -> tuple[jp.MarginalSet, jp.Codes, np.ndarray]:
    """Return the tables of a set, the rows that they count, and complete test rows."""
    train, test = tables.SETS[name][0](data())
    if n_rows is not None:
        chosen = np.random.default_rng(0).choice(train.n_rows, n_rows, replace=False)
        train = jp.Codes(train.domain, train.array[np.sort(chosen)])
    names = train.domain.names
    subsets = [[names[n] for n in s] for s in tables.subsets(which, len(names))]
    known = jp.MarginalSet.from_table(train, subsets=subsets)
    return known, train, test.array[(test.array >= 0).all(axis=1)]


def table_fit(name: str, which: str, n_rows: int | None) -> Figures:
    """Return how well a fit to tables predicts rows, and how far it is from its tables."""
    known, train, rows = known_tables(name, which, n_rows)
    found = jp.fit_marginals(known, random_state=0).pmf
    probabilities = found.probability(jp.Codes(known.domain, rows))
    alone = tables.independent(train, rows)
    mixed = (1 - tables.INDEPENDENT_PART) * probabilities + tables.INDEPENDENT_PART * alone
    far, over_noise = [], []
    for marginal in known:
        table = np.asarray(marginal.table)
        n_people = float(marginal.n_rows or train.n_rows)
        far.append(float(np.abs(table - found.marginal(marginal.names).table()).sum() / 2))
        over_noise.append(far[-1] / np.sqrt(table.size / (2 * np.pi * n_people)))
    what = f"{name} {which}" + ("" if n_rows is None else f" of {n_rows} rows")
    return {
        f"tables {what}": float(np.log(mixed).mean()),
        f"worst table {what}": max(far),
        f"worst table over noise {what}": float(max(over_noise)),
    }


def ratings(name: str, number: int) -> Figures:
    """Return the error of hidden ratings by the default."""
    from paper.ratings import Split, cells, default_release

    (found,) = cells(Split.of(name, number, default_release()))
    return {f"ratings {name} split {number}": found.rmse}


def reference(name: str, number: int) -> Figures:
    """Return the error of hidden ratings by tuned biased matrix factorization."""
    from paper.ratings import Split, default_release, factorization

    tried = list(factorization(Split.of(name, number, default_release())))
    best = min(tried, key=lambda found: found.validation)
    return {f"factorization {name} split {number}": best.rmse}


def coverage(number: int) -> Figures:
    """Return how many intervals of one planted model hold the truth."""
    truth = uncertainty.truth_of(number)
    codes, _ = uncertainty.rows_of(truth, number, is_clustered=False)
    found = jp.fit_rows(codes, uncertainty.RANK, random_state=0)
    replicates = found.uncertainty(uncertainty.N_REPLICATES, random_state=number)
    wanted = conditionals(truth)
    frame = replicates.interval(conditionals, 0.9)
    held = [
        low <= wanted[name] <= high
        for name, low, high in frame.select("quantity", "low", "high").rows()
    ]
    return {f"coverage of model {number}": [sum(held), len(held)]}


def conditionals(pmf: jp.JointPMF) -> dict[str, float]:
    """Return eight conditional probabilities."""
    found = uncertainty.answers(pmf)
    return {name: value for name, value in found.items() if name.startswith("conditionals")}


def exact(rank: int) -> Figures:
    """Return the largest factor error from exact triples."""
    from paper.synthetic import Run, observed_marginals, random_truth

    errors = []
    for number in range(N_EXACT):
        truth = random_truth(Run(False, "uniform", rank, 3, number))
        triples = observed_marginals(truth, 3, None)
        errors.append(jp.factor_error(truth, jp.fit_marginals(triples, rank, random_state=0).pmf))
    return {f"factor error rank {rank}": float(max(errors))}


def timed_call(name: str) -> Callable[[], object]:
    """Return a call whose time is compared with that of the baseline."""
    if name == "nltcs density":
        train, valid, _ = density_splits("nltcs")
        return lambda: jp.fit_rows(train, validation=valid, random_state=0)
    if name.split()[-1] in ("pairs", "mixed"):
        known, _, _ = known_tables(name.split()[0], name.split()[1], None)
        return lambda: jp.fit_marginals(known, random_state=0)
    what, rank = name.rsplit(" ", 1)
    rows = OPTIMA[what][0]()
    return lambda: [jp.fit_rows(rows, int(rank), random_state=seed) for seed in range(3)]


def tasks(parts: Sequence[str], has: Callable[[str], bool]) -> Iterator[Callable[[], Figures]]:
    """Yield the work of some parts, long tasks first."""
    if "ratings" in parts:
        pieces = [(name, number) for name in RATINGS[::-1] for number in SEEDS]
        yield from (partial(ratings, *piece) for piece in pieces)
        yield from (
            partial(reference, name, number)
            for name, number in pieces
            if not has(f"factorization {name} split {number}")
        )
    if "density" in parts:
        yield from (partial(density, name) for name in DENSITIES)
    if "tables" in parts:
        yield from (partial(table_fit, *asked) for asked in TABLES)
    if "optimum" in parts:
        for name, (_, ranks) in reversed(OPTIMA.items()):
            yield from (partial(optimum, name, rank, seed) for rank in ranks for seed in SEEDS)
    if "uncertainty" in parts:
        yield from (partial(coverage, number) for number in range(N_MODELS))
    if "exact" in parts:
        yield from (partial(exact, rank) for rank in (5, 10, 15))


def run(task: Callable[[], Figures]) -> Figures:
    """Return the figures of one task, by one thread."""
    from jointpmf.threads import limited_to

    warnings.simplefilter("ignore")
    with limited_to(1):
        return task()


def measured(parts: Sequence[str], stored: Figures) -> Figures:
    """Return the figures of some parts, by all cores; those not stored yet are stored at once."""
    found: Figures = {}
    todo = list(tasks(parts, stored.__contains__))
    columns = (TextColumn("gate"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    context = multiprocessing.get_context("spawn")
    with Progress(*columns) as bar, ProcessPoolExecutor(os.cpu_count(), context) as pool:
        progress = bar.add_task("gate", total=len(todo))
        for future in as_completed([pool.submit(run, task) for task in todo]):
            new = future.result()
            found |= new
            store(stored, new)
            bar.advance(progress)
    return found


def store(stored: Figures, now: Figures, accepted: Sequence[str] = ()) -> None:
    """Write figures that the baseline lacks or that are accepted, and better optima."""
    for name, value in now.items():
        is_ratio = name.startswith(("time", "seconds"))  # of this run only
        if not is_ratio and (name not in stored or name.startswith(tuple(accepted))):
            stored[name] = value
        if name.startswith("optimum"):
            key = best_key(name)
            stored["best"][key] = min(stored["best"].get(key, np.inf), value["objective"])
    BASELINE.write_text(json.dumps(stored, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "baseline")
        git("worktree", "add", "--detach", str(path), commit)
        try:
            yield path
        finally:
            git("worktree", "remove", "--force", str(path))


def git(*words: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def job_seconds(root: Path, name: str) -> float:
    """Return the processor seconds of a call by the source tree in a folder."""
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    command = [sys.executable, "-m", "benchmarks.gate", "--job", name]
    done = subprocess.run(
        command, cwd=root, env=environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def times() -> Figures:
    """Return the ratios of processor seconds to those of the baseline's commit."""
    # The commit that added the file: a stored hash would not survive a rebase.
    added = git("log", "--diff-filter=A", "--format=%H", "--", str(BASELINE)).split()
    found = {}
    with worktree(added[-1] if added else "HEAD") as baseline:
        for name in TIMED:
            theirs, ours = [], []
            for _ in range(3):  # the first may compile; the shortest counts
                theirs.append(job_seconds(baseline, name))
                ours.append(job_seconds(ROOT, name))
            found[f"time {name}"] = min(ours) / min(theirs)
            found[f"seconds {name}"] = min(ours)
    return found


class Line(NamedTuple):
    """One line of the table that is printed."""

    figure: str
    baseline: str
    now: str
    is_met: bool | None


def compared(stored: Figures, now: Figures) -> list[Line]:
    """Return all figures beside their baseline, with the verdict of their rule."""
    lines = [*optimum_lines(stored, now)]
    for name, value in now.items():
        if name.startswith(("optimum", "coverage of", "ratings", "factorization", "seconds")):
            continue
        before = stored.get(name, 1.0)  # a time is a ratio to the baseline's
        lines.append(Line(name, text(before), text(value), verdict(name, before, value)))
    for name in RATINGS:
        before, after = (ratio_of(figures, stored, name) for figures in (stored, now))
        if after is not None and before is not None:
            is_met = after <= 1.005 * before
            lines.append(Line(f"ratings {name}", text(before), text(after), is_met))
    before, after = map(coverage_of, (stored, now))
    if after is not None:
        lines.append(Line("coverage", text(before), text(after), 0.86 <= after <= 0.94))
    return lines


def verdict(name: str, before: float, after: float) -> bool | None:
    """Tell whether a figure keeps its rule; None if it has none."""
    if name.startswith("worst table over noise"):
        return None
    if name.startswith("worst table"):
        return after <= before + 0.002
    if name.startswith(("density", "tables")):
        return after >= before - 0.02
    return after <= (1e-12 if name.startswith("factor error") else 1.2)


def ratio_of(figures: Figures, stored: Figures, name: str) -> float | None:
    """Return the mean ratio of our error to that of matrix factorization."""
    keys = [f"{name} split {number}" for number in SEEDS]
    if f"ratings {keys[0]}" not in figures:
        return None
    both = {**stored, **figures}
    return float(np.mean([figures[f"ratings {k}"] / both[f"factorization {k}"] for k in keys]))


def coverage_of(figures: Figures) -> float | None:
    """Return the part of all intervals that hold the truth."""
    pairs = [value for name, value in figures.items() if name.startswith("coverage of")]
    return sum(held for held, _ in pairs) / sum(n for _, n in pairs) if pairs else None


def optimum_lines(stored: Figures, now: Figures) -> Iterator[Line]:
    """Yield hits and silent misses, in all and where they changed."""
    runs = [name for name in now if name.startswith("optimum")]
    if not runs:
        return
    best = {name: stored["best"][best_key(name)] for name in runs}
    before, after = (
        {name: figures[name]["objective"] / best[name] - 1 for name in runs}
        for figures in (stored, now)
    )
    for name in runs:
        if (before[name] <= SAME) != (after[name] <= SAME):
            yield Line(f"{name}, gap", f"{before[name]:.1e}", f"{after[name]:.1e}", None)
    were, are = (sum(gap <= SAME for gap in gaps.values()) for gaps in (before, after))
    yield Line(f"hits of {len(runs)}", str(were), str(are), are >= were - 1)
    silent_before, silent = (
        [name for name in runs if gaps[name] > WORSE and figures[name]["agreed"] > 1]
        for gaps, figures in ((before, stored), (after, now))
    )
    is_met = len(silent) <= len(silent_before) and not any(now[name]["sampled"] for name in silent)
    yield Line("silent misses", str(len(silent_before)), str(len(silent)), is_met)


def best_key(name: str) -> str:
    """Return the table and rank of a run."""
    return name.removeprefix("optimum ").rsplit(" seed ", 1)[0]


def text(value: float | None) -> str:
    """Return a figure as text."""
    return "" if value is None else f"{value:.2e}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def try_more(n_starts: int, stored: Figures) -> None:
    """Improve the best known optima by random restarts."""
    for name, (read, ranks) in OPTIMA.items():
        rows = read()
        for rank in ranks:
            found = [
                jp.fit_rows(
                    rows, rank, search=jp.Search(start="random"), random_state=1_000 + seed
                ).objective
                for seed in range(n_starts)
            ]
            key = f"{name} rank {rank}"
            stored["best"][key] = min(stored["best"].get(key, np.inf), *found)


def print_table(lines: Sequence[Line]) -> None:
    """Print all lines."""
    table = Table("figure", "baseline", "now", "verdict", box=box.SIMPLE_HEAD)
    for line in lines:
        words = {True: "ok", False: "[red]worse[/red]", None: ""}
        table.add_row(line.figure, line.baseline, line.now, words[line.is_met])
    Console(width=100).print(table)


def main() -> int:
    """Measure, compare and print; return 1 if a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--accept", nargs="+", default=(), metavar="NAME")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="more restarts first")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if "JOINTPMF_DATA" not in os.environ:
        print("gate: set JOINTPMF_DATA to a folder with the data sets")
        return 2
    if asked.job:
        call = timed_call(asked.job)
        begin = time.process_time()
        call()
        print(time.process_time() - begin)
        return 0
    stored: Figures = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    stored.setdefault("best", {})
    if asked.random:
        try_more(asked.random, stored)
    now = measured([part for part in asked.parts if part != "time"], stored)
    if "time" in asked.parts:
        now |= times()
    store(stored, now, asked.accept)
    lines = compared(stored, now)
    print_table(lines)
    return int(any(line.is_met is False for line in lines))


if __name__ == "__main__":
    sys.exit(main())
