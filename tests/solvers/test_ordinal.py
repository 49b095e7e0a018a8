"""Counts that spread to neighbours, by the formula; factor models of data drawn from one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.rows.table import Rows
from jointpmf.solvers import ordinal
from jointpmf.solvers.ordinal import (
    factor_model,
    is_ordered,
    n_factors,
    neighbour_kernel,
    point_along_factors,
)
from support import oracle
from support.feasibility import is_feasible

MIXED = jp.Domain(
    [
        jp.Variable("rating", (1, 2, 3, 4, 5)),
        jp.Variable("vote", ("no", "yes", "perhaps")),
        jp.Variable("down", (3, 2, 1)),
        jp.Variable("size", ("S", "M", "L"), values=(1.0, 2.0, 40.0)),
        jp.Variable("one", (7,)),
        jp.Variable("bend", (1, 3, 2)),
    ]
)


def random_rows(seed, domain=MIXED, n_rows=40, holes=0.3):
    generator = np.random.default_rng(seed)
    table = oracle.random_table(generator, domain, n_rows, holes)
    table[0] = 0  # every variable is observed somewhere
    return Rows.of_codes(Codes(domain, table), generator.random(n_rows) + 0.1)


def blocks_of(domain, matrix):
    bounds = list(zip(domain.offsets[:-1], domain.offsets[1:], strict=True))
    return [[matrix[a:b, c:d] for c, d in bounds] for a, b in bounds]


def expected_block(marginal, bandwidth):
    """Return K(i, j) of one variable, entry by entry."""
    size = len(marginal)
    block = np.empty((size, size))
    for j in range(size):
        for i in range(size):
            near = np.exp(-((i - j) ** 2) / (2 * bandwidth**2))
            block[i, j] = (marginal[i] + 1e-4) * near
        block[:, j] /= block[:, j].sum()
    return block


class TestNeighbourKernel:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10**6), st.floats(0.2, 20))
    def test_it_is_the_formula_and_each_variable_keeps_its_counts(self, seed, bandwidth):
        rows = random_rows(seed)
        kernel = neighbour_kernel(rows, bandwidth).toarray()
        np.testing.assert_allclose(kernel.sum(axis=0), 1, rtol=1e-13)
        blocks = blocks_of(MIXED, kernel)
        marginals = np.split(rows.marginal, MIXED.offsets[1:-1])
        for n, variable in enumerate(MIXED):
            expected = np.eye(variable.size)
            if variable.name in ("rating", "size", "one"):
                expected = expected_block(marginals[n], bandwidth)
            np.testing.assert_allclose(blocks[n][n], expected, rtol=1e-10, atol=1e-300)
            others = [block for m, block in enumerate(blocks[n]) if m != n]
            assert not any(block.any() for block in others)

    def test_which_variables_are_ordered(self):
        assert [is_ordered(variable) for variable in MIXED] == [
            True,
            False,
            False,
            True,
            True,
            False,
        ]

    def test_the_marginal_is_that_of_the_rows_by_weight(self):
        domain = jp.Domain.of_sizes([3])
        codes = Codes(domain, np.array([[0], [1], [2]]))
        weighted = Rows.of_codes(codes, np.array([1.0, 2.0, 5.0]))
        kernel = neighbour_kernel(weighted, 1.0).toarray()
        np.testing.assert_allclose(kernel, expected_block(np.array([1, 2, 5]) / 8, 1.0))

    def test_wide_is_the_marginal_everywhere(self):
        rows = random_rows(1)
        block = blocks_of(MIXED, neighbour_kernel(rows, 1e9).toarray())[0][0]
        marginal = rows.marginal[:5] + 1e-4
        np.testing.assert_allclose(block, np.tile(marginal[:, None], 5) / marginal.sum())

    @pytest.mark.parametrize("bandwidth", [0.05, 0.01, 1e-200])
    def test_narrow_leaves_counts_where_they_are(self, bandwidth):
        kernel = neighbour_kernel(random_rows(2), bandwidth).toarray()
        np.testing.assert_allclose(kernel, np.eye(len(kernel)), atol=1e-30)

    def test_more_bandwidth_spreads_more(self):
        rows = random_rows(3)
        kept = [np.diag(neighbour_kernel(rows, h).toarray())[:5] for h in (0.2, 0.5, 1.0, 3.0)]
        assert (np.diff(kept, axis=0) < 0).all()

    def test_a_level_never_seen_gets_something_from_its_neighbours(self):
        domain = jp.Domain.of_sizes([3])
        rows = Rows.of_codes(Codes(domain, np.array([[0], [2]])))
        spread = neighbour_kernel(rows, 0.7).toarray() @ [10.0, 0.0, 10.0]
        assert 0 < spread[1] < 0.1
        assert spread[0] == pytest.approx(spread[2])


def drawn(loadings, noise, n_rows, seed=0, means=0.0, holes=0.0):
    """Return values drawn from a factor model, some of them missing."""
    generator = np.random.default_rng(seed)
    factors = generator.standard_normal((n_rows, loadings.shape[1]))
    values = means + factors @ loadings.T
    values += np.sqrt(noise) * generator.standard_normal(values.shape)
    values[generator.random(values.shape) < holes] = np.nan
    return values


def model_of(values, weights=None, n_factors=1):
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    return factor_model(values, weights, n_factors)


def covariance(model):
    return model.loadings @ model.loadings.T + np.diag(model.noise)


LOADINGS = np.array([[1.0, 0.2], [0.8, -0.5], [0.9, 0.6], [-0.7, 0.3], [0.5, 0.9], [1.2, -0.4]])
NOISE = np.array([0.5, 0.4, 0.8, 0.6, 0.5, 0.7])
MEANS = np.array([3.0, -1.0, 0.0, 10.0, 2.0, 5.0])


class TestFactorModel:
    @pytest.mark.parametrize(("holes", "n_rows"), [(0.0, 4000), (0.4, 8000)])
    def test_it_is_recovered_from_what_was_drawn_from_it(self, holes, n_rows):
        values = drawn(LOADINGS, NOISE, n_rows, means=MEANS, holes=holes)
        model = model_of(values, n_factors=2)
        truth = LOADINGS @ LOADINGS.T + np.diag(NOISE)
        # the standard error of a covariance is at most √2 · variance / √rows that see both
        error = 1.5 * truth.diagonal().max() / np.sqrt(n_rows * (1 - holes) ** 2)
        np.testing.assert_allclose(covariance(model), truth, atol=4 * error)
        np.testing.assert_allclose(model.means, MEANS, atol=4 * error)
        np.testing.assert_allclose(model.noise, NOISE, atol=5 * error)

    def test_holes_that_depend_on_what_is_seen_do_not_bend_it(self):
        """The second is missing where the first is high: its mean is not that of what is seen."""
        values = drawn(np.array([[1.0], [1.0], [1.0]]), np.full(3, 0.2), 5000)
        values[values[:, 0] > 0, 1] = np.nan
        model = model_of(values)
        assert np.nanmean(values[:, 1]) < -0.5
        assert abs(model.means[1]) < 0.12
        assert covariance(model)[0, 1] == pytest.approx(1, abs=0.15)

    def test_a_row_of_weight_two_is_a_row_twice_and_of_weight_zero_none(self):
        values = drawn(LOADINGS, NOISE, 60, holes=0.3)
        times = np.arange(60) % 3
        weighted = model_of(values, times, n_factors=2)
        repeated = model_of(np.repeat(values, times, axis=0), n_factors=2)
        for one, other in zip(weighted, repeated, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)

    def test_a_constant_column_is_its_mean_and_the_others_do_not_care(self):
        values = drawn(LOADINGS[:4, :1], NOISE[:4], 300)
        constant = values.copy()
        constant[:, 2] = 7.0
        model = model_of(constant)
        assert model.means[2] == pytest.approx(7, abs=1e-6)
        assert abs(model.loadings[2, 0]) < 1e-6
        others = [0, 1, 3]
        without = model_of(values[:, others])
        np.testing.assert_allclose(
            covariance(model)[np.ix_(others, others)], covariance(without), atol=0.02
        )

    def test_a_column_never_observed_and_rows_without_any_value_are_harmless(self):
        values = drawn(LOADINGS[:4, :1], NOISE[:4], 300)
        values[:, 1] = np.nan
        model = model_of(values)
        assert all(np.isfinite(part).all() for part in model)
        assert model.loadings[1, 0] == 0
        assert model.noise[1] > 0
        more = np.vstack([values, np.full((9, 4), np.nan)])
        np.testing.assert_allclose(covariance(model_of(more)), covariance(model), rtol=1e-9)

    def test_one_variable_has_its_mean_and_its_variance(self):
        values = np.array([[1.0], [2.0], [2.0], [5.0], [np.nan]] * 50)
        model = model_of(values)
        assert model.means[0] == pytest.approx(2.5, abs=1e-3)
        assert covariance(model)[0, 0] == pytest.approx(np.nanvar(values), rel=0.05)

    def test_one_row_is_finite(self):
        model = model_of(np.array([[1.0, np.nan, 3.0]]))
        assert all(np.isfinite(part).all() for part in model)
        np.testing.assert_allclose(model.means[[0, 2]], [1, 3], atol=1e-6)

    def test_noise_is_left_where_factors_explain_everything(self):
        values = np.repeat(np.random.default_rng(0).standard_normal((500, 1)), 4, axis=1)
        model = model_of(values)
        np.testing.assert_allclose(model.noise, 0.05 * values.var(axis=0))

    def test_few_rows_have_small_loadings(self):
        """The prior is worth some rows: two rows do not say that all variables are one."""
        few, many = (np.tile([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], (n, 1)) for n in (1, 500))
        assert np.abs(model_of(few).loadings).max() < 0.4 < np.abs(model_of(many).loadings).min()


@pytest.mark.parametrize(
    ("rank", "n_variables", "expected"),
    [(1, 9, 1), (3, 9, 1), (4, 9, 1), (16, 9, 2), (64, 9, 3), (256, 9, 4), (256, 3, 2), (99, 1, 1)],
)
def test_a_factor_more_needs_four_times_the_points(rank, n_variables, expected):
    assert n_factors(rank, n_variables) == expected
    assert n_factors(4**20, 100) == 8


def correlated_codes(n_rows=1500, seed=0, size=5, signs=(1, 1, -1, 1), noise=0.4):
    """Return answers on a scale that one taste decides, for some variables the other way round."""
    generator = np.random.default_rng(seed)
    taste = generator.standard_normal((n_rows, 1))
    values = taste * np.array(signs) + noise * generator.standard_normal((n_rows, len(signs)))
    return np.digitize(values, np.linspace(-1.3, 1.3, size - 1))


def implied_correlation(domain, point):
    """Return the correlation of the values of all variables under a point."""
    factors = np.split(point.factors, domain.offsets[1:-1])
    values = [np.array(variable.values) for variable in domain]
    means = np.array([v @ f for v, f in zip(values, factors, strict=True)])
    squares = np.array([v**2 @ f for v, f in zip(values, factors, strict=True)])
    second = (means * point.weights) @ means.T
    np.fill_diagonal(second, squares @ point.weights)
    mean = means @ point.weights
    covariances = second - np.outer(mean, mean)
    scale = np.sqrt(covariances.diagonal())
    return covariances / np.outer(scale, scale)


def rows_of_codes(codes, domain=None):
    domain = domain or jp.Domain.of_sizes([5] * codes.shape[1])
    return Rows.of_codes(Codes(domain, codes))


def along(rows, rank, seed=0):
    return point_along_factors(rows, rank, np.random.default_rng(seed))


class TestPointAlongFactors:
    @settings(max_examples=30, deadline=None)
    @given(
        seed=st.integers(0, 10**6),
        rank=st.integers(1, 40),
        n_rows=st.integers(1, 40),
        holes=st.sampled_from([0.0, 0.3, 0.9]),
    )
    def test_it_is_feasible(self, seed, rank, n_rows, holes):
        rows = random_rows(seed, n_rows=n_rows, holes=holes)
        point = along(rows, rank, seed)
        assert point.factors.shape == (len(rows.marginal), rank)
        assert is_feasible(MIXED, point.weights, point.factors)

    def test_its_marginals_are_near_those_of_the_data(self):
        rows = rows_of_codes(correlated_codes())
        for rank, distance in (16, 0.12), (64, 0.06):
            point = along(rows, rank)
            found = point.factors @ point.weights
            for part in np.split(np.abs(found - rows.marginal), rows.domain.offsets[1:-1]):
                assert part.sum() / 2 < distance

    @pytest.mark.parametrize("holes", [0.0, 0.4])
    def test_values_are_correlated_as_in_the_data(self, holes):
        codes = correlated_codes()
        expected = np.corrcoef(codes.T)
        codes[np.random.default_rng(1).random(codes.shape) < holes] = -1
        found = implied_correlation(jp.Domain.of_sizes([5] * 4), along(rows_of_codes(codes), 64))
        assert np.abs(expected).min() > 0.6
        np.testing.assert_allclose(found, expected, atol=0.12)

    def test_independent_values_stay_nearly_so(self):
        codes = np.random.default_rng(0).integers(5, size=(2000, 4))
        found = implied_correlation(jp.Domain.of_sizes([5] * 4), along(rows_of_codes(codes), 16))
        assert np.abs(found[~np.eye(4, dtype=bool)]).max() < 0.2

    def test_it_is_likelier_than_independence_before_any_step(self):
        codes = correlated_codes()
        rows = rows_of_codes(codes)
        pmf = jp.JointPMF.at(along(rows, 16), rows.domain)
        independent = jp.JointPMF(rows.domain, [1.0], rows.marginal.reshape(4, 5, 1))
        gain = pmf.log_probability(codes) - independent.log_probability(codes)
        assert gain.mean() > 0.5

    def test_variables_without_order_begin_as_they_are_distributed(self):
        codes = oracle.random_table(np.random.default_rng(0), MIXED, 300)
        codes[:, 0] = correlated_codes(300)[:, 0]
        codes[:, 3] = codes[:, 0] // 2
        rows = rows_of_codes(codes, MIXED)
        point = along(rows, 8)
        marginals = np.split(rows.marginal, MIXED.offsets[1:-1])
        factors = np.split(point.factors, MIXED.offsets[1:-1])
        for n, name in enumerate(MIXED.names):
            moved = np.abs(factors[n] - marginals[n][:, None]).max()
            assert (moved > 0.01) == (name in ("rating", "size"))

    def test_a_variable_that_no_row_of_a_sample_observes(self):
        codes = correlated_codes(100)
        codes[1:, 2] = -1
        rows = rows_of_codes(codes)
        seen = [m for m in range(len(rows)) if rows.ptr[m + 1] - rows.ptr[m] < 4]
        sample = rows.taken(np.array(seen))
        point = along(sample, 16)
        assert not sample.counts[10:15].any()
        assert is_feasible(rows.domain, point.weights, point.factors)
        np.testing.assert_allclose(point.factors[10:15], 0.2)

    def test_all_levels_that_were_seen_can_happen(self):
        rows = random_rows(4)
        assert along(rows, 8).factors[rows.counts > 0].min() > 0

    def test_the_same_generator_gives_the_same_bits(self):
        rows = rows_of_codes(correlated_codes(100))
        first, second, other = (along(rows, 16, seed).factors for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, second)
        assert np.abs(first - other).max() > 1e-3

    def test_one_model_serves_several_starts(self, monkeypatch):
        rows, models = rows_of_codes(correlated_codes(100)), {}
        first = point_along_factors(rows, 16, np.random.default_rng(3), models)
        (model,) = models.values()
        monkeypatch.setattr(ordinal, "factor_model", None)  # it is not asked for again
        second = point_along_factors(rows, 16, np.random.default_rng(3), models)
        np.testing.assert_array_equal(first.factors, second.factors)
        assert models == {2: model}

    def test_of_many_rows_it_takes_a_sample(self):
        rows = rows_of_codes(correlated_codes(300))
        whole = along(rows, 16).factors
        part, again = (
            point_along_factors(rows, 16, np.random.default_rng(0), max_rows=40).factors
            for _ in range(2)
        )
        assert np.abs(part - whole).max() > 0
        np.testing.assert_array_equal(part, again)

    def test_without_an_ordered_variable_it_is_refused(self):
        rows = random_rows(0, MIXED.project(["vote", "down", "bend"]))
        with pytest.raises(jp.JointPMFError, match="increasing values"):
            along(rows, 4)

    @pytest.mark.parametrize(
        ("unit", "origin"), [(1e3, 0), (1e-5, 0), (1e-9, 0), (1, 2000), (1, 1e9)], ids=str
    )
    def test_the_unit_and_the_origin_of_values_do_not_matter(self, unit, origin):
        codes = correlated_codes(300)
        names = [f"x{n}" for n in range(4)]
        values = tuple(origin + unit * k for k in range(5))
        domain = jp.Domain([jp.Variable(name, tuple("abcde"), values) for name in names])
        expected = along(rows_of_codes(codes), 16).factors
        found = along(rows_of_codes(codes, domain), 16).factors
        np.testing.assert_allclose(found, expected, atol=1e-5)
