"""Tables as another sample would have given them: from their own counts, or from a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError
from jointpmf.marginals.measurement import Measurement
from jointpmf.point import Point
from jointpmf.solvers.efficient import observed_part
from jointpmf.solvers.table_jacobian import slices_of

if TYPE_CHECKING:
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.pmf import JointPMF

_MOST_PEOPLE = 200_000
"""People that are drawn from a model at most; of more, the noise of these is scaled down."""


@dataclass(frozen=True)
class People:
    """Who is in the tables, as far as the tables tell.

    Attributes
    ----------
    n_rows : float
        How many people there are.
    observed : float
        The part of them that answered each question.
    """

    n_rows: float
    observed: float

    @classmethod
    def of(cls, marginals: MarginalSet, pmf: JointPMF) -> People | None:
        """Return who is in all of the tables, or None if they seem to share nobody (eq. 51)."""
        tables = marginals.measurements
        part = 1.0
        if len(tables) > 1:
            point = Point.of_pmf(pmf)
            parts = observed_part(slices_of(tables), point, pmf.domain)
            if parts is None:
                return None
            part = float(parts[0])
        sizes = [_n_people(table, part, pmf) for table in tables]
        return cls(max(sizes), part)


def _n_people(table: Measurement, part: float, pmf: JointPMF) -> float:
    """Return of how many people a table must be a part."""
    inside = dict(table.where)
    inside |= {
        n: np.logical_or.reduce(sets)
        for n, sets in zip(table.positions, table.sets, strict=True)
        if n not in inside
    }
    share = pmf.weights @ math.prod(mask @ pmf.factors[n] for n, mask in inside.items())
    return float(np.nansum(table.n_counted)) / (part ** len(inside) * max(float(share), 1e-12))


Draw = Callable[[int], Sequence[Measurement]]
"""Gives the tables as replicate number k sees them."""


def tables_drawn(
    marginals: MarginalSet, pmf: JointPMF, how: str, seed: int
) -> tuple[Draw, Sequence[Measurement], str]:
    """Return what draws tables, what they would be without noise, and how they are drawn.

    From the model, people are drawn and counted in every table: tables of the same people then
    err together. From their counts, each table has people of its own.
    """
    tables = marginals.measurements
    has_noise = any(table.noise is not None for table in tables)
    if not has_noise and all(marginal.n_rows is None for marginal in marginals):
        raise JointPMFError(
            "these tables are probabilities without counts (n_obs) or noise, so that there is no "
            "sampling error; jointpmf.bounds() tells what they leave open"
        )
    people = None if how == "counts" else People.of(marginals, pmf)
    if people is None and how == "model":
        people = People(max(_n_people(table, 1.0, pmf) for table in tables), 1.0)
    if people is None:
        own = [m.n_rows is not None for m in marginals]
        expected = [replace(table, counts=np.maximum(table.counts, 0.0)) for table in tables]
        return _CountDraws(tables, own, seed).drawn, expected, "counts"
    drawn = _ModelDraws(tables, pmf, people, seed)
    return drawn.drawn, [drawn.expected(table) for table in tables], "model"


@dataclass(frozen=True)
class _CountDraws:
    """Every table by itself: as many people again, by how many it counted in each cell."""

    tables: Sequence[Measurement]
    are_counted: Sequence[bool]
    seed: int

    def drawn(self, k: int) -> list[Measurement]:
        generator = np.random.default_rng((self.seed, k))
        pairs = zip(self.tables, self.are_counted, strict=True)
        return [_redrawn(table, is_counted, generator) for table, is_counted in pairs]


def _redrawn(table: Measurement, is_counted: bool, generator: np.random.Generator) -> Measurement:
    """Return a table with other counts: those of as many people, and other noise."""
    counts = np.moveaxis(np.array(table.counts, float), table.given, range(len(table.given)))
    flat = counts.reshape(math.prod(counts.shape[: len(table.given)]), -1)
    sizes = np.broadcast_to(
        np.nan if table.n_obs is None else table.n_obs, counts.shape[: len(table.given)]
    )
    new = np.full(flat.shape, np.nan)
    for row, (own, size) in enumerate(zip(flat, np.ravel(sizes), strict=True)):
        known = ~np.isnan(own)
        shown = np.maximum(own[known], 0.0)
        total = shown.sum() if np.isnan(size) else max(float(size), shown.sum())
        if is_counted and total > 0:
            parts = np.append(shown, max(total - shown.sum(), 0.0)) / total
            shown = generator.multinomial(round(total), parts / parts.sum())[:-1].astype(float)
        new[row, known] = shown
    drawn = np.moveaxis(new.reshape(counts.shape), range(len(table.given)), table.given)
    if table.noise is not None:
        drawn = drawn + table.noise * generator.standard_normal(drawn.shape)
    return replace(table, counts=drawn)


@dataclass(frozen=True)
class _ModelDraws:
    """People from the model, each counted in every table whose questions they answered."""

    tables: Sequence[Measurement]
    pmf: JointPMF
    people: People
    seed: int

    def drawn(self, k: int) -> list[Measurement]:
        generator = np.random.default_rng((self.seed, k))
        count = round(min(self.people.n_rows, _MOST_PEOPLE))
        codes = self.pmf.sample(count, random_state=generator, backend="codes")
        if self.people.observed < 1:
            hidden = generator.random(codes.shape) >= self.people.observed
            codes = np.where(hidden, MISSING, codes)
        return [self._of(table, codes, generator) for table in self.tables]

    def _of(
        self, table: Measurement, codes: np.ndarray, generator: np.random.Generator
    ) -> Measurement:
        if self.people.n_rows <= _MOST_PEOPLE:
            return table.counted(codes, generator)
        quiet = replace(table, noise=None).counted(codes, generator)
        expected = self.expected(table)
        size = np.nansum(expected.counts) / max(float(np.nansum(quiet.counts)), 1.0)
        part = math.sqrt(_MOST_PEOPLE / self.people.n_rows)
        counts = (1 - part) * expected.counts + part * size * quiet.counts
        if table.noise is not None:
            counts = counts + table.noise * generator.standard_normal(counts.shape)
        return replace(table, counts=counts)

    def expected(self, table: Measurement) -> Measurement:
        """Return the table as the model gives it."""
        cells = table.predicted(self.pmf.weights, self.pmf.factors)
        if table.n_obs is None:
            counts = cells * np.nansum(table.counts)
        else:
            counts = cells * np.expand_dims(np.nan_to_num(table.n_obs), table.others)
        return replace(table, counts=np.where(np.isnan(table.counts), np.nan, counts))
