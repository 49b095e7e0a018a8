"""Fill missing cells, each from its distribution given the row's observed cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jointpmf.compiled.sampling import draw_levels
from jointpmf.data.decode import filled
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, Variable
from jointpmf.errors import JointPMFError, listing, seeded_generator, shown, whole_number
from jointpmf.pmf import JointPMF
from jointpmf.predict.imputations import Imputations
from jointpmf.probabilities import cumulative
from jointpmf.threads import one_blas_thread
from jointpmf.times import kind_of_times, time_of

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes

_STRATEGIES = ("auto", "mode", "median", "expectation", "sample")


class Replicated(Protocol):
    """A model as other samples would have given it: what `Solution.uncertainty` returns."""

    @property
    def pmfs(self) -> Sequence[JointPMF]:
        """The replicates."""


def impute(
    pmf: JointPMF | Replicated,
    table: Any,
    strategy: str | Mapping[str, str] = "auto",
    random_state: Any = None,
    missing_code: Any = None,
    n_draws: int | None = None,
) -> Any:
    """Return a table of the same kind with its missing cells filled, or several such tables.

    A cell whose level the model does not know stays as it is, and is no evidence for the others.

    Parameters
    ----------
    pmf : JointPMF or Uncertainty
        The joint distribution of the variables. With `n_draws` it may be what
        `Solution.uncertainty` returns; then each table is drawn from another of its replicates,
        which is proper multiple imputation. All tables from one JointPMF take it for the truth:
        the standard errors are then too small.
    table : pandas, Polars or PyArrow table, or array
        What to fill; it is not changed.
    strategy : {"auto", "mode", "median", "expectation", "sample"}, or mapping of name to one
        The most likely level; the median level, for levels in order; the expected value, for
        levels with numeric values; or a draw, the cells of a row together, for multiple
        imputation. By default numbers and times get their median, other levels their mode; so do
        variables that a mapping does not name. Bins are filled with their mean.
    random_state : int or numpy Generator, optional
        For draws.
    missing_code : number or text, optional
        What means missing besides, as in `encode`.
    n_draws : int, optional
        How many tables to return. All of their missing cells are drawn: the strategy is "sample".

    Returns
    -------
    table or Imputations
        With `n_draws` the tables as a sequence, whose method `pooled` makes one answer of theirs.

    Examples
    --------
    >>> from jointpmf import Domain, JointPMF
    >>> same = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
    >>> impute(same, np.array([[0, -1], [-1, 1], [-1, -1]])).tolist()
    [[0, 0], [1, 1], [1, 1]]
    >>> [drawn[0].tolist() for drawn in impute(same, np.array([[0, -1], [-1, 1]]), n_draws=2)]
    [[0, 0], [0, 0]]
    """
    generator = seeded_generator(random_state)
    if not isinstance(pmf, JointPMF) and not hasattr(pmf, "pmfs"):
        raise JointPMFError(f"the model must be a JointPMF or an Uncertainty, not {shown(pmf)}")
    if n_draws is None:
        if not isinstance(pmf, JointPMF):
            raise JointPMFError("replicates fill several tables, so n_draws must say how many")
        codes = encode(table, pmf.domain, unknown="missing", missing_code=missing_code)
        return impute_coded(pmf, table, codes, strategy, generator, missing_code)
    check_is_drawn(strategy)
    models = models_of_draws(pmf, n_draws, generator)
    codes = encode(table, models[0].domain, unknown="missing", missing_code=missing_code)
    tables = [impute_coded(m, table, codes, "sample", generator, missing_code) for m in models]
    return Imputations(tuple(tables), not isinstance(pmf, JointPMF))


def models_of_draws(
    model: JointPMF | Replicated, n_draws: Any, generator: np.random.Generator
) -> list[JointPMF]:
    """Return the model from which each of several tables is drawn: replicates, none of them twice.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=0)
    >>> models_of_draws(pmf, 2, np.random.default_rng(0)) == [pmf, pmf]
    True
    """
    n_draws = whole_number(n_draws, "n_draws", 1)
    if isinstance(model, JointPMF):
        return [model] * n_draws
    n_replicates = len(model.pmfs)
    if n_draws > n_replicates:
        raise JointPMFError(
            f"there are {n_replicates} replicates for {n_draws} draws, which need one each: make "
            f"more, as by uncertainty(n={n_draws})"
        )
    return [model.pmfs[k] for k in generator.permutation(n_replicates)[:n_draws]]


def check_is_drawn(strategy: object) -> None:
    """Raise unless cells are drawn, as those of several tables must be."""
    if strategy not in ("auto", "sample"):
        raise JointPMFError(
            "several tables differ only where cells are drawn, so that the strategy must be "
            f"'sample', not {shown(strategy)}"
        )


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
