"""Rows in memory that come in parts: put together, and the distinct ones while they are few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.rows.distinct import distinct_codes

WeightedCodes = tuple[Codes, np.ndarray | None]
"""Some rows, and what each of them counts for; None if each counts for one."""


def joined(parts: Sequence[WeightedCodes]) -> WeightedCodes:
    """Return the rows of several parts as one; either all of them have weights, or none."""
    array = np.concatenate([codes.array for codes, _ in parts])
    weights = [own for _, own in parts if own is not None]
    return Codes(parts[0][0].domain, array), np.concatenate(weights) if weights else None


class DistinctRows:
    """Distinct rows and how often each occurs, added up over parts.

    Parameters
    ----------
    most_cells : int
        Cells of distinct rows that are kept. If there are more, none is.

    Examples
    --------
    >>> import jointpmf as jp
    >>> rows = DistinctRows(most_cells=6)
    >>> for part in ([[0, 0], [1, 1]], [[0, 0], [1, 0]]):
    ...     rows.add(jp.Codes(jp.Domain.of_sizes([2, 2]), part), None)
    >>> rows.whole()[1].tolist()
    [2.0, 1.0, 1.0]
    """

    def __init__(self, most_cells: int) -> None:
        self.most_cells = most_cells
        self._parts: list[WeightedCodes] | None = []

    def add(self, codes: Codes, weights: np.ndarray | None) -> None:
        """Add rows, each by its weight."""
        if self._parts is None:
            return
        self._parts.append(distinct_codes(codes, weights))
        if sum(part.array.size for part, _ in self._parts) > self.most_cells:
            whole = distinct_codes(*joined(self._parts))
            self._parts = [whole] if whole[0].array.size <= self.most_cells else None

    def whole(self) -> WeightedCodes | None:
        """Return the distinct rows with how often each occurs; None if they are too many."""
        return distinct_codes(*joined(self._parts)) if self._parts else None
