"""How sure an answer is, by the replicates that lie beside a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.command.printing import Answer, Errors
from jointpmf.components import means_component
from jointpmf.errors import JointPMFError, checked_level
from jointpmf.judge.replicate_file import is_of_replicates, read_beside, read_replicates
from jointpmf.judge.uncertainty import Uncertainty
from jointpmf.model_file import ModelFile

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF


def errors_of(answer: Answer, pmf: JointPMF, model: str, level: float) -> Errors:
    """Return how sure the cells of an answer are, and last its mean if it has one."""
    checked_level(level)
    if model == "-":
        raise JointPMFError("replicates lie beside a model file: give its path, not -")
    sure = Uncertainty(*read_beside(model, pmf))
    names, mean = answer.pmf.domain.names, answer.moments()

    def shares(one: JointPMF) -> np.ndarray:
        return one.condition(answer.given).marginal(names).table().ravel()

    if any(means_component(name, pmf.domain) for name in (*names, *answer.given)):
        sure.sizes(level)  # warns if it is not clear which component is which
    found = [sure.columns(shares, level, are_probabilities=True)[1]]
    if mean is not None:
        values = np.array(answer.pmf.domain.variables[0].values)
        found.append(sure.columns(lambda one: shares(one) @ values, level)[1])
    columns = ("se", "low", "high")
    return Errors(level, *(np.concatenate([one[name] for one in found]) for name in columns))


def replicates_in(path: str) -> tuple[ModelFile, dict[str, Any]] | None:
    """Return the model of a file of replicates, and what is known of them; None for others."""
    if not is_of_replicates(path):
        return None
    found = read_replicates(path)
    pmf, (number, rank) = found.pmf, found.weights.shape
    clear = int(found.is_clear.sum())
    about = {"number": number, "resampling": found.resampling, "rank": rank, "clear": clear}
    model = ModelFile(pmf.domain, pmf.weights, list(pmf.factors), pmf.component_names, (), {})
    return model, about
