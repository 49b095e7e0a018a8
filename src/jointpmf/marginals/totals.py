"""Totals of published tables: checked against what they are totals of, and left out.

They are recognised by their labels, or because they are the sum of everything else.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jointpmf.domain import text_of
from jointpmf.errors import JointPMFError
from jointpmf.marginals.labelled import ROUNDED, Labelled
from jointpmf.marginals.measurement import likely_given

logger = logging.getLogger("jointpmf")


def check_totals(table: Labelled, what: Mapping[str, Any]) -> None:
    """Check the totals that labels show against the cells, and say that they were left out.

    Of percentages within levels that do not say so, which are refused later, they are no sums.
    """
    given = what.get("given") or likely_given(np.nan_to_num(table.cells))
    for k, name in enumerate(table.names):
        inner = [slice(0, -1)] * len(table.names)
        inner[k] = slice(-1, None)
        totals = table.totals[tuple(inner)].squeeze(k)
        if np.isnan(totals).all():
            continue
        logger.info("%s: the totals of %r were left out", table.name, name)
        if name not in given and k not in given:
            _check_totals(table, k, totals, what)


def _check_totals(table: Labelled, k: int, totals: np.ndarray, what: Mapping[str, Any]) -> None:
    """Raise if a total is less than what is shown of it; warn if it is more than all of it."""
    sums, has_holes = np.nansum(table.cells, axis=k), np.isnan(table.cells).any(axis=k)
    slack = ROUNDED * np.abs(sums) + _rounding(what) * (table.cells.shape[k] + 1)
    worst = int(np.nan_to_num(sums - slack - totals, nan=-np.inf).argmax())
    name = table.names[k]
    if totals.flat[worst] < sums.flat[worst] - slack.flat[worst]:
        raise JointPMFError(
            f"a total of {name!r} in {table.name} is {totals.flat[worst]:g}, less than the "
            f"{sums.flat[worst]:g} that are shown; if it is a level, list it in levels"
        )
    more = np.where(has_holes, -np.inf, np.nan_to_num(totals - sums - slack, nan=-np.inf))
    if more.max() > 0 and not (table.is_percent or table.is_probability):
        worst = int(more.argmax())
        logger.warning(
            "%s: a total of %r is %g, but its parts sum to %g; it was left out (if it is a level, "
            "list it in levels)",
            table.name,
            name,
            totals.flat[worst],
            sums.flat[worst],
        )


def _rounding(what: Mapping[str, Any]) -> float:
    return float(what.get("rounding") or 0.0)


def without_sums(
    table: Labelled, k: int, what: Mapping[str, Any], own: Collection[str]
) -> Labelled:
    """Leave out the first or last entry of an axis if it is the sum of all others everywhere.

    Labels that are known to be levels, `own`, stay.
    """
    cells, size = table.cells, table.cells.shape[k]
    total = float(np.nansum(cells))
    n_obs = what.get("n_obs")
    with np.errstate(over="ignore"):  # a sum beyond all numbers is none that cells have
        own_total = [] if n_obs is None or isinstance(n_obs, Mapping) else [np.sum(n_obs)]
    wholes = [1, 100, *own_total]
    is_known = np.isclose(total, wholes, rtol=ROUNDED).any()
    has_total = not np.isnan(np.take(table.totals, -1, axis=k)).all()
    if size < 3 or is_known or has_total or table.names[k] in (what.get("given") or ()):
        return table
    for entry in (size - 1, 0):
        label = table.labels[k][entry]
        sums = np.take(cells, entry, axis=k)
        others = np.delete(cells, entry, axis=k).sum(axis=k)
        if text_of(label) in own or not sums.any() or not np.allclose(sums, others, rtol=1e-9):
            continue
        is_sure = np.count_nonzero(sums) > 1
        logger.warning(
            "%s: %r of %r is the sum of all other entries and was %s; if it is %s, say so with "
            "levels",
            table.name,
            label,
            table.names[k],
            "left out as a total" if is_sure else "kept",
            "a level" if is_sure else "a total",
        )
        if is_sure:
            return _dropped(table, k, entry)
    return table


def _dropped(table: Labelled, k: int, entry: int) -> Labelled:
    """Return a table without an entry, which is its total."""
    cells = np.delete(table.cells, entry, axis=k)
    totals = np.delete(table.totals, entry, axis=k)
    own = [slice(0, -1)] * cells.ndim
    own[k] = slice(-1, None)
    totals[tuple(own)] = np.take(table.cells, [entry], axis=k)
    labels = list(table.labels)
    labels[k] = [label for i, label in enumerate(labels[k]) if i != entry]
    most = np.delete(table.most, entry, axis=k)
    noise = None if table.noise is None else np.delete(table.noise, entry, axis=k)
    return replace(table, cells=cells, most=most, totals=totals, labels=tuple(labels), noise=noise)
