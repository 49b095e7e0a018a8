"""A target by its joint distribution with the features: classes, or expected values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from jointpmf.data.encode import encode
from jointpmf.domain import Variable
from jointpmf.errors import checked_level, true_or_false
from jointpmf.estimators.base import PMFBase, checked_target, counting_rows, n_bins_of, n_rows
from jointpmf.fit.settings import emphasis_of

_MAX_TARGET_BINS, _TARGET_BINS_POWER = 20, 1 / 3
"""Parts that a target is cut into: at most, and as a power of the number of rows."""

_SUM_SLACK = 1e-12
"""By how much a sum of probabilities may miss what was asked for."""


class _WithTarget(PMFBase):
    """What classifier and regressor share: the distribution of the target."""

    def _predicted(self, X: Any) -> tuple[Variable, np.ndarray]:
        """Return the target, and the probability of each of its levels in each row.

        Replicates are averaged: so the distribution is as wide as the model is unsure.
        """
        codes = self._codes(X)
        target = codes.domain.variables[-1]
        models = [self.pmf_] if self.uncertainty_ is None else self.uncertainty_.pmfs
        total = np.zeros((codes.n_rows, target.size))
        for pmf in models:
            total += pmf.predict_proba(codes, target.name)
        return target, total / len(models)


class PMFClassifier(ClassifierMixin, _WithTarget):  # type: ignore[misc]
    """A classifier by the joint distribution of features and class.

    Missing features are summed out, never imputed. Parameters and attributes are those of
    `PMFEstimator`; `classes_` are the labels. With `n_replicates` the probabilities are the mean of
    those of the replicates, and so include what is not known of the model. The replicates of
    `rank="auto"` are of as many steps, and do not count the target more often than other columns,
    as that fit may do: they tell how far models differ, and about where they are.

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
        labels = checked_target(self, X, y)
        check_classification_targets(labels)
        X, labels, weights = counting_rows(X, labels, sample_weight)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        target = Variable("target", range(len(self.classes_)))
        self._learned(X, target, codes, weights)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return, of shape (rows, classes), the probability of each class."""
        return self._predicted(X)[1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_set(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Return the fewest classes that hold the right one with some probability, in each row.

        Parameters
        ----------
        X : table or array
            Rows.
        level : float
            The probability that the classes of a row have together, at least.

        Returns
        -------
        array of bool of shape (rows, classes)
            Which of `classes_` are among them; the most likely one always is.

        Examples
        --------
        >>> X = [["rain"], ["rain"], ["sun"], ["sun"]] * 10
        >>> model = PMFClassifier(rank=2, random_state=0).fit(X, ["coat", "hat", "hat", "hat"] * 10)
        >>> model.predict_set([["rain"], ["sun"]]).tolist()
        [[True, True], [False, True]]
        """
        wanted = checked_level(level) - _SUM_SLACK
        probabilities = self.predict_proba(X)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        ordered = np.take_along_axis(probabilities, order, axis=1)
        is_needed = ordered.cumsum(axis=1) - ordered < wanted  # those before do not suffice
        chosen = np.zeros(probabilities.shape, bool)
        np.put_along_axis(chosen, order, is_needed, axis=1)
        return chosen


class PMFRegressor(RegressorMixin, _WithTarget):  # type: ignore[misc]
    """The expected value of an ordinal or continuous target, by its joint with the features.

    A target of more than 20 different numbers is cut into bins, each standing for its mean.
    Parameters and attributes are those of `PMFEstimator`; `n_replicates` is as in `PMFClassifier`.

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
            checked_target(self, X, y), dtype=np.float64, ensure_2d=False, input_name="y"
        )
        X, numbers, weights = counting_rows(X, numbers, sample_weight)
        count = n_rows(X) if weights is None else weights.sum()
        n_bins = n_bins_of(count, _TARGET_BINS_POWER, _MAX_TARGET_BINS)
        target = encode(
            numbers[:, None], bins=n_bins, max_levels=self._max_levels, missing_code=None
        )
        (variable,) = target.domain
        self._range = float(numbers.min()), float(numbers.max())
        self._learned(X, variable, target.array[:, 0], weights)
        return self

    @property
    def _emphasis(self) -> int:
        """A mean is what matters here, and held-out likelihood says little about it."""
        return emphasis_of(len(self.domain_))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected target of each row, and its standard deviation if asked for.

        With `n_replicates` the deviation is that of the target around its expectation and of the
        expectation among replicates together.
        """
        target, probabilities = self._predicted(X)
        values = np.array(target.values)
        mean = (probabilities * values).sum(axis=1)
        if not true_or_false(return_std, "return_std"):
            return mean
        variance = (probabilities * (values - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return between what the target of each row is, with some probability.

        Below and above there is as much probability, at most. Within a bin it is spread evenly, and
        the outer bins have their mean in the middle, unless no target was so far out.

        Parameters
        ----------
        X : table or array
            Rows.
        level : float
            The probability that the target is between both, at least.

        Returns
        -------
        low, high : array of shape (rows,)
            The ends of the intervals.

        Examples
        --------
        >>> X = [["low"], ["low"], ["high"], ["high"]] * 20
        >>> model = PMFRegressor(rank=2, random_state=0).fit(X, [1, 2, 4, 5] * 20)
        >>> low, high = model.predict_interval([["low"], ["high"]])
        >>> low.tolist(), high.tolist()
        ([1.0, 4.0], [2.0, 5.0])
        """
        tail = (1 - checked_level(level)) / 2
        target, probabilities = self._predicted(X)
        values, edges = np.array(target.values), None
        if target.edges is not None:
            least, most = self._range
            edges = np.array(target.edges)
            edges[0] = max(least, 2 * values[0] - edges[1])
            edges[-1] = min(most, 2 * values[-1] - target.edges[-2])
        low, high = (_quantiles(values, edges, probabilities, part) for part in (tail, 1 - tail))
        return low, high


def _quantiles(
    values: np.ndarray, edges: np.ndarray | None, probabilities: np.ndarray, part: float
) -> np.ndarray:
    """Return the value up to which there is some part of each row's probability."""
    upto = probabilities.cumsum(axis=1)
    place = np.minimum((upto < part - _SUM_SLACK).sum(axis=1), len(values) - 1)
    if edges is None:
        return values[place]
    rows = np.arange(len(place))
    own = probabilities[rows, place]
    missing = part - (upto[rows, place] - own)
    within = np.divide(missing, own, out=np.ones_like(own), where=own > 0).clip(0, 1)
    return edges[place] + within * np.diff(edges)[place]
