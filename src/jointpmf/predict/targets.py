"""Tables as targets for whole rows: which cell of which table a row is in, and who is too many.

A table whose bands overlap is taken apart into layers in each of which a row is in one cell at
most. A table of everyone has fixed targets; one of a part, or of percentages, has shares of
however many people that part has (docs/math.md, eq. 52).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.marginals.measurement import Measurement, sets_of

_NOWHERE = -(2**40)
"""What a level adds to a cell's position that its table does not cover: the sum is negative."""

_NEVER = 1e9
"""People that a cell which must stay empty has too many of, so that no move into it is made."""


class _Cells(NamedTuple):
    """Cells, each with its share of the people in its slot; fixed ones of everyone have slot -1."""

    share: np.ndarray
    is_shown: np.ndarray
    slot: np.ndarray


class _Layer(NamedTuple):
    """Cells of a table, in only one of which a row can be."""

    first: int
    shifts: list[tuple[int, np.ndarray]]
    """Variables, and what each of their levels adds to the position of a cell."""


def tables_of(match: Any, domain: Domain) -> list[Measurement]:
    """Return the tables in the codes of the model's domain."""
    if not isinstance(match, MarginalSet):
        raise JointPMFError(f"match must be a MarginalSet, not {shown(match)}")
    places = domain.indices(match.domain.names)
    orders = [_order_of(match.domain, domain, name) for name in match.domain.names]
    return [
        replace(
            table,
            positions=tuple(places[k] for k in table.positions),
            sets=tuple(
                sets[:, orders[k]] for k, sets in zip(table.positions, table.sets, strict=True)
            ),
            where=tuple((places[k], mask[orders[k]]) for k, mask in table.where),
        )
        for table in match.measurements
    ]


def _order_of(tables: Domain, model: Domain, name: str) -> list[int]:
    """Return where the model's levels of a variable are among those of the tables."""
    theirs, ours = tables[name], model[name]
    for here, there, levels in (
        ("model", "tables", [level for level in theirs.levels if level not in ours]),
        ("tables", "model", [level for level in ours.levels if level not in theirs]),
    ):
        if levels:
            raise JointPMFError(
                f"{name!r} has the level {listing(levels, 3)} in the {there}, but not in the {here}"
            )
    return [theirs.code(level) for level in ours.levels]


class State(NamedTuple):
    """Where rows are, as the compiled moves change it."""

    codes: np.ndarray
    cells: np.ndarray
    """The position of each row's cell in each layer; negative where it is in none."""
    people: np.ndarray
    """In each cell; those with fixed targets have these subtracted."""
    size: np.ndarray
    pull: np.ndarray


class Targets:
    """What tables ask of rows.

    Parameters
    ----------
    domain : Domain
        The variables of the rows.
    tables : sequence of Measurement
        What is to be met, in the codes of the domain.
    impossible : iterable of mappings of name to level or levels
        Combinations that no row may have.
    n_rows : int
        How many rows there are.
    """

    def __init__(
        self,
        domain: Domain,
        tables: Sequence[Measurement],
        impossible: Iterable[Mapping[str, Any]],
        n_rows: int,
    ) -> None:
        ends = np.cumsum([0, *(table.counts.size for table in tables)])
        self.spans = [slice(a, b) for a, b in pairwise(ends.tolist())]
        never = [_never(domain, levels) for levels in impossible]
        self.n_rows, self.n_tables = n_rows, len(tables)
        self.layers = [
            layer
            for table, first in zip(tables, ends[:-1], strict=True)
            for layer in _layers_of(table, int(first))
        ] + [_Layer(int(ends[-1]) + k, shifts) for k, shifts in enumerate(never)]
        self.cells = _joined([*map(_cells_of, tables), _empty(len(never))])
        self.first_never = int(ends[-1])
        self.n_slots = int(self.cells.slot.max(initial=-1)) + 1
        self.square = np.bincount(*self._in_slots(self.cells.share**2), minlength=self.n_slots)
        self.maps = _maps_of(self.layers, len(domain))

    def _in_slots(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = self.cells.slot >= 0
        return self.cells.slot[inside], numbers[inside]

    def state(self, codes: np.ndarray) -> State:
        """Return where rows are."""
        cells = self.positions(codes)
        count = np.bincount(cells[cells >= 0], minlength=len(self.cells.share)).astype(float)
        size = np.bincount(*self._in_slots(count), minlength=self.n_slots)
        fixed = np.where(self.cells.slot < 0, self.n_rows * self.cells.share, 0.0)
        people = count - fixed
        people[self.first_never :] += _NEVER
        excess = np.where(self.cells.is_shown, people - self._moving(size), 0.0)
        pull = np.bincount(*self._in_slots(excess * self.cells.share), minlength=self.n_slots)
        return State(codes, cells, people, size, pull)

    def positions(self, codes: np.ndarray) -> np.ndarray:
        """Return the position of each row's cell in each layer."""
        cells = np.empty((len(codes), len(self.layers)), np.int64)
        for k, layer in enumerate(self.layers):
            cells[:, k] = layer.first
            for n, shift in layer.shifts:
                cells[:, k] += shift[codes[:, n]]
        return cells

    def is_allowed(self, codes: np.ndarray) -> np.ndarray:
        """Tell which rows have no combination that cannot happen."""
        return np.asarray((self.positions(codes) < self.first_never).all(axis=1))

    def _moving(self, size: np.ndarray) -> np.ndarray:
        """Return how many people cells should have whose targets follow the size of a slice."""
        sizes = np.append(size, 0.0)  # slot -1 is the last one
        return self.cells.share * sizes[self.cells.slot]

    def excess(self, state: State) -> list[np.ndarray]:
        """Return of each table how many people its published cells have too many."""
        excess = state.people - self._moving(state.size)
        return [excess[span][self.cells.is_shown[span]] for span in self.spans]


def _layers_of(table: Measurement, first: int) -> list[_Layer]:
    """Return the layers of a table: one, unless the entries of an axis overlap."""
    strides = np.cumprod([1, *table.counts.shape[:0:-1]])[::-1]
    where = [(n, np.where(mask, 0, _NOWHERE)) for n, mask in table.where]
    choices = [
        [(n, _shift(sets, group, int(stride))) for group in _disjoint(sets)]
        for n, sets, stride in zip(table.positions, table.sets, strides, strict=True)
    ]
    return [_Layer(first, [*chosen, *where]) for chosen in product(*choices)]


def _disjoint(sets: np.ndarray) -> list[list[int]]:
    """Return groups of entries of an axis, so that those of a group do not overlap."""
    groups: list[list[int]] = []
    for entry, covered in enumerate(sets):
        for group in groups:
            if not (sets[group].any(axis=0) & covered).any():
                group.append(entry)
                break
        else:
            groups.append([entry])
    return groups


def _shift(sets: np.ndarray, group: list[int], stride: int) -> np.ndarray:
    shift = np.full(sets.shape[1], _NOWHERE)
    for entry in group:
        shift[sets[entry]] = entry * stride
    return shift


def _never(domain: Domain, levels: Mapping[str, Any]) -> list[tuple[int, np.ndarray]]:
    """Return what is nowhere except for rows that have one of the levels of each variable."""
    masks = [(domain.index(name), sets_of(domain[name], [one])[0]) for name, one in levels.items()]
    return [(n, np.where(mask, 0, _NOWHERE)) for n, mask in masks]


def _cells_of(table: Measurement) -> _Cells:
    """Return the shares of a table's cells, and which slices they are in."""
    is_shown = ~np.isnan(table.counts)
    counts = np.where(is_shown, np.maximum(table.counts, 0.0), 0.0)
    total = counts.sum(axis=table.others, keepdims=True)
    is_open = np.zeros(total.shape, bool)  # how many people the slice has is not known
    if table.n_obs is not None and not is_shown.all():
        known = np.expand_dims(np.broadcast_to(table.n_obs, _shape(table)), table.others)
        is_open = np.isnan(known)
        is_whole = is_shown.all(axis=table.others, keepdims=True)
        total = np.where(is_open | is_whole, total, known)
    slot = np.arange(total.size).reshape(total.shape)
    if _is_of_everyone(table) and not is_open.any():
        slot = np.full(total.shape, -1)
    slot = np.where(is_open & ~is_shown, -1, slot)
    share = np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
    return _Cells(share.ravel(), is_shown.ravel(), np.broadcast_to(slot, counts.shape).ravel())


def _shape(table: Measurement) -> tuple[int, ...]:
    return tuple(table.counts.shape[k] for k in table.given)


def _is_of_everyone(table: Measurement) -> bool:
    """Tell whether everyone is in exactly one cell, and these are one distribution."""
    covers = all((sets.sum(axis=0) == 1).all() for sets in table.sets)
    return covers and not table.where and not table.given


def _empty(n_cells: int) -> _Cells:
    """Return cells that must stay empty."""
    return _Cells(np.zeros(n_cells), np.ones(n_cells, bool), np.full(n_cells, -1))


def _joined(parts: Sequence[_Cells]) -> _Cells:
    """Return the cells of all tables together, their slots numbered through."""
    slots, n_slots = [], 0
    for part in parts:
        slots.append(np.where(part.slot < 0, -1, part.slot + n_slots))
        n_slots += int(part.slot.max(initial=-1)) + 1
    return _Cells(
        np.concatenate([part.share for part in parts]),
        np.concatenate([part.is_shown for part in parts]),
        np.concatenate(slots),
    )


def _maps_of(layers: Sequence[_Layer], n_variables: int) -> tuple[np.ndarray, ...]:
    """Return the layers of each variable, and where in one array its levels' shifts begin.

    These are the ends of each variable's part of the list, the layers, where their shifts begin,
    and the shifts.
    """
    found = sorted(
        ((n, k, shift) for k, layer in enumerate(layers) for n, shift in layer.shifts),
        key=lambda one: one[:2],
    )
    which = np.array([n for n, _, _ in found], np.int64)
    shifts = [shift for _, _, shift in found]
    return (
        np.searchsorted(which, np.arange(n_variables + 1)),
        np.array([k for _, k, _ in found], np.int64),
        np.cumsum([0, *map(len, shifts)]),
        np.concatenate([np.zeros(0, np.int64), *shifts]),
    )
