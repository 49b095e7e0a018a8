"""Standard errors of class sizes and profiles, beside poLCA's and StepMix's.

Needs the folder `latent-class` in `JOINTPMF_DATA`, and for StepMix the interpreter that
`JOINTPMF_PEERS` names. poLCA's manual prints no standard errors of profiles, so that its figures
are made here by its formula.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import linear_sum_assignment

import jointpmf as jp
from benchmarks.latent_class import read
from benchmarks.measure import print_lines

HERE = Path(__file__).parent

N_REPLICATES, N_SAMPLES, N_JUDGED = 1000, 250, 50
"""Replicates of ours; samples that are fitted one by one to see the standard deviation; and how
many of these get standard errors too."""

NEAR_BOUND = 0.01
"""Probabilities nearer to 0 or 1 are left out: an information matrix says nothing about them."""

ASKED = 0.1
"""How far apart, as a part, standard errors may be."""


class Example(NamedTuple):
    """A table, the number of classes, that which BIC takes, and StepMix's effort, if it is run."""

    name: str
    rank: int
    best_rank: int
    n_repetitions: int
    n_init: int


EXAMPLES = [
    Example("carcinoma", 2, 3, 600, 3),
    Example("carcinoma", 3, 3, 600, 3),
    Example("cheating", 2, 2, 0, 1),
    Example("election", 2, 8, 400, 1),
    Example("election", 3, 8, 400, 1),
]

Sample = Callable[[int], jp.Codes]

Errors = dict[str, np.ndarray | None]


def main() -> None:
    """Measure, print, and write the page."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("standard_errors: set JOINTPMF_DATA to a folder with latent-class/carcinoma.csv.gz …")
        return
    logging.getLogger("jointpmf").setLevel(logging.ERROR)  # samples may have an optimum found once
    drawn, real, judged = [], [], []
    for example in EXAMPLES:
        table = read(folder, example.name).drop_nulls()
        solution = jp.fit_rows(table, example.rank, random_state=0)
        codes = jp.encode(table, solution.pmf.domain)
        drawn.append((example, *from_model(solution.pmf, codes.n_rows)))
        real.append((example, solution.pmf, of_table(solution, codes, example)))
        if example.n_repetitions:
            truth = jp.fit_rows(codes, example.best_rank, random_state=0).pmf
            judged.append((example, *beside_actual(truth, example.rank, codes.n_rows)))
    (HERE / "results/standard_errors.md").write_text(text(drawn, real, judged))
    print_lines("Standard errors, as parts of others'", printed(drawn, real))


def from_model(truth: jp.JointPMF, n_rows: int) -> tuple[jp.JointPMF, Errors]:
    """Return a fit to rows that were drawn from a model, and standard errors by all ways."""
    codes = jp.encode(truth.sample(n_rows, random_state=1), truth.domain)
    solution = jp.fit_rows(codes, truth.rank, search=jp.Search(start=truth))
    found: Errors = {
        "ours": ours(solution),
        "poLCA": by_information(solution.pmf, codes),
    }
    return solution.pmf, found


def of_table(solution: jp.Solution, codes: jp.Codes, example: Example) -> Errors:
    """Return standard errors of the fit to a table by all ways."""
    pmf, n_rows = solution.pmf, codes.n_rows

    def resampled(seed: int) -> jp.Codes:
        which = np.random.default_rng(seed).integers(n_rows, size=n_rows)
        return jp.Codes(pmf.domain, codes.array[which])

    is_searched = example.n_repetitions > 0
    return {
        "ours": ours(solution),
        "poLCA": by_information(pmf, codes),
        "StepMix": by_stepmix(pmf, codes, example),
        "searched": deviations(fits_to(resampled, pmf.rank), pmf) if is_searched else None,
    }


def beside_actual(truth: jp.JointPMF, rank: int, n_rows: int) -> tuple[jp.JointPMF, Errors]:
    """Return what many rows lead to, and standard errors from samples beside their deviation."""
    many = jp.encode(truth.sample(20 * n_rows, random_state=0), truth.domain)
    pmf = jp.fit_rows(many, rank, random_state=0).pmf

    def fresh(seed: int) -> jp.Codes:
        return jp.encode(truth.sample(n_rows, random_state=seed), truth.domain)

    fits = fits_to(fresh, rank)
    some = [(in_order(fit, pmf), fresh(seed)) for seed, fit in enumerate(fits[:N_JUDGED])]
    found: Errors = {
        "ours": np.median([ours(fit, n=200) for fit, _ in some], axis=0),
        "poLCA": np.median([by_information(fit.pmf, codes) for fit, codes in some], axis=0),
        "actual": deviations(fits, pmf),
    }
    return pmf, found


def fits_to(sample: Sample, rank: int) -> list[jp.Solution]:
    """Return fits to samples, by default settings."""
    return [jp.fit_rows(sample(seed), rank, random_state=0) for seed in range(N_SAMPLES)]


def order_of(profiles: np.ndarray, pmf: jp.JointPMF) -> np.ndarray:
    """Return which components of other profiles are those of a model."""
    return linear_sum_assignment(-np.sqrt(np.concatenate(pmf.factors)).T @ np.sqrt(profiles))[1]


def in_order(solution: jp.Solution, pmf: jp.JointPMF) -> jp.Solution:
    """Return a solution whose components are in the order of a model's."""
    order = order_of(np.concatenate(solution.pmf.factors), pmf)
    return replace(solution, pmf=solution.pmf.reordered(order.tolist()))


def deviations(fits: list[jp.Solution], pmf: jp.JointPMF) -> np.ndarray:
    """Return the standard deviations of the estimates of fits, in the order of `ours`."""
    return np.std([values(in_order(fit, pmf).pmf) for fit in fits], axis=0, ddof=1)


def values(pmf: jp.JointPMF) -> np.ndarray:
    """Return sizes, then profiles."""
    return np.concatenate([pmf.weights, *[factor.ravel() for factor in pmf.factors]])


def ours(solution: jp.Solution, n: int = N_REPLICATES) -> np.ndarray:
    """Return our standard errors: of sizes, then of profiles."""
    sure = solution.uncertainty(n, random_state=0)
    return np.concatenate([sure.sizes()["se"], sure.profiles()["se"]])


def by_information(pmf: jp.JointPMF, codes: jp.Codes) -> np.ndarray:
    """Return standard errors as poLCA makes them, in the order of `ours`.

    The covariance of the log-odds is the inverse of the sum of the rows' squared scores (Linzer and
    Lewis 2011, after Bandeen-Roche et al. 1997), and the delta method leads to probabilities.
    """
    shares = pmf.responsibilities(codes)
    columns, scores = [pmf.weights], [shares - pmf.weights]
    for factor, cells in zip(pmf.factors, codes.array.T, strict=True):
        for profile, share in zip(factor.T, shares.T, strict=True):
            columns.append(profile)
            scores.append(share[:, None] * (np.eye(len(profile))[cells] - profile))
    score = np.hstack([each[:, 1:] for each in scores])  # the first level is the reference
    slopes = block_diag(*[(np.diag(p) - np.outer(p, p))[:, 1:] for p in columns])
    smallest = np.sqrt(np.finfo(float).eps)  # as R's ginv
    covariance = np.linalg.pinv(score.T @ score, rcond=smallest, hermitian=True)
    found = np.sqrt(((slopes @ covariance) * slopes).sum(axis=1).clip(0))
    parts = np.split(found, np.cumsum([pmf.rank, *[factor.size for factor in pmf.factors]])[:-1])
    return np.concatenate([parts[0], *[part.reshape(pmf.rank, -1).T.ravel() for part in parts[1:]]])


def by_stepmix(pmf: jp.JointPMF, codes: jp.Codes, example: Example) -> np.ndarray | None:
    """Return the standard errors of StepMix's bootstrap, or nothing if it is not run."""
    python = os.environ.get("JOINTPMF_PEERS")
    if not python or not example.n_repetitions:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.npz"
        np.savez(path, rows=codes.array)
        effort = map(str, (example.rank, example.n_repetitions, example.n_init))
        command = [python, str(HERE / "stepmix_bootstrap_job.py"), path, *effort]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=sys.stderr)
    found = json.loads(done.stdout)
    order = order_of(np.array(found["profiles"]), pmf)
    sizes, profiles = np.array(found["sizes_error"]), np.array(found["profiles_error"])
    return np.concatenate([sizes[order], profiles[:, order].ravel()])


def is_compared(pmf: jp.JointPMF) -> np.ndarray:
    """Return of which sizes and profiles standard errors are compared."""
    return (values(pmf) > NEAR_BOUND) & (values(pmf) < 1 - NEAR_BOUND)


def counted(pmf: jp.JointPMF) -> str:
    """Return how many are compared, and of how many."""
    kept = is_compared(pmf)
    return f"{kept.sum()} of {len(kept)}"


def ratio(pmf: jp.JointPMF, errors: Errors, of: str, to: str) -> str:
    """Return the median and the range of ratios of standard errors, and how many are near one."""
    above, below = errors[of], errors[to]
    if above is None or below is None:
        return "–"
    kept = is_compared(pmf)
    ratios = above[kept] / below[kept]
    near = np.mean(np.abs(ratios - 1) <= ASKED)
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f}), {near:.0%}"


def printed(drawn: list[Any], real: list[Any]) -> list[tuple[str, str, str, str]]:
    """Return lines for the screen."""
    lines = []
    for what, found in (("drawn from the model", drawn), ("the table's", real)):
        for example, pmf, errors in found:
            beside = ratio(pmf, errors, "ours", "poLCA")
            stepmix = ratio(pmf, errors, "ours", "StepMix") if "StepMix" in errors else "–"
            title = f"{example.name}, rank {example.rank}, rows {what}"
            lines.append((title, f"of poLCA's: {beside}", f"of StepMix's: {stepmix}", "0.9 to 1.1"))
    return lines


def lines_of(found: list[Any], ratios: list[tuple[str, str]]) -> str:
    """Return the lines of a table of ratios."""
    return "\n".join(
        f"| {example.name} | {example.rank} | {counted(pmf)} | "
        + " | ".join(ratio(pmf, errors, *each) for each in ratios)
        + " |"
        for example, pmf, errors in found
    )


def text(drawn: list[Any], real: list[Any], judged: list[Any]) -> str:
    """Return the page."""
    polca = [("ours", "poLCA")]
    stepmix = [("ours", "StepMix"), ("searched", "StepMix")]
    return PAGE.format(
        n=N_REPLICATES,
        samples=N_SAMPLES,
        bound=f"{NEAR_BOUND:.0%}",
        drawn=lines_of(drawn, polca),
        real=lines_of(real, polca + stepmix),
        judged=N_JUDGED,
        actual=lines_of(judged, [("ours", "actual"), ("poLCA", "actual")]),
    )


PAGE = """# Standard errors of classes, beside poLCA's and StepMix's

`solution.uncertainty({n})`, its `sizes()` and `profiles()`, by default settings, on the complete
cases of poLCA's examples (`python -m benchmarks.standard_errors`). Each cell has the median of the
ratios of two standard errors, the smallest and the largest, and which part is within 10 % of one.
Probabilities within {bound} of 0 or 1 are left out: there an information matrix has nothing to say,
and poLCA's standard error is zero or means nothing.

**poLCA's are by its formula, not printed by it.** Its manual prints no standard errors of sizes or
profiles. Those here are the inverse of the sum of the rows' squared scores in log-odds, and the
delta method, at the same maximum. In November 2026 poLCA's own function `poLCA.se` was run in R 4.2
at these maxima, by hand: it agrees to 1e-15.

## Where the model holds

As many rows as the table has, drawn from the model that was fitted to it, and fitted again. Here
all ways ask the same question.

| model | classes | compared | ours ÷ poLCA's |
|---|---:|---:|---|
{drawn}

## The tables themselves

StepMix's bootstrap begins anew in every repetition, ours at the model. Searched: {samples}
multinomial resamples, each fitted by our default search. StepMix was not run on cheating.

| table | classes | compared | ours ÷ poLCA's | ours ÷ StepMix's | searched ÷ it |
|---|---:|---:|---|---|---|
{real}

Chance alone changes ours by 2 % ({n} replicates), StepMix's by 3 % (carcinoma, 600 repetitions) and
4 % (election, 400), and those of {samples} samples by 5 %.

## Which is right?

poLCA's formula holds only if the classes explain all dependence between the items. BIC takes three
for carcinoma and eight for election. So {samples} samples, of as many rows as the table has, were
drawn from the model with as many classes as BIC takes, and fitted by the default search: the actual
standard deviation of these estimates. Beside it is the median of the standard errors that the first
{judged} of the samples get.

| table | classes | compared | ours ÷ actual | poLCA's ÷ actual |
|---|---:|---:|---|---|
{actual}

Where the model holds and the rows determine it well, all agree. Four items and 319 rows (cheating)
hardly determine two classes, and there they do not. Where the model does not hold, poLCA's are too
small. Ours are nearer in election and no better in carcinoma with two classes; they are too small
where a sample often has its best optimum far from the model, as with three classes of election:
replicates begin at the model and stay near it. A probability near 0 or 1 is estimated as just that
in many samples, whose standard error is then zero.
"""


if __name__ == "__main__":
    main()
