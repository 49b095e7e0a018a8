import logging
from itertools import combinations

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.data.codes import Codes
from jointpmf.marginals import tables
from jointpmf.marginals.counting import count_tables
from jointpmf.marginals.tables import SparseTable, TableLimits, compact
from support import oracle

MIXED = [(3,), (0, 1), (2, 4), (0, 1, 3), (1, 2, 4), (0, 1, 2, 4), (0, 1, 3, 4)]
SHAPES = [(5,), (3, 4), (4, 1, 3), (6, 7, 5, 8)]


PATHS = {
    "dense": TableLimits(),
    "sparse": TableLimits(sparse_below=2, smallest_sparse=0),
    "sorting": TableLimits(max_scratch=0),
    "little scratch": TableLimits(max_scratch=60),
}
"""The ways to count that the size of a table chooses between."""

SPARSE = PATHS["sparse"]

any_path = pytest.mark.parametrize("limits", PATHS.values(), ids=PATHS)


def random_codes(seed, n_rows=60, n_variables=5, missing=0.25):
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, n_variables)
    rows = generator.integers(0, domain.sizes, (n_rows, n_variables))
    return Codes(domain, np.where(generator.random(rows.shape) < missing, jp.MISSING, rows))


def random_table(shape, seed=0):
    """Return integer counts, about two thirds of them zero."""
    generator = np.random.default_rng(seed)
    return generator.integers(1, 9, shape) * (generator.random(shape) < 1 / 3)


def dense(counted):
    return [np.asarray(table) for table in counted]


def no_counts(codes, subsets, limits=SPARSE):
    names = codes.domain.names
    return jp.MarginalCounts(
        codes.domain, [[names[n] for n in subset] for subset in subsets], limits
    )


def counts_of(codes, subsets, sample_weight=None, limits=SPARSE):
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


def test_a_large_table_is_sparse_by_itself_only_if_it_is_mostly_zeros():
    mostly_zeros = np.zeros((64, 64))
    mostly_zeros[3, 5] = 1
    assert isinstance(compact(mostly_zeros), SparseTable)
    assert isinstance(compact(np.ones((64, 64))), np.ndarray)
    assert isinstance(compact(np.zeros((63, 65))), np.ndarray)


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


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sparse_table_is_its_dense_table(shape):
    table = random_table(shape)
    sparse = compact(table, SPARSE)
    flat = table.ravel()
    np.testing.assert_array_equal(np.asarray(sparse), table)
    np.testing.assert_array_equal(sparse.cells, np.flatnonzero(flat))
    np.testing.assert_array_equal(sparse.values, flat[flat > 0])
    assert sparse.sum() == table.sum()
    np.testing.assert_allclose(np.asarray(sparse / 7), table / 7)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sparse_matrix_form_is_transposed_with_its_entries_in_order(shape):
    n_rows, n_columns = tables.matrix_shape(shape)
    truth = random_table(shape).reshape(n_rows, n_columns).T
    ptr, columns, values = compact(random_table(shape), SPARSE).transposed_entries()
    rows = np.repeat(np.arange(n_columns), np.diff(ptr))
    np.testing.assert_array_equal(rows * n_rows + columns, np.flatnonzero(truth))
    np.testing.assert_array_equal(values, truth[truth > 0])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sparse_table_is_summed_and_turned_as_a_dense_one(shape):
    table = random_table(shape)
    for kept in (table / 2, compact(table, SPARSE) / 2):
        sums = tables.low_order_sums(kept)
        assert len(sums) == len(shape) + len(shape) * (len(shape) - 1) // 2
        for axes, found in sums.items():
            np.testing.assert_allclose(found, oracle.sum_onto(table, axes) / 2)
    axes = tuple(np.roll(np.arange(len(shape)), 1).tolist())
    turned = tables.transpose(compact(table, SPARSE) / 2, axes)
    assert isinstance(turned, SparseTable)
    np.testing.assert_allclose(np.asarray(turned), table.transpose(axes) / 2)


@pytest.mark.parametrize("kinds", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_sparse_and_dense_tables_add_up_alike(kinds):
    both = [random_table((3, 4, 5), seed) for seed in (0, 1)]
    mixed = [
        compact(table, SPARSE) if kind else table for table, kind in zip(both, kinds, strict=True)
    ]
    total = tables.add(*mixed, SPARSE)
    np.testing.assert_array_equal(np.asarray(total), sum(both))


def test_a_sum_that_fills_up_becomes_dense():
    limits = TableLimits(smallest_sparse=0)
    first, second = np.diag([1, 2, 3, 4]), np.diag([5, 6, 7], 1)
    total = tables.add(compact(first, limits), compact(second, limits), limits)
    assert isinstance(total, np.ndarray)
    np.testing.assert_array_equal(total, first + second)


@pytest.mark.parametrize("count", [2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**40])
def test_a_sparse_table_holds_any_count(count):
    table = SparseTable.of_cells(np.array([1]), np.array([count]), (2, 2))
    assert np.asarray(table).tolist() == [[0, count], [0, 0]]


@pytest.mark.parametrize("size", [2**8, 2**16, 70_000])
def test_a_sparse_table_may_be_very_wide(size):
    cells = np.array([5, 2 * size**2 - 1])
    table = SparseTable.of_cells(cells, np.array([1, 2]), (2, size, size))
    np.testing.assert_array_equal(table.cells, cells)


@pytest.mark.parametrize("sparse", [False, True])
def test_axes_are_brought_into_the_domains_order(sparse):
    domain = jp.Domain.of_sizes([2, 3, 4])
    table = random_table((4, 2, 3)).astype(float)
    given = jp.Marginal(("x2", "x0", "x1"), compact(table, SPARSE) if sparse else table)
    kept = jp.MarginalSet(domain, [given])[0]
    assert kept.names == ("x0", "x1", "x2")
    assert kept.n_obs == table.sum()
    truth = table.transpose(1, 2, 0) / table.sum()
    np.testing.assert_allclose(np.asarray(kept.table), truth, rtol=1e-12)


@pytest.mark.parametrize(
    ("table", "given", "n_obs"),
    [([30, 10], None, 40), ([30, 10], 40, 40), ([0.75, 0.25], 40, 40), ([0.75, 0.25], None, None)],
)
def test_a_marginal_is_kept_as_probabilities_and_knows_its_rows(table, given, n_obs):
    marginal = jp.Marginal(("a",), table, n_obs=given)
    assert marginal.table.tolist() == [0.75, 0.25]
    assert marginal.n_obs == n_obs


def test_tables_over_different_rows_are_fine_when_they_say_so():
    domain = jp.Domain.of_sizes([2, 2], names=["a", "b"])
    first = jp.Marginal(("a", "b"), [[3, 1], [2, 4]], n_obs=10)
    turned = jp.Marginal(("b", "a"), [[6, 4], [2, 8]], n_obs=20)
    assert [m.n_obs for m in jp.MarginalSet(domain, [first, turned])] == [10, 20]


def disagreeing(n_obs=None):
    """Return ab and bc, which give b=1 the probabilities 0.5 and 0.62, and ac."""
    domain = jp.Domain.of_sizes([2, 2, 2], names=["a", "b", "c"])
    ab, bc, ac = [[0.25, 0.25], [0.25, 0.25]], [[0.19, 0.19], [0.31, 0.31]], [[0.25] * 2] * 2
    given = {("a", "b"): ab, ("b", "c"): bc, ("a", "c"): ac}
    return jp.MarginalSet(domain, [jp.Marginal(n, t, n_obs=n_obs) for n, t in given.items()])


def test_a_disagreement_says_which_pair_on_which_variable_and_by_how_much():
    (found,) = disagreeing().disagreements()
    assert found.variables == ("b",)
    assert {found.first, found.second} == {("a", "b"), ("b", "c")}
    probability = {
        found.first: found.first_probability,
        found.second: found.second_probability,
    }
    truth = {("a", "b"): {0: 0.5, 1: 0.5}, ("b", "c"): {0: 0.38, 1: 0.62}}
    assert probability == pytest.approx({names: p[found.levels[0]] for names, p in truth.items()})
    assert found.by == pytest.approx(0.12)
    for text in ("a, b", "b, c", f"b={found.levels[0]}", "0.12"):
        assert text in str(found)


def test_a_disagreement_is_logged_as_a_warning(caplog):
    with caplog.at_level(logging.WARNING, logger="jointpmf"):
        found = disagreeing().disagreements()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("jointpmf", "WARNING")
    assert str(found[0]) in record.getMessage()


@pytest.mark.parametrize(("n_obs", "n_found"), [(100, 0), (10_000, 1)])
def test_a_difference_that_sampling_explains_is_no_disagreement(n_obs, n_found):
    assert len(disagreeing(n_obs).disagreements()) == n_found


def test_the_worst_disagreement_comes_first():
    domain = jp.Domain.of_sizes([2, 2])
    singles = [jp.Marginal(("x0",), [0.4, 0.6]), jp.Marginal(("x1",), [0.1, 0.9])]
    marginals = jp.MarginalSet(domain, [jp.Marginal(("x0", "x1"), [[0.25] * 2] * 2), *singles])
    assert [found.variables for found in marginals.disagreements()] == [("x1",), ("x0",)]


@pytest.mark.parametrize("seed", range(5))
@any_path
def test_the_counts_of_a_small_random_sample_do_not_disagree(limits, seed, caplog):
    codes = random_codes(seed)
    assert jp.MarginalSet.from_table(codes, order=2, limits=limits).disagreements() == []
    assert caplog.records == []


def test_exact_marginals_do_not_disagree(caplog):
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4, 5]), rank=3, random_state=0)
    assert pmf.marginals(order=3).disagreements(tolerance=1e-12) == []
    assert caplog.records == []


@any_path
def test_a_column_with_one_level_is_allowed(limits):
    marginals = jp.MarginalSet.from_table(
        np.array([[0, 4], [1, 4], [1, 4], [1, -1]]), order=2, limits=limits
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


def test_pairs_that_contradict_while_their_variables_agree_are_found():
    domain = jp.Domain.of_sizes([2, 2])
    same, other = [[0.5, 0], [0, 0.5]], [[0, 0.5], [0.5, 0]]
    marginals = jp.MarginalSet(domain, [jp.Marginal(domain.names, t) for t in (same, other)])
    (found,) = marginals.disagreements()
    assert (found.variables, found.by) == (("x0", "x1"), 0.5)
    assert "1 disagreements" in repr(marginals)


def test_a_small_table_does_not_hide_the_conflict_of_two_large_ones():
    domain = jp.Domain.of_sizes([2])
    given = {10: [0.3, 0.7], 10**6: [0.5, 0.5], 2 * 10**6: [0.6, 0.4]}
    tables_ = [jp.Marginal(("x0",), t, n_obs=n) for n, t in given.items()]
    (found,) = jp.MarginalSet(domain, tables_).disagreements()
    assert found.by == pytest.approx(0.1)


@pytest.mark.parametrize("weights", [None, np.full(7, 0.1)])
def test_a_variable_of_one_level_is_allowed_whatever_its_sum_rounds_to(weights):
    rows = np.column_stack([np.zeros(7, int), [0, 1, 2, 0, 1, 2, 0]])
    marginals = jp.MarginalSet.from_table(rows, 2, weights)
    assert marginals.domain.sizes == (1, 3)
    even = jp.Marginal(("x0", "x1"), [[1] * 20])
    assert jp.MarginalSet(jp.Domain.of_sizes([1, 20]), [even]).disagreements() == []


def test_rounded_probabilities_are_probabilities_and_percentages_are_no_counts():
    rounded = jp.Marginal(("a",), [0.333, 0.333, 0.333])
    assert (rounded.n_obs, rounded.table.sum()) == (None, pytest.approx(1))
    percent = jp.Marginal(("a",), [33.3, 66.7])
    assert (percent.n_obs, percent.table.sum()) == (None, pytest.approx(1))
    assert jp.Marginal(("a",), [0.5, 0.499], n_obs=300).n_obs == 300


def test_a_given_table_that_is_mostly_zeros_is_kept_sparse():
    table = np.zeros((70, 70))
    table[3, 4] = 1
    marginal = jp.Marginal(("a", "b"), table)
    assert isinstance(marginal.table, SparseTable)
    np.testing.assert_array_equal(np.asarray(marginal.table), table)
