"""Recommendations against brute force, and calibration."""

import logging
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.ratings import Ratings
from jointpmf.predict.recommend import coverage, recommend, shortest_ranges
from support import oracle
from support.ratings import BACKENDS, SCALE, domain_of, rows_of, some_ratings


def range_by_brute_force(shares, probability):
    """Return the ends of the shortest range of levels that has the probability."""
    ranges = combinations(range(len(shares) + 1), 2)
    enough = [(a, b) for a, b in ranges if shares[a:b].sum() >= probability - 1e-9]
    low, end = min(enough, key=lambda ab: (ab[1] - ab[0], -round(shares[slice(*ab)].sum(), 9)))
    return low, end - 1


def recommended_by_brute_force(pmf, ratings, n, rows, probability):
    for row in rows:
        codes = np.full(len(pmf.domain), -1)
        codes[[pmf.domain.index(name) for name in ratings.items]] = ratings.codes.array[row]
        found = []
        for place, name in enumerate(ratings.items):
            if ratings.codes.array[row, place] < 0:
                shares = oracle.row_prediction(pmf, codes, pmf.domain.index(name))
                ends = range_by_brute_force(shares, probability)
                mean = float(shares @ ratings.scale)
                found.append((name, mean, *(ratings.scale[end] for end in ends)))
        for one in sorted(found, key=lambda one: -one[1])[:n]:
            yield (ratings.users.tolist()[row], *one)


def assert_same_rows(table, expected):
    rows, expected = rows_of(table), list(expected)
    assert [row[:2] + row[3:] for row in rows] == [row[:2] + row[3:] for row in expected]
    np.testing.assert_allclose([row[2] for row in rows], [row[2] for row in expected], atol=1e-12)


class TestRecommend:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("n", [1, 2, 10])
    def test_is_what_brute_force_finds(self, seed, n):
        ratings = some_ratings(n_users=12, seed=seed)
        extra = jp.Variable("age", ("young", "old"))
        domain = jp.Domain([extra, *ratings.codes.domain.variables[::-1]])
        pmf = jp.random_pmf(domain, rank=3, random_state=seed)
        probability = (0.3, 0.5, 0.8, 0.95, 1.0)[seed]
        table = recommend(pmf, ratings, n, probability=probability)
        assert table.columns == ["user", "item", "expected", "low", "high"]
        expected = recommended_by_brute_force(pmf, ratings, n, range(12), probability)
        assert_same_rows(table, expected)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_some_users_in_the_order_asked(self, backend):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=3, random_state=0)
        table = recommend(pmf, ratings, 2, users=np.array([30, 3]), backend=backend)
        assert isinstance(table, BACKENDS[backend])
        assert_same_rows(table, recommended_by_brute_force(pmf, ratings, 2, [10, 1], 0.8))

    def test_blocks_of_users_change_nothing(self):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=3, random_state=0)
        rows = rows_of(recommend(pmf, ratings, 3))
        array = np.tile(ratings.codes.array, (250, 1))  # more users than a block has
        many = Ratings(np.arange(len(array)) * 3, jp.Codes(ratings.codes.domain, array))
        expected = [(row[0] + 120 * k, *row[1:]) for k in range(250) for row in rows]
        assert_same_rows(recommend(pmf, many, 3), expected)

    def test_who_rated_everything_gets_nothing_and_who_rated_nothing_the_marginal(self):
        domain = domain_of("AB")
        pmf = jp.random_pmf(domain, rank=2, random_state=0)
        ratings = Ratings(["all", "none"], jp.Codes(domain, [[0, 1], [-1, -1]]))
        table = recommend(pmf, ratings)
        assert table["user"].to_list() == ["none", "none"]
        means = {name: pmf.marginal([name]).table() @ [1, 2, 3] for name in "AB"}
        found = dict(table.select("item", "expected").rows())
        assert found == pytest.approx(means)
        assert table["item"].to_list() == sorted(means, key=lambda name: -means[name])

    def test_ties_are_in_the_order_of_the_items(self):
        domain = domain_of([f"item {n}" for n in range(9)])
        factor = np.random.default_rng(0).dirichlet(np.ones(3), 4).T
        pmf = jp.JointPMF(domain, [0.1, 0.2, 0.3, 0.4], [factor] * 9)
        rows = oracle.random_table(np.random.default_rng(1), domain, 50, 0.7)
        table = recommend(pmf, Ratings(np.arange(50), jp.Codes(domain, rows)), n=9)
        for (_, items), row in zip(
            table.group_by("user", maintain_order=True).agg("item").rows(), rows, strict=True
        ):
            assert items == [f"item {n}" for n in np.flatnonzero(row < 0)]

    def test_nobody_asked_is_an_empty_table(self):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=3, random_state=0)
        assert recommend(pmf, ratings, users=[]).shape == (0, 5)

    def test_ratings_that_cannot_be_are_answered_from_the_marginal(self, caplog):
        domain = domain_of("ABC", (1, 2))
        pmf = jp.JointPMF(domain, [0.5, 0.5], [np.eye(2), np.eye(2), [[0.3, 0.9], [0.7, 0.1]]])
        ratings = Ratings([1], jp.Codes(domain, [[0, 1, -1]]))
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            table = recommend(pmf, ratings)
        assert table["expected"][0] == pytest.approx(1.4)
        assert "probability zero" in caplog.text

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n": 0}, "n must be a whole number of at least 1, not 0"),
            ({"users": [0, 1]}, "there is no user 1 in the ratings"),
            ({"users": ["0"]}, "there is no user '0' in the ratings"),
            ({"users": [3, 3]}, "the list of users names 3 twice"),
            ({"users": 3}, "users must be a list of ids, not 3"),
            ({"users": "ann"}, "users must be a list of ids, not 'ann'"),
            ({"probability": 1.1}, "the probability must be a number from 0 to 1, not 1.1"),
            ({"backend": "codes"}, "backend must be 'polars', 'pandas' or 'pyarrow', not 'codes'"),
        ],
    )
    def test_bad_options(self, options, message):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=2, random_state=0)
        with pytest.raises(jp.JointPMFError, match=message):
            recommend(pmf, ratings, **options)

    def test_a_model_of_something_else(self):
        ratings = some_ratings()
        fewer = jp.random_pmf(domain_of(ratings.items[:-1], SCALE), rank=2, random_state=0)
        with pytest.raises(jp.JointPMFError, match="the model does not know item 'item 4'"):
            recommend(fewer, ratings)
        other = jp.random_pmf(domain_of(ratings.items, (1, 2)), rank=2, random_state=0)
        message = "item 'item 0' has the levels 1, 2 in the model, but the ratings have the scale"
        with pytest.raises(jp.JointPMFError, match=message):
            recommend(other, ratings)
        with pytest.raises(jp.JointPMFError, match=r"ratings must be what .* not DataFrame"):
            recommend(fewer, ratings.wide())


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.sampled_from([0, 0.25, 0.5, 0.8, 0.99, 1]),
)
def test_ranges_are_the_shortest(counts, probability):
    shares = np.array(counts) / sum(counts)
    low, high = shortest_ranges(shares[None], probability)
    assert (low[0], high[0]) == range_by_brute_force(shares, probability)


def coverage_by_brute_force(probabilities, truth, level):
    parts = []
    for shares, code in zip(probabilities, truth, strict=True):
        left = level
        for one in sorted(range(len(shares)), key=lambda k: (-shares[k], k)):
            part = min(shares[one], left)
            left -= part
            if one == code:
                parts.append(part / shares[one] if shares[one] else 0.0)
    return np.mean(parts)


class TestCoverage:
    @settings(deadline=None)
    @given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
    def test_is_what_brute_force_finds(self, seed, level):
        generator = np.random.default_rng(seed)
        counts = generator.integers(0, 4, (20, 5)) + np.eye(5, dtype=int)[0]
        probabilities = counts / counts.sum(axis=1, keepdims=True)
        truth = generator.integers(0, 5, 20)
        found = coverage(probabilities, truth, level)
        assert isinstance(found, float)
        assert found == pytest.approx(coverage_by_brute_force(probabilities, truth, level))

    def test_of_several_levels(self):
        probabilities = np.random.default_rng(0).dirichlet(np.ones(4), 30)
        truth = np.random.default_rng(1).integers(0, 4, 30)
        levels = np.array([[0.1, 0.5], [0.8, 0.9]])
        found = coverage(probabilities, truth, levels)
        expected = [[coverage(probabilities, truth, one) for one in row] for row in levels]
        np.testing.assert_array_equal(found, expected)

    def test_is_exact_in_expectation(self):
        shares = np.array([0.45, 0.25, 0.2, 0.1])
        for level in (0.05, 0.45, 0.5, 0.7, 0.95):
            found = [coverage(shares[None], [code], level) for code in range(4)]
            assert shares @ found == pytest.approx(level)

    def test_is_nominal_on_data_of_the_model(self):
        pmf = jp.random_pmf(domain_of("ABCD", (1, 2, 3, 4, 5)), rank=3, random_state=0)
        rows = pmf.sample(20_000, random_state=0, backend="codes")
        levels = np.array([0.1, 0.5, 0.8, 0.95])
        predicted = pmf.predict_proba(jp.Codes(pmf.domain, rows), "C")
        found = coverage(predicted, rows[:, 2], levels)
        assert (np.abs(found - levels) < 4 * np.sqrt(levels * (1 - levels) / 20_000)).all()
        too_sure = predicted**3 / (predicted**3).sum(axis=1, keepdims=True)
        assert (coverage(too_sure, rows[:, 2], levels) < found - 0.02).all()

    @pytest.mark.parametrize(
        ("probabilities", "truth", "level", "message"),
        [
            ([0.5, 0.5], [0], 0.5, r"probabilities must be of shape \(rows, levels\), not \(2,\)"),
            (np.empty((0, 2)), [], 0.5, r"probabilities must be of shape"),
            ([["a", "b"]], [0], 0.5, "must be arrays of numbers"),
            ([[0.5, 0.5]], [0, 1], 0.5, "truth must be 1 codes"),
            ([[0.5, 0.5]], [0.5], 0.5, "truth must be 1 codes.* type float64"),
            ([[1, 0], [0.5, 0.6]], [0, 1], 0.5, "probabilities of row 1 must be non-negative"),
            ([[1.5, -0.5]], [0], 0.5, "probabilities of row 0 must be non-negative"),
            ([[np.nan, 1.0]], [0], 0.5, "probabilities of row 0 must be non-negative"),
            ([[0.5, 0.5]], [-1], 0.5, "the code -1 of row 0 is none of the 2 levels"),
            ([[0.5, 0.5]], [2], 0.5, "the code 2 of row 0 is none of the 2 levels"),
            ([[0.5, 0.5]], [0], 1.0, "level must lie between 0 and 1, not 1.0"),
            ([[0.5, 0.5]], [0], [0.5, 0], r"level must lie between 0 and 1, not \[0.5, 0\]"),
            ([[0.5, 0.5]], [0], "0.5", "level must lie between 0 and 1, not '0.5'"),
        ],
    )
    def test_bad_input(self, probabilities, truth, level, message):
        with pytest.raises(jp.JointPMFError, match=message):
            coverage(probabilities, truth, level)
