"""The closed-form start: its parts on planted problems, and fits of exact marginals."""

import logging
from itertools import combinations, product

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.solvers.least_squares import CoupledLeastSquares
from jointpmf.solvers.starts import algebraic
from jointpmf.solvers.starts.algebraic import (
    Triples,
    algebraic_start,
    decompose,
    groupings,
    joint_eigenvectors,
)
from support import oracle
from support.planted import planted


def names(*subsets):
    return [tuple(f"x{n}" for n in subset) for subset in subsets]


def assert_recovered(truth, marginals, seed=0):
    solution = jp.fit_marginals(marginals, truth.rank, random_state=seed)
    assert solution.start.kind == "algebraic"
    assert jp.factor_error(truth, solution.pmf) < 1e-9
    return solution


def sine_of_angles(found, vectors):
    """Return, for each vector, the sine of its angle with the nearest one that was found."""
    found, vectors = (a / np.linalg.norm(a, axis=0) for a in (found, vectors))
    outside = vectors[:, :, None] - found[:, None, :] * (vectors.T @ found)
    return np.linalg.norm(outside, axis=0).min(axis=1)


class TestDecompose:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("sizes", [(5, 4, 2), (4, 7, 3), (9, 9, 9)])
    def test_a_planted_tensor_is_taken_apart(self, sizes, seed):
        generator = np.random.default_rng(seed)
        factors = [generator.random((size, 4)) for size in sizes]
        tensor = oracle.cp_tensor(np.ones(4), factors)
        found = decompose(tensor, 4, generator)
        for factor, planted_factor in zip(found, factors, strict=True):
            assert sine_of_angles(factor, planted_factor).max() < 1e-9
        np.testing.assert_allclose(oracle.cp_tensor(np.ones(4), found), tensor, atol=1e-10)

    def test_columns_of_the_first_factor_sum_to_one(self):
        generator = np.random.default_rng(0)
        tensor = oracle.cp_tensor(np.ones(3), [generator.random((5, 3)) for _ in range(3)])
        first, second, _ = decompose(tensor, 3, generator)
        np.testing.assert_allclose(first.sum(axis=0), 1, atol=1e-14)
        assert (second.sum(axis=0) > 0).all()

    def test_a_tensor_of_lower_rank_has_no_answer(self):
        generator = np.random.default_rng(0)
        tensor = oracle.cp_tensor(np.ones(2), [generator.random((5, 2)) for _ in range(3)])
        assert decompose(tensor, 3, generator) is None


def commuting(seed, noise=0.0, size=5, count=8):
    """Return matrices that share eigenvectors, up to noise, and those eigenvectors."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(size, size))
    inverse = np.linalg.inv(vectors)
    matrices = np.array([vectors @ np.diag(d) @ inverse for d in generator.normal(size=(count, 5))])
    return matrices + noise * generator.normal(size=matrices.shape), vectors


class TestJointEigenvectors:
    @pytest.mark.parametrize("seed", range(5))
    def test_commuting_matrices_become_diagonal(self, seed):
        matrices, vectors = commuting(seed)
        found = joint_eigenvectors(matrices, np.random.default_rng(seed))
        rotated = np.linalg.solve(found, matrices @ found)
        diagonal = np.einsum("kii->ki", rotated)
        off = rotated - diagonal[:, :, None] * np.eye(5)
        assert np.abs(off).max() < 1e-11 * np.abs(rotated).max()
        assert sine_of_angles(found, vectors).max() < 1e-11

    def test_under_noise_all_matrices_together_beat_one_mix(self):
        errors = []
        for seed in range(20):
            matrices, vectors = commuting(seed, noise=1e-3)
            errors.append(
                [
                    sine_of_angles(method(matrices, np.random.default_rng(1)), vectors).mean()
                    for method in (joint_eigenvectors, algebraic._eigenvectors_of_a_mix)
                ]
            )
        together, one_mix = np.mean(errors, axis=0)
        assert together < 0.3 * one_mix

    def test_complex_pairs_of_a_mix_still_give_real_vectors(self):
        matrices = np.array([[[0.0, -1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
        found = joint_eigenvectors(matrices, np.random.default_rng(0))
        assert np.isrealobj(found)
        assert np.linalg.matrix_rank(found) == 2


TRIPLES_OF_SIX = list(combinations(range(6), 3))

PARTIAL = {
    "all": TRIPLES_OF_SIX,
    "half": TRIPLES_OF_SIX[::2],
    "with the first": [t for t in TRIPLES_OF_SIX if 0 in t],
    "three by three": list(product((0, 1), (2, 3), (4, 5))),
}


class TestGroupings:
    @pytest.mark.parametrize("known", PARTIAL)
    @pytest.mark.parametrize("rank", [2, 4, 6])
    def test_all_triples_across_are_known_and_the_rank_has_room(self, known, rank):
        sizes = [3, 4, 3, 5, 4, 3]
        marginals = planted(sizes, 2, 0).marginals(subsets=names(*PARTIAL[known]))
        found = list(
            groupings(marginals.domain, Triples(marginals), rank, np.random.default_rng(0))
        )
        everything = {frozenset(t) for t in PARTIAL[known]}
        for groups in found:
            assert {frozenset(t) for t in product(*groups)} <= everything
            assert len({n for group in groups for n in group}) == sum(map(len, groups))
            for group in groups[:2]:
                assert 1 + sum(sizes[n] - 1 for n in group) >= rank
        assert 1 <= len(found) <= 6
        different = {(frozenset(map(frozenset, g[:2])), frozenset(g[2])) for g in found}
        assert len(different) == len(found)

    def test_no_grouping_has_room_for_too_large_a_rank(self):
        marginals = planted([3] * 6, 2, 0).marginals(3)
        # two stacks of five variables at most, the third has one: 1 + 2 · 2 and 1 + 3 · 2
        assert list(groupings(marginals.domain, Triples(marginals), 5, np.random.default_rng(0)))
        assert not list(
            groupings(marginals.domain, Triples(marginals), 6, np.random.default_rng(0))
        )

    def test_triples_are_found_in_larger_tables_with_axes_as_asked(self):
        truth = planted([2, 3, 4, 5], 3, 0)
        triples = Triples(truth.marginals(4))
        assert set(triples) == {frozenset(t) for t in combinations(range(4), 3)}
        table = triples.table((3, 0, 2))
        np.testing.assert_allclose(table, oracle.sum_onto(oracle.joint(truth), [3, 0, 2]))


@pytest.mark.parametrize("seed", range(4))
class TestExactMarginals:
    @pytest.mark.parametrize("rank", [3, 8])
    @pytest.mark.parametrize("order", [3, 4])
    def test_triples_and_quadruples(self, seed, rank, order):
        truth = jp.random_pmf(jp.Domain.of_sizes([6] * 5), rank, seed)
        assert_recovered(truth, truth.marginals(order))

    def test_unequal_alphabets(self, seed):
        truth = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4, 5, 6, 7]), 6, seed)
        assert_recovered(truth, truth.marginals(3))

    def test_variables_that_a_small_stack_leaves_out(self, seed):
        truth = jp.random_pmf(jp.Domain.of_sizes([4] * 8), 3, seed)
        marginals = truth.marginals(3)
        for groups in groupings(
            marginals.domain, Triples(marginals), 3, np.random.default_rng(seed), room=1
        ):
            assert sum(map(len, groups)) == 3
        problem = CoupledLeastSquares(marginals, 3)
        found = algebraic_start(marginals, problem, np.random.default_rng(0), room=1)
        assert found.is_exact
        assert jp.factor_error(truth, jp.JointPMF.at(found.point, truth.domain)) < 1e-9

    def test_many_variables(self, seed):
        truth = jp.random_pmf(jp.Domain.of_sizes([4] * 20), 3, seed)
        marginals = truth.marginals(3)
        first = next(
            groupings(marginals.domain, Triples(marginals), 3, np.random.default_rng(seed))
        )
        assert sum(map(len, first)) < 20
        assert_recovered(truth, marginals)

    def test_a_variable_that_only_some_triples_reach(self, seed):
        truth = jp.random_pmf(jp.Domain.of_sizes([6] * 5), 4, seed)
        subsets = names((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3), (2, 3, 4))
        assert_recovered(truth, truth.marginals(subsets=subsets))

    def test_six_of_ten_triples(self, seed):
        truth = jp.random_pmf(jp.Domain.of_sizes([10] * 5), 5, seed)
        everything = list(combinations(range(5), 3))
        chosen = np.random.default_rng(seed).permutation(10)[:6]
        subsets = [everything[k] for k in chosen]
        assert len({n for s in subsets for n in s}) == 5
        assert_recovered(truth, truth.marginals(subsets=names(*subsets)))

    def test_sparse_truths(self, seed):
        truth = planted([8] * 5, 6, seed, concentration=0.2)
        assert min(factor.min() for factor in truth.factors) < 1e-6
        assert_recovered(truth, truth.marginals(3))

    def test_pairs_beside_the_triples_do_not_disturb(self, seed):
        truth = jp.random_pmf(jp.Domain.of_sizes([5] * 4), 3, seed)
        subsets = names((0, 1, 2), (0, 1, 3), (1, 3), (2,))
        assert_recovered(truth, truth.marginals(subsets=subsets))


def test_the_start_alone_is_exact_on_exact_triples():
    truth = planted([5] * 5, 4, 0)
    marginals = truth.marginals(3)
    problem = CoupledLeastSquares(marginals, 4)
    start = algebraic_start(marginals, problem, np.random.default_rng(0))
    assert problem.cost(start.point) < 1e-25
    assert jp.factor_error(truth, jp.JointPMF.at(start.point, truth.domain)) < 1e-9


def test_under_noise_several_groupings_are_tried_and_the_best_is_kept():
    truth = planted([4] * 5, 3, 1)
    rows = truth.sample(5000, random_state=0, backend="codes")
    marginals = jp.MarginalSet.from_table(rows, 3, domain=truth.domain)
    problem = CoupledLeastSquares(marginals, 3)
    start = algebraic_start(marginals, problem, np.random.default_rng(0))
    generator = np.random.default_rng(0)
    triples = Triples(marginals)
    alone = [
        algebraic.point_of_groups(marginals.domain, triples, groups, 3, np.random.default_rng(1))
        for groups in groupings(marginals.domain, triples, 3, generator)
    ]
    costs = [problem.cost(point) for point in alone]
    assert len(alone) > 1
    assert f"best of {len(alone)} groupings" in start.reason
    assert problem.cost(start.point) < np.median(costs)


CANNOT = {
    "pairs only": ([4] * 4, 3, {"order": 2}, "no three variables are known together"),
    "rank above the room": ([3] * 3, 8, {"order": 3}, "can have the asked rank"),
    "too few triples": (
        [3] * 6,
        5,
        {"subsets": names((0, 1, 2), (3, 4, 5))},
        "can have the asked rank",
    ),
}


@pytest.mark.parametrize("start", ["auto", "algebraic"])
@pytest.mark.parametrize("case", CANNOT)
def test_where_it_cannot_apply_the_start_is_random_and_the_reason_is_said(case, start, caplog):
    sizes, rank, known, why = CANNOT[case]
    marginals = planted(sizes, rank, 0).marginals(**known)
    with caplog.at_level(logging.INFO, logger="jointpmf"):
        how = {"search": jp.Search(start), "loss": "squares"}
        solution = jp.fit_marginals(marginals, rank, random_state=0, **how)
    assert solution.start.kind == "random"
    assert why in solution.start.reason
    assert any("random start" in line and why in line for line in caplog.messages)


@pytest.mark.parametrize("seed", range(4))
def test_the_reason_is_also_said_when_a_restart_was_better(seed):
    """Rank 4 is identifiable from all triples of six bits, but no two stacks have room for it."""
    truth = jp.random_pmf(jp.Domain.of_sizes([2] * 6), 4, seed)
    rows = truth.sample(500, random_state=seed, backend="codes")
    marginals = jp.MarginalSet.from_table(rows, 3, domain=truth.domain)
    solution = jp.fit_marginals(marginals, 4, loss="squares", random_state=seed)
    assert solution.start.kind == "random"
    assert "can have the asked rank" in solution.start.reason


def test_a_random_start_that_was_asked_for_says_so():
    marginals = planted([4] * 4, 3, 0).marginals(3)
    solution = jp.fit_marginals(marginals, 3, search=jp.Search("random"), random_state=0)
    assert str(solution.start) == "random: as asked"
