"""What to be wary of in a fit: a short sentence each, advice, and whom it concerns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.components import component_titles
from jointpmf.domain import text_of
from jointpmf.show.report.traits import has_traits
from jointpmf.show.text import count_text, number_text, percent, shortened
from jointpmf.solvers.loop import Status

if TYPE_CHECKING:
    from jointpmf.judge.curve import RankCurve
    from jointpmf.show.report.findings import Findings
    from jointpmf.show.report.tally import Tally

_FEW_ROWS, _TINY = 10, 0.005
"""A component that stands for fewer rows is tiny; where the number of rows is unknown, one of less
weight."""

_ROWS_PER_PARAMETER = 5
"""With fewer rows for each fitted number, details of the model may be accidents of the sample."""

_MANY_HOLES = 0.5
"""Share of missing cells from which a variable is named."""

_LISTED, _SHORT_NAME = 5, 50
"""Names that a sentence lists, the rest is counted; and characters of each."""


class Caution(NamedTuple):
    """One thing to be wary of: what it is, what to do about it, and whom it concerns."""

    text: str
    advice: str = ""
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a paragraph.

        Examples
        --------
        >>> print(Caution("Two levels cannot happen", "Smoothing avoids that.", ("a", "b")))
        Two levels cannot happen: a, b. Smoothing avoids that.
        """
        rest = len(self.names) - _LISTED
        more = f" and {rest:,} more" if rest > 0 else ""
        listed = ", ".join(shortened(name, _SHORT_NAME) for name in self.names[:_LISTED])
        named = f": {listed}{more}" if self.names else ""
        return f"{self.text}{named}. {self.advice}".rstrip()


def cautions(found: Findings) -> Iterator[Caution]:
    """Yield each thing that a reader should know before relying on the model."""
    yield from _of_the_fit(found)
    yield from _of_the_tables(found)
    yield from _of_the_data(found)
    yield from _of_the_model(found)
    yield from _of_the_comparison(found)
    yield from _of_the_curve(found)


_UNDONE = {
    Status.MAX_ITER: Caution(
        "The fit did not converge",
        "More iterations would still change the model: fit again with a larger max_iter.",
    ),
    Status.STOPPED: Caution(
        "The fit was stopped before it converged",
        "More iterations would still change the model: let it run to its end.",
    ),
    Status.ONE_PASS: Caution(
        "Every row was seen only once", "More passes over the data would fit it better."
    ),
}


def _of_the_fit(found: Findings) -> Iterator[Caution]:
    status, about = found.subject.status, found.subject.about
    if status in _UNDONE:
        yield _UNDONE[status]
    if about.get("agreed") == "1" and about.get("starts", "1") != "1":
        yield Caution(
            f"The best optimum was found by only one of {shortened(about['starts'])} starts",
            "There may be a better one: fit again from more starts, with another seed, or with a "
            "smaller rank.",
        )
    if found.is_unique is False:
        yield _of_uniqueness(found)
    failed = [restart.error for restart in found.subject.restarts if restart.error]
    if failed:
        count = count_text(len(failed), "start")
        yield Caution(
            f"{count} of {len(found.subject.restarts)} failed", names=(shortened(failed[0]),)
        )


def _of_uniqueness(found: Findings) -> Caution:
    if not found.subject.is_by_rows:
        return Caution(
            "The model is not unique: others of this rank fit the same tables just as well",
            "Trust what it says of those tables, but not its components, nor combinations of "
            "variables that no table holds.",
        )
    if len(found.subject.pmf.domain) < 4:
        return Caution(
            "The model is not unique: others of this rank fit the same rows just as well",
            "Trust what it says of the variables together, but not its components.",
        )
    return Caution(
        "The tables of up to three variables do not determine the model",
        "Only combinations of more variables in the rows tell such models apart, so do not read "
        "much into single components.",
    )


def _of_the_tables(found: Findings) -> Iterator[Caution]:
    marginals = found.subject.marginals
    if marginals is not None and (conflicts := marginals.disagreements()):
        where = count_text(len(conflicts), "variable or pair")
        yield Caution(
            f"The tables contradict each other on {where}",
            f"The model is a compromise. Most of all, {conflicts[0]}.",
        )


def _of_the_data(found: Findings) -> Iterator[Caution]:
    tally, subject = found.tally, found.subject
    if tally is not None:
        fitted = subject.n_rows if subject.marginals is None else None
        if fitted is not None and fitted != tally.n_rows:
            yield Caution(
                f"The model was fitted to {count_text(fitted, 'row')}, and this table has "
                f"{tally.n_rows:,}",
                "What is said of the data is about other rows.",
            )
        yield from _of_the_rows(tally)
        yield from _of_the_holes(tally)
    n_rows, n_free = found.n_fitted, found.n_parameters
    # what is held out, or the ridge on traits, keeps it from overfitting
    is_held_back = subject.status is Status.VALIDATED or has_traits(subject.pmf)
    if n_rows is not None and not is_held_back and n_rows < _ROWS_PER_PARAMETER * n_free:
        yield Caution(
            f"There are only {number_text(n_rows / max(n_free, 1), 2)} rows for each of the "
            f"{n_free:,} numbers that were fitted",
            "Details may be accidents of this sample. A smaller rank, or smoothing, is safer.",
        )


def _of_the_rows(tally: Tally) -> Iterator[Caution]:
    if tally.n_impossible:
        yield Caution(
            f"{count_text(tally.n_impossible, 'row')} cannot happen according to the model "
            f"(the first is row {tally.first_impossible}, counted from 0)",
            "Smoothing avoids that.",
        )
    if tally.n_empty:
        hold = "holds" if tally.n_empty == 1 else "hold"
        empty = count_text(tally.n_empty, "row")
        yield Caution(f"{empty} of {tally.n_rows:,} {hold} no observed cell at all")
    if tally.n_unknown:
        yield Caution(
            f"{count_text(tally.n_unknown, 'cell')} of a level that the model does not know "
            f"{'counts' if tally.n_unknown == 1 else 'count'} as missing here"
        )


def _of_the_holes(tally: Tally) -> Iterator[Caution]:
    names, holes = tally.pmf.domain.names, tally.shares_missing
    if absent := [_quoted(name) for name, share in zip(names, holes, strict=True) if share == 1]:
        count = count_text(len(absent), "variable")
        yield Caution(f"No cell is observed of {count}", names=tuple(absent))
    shares = [
        f"{_quoted(names[n])} ({holes[n]:.0%})"
        for n in np.argsort(-holes, kind="stable").tolist()
        if _MANY_HOLES < holes[n] < 1
    ]
    if shares:
        count = count_text(len(shares), "variable")
        yield Caution(f"More cells are missing than observed of {count}", names=tuple(shares))


def _of_the_model(found: Findings) -> Iterator[Caution]:
    pmf = found.subject.pmf
    yield from _of_small_components(found)
    impossible = [
        f"{_quoted(variable.name)} = {_quoted(text_of(variable.levels[code]))}"
        for variable, factor in zip(pmf.domain, pmf.factors, strict=True)
        for code in np.flatnonzero(factor @ pmf.weights == 0).tolist()
    ]
    if impossible:
        yield Caution(
            f"According to the model, {count_text(len(impossible), 'level')} cannot happen",
            names=tuple(impossible),
        )
    if constant := [_quoted(variable.name) for variable in pmf.domain if variable.size == 1]:
        has = "has" if len(constant) == 1 else "have"
        yield Caution(
            f"{count_text(len(constant), 'variable')} {has} a single level, which tells the model "
            "nothing",
            names=tuple(constant),
        )


def _of_small_components(found: Findings) -> Iterator[Caution]:
    pmf, n_rows = found.subject.pmf, found.n_fitted
    tiny = _TINY if n_rows is None else _FEW_ROWS / max(n_rows, 1)
    tiny /= found.subject.n_averaged  # an average has the components of all its fits
    small = [(f, w) for f, w in enumerate(pmf.weights.tolist()) if w < tiny]
    if not small or pmf.rank == 1 or has_traits(pmf):
        return
    titles = component_titles(pmf.rank, pmf.component_names)
    names = tuple(f"{shortened(titles[f], 40)} ({percent(weight)})" for f, weight in small)
    rows = f"fewer than {_FEW_ROWS} rows each" if n_rows is not None else "hardly any rows"
    stand = "stands" if len(small) == 1 else "stand"
    yield Caution(
        f"{count_text(len(small), 'component')} of {pmf.rank:,} {stand} for {rows}, too few to "
        "tell much",
        names=names,
    )


def _of_the_comparison(found: Findings) -> Iterator[Caution]:
    misfits = found.comparison.misfits if found.comparison else []
    clear = [misfit for misfit in misfits if misfit.is_clear]
    if clear:
        yield Caution(
            f"{count_text(len(clear), 'marginal')} of {len(misfits):,} compared "
            f"{'differs' if len(clear) == 1 else 'differ'} from the model by more than chance "
            "explains",
            "A larger rank may fit better.",
            tuple(" with ".join(map(_quoted, misfit.names)) for misfit in clear),
        )


def _of_the_curve(found: Findings) -> Iterator[Caution]:
    curve, rank = found.curve, found.subject.pmf.rank
    if curve is None:
        return
    ranks = [score.rank for score in curve.scores]
    if not curve.has_best:
        yield Caution("No rank is best: none that was tried has a finite score")
        return
    if curve.rank == max(ranks) and len(ranks) > 1:
        yield Caution(
            f"The best rank, {curve.rank}, is the largest that was tried", "Try larger ones."
        )
    is_average = found.subject.n_averaged > 1  # the rank of its fits is not known here
    if not is_average and rank in ranks and _is_worse(curve, ranks.index(rank)):
        yield Caution(
            f"The model has rank {rank}, but by the rank curve rank {curve.rank} does better"
        )


def _is_worse(curve: RankCurve, position: int) -> bool:
    """Tell whether a rank is worse than the best by more than the best's standard error.

    Examples
    --------
    >>> from jointpmf.judge.curve import RankCurve, RankScore
    >>> scores = tuple(RankScore(k + 1, s, 0.2, s, 5, 0.1) for k, s in enumerate((-3, -2, -2.1)))
    >>> curve = RankCurve("validation", scores, np.zeros((3, 1)))
    >>> _is_worse(curve, 0), _is_worse(curve, 2)
    (True, False)
    """
    best = next(score for score in curve.scores if score.rank == curve.rank)
    error = 0.0 if math.isnan(best.standard_error) else best.standard_error
    return not abs(curve.scores[position].score - best.score) <= error


def _quoted(text: str) -> str:
    return f"“{shortened(text)}”"
