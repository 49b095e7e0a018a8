"""What all estimators share: the parameters, reading tables, and the fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, _safe_indexing, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from jointpmf.data.codes import Codes, checked_weights
from jointpmf.data.encode import codes_and_doubts, encode
from jointpmf.domain import MISSING, Domain, Variable, is_missing
from jointpmf.errors import JointPMFError, repeats
from jointpmf.fit.settings import (
    Likelihood,
    Search,
    checked_objective,
)

if TYPE_CHECKING:
    from jointpmf.data.binning import Bins
    from jointpmf.data.given_scales import Levels
    from jointpmf.fit.solution import Solution
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.pmf import JointPMF

_MAX_BINS, _BINS_POWER = 10, 0.25
"""Parts that a column is cut into by default: at most, and as a power of the number of rows."""


class PMFBase(BaseEstimator):  # type: ignore[misc]
    """What all of them share: the parameters, reading tables, and the fit."""

    _max_levels = 20
    """A column with more different numbers is cut into bins."""

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        objective: Likelihood | None = None,
        smoothing: float | None = None,
        bins: Bins | str | None = "auto",
        levels: Levels | None = None,
        missing_values: Any = np.nan,
        n_starts: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_replicates: int = 0,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.rank = rank
        self.objective = objective
        self.smoothing = smoothing
        self.bins = bins
        self.levels = levels
        self.missing_values = missing_values
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.n_replicates = n_replicates
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _emphasis(self) -> int | None:
        """How often a target counts; None is what helps to tell its levels."""
        return None

    def __sklearn_tags__(self) -> Tags:
        """Say that categories, text and missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _learned(
        self, X: Any, y: Variable | None, y_codes: Any, weights: np.ndarray | None
    ) -> Codes:
        """Fit the joint of the columns, and of the target if there is one; return their codes."""
        codes = self._learned_codes(X, weights)
        self.domain_ = codes.domain
        target = None
        if y is not None:
            target = free_name("target", codes.domain)
            domain = Domain([*codes.domain, replace(y, name=target)])
            codes = Codes(domain, np.column_stack([codes.array, y_codes]))
        self._keep(self._solution(codes, target, weights))
        self._replicate(codes.n_rows)
        return codes

    def _learned_codes(self, X: Any, weights: np.ndarray | None) -> Codes:
        """Return the codes of rows from which the levels are learned."""
        return encode(
            X,
            bins=self._bins(n_rows(X) if weights is None else weights.sum()),
            levels=self.levels,
            max_levels=self._max_levels,
            missing_code=self._missing_code,
        )

    @property
    def _missing_code(self) -> Any:
        """What means missing, in the words of `encode`: here −1 never does unless it is said."""
        return np.nan if is_missing(self.missing_values) else self.missing_values

    def _keep(self, solution: Solution) -> None:
        self.solution_ = solution
        self.pmf_: JointPMF = solution.pmf
        self.n_iter_ = max(solution.n_iter, 1)

    def _replicate(self, n_rows: int | None = None) -> None:
        """Fit again to resampled rows, if that was asked for."""
        self.uncertainty_: Uncertainty | None = None
        if n := repeats(self.n_replicates, "n_replicates", 0):
            if n == 1 or n_rows == 1:
                what = "replicate" if n == 1 else "sample"
                raise JointPMFError(f"n_replicates needs more than one {what} to vary: 0 is none")
            self.uncertainty_ = self.solution_.uncertainty(
                n, random_state=seed_of(self.random_state), verbose=self.verbose
            )

    def _bins(self, n_rows: float) -> Bins | None:
        if not isinstance(self.bins, str):
            return self.bins
        if self.bins != "auto":
            raise JointPMFError(f"bins must be 'auto', a number or a mapping, not {self.bins!r}")
        return n_bins_of(n_rows, _BINS_POWER, _MAX_BINS)

    def _solution(
        self, codes: Any, target: str | None, weights: Any, levels: Levels | None = None
    ) -> Solution:
        from jointpmf.fit.rows import fit_rows  # what a fit needs is loaded by the first one

        objective = self._checked_objective()
        if target is not None and isinstance(self.rank, str):
            objective = replace(objective, target=target, emphasis=self._emphasis)
        return fit_rows(
            codes,
            self.rank,
            objective=objective,
            search=Search(n_starts=self.n_starts),
            max_iter=self.max_iter,
            tol=self.tol,
            sample_weight=weights,
            random_state=seed_of(self.random_state),
            verbose=self.verbose,
            levels=levels,
        )

    def _checked_objective(self) -> Likelihood:
        """Return the objective, with the smoothing that was asked for."""
        objective = checked_objective(self.objective)
        if self.smoothing is None:
            return objective
        return replace(objective, smoothing=self.smoothing)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a table as it is, or anything else as an array, after scikit-learn's checks."""
        if is_frame(X):
            with _in_a_sentence():
                validate_data(self, X, reset=reset, skip_check_array=True)
            if not n_rows(X) or not X.shape[1]:
                raise JointPMFError(f"the table is empty: its shape is {X.shape}")
            by_place = not reset and not hasattr(self, "feature_names_in_")
            is_text = all(isinstance(name, str) for name in column_names(X))
            return renamed(X) if by_place or not is_text else X
        with _in_a_sentence():
            return validate_data(
                self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", accept_sparse=False
            )

    def _codes(self, X: Any) -> Codes:
        """Return codes of new rows; what the model does not know is missing, the target too."""
        check_is_fitted(self)
        return self._codes_of(self._checked(X, reset=False))

    def _codes_of(self, X: Any) -> Codes:
        """Return codes of rows that have passed scikit-learn's checks."""
        codes, doubts = codes_and_doubts(X, self.domain_, missing_code=self._missing_code)
        for doubt in doubts:
            warnings.warn(doubt, UserWarning, stacklevel=4)
        if len(self.pmf_.domain) == len(self.domain_):
            return codes
        unknown = np.full((codes.n_rows, 1), MISSING, codes.array.dtype)
        return Codes(self.pmf_.domain, np.hstack([codes.array, unknown]))


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Say what scikit-learn finds wrong with values in one line, as everything else is said."""
    try:
        yield
    except ValueError as error:
        raise JointPMFError(error) from None


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
    with _in_a_sentence():
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
