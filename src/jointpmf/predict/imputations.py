"""Several completed tables, and one answer from all of them by Rubin's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jointpmf.data.decode import table_of
from jointpmf.domain import text_of
from jointpmf.errors import JointPMFError, checked_level, shown

Estimate = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Imputations(Sequence[Any]):
    """Completed tables, which differ in what their holes were filled with.

    Attributes
    ----------
    tables : tuple
        The tables, of the kind that came in.
    is_proper : bool
        Whether each was drawn from another model, as other samples would have given it. If not,
        the model is taken for the truth, and standard errors are too small.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=0)
    >>> drawn = jp.impute(pmf, [[0, None], [None, 2]], n_draws=3, random_state=0)
    >>> len(drawn), drawn[0].shape
    (3, (2, 2))
    """

    tables: tuple[Any, ...]
    is_proper: bool

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self.tables)

    def __getitem__(self, k: Any) -> Any:
        """Return a table, or several for a slice."""
        return self.tables[k]

    def __iter__(self) -> Iterator[Any]:
        """Yield the tables."""
        return iter(self.tables)

    def __repr__(self) -> str:
        """Say how many tables there are, and from what they were drawn."""
        source = "a model each" if self.is_proper else "one model"
        return f"Imputations({len(self)} tables, drawn from {source})"

    def pooled(
        self,
        estimate: Estimate,
        level: float = 0.9,
        *,
        df: float | None = None,
        backend: str = "polars",
    ) -> Any:
        """Return one estimate from all tables, with the error that the holes add to it.

        With estimates q_k and their squared standard errors u_k in m tables, the estimate is the
        mean of the q_k, and its squared standard error is T = W + (1 + 1/m) B, where W is the mean
        of the u_k and B the variance of the q_k. With λ = (1 + 1/m) B / T the interval is Student's
        with (m − 1)/λ² degrees of freedom (Rubin 1987), or fewer where those of a complete table
        are few (Barnard and Rubin 1999).

        Parameters
        ----------
        estimate : callable
            A function of a complete table that returns an estimate and its squared standard error:
            two numbers, two lists of numbers, two mappings of names to numbers or two pandas
            Series.
        level : float
            How often such intervals hold the truth.
        df : float, optional
            The degrees of freedom that the estimate would have in a complete table, such as the
            number of rows minus that of coefficients; by default they are many.
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame.

        Returns
        -------
        frame
            One row per number: which it is, where there are several, then estimate, se, low, high,
            df, and fmi, the fraction of missing information.

        Examples
        --------
        >>> import jointpmf as jp
        >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=0)
        >>> rows = pmf.sample(100, random_state=0, backend="codes").astype(float)
        >>> rows[:40, 1] = np.nan
        >>> drawn = jp.impute(pmf, rows, n_draws=5, random_state=0)
        >>> drawn.pooled(lambda table: (table[:, 1].mean(), table[:, 1].var() / 100)).columns
        ['estimate', 'se', 'low', 'high', 'df', 'fmi']
        """
        if len(self) < 2:
            raise JointPMFError(
                "one table does not tell what the holes add: give n_draws=2 or more"
            )
        if not callable(estimate):
            raise JointPMFError(f"an estimate must be a function of a table, not {shown(estimate)}")
        found = [_Estimated.of(estimate, table, k) for k, table in enumerate(self)]
        for k, other in enumerate(found):
            other.check_like(found[0], k)
        values = np.array([each.values for each in found])
        variances = np.array([each.variances for each in found])
        columns = rubin_columns(values, variances, checked_level(level), _checked_df(df))
        return table_of({**found[0].labels, **columns}, backend)


def rubin_columns(
    values: np.ndarray, variances: np.ndarray, level: float, df: float
) -> dict[str, np.ndarray]:
    """Return what the estimates of several tables say together; see `Imputations.pooled`.

    Parameters
    ----------
    values, variances : array of shape (tables, numbers)
        The estimates and their squared standard errors.
    level : float
        How often the intervals hold the truth.
    df : float
        The degrees of freedom of a complete table.

    Examples
    --------
    >>> found = rubin_columns(np.array([[1.0], [3.0]]), np.array([[1.0], [1.0]]), 0.9, np.inf)
    >>> found["estimate"].item(), found["se"].item(), round(found["df"].item(), 4)
    (2.0, 2.0, 1.7778)
    """
    from scipy.special import stdtrit

    m = len(values)
    estimate, within = values.mean(axis=0), variances.mean(axis=0)
    between = (1 + 1 / m) * values.var(axis=0, ddof=1)
    total = within + between
    part = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    with np.errstate(divide="ignore"):
        own = (m - 1) / part**2
        # (ν + 1)/(ν + 3) ν (1 − λ), written so that an infinite ν stays so, and λ = 1 gives 0
        complete = df * (1 - 2 / (df + 3)) * (1 - part) if np.isfinite(df) else np.inf
        both = np.where(part < 1, 1 / (1 / own + 1 / complete), own)
    error = np.sqrt(total)
    half = np.where(total > 0, stdtrit(both, (1 + level) / 2) * error, 0.0)
    return {
        "estimate": estimate,
        "se": error,
        "low": estimate - half,
        "high": estimate + half,
        "df": both,
        "fmi": part + (1 - part) * 2 / (both + 3),
    }


class _Estimated(NamedTuple):
    """What was estimated in one table: numbers, their squared errors, and what they are of."""

    values: np.ndarray
    variances: np.ndarray
    labels: dict[str, Any]

    @classmethod
    def of(cls, estimate: Estimate, table: Any, k: int) -> _Estimated:
        """Return what a function estimates, or say for which draw it cannot."""
        try:
            found = estimate(table)
        except Exception as error:
            raise JointPMFError(
                f"the estimate failed for draw {k}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise JointPMFError(
                "the estimate must return a pair, the estimate and its squared standard error, not "
                f"{shown(found)} as for draw {k}"
            )
        names = _names(found[0])
        value, variance = (_numbers(each, names, k) for each in found)
        if value.shape != variance.shape:
            raise JointPMFError(
                f"for draw {k} there are estimates of shape {value.shape} and squared standard "
                f"errors of shape {variance.shape}"
            )
        if (variance < 0).any():
            least = float(variance.min())
            raise JointPMFError(f"a squared standard error of draw {k} is negative, {least:g}")
        index = {"index": np.arange(value.size)} if value.ndim else {}
        labels = index if names is None else {"quantity": [text_of(name) for name in names]}
        return cls(value.ravel(), variance.ravel(), labels)

    def check_like(self, first: _Estimated, k: int) -> None:
        """Raise unless the same quantities were estimated in the first table."""
        here, there = (each.labels.get("quantity") for each in (self, first))
        if here != there or self.values.shape != first.values.shape:
            raise JointPMFError(f"the estimate returned other quantities for draw {k} than before")


def _names(found: Any) -> list[Any] | None:
    """Return the names of the numbers of a mapping or a Series, if it is one."""
    if isinstance(found, Mapping):
        return list(found)
    return list(found.index) if hasattr(found, "index") and hasattr(found, "iloc") else None


def _numbers(found: Any, names: list[Any] | None, k: int) -> np.ndarray:
    """Return one number, or one for each name, as an array."""
    if _names(found) != names:
        raise JointPMFError(
            f"for draw {k} the estimates and their squared standard errors have other names"
        )
    try:
        numbers = np.asarray(list(found.values()) if isinstance(found, Mapping) else found, float)
    except (TypeError, ValueError):
        numbers = np.zeros((1, 1))
    if numbers.ndim > 1:
        raise JointPMFError(f"draw {k} gave {shown(found)}, which is no number or list of numbers")
    if not np.isfinite(numbers).all():
        raise JointPMFError(f"an estimate or squared standard error of draw {k} is NaN or infinite")
    return numbers


def _checked_df(df: Any) -> float:
    if df is None:
        return np.inf
    if isinstance(df, bool) or not isinstance(df, (int, float, np.number)) or not df > 0:
        raise JointPMFError(f"df must be a positive number, not {shown(df)}")
    return float(df)
