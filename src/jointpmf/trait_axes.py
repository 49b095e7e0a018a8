"""The traits of a model as people read them: along principal axes, with loadings of variables.

The space of traits may be turned in any way without a change of the model, so its own coordinates
mean nothing. Here they are turned and stretched so that the traits of the population are
uncorrelated with standard deviation one, and the first one moves the log-odds most.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.errors import JointPMFError
from jointpmf.evidence import posterior_of_rows
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jointpmf.traits import TraitModel

logger = logging.getLogger("jointpmf")

_BLOCK = 2**22
"""Rows times points whose posteriors are held at once."""

_FLAT_AXIS = 1e-9
"""Part of the largest variance below which the points do not vary along a direction."""


class Line(NamedTuple):
    """One number that moves with the traits: a combination of the log-odds of a variable."""

    variable: int
    level: int | None
    """The level whose log-odds these are; None for an ordered variable, which moves as a whole."""
    slopes: np.ndarray
    """How much it grows with each trait."""
    explained: float
    """The part of its variance over the population that lies on the line."""


class TraitAxes(NamedTuple):
    """The principal axes of a space of traits."""

    positions: np.ndarray
    """Where each point lies, one column per trait."""
    shares: np.ndarray
    """The part of what all traits move in the log-odds that each of them moves."""
    lines: list[Line]

    @classmethod
    def of(cls, model: TraitModel, weights: np.ndarray, factors: Sequence[np.ndarray]) -> TraitAxes:
        """Return the axes of a model whose points have these weights and columns.

        Examples
        --------
        >>> from jointpmf.domain import Domain
        >>> from jointpmf.traits import Scores, Space, TraitModel
        >>> domain = Domain.of_sizes([2, 2])
        >>> points = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> space = Space(points, np.empty((2, 0)), np.empty(0))
        >>> scores = Scores.of(domain, np.full(4, 0.5))
        >>> own = TraitModel(scores, space, np.zeros(4), np.array([[0.1, 0.0], [0.0, -3.0]]))
        >>> axes = TraitAxes.of(own, np.full(4, 0.25), np.split(own.factors, 2))
        >>> [line.slopes.round(2).tolist() for line in axes.lines]
        [[0.0, 0.07], [2.12, 0.0]]
        """
        total = weights.sum()
        if not total > 0:
            raise JointPMFError("no row lies at the points of this model's traits")
        weights = weights / total
        with one_blas_thread:
            marginals = [factor @ weights for factor in factors]
            whitened = _whitened(model.space.points, weights)
            slopes = (model.tilts * weights) @ whitened
            turn, shares = _principal(model, slopes, marginals)
            weighted = model.tilts - (model.tilts @ weights)[:, None]
            spreads = (weighted * weights) @ weighted.T
            lines = _lines(model, slopes @ turn, spreads, marginals)
            signs = _signs(model, lines, turn.shape[1])
            lines = [line._replace(slopes=line.slopes * signs + 0.0) for line in lines]
            return cls(whitened @ turn * signs, shares, lines)


def _whitened(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return points whose coordinates are uncorrelated, of mean zero and variance one."""
    centred = points - weights @ points
    values, vectors = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    kept = values > _FLAT_AXIS * max(values[-1], np.finfo(float).tiny)
    if not kept.any():
        raise JointPMFError("all rows lie at one point: nothing varies along a trait")
    return centred @ (vectors[:, kept] / np.sqrt(values[kept]))


def _principal(
    model: TraitModel, slopes: np.ndarray, marginals: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return how to turn the axes so that the first moves the log-odds most, and their shares.

    What an axis moves is the variance, over the levels of each variable as they are distributed,
    of the slopes of their log-odds; that is what the variables tell about it.
    """
    moved = np.zeros((slopes.shape[1], slopes.shape[1]))
    for n, marginal in enumerate(marginals):
        by_level = model.scores.all[n] @ slopes[slice(*model.scores.offsets[n : n + 2])]
        by_level = by_level - marginal @ by_level
        moved += (by_level * marginal[:, None]).T @ by_level
    values, vectors = np.linalg.eigh(moved)
    values = np.maximum(values[::-1], 0.0)
    return vectors[:, ::-1], values / max(values.sum(), np.finfo(float).tiny)


def _lines(
    model: TraitModel, slopes: np.ndarray, spreads: np.ndarray, marginals: Sequence[np.ndarray]
) -> list[Line]:
    """Return the line of every ordered variable, and of the levels of the others."""
    lines = []
    for n, marginal in enumerate(marginals):
        own = slice(*model.scores.offsets[n : n + 2])
        for level, of_levels in _contrasts(model, n, marginal):
            of_scores = of_levels @ model.scores.all[n]
            line, spread = of_scores @ slopes[own], of_scores @ spreads[own, own] @ of_scores
            # where there is nothing to explain, a line of slope zero explains it
            explained = min(line @ line / spread, 1.0) if spread > 0 else 1.0
            lines.append(Line(n, level, line, float(explained)))
    return lines


def _contrasts(
    model: TraitModel, n: int, marginal: np.ndarray
) -> list[tuple[int | None, np.ndarray]]:
    """Return what combinations of a variable's log-odds people read, each for its level."""
    scores = model.scores.all[n]
    if not scores.shape[1]:
        return []
    if model.scores.scales[n] > 0:  # the line through the log-odds, by how often levels are seen
        away = scores[:, 0] - marginal @ scores[:, 0]
        variance = marginal @ away**2
        return [(None, marginal * away / variance if variance > 0 else 0.0 * away)]
    if len(marginal) == 2:
        return [(1, np.array([-1.0, 1.0]))]
    rest = np.maximum(1 - marginal, np.finfo(float).tiny)
    against = (np.eye(len(marginal)) - marginal) / rest[:, None]
    return [(i, against[i]) for i in range(len(marginal))]


def _signs(model: TraitModel, lines: Sequence[Line], n_traits: int) -> np.ndarray:
    """Return signs by which the largest loading on every trait is positive.

    Levels without order say little about what is up, so ordered and binary variables decide if
    there are any.
    """
    sizes = model.domain.sizes
    telling = [one for one in lines if one.level is None or sizes[one.variable] == 2] or lines
    slopes = np.array([line.slopes for line in telling]).reshape(-1, n_traits)
    if not len(slopes):
        return np.ones(n_traits)
    largest = slopes[np.abs(slopes).argmax(axis=0), np.arange(n_traits)]
    return np.where(largest < 0, -1.0, 1.0)


def moments_of_rows(
    codes: Codes, positions: np.ndarray, weights: np.ndarray, factors: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each trait given the cells of each row.

    A row of probability zero is answered without evidence, and a warning is logged.
    """
    stacked, both = np.concatenate(factors), np.hstack([positions, positions**2])
    moments, impossible = np.empty((codes.n_rows, both.shape[1])), []
    size = max(_BLOCK // len(weights), 1)
    for begin in range(0, codes.n_rows, size):
        part = Codes(codes.domain, codes.array[begin : begin + size])
        posterior, logs = posterior_of_rows(part, weights / weights.sum(), stacked)
        with one_blas_thread:
            moments[begin : begin + size] = posterior @ both
        impossible += (begin + np.flatnonzero(logs == -np.inf)).tolist()
    if impossible:
        logger.warning(
            "%d rows have probability zero, row %d first; they are answered without evidence",
            len(impossible),
            impossible[0],
        )
    means, squares = np.split(moments, 2, axis=1)
    return means, np.sqrt(np.maximum(squares - means**2, 0.0))
