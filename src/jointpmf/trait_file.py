"""Traits in a model file: what the columns were computed from, beside the columns themselves.

A reader who does not know of them finds the model as in any other file: they have a checksum of
their own. Everything about them is checked before it is used (docs/format.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.errors import JointPMFError
from jointpmf.tensor_file import TensorFile, checksum_of

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.traits import Scores, TraitModel

_KEY = "traits"
"""The entry of the metadata that holds the checksum, and how the names of the arrays begin."""

_MOST_FEATURES = 2**27
"""Features of all points that a reader computes: a gigabyte."""

_PARTS = ("points", "directions", "phases", "intercepts", "coefficients", "centres", "scales")


def trait_tensors(models: Sequence[TraitModel]) -> dict[str, np.ndarray]:
    """Return the arrays of trait models under the names that they have in a file."""
    tensors = {}
    for k, model in enumerate(models):
        scores = model.scores.centres, model.scores.scales
        arrays = *model.space, model.intercepts, model.coefficients, *scores
        for part, array in zip(_PARTS, arrays, strict=True):
            tensors[f"{_KEY}.{k}.{part}"] = np.asarray(array, np.float64)
    return tensors


def trait_text(tensors: dict[str, np.ndarray]) -> dict[str, str]:
    """Return what the metadata say of these arrays: their checksum, or nothing without arrays."""
    return {_KEY: checksum_of((), tensors.values())} if tensors else {}


def without_traits(file: TensorFile) -> tuple[TensorFile, dict[str, np.ndarray]]:
    """Return a file without the arrays of its trait models, and those."""
    own = {key: array for key, array in file.tensors.items() if key.startswith(f"{_KEY}.")}
    rest = {key: array for key, array in file.tensors.items() if key not in own}
    return file._replace(tensors=rest), own


def trait_models_in(
    file: TensorFile, tensors: dict[str, np.ndarray], domain: Domain, weights: np.ndarray
) -> tuple[TraitModel, ...]:
    """Return the trait models of a file, checked, from its arrays; most files have none."""
    count = len(tensors) // len(_PARTS)
    keys = [f"{_KEY}.{k}.{part}" for k in range(count) for part in _PARTS]
    if set(tensors) != set(keys):
        raise JointPMFError(f"{file.name} does not hold {', '.join(_PARTS)} for each trait model")
    tensors = {key: tensors[key] for key in keys}
    if file.metadata.get(_KEY) != trait_text(tensors).get(_KEY):
        raise JointPMFError(f"the traits in {file.name} were changed after it was written")
    for key, array in tensors.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise JointPMFError(f"{key} in {file.name} holds something else than finite numbers")
    arrays = list(tensors.values())
    groups = [arrays[k * len(_PARTS) :][: len(_PARTS)] for k in range(count)]
    _check_points([group[0] for group in groups], weights, file)
    return tuple(_model_of(group, domain, file) for group in groups)


def _model_of(arrays: list[np.ndarray], domain: Domain, file: TensorFile) -> TraitModel:
    from jointpmf.traits import Scores, Space, TraitModel

    points, directions, phases, intercepts, coefficients, centres, scales = arrays
    n_points, n_traits = points.shape
    n_waves = len(phases) if phases.ndim == 1 else -1
    units = ((len(domain),), centres.shape, scales.shape)
    levels = (sum(domain.sizes),)
    if directions.shape != (n_traits, n_waves) or intercepts.shape != levels or len(set(units)) > 1:
        raise JointPMFError(f"the traits in {file.name} do not fit its variables and each other")
    if n_points * (n_traits + n_waves) > _MOST_FEATURES:
        raise JointPMFError(f"the traits in {file.name} have more waves than fit into memory")
    scores = Scores(domain, centres, scales)
    _check_scores(scores, file)
    if coefficients.shape != (scores.offsets[-1], n_traits + n_waves):
        raise JointPMFError(
            f"the coefficients of traits in {file.name} have shape {coefficients.shape}, "
            f"not {(int(scores.offsets[-1]), n_traits + n_waves)}"
        )
    model = TraitModel(scores, Space(points, directions, phases), intercepts, coefficients)
    with np.errstate(all="ignore"):
        if not np.isfinite(model.factors).all():
            raise JointPMFError(f"the traits in {file.name} have no finite columns")
    return model


def _check_scores(scores: Scores, file: TensorFile) -> None:
    """Raise unless the values of ordered variables can be standardised."""
    for variable, scale in zip(scores.domain, scores.scales, strict=True):
        if scale < 0 or (scale > 0 and (variable.values is None or variable.size < 2)):
            raise JointPMFError(
                f"the traits in {file.name} have scale {scale:g} for the values of "
                f"{variable.name!r}"
            )
    with np.errstate(all="ignore"):
        are_finite = all(np.isfinite(own).all() for own in scores.all)
    if not are_finite:
        raise JointPMFError(f"the traits in {file.name} have scales too small for the values")


def _check_points(points: Sequence[np.ndarray], weights: np.ndarray, file: TensorFile) -> None:
    """Raise unless there is a component for each point, and weight at the points of each space."""
    for own in points:
        if own.ndim != 2 or not own.size:
            raise JointPMFError(f"the points of traits in {file.name} have shape {own.shape}")
    ends = np.cumsum([0, *map(len, points)])
    if ends[-1] > len(weights):
        raise JointPMFError(
            f"the traits in {file.name} have {ends[-1]} points for {len(weights)} components"
        )
    if any(not weights[a:b].sum() > 0 for a, b in pairwise(ends)):
        raise JointPMFError(f"no row lies at the points of the traits in {file.name}")
