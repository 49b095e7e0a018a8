"""What is drawn of a model that is too large to be drawn whole."""

from __future__ import annotations

import numpy as np

from jointpmf.judge.information import component_information
from jointpmf.pmf import JointPMF

TELLING = "those that tell most"
"""What a picture says of the variables that were chosen."""


def by_information(pmf: JointPMF) -> np.ndarray:
    """Return the variables in order of how much they tell about the component, most first."""
    return np.argsort(-component_information(pmf), kind="stable")


def first_of(pmf: JointPMF, told: np.ndarray, count: int) -> JointPMF:
    """Return the model of the first `count` variables of an order; they keep the model's order."""
    if len(pmf.domain) <= count:
        return pmf
    return pmf.marginal([pmf.domain.names[n] for n in np.sort(told[:count])])


def how_many(count: int, total: int, what: str, which: str) -> str:
    """Say how many are shown, if not all are."""
    return "" if count == total else f"{count:,} of {total:,} {what} ({which})"


def what_is_drawn(
    pmf: JointPMF, part: JointPMF, components: np.ndarray, is_asked: bool
) -> list[str]:
    """Say which variables, unless someone asked for them, and which components are shown."""
    share = f"{part.weights[components].sum():.0%} of the weight"
    return [
        "" if is_asked else how_many(len(part.domain), len(pmf.domain), "variables", TELLING),
        how_many(len(components), pmf.rank, "components", share),
    ]
