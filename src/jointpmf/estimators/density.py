"""The joint distribution of a table's columns as an estimator, which can learn in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from jointpmf.data.encode import encode
from jointpmf.domain import Domain, checked_domain, is_missing
from jointpmf.errors import JointPMFError, seeded_generator, shown, whole_rank
from jointpmf.estimators.base import PMFBase, counting_rows, seed_of
from jointpmf.fit import settings
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.progress import checked_loop
from jointpmf.fit.solution import Solution
from jointpmf.point import Point
from jointpmf.rows.distributed import engine_of
from jointpmf.rows.source import Table
from jointpmf.rows.table import ColumnRows
from jointpmf.solvers.stepwise import steps_of
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.solvers.stepwise import Stepwise


def _check_can_learn_more(estimator: PMFBase) -> bool:
    """Raise unless the rank is given, without which an estimator cannot learn more."""
    if estimator.n_replicates:
        raise JointPMFError("partial_fit sees rows once, and n_replicates would see them again")
    if isinstance(estimator.rank, str):
        raise JointPMFError(
            f"partial_fit needs a rank that is a whole number, not {shown(estimator.rank)}"
        )
    return True


class PMFEstimator(PMFBase):
    """The joint distribution of a table's columns, as a density estimator.

    Parameters
    ----------
    rank : int or "auto"
        Number of components. By default it is chosen by what is held out, fits are stopped early,
        and several are averaged.
    objective : Likelihood, optional
        Settings of the fit, see `fit_rows`.
    smoothing : float or None
        Pseudo-counts per level and component, on average. As in `fit_rows`, by default 0 for a
        given rank, and for a chosen rank the better of 0.1 and 1.
    bins : "auto", int, mapping of name to int or edges, or None
        How to cut columns of numbers or times; a single number is for those with more than 20 of
        them, and by default it grows with the number of rows.
    levels : list, list of lists, or mapping of name to list, optional
        Levels in their order, as in `encode`.
    missing_values : number or text
        What means missing besides None, NaN, NaT and NA, which always do. In particular −1 is a
        number like any other unless it is given here.
    n_starts : int, optional
        For a given rank: from how many starts to fit; by default from as many as it takes to find
        the best optimum again.
    max_iter, tol : int, float, optional
        Budget of iterations, and the improvement below which a fit has converged, as in `fit_rows`.
    n_replicates : int
        How often to fit again to resampled rows, by `Solution.uncertainty`, to know how sure the
        model is; by default not at all.
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
    uncertainty_ : Uncertainty or None
        The replicates, if there are any.
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
        X, _, weights = counting_rows(self._checked(X, reset=True), None, sample_weight)
        codes = self._learned(X, None, None, weights)
        self._steps = None
        if not isinstance(self.rank, str):
            rows = ColumnRows.of_codes(codes, weights)
            self._steps = self._fit().stepwise(rows, Point.of_pmf(self.pmf_))
        return self

    @available_if(_check_can_learn_more)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, *, domain: Domain | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn from more rows, each of which is seen once; y is ignored.

        The first call is a fit, and so is `fit`, which begins afresh; every later one moves the
        model by a step of EM for each 16,384 rows. It needs a rank that is a number.

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
        X, _, weights = counting_rows(self._checked(X, reset=is_first), None, sample_weight)
        with one_blas_thread:
            if is_first:
                self._begin(X, weights, domain)
            elif domain is not None and checked_domain(domain) != self.domain_:
                raise JointPMFError("the domain belongs to the first call of partial_fit")
            else:
                self._go_on(X, weights)
        return self

    def _begin(self, X: Any, weights: np.ndarray | None, domain: Domain | None) -> None:
        if domain is None:
            codes = self._learned_codes(X, weights)
        else:
            checked_domain(domain)
            codes = encode(X, domain, missing_code=self._missing_code)
        self.domain_ = codes.domain
        table, fit = Table.of_codes(codes, weights), self._fit()
        if not table.total > 0:
            raise JointPMFError("no row has an observed cell and a weight")
        found = fit.run(table, seeded_generator(seed_of(self.random_state)))
        self._steps = fit.stepwise(table.rows, Point.of_pmf(found.pmf))
        self._keep(found)

    def _go_on(self, X: Any, weights: np.ndarray | None) -> None:
        try:
            codes = encode(X, self.domain_, missing_code=self._missing_code)
        except JointPMFError as error:
            raise JointPMFError(
                f"{error}; pass domain= with all levels in the first call of partial_fit"
            ) from None
        assert self._steps is not None
        for rows in steps_of(codes, weights, settings.EFFORT.step_rows):
            self._steps.add(rows)
        if self._steps.history:
            self._keep(Solution.of(self._steps.outcome(), codes.domain, self.solution_.start))

    def _fit(self) -> EMFit:
        """Return how a fit of the given rank is done."""
        objective = self._checked_objective()
        rank = whole_rank(self.rank)
        loop = checked_loop(self.max_iter, self.tol, (2000, 1e-10))
        return EMFit(rank, loop, objective.smoothing or 0.0, objective.towards or "uniform")

    def _learned_by_workers(self, X: Any, engine: str, sample_weight: Any) -> Self:
        """Fit the joint of the columns of a Dask or Spark DataFrame, as they are."""
        if isinstance(self.rank, str):
            raise JointPMFError(
                f"rank must be a whole number for a {engine} table, not {self.rank!r}"
            )
        if self.bins not in ("auto", None):
            raise JointPMFError(f"bins does not apply to a {engine} table: leave it out")
        if not is_missing(self.missing_values):
            raise JointPMFError(f"missing_values does not apply to a {engine} table: leave it out")
        self._keep(self._solution(X, None, sample_weight, self.levels))
        self._replicate()
        self.domain_ = self.pmf_.domain
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
        return self.pmf_.sample(n_samples, random_state=seed_of(random_state), backend=backend)
