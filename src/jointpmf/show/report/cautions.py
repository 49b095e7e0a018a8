"""What to be wary of in a fit, as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

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

_LISTED = 5
"""Names that a sentence lists; the rest is counted."""


def cautions(found: Findings) -> Iterator[str]:
    """Yield a sentence for each thing that a reader should know before relying on the model."""
    yield from _of_the_fit(found)
    yield from _of_the_data(found)
    yield from _of_the_model(found)
    yield from _of_the_curve(found)


def _of_the_fit(found: Findings) -> Iterator[str]:
    status = found.subject.status
    if status is Status.MAX_ITER:
        yield (
            "The fit did not converge: more iterations would still change the model. "
            "Fit again with a larger max_iter before you rely on it."
        )
    if status is Status.STOPPED:
        yield (
            "The fit was stopped before it converged: more iterations would still change the "
            "model. Let it run to its end before you rely on it."
        )
    if status is Status.ONE_PASS:
        yield "Every row was seen only once: more passes over the data would fit it better."
    about = found.subject.about
    if about.get("agreed") == "1" and about.get("starts", "1") != "1":
        yield (
            f"The best optimum was found by only one of {shortened(about['starts'])} starts, so "
            "there may be a better one. Fit again from more starts, with another seed, or with a "
            "smaller rank."
        )
    if found.is_unique is False:
        yield _of_uniqueness(found)
    marginals = found.subject.marginals
    if marginals is not None and (conflicts := marginals.disagreements()):
        where = count_text(len(conflicts), "variable or pair")
        yield (
            f"The tables contradict each other on {where}; the model is a compromise. Most of all, "
            f"{conflicts[0]}."
        )
    failed = [restart for restart in found.subject.restarts if restart.error]
    if failed:
        count, first = len(failed), shortened(failed[0].error)
        yield f"{count_text(count, 'start')} of {len(found.subject.restarts)} failed: {first}."


def _of_uniqueness(found: Findings) -> str:
    if not found.subject.is_by_rows:
        return (
            "The model is not unique: others of this rank fit the same tables just as well. Trust "
            "what it says of those tables, but not its components, nor combinations of variables "
            "that no table holds."
        )
    if len(found.subject.pmf.domain) < 4:
        return (
            "The model is not unique: others of this rank fit the same rows just as well. Trust "
            "what it says of the variables together, but not its components."
        )
    return (
        "The tables of up to three variables do not determine the model. Only combinations of more "
        "variables in the rows tell such models apart, so do not read much into single components."
    )


def _of_the_data(found: Findings) -> Iterator[str]:
    tally, subject = found.tally, found.subject
    if tally is not None:
        fitted = subject.n_rows if subject.marginals is None else None
        if fitted is not None and fitted != tally.n_rows:
            yield (
                f"The model was fitted to {count_text(fitted, 'row')}, and this table has "
                f"{tally.n_rows:,}: what is said of the data is about other rows."
            )
        yield from _of_the_table(tally)
    n_rows, n_free = found.n_fitted, found.n_parameters
    # what is held out, or the ridge on traits, keeps it from overfitting
    is_held_back = subject.status is Status.VALIDATED or has_traits(subject.pmf)
    if n_rows is not None and not is_held_back and n_rows < _ROWS_PER_PARAMETER * n_free:
        yield (
            f"There are only {number_text(n_rows / max(n_free, 1), 2)} rows for each of the "
            f"{n_free:,} numbers that were fitted: details of the model may be accidents of this "
            "sample. A smaller rank, or smoothing, is safer; held-out rows can tell."
        )


def _of_the_table(tally: Tally) -> Iterator[str]:
    if tally.n_impossible:
        yield (
            f"{count_text(tally.n_impossible, 'row')} cannot happen according to the model "
            f"(the first is row {tally.first_impossible}, counted from 0). Smoothing avoids that."
        )
    if tally.n_empty:
        hold = "holds" if tally.n_empty == 1 else "hold"
        empty = count_text(tally.n_empty, "row")
        yield f"{empty} of {tally.n_rows:,} {hold} no observed cell at all."
    if tally.n_unknown:
        yield (
            f"{count_text(tally.n_unknown, 'cell')} of a level that the model does not know "
            f"{'counts' if tally.n_unknown == 1 else 'count'} as missing here."
        )
    names, holes = tally.pmf.domain.names, tally.shares_missing
    absent = [name for name, share in zip(names, holes, strict=True) if share == 1]
    if absent:
        yield f"No cell is observed of {_names(absent)}."
    shares = [
        f"{_quoted(names[n])} ({holes[n]:.0%})"
        for n in np.argsort(-holes, kind="stable").tolist()
        if _MANY_HOLES < holes[n] < 1
    ]
    if shares:
        yield f"More cells are missing than observed of {_listed(shares)}."


def _of_the_model(found: Findings) -> Iterator[str]:
    pmf, n_rows = found.subject.pmf, found.n_fitted
    tiny = _TINY if n_rows is None else _FEW_ROWS / max(n_rows, 1)
    tiny /= found.subject.n_averaged  # an average has the components of all its fits
    small = [(f, w) for f, w in enumerate(pmf.weights.tolist()) if w < tiny]
    if small and pmf.rank > 1 and not has_traits(pmf):
        titles = component_titles(pmf.rank, pmf.component_names)
        names = [f"{shortened(titles[f], 40)} ({percent(weight)})" for f, weight in small]
        rows = f"fewer than {_FEW_ROWS} rows each" if n_rows is not None else "hardly any rows"
        yield f"Some components stand for {rows}, too few to tell much: {_listed(names)}."
    impossible = [
        f"{_quoted(variable.name)} = {_quoted(text_of(variable.levels[code]))}"
        for variable, factor in zip(pmf.domain, pmf.factors, strict=True)
        for code in np.flatnonzero(factor @ pmf.weights == 0).tolist()
    ]
    if impossible:
        yield (
            f"According to the model, {count_text(len(impossible), 'level')} cannot happen: "
            f"{_listed(impossible)}."
        )
    constant = [variable.name for variable in pmf.domain if variable.size == 1]
    if constant:
        yield f"A single level, which tells the model nothing: {_names(constant)}."
    misfits = found.comparison.misfits if found.comparison else []
    clear = [misfit for misfit in misfits if misfit.is_clear]
    if clear:
        names = [" with ".join(map(_quoted, misfit.names)) for misfit in clear]
        yield (
            f"{count_text(len(clear), 'marginal')} of {len(misfits):,} compared "
            f"{'differs' if len(clear) == 1 else 'differ'} from the model by more than chance "
            f"explains: {_listed(names)}. A larger rank may fit better."
        )


def _of_the_curve(found: Findings) -> Iterator[str]:
    curve, rank = found.curve, found.subject.pmf.rank
    if curve is None:
        return
    ranks = [score.rank for score in curve.scores]
    if not curve.has_best:
        yield "No rank is best: none that was tried has a finite score."
        return
    if curve.rank == max(ranks) and len(ranks) > 1:
        yield f"The best rank, {curve.rank}, is the largest that was tried: try larger ones."
    is_average = found.subject.n_averaged > 1  # the rank of its fits is not known here
    if not is_average and rank in ranks and _is_worse(curve, ranks.index(rank)):
        yield f"The model has rank {rank}, but by the rank curve rank {curve.rank} does better."


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
    return f"“{shortened(text, 40)}”"


def _names(names: Iterable[str]) -> str:
    return _listed([_quoted(name) for name in names])


def _listed(texts: Sequence[str]) -> str:
    rest = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")
