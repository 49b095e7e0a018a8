"""Table III and the figure of the paper: hidden ratings, predicted from the rest of their rows.

Four sets of ten items, three of MovieLens and one of Jester. Of the known ratings 20 % are hidden
as test part and 10 % as validation part, twenty times over. Every method is fitted to the rest;
what it leaves open (rank, regularisation, epochs, the iteration to stop at) is chosen on the
validation part. The paper chose on the test part, which is shown beside it. The paper's MovieLens
release has 20 to 50 times more users, so that ratios to biased matrix factorization compare, and
not errors.

Every finished piece is kept in `results/ratings.jsonl`, and a run goes on where the last stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import jointpmf as jp
from jointpmf.threads import limited_to
from paper import ratings_report
from paper.datasets import SOURCES, fetch_jester, fetch_movielens
from paper.factorization import tuned_factorization

RESULTS = Path(__file__).parent / "results"
GENRES = {"action": "Action", "animation": "Animation", "romance": "Romance"}
SETS = (*GENRES, "jester")
LARGER = ("movielens-200", "jester-100")
N_SPLITS, N_QUICK = 20, 3
TEST, VALIDATION = 0.2, 0.1

RANKS = (2, 5, 10, 20, 40)
"""Ranks of the figure."""

SOME_RANKS = ratings_report.SOME_RANKS
"""Ranks by which single features are compared."""

TABLE_RANKS, SMOOTHINGS = (5, 10, 20, 40, 80), (0.1, 1.0, 5.0)
"""Ranks and smoothings of fits to tables by likelihood, tried upwards while they help."""

N_AVERAGED = 8
"""Fits to tables that are averaged."""

PATIENCE = 5
"""Steps of such a fit without improvement on the validation part, after which it ends."""

PLAIN = jp.Likelihood()
FLOOR = jp.Likelihood(smoothing=0.01, towards="marginal")
ONCE, AVERAGED = jp.Search(start="rows"), jp.Search(start="rows", n_average=6)


class Hidden:
    """Hidden ratings, and what a model of the visible ones says about them."""

    def __init__(self, whole: jp.Ratings, visible: jp.Ratings, hidden: np.ndarray) -> None:
        self.row, self.item = np.nonzero(hidden)
        self.level = whole.codes.array[self.row, self.item]
        self.values = np.array(whole.scale, float)
        self.truth = self.values[self.level]
        used, self._position = np.unique(self.row, return_inverse=True)
        self._rows = jp.Codes(visible.codes.domain, visible.codes.array[used])

    def expected(self, pmf: jp.JointPMF) -> np.ndarray:
        """Return the conditional expectation of every hidden rating."""
        means = np.array([self.values @ factor for factor in pmf.factors])
        return (pmf.responsibilities(self._rows) @ means.T)[self._position, self.item]

    def probabilities(self, pmf: jp.JointPMF) -> np.ndarray:
        """Return the conditional distribution of every hidden rating."""
        posterior = pmf.responsibilities(self._rows)
        found = np.empty((len(self.row), len(self.values)))
        for n, factor in enumerate(pmf.factors):
            cells = self.item == n
            found[cells] = posterior[self._position[cells]] @ factor.T
        return found

    def rmse(self, predicted: np.ndarray) -> float:
        """Return the root of the mean squared error."""
        return float(np.sqrt(((predicted - self.truth) ** 2).mean()))

    def mae(self, predicted: np.ndarray) -> float:
        """Return the mean absolute error."""
        return float(np.abs(predicted - self.truth).mean())


@dataclass(frozen=True)
class Split:
    """One random division of a set of ratings."""

    number: int
    train: jp.Ratings
    train_and_validation: jp.Ratings
    validation_cells: np.ndarray
    validation: Hidden
    test: Hidden

    @classmethod
    def of(cls, name: str, number: int, release: str) -> Split:
        """Return a division of a set; the same number gives the same one."""
        whole = ratings_of(name, release)
        generator = np.random.default_rng([number, (SETS + LARGER).index(name)])
        test = whole.split(TEST, generator)
        rest = whole.without(test)
        validation = rest.split(VALIDATION / (1 - TEST), generator)
        train = rest.without(validation)
        return cls(
            number,
            train,
            rest,
            validation,
            Hidden(whole, train, validation),
            Hidden(whole, train, test),
        )


@cache
def ratings_of(name: str, release: str) -> jp.Ratings:
    """Return the ratings of one of the sets."""
    if name.startswith("jester"):
        return fetch_jester(10 if name == "jester" else 100)
    if name in LARGER:
        return fetch_movielens(None, 200, release)
    return fetch_movielens(GENRES[name], 10, release)


@dataclass
class Tried:
    """One setting of a method: its errors on both parts, and the time it took."""

    setting: dict[str, Any]
    validation: float
    rmse: float
    mae: float
    mae_of_level: float
    """Of a predicted level: the median of a distribution, or the level nearest to a number."""
    seconds: float
    coverage: list[float] = field(default_factory=list)


Method = Callable[[Split], Iterator[Tried]]


def predicted(
    split: Split,
    setting: dict[str, Any],
    seconds: float,
    validation: np.ndarray,
    test: np.ndarray,
) -> Tried:
    """Return what predictions are worth that have no distribution."""
    nearest = np.abs(test[:, None] - split.test.values).argmin(axis=1)
    return Tried(
        setting,
        split.validation.rmse(validation),
        split.test.rmse(test),
        split.test.mae(test),
        split.test.mae(split.test.values[nearest]),
        seconds,
    )


def modelled(split: Split, setting: dict[str, Any], seconds: float, pmf: jp.JointPMF) -> Tried:
    """Return what a model is worth, by its means and by its medians."""
    probabilities = split.test.probabilities(pmf)
    above = probabilities.cumsum(axis=1) >= 0.5
    expected = split.test.expected(pmf)
    return Tried(
        setting,
        split.validation.rmse(split.validation.expected(pmf)),
        split.test.rmse(expected),
        split.test.mae(expected),
        split.test.mae(split.test.values[above.argmax(axis=1)]),
        seconds,
        np.asarray(jp.coverage(probabilities, split.test.level, ratings_report.LEVELS)).tolist(),
    )


def coupled(
    order: int, ranks: tuple[int, ...], options: dict[str, Any], split: Split
) -> Iterator[Tried]:
    """Fit the marginals of some order at some ranks, keeping the best validation iterate."""
    marginals = jp.MarginalSet.from_table(split.train.codes, order=order)

    def error(pmf: jp.JointPMF) -> float:
        return split.validation.rmse(split.validation.expected(pmf))

    for rank in ranks:
        begin = time.perf_counter()
        solution = jp.fit_marginals(
            marginals, rank, validation=error, random_state=split.number, **options
        )
        seconds = time.perf_counter() - begin
        yield modelled(split, {"rank": rank}, seconds, solution.pmf)


class Kept:
    """The iterate of a fit that predicts the validation part best; the fit ends soon after it."""

    def __init__(self, part: Hidden) -> None:
        self.part = part
        self.error, self.iteration = np.inf, 0
        self.pmf: jp.JointPMF | None = None

    def __call__(self, step: Any, pmf: jp.JointPMF) -> bool:
        """Look at an iterate; tell whether to stop."""
        error = self.part.rmse(self.part.expected(pmf))
        if error < self.error:
            self.error, self.iteration, self.pmf = error, step.iteration, pmf
        return bool(step.iteration - self.iteration >= PATIENCE)


def counted_fit(
    marginals: jp.MarginalSet,
    rank: int,
    smoothing: float,
    generator: np.random.Generator,
    part: Hidden,
) -> jp.JointPMF:
    """Return one fit by the likelihood of counts, stopped where it predicts a part best."""
    kept = Kept(part)
    solution = jp.fit_marginals(
        marginals,
        rank,
        loss="likelihood",
        smoothing=smoothing,
        search=jp.Search(n_average=1),
        tol=1e-6,
        random_state=generator,
        callback=kept,
    )
    return kept.pmf or solution.pmf


def by_counts(
    ranks: tuple[int, ...], smoothings: tuple[float, ...], n_averaged: int, split: Split
) -> Iterator[Tried]:
    """Fit triples by the likelihood of their counts, and average; the best iterate of each fit."""
    marginals = jp.MarginalSet.from_table(split.train.codes, order=3)

    def fit(rank: int, smoothing: float) -> Tried:
        begin = time.perf_counter()
        generator = np.random.default_rng(split.number)
        fits = [
            counted_fit(marginals, rank, smoothing, generator, split.validation)
            for _ in range(n_averaged)
        ]
        seconds = time.perf_counter() - begin
        return modelled(split, {"rank": rank, "smoothing": smoothing}, seconds, jp.average(fits))

    tried = list(while_better(fit(rank, smoothings[0]) for rank in ranks))
    yield from tried
    best = min(tried, key=lambda found: found.validation)
    others = (fit(best.setting["rank"], smoothing) for smoothing in smoothings[1:])
    yield from while_better(others, best.validation)


def while_better(tried: Iterable[Tried], least: float = np.inf) -> Iterator[Tried]:
    """Yield what is tried, up to the first that is no better on the validation part."""
    for found in tried:
        yield found
        if found.validation >= least:
            return
        least = found.validation


def likelihood(
    ranks: tuple[int, ...], objective: jp.Likelihood, search: jp.Search, split: Split
) -> Iterator[Tried]:
    """Fit by maximum likelihood at some ranks, each fit stopped by the validation part."""
    for rank in ranks:
        begin = time.perf_counter()
        solution = jp.fit_rows(
            split.train_and_validation.codes,
            rank,
            objective=objective,
            search=search,
            validation=jp.HiddenCells(split.validation_cells, scoring="error"),
            random_state=split.number,
        )
        seconds = time.perf_counter() - begin
        yield modelled(split, {"rank": rank}, seconds, solution.pmf)


def to_the_end(split: Split) -> Iterator[Tried]:
    """Fit by maximum likelihood until it converges, without a validation part."""
    for rank in SOME_RANKS:
        begin = time.perf_counter()
        solution = jp.fit_rows(
            split.train.codes, rank, search=ONCE, tol=1e-6, random_state=split.number
        )
        yield modelled(split, {"rank": rank}, time.perf_counter() - begin, solution.pmf)


def cells(split: Split) -> Iterator[Tried]:
    """Fit for predicting cells, everything chosen by the library."""
    begin = time.perf_counter()
    solution = jp.fit_rows(
        split.train_and_validation,
        validation=jp.HiddenCells(split.validation_cells),
        random_state=split.number,
    )
    seconds = time.perf_counter() - begin
    yield modelled(split, {"kind": str(solution.start)}, seconds, solution.pmf)


def averages(which: str, split: Split) -> Iterator[Tried]:
    """Predict the mean of all ratings, of the user's, or of the item's."""
    values = np.append(split.test.values, np.nan)
    known = values[split.train.codes.array]
    overall = np.nanmean(known)
    begin = time.perf_counter()
    table = np.full(known.shape, overall)
    if which != "global":
        axis = 1 if which == "user" else 0
        counts = (~np.isnan(known)).sum(axis=axis, keepdims=True)
        sums = np.nansum(known, axis=axis, keepdims=True)
        table = np.where(counts > 0, sums / np.maximum(counts, 1), overall) + 0 * table
    parts = [table[part.row, part.item] for part in (split.validation, split.test)]
    yield predicted(split, {}, time.perf_counter() - begin, *parts)


def factorization(split: Split, **limits: int) -> Iterator[Tried]:
    """Fit biased matrix factorization with everything chosen on the validation part."""
    for setting, seconds, table in tuned_factorization(split.train, split.validation, **limits):
        parts = [table[part.row, part.item] for part in (split.validation, split.test)]
        yield predicted(split, setting, seconds, *parts)


AO_ADMM: dict[str, Any] = {
    "method": "aoadmm",
    "search": jp.Search(start="random"),
    "tol": 1e-6,
}
METHODS: dict[str, Method] = {
    "CP (pairs)": partial(coupled, 2, RANKS, AO_ADMM),
    "CP (triples)": partial(coupled, 3, RANKS, AO_ADMM),
    "CP (quadruples)": partial(coupled, 4, RANKS, AO_ADMM),
    "CP (triples), likelihood": partial(by_counts, TABLE_RANKS, SMOOTHINGS, 1),
    "CP (triples), likelihood, averaged": partial(by_counts, TABLE_RANKS, SMOOTHINGS, N_AVERAGED),
    "coupled, by counts": partial(coupled, 3, RANKS, {**AO_ADMM, "weighting": "counts"}),
    "coupled, default": partial(coupled, 3, (5, 10, 20), {}),
    "maximum likelihood": partial(likelihood, RANKS, PLAIN, ONCE),
    "likelihood, averaged": cells,
    "global average": partial(averages, "global"),
    "user average": partial(averages, "user"),
    "item average": partial(averages, "item"),
    "BMF": factorization,
    "to convergence": to_the_end,
    "+ noise floor": partial(likelihood, SOME_RANKS, FLOOR, ONCE),
    "+ averaging": partial(likelihood, SOME_RANKS, FLOOR, AVERAGED),
}


def piece(name: str, number: int, method: str, release: str) -> dict[str, Any]:
    """Return what one method does on one split."""
    with limited_to(1):
        split = Split.of(name, number, release)
        tried = [vars(found) for found in METHODS[method](split)]
    return {
        "release": release,
        "set": name,
        "split": number,
        "method": method,
        "how": how(METHODS[method]),
        "tried": tried,
    }


def how(method: Method) -> str:
    """Return a method's function and settings as text, by which its records are known again."""
    if isinstance(method, partial):
        return f"{method.func.__name__}{method.args}"
    return getattr(method, "__name__", "")


def read_log(log: Path) -> Iterator[dict[str, Any]]:
    """Yield all records of a log; a line that was cut off is left out."""
    for line in log.read_text().splitlines() if log.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def append_to_log(log: Path, record: dict[str, Any]) -> None:
    """Add a record, on a line of its own also where the last was cut off."""
    is_cut = log.exists() and not log.read_bytes().endswith(b"\n")
    with log.open("a") as out:
        out.write("\n" * is_cut + json.dumps(record) + "\n")


def finished(log: Path, release: str) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return all pieces in a log that are of this release and of the methods as they are now."""
    found = {}
    for record in read_log(log):
        method = METHODS.get(record["method"])
        if record["release"] == release and method and record["how"] == how(method):
            found[record["set"], record["split"], record["method"]] = record
    return found


def run(n_splits: int, release: str, log: Path, console: Console) -> list[dict[str, Any]]:
    """Do all pieces that are not yet in the log, on all cores, and return all of them."""
    done = finished(log, release)
    wanted = [(s, k, m) for k in range(n_splits) for s in SETS[::-1] for m in METHODS]
    todo = [key for key in wanted if key not in done]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    context = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
        ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool,
    ):
        task = progress.add_task("ratings", total=len(wanted), completed=len(wanted) - len(todo))
        futures = [pool.submit(piece, *key, release) for key in todo]
        try:
            for future in as_completed(futures):
                record = future.result()
                append_to_log(log, record)
                done[record["set"], record["split"], record["method"]] = record
                progress.update(task, advance=1, description=f"{record['set']}: {record['method']}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[key] for key in wanted]


def default_release() -> str:
    """Return the release that there is: a folder's pool, or the one that downloads quickly."""
    return "pooled" if os.environ.get("JOINTPMF_DATA") else "latest-small"


def main() -> None:
    """Run the experiment and write its tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK} splits only")
    parser.add_argument("--splits", type=int, default=N_SPLITS, help=f"how many ({N_SPLITS})")
    release = default_release()
    parser.add_argument("--release", default=release, help=f"of MovieLens ({release})")
    chosen = parser.parse_args()
    n_splits = N_QUICK if chosen.quick else max(chosen.splits, 1)
    console = Console()
    for source in SOURCES.values():
        console.print(f"{source}\n", highlight=False)
    try:
        sizes = {name: repr(ratings_of(name, chosen.release)) for name in SETS}
    except jp.JointPMFError as error:
        raise SystemExit(str(error)) from None
    begin = time.perf_counter()
    records = run(n_splits, chosen.release, RESULTS / "ratings.jsonl", console)
    minutes = (time.perf_counter() - begin) / 60
    title = f"Predicted ratings ({n_splits} splits, MovieLens {chosen.release})"
    text = ratings_report.write(records, title, sizes, RESULTS / stem(n_splits, chosen.release))
    console.print(text, highlight=False, soft_wrap=True)
    console.print(f"{n_splits} splits in {minutes:.1f} minutes", highlight=False)


def stem(n_splits: int, release: str) -> str:
    """Return what files of a run begin with: a short run does not overwrite a full one."""
    parts = ["ratings"]
    parts += [] if release == "pooled" else [release]
    parts += [] if n_splits == N_SPLITS else [f"{n_splits}-splits"]
    return "-".join(parts)


if __name__ == "__main__":
    main()
