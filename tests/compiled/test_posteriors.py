"""Posteriors of rows for queries, against brute force, where products are small and rows long."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.compiled.cells import listed_cells
from jointpmf.compiled.panels import lanes_of, panel_width
from jointpmf.compiled.posteriors import (
    e_step,
    e_step_of_many,
    empty_panels,
    panels_of,
    posterior_step,
    room_for,
    stack_of,
    stack_of_panels,
)
from jointpmf.evidence import posterior_of_rows, prediction_of_rows
from support import oracle


def random_model(generator, domain, rank, concentration=1.0):
    weights = generator.dirichlet(np.full(rank, 2.0))
    return weights, [
        generator.dirichlet(np.full(size, concentration), rank).T for size in domain.sizes
    ]


def assert_posterior(domain, weights, factors, table, target=None):
    """Compare with brute force in logs; return what was found."""
    codes = jp.Codes(domain, np.asarray(table))
    found, logs = posterior_of_rows(codes, np.asarray(weights), np.vstack(factors), target)
    assert found.shape == (len(table), len(weights))
    for row, posterior, log in zip(table, found, logs, strict=True):
        given_ = [-1 if n == target else code for n, code in enumerate(row)]
        expected = oracle.log_probability(weights, factors, given_)
        np.testing.assert_allclose(log, expected, rtol=1e-12, atol=1e-12)
        if expected == -np.inf:
            np.testing.assert_array_equal(posterior, weights)
        else:
            terms = np.exp(oracle.log_terms(weights, factors, given_) - expected)
            np.testing.assert_allclose(posterior, terms, rtol=1e-9, atol=1e-12)
    return found, logs


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.sampled_from([1, 2, 3, 5, 9]),
    st.sampled_from([0, 0.3, 1.0]),
    st.sampled_from([0.01, 0.3, 1.0]),
    st.booleans(),
)
def test_of_any_table_and_model(seed, n_variables, rank, holes, concentration, is_targeted):
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, n_variables)
    table = oracle.random_table(generator, domain, 12, holes)
    target = int(generator.integers(n_variables)) if is_targeted else None
    assert_posterior(domain, *random_model(generator, domain, rank, concentration), table, target)


@pytest.mark.parametrize("rank", [1, 4, 33, 70])
def test_of_a_thousand_variables(rank):
    generator = np.random.default_rng(0)
    domain = jp.Domain.of_sizes(generator.integers(2, 12, 1000).tolist())
    table = oracle.random_table(generator, domain, 5, 0.2)
    table[0] = -1
    _, logs = assert_posterior(domain, *random_model(generator, domain, rank), table, 7)
    assert logs.min() < -1000


@pytest.mark.parametrize("tiny", [1e-31, 1e-200, 1e-300, 1e-310, 5e-324])
def test_tiny_probabilities_are_not_lost(tiny):
    """What a fit would set to zero, and what has few digits, is still evidence in a query."""
    domain = jp.Domain.of_sizes([2, 2, 2])
    factors = [np.array([[tiny, tiny], [1.0, 1.0]])] * 2 + [np.array([[0.2, 0.9], [0.8, 0.1]])]
    table = [[0, 0, 0], [0, 0, -1], [-1, 0, 1], [0, 1, 0]]
    _, logs = assert_posterior(domain, [0.25, 0.75], factors, table)
    assert logs[0] == pytest.approx(2 * np.log(tiny) + np.log(0.25 * 0.2 + 0.75 * 0.9), rel=1e-14)


def test_a_tiny_weight_decides_where_the_others_are_impossible():
    domain = jp.Domain.of_sizes([2, 2])
    factors = [np.array([[0.0, 0.5], [1.0, 0.5]]), np.full((2, 2), 0.5)]
    for tiny in (1e-200, 1e-310):
        found, logs = assert_posterior(domain, [1.0, tiny], factors, [[0, 0], [1, 0]])
        np.testing.assert_array_equal(found[0], [0, 1])
        assert logs[0] == pytest.approx(np.log(tiny) + 2 * np.log(0.5), rel=1e-14)


def test_levels_that_nothing_explains_or_hardly_beside_components_far_apart():
    """A probability of 1e-200 in one row of the stack makes all rows be lifted, zeros too."""
    far = np.array([[1.0, 1e-200], [0.0, 1.0]])
    tiny = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0], [1e-290, 1e-290]])
    pmf = jp.JointPMF(jp.Domain.of_sizes([2, 4]), [0.5, 0.5], [far, tiny])
    logs = pmf.log_probability([[0, 2], [1, 2], [0, 3], [1, 0]])
    assert (logs[:2] == -np.inf).all()
    np.testing.assert_allclose(logs[2:], [np.log(0.5) + np.log(1e-290), np.log(0.25)], rtol=1e-14)


def test_a_target_of_many_levels_takes_little_more_memory_than_its_answer():
    domain = jp.Domain.of_sizes([2000, 2000])
    pmf = jp.random_pmf(domain, 36, random_state=0)
    codes = jp.Codes(domain, np.random.default_rng(0).integers(0, 2000, (3000, 2)))
    pmf.predict_proba(codes, "x1")
    tracemalloc.start()
    answer = pmf.predict_proba(codes, "x1")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * answer.nbytes
    one = pmf.predict_proba(jp.Codes(domain, codes.array[-1:]), "x1")
    np.testing.assert_allclose(answer[-1:], one, rtol=1e-12)


def test_the_log_probability_of_rows_needs_no_posteriors():
    domain = jp.Domain.of_sizes([3, 2, 4])
    generator = np.random.default_rng(0)
    weights, factors = random_model(generator, domain, 500)
    codes = jp.Codes(domain, oracle.random_table(generator, domain, 5000, 0.3))
    pmf = jp.JointPMF(domain, weights, factors)
    expected = pmf._posterior(codes)[1]
    np.testing.assert_array_equal(pmf.log_probability(codes), expected)
    tracemalloc.start()
    pmf.log_probability(codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5000 * 500 / 4


def test_impossible_and_empty_rows_get_the_weights():
    domain = jp.Domain.of_sizes([2, 2])
    found, logs = assert_posterior(
        domain, [0.25, 0.75], [np.eye(2), np.eye(2)], [[0, 1], [-1, -1], [1, 1]]
    )
    np.testing.assert_array_equal(logs[:2], [-np.inf, 0])
    np.testing.assert_array_equal(found, [[0.25, 0.75], [0.25, 0.75], [0, 1]])


def test_of_no_rows_and_of_no_variables():
    domain = jp.Domain.of_sizes([2, 3])
    model = random_model(np.random.default_rng(0), domain, 3)
    assert_posterior(domain, *model, np.empty((0, 2), int))
    nothing = jp.JointPMF(jp.Domain(()), [0.4, 0.6], [])
    np.testing.assert_array_equal(
        nothing._posterior(jp.Codes(nothing.domain, np.empty((3, 0), int)))[0], [[0.4, 0.6]] * 3
    )


@pytest.mark.parametrize("rank", [13, 300])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_any_size_of_a_block_gives_the_same_bits(block, rank):
    generator = np.random.default_rng(0)
    domain = jp.Domain.of_sizes([5, 4, 6, 3, 2, 7, 5, 4])
    weights, factors = random_model(generator, domain, rank)
    factors[0][0, 1:] *= 1e-190  # rows that have both are multiplied exactly, others as they are
    factors[1][0, :1] *= 1e-190
    stack = stack_of(weights, np.vstack(factors))
    codes = jp.Codes(domain, oracle.random_table(generator, domain, 900, 0.3))
    row_weights, lanes = generator.random(900), lanes_of(panel_width(rank))
    panels = panels_of(stack, len(lanes))
    results = []
    for size in (0, block):
        found = np.empty((900, rank)), empty_panels(stack.shape, len(lanes)), np.empty(900)
        for rows, cells, ptr in listed_cells(codes.columns, domain.offsets, 0, 900):
            posterior, counts, logs = found
            given = cells, ptr, row_weights[rows], *panels, room_for(panels.columns, size)
            e_step(*given, counts, logs[rows], lanes)
            posterior_step(cells, ptr, *given[3:], posterior[rows], logs[rows], lanes)
        results.append(found)
        if rank >= 256:  # the same sums, each level's rows after another
            sorted_ = empty_panels(stack.shape, len(lanes)), np.empty(900)
            for rows, cells, ptr in listed_cells(codes.columns, domain.offsets, 0, 900):
                given = cells, ptr, row_weights[rows], *panels, room_for(panels.columns, size)
                e_step_of_many(*given, sorted_[0], sorted_[1][rows], lanes)
            results.append((posterior, *sorted_))
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            np.testing.assert_array_equal(one, other)
    assert results[0][2].min() < -400
    levels, components = oracle.expected_counts(weights, factors, codes.array, row_weights)
    expected = np.vstack([*levels, components])
    np.testing.assert_allclose(stack_of_panels(results[0][1])[:, :rank], expected, rtol=1e-10)


def test_components_that_cannot_matter_are_left_out_and_nothing_else_changes():
    """Of 320 components those of each panel are alike, so that rows have one panel each."""
    generator = np.random.default_rng(0)
    domain, n_panels = jp.Domain.of_sizes([10] * 20), 10
    peaks = np.repeat(np.eye(10)[:, generator.permutation(n_panels)], 32, axis=1)
    factors = [0.99 * peaks + 0.001 + 1e-4 * generator.random(peaks.shape) for _ in domain]
    factors = [factor / factor.sum(axis=0) for factor in factors]
    weights = generator.dirichlet(np.ones(320))
    table = np.repeat(np.arange(10)[:, None], 20, axis=1)
    table[5:, :9] = table[:5, :9]  # and some have two
    stack = stack_of(weights, np.vstack(factors))
    logs, lanes, codes = np.empty(10), lanes_of(panel_width(320)), jp.Codes(domain, table)
    panels, counted = panels_of(stack, len(lanes)), empty_panels(stack.shape, len(lanes))
    for _, cells, ptr in listed_cells(codes.columns, domain.offsets, 0, 10):
        given = cells, ptr, np.ones(10), *panels, room_for(panels.columns)
        e_step_of_many(*given, counted, logs, lanes)
    counts = stack_of_panels(counted)
    levels, components = oracle.expected_counts(weights, factors, table, np.ones(10))
    expected = np.vstack([*levels, components])
    assert ((counts == 0) & (expected > 0)).mean() > 0.5
    np.testing.assert_allclose(counts, expected, atol=1e-12)
    np.testing.assert_allclose(counts[-1].sum(), 10, rtol=1e-12)


@pytest.mark.parametrize("rank", [255, 256, 257, 2036])
def test_large_ranks_are_padded_to_whole_panels(rank):
    domain = jp.Domain.of_sizes([3, 2, 4])
    generator = np.random.default_rng(rank)
    model = random_model(generator, domain, rank)
    assert_posterior(domain, *model, oracle.random_table(generator, domain, 20, 0.3))


@pytest.mark.parametrize("rank", [1, 5, 40, 300])
def test_predictions_are_what_posteriors_make_of_the_target(rank):
    generator = np.random.default_rng(rank)
    domain = jp.Domain.of_sizes([3, 2, 40, 4])
    weights, factors = random_model(generator, domain, rank, 0.3)
    factors[0][0] = 0.0  # so some rows cannot happen
    codes = jp.Codes(domain, oracle.random_table(generator, domain, 50, 0.3))
    for target, factor in enumerate(factors):
        model = codes, weights, np.vstack(factors), target
        posterior, logs = posterior_of_rows(*model)
        predicted, same = prediction_of_rows(*model)
        np.testing.assert_array_equal(same, logs)
        np.testing.assert_allclose(predicted, posterior @ factor.T, rtol=1e-11, atol=1e-13)
