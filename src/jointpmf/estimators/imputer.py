"""Missing cells filled, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from jointpmf.estimators.base import (
    PMFBase,
    column_names,
    counting_rows,
    is_frame,
    renamed,
    seed_of,
)
from jointpmf.predict.impute import impute

if TYPE_CHECKING:
    from jointpmf.data.binning import Bins
    from jointpmf.fit.settings import Objective


class PMFImputer(TransformerMixin, PMFBase):  # type: ignore[misc]
    """Fills missing cells from the joint distribution of all columns.

    What goes in as pandas, Polars or PyArrow comes out as that, with the same index, columns and
    types; `set_output` works too.

    Parameters
    ----------
    rank, objective, smoothing, bins, n_starts, max_iter, tol, random_state, verbose
        As in `PMFEstimator`.
    strategy : {"mode", "median", "expectation", "sample"}, or mapping of name to one of them
        The most likely level, the median level, the expected value, or a draw for multiple
        imputation (with an integer as `random_state` every `transform` draws the same).

    Examples
    --------
    >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", None]] * 10
    >>> PMFImputer(rank=2, random_state=0).fit_transform(X)[3].tolist()
    ['sun', 'dry']
    """

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        strategy: str | Mapping[str, str] = "mode",
        objective: str | Objective = "likelihood",
        smoothing: float | None = None,
        bins: Bins | str | None = "auto",
        n_starts: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            rank,
            objective=objective,
            smoothing=smoothing,
            bins=bins,
            n_starts=n_starts,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )
        self.strategy = strategy

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint distribution of the columns; y is ignored."""
        X, _, weights = counting_rows(self._checked(X, reset=True), None, sample_weight)
        self._learned(X, None, None, weights)
        return self

    def transform(self, X: Any) -> Any:
        """Return a table of the same kind with its missing cells filled."""
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        seed = seed_of(self.random_state)
        filled = impute(self.pmf_, checked, self.strategy, seed, self._missing_code)
        if is_frame(X) and column_names(X) != column_names(checked):
            filled = renamed(filled, X.columns if hasattr(X, "set_axis") else column_names(X))
        # scikit-learn does not know PyArrow tables, but what Polars makes of them
        wraps = _get_output_config("transform", self)["dense"] != "default"
        return pl.from_arrow(filled) if wraps and hasattr(filled, "column_names") else filled

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are those that came in."""
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_"):
            return np.asarray(_check_feature_names_in(self, input_features), object)
        return np.asarray(self.domain_.names, object)
