"""Model files: safetensors with the domain as JSON metadata. Nothing in a file is ever executed.

Tensors `weights` (rank,) and `factor.0`, `factor.1`, … (size, rank), float64. Metadata `format` =
"jointpmf", `version` = "1", `domain` = {"variables": [{"name", "levels", "values", "edges"}, …]},
in which a level that JSON does not have is a pair such as {"date": "2020-01-31"}, and an infinite
edge is the text "inf" or "-inf".
"""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jointpmf.domain import Domain, Variable
from jointpmf.errors import JointPMFError

FORMAT, VERSION = "jointpmf", "1"

FEASIBLE = 1e-9
"""How far sums in a file may be from one."""

TIMES: dict[str, Any] = {
    "datetime": datetime.datetime,  # before date, of which it is a kind
    "date": datetime.date,
    "time": datetime.time,
}


def write_model(
    path: str | os.PathLike[str], domain: Domain, weights: np.ndarray, factors: Sequence[np.ndarray]
) -> None:
    """Write a model; the file appears whole or not at all."""
    tensors = {"weights": np.ascontiguousarray(weights)}
    tensors |= {f"factor.{n}": np.ascontiguousarray(factor) for n, factor in enumerate(factors)}
    metadata = {"format": FORMAT, "version": VERSION, "domain": _domain_to_json(domain)}
    _write_atomically(Path(path), save(tensors, metadata))


def _write_atomically(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise JointPMFError(f"cannot write {path}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def read_model(
    path: str | os.PathLike[str],
) -> tuple[Domain, np.ndarray, list[np.ndarray]]:
    """Return the domain, weights and factors of a model file, all checked."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            domain = _domain_of(metadata, path)
            expected = {"weights", *(f"factor.{n}" for n in range(len(domain)))}
            if set(file.keys()) != expected:
                raise JointPMFError(f"{path} does not hold weights and a factor per variable")
            weights = file.get_tensor("weights")
            factors = [file.get_tensor(f"factor.{n}") for n in range(len(domain))]
    except OSError as error:
        raise JointPMFError(f"cannot read {path}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise JointPMFError(f"{path} is not a model file: {error}") from None
    for name, tensor in zip(("weights", *domain.names), (weights, *factors), strict=True):
        if tensor.dtype != np.float64 or not np.isfinite(tensor).all() or (tensor < 0).any():
            raise JointPMFError(f"{path} holds something else than probabilities for {name!r}")
        if (np.abs(tensor.sum(axis=0) - 1) > FEASIBLE).any():
            raise JointPMFError(f"the probabilities of {name!r} in {path} do not sum to one")
    return domain, weights, factors


def _domain_of(metadata: dict[str, str], path: str | os.PathLike[str]) -> Domain:
    if metadata.get("format") != FORMAT:
        raise JointPMFError(f"{path} is not a jointpmf model")
    if metadata.get("version") != VERSION:
        raise JointPMFError(
            f"{path} has format version {metadata.get('version')}; this library reads {VERSION}"
        )
    try:
        return _domain_from_json(metadata["domain"])
    except (KeyError, TypeError, ValueError) as error:
        raise JointPMFError(f"the domain in {path} cannot be read: {error}") from None


def _domain_to_json(domain: Domain) -> str:
    variables = [
        {
            "name": variable.name,
            "levels": [_level_to_json(variable.name, level) for level in variable.levels],
            "values": variable.values,
            "edges": None if variable.edges is None else list(map(_edge_to_json, variable.edges)),
        }
        for variable in domain
    ]
    return json.dumps({"variables": variables}, ensure_ascii=False, allow_nan=False)


def _domain_from_json(text: str) -> Domain:
    return Domain(
        [
            Variable(
                spec["name"],
                tuple(map(_level_from_json, spec["levels"])),
                spec["values"],
                None if spec["edges"] is None else tuple(map(float, spec["edges"])),
            )
            for spec in json.loads(text)["variables"]
        ]
    )


def _level_to_json(name: str, level: Any) -> Any:
    if isinstance(level, (str, bool, int, float)):
        return level
    for kind, time in TIMES.items():
        if isinstance(level, time):
            return {kind: level.isoformat()}
    raise JointPMFError(f"level {level!r} of {name!r} cannot be written to a file; use text")


def _level_from_json(level: Any) -> Any:
    if isinstance(level, dict):
        ((kind, text),) = level.items()
        return TIMES[kind].fromisoformat(text)
    return level


def _edge_to_json(edge: float) -> float | str:
    return edge if math.isfinite(edge) else str(edge)
