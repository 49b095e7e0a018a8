"""Fill missing cells, each from its distribution given the row's observed cells."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.compiled.sampling import draw_levels
from jointpmf.data.decode import filled
from jointpmf.domain import MISSING, Variable
from jointpmf.errors import JointPMFError, listing, seeded_generator, shown
from jointpmf.probabilities import cumulative
from jointpmf.threads import one_blas_thread
from jointpmf.times import kind_of_times, time_of

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.pmf import JointPMF

_STRATEGIES = ("auto", "mode", "median", "expectation", "sample")


def impute_coded(
    pmf: JointPMF,
    table: Any,
    codes: Codes,
    strategy: str | Mapping[str, str] = "auto",
    random_state: Any = None,
    missing_code: Any = None,
) -> Any:
    """Return a table, whose codes are known, with its missing cells filled, as `impute` does."""
    chosen = _strategy_of(pmf, strategy)
    posterior = pmf.responsibilities(codes)
    generator = seeded_generator(random_state)
    components = np.empty(len(posterior), np.int32)
    if "sample" in chosen.values():
        each = np.arange(len(posterior), dtype=np.int32)
        uniforms = generator.random(len(posterior))
        draw_levels(cumulative(posterior.T), each, uniforms, components)
    values = {}
    for n, variable in enumerate(pmf.domain):
        rows = np.flatnonzero(codes.array[:, n] == MISSING)
        if not len(rows):
            continue
        if chosen[variable.name] == "sample":
            drawn = np.empty(len(rows), np.int32)
            by_component = cumulative(pmf.factors[n])
            draw_levels(by_component, components[rows], generator.random(len(rows)), drawn)
            cells = _cells(variable)[drawn]
        else:
            with one_blas_thread:
                mixed = posterior[rows] @ pmf.factors[n].T
            cells = _guesses(variable, mixed, chosen[variable.name])
        column = np.zeros(codes.n_rows, cells.dtype)
        column[rows] = cells
        values[variable.name] = column
    return filled(table, values, pmf.domain, missing_code)


def _guesses(variable: Variable, probabilities: np.ndarray, strategy: str) -> np.ndarray:
    """Return what to write into each row, given the probabilities of the levels there."""
    if strategy == "expectation":
        return _written((probabilities * np.array(variable.values)).sum(axis=1), variable)
    if strategy == "median":
        return _cells(variable)[_medians(probabilities)]
    return _cells(variable)[probabilities.argmax(axis=1)]


def check_strategy(strategy: object) -> None:
    """Raise unless a strategy is one that `impute` knows."""
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise JointPMFError(
            f"the strategy must be one of {listing(_STRATEGIES)}, not {shown(strategy)}"
        )


def _strategy_of(pmf: JointPMF, strategy: str | Mapping[str, str]) -> dict[str, str]:
    named = strategy if isinstance(strategy, Mapping) else dict.fromkeys(pmf.domain.names, strategy)
    pmf.domain.indices(named)  # raises for a name that is no variable
    for name, one in named.items():
        check_strategy(one)
        if one == "expectation" and pmf.domain[name].values is None:
            raise JointPMFError(f"the levels of {name!r} have no numeric values to average")
    by_kind = {v.name: "median" if _is_measured(v) else "mode" for v in pmf.domain}
    return by_kind | {name: one for name, one in named.items() if one != "auto"}


def _is_measured(variable: Variable) -> bool:
    """Tell whether levels are numbers or times that increase, so that they have a median."""
    if variable.values is None:
        return kind_of_times(map(type, variable.levels)) is not None
    return all(low < high for low, high in pairwise(variable.values))


def _cells(variable: Variable) -> np.ndarray:
    """Return what to write for each level: the level itself, or the mean of a bin."""
    if variable.edges is not None:
        return _written(np.array(variable.values), variable)
    kinds = {type(level) for level in variable.levels}
    if kinds in ({int}, {float}, {bool}):
        return np.array(variable.levels)
    cells = np.empty(variable.size, object)
    cells[:] = variable.levels
    return cells


def _written(numbers: np.ndarray, variable: Variable) -> np.ndarray:
    """Return numbers as they are, or as times where they are the seconds of such."""
    if variable.time is None:
        return numbers
    cells = np.empty(len(numbers), object)
    cells[:] = [time_of(number, variable.time) for number in numbers]
    return cells


def _medians(probabilities: np.ndarray) -> np.ndarray:
    """Return the first level at which each row's cumulative probability reaches a half."""
    reached = probabilities.cumsum(axis=1) >= 0.5 - 1e-12
    return reached.argmax(axis=1)
