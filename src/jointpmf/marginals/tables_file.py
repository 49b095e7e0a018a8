"""`tables.toml`: a file that lists published tables, and what each of them is about.

It is checked by its JSON Schema, which comes with the package, so that the two cannot differ.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.output import reason_of

_WORDS = {
    "array": "a list",
    "boolean": "a boolean",
    "integer": "a whole number",
    "number": "a number",
    "object": "a table of keys",
    "string": "a text",
}
_JSON_TYPES: dict[str, Any] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}


@dataclass(frozen=True)
class TableEntry:
    """One table of a list: its file, how that is read, and what the table is about.

    Attributes
    ----------
    path : str
        The file.
    where_listed : str
        What to call it in messages, such as "table 2 of tables.toml"; empty for a file by itself.
    reading : mapping
        How the file is read: `sheet`, `skip`, `layout`, `names`, `value`.
    levels : mapping
        What labels stand for, as in `Marginal.from_frame`.
    what : mapping
        The other arguments of a `Marginal`.
    """

    path: str
    where_listed: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Any] = field(default_factory=dict)
    what: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableList:
    """Tables, the levels of variables as far as they were said, and what cannot happen."""

    tables: tuple[TableEntry, ...]
    variables: Mapping[str, list[Any]] = field(default_factory=dict)
    impossible: tuple[Mapping[str, Any], ...] = ()


def read_table_list(path: str) -> TableList:
    r"""Return what a `tables.toml` lists.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/tables.toml", "w") as file:
    ...         _ = file.write('version = 1\n[[tables]]\npath = "age.csv"\nrounding = 5\n')
    ...     read_table_list(f"{folder}/tables.toml").tables[0].what
    {'rounding': 5}
    """
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise JointPMFError(f"cannot read {path}: {reason_of(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JointPMFError(f"cannot read {path}: {' '.join(str(error).split())}") from None
    _check_version(content, path)
    _check(content, schema(), path)
    folder = os.path.dirname(path)
    tables = [
        _entry(table, folder, f"table {k} of {path}")
        for k, table in enumerate(content["tables"], 1)
    ]
    impossible = tuple(content.get("impossible", ()))
    return TableList(tuple(tables), content.get("variables", {}), impossible)


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of a `tables.toml`."""
    return json.loads(files("jointpmf.marginals").joinpath("tables.schema.json").read_text("utf-8"))


def _check_version(content: Mapping[str, Any], path: str) -> None:
    known = schema()["properties"]["version"]["const"]
    if "version" not in content:
        raise JointPMFError(f"{path} does not say its version: begin it with version = {known}")
    if content["version"] is not known:
        raise JointPMFError(
            f"{path} has version {shown(content['version'])}; this library reads {known}"
        )


def _entry(table: Mapping[str, Any], folder: str, where_listed: str) -> TableEntry:
    rest = dict(table)
    path = os.path.join(folder, rest.pop("path"))
    levels = rest.pop("levels", {})
    keys = ["sheet", "skip", "layout", "names", "value"]
    reading = {key: rest.pop(key) for key in keys if key in rest}
    return TableEntry(path, where_listed, reading, levels, rest)


def _check(part: Any, rules: Mapping[str, Any], where: str) -> None:
    """Raise if a part of a file is not as its schema says; `where` is what it is called."""
    types = rules.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(part, kind) for kind in types):
        wanted = " or ".join(_WORDS[kind] for kind in types)
        raise JointPMFError(f"{where} must be {wanted}, not {shown(part)}")
    if part not in rules.get("enum", [part]):
        raise JointPMFError(f"{where} must be one of {listing(rules['enum'])}, not {shown(part)}")
    if isinstance(part, dict):
        _check_object(part, rules, where)
    elif isinstance(part, list):
        if len(part) < rules.get("minItems", 0):
            raise JointPMFError(f"{where} must have at least {rules['minItems']} entries")
        for k, item in enumerate(part, 1):
            _check(item, rules.get("items", {}), _named(where, k))
    elif _is(part, "number"):
        _check_number(part, rules, where)


def _check_number(part: float, rules: Mapping[str, Any], where: str) -> None:
    if part < rules.get("minimum", part):
        raise JointPMFError(f"{where} must be at least {rules['minimum']}, not {part}")
    if "exclusiveMinimum" in rules and not part > rules["exclusiveMinimum"]:
        raise JointPMFError(f"{where} must be more than {rules['exclusiveMinimum']}, not {part}")


def _check_object(part: Mapping[str, Any], rules: Mapping[str, Any], where: str) -> None:
    known, others = rules.get("properties", {}), rules.get("additionalProperties", {})
    missing = [key for key in rules.get("required", ()) if key not in part]
    if missing:
        raise JointPMFError(f"{where} has no {missing[0]!r}")
    if len(part) < rules.get("minProperties", 0):
        raise JointPMFError(f"{where} is empty")
    for key, value in part.items():
        if key not in known and others is False:
            raise JointPMFError(
                f"{where} has the unknown key {key!r}; its keys are {', '.join(known)}"
            )
        _check(value, known.get(key, others), f"{key!r} of {where}")


def _is(part: Any, kind: str) -> bool:
    is_boolean = isinstance(part, bool)
    if is_boolean or kind == "boolean":
        return is_boolean and kind == "boolean"
    return isinstance(part, _JSON_TYPES[kind]) and part == part


def _named(where: str, k: int) -> str:
    """Return what an item of a list is called: "table 2 of …" where the list is the tables."""
    listed, _, rest = where.partition(" of ")
    return f"table {k} of {rest}" if listed == "'tables'" else f"entry {k} of {where}"
