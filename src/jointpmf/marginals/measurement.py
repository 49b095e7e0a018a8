"""A table whose entries are sets of levels, for part of the population, or in slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError, float_array, float_of, shown

if TYPE_CHECKING:
    from jointpmf.domain import Variable

_EXTREME = 1e50
"""Counts and noise between this and its inverse: products of others would overflow."""

Sets = tuple[np.ndarray, ...]
"""For each axis of a table: which levels each of its entries covers, shape (entries, levels)."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a table says of the joint, in the codes of a domain.

    Attributes
    ----------
    positions : tuple of int
        The variables of the axes.
    sets : tuple of arrays of bool
        For each axis, which levels each of its entries covers.
    where : tuple of (int, array of bool)
        The part of the population that the table is about: a variable, and which of its levels.
    given : tuple of int
        Axes whose entries have slices of their own, each of which is a distribution.
    counts : array
        How many rows each cell stands for; NaN where that was not published.
    n_obs : array or None
        How many rows each slice stands for, the cells that were not published included; of shape
        () without `given`. None where only the published cells are known.
    least, most : array
        What a cell that was not published is known to be between.
    noise : array or None
        Standard deviation of what was added to the count of each cell, if anything was.
    """

    positions: tuple[int, ...]
    sets: Sets
    counts: np.ndarray
    where: tuple[tuple[int, np.ndarray], ...] = ()
    given: tuple[int, ...] = ()
    n_obs: np.ndarray | None = None
    least: np.ndarray | float = 0.0
    most: np.ndarray | float = np.inf
    noise: np.ndarray | None = None

    @property
    def others(self) -> tuple[int, ...]:
        """The axes along which slices sum to one."""
        return tuple(k for k in range(len(self.positions)) if k not in self.given)

    @property
    def n_counted(self) -> np.ndarray:
        """How many rows its slices stand for, or its cells where that is all that is known."""
        return self.counts if self.n_obs is None else self.n_obs

    def predicted(self, weights: np.ndarray, factors: Sequence[np.ndarray]) -> np.ndarray:
        """Return the probability that a model gives each cell, within its slice (eq. 35).

        Where only the published cells of a slice are known, it is within these.
        """
        share = weights.copy()
        for n, mask in self.where:
            share *= mask @ factors[n]
        covered = [sets @ factors[n] for n, sets in zip(self.positions, self.sets, strict=True)]
        table = share
        for k, part in enumerate(covered):
            shape = [1] * len(covered) + [len(weights)]
            shape[k] = len(part)
            table = table * part.reshape(shape)
        cells = table.sum(axis=-1)
        if self.n_obs is not None:
            is_open = np.expand_dims(np.isnan(self.n_obs), self.others)
            cells = np.where(is_open & np.isnan(self.counts), 0.0, cells)
        return cells / cells.sum(axis=self.others, keepdims=True)

    def counted(self, codes: np.ndarray, generator: np.random.Generator) -> Measurement:
        """Return the same table of other people: of the first rows that it is about.

        There are as many of them as it had, and as much noise. Cells that were not published stay
        so. Rows that do not observe all of its variables are not in it.
        """
        inside = (codes[:, [*self.positions, *(n for n, _ in self.where)]] != MISSING).all(axis=1)
        covered = (np.logical_or.reduce(sets) for sets in self.sets)
        for n, mask in (*self.where, *zip(self.positions, covered, strict=True)):
            if not mask.all():
                inside &= mask[codes[:, n]]
        rows = np.flatnonzero(inside)[: round(max(float(np.nansum(self.n_counted)), 1.0))]
        sizes = [sets.shape[1] for sets in self.sets]
        place = np.ravel_multi_index([codes[rows, n] for n in self.positions], sizes)
        counts = np.bincount(place, minlength=int(np.prod(sizes))).reshape(sizes).astype(float)
        for k, sets in enumerate(self.sets):
            counts = np.moveaxis(np.tensordot(sets.astype(float), counts, (1, k)), 0, k)
        n_obs = None
        if self.noise is not None:
            counts += self.noise * generator.standard_normal(counts.shape)
        if self.n_obs is not None:
            n_obs = np.where(np.isnan(self.n_obs), np.nan, counts.sum(axis=self.others))
        return replace(self, counts=np.where(np.isnan(self.counts), np.nan, counts), n_obs=n_obs)


def sets_of(variable: Variable, entries: Sequence[Any]) -> np.ndarray:
    """Return which levels of a variable each entry covers: a level, or several of them.

    Examples
    --------
    >>> from jointpmf import Variable
    >>> sets_of(Variable("age", ("0-4", "5-9", "10+")), ["0-4", ("5-9", "10+")]).tolist()
    [[True, False, False], [False, True, True]]
    """
    if isinstance(entries, str):
        raise JointPMFError(f"levels of {variable.name!r} must be a list, not {entries!r}")
    sets = np.zeros((len(entries), variable.size), bool)
    for covered, entry in zip(sets, entries, strict=True):
        is_one = entry in variable or not isinstance(entry, (tuple, list, set, frozenset))
        for level in [entry] if is_one else entry:
            covered[variable.code(level)] = True
        if not covered.any():
            raise JointPMFError(f"an entry of {variable.name!r} covers no level")
    return sets


def is_permutation(sets: np.ndarray) -> bool:
    """Tell whether the entries of an axis are the levels of its variable, in any order."""
    return bool((sets.sum(axis=0) == 1).all() and (sets.sum(axis=1) == 1).all())


def bounds_of(bounds: Any, what: str) -> tuple[float, float]:
    """Return the least and the most that a suppressed count may be.

    Examples
    --------
    >>> bounds_of("<6", "a table"), bounds_of(None, "a table")
    ((0.0, 5.0), (0.0, inf))
    """
    if bounds is None:
        return 0.0, np.inf
    try:
        if isinstance(bounds, str):
            below = bounds.startswith("<") and not bounds.startswith("<=")
            bounds = 0.0, float(bounds.lstrip("<=≤")) - below
        least, most = map(float_of, bounds)
    except (TypeError, ValueError):
        least, most = np.nan, np.nan
    if not 0 <= least <= most:
        raise JointPMFError(f"bounds of {what} must be like (0, 5) or '<6'")
    return least, most


def check_bounds(
    parts: Parts, given: tuple[int, ...], bounds: tuple[float, float], slack: float, what: str
) -> None:
    """Refuse bounds within which suppressed cells cannot be what the published ones leave.

    `slack` is how far, as a part of a slice, what is left may be off.
    """
    others = tuple(k for k in range(parts.table.ndim) if k not in given)
    n_hidden, n_obs = np.isnan(parts.table).sum(axis=others), np.asarray(parts.n_obs)
    left = n_obs * (1 - np.nansum(parts.table, axis=others))
    least, most = bounds
    each, off = left / np.maximum(n_hidden, 1), slack * n_obs
    is_off = (each > most + off) | (each < least - off)
    wrong = np.flatnonzero(is_off & (n_hidden > 0) & parts.is_whole)
    if len(wrong):
        raise JointPMFError(
            f"the published cells of {what} leave {np.ravel(left)[wrong[0]]:g} for "
            f"{np.ravel(n_hidden)[wrong[0]]} suppressed ones, which bounds say are from {least:g} "
            f"to {most:g} each; if cells were rounded, say so with rounding"
        )


class Parts(NamedTuple):
    """A table as parts of what each of its slices stands for."""

    table: np.ndarray
    """Parts, NaN where they were not published."""
    n_obs: np.ndarray | None
    """How many rows each slice stands for, or its published cells if that is not known."""
    is_whole: np.ndarray
    """Whether the parts that were not published are known to be what is left."""
    unit: np.ndarray
    """What the cells of each slice were divided by."""
    of_sums: bool = False
    """Whether that was the sum of what was published, which rounding and noise move too."""
    noise: np.ndarray | None = None
    """Standard deviation of what was added to each part."""


def parts_of(
    table: np.ndarray,
    n_obs: Any,
    given: tuple[int, ...],
    what: str,
    noise: np.ndarray | None = None,
) -> Parts:
    """Return a table of counts, parts of one or percent, each slice as parts of its own.

    Parameters
    ----------
    table : array
        NaN where a cell was not published.
    n_obs : number, array or None
        How many rows each slice stands for, if that was said.
    given : tuple of int
        The axes whose entries have slices of their own.
    what : str
        The table, for messages.
    noise : array, optional
        Standard deviation of what was added to each cell.
    """
    others = tuple(k for k in range(table.ndim) if k not in given)
    if noise is not None:
        return _noisy_parts(table, noise, n_obs, others, what)
    is_known = ~np.isnan(table)
    shown, is_complete = np.nansum(table, axis=others), is_known.all(axis=others)
    a_slice = f"a slice of {what}" if given else what
    hint = "; leave its entry out of the table, and of levels" if given else ""
    if not (is_known.any(axis=others)).all():
        raise JointPMFError(f"all cells of {a_slice} are suppressed{hint}")
    if not (shown > 0).all():
        raise JointPMFError(f"{a_slice} is zero everywhere{hint}")
    if n_obs is not None:
        n_obs = _sizes_of(n_obs, shown.shape, what)
    is_counted = bool((table[is_known] == np.floor(table[is_known])).all())
    unit = _unit_of(shown, is_complete, (1.0, 100.0) if given else (1.0,))
    if unit is not None and (is_complete.any() or not is_counted):
        return Parts(table / unit, n_obs, np.ones(shown.shape, bool), np.full(shown.shape, unit))
    if given and not is_counted:
        unit = 100 if np.median(shown) > 10 else 1
        worst = float(shown.flat[np.abs(np.log(shown / unit)).argmax()])
        raise JointPMFError(f"a slice of {what} sums to {worst:g}, not to {unit}")
    total = shown if n_obs is None else n_obs
    if (shown > total * (1 + 1e-6)).any() or (is_complete & (shown < total * (1 - 1e-6))).any():
        raise JointPMFError(
            f"the published cells of {what} sum to {shown.max():g}, but n_obs is {total.max():g}"
        )
    parts = table / np.expand_dims(total, others)
    if n_obs is None:
        return Parts(parts, total if is_counted else None, is_complete, total, of_sums=True)
    return Parts(parts, total, np.ones(shown.shape, bool), total)


def _noisy_parts(
    table: np.ndarray, noise: np.ndarray, n_obs: Any, others: tuple[int, ...], what: str
) -> Parts:
    """Return a table with noise as parts; a slice stands for n_obs rows, or for its sum."""
    shown = np.nansum(table, axis=others)
    if np.isnan(table).all(axis=others).any():
        raise JointPMFError(f"all cells of {what} are suppressed")
    sizes = None if n_obs is None else _sizes_of(n_obs, shown.shape, what)
    is_whole = np.ones(shown.shape, bool)
    blur = 4 * np.sqrt(np.sum(np.where(np.isnan(table), 0.0, noise) ** 2, axis=others))
    for unit in (1.0, 100.0) if len(others) < table.ndim else (1.0,):
        if (np.abs(shown - unit) <= 0.01 * unit + blur).all() and (blur < 0.5 * unit).all():
            return Parts(
                table / unit, sizes, is_whole, np.full(shown.shape, unit), noise=noise / unit
            )
    total = shown if sizes is None else sizes
    if not (total > 0).all():
        raise JointPMFError(f"{what} sums to {total.min():g}; say how many rows it is of, by n_obs")
    whole = np.expand_dims(total, others)
    return Parts(table / whole, total, is_whole, total, of_sums=sizes is None, noise=noise / whole)


def noise_of(noise: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return the standard deviation of each cell, checked."""
    otherwise = f"noise of {what} must be a number, or one for each cell"
    try:
        found = np.broadcast_to(float_array(noise, otherwise), shape)
    except ValueError:
        raise JointPMFError(otherwise) from None
    if not ((found > 1 / _EXTREME) & (found < _EXTREME)).all():
        raise JointPMFError(f"noise of {what} must be positive, not {shown(noise)}")
    return found


def _sizes_of(n_obs: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    otherwise = (
        f"n_obs of {what} must be a number, or one for each of its {np.prod(shape):g} slices"
    )
    try:
        sizes = np.broadcast_to(float_array(n_obs, otherwise), shape)
    except ValueError:
        raise JointPMFError(otherwise) from None
    if not ((sizes > 1 / _EXTREME) & (sizes < _EXTREME)).all():
        raise JointPMFError(f"{what} has n_obs={shown(n_obs)}; it must be positive")
    return sizes


def likely_given(table: np.ndarray) -> tuple[int, ...]:
    """Return the axes whose every slice sums to one or to 100: what looks like row percentages.

    Examples
    --------
    >>> likely_given(np.array([[90.0, 10.0], [55.0, 45.0]]))
    (0,)
    """
    axes = range(table.ndim)
    guesses = [(k,) for k in axes] + [tuple(k for k in axes if k != one) for one in axes]
    is_whole = bool((table == np.floor(table)).all())
    for given in guesses:
        others = tuple(k for k in axes if k not in given)
        sums = table.sum(axis=others)
        if 1 < sums.size < table.size:
            for unit in (100.0,) if is_whole else (1.0, 100.0):  # counts of one are no shares
                if (np.abs(sums - unit) <= 0.01 * unit).all():
                    return given
    return ()


def _unit_of(shown: np.ndarray, is_complete: np.ndarray, units: tuple[float, ...]) -> float | None:
    """Return what slices may be parts of, or None if they are counts."""
    for unit in units:
        is_near = np.abs(shown - unit) <= 0.01 * unit
        if np.where(is_complete, is_near, shown <= 1.01 * unit).all():
            return unit
    return None
