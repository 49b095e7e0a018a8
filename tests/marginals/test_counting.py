"""Counts against brute force, on every path, in chunks and merged."""

from itertools import combinations

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.marginals.counting import count_tables
from jointpmf.marginals.tables import SparseTable, TableLimits
from support import oracle

MIXED = [(3,), (0, 1), (2, 4), (0, 1, 3), (1, 2, 4), (0, 1, 2, 4), (0, 1, 3, 4)]

# The ways to count that the size of a table chooses between.
PATHS = {
    "dense": TableLimits(),
    "sparse": TableLimits(sparse_below=2, smallest_sparse=0),
    "sorting": TableLimits(max_scratch=0),
    "little scratch": TableLimits(max_scratch=60),
}

any_path = pytest.mark.parametrize("limits", PATHS.values(), ids=PATHS)


def random_codes(seed, n_rows=60, n_variables=5, missing=0.25):
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, n_variables)
    rows = generator.integers(0, domain.sizes, (n_rows, n_variables))
    return Codes(domain, np.where(generator.random(rows.shape) < missing, jp.MISSING, rows))


def dense(counted):
    return [np.asarray(table) for table in counted]


def no_counts(codes, subsets, limits=PATHS["dense"]):
    names = codes.domain.names
    return jp.MarginalCounts(
        codes.domain, [[names[n] for n in subset] for subset in subsets], limits
    )


def counts_of(codes, subsets, sample_weight=None, limits=PATHS["dense"]):
    counts = no_counts(codes, subsets, limits)
    counts.add(codes, sample_weight)
    return counts


def assert_same(first, second):
    for one, other in zip(dense(first), dense(second), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(6))
@any_path
def test_counts_of_mixed_orders_are_those_of_brute_force(limits, seed):
    codes = random_codes(seed)
    counted = count_tables(codes, MIXED, None, limits)
    for subset, table in zip(MIXED, counted, strict=True):
        truth = oracle.count_table(codes.array, subset, codes.domain.sizes)
        np.testing.assert_array_equal(np.asarray(table), truth)


@pytest.mark.parametrize("seed", range(6))
@any_path
def test_weighted_counts_are_those_of_brute_force(limits, seed):
    codes = random_codes(seed)
    weights = np.random.default_rng(seed).random(codes.n_rows)
    counted = count_tables(codes, MIXED, weights, limits)
    for subset, table in zip(MIXED, counted, strict=True):
        truth = oracle.count_table(codes.array, subset, codes.domain.sizes, weights)
        np.testing.assert_allclose(np.asarray(table), truth, rtol=1e-12)


@any_path
def test_each_path_keeps_the_kind_of_table_it_is_for(limits):
    codes = Codes(jp.Domain.of_sizes([4, 4, 4]), np.zeros((3, 3), int))
    kinds = [type(table) for table in count_tables(codes, [(0, 1), (0, 1, 2)], None, limits)]
    small, large = np.ndarray, SparseTable
    assert (
        kinds
        == {
            "dense": [small, small],
            "sparse": [large, large],
            "sorting": [large, large],
            "little scratch": [small, large],
        }[next(name for name, one in PATHS.items() if one is limits)]
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@any_path
def test_all_subsets_of_one_order_are_counted_over_the_rows_that_observe_them(limits, order):
    codes = random_codes(order, n_rows=100)
    marginals = jp.MarginalSet.from_table(
        codes.array, order=order, domain=codes.domain, limits=limits
    )
    assert marginals.subsets == list(combinations(range(5), order))
    for subset, marginal in zip(marginals.subsets, marginals, strict=True):
        truth = oracle.count_table(codes.array, subset, codes.domain.sizes)
        assert marginal.n_obs == truth.sum()
        np.testing.assert_allclose(np.asarray(marginal.table), truth / truth.sum(), rtol=1e-12)


def test_asked_subsets_are_counted_in_the_domains_order():
    codes = random_codes(1)
    marginals = jp.MarginalSet.from_table(codes, subsets=[["x3", "x0"], ["x4", "x1", "x2"]])
    assert [marginal.names for marginal in marginals] == [("x0", "x3"), ("x1", "x2", "x4")]
    truth = oracle.count_table(codes.array, (0, 3), codes.domain.sizes)
    np.testing.assert_allclose(marginals[0].table * marginals[0].n_obs, truth, rtol=1e-12)


@any_path
def test_a_row_twice_equals_weight_two(limits):
    codes = random_codes(2)
    weights = np.random.default_rng(2).integers(0, 3, codes.n_rows)
    repeated = Codes(codes.domain, np.repeat(codes.array, weights, axis=0))
    counted = counts_of(codes, MIXED, weights, limits)
    assert_same(counted.tables, counts_of(repeated, MIXED, None, limits).tables)


def test_weighted_marginals_know_their_total_weight():
    weights = [0.5, 2.0, 4.0]
    rows = np.array([[0, 1], [1, 1], [1, -1]])
    marginals = jp.MarginalSet.from_table(rows, 2, weights, jp.Domain.of_sizes([2, 2]))
    assert marginals[0].n_obs == 2.5
    np.testing.assert_allclose(marginals[0].table, [[0, 0.2], [0, 0.8]])


@pytest.mark.parametrize("weighted", [False, True])
@any_path
def test_adding_in_chunks_equals_adding_at_once(limits, weighted):
    codes = random_codes(3)
    weights = np.random.default_rng(3).integers(0, 5, codes.n_rows) if weighted else None
    chunked = no_counts(codes, MIXED, limits)
    for rows in np.array_split(np.arange(codes.n_rows), [1, 1, 20, 45]):
        chunk = Codes(codes.domain, codes.array[rows])
        chunked.add(chunk, weights[rows] if weighted else None)
    assert_same(chunked.tables, counts_of(codes, MIXED, weights, limits).tables)


@any_path
def test_merging_equals_adding_and_leaves_the_other_as_it_was(limits):
    codes = random_codes(4)
    first, second = (Codes(codes.domain, part) for part in np.array_split(codes.array, 2))
    merged, other = no_counts(codes, MIXED, limits), counts_of(second, MIXED, None, limits)
    merged.merge(counts_of(first, MIXED, None, limits))
    merged.merge(no_counts(codes, MIXED, limits))
    merged.merge(other)
    assert_same(merged.tables, counts_of(codes, MIXED).tables)
    assert_same(other.tables, counts_of(second, MIXED).tables)


@any_path
def test_the_order_of_the_rows_does_not_change_a_bit(limits):
    codes = random_codes(5)
    shuffled = Codes(codes.domain, np.random.default_rng(5).permutation(codes.array))
    counted = counts_of(codes, MIXED, None, limits)
    assert_same(counted.tables, counts_of(shuffled, MIXED, None, limits).tables)


@pytest.mark.parametrize("seed", range(5))
@any_path
def test_the_counts_of_a_small_random_sample_do_not_disagree(limits, seed, caplog):
    codes = random_codes(seed)
    assert jp.MarginalSet.from_table(codes, order=2, limits=limits).disagreements() == []
    assert caplog.records == []


@any_path
def test_a_column_with_one_level_is_allowed(limits):
    marginals = jp.MarginalSet.from_table(
        [[0, 4], [1, 4], [1, 4], [1, None]], order=2, limits=limits
    )
    assert marginals.domain.sizes == (2, 1)
    np.testing.assert_allclose(np.asarray(marginals[0].table), [[1 / 3], [2 / 3]])


def test_only_like_counts_can_be_added_and_merged():
    codes = random_codes(0)
    counts = counts_of(codes, MIXED)
    with pytest.raises(jp.JointPMFError, match="another domain"):
        counts.add(Codes(jp.Domain.of_sizes([2]), [[0]]))
    with pytest.raises(jp.JointPMFError, match="same subsets"):
        counts.merge(no_counts(codes, MIXED[1:]))
    with pytest.raises(jp.JointPMFError, match="nothing has been counted"):
        no_counts(codes, MIXED).to_marginals()
