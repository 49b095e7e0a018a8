"""Published tables, as files of counts or probabilities → a `MarginalSet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from jointpmf.data.grid_files import read_grid
from jointpmf.data.texts import typed_texts
from jointpmf.domain import Domain, Variable, number_in, text_of
from jointpmf.errors import JointPMFError, listing
from jointpmf.marginals.labelled import Labelled, is_band, levels_of
from jointpmf.marginals.layout import cells_of_grid
from jointpmf.marginals.marginal import Marginal
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.marginals.reading import labelled
from jointpmf.marginals.tables_file import TableEntry, TableList, read_table_list


def read_marginals(
    paths: Sequence[str], missing: Iterable[str] = (), domain: Domain | None = None
) -> MarginalSet:
    """Return the marginals in files: long or wide tables, or a `tables.toml` that lists some.

    Levels are the union of all tables' unless they are listed: numbers in their order, texts in
    that of their appearance. Cells that a table does not list are zero.

    Parameters
    ----------
    paths : sequence of str
        The files.
    missing : iterable of str
        More texts that mean that a cell was not published.
    domain : Domain, optional
        What can happen, as of a model; the set is over those of its variables that tables have.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = {"sex": ["f", "m"], "vote": ["no", "yes"], "count": [3, 1]}
    ...     _ = pl.DataFrame(rows).write_csv(f"{folder}/t.csv")
    ...     read_marginals([f"{folder}/t.csv"])[0].table.tolist()
    [[0.75, 0.0], [0.0, 0.25]]
    """
    lists = [
        read_table_list(path) if path.endswith(".toml") else TableList((TableEntry(path),))
        for path in paths
    ]
    listed: dict[str, Sequence[Any]] = {}
    for each in lists:
        listed |= each.variables
    listed |= {variable.name: variable.levels for variable in domain or ()}
    entries = [entry for each in lists for entry in each.tables]
    tables = [_Read.of(entry, tuple(missing), listed) for entry in entries]
    domain = _domain(tables, listed) if domain is None else _own_domain(tables, domain)
    marginals = [table.marginal(domain) for table in tables]
    impossible = [
        _in_domain(cell, domain, "impossible") for each in lists for cell in each.impossible
    ]
    return MarginalSet(domain, marginals, impossible=impossible)


@dataclass(frozen=True, eq=False)
class _Read:
    """A table as it was read, and what is said of it."""

    entry: TableEntry
    table: Labelled
    what: Mapping[str, Any]

    @classmethod
    def of(
        cls, entry: TableEntry, missing: tuple[str, ...], listed: Mapping[str, Sequence[Any]]
    ) -> _Read:
        """Return the table in a file."""
        with _named(entry.where_listed):
            how = dict(entry.reading)
            file = {key: how.pop(key) for key in ("sheet", "skip") if key in how}
            what = dict(entry.what)
            if isinstance(what.get("noise"), str):
                how["noise"] = what.pop("noise")
            cells = cells_of_grid(read_grid(entry.path, missing=missing, **file), **how)
            table = labelled(cells, entry.levels, what, missing, listed)
            return cls(entry, table, what)

    def texts(self, name: str) -> list[str]:
        """Return the levels of a variable that the table has, as texts."""
        entries = self.table.entries[self.table.names.index(name)]
        return [text_of(level) for e in entries for level in (e if is_band(e) else [e])]

    def banded(self, name: str) -> set[str]:
        """Return those that are in bands."""
        entries = self.table.entries[self.table.names.index(name)]
        return {text_of(level) for e in entries if is_band(e) for level in e}

    def marginal(self, domain: Domain) -> Marginal:
        """Return the marginal, in the levels of a domain."""
        with _named(self.entry.where_listed):
            table, what = self.table.in_domain(domain), dict(self.what)
            if "where" in what:
                what["where"] = _in_domain(what["where"], domain, "where")
            kept = {*self.entry.levels, *what.get("given", ()), *what.get("where", ())}
            if table.noise is not None:
                kept |= set(table.names)  # there is no noise of cells that are not listed
            found = table.arguments(what)
            cells = replace(table, cells=found["table"]).filled(domain, kept)
            if table.is_counted(what.get("given", ())) and not {"noise", "n_obs"} & found.keys():
                found["n_obs"] = float(cells.sum())
            entries = dict(zip(table.names, table.entries, strict=True))
            levels = {name: entries[name] for name in table.names if name in kept}
            return Marginal(**(found | {"table": cells, "levels": levels}))


@contextmanager
def _named(where_listed: str) -> Iterator[None]:
    """Say in an error which table of a list it is about."""
    try:
        yield
    except JointPMFError as error:
        if not where_listed:
            raise
        raise JointPMFError(f"{where_listed}: {error}") from None


def _domain(tables: Sequence[_Read], listed: Mapping[str, Sequence[Any]]) -> Domain:
    """Return all variables: with their levels as listed, or else with those of all tables."""
    names = dict.fromkeys([*listed, *(name for each in tables for name in each.table.names)])
    return Domain(
        [
            Variable(name, listed[name]) if name in listed else _learned_variable(name, tables)
            for name in names
        ]
    )


def _own_domain(tables: Sequence[_Read], domain: Domain) -> Domain:
    """Return the variables of a domain that tables are about."""
    about = {name for each in tables for name in (*each.table.names, *each.what.get("where", ()))}
    for each in tables:
        unknown = [name for name in each.table.names if name not in domain]
        if unknown:
            raise JointPMFError(
                f"{each.table.name} is about {listing(unknown)}, but the model's variables are "
                f"{listing(domain.names)}"
            )
    return domain.project([name for name in domain.names if name in about])


def _learned_variable(name: str, tables: Sequence[_Read]) -> Variable:
    """Return a variable with all levels that tables have: numbers in order, texts as they come."""
    own = [each for each in tables if name in each.table.names]
    texts = [each.texts(name) for each in own]
    for k, each in enumerate(own):
        others = [other for n, other in enumerate(texts) if n != k]
        _check_known(name, each, {_key(text) for other in others for text in other})
        if others and not {_key(t) for t in texts[k]} & {_key(t) for o in others for t in o}:
            second = own[0 if k else 1]
            raise JointPMFError(
                f"{name!r} has no level in common in {each.table.name} ({listing(texts[k], 3)}) "
                f"and {second.table.name} ({listing(second.texts(name), 3)}): if these are bands, "
                "say in a tables.toml with levels what they cover; if axes are exchanged, name "
                "them in order with names"
            )
    distinct = list(dict.fromkeys(text for each in texts for text in each))
    levels = typed_texts(distinct)
    return Variable(name, levels if levels == distinct else sorted(levels))


def _check_known(name: str, table: _Read, others: set[Any]) -> None:
    """Raise if a band covers a level that no other table has: it is misspelled, or not listed."""
    unknown = [text for text in table.banded(name) if _key(text) not in others]
    if unknown:
        with _named(table.entry.where_listed):
            raise JointPMFError(
                f"levels of {name!r} name {listing(sorted(unknown))}, which no other table has; "
                "list the levels of the variable in [variables]"
            )


def _key(text: str) -> Any:
    """Return what texts of the same level share: a number, or the text itself."""
    number = number_in(text)
    return text if number is None else number


def _in_domain(cell: Mapping[str, Any], domain: Domain, what: str) -> dict[str, Any]:
    """Return levels by variable, as a domain spells them."""
    unknown = [name for name in cell if name not in domain]
    if unknown:
        raise JointPMFError(
            f"{what} names {listing(unknown)}, but the variables are {listing(domain.names)}"
        )
    return {name: levels_of(domain[name], levels) for name, levels in cell.items()}
