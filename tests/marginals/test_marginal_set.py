"""Marginals are probabilities that know their rows; sets of them, and where they disagree."""

import logging

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.marginals.tables import SparseTable, TableLimits


def random_table(shape, seed=0):
    """Return integer counts, about two thirds of them zero."""
    generator = np.random.default_rng(seed)
    return generator.integers(1, 9, shape) * (generator.random(shape) < 1 / 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_axes_are_brought_into_the_domains_order(sparse):
    domain = jp.Domain.of_sizes([2, 3, 4])
    table = random_table((4, 2, 3)).astype(float)
    limits = TableLimits(sparse_below=2, smallest_sparse=0 if sparse else 10**9)
    given = jp.Marginal(("x2", "x0", "x1"), table, limits=limits)
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


def test_exact_marginals_do_not_disagree(caplog):
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4, 5]), rank=3, random_state=0)
    assert pmf.marginals(order=3).disagreements(tolerance=1e-12) == []
    assert caplog.records == []


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


def test_a_variable_may_be_known_by_the_part_of_the_population_alone():
    domain = jp.Domain.of_sizes([2, 3])
    old = jp.Marginal(("x1",), [10, 20, 30], where={"x0": 1})
    young = jp.Marginal(("x1",), [30, 20, 10], where={"x0": 0})
    pmf = jp.fit_marginals(jp.MarginalSet(domain, [old, young]), 2, random_state=0).pmf
    np.testing.assert_allclose(pmf.condition({"x0": 1}).table(), [1 / 6, 1 / 3, 1 / 2], atol=0.02)


def test_axes_that_look_turned_are_asked_about():
    domain = jp.Domain.of_sizes([2, 3])
    with pytest.raises(jp.JointPMFError, match="order of its axes"):
        jp.MarginalSet(domain, [jp.Marginal(("x1", "x0"), np.full((2, 3), 1 / 6))])


@pytest.mark.parametrize(("last", "is_told"), [(50, True), (49, False)])
def test_a_total_among_the_levels_is_told(last, is_told, caplog):
    domain = jp.Domain(
        [jp.Variable("age", ("young", "old", "all")), jp.Variable("sex", ("f", "m"))]
    )
    jp.MarginalSet(domain, [jp.Marginal(("age", "sex"), [[10, 20], [15, 30], [25, last]])])
    assert ("'all' of 'age' is the sum of all other levels" in caplog.text) == is_told
