"""What a model file tells of how far apart the answers of models are that fit as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.components import means_component
from jointpmf.fit.about import LearnedFrom, others_fit_as_well
from jointpmf.fit.members import members_of
from jointpmf.fit.progress import progress_bar
from jointpmf.judge.smooth_query import question_of
from jointpmf.judge.spread import Effort, spread_from, starts_of_tables

if TYPE_CHECKING:
    from jointpmf.judge.spread import Start, Starts
    from jointpmf.pmf import JointPMF

_EFFORT = Effort(n_starts=2, n_steps=60)
"""What is done for one answer: less than by `Solution.spread`, since somebody waits for several."""

_WORK, _MOST = 1_500_000, 12
"""Numbers of all Jacobians, one for each answer, up to which ranges are sought unless asked for
(that takes some seconds), and how many answers that are at most."""

_OTHERS = "Other models of this rank fit the tables as well"


@dataclass(frozen=True)
class Ranges:
    """Between what some answers are, among models that fit as well.

    Attributes
    ----------
    note : str
        What to know of them, or why there are none; empty for a model that is unique.
    of : mapping of levels to pairs of numbers
        The smallest and the largest probability of each cell that was looked at.
    """

    note: str = ""
    of: Mapping[tuple[Any, ...], tuple[float, float]] = field(default_factory=dict)


def ranges_of(
    pmf: JointPMF,
    about: Mapping[str, str],
    cells: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
    n_cells: int | None = None,
) -> Ranges:
    """Return the ranges of the probabilities of cells, by what the model's file says of its fit.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    about : mapping of str to str
        What the file says of the fit.
    cells : sequence of mappings of names to levels
        What is asked for, the most important first.
    given : mapping of names to levels
        What is known.
    n_cells : int, optional
        How many of the cells to look at; by default as many as take some seconds.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 2, 2]), rank=4, random_state=0)
    >>> about = {"status": jp.Status.NOT_UNIQUE.value, "order": "2"}
    >>> found = ranges_of(pmf, about, [{"x0": 0, "x1": 0}, {"x0": 0, "x1": 0, "x2": 0}], {})
    >>> [bool(high - low > 1e-3) for low, high in found.of.values()]
    [False, True]
    """
    if not others_fit_as_well(about) or n_cells == 0:
        return Ranges()
    names = {name for cell in cells for name in cell} | set(given)
    if any(means_component(name, pmf.domain) for name in names):
        return Ranges(f"{_OTHERS}; their components are others, so that no range is known.")
    learned = LearnedFrom.of(about, pmf.domain)
    tables = learned.tables(pmf.domain)
    too_large = Ranges(f"{_OTHERS}; the model is too large for the range to be sought.")
    if tables is None and isinstance(learned.subsets, int) and not learned.n_partial:
        return too_large
    if tables is None:
        return Ranges(f"{_OTHERS}; the file does not say which, so that the range is not known.")
    members = members_of(pmf, learned.n_averaged)
    starts = starts_of_tables(pmf, members, tables, bool(learned.n_impossible))
    if len(members) + len(pmf.trait_models) != learned.n_averaged:
        return Ranges(f"{_OTHERS}; the file does not hold them, so that the range is not known.")
    if not starts.is_small:
        return too_large
    count = max(min(_WORK // starts.size, _MOST), 1) if n_cells is None else n_cells
    found = _sought(starts, cells[:count], given)
    more = f" The range of the {count} most likely is shown." if count < len(cells) else ""
    return Ranges(f"{_OTHERS}, and their answers are in this range.{more}", found)


def _sought(
    starts: Starts, cells: Sequence[Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Return the range of each cell."""
    pmf, found = starts.pmf, {}
    with progress_bar("range", len(cells), is_shown=True) as advance:
        begin = starts.found(_EFFORT, np.random.default_rng(0))
        for cell in cells:
            found[tuple(cell.values())] = _range_of(pmf, begin, cell, given)
            advance(", ".join(map(str, cell.values())))
    return found


def _range_of(
    pmf: JointPMF, starts: Sequence[Start], cell: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[float, float]:
    question = question_of(cell, given, pmf.domain)
    low, high = spread_from(pmf, starts, question, _EFFORT.n_steps)
    return low, high
