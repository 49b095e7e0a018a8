"""Model files: safetensors with the domain as JSON metadata. Nothing in a file is ever executed.

docs/format.md describes a file byte by byte. A file is written whole or not at all, and everything
in it is checked when it is read.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_in
from safetensors.numpy import save

from jointpmf.components import checked_names
from jointpmf.domain import Domain, Variable
from jointpmf.errors import JointPMFError, shown
from jointpmf.output import PathLike, atomic_output, reason_of

_FORMAT, _VERSION = "jointpmf", "1"

_FEASIBLE = 1e-9
"""How far sums in a file may be from one."""

_MAX_HEADER = 100_000_000
"""The longest header, in bytes; safetensors has the same limit."""

_READ_AT_ONCE = 2**24
"""Bytes read at a time, so that a false size in a header allocates no memory."""

_MICROSECOND = datetime.timedelta(microseconds=1)

_TIMES: dict[str, Any] = {
    "datetime": datetime.datetime,  # before date, of which it is a kind
    "date": datetime.date,
    "time": datetime.time,
}


_Model = tuple[Domain, np.ndarray, list[np.ndarray], tuple[str, ...] | None]


class ModelFile(NamedTuple):
    """What a model file holds: the model as `JointPMF` takes it, and texts on how it was fitted."""

    domain: Domain
    weights: np.ndarray
    factors: list[np.ndarray]
    component_names: tuple[str, ...] | None
    about: dict[str, str]

    @property
    def model(self) -> _Model:
        """All of it but the texts."""
        return self[:-1]


def write_model(
    path: PathLike,
    domain: Domain,
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    about: Mapping[str, str] | None = None,
    component_names: Sequence[str] | None = None,
) -> None:
    """Write a model; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Where to.
    domain, weights, factors, component_names
        The model, as in `JointPMF`.
    about : mapping of str to str, optional
        How it was fitted, for people; `read_about` reads it.

    Examples
    --------
    >>> import tempfile
    >>> domain = Domain([Variable("coin", ("heads", "tails"))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     write_model(path, domain, np.ones(1), [np.full((2, 1), 0.5)], {"method": "guess"})
    ...     read_about(path)
    {'method': 'guess'}
    """
    content = model_bytes(domain, weights, factors, about, component_names)
    with atomic_output(path) as file:
        file.write(content)


def model_bytes(
    domain: Domain,
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    about: Mapping[str, str] | None = None,
    component_names: Sequence[str] | None = None,
) -> bytes:
    """Return the content of a model file.

    Examples
    --------
    >>> coin = Domain([Variable("coin", ("heads", "tails"))])
    >>> len(model_bytes(coin, np.ones(1), [np.full((2, 1), 0.5)])) > 100
    True
    """
    tensors = {"weights": np.ascontiguousarray(weights)}
    tensors |= {f"factor.{n}": np.ascontiguousarray(factor) for n, factor in enumerate(factors)}
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "domain": domain_to_json(domain, component_names),
        "about": json.dumps(_checked_about(about or {}), ensure_ascii=False),
    }
    metadata["checksum"] = _checksum(metadata, tensors)
    return with_header(*header_and_numbers(save(tensors, metadata)))


def header_and_numbers(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and the bytes of its numbers."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def with_header(header: Mapping[str, Any], numbers: bytes) -> bytes:
    """Return a safetensors file; its header is sorted, so that equal models give equal bytes."""
    text = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin where a float64 may
    return len(text).to_bytes(8, "little") + text + numbers


def _checked_about(about: Any) -> dict[str, str]:
    is_text = isinstance(about, Mapping) and all(
        isinstance(key, str) and isinstance(text, str) for key, text in about.items()
    )
    if not is_text:
        raise JointPMFError(f"what a file says about a model must be texts, not {shown(about)}")
    return dict(about)


def _checksum(metadata: Mapping[str, str], tensors: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of everything in the file, in an order of its own."""
    digest = hashlib.sha256()
    for text in (metadata["domain"], metadata["about"]):
        digest.update(hashlib.sha256(text.encode()).digest())
    for name in ("weights", *(f"factor.{n}" for n in range(len(tensors) - 1))):
        digest.update(np.ascontiguousarray(tensors[name], "<f8").tobytes())
    return digest.hexdigest()


def read_model(path: PathLike) -> _Model:
    """Return the domain, weights, factors and component names of a model file, all checked.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     write_model(path, Domain([Variable("one", (1,))]), np.ones(1), [np.ones((1, 1))])
    ...     read_model(path)[0].names
    ('one',)
    """
    return read_model_file(path).model


def read_about(path: PathLike) -> dict[str, str]:
    """Return what a model file says about how the model was fitted: texts by topic, or nothing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     write_model(path, Domain([Variable("one", (1,))]), np.ones(1), [np.ones((1, 1))])
    ...     read_about(path)
    {}
    """
    return read_model_file(path).about


def read_model_file(source: PathLike | BinaryIO) -> ModelFile:
    """Return all that a model file holds, checked; `source` is a path or an open binary file.

    Examples
    --------
    >>> import io
    >>> coin = Domain([Variable("coin", ("heads", "tails"))])
    >>> content = model_bytes(coin, np.ones(1), [np.full((2, 1), 0.5)], {"rows": "8"})
    >>> read_model_file(io.BytesIO(content)).about
    {'rows': '8'}
    """
    if not isinstance(source, (str, os.PathLike)):
        return _parsed(_content_of(source, "the input"), "the input")
    try:
        with open(source, "rb") as file:
            content = _content_of(file, source)
    except JointPMFError:
        raise
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise JointPMFError(f"cannot read {source}: {reason_of(error)}") from None
    return _parsed(content, source)


def _content_of(file: BinaryIO, name: PathLike) -> bytes:
    """Return the bytes of a model file, as many as its header claims or fewer."""
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or not 2 <= length <= _MAX_HEADER:
        raise JointPMFError(f"{name} is not a model file: it does not begin with a header")
    header = _read(file, length)
    end = _claimed_end(_header_of(header, name))
    in_file = _size_of(file)
    if end is None or (in_file is not None and in_file != 8 + length + end):
        raise JointPMFError(
            f"{name} is not a whole model file: its header and its length contradict each other"
        )
    return prefix + header + _read(file, end + 1)  # a byte more, to notice what should not be there


def _header_of(header: bytes, name: PathLike) -> dict[str, Any]:
    try:
        found = json.loads(header)
    except (ValueError, RecursionError):
        raise JointPMFError(f"{name} is not a model file: its header is not JSON") from None
    if not isinstance(found, dict):
        raise JointPMFError(f"{name} is not a model file: its header is not a JSON object")
    return found


def _claimed_end(header: dict[str, Any]) -> int | None:
    """Return where the last tensor ends, by the header; None if that makes no sense."""
    try:
        ends = [spec["data_offsets"][1] for name, spec in header.items() if name != "__metadata__"]
    except (KeyError, IndexError, TypeError):
        return None
    return max(ends) if ends and all(isinstance(end, int) and end >= 0 for end in ends) else None


def _size_of(file: BinaryIO) -> int | None:
    """Return the length of a file on disk; None for a pipe, which has none."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _read(file: BinaryIO, count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0 and (part := file.read(min(count, _READ_AT_ONCE))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _parsed(content: bytes, name: PathLike) -> ModelFile:
    try:
        tensors = tensors_in(content)
    except SafetensorError as error:
        raise JointPMFError(f"{name} is not a model file: {_in_one_line(error)}") from None
    except (AttributeError, KeyError, TypeError, ValueError):  # a type that numpy does not have
        raise JointPMFError(f"{name} holds something else than float64 numbers") from None
    metadata = _metadata_of(content, name)
    domain, spec = _domain_of(metadata, name)
    weights, factors = _checked_tensors(domain, tensors, name)
    names = _names_of(spec, len(weights), name)
    about = _about_of(metadata, name)
    if metadata.get("checksum") != _checksum(metadata, tensors):
        raise JointPMFError(f"{name} was changed after it was written: its checksum is another")
    return ModelFile(domain, weights, factors, names, about)


def _metadata_of(content: bytes, name: PathLike) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    metadata = _header_of(content[8 : 8 + length], name).get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise JointPMFError(f"{name} is not a jointpmf model")
    if metadata.get("version") != _VERSION:
        raise JointPMFError(
            f"{name} has format version {shown(metadata.get('version'))}; "
            f"this library reads {_VERSION!r}"
        )
    return metadata


def _checked_tensors(
    domain: Domain, tensors: dict[str, np.ndarray], name: PathLike
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return weights and factors that fit the domain and are probabilities."""
    keys = ["weights", *(f"factor.{n}" for n in range(len(domain)))]
    if set(tensors) != set(keys):
        raise JointPMFError(f"{name} does not hold weights and a factor per variable")
    rank = len(tensors["weights"]) if tensors["weights"].ndim else 0
    shapes = [(rank,), *((size, rank) for size in domain.sizes)]
    for key, what, shape in zip(keys, ("weights", *domain.names), shapes, strict=True):
        tensor = tensors[key]
        if tensor.shape != shape or rank == 0:
            raise JointPMFError(
                f"the probabilities of {what!r} in {name} have shape {tensor.shape}, "
                f"not {shape if rank else '(rank,)'}"
            )
        if tensor.dtype != np.float64 or not np.isfinite(tensor).all() or (tensor < 0).any():
            raise JointPMFError(f"{name} holds something else than probabilities for {what!r}")
        if (np.abs(tensor.sum(axis=0) - 1) > _FEASIBLE).any():
            raise JointPMFError(f"the probabilities of {what!r} in {name} do not sum to one")
    return tensors["weights"], [tensors[key] for key in keys[1:]]


def _domain_of(metadata: dict[str, str], name: PathLike) -> tuple[Domain, dict[str, Any]]:
    """Return the domain, and the JSON that it was read from."""
    try:
        spec = json.loads(metadata["domain"])
        return _domain_from_json(spec), spec
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise JointPMFError(f"the domain in {name} cannot be read: {_in_one_line(error)}") from None


def _names_of(spec: dict[str, Any], rank: int, name: PathLike) -> tuple[str, ...] | None:
    try:
        return checked_names(spec.get("components"), rank)
    except JointPMFError as error:
        raise JointPMFError(f"the components in {name} cannot be read: {error}") from None


def _about_of(metadata: dict[str, str], name: PathLike) -> dict[str, str]:
    try:
        return _checked_about(json.loads(metadata["about"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise JointPMFError(f"what {name} says about its model cannot be read") from None


def _in_one_line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is not there"
    return " ".join(str(error).split()) or type(error).__name__


def domain_to_json(domain: Domain, component_names: Sequence[str] | None = None) -> str:
    """Return a domain, with the components' names if they have any, as a model file holds it.

    Examples
    --------
    >>> domain_to_json(Domain([Variable("vote", ("no", "yes"))]))
    '{"variables": [{"name": "vote", "levels": ["no", "yes"], "values": null, "edges": null}]}'
    """
    variables = [
        {
            "name": variable.name,
            "levels": [_level_to_json(variable.name, level) for level in variable.levels],
            "values": variable.values,
            "edges": None if variable.edges is None else list(map(_edge_to_json, variable.edges)),
            **({} if variable.time is None else {"time": variable.time}),
        }
        for variable in domain
    ]
    spec: dict[str, Any] = {"variables": variables}
    if component_names is not None:
        spec["components"] = list(component_names)
    text = json.dumps(spec, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise JointPMFError("a name or a level holds text that is not Unicode") from None
    return text


def _domain_from_json(found: dict[str, Any]) -> Domain:
    return Domain(
        [
            Variable(
                spec["name"],
                tuple(map(_level_from_json, spec["levels"])),
                spec["values"],
                None if spec["edges"] is None else tuple(map(float, spec["edges"])),
                spec.get("time"),
            )
            for spec in found["variables"]
        ]
    )


def _level_to_json(name: str, level: Any) -> Any:
    if isinstance(level, (str, bool, int, float)):
        return level
    if isinstance(level, datetime.timedelta):
        return {"microseconds": level // _MICROSECOND}
    if isinstance(level, Decimal):
        return {"decimal": str(level)}
    for kind, time in _TIMES.items():
        if isinstance(level, time):
            return {kind: level.isoformat()}
    raise JointPMFError(f"level {shown(level)} of {name!r} cannot be written to a file; use text")


def _level_from_json(level: Any) -> Any:
    if not isinstance(level, dict):
        return level
    ((kind, content),) = level.items()
    if kind == "microseconds":
        return content * _MICROSECOND
    if kind == "decimal":
        return Decimal(content)
    return _TIMES[kind].fromisoformat(content)


def _edge_to_json(edge: float) -> float | str:
    return edge if math.isfinite(edge) else str(edge)
