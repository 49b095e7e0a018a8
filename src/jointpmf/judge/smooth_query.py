"""What is asked of a model: one number, and how it changes with the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jointpmf.errors import JointPMFError, shown
from jointpmf.evidence import likelihood_of
from jointpmf.pmf import JointPMF
from jointpmf.point import Point

if TYPE_CHECKING:
    from jointpmf.domain import Domain

_STEP, _LEAST = 1e-6, 1e-8
"""How much of a column is moved to one of its levels to see how an answer changes; and the least
probability of a level that is tried: what a smaller one does is not seen."""


class Question(Protocol):
    """A number that a model has."""

    def value(self, point: Point) -> float:
        """Return the answer."""

    def slope(self, point: Point) -> np.ndarray:
        """Return its derivatives by the parameters, but for a constant in each simplex."""


def question_of(query: Any, given: Mapping[str, Any] | None, domain: Domain) -> Question:
    """Return what is asked: a probability, an expected value, or any function of a model.

    Examples
    --------
    >>> from jointpmf import Domain, random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> asked = question_of({"x1": {0, 2}}, {"x0": 1}, pmf.domain)
    >>> exact = pmf.condition({"x0": 1}).table()[[0, 2]].sum()
    >>> bool(np.isclose(asked.value(Point.of_pmf(pmf)), exact))
    True
    """
    if given is not None and not isinstance(given, Mapping):
        raise JointPMFError('given must be a mapping, such as {"name": level}')
    if callable(query):
        if given is not None:
            raise JointPMFError("given belongs to evidence or a name, not to a function")
        return Asked(query, domain)
    known = _likelihoods(domain, given or {})
    if isinstance(query, str):
        return Ratio(domain, _times(domain, known, {query: _values_of(domain, query)}), known)
    if isinstance(query, Mapping) and query:
        return Ratio(domain, _times(domain, known, _likelihoods(domain, query)), known)
    raise JointPMFError(
        "a query is evidence such as {'name': level}, the name of a variable, or a function of a "
        f"JointPMF, not {shown(query)}"
    )


def _values_of(domain: Domain, name: str) -> np.ndarray:
    values = domain[name].values
    if values is None:
        raise JointPMFError(f"{name!r} has no expected value: its levels have no numeric values")
    return np.array(values, float)


def _likelihoods(domain: Domain, evidence: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: likelihood_of(domain[name], one) for name, one in evidence.items()}


def _times(
    domain: Domain, first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    return {
        name: first.get(name, np.ones(domain[name].size)) * second.get(name, 1.0)
        for name in {**first, **second}
    }


class Ratio:
    """The expectation of a product of functions of single variables, over that of another."""

    def __init__(
        self, domain: Domain, above: Mapping[str, np.ndarray], below: Mapping[str, np.ndarray]
    ) -> None:
        self._offsets = domain.offsets
        self._above = {domain.index(name): one for name, one in above.items()}
        self._below = {domain.index(name): one for name, one in below.items()}
        self._given = list(below)

    def value(self, point: Point) -> float:
        """Return the answer."""
        whole = self._expected(self._below, point)
        if not whole > 0:
            raise JointPMFError(f"what is given of {self._given!r} has probability zero")
        return self._expected(self._above, point) / whole

    def slope(self, point: Point) -> np.ndarray:
        """Return its derivatives."""
        part, whole = (self._expected(one, point) for one in (self._above, self._below))
        above, below = (self._slopes(one, point) for one in (self._above, self._below))
        return (above - part / whole * below) / whole

    def _parts(self, terms: Mapping[int, np.ndarray], point: Point) -> dict[int, np.ndarray]:
        ends = list(pairwise(self._offsets))
        return {n: one @ point.factors[slice(*ends[n])] for n, one in terms.items()}

    def _expected(self, terms: Mapping[int, np.ndarray], point: Point) -> float:
        return float(point.weights @ _product(self._parts(terms, point), point))

    def _slopes(self, terms: Mapping[int, np.ndarray], point: Point) -> np.ndarray:
        parts, factors = self._parts(terms, point), np.zeros_like(point.factors)
        for n, one in terms.items():
            rest = {m: part for m, part in parts.items() if m != n}
            own = point.weights * _product(rest, point)
            factors[self._offsets[n] : self._offsets[n + 1]] = np.outer(one, own)
        return np.concatenate([_product(parts, point), factors.ravel()])


def _product(parts: Mapping[int, np.ndarray], point: Point) -> np.ndarray:
    return math.prod(parts.values(), start=np.ones(len(point.weights)))


class Asked:
    """Any function of a model; its derivatives are found by differences."""

    def __init__(self, query: Callable[[JointPMF], Any], domain: Domain) -> None:
        self._query, self._domain = query, domain

    def value(self, point: Point) -> float:
        """Return the answer, which must be a finite number."""
        pmf = JointPMF.at(point, self._domain)
        try:
            found = self._query(pmf)
        except Exception as error:
            raise JointPMFError(
                f"the query raised {type(error).__name__} for a model that fits as well: {error}"
            ) from error
        if isinstance(found, np.ndarray) and found.ndim == 0:
            found = found.item()
        if not isinstance(found, Real):
            raise JointPMFError(f"the query must return a number, not {shown(found)}")
        if not math.isfinite(found):
            raise JointPMFError(f"the query returned {found} for a model that fits as well")
        return float(found)

    def slope(self, point: Point) -> np.ndarray:
        """Return how the answer changes if a little of a column moves to each of its levels."""
        here, rank = self.value(point), len(point.weights)
        out = np.zeros(rank + point.factors.size)
        for f in np.flatnonzero(point.weights > _LEAST):
            weights = point.weights * (1 - _STEP)
            weights[f] += _STEP
            out[f] = self.value(Point(weights, point.factors)) - here
        for begin, end in pairwise(self._domain.offsets):
            for level, f in np.argwhere(point.factors[begin:end] > _LEAST):
                factors = point.factors.copy()
                factors[begin:end, f] *= 1 - _STEP
                factors[begin + level, f] += _STEP
                at = rank + (begin + level) * rank + f
                out[at] = self.value(Point(point.weights, factors)) - here
        return out / _STEP
