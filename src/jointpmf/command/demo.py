"""The tour that `jointpmf demo` gives: a real survey with a fifth of its answers hidden."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import Progress
from rich.syntax import Syntax
from rich.table import Table

from jointpmf.data.codes import Codes
from jointpmf.data.datasets import anes96
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING
from jointpmf.fit.marginals import fit_marginals
from jointpmf.fit.solution import Solution
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.pmf import JointPMF

BINS = {"age": 6, "income": 6, "town size": 5}
RANK = 4
HIDDEN = 0.2
MAX_ITER = 500

QUERIES = {
    "How do liberals vote (Clinton, Dole)?": (
        'pmf.condition({"own view": {1, 2}}).marginal(["vote"]).table().round(3)'
    ),
    "Where do independents of 30 and of 70 place themselves, from 1 to 7?": (
        'pmf.expectation(pl.DataFrame({"party": ["independent"] * 2, "age": [30, 70]}), "own view")'
    ),
    "Draw three people with a PhD who voted for Dole.": (
        'pmf.sample(3, given={"vote": "Dole", "education": "PhD"}, random_state=0)'
        '.select("party", "vote", "education", "age", "own view")'
    ),
}


class Score(NamedTuple):
    """How well the hidden answers to one question are guessed."""

    name: str
    n_hidden: int
    most_common: float
    predicted: float


def run(console: Console) -> list[Score]:
    """Load the survey, hide answers, learn from the rest, and show what was learned."""
    begin = time.perf_counter()
    full = encode(anes96(), bins=BINS)
    hidden = np.random.default_rng(0).random(full.array.shape) < HIDDEN
    known = Codes(full.domain, np.where(hidden, MISSING, full.array))
    console.print(
        f"[bold]ANES 1996[/]: {full.n_rows} people, {len(full.domain)} questions. "
        f"{hidden.sum()} of {hidden.size} answers are hidden; the rest is learned from."
    )
    solution = learn(known, console)
    console.print(f"{solution.status.value} {solution.n_iter} sweeps.\n")
    found = scores(solution.pmf, full, known, hidden)
    console.print(score_table(found))
    for question, code in QUERIES.items():
        console.print(f"\n[bold]{question}[/]")
        console.print(Syntax(f">>> {code}", "pycon", background_color="default", word_wrap=True))
        console.print(eval(code, {"pmf": solution.pmf, "pl": pl}))
    console.print(f"\nDone in {time.perf_counter() - begin:.1f} s.")
    return found


def learn(known: Codes, console: Console) -> Solution:
    """Return the fit to all triples of questions, with a progress bar."""
    triples = MarginalSet.from_table(known, order=3)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(f"Fitting {len(triples)} triples at rank {RANK}", total=MAX_ITER)
        return fit_marginals(
            triples,
            RANK,
            max_iter=MAX_ITER,
            random_state=0,
            callback=lambda step, _: bar.update(task, completed=step.iteration),
        )


def scores(pmf: JointPMF, full: Codes, known: Codes, hidden: np.ndarray) -> list[Score]:
    """Return, per question, how often the hidden answer is guessed right."""
    found = []
    for n, variable in enumerate(full.domain):
        rows = hidden[:, n]
        truth = full.array[rows, n]
        observed = known.array[:, n]
        common = np.bincount(observed[observed != MISSING]).argmax()
        guess = pmf.predict_proba(known, variable.name)[rows].argmax(axis=1)
        found.append(
            Score(variable.name, rows.sum(), (truth == common).mean(), (truth == guess).mean())
        )
    return found


def score_table(found: list[Score]) -> Table:
    """Return the scores as a table for people."""
    table = Table("question", title="Hidden answers that were guessed right")
    for heading in ("hidden", "most common answer", "jointpmf", "gain"):
        table.add_column(heading, justify="right")
    for score in found:
        table.add_row(
            score.name,
            str(score.n_hidden),
            f"{score.most_common:.1%}",
            f"{score.predicted:.1%}",
            f"{100 * (score.predicted - score.most_common):+.1f}",
        )
    total = sum(score.n_hidden for score in found)
    common, predicted = (
        sum(score.n_hidden * getattr(score, kind) for score in found) / total
        for kind in ("most_common", "predicted")
    )
    table.add_section()
    gain = f"{100 * (predicted - common):+.1f}"
    table.add_row("all", str(total), f"{common:.1%}", f"{predicted:.1%}", gain, style="bold")
    return table
