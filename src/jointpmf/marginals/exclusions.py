"""Combinations that cannot happen, and components that avoid them.

A model gives a combination probability zero only if each of its components does, which excludes one
of the combination's parts. EM and simplex projections keep such zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.errors import JointPMFError, listing
from jointpmf.marginals.measurement import sets_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.marginals.measurement import Measurement


@dataclass(frozen=True, eq=False)
class Exclusions:
    """Combinations that cannot happen, in the codes of a domain.

    Attributes
    ----------
    domain : Domain
        All variables.
    cells : tuple of dicts
        Each combination: for each of its variables, which levels belong to it.
    """

    domain: Domain
    cells: tuple[dict[int, np.ndarray], ...] = ()

    @classmethod
    def of(cls, domain: Domain, impossible: Sequence[Mapping[str, Any]]) -> Exclusions:
        """Return what was said to be impossible, checked.

        Examples
        --------
        >>> from jointpmf import Domain
        >>> found = Exclusions.of(Domain.of_sizes([2, 3]), [{"x0": 1, "x1": (0, 2)}])
        >>> {n: mask.tolist() for n, mask in found.cells[0].items()}
        {0: [False, True], 1: [True, False, True]}
        """
        cells = []
        for combination in impossible:
            if not isinstance(combination, Mapping) or not combination:
                raise JointPMFError(
                    f"a combination that is impossible is a mapping of names to levels, not "
                    f"{combination!r}"
                )
            cells.append(
                {
                    domain.index(name): sets_of(domain[name], [levels])[0]
                    for name, levels in combination.items()
                }
            )
        return cls(domain, tuple(cells))

    def check(self, tables: Iterable[Measurement]) -> None:
        """Refuse combinations that leave nothing, and tables that count people in one of them."""
        for n, variable in enumerate(self.domain.variables):
            alone = [cell[n] for cell in self.cells if list(cell) == [n]]
            if alone and np.logical_or.reduce(alone).all():
                raise JointPMFError(f"the impossible combinations leave {variable.name!r} no level")
        for table in tables:
            if table.noise is None and (counted := self._counted_in(table)):
                names = [self.domain.names[n] for n in table.positions]
                raise JointPMFError(
                    f"the table of {listing(names)} counts {counted:g} in a combination that is "
                    "said to be impossible"
                )

    def _counted_in(self, table: Measurement) -> float:
        """Return how many people a table counts in cells that lie in an impossible combination."""
        where = dict(table.where)
        for cell in self.cells:
            if not all(n in table.positions or n in where for n in cell):
                continue
            if not all((where[n] <= cell[n]).all() for n in cell if n in where):
                continue
            inside = np.ones(table.counts.shape, bool)
            for k, (n, sets) in enumerate(zip(table.positions, table.sets, strict=True)):
                if n in cell:
                    within = (sets <= cell[n]).all(axis=1)
                    inside &= np.expand_dims(within, tuple(set(range(inside.ndim)) - {k}))
            counted = float(np.nansum(table.counts[inside]))
            if counted > 0:
                return counted
        return 0.0

    def __bool__(self) -> bool:
        """Tell whether anything is impossible."""
        return bool(self.cells)

    def drawn(
        self, rank: int, marginal: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray | None:
        """Return which levels each component may have, so that it avoids every combination.

        What is likely by the marginals, of shape (levels,), is seldom what a component excludes.
        None if a component was left without any level of a variable.
        """
        allowed = np.stack([self._drawn(marginal, generator) for _ in range(rank)], axis=1)
        is_left = np.logical_or.reduceat(allowed, self.domain.offsets[:-1], axis=0)
        return allowed if is_left.all() else None

    def _drawn(self, marginal: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return the levels of one component that avoids every combination."""
        offsets = self.domain.offsets
        allowed = np.ones(len(marginal), bool)
        for place in generator.permutation(len(self.cells)):
            cell = self.cells[place]
            own = {n: slice(offsets[n], offsets[n + 1]) for n in cell}
            if any(not allowed[own[n]][mask].any() for n, mask in cell.items()):
                continue  # it is avoided already
            left = [marginal[own[n]][allowed[own[n]] & ~mask].sum() for n, mask in cell.items()]
            if not sum(left) > 0:
                return np.zeros(len(marginal), bool)
            n = list(cell)[generator.choice(len(left), p=np.array(left) / sum(left))]
            allowed[own[n]] &= ~cell[n]
        return allowed
