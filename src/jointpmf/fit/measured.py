"""Which cells of tables are known, as a text of a model file and back; not what is in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.marginals.measurement import Measurement

if TYPE_CHECKING:
    from jointpmf.domain import Domain


def measured_text(domain: Domain, tables: Iterable[Measurement]) -> str:
    """Return what tables are about, as JSON; levels are by their numbers (docs/format.md).

    Examples
    --------
    >>> import jointpmf as jp
    >>> domain = jp.Domain.of_sizes([2, 3], names=["vote", "age"])
    >>> table = jp.Marginal(["age"], [4, 6], levels={"age": [0, (1, 2)]}, where={"vote": 1})
    >>> measured_text(domain, [table.measured(domain, 1.0)])
    '[{"of": ["age"], "sets": {"age": [[0], [1, 2]]}, "where": {"vote": [1]}}]'
    """
    return json.dumps([_entry(domain, table) for table in tables], ensure_ascii=False)


def _entry(domain: Domain, table: Measurement) -> dict[str, Any]:
    names = [domain.names[n] for n in table.positions]
    sets = zip(names, table.sets, strict=True)
    is_open = np.isnan(np.zeros(()) if table.n_obs is None else table.n_obs)
    entry = {
        "sets": {name: _numbers(one) for name, one in sets if not _is_plain(one)},
        "where": {domain.names[n]: np.flatnonzero(mask).tolist() for n, mask in table.where},
        "given": [names[k] for k in table.given],
        "hidden": np.flatnonzero(np.isnan(table.counts)).tolist(),
        "open": np.flatnonzero(is_open).tolist(),
    }
    return {"of": names, **{key: one for key, one in entry.items() if one}}


def _is_plain(sets: np.ndarray) -> bool:
    return sets.shape[0] == sets.shape[1] and bool((sets == np.eye(len(sets), dtype=bool)).all())


def _numbers(sets: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(covered).tolist() for covered in sets]


def measured_tables(domain: Domain, entries: Iterable[Mapping[str, Any]]) -> list[Measurement]:
    """Return tables that show the same cells; all counts are zero.

    Examples
    --------
    >>> import jointpmf as jp
    >>> domain = jp.Domain.of_sizes([2, 3], names=["vote", "age"])
    >>> [table.positions for table in measured_tables(domain, [{"of": ["age", "vote"]}])]
    [(1, 0)]
    """
    return [_table(domain, entry) for entry in entries]


def _table(domain: Domain, entry: Mapping[str, Any]) -> Measurement:
    names = list(entry["of"])
    plain = {name: [[code] for code in range(domain[name].size)] for name in names}
    sets = plain | dict(entry.get("sets", {}))
    masks = tuple(_masks(domain, name, sets[name]) for name in names)
    where = [
        (domain.index(name), _masks(domain, name, [codes])[0])
        for name, codes in entry.get("where", {}).items()
    ]
    given = tuple(names.index(name) for name in entry.get("given", ()))
    counts = np.zeros(tuple(map(len, masks)))
    counts.flat[entry.get("hidden", [])] = np.nan
    n_obs = np.ones(tuple(counts.shape[k] for k in given))
    n_obs.flat[entry.get("open", [])] = np.nan
    positions = tuple(domain.indices(names))
    return Measurement(positions, masks, counts, tuple(where), given, n_obs)


def _masks(domain: Domain, name: str, sets: Iterable[Iterable[int]]) -> np.ndarray:
    """Return which levels each set has."""
    listed = [list(codes) for codes in sets]
    masks = np.zeros((len(listed), domain[name].size), bool)
    for mask, codes in zip(masks, listed, strict=True):
        mask[codes] = True
    return masks
