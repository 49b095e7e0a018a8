"""Entropies, divergences and errors against sums over all cells."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.judge import information
from support import oracle


@pytest.fixture
def pmf():
    return jp.random_pmf(jp.Domain.of_sizes([2, 3, 4]), 3, 0)


def test_entropy_of_everything_and_of_a_subset(pmf):
    assert jp.entropy(pmf).value == pytest.approx(oracle.entropy(oracle.joint(pmf)))
    part = oracle.sum_onto(oracle.joint(pmf), [2, 0])
    assert jp.entropy(pmf, ["x2", "x0"]) == (pytest.approx(oracle.entropy(part)), 0.0)


def test_entropy_by_sampling_covers_the_exact_one(pmf):
    estimate = jp.entropy(pmf, n_samples=20_000, random_state=0, max_cells=23)
    assert 0 < estimate.standard_error < 0.02
    exact = oracle.entropy(oracle.joint(pmf))
    assert abs(estimate.value - exact) < 4 * estimate.standard_error


def test_entropy_of_a_thousand_variables_is_sampled():
    pmf = jp.random_pmf(jp.Domain.of_sizes([2] * 1000), 3, 0)
    estimate = jp.entropy(pmf, n_samples=1000, random_state=0)
    assert 500 < estimate.value < 1000 * np.log(2)


def test_mutual_information(pmf):
    joint = oracle.sum_onto(oracle.joint(pmf), [0, 2])
    outer = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    expected = (joint * np.log(joint / outer)).sum()
    assert jp.mutual_information(pmf, ["x0"], ["x2"]) == pytest.approx(expected)
    with pytest.raises(jp.JointPMFError, match="'x0' twice"):
        jp.mutual_information(pmf, ["x0"], ["x0"])
    with pytest.raises(jp.JointPMFError, match="two groups of variables, or none"):
        jp.mutual_information(pmf, ["x0"])


@pytest.fixture
def with_zeros():
    """Return a model with a variable of one level, and with a level that cannot happen."""
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 1, 5, 3]), 3, 0)
    factors = [f.copy() for f in pmf.factors]
    factors[2][0], factors[2][1] = 0, factors[2][1] + factors[2][0]
    return jp.JointPMF(pmf.domain, pmf.weights, factors)


@pytest.mark.parametrize("at_once", [1, 30, 2**20])
def test_blocks_of_any_size_give_the_entropies_of_all_pairs(with_zeros, at_once):
    found = information.entropies_of_pairs(with_zeros, at_once)
    for a in range(4):
        for b in range(a + 1, 4):
            pair = oracle.sum_onto(oracle.joint(with_zeros), [a, b])
            assert found[a, b] == pytest.approx(oracle.entropy(pair), abs=1e-14)


def test_mutual_information_without_names_is_that_of_every_pair(with_zeros):
    pmf = with_zeros
    found = jp.mutual_information(pmf)
    assert (found == found.T).all()
    for a in range(4):
        assert found[a, a] == pytest.approx(
            oracle.entropy(oracle.sum_onto(oracle.joint(pmf), [a])), abs=1e-14
        )
        for b in range(a):
            both = oracle.sum_onto(oracle.joint(pmf), [a, b])
            outer = np.outer(both.sum(axis=1), both.sum(axis=0))
            seen = both > 0
            expected = (both[seen] * np.log(both[seen] / outer[seen])).sum()
            assert found[a, b] == pytest.approx(expected, abs=1e-14)
    assert found[2, 3] > 1e-4
    some = jp.mutual_information(pmf.marginal(["x3", "x0"]))
    np.testing.assert_allclose(some, found[np.ix_([3, 0], [3, 0])], atol=1e-14)


def test_independent_variables_tell_nothing_about_each_other():
    found = jp.mutual_information(jp.random_pmf(jp.Domain.of_sizes([4] * 30), 1, 0))
    apart = found[~np.eye(30, dtype=bool)]
    assert (apart >= 0).all()
    assert apart.max() < 1e-14
    assert jp.mutual_information(jp.random_pmf(jp.Domain.of_sizes([]), 2, 0)).size == 0


def test_component_information_is_that_of_a_variable_that_is_the_component(pmf):
    domain = jp.Domain.of_sizes([*pmf.domain.sizes, pmf.rank])
    told = jp.JointPMF(domain, pmf.weights, [*pmf.factors, np.eye(pmf.rank)])
    expected = jp.mutual_information(told)[:-1, -1]
    np.testing.assert_allclose(information.component_information(pmf), expected, atol=1e-14)


def test_kl_divergence_exact_and_sampled(pmf):
    other = jp.random_pmf(pmf.domain, 5, 1)
    p, q = oracle.joint(pmf), oracle.joint(other)
    expected = (p * np.log(p / q)).sum()
    assert jp.kl_divergence(pmf, other) == (pytest.approx(expected), 0.0)
    estimate = jp.kl_divergence(pmf, other, n_samples=20_000, random_state=0, max_cells=23)
    assert abs(estimate.value - expected) < 4 * estimate.standard_error


def test_kl_divergence_is_infinite_where_the_model_says_never():
    domain = jp.Domain.of_sizes([2])
    fair, sure = (jp.JointPMF(domain, [1.0], [[[p], [1 - p]]]) for p in (0.5, 1.0))
    assert jp.kl_divergence(fair, sure).value == np.inf
    assert jp.kl_divergence(sure, fair).value == pytest.approx(np.log(2))


def test_errors_ignore_the_order_of_components(pmf):
    order = [2, 0, 1]
    same = jp.JointPMF(pmf.domain, pmf.weights[order], [f[:, order] for f in pmf.factors])
    assert jp.factor_error(pmf, same) == pytest.approx(0, abs=1e-15)
    assert jp.tensor_error(pmf, same) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("rank", [3, 5])
def test_the_tensor_error_is_that_of_the_dense_joints(pmf, rank):
    other = jp.random_pmf(pmf.domain, rank, 1)
    p, q = oracle.joint(pmf), oracle.joint(other)
    expected = np.linalg.norm(p - q) / np.linalg.norm(p)
    assert jp.tensor_error(pmf, other) == pytest.approx(expected)


def test_a_tiny_tensor_error_keeps_its_digits(pmf):
    nearly = [f.copy() for f in pmf.factors]
    nearly[1][:2, 0] += [1e-13, -1e-13]
    other = jp.JointPMF(pmf.domain, pmf.weights, nearly)
    term = oracle.cp_tensor(
        pmf.weights, [pmf.factors[0], other.factors[1] - pmf.factors[1], pmf.factors[2]]
    )
    expected = np.linalg.norm(term) / np.linalg.norm(oracle.joint(pmf))
    assert jp.tensor_error(pmf, other) == pytest.approx(expected, rel=1e-2)
    assert 1e-15 < jp.tensor_error(pmf, other) < 1e-12


def test_factor_error_is_the_mean_over_variables(pmf):
    other = jp.random_pmf(pmf.domain, 3, 1)
    order = information.best_permutation(pmf, other)
    expected = np.mean(
        [
            np.linalg.norm(a - b[:, order]) / np.linalg.norm(a)
            for a, b in zip(pmf.factors, other.factors, strict=True)
        ]
    )
    assert jp.factor_error(pmf, other) == pytest.approx(expected)
    with pytest.raises(jp.JointPMFError, match="ranks 3 and 4"):
        jp.factor_error(pmf, jp.random_pmf(pmf.domain, 4, 1))


def test_two_domains_cannot_be_compared(pmf):
    other = jp.random_pmf(jp.Domain.of_sizes([2, 3, 5]), 3, 0)
    for measure in (jp.tensor_error, jp.factor_error, jp.kl_divergence):
        with pytest.raises(jp.JointPMFError, match="same domain"):
            measure(pmf, other)


def test_errors_of_many_variables_are_quick_and_do_not_underflow():
    domain = jp.Domain.of_sizes([100] * 170)
    first, second = jp.random_pmf(domain, 3, 0), jp.random_pmf(domain, 3, 1)
    assert jp.tensor_error(first, first) == 0
    assert 0.5 < jp.tensor_error(first, second) < 10
    wider = jp.random_pmf(domain, 4, 1)
    assert 0.5 < jp.tensor_error(first, wider) < 10


def test_a_tiny_probability_has_a_finite_divergence():
    domain = jp.Domain.of_sizes([2])
    fair = jp.JointPMF(domain, [1.0], [[[0.5], [0.5]]])
    sure = jp.JointPMF(domain, [1.0], [[[5e-324], [1.0]]])
    assert jp.kl_divergence(fair, sure).value == pytest.approx(371.5, abs=0.1)


def test_a_sampled_infinite_divergence_is_infinite():
    domain = jp.Domain.of_sizes([2])
    fair, sure = (jp.JointPMF(domain, [1.0], [[[p], [1 - p]]]) for p in (0.5, 1.0))
    sampled = jp.kl_divergence(fair, sure, n_samples=100, random_state=0, max_cells=1)
    assert sampled == (np.inf, 0.0)
    with pytest.raises(jp.JointPMFError, match="n_samples"):
        jp.entropy(fair, n_samples=1, max_cells=1)


def test_one_name_is_a_group_of_one(pmf):
    assert jp.mutual_information(pmf, "x0", "x2") == jp.mutual_information(pmf, ["x0"], ["x2"])
