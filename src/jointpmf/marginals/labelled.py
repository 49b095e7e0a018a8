"""A table with labels → what a `Marginal` is made of: an array, its entries, what is hidden."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from jointpmf.data.texts import level_for
from jointpmf.domain import Domain, Variable, text_of
from jointpmf.errors import JointPMFError, listing
from jointpmf.marginals.measurement import likely_given

ROUNDED = 0.01
"""How far, relatively, shares may be from summing to one or to 100: published ones were rounded."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A table with the labels of its entries.

    Attributes
    ----------
    name : str
        The table, for messages.
    names : tuple of str
        The variables of its axes.
    labels : tuple of lists
        What each entry of each axis is called.
    entries : tuple of lists
        What each entry of each axis stands for: a level, or a tuple of several.
    cells : array
        The numbers, NaN where they were not published.
    most : array
        What cells that were not published are known to be at most.
    totals : array
        The same with the totals as one more entry of each axis; NaN where there is none.
    is_percent, is_probability : bool
        Whether the cells say that they are percentages, or probabilities.
    noise : array or None
        The standard deviation of each cell, where the table has a column of them.
    """

    name: str
    names: tuple[str, ...]
    labels: tuple[list[Any], ...]
    entries: tuple[list[Any], ...]
    cells: np.ndarray
    most: np.ndarray
    totals: np.ndarray
    is_percent: bool
    is_probability: bool
    noise: np.ndarray | None = None

    def arguments(self, what: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to make a `Marginal` of, given what else is known of it."""
        given = what.get("given") or ()
        if isinstance(what.get("n_obs"), Mapping):
            what = {**what, "n_obs": self._by_label(what["n_obs"], given)}
        self._check_shares(given, what.get("n_obs"))
        if self.noise is not None:
            what = {**what, "noise": self.noise}
        found = {"names": self.names, "table": self.cells} | dict(what)
        has_holes = bool(np.isnan(self.cells).any())
        if has_holes and what.get("n_obs") is None:
            found |= self._from_totals(given)
        if has_holes and what.get("bounds") is None:
            found |= self._bounds(found.get("n_obs"))
        unit = 100.0 if self._are_percent(given) else 1.0
        if unit != 1:
            found["table"] = self.cells / unit
            for name in ("noise", "rounding"):
                if what.get(name) is not None:
                    found[name] = np.asarray(what[name], float)[()] / unit
        return found

    def is_counted(self, given: Sequence[str]) -> bool:
        """Tell whether the cells are counts, all of them published, of one sample."""
        total = float(self.cells.sum())
        are_shares = self.is_probability or self._are_percent(given) or abs(total - 1) <= ROUNDED
        return not given and total > 0 and not are_shares

    def _are_percent(self, given: Sequence[str]) -> bool:
        """Tell whether the cells are percentages, of everyone if no sign says so."""
        cells = np.nan_to_num(self.cells)
        is_near = abs(cells.sum() - 100) <= 100 * ROUNDED and not (cells % 1 == 0).all()
        return self.is_percent or (not given and is_near)

    def _by_label(self, n_obs: Mapping[Any, float], given: Sequence[str]) -> list[float]:
        """Return how many rows each slice stands for, in the order of the table's labels."""
        if len(given) != 1 or given[0] not in self.names:
            raise JointPMFError(f"n_obs by labels, of {self.name}, needs one variable in given")
        found = {text_of(label): count for label, count in n_obs.items()}
        labels = [text_of(label) for label in self.labels[self.names.index(given[0])]]
        odd = sorted(found.keys() ^ set(labels))
        if odd:
            raise JointPMFError(
                f"n_obs of {self.name} must have a number for each label of {given[0]!r}; "
                f"see {listing(odd)}"
            )
        return [found[label] for label in labels]

    def _check_shares(self, given: Sequence[str], n_obs: Any) -> None:
        """Refuse shares that are not of everyone, unless it is said of whom they are."""
        if given or n_obs is not None or np.isnan(self.cells).any():
            return
        axes = likely_given(self.cells)
        if axes:
            names = [self.names[k] for k in axes]
            raise JointPMFError(
                f"{self.name} looks like percentages within each level of {listing(names)}: "
                f"give given={names!r}, or n_obs if these are counts"
            )
        total, unit = float(self.cells.sum()), 100 if self.is_percent else 1
        is_share = (self.is_percent or self.is_probability) and total > 0
        if is_share and abs(total - unit) > unit * ROUNDED:
            what = "percentages" if self.is_percent else "probabilities"
            raise JointPMFError(
                f"the {what} in {self.name} sum to {total:g}, not to {unit}; if they are shares "
                "within levels of some variables, name these with given"
            )

    def _from_totals(self, given: Sequence[str]) -> dict[str, Any]:
        """Return how many rows each slice stands for, where the table's own totals say it.

        That is the total of all other axes, or else the sum of the totals of one of them.
        """
        if self.is_percent or self.is_probability:
            return {}
        others = [k for k, name in enumerate(self.names) if name not in given]
        for summed in ((), *combinations(others, len(others) - 1)):
            own = [slice(0, -1) for _ in self.names]
            for k in others:
                own[k] = slice(0, -1) if k in summed else slice(-1, None)
            totals = self.totals[tuple(own)].sum(axis=tuple(others))
            if not np.isnan(totals).any():
                return {"n_obs": totals if given else float(totals)}
        return {}

    def _bounds(self, n_obs: Any) -> dict[str, Any]:
        """Return what hidden counts are between, where the table says it of all of them."""
        most = float(self.most[np.isnan(self.cells)].max())
        if np.isinf(most) or (self.is_percent and np.ndim(n_obs)):
            return {}
        if self.is_percent:
            return {} if n_obs is None else {"bounds": (0.0, most / 100 * float(n_obs))}
        return {"bounds": (0.0, most)}

    def in_order(self, names: Sequence[str]) -> Labelled:
        """Return the same table with its axes in another order."""
        order = [self.names.index(name) for name in names]
        return replace(
            self,
            names=tuple(names),
            labels=tuple(self.labels[k] for k in order),
            entries=tuple(self.entries[k] for k in order),
            cells=self.cells.transpose(order),
            most=self.most.transpose(order),
            totals=self.totals.transpose(order),
            noise=None if self.noise is None else self.noise.transpose(order),
        )

    def in_domain(self, domain: Domain) -> Labelled:
        """Return the table with its entries as the levels of a domain, however they are spelled."""
        entries = []
        for name, own in zip(self.names, self.entries, strict=True):
            variable = domain[name]
            self._check_axis(variable, own, domain)
            entries.append([levels_of(variable, entry) for entry in own])
        return replace(self, entries=tuple(entries))

    def _check_axis(self, variable: Variable, own: list[Any], domain: Domain) -> None:
        """Raise if the labels of an axis are the levels of another variable."""
        labels = [label for entry in own for label in (entry if is_band(entry) else [entry])]
        if any(level_for(label, variable) is not None for label in labels):
            return
        for other in domain:
            if all(level_for(label, other) is not None for label in labels):
                raise JointPMFError(
                    f"the labels of {variable.name!r} in {self.name}, {listing(labels)}, are "
                    f"levels of {other.name!r}: give names in the order of the table's axes"
                )

    def filled(self, domain: Domain, kept: Collection[str]) -> np.ndarray:
        """Return the cells with an entry for every level, in order, except on the axes to keep.

        Levels that the table does not list are zero.
        """
        cells = self.cells
        for k, name in enumerate(self.names):
            if name not in kept:
                shape = list(cells.shape)
                shape[k] = domain[name].size
                whole = np.zeros(shape)
                codes = [domain[name].code(level) for level in self.entries[k]]
                whole.swapaxes(0, k)[codes] = cells.swapaxes(0, k)
                cells = whole
        return cells


def is_band(entry: Any) -> bool:
    """Tell whether an entry of an axis stands for several levels."""
    return isinstance(entry, (tuple, list, set, frozenset))


def levels_of(variable: Variable, entry: Any) -> Any:
    """Return the levels that an entry stands for, as the variable spells them."""
    if is_band(entry) and entry not in variable:
        return tuple(levels_of(variable, level) for level in entry)
    found = level_for(entry, variable)
    return variable.levels[variable.code(entry)] if found is None else found
