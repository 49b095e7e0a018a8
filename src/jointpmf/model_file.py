"""Model files: safetensors with the domain as JSON metadata. Nothing in a file is ever executed.

docs/format.md describes a file byte by byte. A file is written whole or not at all, and everything
in it is checked when it is read.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from jointpmf.components import checked_names
from jointpmf.domain import Domain, Variable
from jointpmf.errors import JointPMFError, shown
from jointpmf.output import PathLike, atomic_output
from jointpmf.tensor_file import Kind, TensorFile, file_bytes, in_one_line, read_tensors
from jointpmf.times import time_in
from jointpmf.trait_file import trait_models_in, trait_tensors, trait_text, without_traits

if TYPE_CHECKING:
    from jointpmf.traits import TraitModel

_MODEL = Kind("jointpmf", "1", "model file", ("domain", "about"))

_MODEL_SUM_TOLERANCE = 1e-9
"""How far sums in a file may be from one."""

_MICROSECOND = datetime.timedelta(microseconds=1)

_TIME_CLASSES: dict[str, Any] = {
    "datetime": datetime.datetime,  # before date, of which it is a kind
    "date": datetime.date,
    "time": datetime.time,
}


Model = tuple[Domain, np.ndarray, list[np.ndarray], tuple[str, ...] | None]
WithTraits = tuple[
    Domain, np.ndarray, list[np.ndarray], "tuple[str, ...] | None", "tuple[TraitModel, ...]"
]


class ModelFile(NamedTuple):
    """What a model file holds: the model as `JointPMF` takes it, and texts on how it was fitted."""

    domain: Domain
    weights: np.ndarray
    factors: list[np.ndarray]
    component_names: tuple[str, ...] | None
    trait_models: tuple[TraitModel, ...]
    about: dict[str, str]

    @property
    def model(self) -> WithTraits:
        """All of it but the texts."""
        return self[:-1]


def write_model(
    path: PathLike,
    domain: Domain,
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    about: Mapping[str, str] | None = None,
    component_names: Sequence[str] | None = None,
    trait_models: Sequence[TraitModel] = (),
) -> None:
    """Write a model; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Where to.
    domain, weights, factors, component_names, trait_models
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
    content = model_bytes(domain, weights, factors, about, component_names, trait_models)
    with atomic_output(path) as file:
        file.write(content)


def model_bytes(
    domain: Domain,
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    about: Mapping[str, str] | None = None,
    component_names: Sequence[str] | None = None,
    trait_models: Sequence[TraitModel] = (),
) -> bytes:
    """Return the content of a model file.

    Examples
    --------
    >>> coin = Domain([Variable("coin", ("heads", "tails"))])
    >>> len(model_bytes(coin, np.ones(1), [np.full((2, 1), 0.5)])) > 100
    True
    """
    texts = {
        "domain": domain_to_json(domain, component_names),
        "about": json.dumps(_checked_about(about or {}), ensure_ascii=False),
    }
    beside = trait_tensors(trait_models)
    return file_bytes(_MODEL, texts | trait_text(beside), model_tensors(weights, factors), beside)


def model_tensors(weights: np.ndarray, factors: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a model under the names that they have in a file."""
    return {"weights": weights, **{f"factor.{n}": factor for n, factor in enumerate(factors)}}


def _checked_about(about: Any) -> dict[str, str]:
    is_text = isinstance(about, Mapping) and all(
        isinstance(key, str) and isinstance(text, str) for key, text in about.items()
    )
    if not is_text:
        raise JointPMFError(f"what a file says about a model must be texts, not {shown(about)}")
    return dict(about)


def read_model(path: PathLike) -> WithTraits:
    """Return what a model file holds of a model, as `JointPMF` takes it, all checked.

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
    file, traits = without_traits(read_tensors(source, _MODEL))
    model = model_in(file)
    about = _about_of(file.metadata, file.name)
    file.check_unchanged(model_tensors(*model[1:3]))
    return ModelFile(*model, trait_models_in(file, traits, *model[:2]), about)


def model_in(file: TensorFile, beside: Sequence[str] = ()) -> Model:
    """Return the model in a file, checked; `beside` names the other tensors that it holds."""
    domain, spec = _domain_of(file.metadata, file.name)
    weights, factors = _checked_tensors(domain, file, beside)
    return domain, weights, factors, _names_of(spec, len(weights), file.name)


def _checked_tensors(
    domain: Domain, file: TensorFile, beside: Sequence[str]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return weights and factors that fit the domain and are probabilities."""
    name, tensors = file.name, file.tensors
    keys = ["weights", *(f"factor.{n}" for n in range(len(domain)))]
    if set(tensors) != {*keys, *beside}:
        also = f", and {' and '.join(beside)}" if beside else ""
        raise JointPMFError(f"{name} does not hold weights and a factor per variable{also}")
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
        if (np.abs(tensor.sum(axis=0) - 1) > _MODEL_SUM_TOLERANCE).any():
            raise JointPMFError(f"the probabilities of {what!r} in {name} do not sum to one")
    return tensors["weights"], [tensors[key] for key in keys[1:]]


def _domain_of(metadata: dict[str, str], name: PathLike) -> tuple[Domain, dict[str, Any]]:
    """Return the domain, and the JSON that it was read from."""
    try:
        spec = json.loads(metadata["domain"])
        return _domain_from_json(spec), spec
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise JointPMFError(f"the domain in {name} cannot be read: {in_one_line(error)}") from None


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
    for kind, time in _TIME_CLASSES.items():
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
    if kind == "date":
        return datetime.date.fromisoformat(content)
    time = time_in(content, kind) if kind in _TIME_CLASSES else None
    if time is None:
        raise ValueError(f"{shown(level)} is no level")
    return time


def _edge_to_json(edge: float) -> float | str:
    return edge if math.isfinite(edge) else str(edge)
