"""The Vuong–Lo–Mendell–Rubin test, against derivatives by finite differences and simulation."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

import jointpmf as jp
from jointpmf.judge.vuong import reference_weights, vlmr_test
from jointpmf.judge.weighted_squares import survival
from support import oracle

SIZES = [2, 3, 2, 2]
DOMAIN = jp.Domain.of_sizes(SIZES)


def sampled(n_rows=200, missing=0.15):
    rows = separated(2).sample(n_rows, random_state=0, backend="codes")
    holes = np.random.default_rng(0).random(rows.shape) < missing
    return jp.Codes(DOMAIN, np.where(holes, -1, rows))


def separated(rank):
    """Return a model away from the boundary whose components are easy to tell apart."""
    factors = []
    for size in SIZES:
        factor = np.full((size, rank), 0.2 / (size - 1))
        factor[np.arange(rank) % size, np.arange(rank)] = 0.8
        factors.append(factor)
    return jp.JointPMF(DOMAIN, np.arange(1, rank + 1) / sum(range(1, rank + 1)), factors)


def independent(pmf):
    """Return the best model of rank one for the rows of another."""
    return jp.JointPMF(DOMAIN, [1.0], [(a @ pmf.weights)[:, None] for a in pmf.factors])


def expected_rows(pmf, is_noisy):
    """Return complete and incomplete rows, and counts near what a model expects."""
    rows = np.array([row for row in product(*(range(-1, size) for size in SIZES)) if max(row) >= 0])
    counts = 50 * np.array([oracle.row_probability(pmf, row) for row in rows])
    noise = np.random.default_rng(0).uniform(0.8, 1.2, len(rows))
    return rows, counts * noise if is_noisy else counts


def free(pmf):
    """Return a model as a vector of its free parameters: the last of each simplex is left out."""
    return np.concatenate([pmf.weights[:-1], *(factor[:-1].ravel() for factor in pmf.factors)])


def log_probabilities(vector, rank, rows):
    weights = np.append(vector[: rank - 1], 1 - vector[: rank - 1].sum())
    factors, at = [], rank - 1
    for size in SIZES:
        most = vector[at : at + (size - 1) * rank].reshape(size - 1, rank)
        factors.append(np.vstack([most, 1 - most.sum(axis=0)]))
        at += (size - 1) * rank
    return np.array([oracle.log_probability(weights, factors, row) for row in rows])


def derivatives(pmf, rows, counts):
    """Return the scores of all rows and the Hessian of their sum, by central differences."""
    vector, rank, step = free(pmf), pmf.rank, 1e-4
    unit = np.eye(len(vector)) * step

    def at(change):
        return log_probabilities(vector + change, rank, rows)

    scores = np.array([(at(e) - at(-e)) / (2 * step) for e in unit]).T
    hessian = np.array(
        [
            [
                counts @ (at(d + e) - at(d - e) - at(e - d) + at(-d - e)) / (4 * step**2)
                for e in unit
            ]
            for d in unit
        ]
    )
    return scores, hessian


class TestWeights:
    @pytest.mark.parametrize("is_noisy", [False, True])
    def test_they_are_the_eigenvalues_of_vuongs_matrix(self, is_noisy):
        large = separated(2)
        small = independent(large)
        rows, counts = expected_rows(large, is_noisy)
        (s, a), (t, b) = (derivatives(pmf, rows, counts) for pmf in (large, small))
        outer = [[x.T @ (counts[:, None] * y) for y in (s, t)] for x in (s, t)]
        a, b = np.linalg.inv(a), np.linalg.inv(b)
        matrix = np.block(
            [[-outer[0][0] @ a, -outer[0][1] @ b], [outer[1][0] @ a, outer[1][1] @ b]]
        )
        expected = np.sort(np.linalg.eigvals(matrix).real)
        found = reference_weights(small, large, jp.Codes(DOMAIN, rows), counts)
        assert (found.n_fixed, found.n_open) == (0, 0)
        assert found.weights == pytest.approx(expected, rel=1e-3, abs=1e-4)

    def test_parameters_at_the_boundary_count_as_known(self):
        large = separated(2)
        factors = [np.array(factor) for factor in large.factors]
        factors[1][:, 0] = [0.0, 0.5, 0.5]
        edge = jp.JointPMF(DOMAIN, large.weights, factors)
        rows, counts = expected_rows(edge, is_noisy=False)
        possible = counts > 0
        codes = jp.Codes(DOMAIN, rows[possible])
        found = reference_weights(independent(edge), edge, codes, counts[possible])
        assert (found.n_fixed, found.n_open) == (1, 0)
        assert len(found.weights) == (5 + 11) - 1

    def test_directions_that_rows_leave_open_are_left_out(self):
        codes = sampled(missing=0.0)
        small = independent(separated(2))
        split = jp.JointPMF(DOMAIN, [0.4, 0.6], [np.repeat(a, 2, axis=1) for a in small.factors])
        found = reference_weights(small, split, codes, np.ones(codes.n_rows))
        assert found.n_open > 0
        assert np.isfinite(found.weights).all()


class TestSurvival:
    @pytest.mark.parametrize("df", [1, 2, 3, 7, 40, 300])
    @pytest.mark.parametrize("level", [0.9, 0.5, 0.05, 0.001])
    def test_equal_weights_are_a_chi_squared(self, df, level):
        value = 2.5 * chi2.isf(level, df)
        assert survival(np.full(df, 2.5), value) == pytest.approx(level, abs=2e-6)

    @pytest.mark.parametrize("value", [-4.0, 0.0, 2.0, 9.0])
    def test_any_weights_by_simulation(self, value):
        weights = np.array([2.0, 1.0, 0.3, -0.7, -1.5, 0.0])
        draws = np.random.default_rng(0).standard_normal((200_000, 6)) ** 2 @ weights
        assert survival(weights, value) == pytest.approx((draws > value).mean(), abs=5e-3)

    def test_without_any_weight_all_is_at_zero(self):
        assert survival(np.zeros(3), 1.0) == 0.0
        assert survival(np.zeros(0), -1.0) == 1.0


@cache
def curve_of_three():
    return jp.choose_rank(sampled(), [1, 2, 4], criterion="bic", random_state=0)


class TestCurve:
    @pytest.fixture
    def curve(self):
        return curve_of_three()

    def test_the_statistic_and_its_adjustment(self, curve):
        found, codes = curve.vlmr(2), sampled()
        logs = [curve[rank].pmf.log_probability(codes).sum() for rank in (2, 4)]
        assert (found.rank, found.larger) == (2, 4)
        assert found.statistic == pytest.approx(2 * (logs[1] - logs[0]))
        n_rows = (codes.array >= 0).any(axis=1).sum()
        by = 1 + 1 / ((23 - 11) * math.log(n_rows))
        assert found.adjusted_statistic == pytest.approx(found.statistic / by)
        assert found.p_value == pytest.approx(survival(found.weights, found.statistic))
        adjusted = survival(found.weights, found.adjusted_statistic)
        assert found.adjusted_p_value == pytest.approx(adjusted)
        assert found.mean == pytest.approx(found.weights.sum())
        assert found.sd == pytest.approx(math.sqrt(2 * (found.weights**2).sum()))

    def test_all_tests_as_lines_and_as_a_frame(self, curve):
        tests = curve.vlmr_tests()
        assert [(test.rank, test.larger) for test in tests.tests] == [(1, 2), (2, 4)]
        assert str(tests).splitlines() == [str(curve.vlmr(1)), str(curve.vlmr(2))]
        frame = tests.to_frame("pandas")
        assert frame["p_value"].tolist() == [test.p_value for test in tests.tests]
        assert frame["sd"].tolist() == [test.sd for test in tests.tests]

    def test_weights_are_repeated_rows(self):
        codes = sampled(missing=0.0)
        weights = np.random.default_rng(0).integers(0, 4, codes.n_rows)
        repeated = jp.Codes(DOMAIN, codes.array.repeat(weights, axis=0))
        large = separated(2)
        small = independent(large)
        one = vlmr_test(small, large, codes, weights.astype(float))
        other = vlmr_test(small, large, repeated, None)
        assert one.weights == pytest.approx(other.weights)
        assert one.adjusted_p_value == pytest.approx(other.adjusted_p_value)

    def test_a_sentence_says_what_was_found(self, curve):
        text = str(curve.vlmr(1))
        assert text.startswith("Rank 1 against 2: likelihood ratio ")
        assert "by this test rank 1 " in text

    @pytest.mark.parametrize("rank", [3, 4])
    def test_a_rank_without_a_larger_one_is_refused(self, curve, rank):
        with pytest.raises(jp.JointPMFError, match=f"no models of rank {rank} and of a larger"):
            curve.vlmr(rank)

    def test_a_rank_that_is_no_number_is_refused(self, curve):
        with pytest.raises(jp.JointPMFError, match="the rank must be a whole number"):
            curve.vlmr("2")

    def test_smoothed_fits_are_refused(self):
        smooth = jp.Likelihood(smoothing=0.1)
        curve = jp.choose_rank(sampled(), [1, 2], "bic", objective=smooth, random_state=0)
        with pytest.raises(jp.JointPMFError, match="maximum-likelihood fits: leave smoothing out"):
            curve.vlmr(1)

    def test_a_model_too_large_is_said(self):
        domain = jp.Domain.of_sizes([2] * 1001)
        small, large = (jp.random_pmf(domain, rank, 0) for rank in (1, 2))
        codes = jp.Codes(domain, np.zeros((3, 1001), int))
        with pytest.raises(jp.JointPMFError, match="rank 2 has 2003 parameters"):
            vlmr_test(small, large, codes, None)


def test_a_rank_that_is_not_enough_is_refuted():
    factors = [np.array([[0.9, 0.1], [0.1, 0.9]])] * 6
    truth = jp.JointPMF(jp.Domain.of_sizes([2] * 6), [0.5, 0.5], factors)
    rows = jp.Codes(truth.domain, truth.sample(500, random_state=0, backend="codes"))
    curve = jp.choose_rank(rows, [1, 2, 3], criterion="bic", random_state=0)
    by_simulation = jp.bootstrap_test(rows, 1, n_bootstrap=19, random_state=0)
    assert curve.vlmr(1).adjusted_p_value < 1e-6
    assert by_simulation.p_value == 0.05
    assert curve.vlmr(2).p_value > curve.vlmr(1).p_value
