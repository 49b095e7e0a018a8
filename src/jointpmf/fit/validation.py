"""What a fit is judged by and does not see: a part of the rows, other rows, cells, or a function.

`validation` means the same in every function: a fraction of the rows; a table of other rows; an
array of booleans in the table's shape, or `HiddenCells`, for cells that are predicted from the rest
of their rows; or a function of the model that returns how badly it does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes, some_cells
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError, float_of, shown
from jointpmf.fit.settings import HiddenCells
from jointpmf.pmf import JointPMF
from jointpmf.rows.source import Table, check_table
from jointpmf.rows.table import Rows
from jointpmf.solvers.held_out import HeldOut, HeldOutCells

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.point import Point
    from jointpmf.solvers.loop import Validation

logger = logging.getLogger("jointpmf")

_ROW_PATIENCE, _FUNCTION_PATIENCE = 10, 50
"""Iterations without improvement after which a fit ends: of held-out rows or cells, and of a
function, which may be noisier."""


class Split(NamedTuple):
    """What is fitted, and what judges the fit, if anything does."""

    fitted: Table
    judge: Validation | None = None


Splitter = Callable[[np.random.Generator], Split]
"""Gives what is fitted and what is held out; for fractions another part each time."""


@dataclass
class _Judged:
    """A function of the model as a validation part."""

    function: Callable[[JointPMF], float]
    domain: Domain
    patience: int = _FUNCTION_PATIENCE
    min_gain: float = 0.0

    def cost(self, point: Point) -> float:
        """Return how badly a model does."""
        cost = self.function(JointPMF.at(point, self.domain))
        if not isinstance(cost, Real):
            raise JointPMFError(f"the validation function must give a number, not {shown(cost)}")
        return np.inf if np.isnan(float_of(cost)) else float_of(cost)


def _encoded(table: Any, domain: Domain) -> Codes:
    """Return a validation table as codes."""
    from jointpmf.data.encode import encode

    return encode(table, domain)


def judge_of_marginals(validation: Any, domain: Domain) -> Validation | None:
    """Return what judges a fit to marginals: a function, or rows."""
    if validation is None:
        return None
    if callable(validation):
        return _Judged(validation, domain)
    if isinstance(validation, Real) or are_cells(validation):
        raise JointPMFError(
            "the validation of a fit to marginals must be a table of rows or callable, "
            f"not {shown(validation)}"
        )
    rows = _scored_rows(_encoded(validation, domain), None)
    return HeldOut(rows, patience=_ROW_PATIENCE)


def splitter(whole: Table, validation: Any, is_smoothed: bool, patience: int = 10) -> Splitter:
    """Return what splits a table into what is fitted and what is held out.

    Without smoothing, levels that were not fitted are impossible and are not scored.
    """
    if isinstance(validation, bool):
        raise JointPMFError("validation must be a fraction, a table, cells or callable, not a bool")
    cells = cells_of(validation, whole.codes)
    if cells is not None:
        hiding = _Hiding(whole, cells, is_smoothed, patience)
        if is_fraction(cells.cells):
            return hiding.split
        split = hiding.split(np.random.default_rng(0))
        return lambda generator: split
    if is_fraction(validation):
        return _fraction_splitter(whole, float_of(validation), is_smoothed)
    if validation is None:
        return lambda generator: Split(whole)
    if callable(validation):
        function = Split(whole, _Judged(validation, whole.domain))
        return lambda generator: function
    rows = _holding_out(whole, _encoded(validation, whole.domain), None, is_smoothed)
    return lambda generator: rows


def plain_validation(validation: Any, domain: Domain) -> Any:
    """Return what is held out in a form whose content can be compared."""
    if validation is None or isinstance(validation, (Real, HiddenCells)) or callable(validation):
        return validation
    hidden = _mask(validation)
    return _encoded(validation, domain) if hidden is None else hidden


def are_cells(validation: Any) -> bool:
    """Tell whether a validation is cells to hide: HiddenCells, or a rectangle of booleans."""
    return isinstance(validation, HiddenCells) or _mask(validation) is not None


def cells_of(validation: Any, codes: Codes) -> HiddenCells | None:
    """Return cells to hide, or None if a validation is something else."""
    if isinstance(validation, HiddenCells):
        return validation
    hidden = _mask(validation)
    if hidden is None or _are_rows(hidden, codes):
        return None
    return HiddenCells(hidden)


def _mask(validation: Any) -> np.ndarray | None:
    """Return a rectangle of booleans as an array, and anything else as None."""
    if isinstance(validation, (Codes, Real)):
        return None
    try:
        array = np.asarray(validation.to_numpy() if hasattr(validation, "to_numpy") else validation)
    except ValueError:
        return None
    if array.dtype == object and all(isinstance(cell, (bool, np.bool_)) for cell in array.flat):
        array = array.astype(bool)
    return array if array.dtype == bool and array.ndim == 2 else None


def _are_rows(booleans: np.ndarray, codes: Codes) -> bool:
    """Tell whether booleans are rows of a table of booleans, and not cells of it to hide."""
    levels = {type(level) for variable in codes.domain for level in variable.levels}
    return booleans.shape != codes.array.shape and levels == {bool}


def is_fraction(validation: Any) -> bool:
    """Tell whether a validation is a fraction of the rows."""
    return isinstance(validation, Real) and not isinstance(validation, bool)


def drawn_rows(n_rows: int, fraction: float, generator: np.random.Generator) -> np.ndarray:
    """Return which rows are held out, as booleans."""
    is_held_out = np.zeros(n_rows, bool)
    is_held_out[generator.permutation(n_rows)[: _n_held_out(n_rows, fraction)]] = True
    return is_held_out


def _n_held_out(n_rows: int, fraction: float) -> int:
    count = round(fraction * n_rows) if 0 < fraction < 1 else 0
    if not 0 < count < n_rows:
        raise JointPMFError(
            f"validation must be a fraction that leaves rows on both sides, not {fraction:g}"
        )
    return count


def _fraction_splitter(whole: Table, fraction: float, is_smoothed: bool) -> Splitter:
    codes, weights = whole.codes, whole.weights
    _n_held_out(codes.n_rows, fraction)  # raises now, not at the first split

    def split(generator: np.random.Generator) -> Split:
        is_held_out = drawn_rows(codes.n_rows, fraction, generator)
        fitted = whole.taken(~is_held_out)
        own = None if weights is None else weights[is_held_out]
        return _holding_out(fitted, Codes(codes.domain, codes.array[is_held_out]), own, is_smoothed)

    return split


def _holding_out(
    fitted: Table, codes: Codes, weights: np.ndarray | None, is_smoothed: bool
) -> Split:
    """Return what is fitted with other rows held out of it."""
    scored = np.flatnonzero(~_unknown(codes, fitted, is_smoothed).any(axis=1))
    part = Codes(codes.domain, codes.array[scored])
    rows = _scored_rows(part, None if weights is None else weights[scored])
    return Split(fitted, HeldOut(rows, patience=_ROW_PATIENCE))


def _scored_rows(codes: Codes, weights: np.ndarray | None) -> Rows:
    rows = Rows.of_codes(codes, weights)
    if not len(rows):
        raise JointPMFError("no row of the validation part has an observed cell and a weight")
    return rows


def _unknown(codes: Codes, fitted: Table, is_smoothed: bool) -> np.ndarray:
    """Return which cells hold a level that was not fitted, which is impossible unless smoothed.

    Such rows cost the same under every iterate but the first, which they must not decide for.
    """
    if is_smoothed:
        return np.zeros(codes.array.shape, bool)
    counts = np.append(fitted.counts, 1.0)
    cells = codes.domain.offsets[:-1] + codes.array
    unknown = counts[np.where(codes.array == MISSING, len(counts) - 1, cells)] == 0
    if unknown.any():
        row, n = np.argwhere(unknown)[0].tolist()
        logger.warning(
            "%d validation cells hold a level that was not fitted, such as that of %r in row %d; "
            "without smoothing they are not scored",
            unknown.sum(),
            codes.domain.names[n],
            row,
        )
    return unknown


@dataclass(frozen=True)
class _Hiding:
    """A table of which some cells are hidden and predicted from the rest of their rows."""

    whole: Table
    cells: HiddenCells
    is_smoothed: bool
    patience: int

    def split(self, generator: np.random.Generator) -> Split:
        """Return what is fitted, with the hidden cells as what judges it."""
        codes, weights = self.whole.codes, self.whole.weights
        hidden = hidden_cells(codes, self.cells.cells, generator)
        scoring = self.cells.scoring or "likelihood"
        visible = Codes(codes.domain, np.where(hidden, MISSING, codes.array))
        check_table(visible, weights)
        fitted = Table.of_codes(visible, weights)
        unknown = _unknown(codes, fitted, self.is_smoothed)
        known = Codes(codes.domain, np.where(unknown, MISSING, codes.array))
        held_out = HeldOutCells(known, hidden, weights, scoring, self.patience)
        if not len(held_out):
            what = "observed" if scoring == "likelihood" else "observed and has a value"
            raise JointPMFError(f"no cell of the validation part is {what}")
        return Split(fitted, held_out)


def hidden_cells(codes: Codes, cells: Any, generator: np.random.Generator) -> np.ndarray:
    """Return which cells to hide: those given, or a random part of the observed ones."""
    if not is_fraction(cells):
        hidden = _mask(cells)
        if hidden is None or hidden.shape != codes.array.shape:
            shape = "" if hidden is None else f" of shape {hidden.shape}"
            raise JointPMFError(
                f"validation cells{shape} must be a fraction, or booleans in the table's shape "
                f"{codes.array.shape}"
            )
        return hidden
    n_observed = int((codes.array != MISSING).sum())
    fraction = float_of(cells)
    n_hidden = round(fraction * n_observed) if 0 < fraction < 1 else 0
    if not 0 < n_hidden < n_observed:
        raise JointPMFError(
            f"validation must be a fraction that leaves some of the {n_observed} observed "
            f"cells on both sides, not {fraction:g}"
        )
    hidden = some_cells(codes, n_hidden, generator)
    hidden[:, (hidden | (codes.array == MISSING)).all(axis=0)] = False  # some of each is seen
    return hidden
