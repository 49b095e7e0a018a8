"""A target by its joint distribution with the features: classes, or expected values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from jointpmf.data.encode import encode
from jointpmf.domain import Variable
from jointpmf.estimators.base import PMFBase, checked_target, counting_rows, n_bins_of, n_rows
from jointpmf.fit.settings import emphasis_of

_MAX_BINS, _BINS_POWER = 20, 1 / 3
"""Parts that a target is cut into: at most, and as a power of the number of rows."""


class PMFClassifier(ClassifierMixin, PMFBase):  # type: ignore[misc]
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
        labels = checked_target(self, X, y)
        check_classification_targets(labels)
        X, labels, weights = counting_rows(X, labels, sample_weight)
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


class PMFRegressor(RegressorMixin, PMFBase):  # type: ignore[misc]
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
            checked_target(self, X, y), dtype=np.float64, ensure_2d=False, input_name="y"
        )
        X, numbers, weights = counting_rows(X, numbers, sample_weight)
        count = n_rows(X) if weights is None else weights.sum()
        n_bins = n_bins_of(count, _BINS_POWER, _MAX_BINS)
        target = encode(
            numbers[:, None], bins=n_bins, max_levels=self._max_levels, missing_code=None
        )
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
