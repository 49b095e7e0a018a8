"""Predictive sets and intervals of the scikit-learn classes, and what replicates add to them."""

import pickle
import unittest
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import jointpmf as jp

GENERATOR = np.random.default_rng(0)
X = GENERATOR.integers(3, size=(150, 3)).astype(float)
CLASSES = (X[:, 0] + GENERATOR.integers(3, size=150)) // 2
NUMBERS = X[:, 0] + GENERATOR.normal(size=150)
LEVELS = (0.3, 0.5, 0.9, 0.999)

NOT_OF_REPLICATES = {"check_sample_weight_equivalence_on_dense_data"}
"""A row that counts twice is one row to a bootstrap, and two rows are two."""


@parametrize_with_checks(
    [
        kind(4, max_iter=10, n_starts=2, n_replicates=2)
        for kind in (jp.PMFClassifier, jp.PMFRegressor)
    ]
)
def test_scikit_learn_accepts_replicates(estimator, check):
    if getattr(check, "func", check).__name__ in NOT_OF_REPLICATES:
        return
    try:
        check(estimator)
    except (unittest.SkipTest, pytest.skip.Exception) as skipped:
        pytest.fail(f"a check was skipped: {skipped}")


@cache
def fitted(kind, n_replicates=0, y="usual"):
    y = (CLASSES if kind is jp.PMFClassifier else NUMBERS) if y == "usual" else CLASSES
    return kind(2, n_replicates=n_replicates, random_state=0, tol=1e-6).fit(X, y)


class TestSets:
    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("n_replicates", [0, 5])
    def test_no_fewer_classes_have_as_much_probability(self, level, n_replicates):
        model = fitted(jp.PMFClassifier, n_replicates)
        for chosen, p in zip(model.predict_set(X, level), model.predict_proba(X), strict=True):
            assert p[chosen].sum() >= level - 1e-9
            fewer = combinations(p, chosen.sum() - 1)
            assert all(sum(some) < level for some in fewer)
            assert chosen[p.argmax()]

    def test_a_level_that_is_reached_exactly_needs_no_further_class(self):
        y = [0, 1, 2, 3] * 20
        model = jp.PMFClassifier(1, random_state=0).fit(np.zeros((80, 1)), y)
        assert model.predict_set([[0.0]], 0.75).sum() == 3


class TestIntervals:
    @pytest.mark.parametrize("level", LEVELS)
    def test_of_levels_the_ends_are_levels_with_little_probability_outside(self, level):
        model = fitted(jp.PMFRegressor, y="classes")
        values = np.array(model.pmf_.domain.variables[-1].values)
        probabilities = model._predicted(X)[1]
        for low, high, p in zip(*model.predict_interval(X, level), probabilities, strict=True):
            assert p[values < low].sum() < (1 - level) / 2 <= p[values <= low].sum() + 1e-9
            assert p[values > high].sum() <= (1 - level) / 2 + 1e-9 < p[values >= high].sum()

    @pytest.mark.parametrize("level", LEVELS)
    def test_of_bins_the_ends_are_where_draws_have_their_quantiles(self, level):
        model, generator = fitted(jp.PMFRegressor), np.random.default_rng(0)
        target, probabilities = model._predicted(X[:5])
        assert target.edges[0] == -np.inf
        assert target.edges[-1] == np.inf
        first, last = (target.values[k] for k in (0, -1))
        inner = target.edges[1:-1]
        begin, end = 2 * first - inner[0], 2 * last - inner[-1]
        edges = np.array([max(begin, NUMBERS.min()), *inner, min(end, NUMBERS.max())])
        n = 40_000
        for low, high, p in zip(*model.predict_interval(X[:5], level), probabilities, strict=True):
            bins = generator.choice(len(p), n, p=p / p.sum())
            drawn = edges[bins] + generator.random(n) * np.diff(edges)[bins]
            error = 4.5 * np.sqrt(0.25 / n)
            assert (drawn < low).mean() == pytest.approx((1 - level) / 2, abs=error)
            assert (drawn > high).mean() == pytest.approx((1 - level) / 2, abs=error)
            assert edges[0] <= low <= high <= edges[-1]

    @pytest.mark.parametrize("n_others", [25, 60])
    def test_they_do_not_reach_beyond_the_targets(self, n_others):
        y = np.concatenate([np.zeros(1_000), np.arange(1, n_others + 1)])
        model = jp.PMFRegressor(1, random_state=0).fit(np.zeros((len(y), 1)), y)
        assert model.pmf_.domain.variables[-1].edges is not None
        (low,), (high,) = model.predict_interval([[0.0]], 0.99)
        assert 0 <= low < high <= n_others

    def test_intervals_of_new_rows_hold_the_target_about_as_often_as_they_say(self):
        generator = np.random.default_rng(1)
        new = generator.integers(3, size=(2_000, 3)).astype(float)
        y = new[:, 0] + generator.normal(size=2_000)
        low, high = fitted(jp.PMFRegressor, 20).predict_interval(new, 0.8)
        assert 0.72 < ((low <= y) & (y <= high)).mean() < 0.88


class TestReplicates:
    def test_probabilities_are_the_mean_of_those_of_the_replicates(self):
        model = fitted(jp.PMFClassifier, 5)
        codes = model._codes(X)
        each = [pmf.predict_proba(codes, "target") for pmf in model.uncertainty_.pmfs]
        assert len(each) == 5
        np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), rtol=1e-12)
        assert np.ptp(each, axis=0).max() > 1e-3

    def test_the_deviation_is_that_within_and_between_replicates(self):
        model = fitted(jp.PMFRegressor, 5)
        codes = model._codes(X)
        values = np.array(model.pmf_.domain.variables[-1].values)
        each = np.array([pmf.predict_proba(codes, "target") for pmf in model.uncertainty_.pmfs])
        means = each @ values
        within = (each @ values**2 - means**2).mean(axis=0)
        mean, std = model.predict(X, return_std=True)
        np.testing.assert_allclose(mean, means.mean(axis=0))
        np.testing.assert_allclose(std**2, within + means.var(axis=0))
        np.testing.assert_array_equal(model.predict(X), mean)

    @pytest.mark.parametrize("kind", [jp.PMFClassifier, jp.PMFRegressor, jp.PMFEstimator])
    def test_replicates_are_those_of_the_solution(self, kind):
        model = fitted(kind, 3)
        same = model.solution_.uncertainty(3, random_state=0)
        np.testing.assert_array_equal(model.uncertainty_.weights, same.weights)
        assert fitted(kind).uncertainty_ is None

    def test_a_rank_that_is_found_has_replicates(self):
        model = jp.PMFRegressor(n_replicates=3, random_state=0).fit(X, NUMBERS)
        mean, std = model.predict(X, return_std=True)
        assert model.score(X, NUMBERS) > 0.2
        assert (std > 0).all()
        assert mean.shape == (150,)

    def test_what_is_pickled_predicts_the_same(self):
        model = fitted(jp.PMFClassifier, 5)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))

    def test_a_fit_without_replicates_forgets_those_before(self):
        model = clone(fitted(jp.PMFClassifier, 3)).fit(X, CLASSES)
        assert model.set_params(n_replicates=0).fit(X, CLASSES).uncertainty_ is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted(jp.PMFClassifier).predict_set(X, 1), "level must be between 0 and 1"),
        (lambda: fitted(jp.PMFRegressor).predict_interval(X, 90), "level must be between 0 and 1"),
        (lambda: jp.PMFClassifier(2, n_replicates=-1).fit(X, CLASSES), "n_replicates must be"),
        (lambda: jp.PMFClassifier(2, n_replicates=1).fit(X, CLASSES), "more than one replicate"),
        (lambda: jp.PMFEstimator(1, n_replicates=2).fit(X[:1]), "more than one sample"),
    ],
)
def test_what_cannot_be_predicted_is_refused(call, message):
    with pytest.raises(jp.JointPMFError, match=message):
        call()


def test_rows_that_are_seen_once_have_no_replicates():
    with pytest.raises(AttributeError) as error:
        jp.PMFEstimator(2, n_replicates=2).partial_fit(X)
    assert isinstance(error.value.__cause__, jp.JointPMFError)
    assert "n_replicates" in str(error.value.__cause__)
