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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import jointpmf as jp
from jointpmf.datasets import SOURCES, fetch_jester, fetch_movielens
from jointpmf.threads import limited_to
from paper import ratings_report
from paper.factorization import tuned_factorization

RESULTS = Path(__file__).parent / "results"
GENRES = {"action": "Action", "animation": "Animation", "romance": "Romance"}
SETS = (*GENRES, "jester")
LARGER = ("jester-100", "movielens-200")
N_SPLITS, N_QUICK = 20, 3
TEST, VALIDATION = 0.2, 0.1

RANKS = (2, 5, 10, 20, 40)
"""Ranks of the figure."""

FLOOR: dict[str, Any] = {"smoothing": 0.01, "towards": "marginal"}
BANDWIDTH, N_AVERAGE = 0.6, 6
LEVELS = np.arange(1, 20) / 20
"""Nominal coverages of the reliability plot."""


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

    name: str
    number: int
    whole: jp.Ratings
    train: jp.Ratings
    validation_cells: np.ndarray
    validation: Hidden
    test: Hidden

    @classmethod
    def of(cls, name: str, number: int, release: str) -> Split:
        """Return a division of a set; the same number gives the same one."""
        whole = ratings_of(name, release)
        generator = np.random.default_rng([number, (SETS + LARGER).index(name)])
        hidden = whole.split(TEST + VALIDATION, generator)
        rows, items = np.nonzero(hidden)
        is_test = np.zeros(len(rows), bool)
        n_test = round(len(rows) * TEST / (TEST + VALIDATION))
        is_test[generator.permutation(len(rows))[:n_test]] = True
        test, validation = np.zeros_like(hidden), np.zeros_like(hidden)
        test[rows[is_test], items[is_test]] = True
        validation[rows[~is_test], items[~is_test]] = True
        train = whole.without(hidden)
        return cls(
            name,
            number,
            whole,
            train,
            validation,
            Hidden(whole, train, validation),
            Hidden(whole, train, test),
        )

    @property
    def fitted_and_validation(self) -> jp.Ratings:
        """What a fit sees that hides the validation part itself."""
        return self.whole.without(self._test_cells)

    @property
    def _test_cells(self) -> np.ndarray:
        cells = np.zeros_like(self.validation_cells)
        cells[self.test.row, self.test.item] = True
        return cells


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
    return Tried(
        setting,
        split.validation.rmse(validation),
        split.test.rmse(test),
        split.test.mae(test),
        seconds,
    )


def modelled(split: Split, setting: dict[str, Any], seconds: float, pmf: jp.JointPMF) -> Tried:
    """Return what a model is worth: squares by its means, absolute errors by its medians."""
    probabilities = split.test.probabilities(pmf)
    above = probabilities.cumsum(axis=1) >= 0.5
    return Tried(
        setting,
        split.validation.rmse(split.validation.expected(pmf)),
        split.test.rmse(split.test.expected(pmf)),
        split.test.mae(split.test.values[above.argmax(axis=1)]),
        seconds,
        np.asarray(jp.coverage(probabilities, split.test.level, LEVELS)).tolist(),
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
        found = modelled(split, {"rank": rank}, seconds, solution.pmf)
        found.mae = split.test.mae(split.test.expected(solution.pmf))  # as the paper has it
        yield found


def likelihood(ranks: tuple[int, ...], options: dict[str, Any], split: Split) -> Iterator[Tried]:
    """Fit by maximum likelihood at some ranks."""
    for rank in ranks:
        begin = time.perf_counter()
        solution = jp.fit_rows(
            split.fitted_and_validation.codes,
            rank,
            validation=split.validation_cells,
            scoring="error",
            random_state=split.number,
            **options,
        )
        seconds = time.perf_counter() - begin
        yield modelled(split, {"rank": rank}, seconds, solution.pmf)


def to_the_end(split: Split) -> Iterator[Tried]:
    """Fit by maximum likelihood until it converges, without a validation part."""
    for rank in (5, 10, 20):
        begin = time.perf_counter()
        solution = jp.fit_rows(
            split.train.codes, rank, start="rows", tol=1e-6, random_state=split.number
        )
        yield modelled(split, {"rank": rank}, time.perf_counter() - begin, solution.pmf)


def cells(split: Split) -> Iterator[Tried]:
    """Fit for predicting cells, everything chosen by the library."""
    begin = time.perf_counter()
    solution = jp.fit_cells(
        split.fitted_and_validation, validation=split.validation_cells, random_state=split.number
    )
    seconds = time.perf_counter() - begin
    yield modelled(split, {"kind": solution.start}, seconds, solution.pmf)


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


def factorization(max_epochs: int, split: Split) -> Iterator[Tried]:
    """Fit biased matrix factorization with everything chosen on the validation part."""
    for setting, seconds, table in tuned_factorization(split.train, split.validation, max_epochs):
        parts = [table[part.row, part.item] for part in (split.validation, split.test)]
        yield predicted(split, setting, seconds, *parts)


AO_ADMM = {"method": "aoadmm", "start": "random", "tol": 1e-6}
ROWS: dict[str, Any] = {"start": "rows"}
METHODS: dict[str, Method] = {
    "CP (pairs)": partial(coupled, 2, RANKS, AO_ADMM),
    "CP (triples)": partial(coupled, 3, RANKS, AO_ADMM),
    "CP (quadruples)": partial(coupled, 4, RANKS, AO_ADMM),
    "coupled, by counts": partial(coupled, 3, RANKS, {**AO_ADMM, "weighting": "counts"}),
    "coupled, default": partial(coupled, 3, (5, 10, 20), {"weighting": "counts"}),
    "maximum likelihood": partial(likelihood, RANKS, ROWS),
    "likelihood, averaged": cells,
    "global average": partial(averages, "global"),
    "user average": partial(averages, "user"),
    "item average": partial(averages, "item"),
    "BMF": partial(factorization, 160),
    "BMF, up to 40 epochs": partial(factorization, 40),
    "to convergence": to_the_end,
    "+ noise floor": partial(likelihood, (10, 20, 40), {**ROWS, **FLOOR}),
    "+ neighbours": partial(likelihood, (10, 20, 40), {**ROWS, **FLOOR, "bandwidth": BANDWIDTH}),
    "+ averaging": partial(likelihood, (10, 20, 40), {**ROWS, **FLOOR, "n_average": N_AVERAGE}),
    "+ both": partial(
        likelihood,
        (10, 20, 40),
        {**ROWS, **FLOOR, "bandwidth": BANDWIDTH, "n_average": N_AVERAGE},
    ),
    "along factors": partial(
        likelihood,
        (16, 64, 256),
        {"start": "factors", **FLOOR, "bandwidth": 0.4, "n_average": 3},
    ),
}


def piece(name: str, number: int, method: str, release: str) -> dict[str, Any]:
    """Return what one method does on one split."""
    with limited_to(1):
        split = Split.of(name, number, release)
        tried = [vars(found) for found in METHODS[method](split)]
    return {"release": release, "set": name, "split": number, "method": method, "tried": tried}


def finished(log: Path, release: str) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return all pieces in a log; a last line that was cut off is left out."""
    found = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["release"] == release and record["method"] in METHODS:
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
        log.open("a") as out,
    ):
        task = progress.add_task("ratings", total=len(wanted), completed=len(wanted) - len(todo))
        futures = [pool.submit(piece, *key, release) for key in todo]
        for future in as_completed(futures):
            record = future.result()
            out.write(json.dumps(record) + "\n")
            out.flush()
            done[record["set"], record["split"], record["method"]] = record
            progress.update(task, advance=1, description=f"{record['set']}: {record['method']}")
    return [done[key] for key in wanted]


def main() -> None:
    """Run the experiment and write its tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK} splits only")
    parser.add_argument("--splits", type=int, help=f"how many splits ({N_SPLITS})")
    default = "pooled" if os.environ.get("JOINTPMF_DATA") else "latest-small"
    parser.add_argument("--release", default=default, help=f"of MovieLens ({default})")
    chosen = parser.parse_args()
    console = Console()
    for source in SOURCES.values():
        console.print(f"{source}\n", highlight=False)
    n_splits = chosen.splits or (N_QUICK if chosen.quick else N_SPLITS)
    for name in SETS:
        console.print(f"{name}: {ratings_of(name, chosen.release)}", highlight=False)
    begin = time.perf_counter()
    records = run(n_splits, chosen.release, RESULTS / "ratings.jsonl", console)
    minutes = (time.perf_counter() - begin) / 60
    sizes = {name: repr(ratings_of(name, chosen.release)) for name in SETS}
    text = ratings_report.write(records, sizes, RESULTS, LEVELS)
    console.print(text, highlight=False)
    console.print(f"{n_splits} splits in {minutes:.1f} minutes", highlight=False)


if __name__ == "__main__":
    main()
