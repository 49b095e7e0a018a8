"""Neighbouring variables looked up together: fewer products per row, and none for missing cells.

A group of variables has a combination for each of their levels, missing being one more. The product
of a combination's factors is computed once per pass, and a row multiplies one of them per group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.compiled.cells import (
    add_combinations,
    cell_dtype,
    list_combinations,
    set_combinations,
)
from jointpmf.compiled.panels import aligned_zeros
from jointpmf.compiled.posteriors import safe_cells

if TYPE_CHECKING:
    from jointpmf.domain import Domain

_MOST_OF_PAIRS, _MOST_COMBINED = 512, 128
"""Combinations of two variables, and of more, that are one group: with more of them, products would
not stay near the processor."""

_ROWS_PER_COMBINATION = 32
"""Rows that there must be for each combination, for products of them to be worth making."""

_COMBINED_AT_ONCE = 2**14
"""Rows whose combinations are listed at a time, so that they stay near the processor."""


class Combinations:
    """The groups of a domain's variables, and models and counts in terms of them."""

    def __init__(self, domain: Domain) -> None:
        self.offsets = domain.offsets
        self.radix = np.array(domain.sizes, np.int64) + 1
        bounds, room = [0], 1
        for n, radix in enumerate(self.radix.tolist()):
            most = _MOST_OF_PAIRS if n == bounds[-1] + 1 else _MOST_COMBINED
            if n > bounds[-1] and room * radix > most:
                bounds.append(n)
                room = 1
            room *= radix
        self.bounds = np.array([*bounds, len(domain)], np.int64)
        rooms = [math.prod(self.radix[a:b].tolist()) for a, b in self._groups()]
        self.firsts = np.cumsum([0, *rooms[:-1]], dtype=np.int64)
        self.n_combinations = sum(rooms)
        self._longest = max(b - a for a, b in self._groups())
        self._ptr = np.arange(_COMBINED_AT_ONCE + 1) * len(self.firsts)

    def _groups(self) -> list[tuple[int, int]]:
        bounds = self.bounds.tolist()
        return list(pairwise(bounds))

    def are_worth(self, n_rows: int) -> bool:
        """Tell whether so many rows are worth the products."""
        # one variable has nothing to be taken together with
        is_shorter = 1 < len(self.radix) >= 2 * len(self.firsts) - 1
        return is_shorter and n_rows >= _ROWS_PER_COMBINATION * self.n_combinations

    def are_safe(self, stack: np.ndarray) -> bool:
        """Tell whether no product of a combination's factors can underflow."""
        return self._longest <= safe_cells(stack.min(where=stack > 0, initial=1.0))

    def stack(self, stack: np.ndarray) -> np.ndarray:
        """Return the model that a stack is, with a row for each combination."""
        out = aligned_zeros(self.n_combinations + 1, stack.shape[1])
        set_combinations(stack, self.offsets, self.bounds, self.firsts, out)
        return out

    def counts(self, counts: np.ndarray) -> np.ndarray:
        """Return counts of combinations as counts of levels."""
        out = aligned_zeros(int(self.offsets[-1]) + 1, counts.shape[1])
        add_combinations(counts, self.offsets, self.bounds, self.firsts, out)
        return out

    def of_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the combinations of all rows, one row after the other."""
        cells = np.empty(columns.shape[1] * len(self.firsts), cell_dtype(self.n_combinations))
        for begin in range(0, columns.shape[1], _COMBINED_AT_ONCE):
            end = min(begin + _COMBINED_AT_ONCE, columns.shape[1])
            self._list(columns, begin, end, cells[begin * len(self.firsts) :])
        return cells

    def listed(
        self, columns: np.ndarray, begin: int, end: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows begin:end in blocks, each of which overwrites the last."""
        room = np.empty(_COMBINED_AT_ONCE * len(self.firsts), cell_dtype(self.n_combinations))
        for first, last, ptr in self._blocks(begin, end):
            self._list(columns, first, last, room)
            yield slice(first, last), room, ptr

    def in_parts(
        self, cells: np.ndarray, begin: int, end: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows begin:end of combinations that are listed already."""
        for first, last, ptr in self._blocks(begin, end):
            yield slice(first, last), cells[first * len(self.firsts) :], ptr

    def _blocks(self, begin: int, end: int) -> Iterator[tuple[int, int, np.ndarray]]:
        for first in range(begin, end, _COMBINED_AT_ONCE):
            last = min(first + _COMBINED_AT_ONCE, end)
            yield first, last, self._ptr[: last - first + 1]

    def _list(self, columns: np.ndarray, begin: int, end: int, cells: np.ndarray) -> None:
        list_combinations(columns, self.radix, self.bounds, self.firsts, begin, end, cells)
