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
from jointpmf.predict.filling import impute_coded

if TYPE_CHECKING:
    from jointpmf.data.binning import Bins
    from jointpmf.data.given_scales import Levels
    from jointpmf.fit.settings import Likelihood


class PMFImputer(TransformerMixin, PMFBase):  # type: ignore[misc]
    """Fills missing cells from the joint distribution of all columns.

    What goes in as pandas, Polars or PyArrow comes out as that, with the same index, columns and
    types; `set_output` works too.

    Parameters
    ----------
    rank, objective, smoothing, bins, levels, missing_values, n_starts, max_iter, tol, random_state
        As in `PMFEstimator`, and so is `verbose`.
    strategy : {"auto", "mode", "median", "expectation", "sample"}, or mapping of name to one
        The most likely level, the median level, the expected value, or a draw for multiple
        imputation (with an integer as `random_state` every `transform` draws the same). By default
        numbers and times get their median, and everything else its mode.

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
        strategy: str | Mapping[str, str] = "auto",
        objective: Likelihood | None = None,
        smoothing: float | None = None,
        bins: Bins | str | None = "auto",
        levels: Levels | None = None,
        missing_values: Any = np.nan,
        n_starts: int | None = None,
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
            levels=levels,
            missing_values=missing_values,
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
        codes, code = self._codes_of(checked), self._missing_code
        filled = impute_coded(self.pmf_, checked, codes, self.strategy, seed, code)
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
