"""Which levels tell a component from the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.domain import text_of

if TYPE_CHECKING:
    from jointpmf.domain import Variable
    from jointpmf.pmf import JointPMF

_TELLING = 0.05
"""Levels that say less about their component, in nats, are not worth a word."""


class Telling(NamedTuple):
    """Levels of a variable that tell a component from the rest."""

    name: str
    levels: tuple[str, ...]
    is_run: bool
    """Whether they are neighbours among levels that have an order."""
    within: float
    overall: float


def telling_levels(pmf: JointPMF, components: Sequence[int], most: int) -> list[list[Telling]]:
    """Return, for some components, the levels by which each differs most from all rows.

    Those with the largest P(level | component) · log(P(level | component) / P(level)): likely
    there, and more likely than elsewhere. Neighbouring numeric levels are taken together.

    Examples
    --------
    >>> import jointpmf as jp
    >>> factors = [np.eye(2), np.full((2, 2), 0.5)]
    >>> sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], factors)
    >>> [(one.name, one.levels, one.within) for one in telling_levels(sure, [1], 5)[0]]
    [('x0', ('1',), 1.0)]
    """
    found: list[list[tuple[float, Telling]]] = [[] for _ in components]
    for variable, factor in zip(pmf.domain, pmf.factors, strict=True):
        overall = np.maximum(factor @ pmf.weights, np.finfo(float).tiny)
        within = factor[:, list(components)]
        information = _information(within, overall[:, None])
        for k, best in enumerate(information.argmax(axis=0).tolist()):
            if information[best, k] >= _TELLING / variable.size:
                found[k].append(_around(variable, best, within[:, k], overall))
    ordered = [sorted(one, key=lambda pair: -pair[0])[:most] for one in found]
    return [[telling for gain, telling in one if gain >= _TELLING] for one in ordered]


def _information(within: np.ndarray, overall: np.ndarray) -> np.ndarray:
    return within * np.log(np.maximum(within, np.finfo(float).tiny) / overall)


def _around(
    variable: Variable, best: int, within: np.ndarray, overall: np.ndarray
) -> tuple[float, Telling]:
    """Return how much a level tells, and the level; with its neighbours if levels are numbers."""
    begin, end = best, best + 1
    is_ordered = variable.values is not None and variable.size > 2
    if is_ordered:
        while begin > 0 and within[begin - 1] > overall[begin - 1]:
            begin -= 1
        while end < variable.size and within[end] > overall[end]:
            end += 1
    inside, outside = float(within[begin:end].sum()), float(overall[begin:end].sum())
    levels = tuple(text_of(level) for level in variable.levels[begin:end])
    gain = float(_information(np.array(inside), np.array(outside)))
    return gain, Telling(variable.name, levels, is_ordered, inside, outside)
