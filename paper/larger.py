"""Larger than the paper: all jokes of Jester, and the 200 most rated movies of MovieLens.

One split as in `paper.ratings`. Each method runs in a process of its own, so that its peak memory
can be told; biased matrix factorization is tuned on the validation part, the other methods of
scikit-surprise are as that library has them by default, KNN between items.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from rich.console import Console
from surprise import BaselineOnly, KNNBaseline, SVDpp

import jointpmf as jp
from paper.factorization import trainset_of, tuned_factorization
from paper.ratings import LARGER, RESULTS, Split, Tried, averages, cells, modelled, predicted

NAMES = {"jester-100": "Jester, 100 jokes", "movielens-200": "MovieLens, 200 movies"}
SURE = 15
"""Where the coverage of sets of probability 80 % stands."""

NOTE = """One split: 70 % of the ratings are fitted, 10 % validate, 20 % are predicted. `tuning` is
the time of the whole search for settings, `fit` that of the chosen one. Memory is the peak of the
process, with Python and its libraries (about 300 MB). Absolute errors of `fit_cells` and of the
single fit are of the predicted median."""


def single(split: Split) -> list[Tried]:
    """Fit by maximum likelihood once for each of some ranks, smoothed."""
    found = []
    for rank in (10, 20, 40):
        begin = time.perf_counter()
        solution = jp.fit_rows(
            split.fitted_and_validation.codes,
            rank,
            start="rows",
            smoothing=0.01,
            towards="marginal",
            bandwidth=0.6,
            validation=split.validation_cells,
            scoring="error",
            random_state=0,
        )
        seconds = time.perf_counter() - begin
        found.append(modelled(split, {"rank": rank}, seconds, solution.pmf))
    return found


def factorization(split: Split) -> list[Tried]:
    """Fit biased matrix factorization, tuned."""
    found = []
    for setting, seconds, table in tuned_factorization(split.train, split.validation, 160):
        parts = [table[part.row, part.item] for part in (split.validation, split.test)]
        found.append(predicted(split, setting, seconds, *parts))
    return found


def surprising(model: Any, split: Split) -> list[Tried]:
    """Fit another method of scikit-surprise."""
    begin = time.perf_counter()
    trainset = trainset_of(split.train)
    model.fit(trainset)
    parts = [
        np.array([model.predict(u, i).est for u, i in zip(part.row, part.item, strict=True)])
        for part in (split.validation, split.test)
    ]
    return [predicted(split, {}, time.perf_counter() - begin, *parts)]


METHODS: dict[str, Callable[[Split], list[Tried]]] = {
    "likelihood, one fit": single,
    "fit_cells": lambda split: list(cells(split)),
    "BMF": factorization,
    "BaselineOnly": lambda split: surprising(BaselineOnly(verbose=False), split),
    "KNNBaseline": lambda split: surprising(
        KNNBaseline(sim_options={"name": "pearson_baseline", "user_based": False}, verbose=False),
        split,
    ),
    "SVD++": lambda split: surprising(SVDpp(random_state=0), split),
    "item average": lambda split: list(averages("item", split)),
}


def measured(name: str, method: str, release: str) -> dict[str, Any]:
    """Return what a method does, how long it takes and how much memory."""
    split = Split.of(name, 0, release)
    begin = time.perf_counter()
    tried = METHODS[method](split)
    seconds = time.perf_counter() - begin
    best = min(tried, key=lambda found: found.validation)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "set": name,
        "method": method,
        "release": release,
        "megabytes": peak,
        **(vars(best) | {"seconds": seconds, "fit_seconds": best.seconds}),
    }


def main() -> None:
    """Run what has not been run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = "pooled" if os.environ.get("JOINTPMF_DATA") else "latest-small"
    parser.add_argument("--release", default=default, help=f"of MovieLens ({default})")
    release = parser.parse_args().release
    console = Console()
    log = RESULTS / "larger.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    done = {(r["set"], r["method"]): r for r in map(json.loads, lines) if r["release"] == release}
    context = multiprocessing.get_context("spawn")
    for name in LARGER:
        for method in METHODS:
            if (name, method) not in done:
                with (
                    console.status(f"{NAMES[name]}: {method}"),
                    ProcessPoolExecutor(1, mp_context=context) as pool,
                ):
                    record = pool.submit(measured, name, method, release).result()
                done[name, method] = record
                with log.open("a") as out:
                    out.write(json.dumps(record) + "\n")
    text = "\n".join(_report(done))
    (RESULTS / "larger.md").write_text(text)
    console.print(text, highlight=False)


def _report(done: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    lines = ["# Larger than the paper\n", NOTE]
    for name, title in NAMES.items():
        lines += [f"\n## {title}\n", "| method | RMSE | MAE | of BMF's RMSE | 80 % sets cover |"]
        lines[-1] += " tuning, s | fit, s | peak, MB | setting |"
        lines.append("|" + "---|" * 9)
        for method in METHODS:
            r = done[name, method]
            covered = f"{r['coverage'][SURE]:.1%}" if r["coverage"] else ""
            setting = ", ".join(f"{k} {v}" for k, v in r["setting"].items())
            ratio = r["rmse"] / done[name, "BMF"]["rmse"]
            row = [method, f"{r['rmse']:.4f}", f"{r['mae']:.4f}", f"{ratio:.4f}", covered]
            times = [f"{r[what]:.3g}" for what in ("seconds", "fit_seconds")]
            lines.append("| " + " | ".join([*row, *times, f"{r['megabytes']:.0f}", setting]) + " |")
    return lines


if __name__ == "__main__":
    main()
