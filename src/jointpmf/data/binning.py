"""Where a column of continuous numbers is cut into bins, and which bin a number falls in.

Knows numbers only, not the tables that they come from. Times are numbers of seconds here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jointpmf.domain import MISSING, Variable
from jointpmf.errors import JointPMFError, check_size, float_array, listing, shown, text_of_count
from jointpmf.times import plain_time, seconds_of, texts_of_times, time_in

Cut = int | Sequence[Any]
"""How to cut a column: into how many bins, or at edges, which of times may be texts."""

Bins = Mapping[str, Cut] | int
"""How to cut: by column, or one number of bins for all columns of too many distinct numbers."""

_BYTES_PER_BIN = 1000
"""Memory that a bin takes while it is made, about: its label, its edges, and its value."""


def bins_by_name(bins: Bins | None, names: Sequence[str]) -> Mapping[str, Cut]:
    """Return how to cut each column that `bins` names, after checking that it exists."""
    is_number = isinstance(bins, (int, np.integer)) and not isinstance(bins, bool)
    if bins is None or (is_number and bins > 0):  # type: ignore[operator]
        return {}
    if not isinstance(bins, Mapping):
        raise JointPMFError(
            "bins must be a number, or map a column's name to a number of bins or to edges, "
            f"not {shown(bins)}"
        )
    for name in bins:
        if name not in names:
            raise JointPMFError(
                f"bins name {shown(name)}, which is no column; columns are {listing(names)}"
            )
    return bins


def binned_variable(
    name: str, numbers: np.ndarray, missing: np.ndarray, bins: Cut, time: str | None = None
) -> Variable:
    """Return the variable whose levels are a column's bins, each standing for its cells' mean.

    Parameters
    ----------
    name : str
        The column's name.
    numbers : array of float
        The column's observed cells: at least one, none of them NaN.
    missing : array of bool
        For every row of the column whether it is missing, so that messages can name a row.
    bins : int or edges
        Into how many parts of about equal count to cut, or where.
    time : str, optional
        Which kind of time the numbers are the seconds of.

    Examples
    --------
    >>> age = binned_variable("age", np.array([20.0, 30.0, 50.0]), np.zeros(3, bool), [0, 40, 80])
    >>> age.levels, age.values
    (('0..40', '40..80'), (25.0, 50.0))
    """
    if not np.isfinite(numbers).all():
        raise JointPMFError(f"column {name!r} cannot be binned: it holds infinite numbers")
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        if bins < 1:
            raise JointPMFError(f"column {name!r} needs at least one bin, not {bins}")
        check_size(_BYTES_PER_BIN * int(bins), f"{text_of_count(int(bins))} bins of {name!r}")
        edges = _edges_by_count(numbers, int(bins))
        if time is not None:  # cuts between days, hours or minutes, where no cell lies between
            step = next((s for s in (86400, 3600, 60, 1) if (numbers % s == 0).all()), 1e-6)
            edges = np.ceil(edges / step) * step
    else:
        edges = _given_edges(name, bins, time)
        check_inside(name, numbers, missing, edges, time)
    position = _bin_positions(numbers, edges)
    values = tuple(
        _bin_value(numbers[position == b], edges[b : b + 2]) for b in range(len(edges) - 1)
    )
    return Variable(name, _bin_labels(edges, time), values, tuple(edges), time)


def check_inside(
    name: str,
    numbers: np.ndarray,
    missing: np.ndarray,
    edges: Sequence[float] | np.ndarray,
    time: str | None = None,
    first_row: int = 0,
) -> None:
    """Raise, naming the first such row, if an observed number lies outside of all bins.

    Rows are counted from `first_row`.
    """
    outside = (numbers < edges[0]) | (numbers > edges[-1])
    if outside.any():
        first = outside.argmax()
        row = first_row + np.flatnonzero(~missing)[first]
        shown_ones = [numbers[first], edges[0], edges[-1]]
        cell, low, high = _texts(shown_ones, time, 6)
        raise JointPMFError(
            f"column {name!r} holds {cell} in row {row}, outside of its bins from {low} to {high}"
        )


def bin_codes(numbers: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    """Return the position of every number's bin, and MISSING outside of all bins."""
    inside = (numbers >= edges[0]) & (numbers <= edges[-1])
    return np.where(inside, _bin_positions(numbers, np.array(edges)), MISSING).astype(np.int32)


def _bin_positions(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


def _edges_by_count(numbers: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the edges of bins of about equal count, none of them empty."""
    numbers = np.sort(numbers)
    cuts = np.quantile(numbers, np.arange(1, n_bins) / n_bins)
    above_minimum = numbers[numbers > numbers[0]]
    if not len(above_minimum):
        return np.array([-np.inf, np.inf])
    cuts = np.where(cuts > numbers[0], cuts, above_minimum[0])
    _, cut_of_bin = np.unique(np.searchsorted(numbers, cuts), return_index=True)
    return np.concatenate([[-np.inf], cuts[cut_of_bin], [np.inf]])


def _given_edges(name: str, bins: Any, time: str | None) -> np.ndarray:
    try:
        listed = bins if time is None else [_seconds(e, time) for e in bins]
        edges = float_array(listed, "no edges")
    except (TypeError, ValueError):
        edges = np.array(np.nan)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        what = (
            "numbers" if time is None else f"of type {time}, or texts such as {_TIME_TEXTS[time]}"
        )
        raise JointPMFError(
            f"the edges of column {name!r} must increase and be {what}, not {shown(bins)}"
        )
    return edges


_TIME_TEXTS = {
    "date": "'2020-01-31'",
    "datetime": "'2020-01-31 12:30'",
    "time": "'12:30'",
    "duration": "'90' (seconds)",
}


def _seconds(edge: Any, time: str) -> float:
    """Return an edge between times, which may be a text, as seconds; infinity stays what it is."""
    if isinstance(edge, float) and np.isinf(edge):
        return edge
    if isinstance(edge, str):
        edge = time_in(edge, time)
    seconds = seconds_of(plain_time(edge), time)
    return np.nan if seconds is None else seconds


def _bin_value(cells: np.ndarray, edges: np.ndarray) -> float:
    """Return the mean of a bin's cells; for an empty bin, its middle or its finite end."""
    if len(cells):
        return float(cells.mean())
    finite = edges[np.isfinite(edges)]
    return float(finite.mean()) if len(finite) else 0.0


def _bin_labels(edges: np.ndarray, time: str | None) -> tuple[str, ...]:
    """Return a text for every bin, with enough digits to distinguish the edges."""
    digits = next((d for d in range(3, 17) if len({f"{e:.{d}g}" for e in edges}) == len(edges)), 17)
    text = _texts(edges, time, digits)
    labels = [f"{low}..{high}" for low, high in pairwise(text)]
    if np.isinf(edges[0]):
        labels[0] = f"<{text[1]}"
    if np.isinf(edges[-1]):
        labels[-1] = f">={text[-2]}"
    return ("all",) if np.isinf(edges).all() else tuple(labels)


def _texts(numbers: Iterable[float], time: str | None, digits: int) -> list[str]:
    if time is not None:
        return texts_of_times(numbers, time)
    return [f"{number:.{digits}g}" for number in numbers]
