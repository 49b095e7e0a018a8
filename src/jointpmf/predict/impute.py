"""Fill missing cells, each from its distribution given the row's observed cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.compiled.sampling import draw_levels
from jointpmf.data.decode import filled
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, Variable
from jointpmf.errors import JointPMFError, listing, seeded_generator, shown
from jointpmf.probabilities import cumulative
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF

_STRATEGIES = ("mode", "median", "expectation", "sample")


def impute(
    pmf: JointPMF,
    table: Any,
    strategy: str | Mapping[str, str] = "mode",
    random_state: Any = None,
    missing_code: int | None = MISSING,
) -> Any:
    """Return a table of the same kind with its missing cells filled.

    A cell whose level the model does not know stays as it is, and is no evidence for the others.

    Parameters
    ----------
    pmf : JointPMF
        The joint distribution of the variables.
    table : pandas, Polars or PyArrow table, or array
        What to fill; it is not changed.
    strategy : {"mode", "median", "expectation", "sample"}, or mapping of name to one of them
        The most likely level; the median level, for levels in order; the expected value, for
        levels with numeric values; or a draw, the cells of a row together, for multiple
        imputation. Binned variables are filled with numbers: the mean of the bin. Variables that a
        mapping does not name get their mode.
    random_state : int or numpy Generator, optional
        For draws.
    missing_code : int or None
        The number that means missing in arrays.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> same = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
    >>> impute(same, np.array([[0, -1], [-1, 1], [-1, -1]])).tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    chosen = _strategy_of(pmf, strategy)
    codes = encode(table, pmf.domain, unknown="missing", missing_code=missing_code)
    posterior = pmf.responsibilities(codes)
    generator = seeded_generator(random_state)
    components = np.empty(len(posterior), np.int64)
    if "sample" in chosen.values():
        each = np.arange(len(posterior))
        uniforms = generator.random(len(posterior))
        draw_levels(cumulative(posterior.T), each, uniforms, components)
    values = {}
    for n, variable in enumerate(pmf.domain):
        rows = np.flatnonzero(codes.array[:, n] == MISSING)
        if not len(rows):
            continue
        if chosen[variable.name] == "sample":
            drawn = np.empty(len(rows), np.int64)
            by_component = cumulative(pmf.factors[n])
            draw_levels(by_component, components[rows], generator.random(len(rows)), drawn)
            cells = _cells(variable)[drawn]
        else:
            with one_blas_thread:
                mixed = posterior[rows] @ pmf.factors[n].T
            if chosen[variable.name] == "mode":
                cells = _cells(variable)[mixed.argmax(axis=1)]
            elif chosen[variable.name] == "median":
                cells = _cells(variable)[_medians(mixed)]
            else:
                cells = (mixed * np.array(variable.values)).sum(axis=1)
        column = np.zeros(codes.n_rows, cells.dtype)
        column[rows] = cells
        values[variable.name] = column
    return filled(table, _by_column(table, pmf, values), missing_code)


def _by_column(table: Any, pmf: JointPMF, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values by the table's own column names; an array has x0, x1 and so on."""
    if not isinstance(table, (np.ndarray, list, tuple)):
        return values
    return {f"x{pmf.domain.index(name)}": column for name, column in values.items()}


def check_strategy(strategy: object) -> None:
    """Raise unless a strategy is one that `impute` knows."""
    if strategy not in _STRATEGIES:
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
    return dict.fromkeys(pmf.domain.names, "mode") | dict(named)


def _cells(variable: Variable) -> np.ndarray:
    """Return what to write for each level: the level itself, or the mean of a bin."""
    if variable.edges is not None:
        return np.array(variable.values)
    kinds = {type(level) for level in variable.levels}
    if kinds in ({int}, {float}, {bool}):
        return np.array(variable.levels)
    cells = np.empty(variable.size, object)
    cells[:] = variable.levels
    return cells


def _medians(probabilities: np.ndarray) -> np.ndarray:
    """Return the first level at which each row's cumulative probability reaches a half."""
    reached = probabilities.cumsum(axis=1) >= 0.5 - 1e-12
    return reached.argmax(axis=1)
