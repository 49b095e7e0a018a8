"""Tables of any kind as scikit-learn hands them over: names, sizes, rows that count, seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing, column_or_1d

from jointpmf.data.codes import checked_weights
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from jointpmf.domain import Domain


def is_frame(X: Any) -> bool:
    """Tell whether a table has named columns."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def column_names(X: Any) -> list[Any]:
    """Return the names of a table's columns, whatever its kind."""
    return list(getattr(X, "column_names", X.columns))  # of PyArrow, or of the others


def renamed(X: Any, names: Any = None) -> Any:
    """Return a table with other names, by default those that an array's columns get."""
    names = [f"x{n}" for n in range(X.shape[1])] if names is None else names
    if hasattr(X, "set_axis"):
        return X.set_axis(names, axis=1)
    if hasattr(X, "rename_columns"):
        return X.rename_columns(names)
    return X.rename(dict(zip(X.columns, names, strict=True)))


def n_rows(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0])


def missing_code_of(X: Any) -> int | None:
    """Return −1 if it means missing: where no whole number is below it."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "iu" and X.size and X.min() >= MISSING:
        return MISSING
    return None


def counting_rows(
    X: Any, y: np.ndarray | None, sample_weight: Any
) -> tuple[Any, Any, np.ndarray | None]:
    """Return the rows that count: others say nothing about levels or classes either."""
    weights = checked_weights(sample_weight, n_rows(X))
    if weights is None:
        return X, y, None
    counting = np.flatnonzero(weights)
    if not len(counting):
        raise JointPMFError("all sample weights are zero")
    return _safe_indexing(X, counting), None if y is None else y[counting], weights[counting]


def checked_target(estimator: BaseEstimator, X: Any, y: Any) -> np.ndarray:
    """Return a target as an array with an entry per row."""
    if y is None:
        raise JointPMFError(
            f"requires y to be passed, but the target y is None: {type(estimator).__name__} "
            "learns a target"
        )
    array = column_or_1d(y, warn=True)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise JointPMFError("Input y contains NaN or infinity")
    if len(array) != n_rows(X):
        raise JointPMFError(f"there are {len(array)} targets for {n_rows(X)} rows")
    return array


def n_bins_of(n_rows: float, power: float, most: int) -> int:
    """Return how many parts numbers are cut into: a power of the number of rows."""
    return int(min(max(round(n_rows**power), 2), most))


def free_name(wished: str, domain: Domain) -> str:
    """Return a name that no variable has."""
    while wished in domain:
        wished += "_"
    return wished


def seed_of(random_state: Any) -> Any:
    """Return a seed for numpy's generators from what scikit-learn allows."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
