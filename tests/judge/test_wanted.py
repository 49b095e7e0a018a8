"""Which tables to ask for, beside the ranks of whole Jacobians."""

from itertools import combinations, pairwise
from math import prod

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.judge.wanted import WantedTables
from support.oracle import jacobian

CASES = {
    "pairs": ([3, 2, 4, 3], 3, list(combinations(range(4), 2))),
    "some pairs": ([3, 3, 3, 3], 2, [(0, 1), (1, 2), (2, 3)]),
    "singles": ([2, 3, 2], 2, [(0,), (1,), (2,)]),
    "two groups": ([2, 2, 2, 2, 2], 2, [(0, 1, 2), (3, 4)]),
    "triples beyond": ([2, 2, 2, 2, 2], 5, list(combinations(range(5), 3))),
    "levels of all sizes": ([2, 5, 3, 2, 4], 4, [(0, 1), (1, 2), (2, 3, 4)]),
}


def names_of(subset):
    return tuple(f"x{n}" for n in subset)


def seen_by(pmf, subsets):
    """Return the rank of the Jacobian of some tables over all feasible directions."""
    whole = jacobian(subsets, pmf.weights, pmf.factors, np.ones(len(subsets)))
    sizes, rank = pmf.domain.sizes, pmf.rank
    ends = np.cumsum([0, *sizes])
    basis = [np.eye(rank)[k] - np.eye(rank)[k + 1] for k in range(rank - 1)]
    directions = [np.concatenate([move, np.zeros(rank * ends[-1])]) for move in basis]
    for begin, end in pairwise(ends):
        for level in range(begin, end - 1):
            for f in range(rank):
                move = np.zeros(rank * (1 + ends[-1]))
                move[rank * (1 + level) + f], move[rank * (2 + level) + f] = 1.0, -1.0
                directions.append(move)
    j = whole @ np.array(directions).T
    return np.linalg.matrix_rank(j, tol=1e-6 * np.linalg.norm(j, 2))


def candidates(domain, subsets):
    """Return all tables that may be asked for."""
    most = min(max(3, *(len(s) + 1 for s in subsets)), len(domain))
    return [s for k in range(2, most + 1) for s in combinations(range(len(domain)), k)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_each_table_sees_most_of_what_is_open_and_has_fewest_cells(case, seed):
    sizes, rank, subsets = CASES[case]
    pmf = jp.random_pmf(jp.Domain.of_sizes(sizes), rank, seed)
    report = jp.identifiability(
        pmf.marginals(subsets=[names_of(s) for s in subsets]), rank, pmf=pmf
    )
    known = list(subsets)
    assert 0 < len(report.tables_to_ask) <= 5
    for names in report.tables_to_ask:
        ranks = {s: seen_by(pmf, [*known, s]) for s in candidates(pmf.domain, subsets)}
        best = max(ranks.values())
        assert best > seen_by(pmf, known)
        chosen = tuple(int(name[1:]) for name in names)
        assert ranks[chosen] == best
        cells = {s: prod(sizes[n] for n in s) for s in ranks if ranks[s] == best}
        assert cells[chosen] == min(cells.values())
        known.append(chosen)
    assert report.wanted.n_open == report.n_parameters - seen_by(pmf, subsets)
    assert report.wanted.n_seen == seen_by(pmf, known) - seen_by(pmf, subsets)


@pytest.mark.parametrize("case", sorted(set(CASES) - {"triples beyond"}))
def test_with_these_tables_the_model_is_identifiable(case):
    sizes, rank, subsets = CASES[case]
    domain = jp.Domain.of_sizes(sizes)
    listed = [names_of(s) for s in subsets]
    report = jp.identifiability((domain, listed), rank)
    assert report.identifiable is False
    assert report.wanted.n_seen == report.wanted.n_open
    assert "would determine all of these parameters" in str(report)
    assert " by ".join(report.tables_to_ask[0]) in str(report)
    assert jp.identifiability((domain, [*listed, *report.tables_to_ask]), rank).identifiable


def test_at_most_five_are_named_and_what_they_leave_is_said():
    report = jp.identifiability(jp.Domain.of_sizes([2] * 10), 20, order=3)
    assert len(report.tables_to_ask) == 5
    assert f"would determine 5 of these {report.wanted.n_open} parameters" in str(report)


def test_a_whole_table_may_be_asked_for_where_bands_are_known():
    truth = jp.random_pmf(jp.Domain.of_sizes([4, 2, 2]), 2, 0)
    table = truth.table().reshape(2, 2, 2, 2).sum(axis=1)
    names = ("x0", "x1", "x2")
    coarse = jp.Marginal(names, table, levels={"x0": [(0, 1), (2, 3)]})
    report = jp.identifiability(jp.MarginalSet(truth.domain, [coarse]), 2)
    assert report.tables_to_ask == (("x0", "x1"),)
    pair = truth.marginals(subsets=[("x0", "x1")])[0]
    assert jp.identifiability(jp.MarginalSet(truth.domain, [coarse, pair]), 2).identifiable


def test_nothing_is_asked_for_where_nothing_is_open_or_known():
    domain = jp.Domain.of_sizes([4] * 5)
    found = jp.identifiability(domain, 3, order=3)
    assert found.identifiable
    assert found.wanted == WantedTables()
    assert "Ask for" not in str(found)
    large = jp.identifiability(jp.Domain.of_sizes([40] * 10), 5, order=2)
    assert large.identifiable is False
    assert large.tables_to_ask == ()


def test_components_that_are_alike_are_told_apart_by_no_table():
    generic = jp.random_pmf(jp.Domain.of_sizes([2, 2]), 2, 0)
    pmf = jp.JointPMF(generic.domain, [0.5, 0.5], [f[:, [0, 0]] for f in generic.factors])
    report = jp.identifiability(pmf.marginals(2), 2, pmf=pmf)
    assert report.identifiable is False
    assert report.tables_to_ask == ()


def test_tables_are_sought_among_few_if_there_are_many():
    report = jp.identifiability(jp.Domain.of_sizes([3] * 40), 3, order=2)
    assert report.wanted.n_seen == report.wanted.n_open == 3
