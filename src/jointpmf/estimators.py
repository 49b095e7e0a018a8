"""The scikit-learn classes: parameters in, fitted attributes out, no mathematics.

A table may be a pandas, Polars or PyArrow table or an array; missing cells are summed out, and
levels that were not seen in training say nothing. Columns of many different numbers are cut into
bins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags, _safe_indexing, check_array, column_or_1d
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from jointpmf.data.binning import Bins
from jointpmf.data.codes import Codes, checked_weights
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, Domain, Variable, check_is_domain
from jointpmf.errors import (
    JointPMFError,
    at_least_zero,
    one_of,
    seeded_generator,
    shown,
    whole_number,
)
from jointpmf.fit.automatic import SMOOTHINGS, emphasis_of, fit_auto
from jointpmf.fit.plan import FitData, FitPlan
from jointpmf.fit.progress import iteration_bar
from jointpmf.fit.rows import fit_rows, loop_options
from jointpmf.pmf import JointPMF
from jointpmf.predict.impute import impute
from jointpmf.rows.distributed import engine_of
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.loop import Solution
from jointpmf.solvers.stepwise import Stepwise, steps_of
from jointpmf.threads import one_blas_thread

MAX_LEVELS = 20
"""A column with more different numbers is cut into bins."""

MAX_BINS, BINS_POWER = 10, 0.25
MAX_TARGET_BINS, TARGET_BINS_POWER = 20, 1 / 3
"""Parts that a column, and a target, is cut into by default: a power of the number of rows."""


class _PMFBase(BaseEstimator):  # type: ignore[misc]
    """What all of them share: the parameters, reading tables, and the fit."""

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        method: str = "auto",
        order: int = 3,
        smoothing: float | None = None,
        bins: Bins | str | None = "auto",
        n_init: int = 1,
        max_iter: int = 2000,
        tol: float = 1e-8,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.rank = rank
        self.method = method
        self.order = order
        self.smoothing = smoothing
        self.bins = bins
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
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
            target = _free_name("target", codes.domain)
            domain = Domain([*codes.domain, replace(y, name=target)])
            codes = Codes(domain, np.column_stack([codes.array, y_codes]))
        self._keep(self._solution(codes, target, weights))
        return codes

    def _learned_codes(self, X: Any, weights: np.ndarray | None) -> Codes:
        """Return the codes of rows from which the levels are learned."""
        self._missing_code = _missing_code(X)
        return encode(
            X,
            bins=self._bins(_n_rows(X) if weights is None else weights.sum()),
            max_levels=MAX_LEVELS,
            missing_code=self._missing_code,
        )

    def _keep(self, solution: Solution) -> None:
        self.solution_ = solution
        self.pmf_: JointPMF = solution.pmf
        self.n_iter_ = max(solution.n_iter, 1)

    def _bins(self, n_rows: float) -> Bins | None:
        if not isinstance(self.bins, str):
            return self.bins
        if self.bins != "auto":
            raise JointPMFError(f"bins must be 'auto', a number or a mapping, not {self.bins!r}")
        return _n_bins(n_rows, BINS_POWER, MAX_BINS)

    def _solution(self, codes: Any, target: str | None, weights: Any) -> Solution:
        one_of(self.method, ("auto", "likelihood", "marginals"), "method")
        seed = _seed(self.random_state)
        max_iter = whole_number(self.max_iter, "max_iter", 0)
        if isinstance(self.rank, str):
            if self.rank != "auto" or self.method == "marginals":
                raise JointPMFError(
                    f"rank must be a whole number, or 'auto' with the method 'likelihood', "
                    f"not {shown(self.rank)} with {shown(self.method)}"
                )
            return fit_auto(
                codes,
                target=target,
                emphasis=self._emphasis,
                smoothing=self.smoothing,
                sample_weight=weights,
                random_state=seed,
                progress=self.verbose,
            )
        smoothing = SMOOTHINGS[0] if self.smoothing is None else self.smoothing
        options: dict[str, Any] = {"smoothing": smoothing, "n_init": self.n_init}
        if self.method == "marginals":
            options = {"method": "marginals", "order": self.order}
        with iteration_bar(max_iter, self.verbose) as callback:
            return fit_rows(
                codes,
                self.rank,
                towards="marginal",
                max_iter=max_iter,
                tol=self.tol,
                sample_weight=weights,
                random_state=seed,
                callback=callback,
                **options,
            )

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a table as it is, or anything else as an array, after scikit-learn's checks."""
        if _is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not _n_rows(X) or not X.shape[1]:
                raise JointPMFError(f"the table is empty: its shape is {X.shape}")
            by_place = not reset and not hasattr(self, "feature_names_in_")
            is_text = all(isinstance(name, str) for name in _names(X))
            return _renamed(X) if by_place or not is_text else X
        return validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", accept_sparse=False
        )

    def _codes(self, X: Any) -> Codes:
        """Return codes of new rows; what the model does not know is missing, the target too."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        codes = encode(X, self.domain_, unknown="missing", missing_code=self._missing_code)
        if len(self.pmf_.domain) == len(self.domain_):
            return codes
        unknown = np.full((codes.n_rows, 1), MISSING, codes.array.dtype)
        return Codes(self.pmf_.domain, np.hstack([codes.array, unknown]))


def _check_can_learn_more(estimator: _PMFBase) -> bool:
    """Raise unless the rank is known and rows are fitted, by which an estimator can learn more."""
    if isinstance(estimator.rank, str) or estimator.method == "marginals":
        raise JointPMFError(
            f"partial_fit needs a rank that is a whole number, and rows to fit, not "
            f"rank={shown(estimator.rank)} with method={shown(estimator.method)}"
        )
    return True


class PMFEstimator(_PMFBase):
    """The joint distribution of a table's columns, as a density estimator.

    Parameters
    ----------
    rank : int or "auto"
        Number of components. By default it is chosen by what is held out, fits are stopped early,
        and several are averaged.
    method : {"auto", "likelihood", "marginals"}
        How to fit, see `fit_rows`; "auto" is likelihood.
    order : int
        Of the marginals, for that method.
    smoothing : float or None
        Pseudo-counts per level and component, on average, towards the marginals. By default 0.1
        for a given rank, and for a chosen rank the better of 0.1 and 1.
    bins : "auto", int, mapping of name to int or edges, or None
        How to cut columns of numbers; a single number is for those with more than 20 of them, and
        by default it grows with the number of rows.
    n_init, max_iter, tol
        For a given rank: how often to fit, the budget of iterations, and the change of the mean
        log-likelihood below which the fit has converged.
    random_state : int, RandomState or None
        The same seed gives the same bits.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    pmf_ : JointPMF
        The model, which can be asked anything.
    solution_ : Solution
        How it was found.
    domain_ : Domain
        The columns and their levels.
    n_features_in_, feature_names_in_, n_iter_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", None]] * 10
    >>> model = PMFEstimator(rank=2, random_state=0).fit(X)
    >>> model.pmf_.mode([["sun", None]], "x1").tolist()
    ['dry']
    """

    _steps: Stepwise | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint distribution of the columns; y is ignored.

        Dask and Spark DataFrames are welcome where the rank is given.
        """
        if engine := engine_of(X):
            return self._learned_by_workers(X, engine, sample_weight)
        X, _, weights = _counting(self._checked(X, reset=True), None, sample_weight)
        codes = self._learned(X, None, None, weights)
        self._steps = None
        if not (isinstance(self.rank, str) or self.method == "marginals"):
            rows = ColumnRows.of_codes(codes, weights)
            self._steps = Stepwise(self._plan(), rows, self.pmf_, self.solution_.start)
        return self

    @available_if(_check_can_learn_more)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, *, domain: Domain | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn from more rows, each of which is seen once; y is ignored.

        The first call is a fit, and so is `fit`, which begins afresh; every later one moves the
        model by a step of EM for each 16,384 rows. It needs a rank that is a number, and the method
        "likelihood".

        Parameters
        ----------
        X : table or array
            Some rows.
        y : None
            Ignored.
        domain : Domain, optional
            The levels of all columns, for the first call; by default those that its rows have.
        sample_weight : array of shape (rows,), optional
            What each row counts for.
        """
        if engine := engine_of(X):
            raise JointPMFError(f"partial_fit takes rows in memory; fit takes a table of {engine}")
        is_first = self._steps is None
        X, _, weights = _counting(self._checked(X, reset=is_first), None, sample_weight)
        with one_blas_thread:
            if is_first:
                self._begin(X, weights, domain)
            elif domain not in (None, self.domain_):
                raise JointPMFError("the domain belongs to the first call of partial_fit")
            else:
                self._go_on(X, weights)
        return self

    def _begin(self, X: Any, weights: np.ndarray | None, domain: Domain | None) -> None:
        if domain is None:
            codes = self._learned_codes(X, weights)
        else:
            check_is_domain(domain)
            has_minus_one = any(MISSING in variable for variable in domain)
            self._missing_code = None if has_minus_one else MISSING
            codes = encode(X, domain, missing_code=self._missing_code)
        self.domain_ = codes.domain
        data, plan = FitData.of_codes(codes, weights), self._plan()
        if not data.rows.total > 0:
            raise JointPMFError("no row has an observed cell and a weight")
        found = plan.run(data, seeded_generator(_seed(self.random_state)))
        self._steps = Stepwise(plan, data.rows, found.pmf, found.start)
        self._keep(found)

    def _go_on(self, X: Any, weights: np.ndarray | None) -> None:
        try:
            codes = encode(X, self.domain_, missing_code=self._missing_code)
        except JointPMFError as error:
            raise JointPMFError(
                f"{error}; pass domain= with all levels in the first call of partial_fit"
            ) from None
        assert self._steps is not None
        for rows in steps_of(codes, weights):
            self._steps.add(rows)
        if self._steps.history:
            self._keep(self._steps.solution())

    def _plan(self) -> FitPlan:
        smoothing = SMOOTHINGS[0] if self.smoothing is None else self.smoothing
        rank = whole_number(self.rank, "the rank", 1)
        options = loop_options(self.max_iter, self.tol)
        return FitPlan(rank, "auto", at_least_zero(smoothing, "smoothing"), "marginal", options)

    def _learned_by_workers(self, X: Any, engine: str, sample_weight: Any) -> Self:
        """Fit the joint of the columns of a Dask or Spark DataFrame, as they are."""
        if isinstance(self.rank, str):
            raise JointPMFError(
                f"rank must be a whole number for a {engine} table, not {self.rank!r}"
            )
        if self.bins not in ("auto", None):
            raise JointPMFError(f"bins does not apply to a {engine} table: leave it out")
        self._keep(self._solution(X, None, sample_weight))
        self.domain_ = self.pmf_.domain
        self._missing_code = None
        self.feature_names_in_ = np.asarray(self.domain_.names, object)
        self.n_features_in_ = len(self.domain_)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-probability of each row's observed cells."""
        codes = self._codes(X)
        return self.pmf_.log_probability(codes)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-probability of the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None, backend: str = "polars") -> Any:
        """Return new rows: a table of the chosen kind, or an array of codes."""
        check_is_fitted(self)
        return self.pmf_.sample(n_samples, random_state=_seed(random_state), backend=backend)


class PMFClassifier(ClassifierMixin, _PMFBase):  # type: ignore[misc]
    """A classifier by the joint distribution of features and class.

    Missing features are summed out, never imputed. Parameters and attributes are those of
    `PMFEstimator`; `classes_` are the labels.

    Examples
    --------
    >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", None]] * 10
    >>> y = ["umbrella", "umbrella", "hat", "hat"] * 10
    >>> PMFClassifier(random_state=0).fit(X, y).predict([["sun", None], [None, "wet"]]).tolist()
    ['hat', 'umbrella']
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the joint distribution of the columns and the class."""
        X = self._checked(X, reset=True)
        labels = _checked_target(self, X, y)
        check_classification_targets(labels)
        X, labels, weights = _counting(X, labels, sample_weight)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        target = Variable("target", range(len(self.classes_)))
        self._learned(X, target, codes, weights)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return, of shape (rows, classes), the probability of each class."""
        codes = self._codes(X)
        return self.pmf_.predict_proba(codes, codes.domain.names[-1])

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class PMFRegressor(RegressorMixin, _PMFBase):  # type: ignore[misc]
    """The expected value of an ordinal or continuous target, by its joint with the features.

    A target of more than 20 different numbers is cut into bins, each standing for its mean.
    Parameters and attributes are those of `PMFEstimator`.

    Examples
    --------
    >>> X = [["low"], ["low"], ["high"], ["high"]] * 20
    >>> model = PMFRegressor(rank=2, random_state=0).fit(X, [1, 2, 4, 5] * 20)
    >>> model.predict([["low"], ["high"]]).round(1).tolist()
    [1.5, 4.5]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the joint distribution of the columns and the target."""
        X = self._checked(X, reset=True)
        numbers = check_array(
            _checked_target(self, X, y), dtype=np.float64, ensure_2d=False, input_name="y"
        )
        X, numbers, weights = _counting(X, numbers, sample_weight)
        n_rows = _n_rows(X) if weights is None else weights.sum()
        n_bins = _n_bins(n_rows, TARGET_BINS_POWER, MAX_TARGET_BINS)
        target = encode(numbers[:, None], bins=n_bins, max_levels=MAX_LEVELS, missing_code=None)
        (variable,) = target.domain
        self._learned(X, variable, target.array[:, 0], weights)
        return self

    @property
    def _emphasis(self) -> int:
        """A mean is what matters here, and held-out likelihood says little about it."""
        return emphasis_of(len(self.domain_))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected target of each row, and its standard deviation if asked for."""
        codes = self._codes(X)
        target = codes.domain.variables[-1]
        values = np.array(target.values)
        probabilities = self.pmf_.predict_proba(codes, target.name)
        mean = (probabilities * values).sum(axis=1)
        if not return_std:
            return mean
        variance = (probabilities * (values - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance)


class PMFImputer(TransformerMixin, _PMFBase):  # type: ignore[misc]
    """Fills missing cells from the joint distribution of all columns.

    What goes in as pandas, Polars or PyArrow comes out as that, with the same index, columns and
    types; `set_output` works too.

    Parameters
    ----------
    rank, method, order, smoothing, bins, n_init, max_iter, tol, random_state, verbose
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
        method: str = "auto",
        order: int = 3,
        smoothing: float | None = None,
        bins: Bins | str | None = "auto",
        n_init: int = 1,
        max_iter: int = 2000,
        tol: float = 1e-8,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            rank,
            method=method,
            order=order,
            smoothing=smoothing,
            bins=bins,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )
        self.strategy = strategy

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint distribution of the columns; y is ignored."""
        X, _, weights = _counting(self._checked(X, reset=True), None, sample_weight)
        self._learned(X, None, None, weights)
        return self

    def transform(self, X: Any) -> Any:
        """Return a table of the same kind with its missing cells filled."""
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        seed = _seed(self.random_state)
        filled = impute(self.pmf_, checked, self.strategy, seed, self._missing_code)
        if _is_frame(X) and _names(X) != _names(checked):
            filled = _renamed(filled, X.columns if hasattr(X, "set_axis") else _names(X))
        # scikit-learn does not know PyArrow tables, but what Polars makes of them
        wraps = _get_output_config("transform", self)["dense"] != "default"
        return pl.from_arrow(filled) if wraps and hasattr(filled, "column_names") else filled

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are those that came in."""
        check_is_fitted(self)
        if hasattr(self, "feature_names_in_"):
            return np.asarray(_check_feature_names_in(self, input_features), object)
        return np.asarray(self.domain_.names, object)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape")


def _names(X: Any) -> list[Any]:
    return list(getattr(X, "column_names", X.columns))  # of PyArrow, or of the others


def _renamed(X: Any, names: Any = None) -> Any:
    """Return a table with other names, by default those that an array's columns get."""
    names = [f"x{n}" for n in range(X.shape[1])] if names is None else names
    if hasattr(X, "set_axis"):
        return X.set_axis(names, axis=1)
    if hasattr(X, "rename_columns"):
        return X.rename_columns(names)
    return X.rename(dict(zip(X.columns, names, strict=True)))


def _n_rows(X: Any) -> int:
    return int(X.shape[0])


def _missing_code(X: Any) -> int | None:
    """Return −1 if it means missing: where no whole number is below it."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "iu" and X.size and X.min() >= MISSING:
        return MISSING
    return None


def _counting(
    X: Any, y: np.ndarray | None, sample_weight: Any
) -> tuple[Any, Any, np.ndarray | None]:
    """Return the rows that count: others say nothing about levels or classes either."""
    weights = checked_weights(sample_weight, _n_rows(X))
    if weights is None:
        return X, y, None
    counting = np.flatnonzero(weights)
    if not len(counting):
        raise JointPMFError("all sample weights are zero")
    return _safe_indexing(X, counting), None if y is None else y[counting], weights[counting]


def _checked_target(estimator: BaseEstimator, X: Any, y: Any) -> np.ndarray:
    if y is None:
        raise JointPMFError(
            f"requires y to be passed, but the target y is None: {type(estimator).__name__} "
            "learns a target"
        )
    array = column_or_1d(y, warn=True)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise JointPMFError("Input y contains NaN or infinity")
    if len(array) != _n_rows(X):
        raise JointPMFError(f"there are {len(array)} targets for {_n_rows(X)} rows")
    return array


def _n_bins(n_rows: float, power: float, most: int) -> int:
    return int(min(max(round(n_rows**power), 2), most))


def _free_name(wished: str, domain: Domain) -> str:
    while wished in domain:
        wished += "_"
    return wished


def _seed(random_state: Any) -> Any:
    """Return a seed for numpy's generators from what scikit-learn allows."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
