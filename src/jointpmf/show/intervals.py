"""Intervals as people are shown them: how sure, how it was found out, and between what numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.errors import JointPMFError, shown
from jointpmf.judge.intervals import interval_parts
from jointpmf.show.html import Html, element
from jointpmf.show.text import count_text, range_text

if TYPE_CHECKING:
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.pmf import JointPMF

_LEVEL = 0.9
"""How often an interval that is shown holds the truth."""

_HOW = {
    "bayesian": "fits to the same rows with random weights (Bayesian bootstrap)",
    "multinomial": "fits to rows drawn with replacement (bootstrap)",
    "counts": "fits to tables drawn again from their counts",
    "model": "fits to tables drawn from the model",
}


class Interval(NamedTuple):
    """Standard errors, and the ends of intervals; arrays of one shape."""

    se: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def part(self, *place: Any) -> Interval:
        """Return those at a place of the arrays."""
        return Interval(*(one[place] for one in self))


class ProfileIntervals(NamedTuple):
    """Intervals of bars whose parts are a variable's levels: of the parts, and of their ends.

    Arrays are of shape (levels, bars): the bar of all rows, then one for each component.
    """

    parts: Interval
    ends: Interval


def checked_uncertainty(uncertainty: Any, pmf: JointPMF) -> Uncertainty:
    """Return an uncertainty, if it is one, and of this very model."""
    from jointpmf.judge.replicate_file import are_same
    from jointpmf.judge.uncertainty import Uncertainty

    if not isinstance(uncertainty, Uncertainty):
        raise JointPMFError(
            f"the uncertainty must be what Solution.uncertainty returns, not {shown(uncertainty)}"
        )
    if not are_same(uncertainty.pmf, pmf):
        raise JointPMFError("the uncertainty is that of another model")
    return uncertainty


def shown_level() -> float:
    """Return how often an interval that is shown holds the truth.

    Examples
    --------
    >>> shown_level()
    0.9
    """
    return _LEVEL


def shown_parts(n_replicates: int) -> np.ndarray:
    """Return which quantiles end an interval that is shown, by how many replicates are below."""
    return interval_parts(n_replicates, _LEVEL)


def level_text() -> str:
    """Return how often intervals hold the truth, for people.

    Examples
    --------
    >>> level_text()
    '90 %'
    """
    return f"{100 * _LEVEL:g} %"


def how_made(sure: Uncertainty) -> str:
    """Say from what intervals come.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
    >>> rows = truth.sample(99, random_state=0)
    >>> how_made(jp.fit_rows(rows, rank=1).uncertainty(n=2, random_state=0))
    '2 fits to the same rows with random weights (Bayesian bootstrap)'
    """
    how = _HOW.get(sure.resampling)
    if how is None:
        return f"{count_text(len(sure), 'replicate')} ({sure.resampling})"
    return f"{len(sure):,} {how}"


def profile_intervals(
    sure: Uncertainty, names: Iterable[str], components: np.ndarray
) -> list[ProfileIntervals]:
    """Return, for each variable, intervals of its distribution overall and in some components."""
    kept = list(names)

    def bars(pmf: JointPMF) -> list[np.ndarray]:
        part = pmf.marginal(kept)
        return [np.column_stack([f @ part.weights, f[:, components]]) for f in part.factors]

    parts = intervals(sure, lambda pmf: np.concatenate(bars(pmf)))
    ends = intervals(sure, lambda pmf: np.concatenate([one.cumsum(axis=0) for one in bars(pmf)]))
    stops = np.cumsum([len(one) for one in bars(sure.pmf)]).tolist()
    places = [slice(*pair) for pair in zip([0, *stops], stops, strict=False)]
    return [ProfileIntervals(parts.part(place), ends.part(place)) for place in places]


def size_intervals(sure: Uncertainty | None) -> Interval | None:
    """Return those of the components' weights, where the replicates have the same components."""
    if sure is None or not has_components(sure):
        return None
    return intervals(sure, lambda pmf: pmf.weights)


def has_components(sure: Uncertainty) -> bool:
    """Tell whether the replicates have the components of the model, unlike those of an average."""
    return bool(sure.is_clear.any())


def intervals(sure: Uncertainty, query: Callable[[JointPMF], np.ndarray]) -> Interval:
    """Return the standard errors and intervals of an array of probabilities."""
    estimate, columns = sure.columns(query, _LEVEL, are_probabilities=True)
    return Interval(*(columns[name].reshape(estimate.shape) for name in Interval._fields))


def error_text(sizes: Interval | None, f: int) -> Html:
    """Return the standard error and the interval of the weight of a component, if known."""
    if sizes is None:
        return Html("")
    between = range_text(sizes.low[f], sizes.high[f])
    return interval_text(f" ± {100 * sizes.se[f]:.1f} ({between})")


def interval_text(text: str) -> Html:
    """Return what the box hides."""
    return element("span", text, class_="interval")
