"""The smallest errors from rows and from tables, against sums over the whole joint."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from paper.error_limits import error_limits

import jointpmf as jp
from support.oracle import cp_tensor, jacobian, sum_onto
from support.planted import planted

SIZES = [3, 2, 3, 3]


@pytest.fixture
def truth():
    return planted(SIZES, 2, seed=1, concentration=2.0)


def directions(sizes, rank):
    """Return a basis of the changes that keep every sum: each level against the last."""
    columns = []
    for f in range(rank - 1):
        columns.append([(f, 1.0), (rank - 1, -1.0)])
    begin = rank
    for size in sizes:
        for i, f in product(range(size - 1), range(rank)):
            columns.append([(begin + i * rank + f, 1.0), (begin + (size - 1) * rank + f, -1.0)])
        begin += size * rank
    out = np.zeros((begin, len(columns)))
    for k, entries in enumerate(columns):
        for row, value in entries:
            out[row, k] = value
    return out


def derivatives(pmf, subset):
    """Return the derivatives of one table's cells, by the free directions."""
    found = jacobian([subset], pmf.weights, pmf.factors, [1.0])
    return found @ directions(pmf.domain.sizes, pmf.rank)


def information_in(pmf, subset):
    """Return the information in a row that observes some variables."""
    table = sum_onto(cp_tensor(pmf.weights, pmf.factors), list(subset)).ravel()
    moved = derivatives(pmf, subset)
    return (moved / table[:, None]).T @ moved


def indicators(sizes, subset):
    """Return which cells of the joint are in each cell of a table."""
    whole = np.eye(math.prod(sizes)).reshape(*sizes, -1)
    rest = tuple(n for n in range(len(sizes)) if n not in subset)
    return whole.sum(axis=rest).reshape(-1, math.prod(sizes))


def covariance_of(pmf, subsets, n_rows, observed):
    """Return the covariance of tables counted over the rows that observe them."""
    joint, sizes = cp_tensor(pmf.weights, pmf.factors).ravel(), pmf.domain.sizes
    members = [indicators(sizes, subset) for subset in subsets]

    def rows_with(names):
        return n_rows * np.prod([observed[n] for n in names])

    def block(s, t):
        first, second = members[s], members[t]
        both = (first * joint) @ second.T - np.outer(first @ joint, second @ joint)
        union = rows_with({*subsets[s], *subsets[t]})
        return both * union / (rows_with(subsets[s]) * rows_with(subsets[t]))

    return np.block([[block(s, t) for t in range(len(members))] for s in range(len(members))])


def kl(pmf, covariance):
    return float(np.trace(information_in(pmf, tuple(range(len(SIZES)))) @ covariance)) / 2


TRIPLES = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]


@pytest.mark.parametrize("missing", [0.0, 0.3, [0.0, 0.2, 0.5, 0.1]], ids=str)
def test_the_limit_of_tables_is_that_of_their_covariance(truth, missing):
    observed = np.broadcast_to(1 - np.asarray(missing), 4)
    covariance = covariance_of(truth, TRIPLES, 500, observed)
    moved = np.concatenate([derivatives(truth, subset) for subset in TRIPLES])
    information = moved.T @ np.linalg.pinv(covariance, rcond=1e-10) @ moved
    limits = error_limits(truth, 3, n_rows=500, missing=missing)
    assert limits.kl_limit == pytest.approx(kl(truth, np.linalg.inv(information)), rel=2e-3)


@pytest.mark.parametrize("missing", [0.3, [0.0, 0.2, 0.5, 0.1]], ids=str)
def test_least_squares_on_tables_with_missing_cells(truth, missing):
    observed = np.broadcast_to(1 - np.asarray(missing), 4)
    covariance = covariance_of(truth, TRIPLES, 500, observed)
    moved = np.concatenate([derivatives(truth, subset) for subset in TRIPLES])
    inverse = np.linalg.inv(moved.T @ moved)
    wanted = kl(truth, inverse @ moved.T @ covariance @ moved @ inverse)
    limits = error_limits(truth, 3, n_rows=500, missing=missing)
    assert limits.kl_predicted == pytest.approx(wanted, rel=1e-6)


def test_the_bound_of_rows_with_missing_cells(truth):
    part = 0.7
    information = 0.0
    for seen in product((0, 1), repeat=4):
        subset = tuple(n for n in range(4) if seen[n])
        share = part ** len(subset) * (1 - part) ** (4 - len(subset))
        information = information + (share * information_in(truth, subset) if subset else 0.0)
    wanted = kl(truth, np.linalg.inv(300 * information))
    exact = error_limits(truth, 3, n_rows=300, missing=0.3)
    assert exact.kl_bound == pytest.approx(wanted, rel=1e-6)
    sampled = error_limits(truth, 3, n_rows=300, missing=0.3, n_samples=250)
    assert sampled.kl_bound == pytest.approx(wanted, rel=0.3)


def test_complete_rows_lose_half_a_nat_per_parameter(truth):
    n_parameters = jp.identifiability(truth.domain, 2, order=3).n_parameters
    limits = error_limits(truth, 3, n_rows=400)
    assert limits.kl_bound == pytest.approx(n_parameters / 800, rel=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_tables_know_no_more_than_rows_and_least_squares_not_all_of_it(missing, seed):
    truth = planted(SIZES, 2, seed=seed, concentration=2.0)
    limits = error_limits(truth, 3, n_rows=400, missing=missing)
    for name in ("factor", "tensor", "kl"):
        assert getattr(limits, f"{name}_bound") <= getattr(limits, f"{name}_limit")
    assert limits.kl_limit < limits.kl_predicted


def test_the_whole_joint_as_a_table_is_the_rows(truth):
    limits = error_limits(truth, 4, n_rows=400)
    for name in ("factor", "tensor", "kl"):
        bound, limit = getattr(limits, f"{name}_bound"), getattr(limits, f"{name}_limit")
        assert limit == pytest.approx(bound, rel=1e-6)


def test_white_noise_on_the_whole_joint_leaves_nothing_to_gain(truth):
    limits = error_limits(truth, 4, sigma=1e-3)
    assert limits.tensor_limit == pytest.approx(limits.tensor_bound, rel=1e-6)
    assert limits.kl_limit is None


def test_white_noise_on_triples_is_that_of_their_covariance(truth):
    sigma = 1e-3
    members = np.concatenate([indicators(SIZES, subset) for subset in TRIPLES])
    moved = np.concatenate([derivatives(truth, subset) for subset in TRIPLES])
    precision = np.linalg.pinv(sigma**2 * members @ members.T, rcond=1e-10)
    covariance = np.linalg.inv(moved.T @ precision @ moved)
    whole = derivatives(truth, (0, 1, 2, 3))
    error = math.sqrt(np.trace(whole @ covariance @ whole.T)) / np.linalg.norm(truth.table())
    limits = error_limits(truth, 3, sigma=sigma)
    assert limits.tensor_limit == pytest.approx(error, rel=2e-3)


def test_tables_of_different_people_add_their_information(truth):
    counts = [200, 300, 400, 500]
    tables = [
        jp.Marginal(m.names, np.asarray(m.table), n_obs=count)
        for m, count in zip(truth.marginals(3), counts, strict=True)
    ]
    known = jp.MarginalSet(truth.domain, tables)
    pairs = zip(counts, known.subsets, strict=True)
    information = sum(count * information_in(truth, subset) for count, subset in pairs)
    limits = error_limits(truth, known, same_people=False)
    assert limits.kl_limit == pytest.approx(kl(truth, np.linalg.inv(information)), rel=2e-3)
    assert limits.kl_bound == limits.kl_limit


def test_without_n_rows_each_table_has_its_own(truth):
    same = [jp.Marginal(m.names, np.asarray(m.table), n_obs=400) for m in truth.marginals(3)]
    own = error_limits(truth, jp.MarginalSet(truth.domain, same))
    said = error_limits(truth, 3, n_rows=400)
    for name in ("kl_bound", "kl_limit", "kl_predicted", "factor_predicted"):
        assert getattr(own, name) == pytest.approx(getattr(said, name), rel=2e-3)


def test_tables_of_any_kind_have_limits(truth):
    """A part of the population that is everyone is no part; bands know less than levels."""
    triples = list(truth.marginals(3))
    everyone = jp.Marginal(
        ("x0", "x1"), truth.marginal(["x0", "x1"]).table(), where={"x3": [0, 1, 2]}
    )
    halves = np.stack(
        [np.asarray(triples[3].table)[:, 0], np.asarray(triples[3].table)[:, 1:].sum(1)], 1
    )
    bands = jp.Marginal(("x1", "x2", "x3"), halves, levels={"x2": [0, (1, 2)]})
    known = {
        "plain": triples,
        "with everyone": [*triples, everyone],
        "bands": [*triples[:3], bands],
        "less": triples[:3],
    }
    found = {
        name: error_limits(truth, jp.MarginalSet(truth.domain, tables), n_rows=400).kl_limit
        for name, tables in known.items()
    }
    assert found["with everyone"] == pytest.approx(found["plain"], rel=2e-3)
    assert found["plain"] < found["bands"] < found["less"]


def test_it_prints_as_a_table(truth):
    lines = str(error_limits(truth, 3, n_rows=400)).splitlines()
    assert [line[:26].rstrip() for line in lines] == [
        "error",
        "at best, from all data",
        "at best, from the tables",
        "least squares",
    ]
    assert all(len(line.split()) >= 4 for line in lines[1:])
    assert "–" in str(error_limits(truth, 3, sigma=1e-3))


@pytest.mark.parametrize("missing", [1.0, -0.1, [0.1, 0.2], "some", math.nan])
def test_missing_must_be_a_part(truth, missing):
    with pytest.raises(jp.JointPMFError, match="missing"):
        error_limits(truth, 3, n_rows=100, missing=missing)


def test_white_noise_is_for_whole_tables(truth):
    table = jp.Marginal(("x0", "x1"), truth.marginal(["x0", "x1"]).table(), where={"x3": [0]})
    known = jp.MarginalSet(truth.domain, [table, *truth.marginals(3)])
    with pytest.raises(jp.JointPMFError, match="sigma"):
        error_limits(truth, known, sigma=1e-3)


def test_tables_of_too_many_cells_have_no_limit_but_the_rows_a_bound():
    truth = planted([6] * 10, 2, seed=0)
    limits = error_limits(truth, 10, n_rows=100, n_samples=500)
    assert limits.kl_limit is None
    assert limits.factor_limit is None
    assert 0 < limits.kl_bound < math.inf
    assert math.isnan(error_limits(truth, 10, n_rows=9, missing=0.1, n_samples=500).kl_predicted)


def spread(sizes, rank, seed):
    """Return a model with clearly different columns and no entry close to zero."""
    generator = np.random.default_rng(seed)
    columns = [0.9 * generator.dirichlet(np.ones(s), rank).T + 0.1 / s for s in sizes]
    return jp.JointPMF(jp.Domain.of_sizes(list(sizes)), np.full(rank, 1 / rank), columns)


def marginals_of_joint(table, domain, order):
    sets = combinations(range(len(domain)), order)
    return jp.MarginalSet(
        domain,
        [
            jp.Marginal(
                [domain.names[n] for n in s],
                table.sum(axis=tuple(n for n in range(len(domain)) if n not in s)),
            )
            for s in sets
        ],
    )


def mean_errors(truth, order, joints):
    """Return the mean factor and tensor error of fits from noisy joints, from the truth."""
    fits = [
        jp.fit_marginals(
            marginals_of_joint(joint, truth.domain, order),
            truth.rank,
            method="newton",
            search=jp.Search(truth),
        ).pmf
        for joint in joints
    ]
    return [np.mean([e(truth, pmf) for pmf in fits]) for e in (jp.factor_error, jp.tensor_error)]


class TestOfFits:
    @pytest.fixture
    def truth(self):
        return spread([4] * 4, 2, 0)

    @pytest.mark.parametrize("order", [3, 4])
    def test_white_noise_gives_the_predicted_errors(self, truth, order):
        generator = np.random.default_rng(0)
        noise = generator.normal(size=(60, *truth.domain.sizes)) * 1e-5
        # tables are made to sum to one; constants are invisible to a model that does
        noise -= noise.mean(axis=(1, 2, 3, 4), keepdims=True)
        limits = error_limits(truth, order, sigma=1e-5)
        factor, tensor = mean_errors(truth, order, truth.table() + noise)
        assert factor == pytest.approx(limits.factor_predicted, rel=0.15)
        assert tensor == pytest.approx(limits.tensor_predicted, rel=0.15)

    @pytest.mark.parametrize("order", [3, 4])
    def test_counted_rows_give_the_predicted_errors(self, truth, order):
        generator = np.random.default_rng(1)
        counts = generator.multinomial(10**6, truth.table().ravel(), size=60)
        limits = error_limits(truth, order, n_rows=10**6)
        joints = counts.reshape(60, *truth.domain.sizes) / 1e6
        factor, tensor = mean_errors(truth, order, joints)
        assert factor == pytest.approx(limits.factor_predicted, rel=0.15)
        assert tensor == pytest.approx(limits.tensor_predicted, rel=0.15)

    def test_what_is_not_identifiable_has_no_finite_prediction(self, truth):
        limits = error_limits(truth, 2, sigma=1e-4)
        assert limits.factor_predicted == math.inf
        assert limits.factor_bound < math.inf

    def test_least_squares_on_the_whole_joint_is_best_under_white_noise(self, truth):
        limits = error_limits(truth, 4, sigma=1e-4)
        assert limits.factor_predicted == pytest.approx(limits.factor_bound, rel=1e-8)
        assert limits.tensor_predicted == pytest.approx(limits.tensor_bound, rel=1e-8)

    def test_sampled_expectations_come_close_to_exact_ones(self, truth):
        exact = error_limits(truth, 3, n_rows=1000)
        sampled = error_limits(truth, 3, n_rows=1000, n_samples=255, random_state=0)
        many = error_limits(spread([4] * 4, 2, 0), 3, n_rows=1000, n_samples=10**5)
        assert many == exact
        assert sampled != exact
        assert sampled.factor_predicted == pytest.approx(exact.factor_predicted, rel=0.3)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"sigma": 1e-4, "n_rows": 100},
            {"sigma": 0.0},
            {"sigma": -1.0},
            {"sigma": math.nan},
            {"n_rows": 0},
            {"n_rows": -5},
        ],
    )
    def test_noise_must_be_one_positive_number(self, truth, options):
        name = next(iter(options), "sigma")
        with pytest.raises(jp.JointPMFError, match=name):
            error_limits(truth, 3, **options)

    def test_marginals_of_other_variables_are_an_error(self, truth):
        other = jp.random_pmf(jp.Domain.of_sizes([3] * 4), 2, 0).marginals(3)
        with pytest.raises(jp.JointPMFError):
            error_limits(truth, other, sigma=1e-4)
