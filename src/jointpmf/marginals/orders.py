"""How many marginals of an order there are, how many cells they have, and when that is too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError, text_of_count, text_of_size, whole_number

if TYPE_CHECKING:
    from jointpmf.domain import Domain

_MOST_CELLS = 2**27
"""Cells of all tables together that are listed at most; more would fill the memory."""

_MANY_SUBSETS = 20_000
"""Tables that are listed at most where a model file says only their order."""

_MOST_SUBSETS = 300_000
"""Subsets that are listed at most; more would take minutes."""

_BYTES_PER_TABLE = 3000
"""Memory per marginal, however small it is."""


def n_table_cells(sizes: Sequence[int], order: int) -> float:
    """Return the number of cells of all tables of an order: e_k of the sizes.

    Examples
    --------
    >>> n_table_cells([2, 3, 4], order=2)
    26.0
    """
    if order > len(sizes):
        return 0.0
    sums = np.zeros(order + 1)
    sums[0] = 1.0
    for size in sizes:
        sums[1:] += size * sums[:-1]
    return float(sums[order])


def are_many(sizes: Sequence[int], order: int) -> bool:
    """Tell whether a table has more marginals of an order than should be counted."""
    n_cells = n_table_cells(sizes, order)
    return math.comb(len(sizes), order) > _MANY_SUBSETS or n_cells > _MOST_CELLS


def can_be_listed(n_variables: int, order: int) -> bool:
    """Tell whether the subsets of an order can be listed in a second or so."""
    return math.comb(n_variables, order) <= _MOST_SUBSETS


def check_listed(domain: Domain, order: int) -> None:
    """Raise if there are more marginals of an order than can be listed, or none."""
    if whole_number(order, "the order", 1) > len(domain):
        raise JointPMFError(
            f"marginals of order {text_of_count(order)} need {text_of_count(order)} variables; "
            f"there are {len(domain)}"
        )
    if not can_be_listed(len(domain), order):
        n_subsets = math.comb(len(domain), order)
        raise JointPMFError(
            f"the {text_of_count(n_subsets)} marginals of order {order} would take "
            f"{text_of_size(_BYTES_PER_TABLE * n_subsets)} and more: lower the order, take fewer "
            "variables, or say which subsets"
        )
