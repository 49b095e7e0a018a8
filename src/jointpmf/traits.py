"""Components that lie in a space of a few traits: thousands of columns from a few numbers.

Every component is a point of the space. The log-odds of a variable's levels there are linear in
features of the point: its coordinates, and waves that make curves of straight lines (docs/math.md,
eqs. 72 and 73).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri

from jointpmf.errors import JointPMFError, whole_number
from jointpmf.point import Point

if TYPE_CHECKING:
    from jointpmf.domain import Domain, Variable

_TAIL = 1e-6
"""Probability beyond which no point lies, on either side of a trait."""


def is_ordered(variable: Variable) -> bool:
    """Tell whether levels stand for increasing numbers."""
    return variable.values is not None and bool((np.diff(variable.values) > 0).all())


def has_width(variable: Variable) -> bool:
    """Tell whether a variable has so many ordered levels that it can be wide or narrow."""
    return variable.size > 2 and is_ordered(variable)


class Space(NamedTuple):
    """Points in the space of traits, and the waves over it."""

    points: np.ndarray
    """One row per component."""
    directions: np.ndarray
    """How fast each wave changes along each trait, one column per wave."""
    phases: np.ndarray
    """Where each wave begins."""

    @classmethod
    def drawn(
        cls,
        n_points: int,
        n_traits: int,
        n_waves: int = 0,
        pace: float = 0.7,
        generator: np.random.Generator | None = None,
    ) -> Space:
        """Return points that fill a standard normal evenly, and random waves of a mean pace.

        Examples
        --------
        >>> space = Space.drawn(64, 2, n_waves=5, generator=np.random.default_rng(0))
        >>> space.points.shape, space.features.shape
        ((64, 2), (64, 7))
        """
        whole_number(n_points, "the number of points", 1)
        whole_number(n_traits, "the number of traits", 1)
        generator = np.random.default_rng(0) if generator is None else generator
        points = _normal_points(n_points, n_traits, generator)
        directions = pace * generator.normal(size=(n_traits, n_waves))
        phases = generator.uniform(0, 2 * np.pi, n_waves)
        return cls(points, directions, phases)

    def redrawn(self, n_points: int, *seed: int) -> np.ndarray:
        """Return other points, which the seed decides."""
        return _normal_points(n_points, self.n_traits, np.random.default_rng(seed))

    @property
    def n_traits(self) -> int:
        """How many coordinates a point has."""
        return self.points.shape[1]

    @property
    def features(self) -> np.ndarray:
        """What the log-odds are linear in, one row per point: coordinates, then waves."""
        n_waves = max(len(self.phases), 1)
        waves = np.sqrt(2 / n_waves) * np.cos(self.points @ self.directions + self.phases)
        return np.hstack([self.points, waves])

    def taken(self, which: np.ndarray) -> Space:
        """Return some of the points, with the same waves."""
        return self._replace(points=self.points[which])


def _normal_points(n_points: int, n_traits: int, generator: np.random.Generator) -> np.ndarray:
    """Return points that fill a standard normal evenly."""
    from scipy.stats import qmc  # takes longer to load than all the rest together

    sobol = qmc.Sobol(n_traits, scramble=True, rng=generator)
    uniform = sobol.random_base2(int(np.ceil(np.log2(n_points))))[:n_points]
    return ndtri(uniform.clip(_TAIL, 1 - _TAIL))


@dataclass(frozen=True)
class Scores:
    """What of a variable's levels moves with the traits: one column per way to move.

    An ordered variable has its standardised value and the square of that: where its distribution
    is, and how wide. A nominal one has a column per level, a binary one the difference of the two.

    Attributes
    ----------
    domain : Domain
        What can happen.
    centres, scales : arrays
        The mean and the standard deviation of the values of each variable; a scale of zero means
        that its levels have no order.
    """

    domain: Domain
    centres: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, domain: Domain, marginal: np.ndarray) -> Scores:
        """Return the scores of variables that are distributed like this.

        Examples
        --------
        >>> from jointpmf import Domain, Variable
        >>> stars = Domain([Variable("stars", (1, 2, 3)), Variable("seen", ("no", "yes"))])
        >>> scores = Scores.of(stars, np.array([0.5, 0, 0.5, 0.2, 0.8]))
        >>> scores.of_variable(0).tolist(), scores.of_variable(1).tolist()
        ([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]], [[-0.5], [0.5]])
        """
        centres, scales = np.zeros(len(domain)), np.zeros(len(domain))
        for n, variable in enumerate(domain):
            if not has_width(variable):
                continue
            share = marginal[domain.offsets[n] : domain.offsets[n + 1]]
            values = np.asarray(variable.values, float)
            span = values[-1] - values[0]
            centres[n] = share @ values
            least = span / (2 * variable.size)  # also where all rows give the same answer
            scales[n] = max(np.sqrt(share @ (values - centres[n]) ** 2), least)
        return cls(domain, centres, scales)

    @classmethod
    def unordered(cls, domain: Domain) -> Scores:
        """Return the scores of variables none of which has an order."""
        return cls(domain, np.zeros(len(domain)), np.zeros(len(domain)))

    def of_variable(self, n: int) -> np.ndarray:
        """Return the scores of a variable's levels, one row per level."""
        variable = self.domain.variables[n]
        if self.scales[n] > 0:
            value = (np.asarray(variable.values, float) - self.centres[n]) / self.scales[n]
            return np.column_stack([value, value**2])
        if variable.size == 2:
            return np.array([[-0.5], [0.5]])
        # so that the log-odds of two levels vary as much as those of a binary variable
        return np.eye(variable.size) / np.sqrt(2) if variable.size > 1 else np.empty((1, 0))

    @cached_property
    def all(self) -> list[np.ndarray]:
        """The scores of every variable."""
        return [self.of_variable(n) for n in range(len(self.domain))]

    @property
    def widths(self) -> np.ndarray:
        """Where the squared values of ordered variables are among all scores."""
        return self.offsets[:-1][self.scales > 0] + 1

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the scores of each variable begin, if they are put side by side."""
        return np.cumsum([0, *(scores.shape[1] for scores in self.all)])


@dataclass(frozen=True)
class TraitModel:
    """Columns as a function of the point at which a component lies.

    Attributes
    ----------
    scores : Scores
        What moves of each variable.
    space : Space
        The points, and the features that are computed from them.
    intercepts : array of shape (levels,)
        The log-odds of all levels where all features are zero.
    coefficients : array of shape (scores, features)
        How much of each feature there is in each score.
    """

    scores: Scores
    space: Space
    intercepts: np.ndarray
    coefficients: np.ndarray

    @property
    def domain(self) -> Domain:
        """What can happen."""
        return self.scores.domain

    @cached_property
    def features(self) -> np.ndarray:
        """The features of every point."""
        return self.space.features

    @cached_property
    def tilts(self) -> np.ndarray:
        """How much of each score there is at each point, one column per point."""
        return self.coefficients @ self.features.T

    def log_odds(self, n: int) -> np.ndarray:
        """Return the log-odds of a variable's levels, one column per point (eq. 73)."""
        levels, own = self.places(n)
        return self.intercepts[levels, None] + self.scores.all[n] @ self.tilts[own]

    def places(self, n: int) -> tuple[slice, slice]:
        """Return where the levels and the scores of a variable are."""
        offsets, own = self.domain.offsets, self.scores.offsets
        return slice(*offsets[n : n + 2]), slice(*own[n : n + 2])

    @cached_property
    def _normalised(self) -> tuple[np.ndarray, np.ndarray]:
        n_points = len(self.space.points)
        factors = np.empty((int(self.domain.offsets[-1]), n_points))
        log_totals = np.empty((len(self.domain), n_points))
        for n, (first, end) in enumerate(pairwise(self.domain.offsets)):
            factors[first:end], log_totals[n] = columns_of(self.log_odds(n))
        return factors, log_totals

    @property
    def factors(self) -> np.ndarray:
        """The columns of all variables, one row per level."""
        return self._normalised[0]

    @property
    def log_totals(self) -> np.ndarray:
        """What the exponentials of each variable's log-odds sum to at each point, as logs."""
        return self._normalised[1]

    def point(self, weights: np.ndarray | None = None) -> Point:
        """Return the model as a point; by default all components count alike."""
        n_points = len(self.space.points)
        own = np.full(n_points, 1 / n_points) if weights is None else weights
        made_of = {"intercepts": self.intercepts, "coefficients": self.coefficients}
        return Point(own, self.factors, made_of)

    def of_point(self, point: Point) -> TraitModel:
        """Return the model in this space that a point was computed from."""
        assert point.made_of is not None
        return self.moved(point.made_of["intercepts"], point.made_of["coefficients"])

    def moved(self, intercepts: np.ndarray, coefficients: np.ndarray) -> TraitModel:
        """Return the model of other numbers at the same points."""
        found = replace(self, intercepts=intercepts, coefficients=coefficients)
        found.__dict__["features"] = self.features  # they take long to compute
        return found

    def taken(self, which: np.ndarray) -> TraitModel:
        """Return the model at some of its points."""
        return replace(self, space=self.space.taken(which))

    def at(self, points: np.ndarray) -> TraitModel:
        """Return the model at other points of the same space."""
        return replace(self, space=self.space._replace(points=points))


@dataclass(frozen=True)
class FreeColumns:
    """Columns that follow no traits, in the form in which those of a trait model are summed up.

    Attributes
    ----------
    scores : Scores
        Without any order, so that every column can be had.
    factors : array of shape (levels, components)
        The columns of all variables; none is zero.
    """

    scores: Scores
    factors: np.ndarray

    @property
    def domain(self) -> Domain:
        """What can happen."""
        return self.scores.domain

    @property
    def intercepts(self) -> np.ndarray:
        """Nothing, because all is in the tilts."""
        return np.zeros(len(self.factors))

    @cached_property
    def _logs(self) -> list[np.ndarray]:
        return np.split(np.log(self.factors), self.domain.offsets[1:-1])

    @cached_property
    def tilts(self) -> np.ndarray:
        """How much of each score there is in each component."""
        own = {1: lambda logs: logs[:0], 2: lambda logs: logs[1:] - logs[:1]}
        return np.vstack([own.get(len(n), lambda logs: np.sqrt(2) * logs)(n) for n in self._logs])

    @cached_property
    def log_totals(self) -> np.ndarray:
        """What the exponentials of the scores times their tilts sum to, as logs."""
        none = np.zeros(self.factors.shape[1])
        return np.stack([-n.mean(axis=0) if len(n) == 2 else none for n in self._logs])

    def level_counts(self, sums: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Return how often each level was seen, by sums of scores and how often each variable."""
        counts = np.empty_like(self.factors)
        for n, (first, end) in enumerate(pairwise(self.domain.offsets)):
            own, total = sums[slice(*self.scores.offsets[n : n + 2])], totals[n]
            if end - first == 2:
                counts[first:end] = total / 2 + np.array([[-1.0], [1.0]]) * own
            else:
                counts[first:end] = np.sqrt(2) * own if end - first > 2 else total
        return counts


def parts_of(models: Sequence[TraitModel]) -> list[slice]:
    """Return which components lie at the points of each model; they come first."""
    ends = np.cumsum([0, *(len(model.space.points) for model in models)]).tolist()
    return [slice(*pair) for pair in pairwise(ends)]


def columns_of(log_odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of levels, and the log of what their exponentials sum to."""
    top = log_odds.max(axis=0)
    columns = np.exp(log_odds - top)
    totals = columns.sum(axis=0)
    return columns / totals, top + np.log(totals)


def check_n_traits(n_traits: int, domain: Domain) -> None:
    """Raise if there are more traits than variables."""
    if n_traits > len(domain):
        raise JointPMFError(
            f"{n_traits} traits are more than the {len(domain)} variables they should explain"
        )
