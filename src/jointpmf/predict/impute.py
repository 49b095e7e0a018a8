"""A table without holes, or several: which models fill it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jointpmf.data.encode import encode
from jointpmf.errors import (
    JointPMFError,
    check_size,
    seeded_generator,
    shown,
    text_of_count,
    whole_number,
)
from jointpmf.pmf import JointPMF
from jointpmf.predict.filling import impute_coded
from jointpmf.predict.imputations import Imputations

_BYTES_PER_DRAW = 64
"""Memory that a filled table takes, at least."""


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
    check_size(_BYTES_PER_DRAW * n_draws, f"{text_of_count(n_draws)} tables")
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
    if not isinstance(strategy, str) or strategy not in ("auto", "sample"):
        raise JointPMFError(
            "several tables differ only where cells are drawn, so that the strategy must be "
            f"'sample', not {shown(strategy)}"
        )
