"""Cells by their labels, of a frame or a file → a table with labels and without totals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jointpmf.data.columns import grid_of
from jointpmf.data.printed import printed_numbers
from jointpmf.domain import Domain, checked_domain, name_list, text_of
from jointpmf.errors import (
    JointPMFError,
    at_least_zero,
    float_array,
    items_of,
    listing,
    mapping,
    shown,
)
from jointpmf.marginals.labelled import Labelled, is_band
from jointpmf.marginals.layout import CellList, cells_of_grid, is_total
from jointpmf.marginals.totals import check_totals, without_sums

_TOTAL = object()
"""The label of a total, on any axis."""


def arguments_of_frame(
    frame: Any,
    names: Sequence[str] | None,
    value: str | None,
    domain: Domain | None,
    what: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what to make a `Marginal` of, from a frame of any library.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": ["young", "old", "Total"], "no": [3, 4, 7], "yes": [1, 2, 3]})
    >>> found = arguments_of_frame(frame, ["age", "vote"], None, None, {})
    >>> found["table"].tolist(), found["levels"]
    ([[3.0, 1.0], [4.0, 2.0]], {'age': ['young', 'old'], 'vote': ['no', 'yes']})
    """
    if domain is not None:
        checked_domain(domain)
    levels = {} if what.get("levels") is None else mapping(what["levels"], "levels")
    other = _checked({key: part for key, part in what.items() if key != "levels"})
    noise = other.pop("noise") if isinstance(other.get("noise"), str) else None
    cells = cells_of_grid(grid_of(frame), names, value, noise=noise)
    known = {name: domain[name].levels for name in cells.names} if domain is not None else {}
    table = labelled(cells, levels, other, known=known)
    if names is not None and set(names) == set(table.names):
        table = table.in_order(names)
    if domain is not None:
        table = table.in_domain(domain)
    entries = dict(zip(table.names, table.entries, strict=True))
    return table.arguments(other) | {"levels": entries}


def labelled(
    cells: CellList,
    levels: Mapping[str, Any],
    what: Mapping[str, Any],
    missing: Iterable[str] = (),
    known: Mapping[str, Iterable[Any]] | None = None,
) -> Labelled:
    """Return a table from its cells, without its totals.

    Parameters
    ----------
    cells : CellList
        The cells.
    levels : mapping of names to mappings or lists
        What labels stand for, where that is not a level of the same name: a mapping from labels to
        levels; or a list of the labels to use, the others are left out.
    what : mapping
        What else is known: `given`, `n_obs` and `rounding`.
    missing : iterable of str
        More texts that mean that a cell was not published.
    known : mapping of names to levels, optional
        Levels that are known, and so are no totals whatever they are called.
    """
    meanings = {name: _meanings(cells, name, levels[name]) for name in _known(cells, levels)}
    own = {name: {text_of(level) for level in levels} for name, levels in (known or {}).items()}
    own |= {name: set(labels) for name, labels in meanings.items()}
    cells = _used(cells, meanings)
    if not cells.labels:
        raise JointPMFError(f"{cells.name} has no cell that is to be used")
    cells = _with_totals(cells, own)
    axes = [_axis(cells, k) for k in range(len(cells.names))]
    table = _array(cells, axes, missing)
    check_totals(table, what)
    for k in range(len(table.names)):
        table = without_sums(table, k, what, own.get(table.names[k], ()))
    entries = [
        [meanings.get(name, {}).get(text_of(label), label) for label in labels]
        for name, labels in zip(table.names, table.labels, strict=True)
    ]
    return replace(table, entries=tuple(entries))


def _checked(what: dict[str, Any]) -> dict[str, Any]:
    """Return what else is known of a table, where totals are compared with it in one form."""
    found = {key: part for key, part in what.items() if part is not None}
    if "given" in found:
        found["given"] = name_list(found["given"])
    if "rounding" in found:
        found["rounding"] = at_least_zero(found["rounding"], "rounding")
    if "n_obs" in found and not isinstance(found["n_obs"], Mapping):
        otherwise = "n_obs must be a number, or one for each slice"
        found["n_obs"] = float_array(found["n_obs"], otherwise)[()]
    return found


def _known(cells: CellList, levels: Mapping[str, Any]) -> list[str]:
    unknown = [name for name in levels if name not in cells.names]
    if unknown:
        raise JointPMFError(
            f"levels of {cells.name} name {listing(unknown)}, which is none of its variables "
            f"{listing(cells.names)}"
        )
    return list(levels)


def _meanings(cells: CellList, name: str, levels: Any) -> dict[str, Any]:
    """Return what each label, as text, of a variable stands for, if it is listed."""
    k = cells.names.index(name)
    labels = {text_of(each[k]): each[k] for each in cells.labels}
    if not isinstance(levels, Mapping):
        levels = items_of(levels, f"levels of {name!r} in {cells.name} must be a list")
        if any(map(is_band, levels)):
            raise JointPMFError(
                f"levels of {name!r} in {cells.name} must be a mapping from the table's labels, "
                f"such as {{{shown(next(iter(labels)))}: [...]}}: tables are read by labels, not "
                "by position"
            )
        levels = {label: label for label in levels}
    else:
        others = {label: label for text, label in labels.items() if not is_total(text)}
        levels = others | {labels.get(text_of(x).strip(), x): levels[x] for x in levels}
    found = {text_of(label).strip(): entry for label, entry in levels.items()}
    absent = [label for label in found if label not in labels]
    if absent:
        raise JointPMFError(
            f"levels of {name!r} in {cells.name} name {listing(absent)}, which is none of its "
            f"labels {listing(labels)}"
        )
    return {label: tuple(entry) if is_band(entry) else entry for label, entry in found.items()}


def _used(cells: CellList, meanings: Mapping[str, Mapping[str, Any]]) -> CellList:
    """Return the cells whose labels are among those that are to be used, or totals."""
    if not meanings:
        return cells
    kept = [
        k
        for k, labels in enumerate(cells.labels)
        if all(
            name not in meanings or text_of(label) in meanings[name] or is_total(label)
            for name, label in zip(cells.names, labels, strict=True)
        )
    ]
    return replace(
        cells,
        labels=[cells.labels[k] for k in kept],
        numbers=[cells.numbers[k] for k in kept],
        noise=None if cells.noise is None else [cells.noise[k] for k in kept],
    )


def _with_totals(cells: CellList, own: Mapping[str, Collection[str]]) -> CellList:
    """Return cells with one and the same label for all totals; beside it, also for empty ones."""
    totals = [
        {x for x in dict.fromkeys(labels) if is_total(x) and text_of(x) not in own.get(name, ())}
        for name, labels in zip(cells.names, zip(*cells.labels, strict=True), strict=True)
    ]
    if not any(totals):
        return cells
    labels = []
    for each in cells.labels:
        is_one = [label in found for label, found in zip(each, totals, strict=True)]
        blanks = (None, "") if any(is_one) else ()
        labels.append(
            tuple(
                _TOTAL if one or label in blanks else label
                for label, one in zip(each, is_one, strict=True)
            )
        )
    return replace(cells, labels=labels)


def _axis(cells: CellList, k: int) -> list[Any]:
    """Return the labels of an axis, in the order of their appearance."""
    labels = list(dict.fromkeys(each[k] for each in cells.labels if each[k] is not _TOTAL))
    if not labels:
        raise JointPMFError(f"{cells.name} has only totals of {cells.names[k]!r}")
    texts = [text_of(label) for label in labels]
    if len(set(texts)) < len(texts):
        twice = next(text for n, text in enumerate(texts) if text in texts[:n])
        raise JointPMFError(f"{cells.name} has the label {twice!r} of {cells.names[k]!r} twice")
    return labels


def _array(cells: CellList, axes: list[list[Any]], missing: Iterable[str]) -> Labelled:
    """Return all cells as an array whose last entry, on each axis, is the total."""
    printed = printed_numbers(cells.numbers, cells.place, missing)
    code_of = [{label: code for code, label in enumerate([*axis, _TOTAL])} for axis in axes]
    shape = [len(codes) for codes in code_of]
    place = tuple(
        np.array([codes[each[k]] for each in cells.labels]) for k, codes in enumerate(code_of)
    )
    flat = np.ravel_multi_index(place, shape)
    if len(np.unique(flat)) < len(flat):
        first = np.unique(flat, return_index=True)[1]
        again = min(set(range(len(flat))) - set(first.tolist()))
        raise JointPMFError(f"{cells.name} lists a cell twice: {cells.place(again)}")
    whole = np.full(shape, np.nan)
    inner = tuple(slice(0, -1) for _ in axes)
    whole[inner] = 0.0
    whole.flat[flat] = printed.values
    most = np.full(shape, np.inf)
    is_whole = bool((np.nan_to_num(printed.values) % 1 == 0).all())
    step = 1.0 if is_whole and not printed.is_percent else 0.0
    most.flat[flat] = np.minimum(printed.below - step, printed.at_most)
    if np.isnan(whole[inner]).all():
        raise JointPMFError(f"all cells of {cells.name} are suppressed")
    noise = None if cells.noise is None else _noise(cells, whole[inner], flat, missing)
    return Labelled(
        cells.name,
        cells.names,
        tuple(axes),
        tuple(axes),
        whole[inner],
        most[inner],
        whole,
        printed.is_percent,
        cells.measure.lower() in ("probability", "proportion"),
        noise,
    )


def _noise(
    cells: CellList, table: np.ndarray, flat: np.ndarray, missing: Iterable[str]
) -> np.ndarray:
    """Return the standard deviation of each cell; of one that was not published, any."""
    noise = np.full([size + 1 for size in table.shape], np.nan)
    noise.flat[flat] = printed_numbers(cells.noise or (), cells.place, missing).values
    noise = noise[tuple(slice(0, -1) for _ in table.shape)]
    if (np.isnan(noise) & ~np.isnan(table)).any():
        raise JointPMFError(f"{cells.name} has a cell without noise, or does not list all cells")
    return np.where(np.isnan(table), np.nanmax(noise), noise)
