"""Replicates in a file, beside the model that they are of; docs/format.md describes it.

The model keeps its bits. Replicates are halved to float32, which is far finer than what they tell,
and their columns are made to sum to one again when they are read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.model_file import domain_to_json, model_in, model_tensors
from jointpmf.output import PathLike, atomic_output
from jointpmf.pmf import JointPMF
from jointpmf.point import Point, columns_of_one
from jointpmf.probabilities import SUM_TOLERANCE
from jointpmf.tensor_file import Kind, TensorFile, file_bytes, format_of, read_tensors

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.judge.uncertainty import Uncertainty

_REPLICATES = Kind("jointpmf replicates", "1", "file of replicates", ("domain", "resampling"))

_BESIDE = (
    "reference.weights",
    "reference.factors",
    "replicates.weights",
    "replicates.factors",
    "is_clear",
)
"""What the file holds besides the model, in the order of its checksum."""

FEWEST = 2
"""Replicates that tell anything."""


class Replicates(NamedTuple):
    """What a file of replicates holds: the fields of an `Uncertainty`."""

    pmf: JointPMF
    weights: np.ndarray
    factors: np.ndarray
    is_clear: np.ndarray
    reference: JointPMF
    resampling: str


def replicates_path(model: PathLike) -> Path:
    """Return where the replicates of a model file lie: beside it.

    Examples
    --------
    >>> replicates_path("survey.safetensors").name
    'survey.replicates.safetensors'
    """
    path = Path(model)
    stem = path.stem if path.suffix == ".safetensors" else path.name
    return path.with_name(f"{stem}.replicates.safetensors")


def is_of_replicates(path: PathLike) -> bool:
    """Tell whether a file on disk says that it holds replicates."""
    return format_of(path) == _REPLICATES.format


def write_replicates(path: PathLike, uncertainty: Uncertainty | Replicates) -> None:
    """Write a model with its replicates; the file appears whole or not at all."""
    pmf, reference = uncertainty.pmf, uncertainty.reference
    texts = {
        "domain": domain_to_json(pmf.domain, pmf.component_names),
        "resampling": uncertainty.resampling,
    }
    beside = (
        reference.weights,
        np.concatenate(reference.factors),
        _halved(uncertainty.weights),
        _halved(uncertainty.factors),
        np.asarray(uncertainty.is_clear, np.uint8),
    )
    tensors = model_tensors(pmf.weights, pmf.factors) | dict(zip(_BESIDE, beside, strict=True))
    content = file_bytes(_REPLICATES, texts, tensors)
    with atomic_output(path) as file:
        file.write(content)


def _halved(array: np.ndarray) -> np.ndarray:
    """Return probabilities as float32; what is possible stays possible, however unlikely."""
    rounded = array.astype(np.float32)
    return np.where(array > 0, np.maximum(rounded, np.finfo(np.float32).tiny), rounded)


def read_replicates(source: PathLike | BinaryIO) -> Replicates:
    """Return what a file of replicates holds, all checked; columns sum to one to rounding."""
    file = read_tensors(source, _REPLICATES)
    model = model_in(file, _BESIDE)
    domain, weights, factors, _ = model
    if "resampling" not in file.metadata:
        raise JointPMFError(f"{file.name} does not say how its replicates were made")
    _check_shapes(file, domain)
    tensors = {key: file.tensors[key] for key in _BESIDE}
    file.check_unchanged(model_tensors(weights, factors) | tensors)
    reference, replicates = (_checked(file, what, domain) for what in ("reference", "replicates"))
    pmf = JointPMF(*model)
    around = _named_like(pmf, JointPMF.at(Point(*reference), domain))
    is_clear = tensors["is_clear"].astype(bool)
    how = file.metadata["resampling"]
    return Replicates(pmf, *_feasible(*replicates, domain), is_clear, around, how)


def _check_shapes(file: TensorFile, domain: Domain) -> None:
    """Raise unless the arrays are of as many replicates, levels and components as they must be."""
    shape = file.tensors["replicates.weights"].shape
    n, rank = shape if len(shape) == 2 else (0, 0)
    if n < FEWEST or rank < 1:
        raise JointPMFError(
            f"the weights of the replicates in {file.name} have shape {shape}, not two "
            "replicates or more by one component or more"
        )
    levels = sum(domain.sizes)
    shapes = ((rank,), (levels, rank), shape, (n, levels, rank), (n,))
    kinds = (np.float64, np.float64, np.float32, np.float32, np.uint8)
    for key, wanted, kind in zip(_BESIDE, shapes, kinds, strict=True):
        tensor = file.tensors[key]
        if tensor.shape != wanted or tensor.dtype != kind:
            raise JointPMFError(
                f"{key} in {file.name} is {tensor.dtype} of shape {tensor.shape}, "
                f"not {np.dtype(kind)} of shape {wanted}"
            )


def _checked(file: TensorFile, what: str, domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and factors of the reference or of all replicates, in float64."""
    weights, factors = (
        file.tensors[f"{what}.{each}"].astype(np.float64) for each in ("weights", "factors")
    )
    is_finite = np.isfinite(weights).all() and np.isfinite(factors).all()
    if not is_finite or (weights < 0).any() or (factors < 0).any():
        raise JointPMFError(f"{file.name} holds something else than probabilities for the {what}")
    sums = np.add.reduceat(factors, domain.offsets[:-1], axis=-2)
    if max(np.abs(total - 1).max() for total in (weights.sum(axis=-1), sums)) > SUM_TOLERANCE:
        raise JointPMFError(f"the probabilities of the {what} in {file.name} do not sum to one")
    return weights, factors


def _feasible(
    weights: np.ndarray, factors: np.ndarray, domain: Domain
) -> tuple[np.ndarray, np.ndarray]:
    """Return replicates whose weights and columns sum to one to the last digits of float64."""
    columns = np.stack([columns_of_one(each, domain) for each in factors])
    return weights / weights.sum(axis=1, keepdims=True), columns


def _named_like(pmf: JointPMF, reference: JointPMF) -> JointPMF:
    """Return a reference whose components are called as the model's, if they are as many."""
    if pmf.component_names is None or pmf.rank != reference.rank:
        return reference
    return JointPMF(pmf.domain, reference.weights, reference.factors, pmf.component_names)


def read_beside(model: PathLike, pmf: JointPMF) -> Replicates:
    """Return the replicates that lie beside a model file, if they are of this model.

    Parameters
    ----------
    model : path
        The file of the model.
    pmf : JointPMF
        The model in it. Names of its components may have changed since.
    """
    path = replicates_path(model)
    if not os.path.exists(path):
        raise JointPMFError(
            f"there are no replicates of {model}, which would be in {path}: make them with "
            "jointpmf fit --replicates 200, or with solution.uncertainty(200).save(…)"
        )
    found = read_replicates(path)
    if not are_same(found.pmf, pmf):
        raise JointPMFError(f"the replicates in {path} are of another model than {model}")
    return found._replace(pmf=pmf, reference=_named_like(pmf, found.reference))


def are_same(one: JointPMF, other: JointPMF) -> bool:
    """Tell whether two models have the same variables and numbers, whatever components are called.

    Examples
    --------
    >>> from jointpmf.domain import Domain
    >>> from jointpmf.pmf import random_pmf
    >>> first, second = (random_pmf(Domain.of_sizes([2]), rank=1, random_state=k) for k in (0, 1))
    >>> are_same(first, first), are_same(first, second)
    (True, False)
    """
    pairs = zip((one.weights, *one.factors), (other.weights, *other.factors), strict=True)
    return one.domain == other.domain and all(np.array_equal(a, b) for a, b in pairs)
