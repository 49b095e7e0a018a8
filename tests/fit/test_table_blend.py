"""Traits beside free components in the default fit to tables."""

from functools import cache

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.members import members_of, some_trait_members
from jointpmf.fit.table_blend import alone_of

NAMES = tuple("abcdefgh")
DOMAIN = jp.Domain([jp.Variable(name, ("no", "yes")) for name in NAMES])
CHAIN = [NAMES[k : k + 2] for k in range(7)] + [("a", "d"), ("b", "g")]


def truth():
    """Return a model in which one trait moves all answers."""
    trait = np.linspace(-2.5, 2.5, 21)
    weights = np.exp(-(trait**2) / 2)
    yes = 1 / (1 + np.exp(-1.8 * trait))
    return jp.JointPMF(DOMAIN, weights / weights.sum(), [np.stack([1 - yes, yes])] * 8)


TRUTH = truth()


def tables(subsets=CHAIN, n_rows=4000, **options):
    rows = jp.Codes(DOMAIN, TRUTH.sample(n_rows, random_state=1, backend="codes"))
    return jp.MarginalSet(
        DOMAIN, jp.MarginalSet.from_table(rows, subsets=subsets).marginals, **options
    )


def fitted(known=None, **options):
    options = {"random_state": 0, "max_iter": 40} | options
    return jp.fit_marginals(tables() if known is None else known, **options)


fit_once = cache(fitted)
BRIEF = {"max_iter": 8}
"""Of a fit that has all the stages, and need not be good."""


class TestWhereTablesLeaveMuchOpen:
    def test_traits_take_part_and_come_first(self):
        solution = fit_once()
        points = [len(model.space.points) for model in solution.trait_models]
        assert points
        n_free = solution.n_averaged - len(points)
        assert n_free > 1
        assert (solution.pmf.rank - sum(points)) % n_free == 0
        first = solution.trait_models[0]
        factors = np.concatenate(solution.pmf.factors)[:, : len(first.space.points)]
        np.testing.assert_allclose(factors, first.factors)
        assert solution.status is jp.Status.NOT_UNIQUE

    def test_they_predict_what_no_table_shows(self):
        rank = members_of(fit_once().pmf, fit_once().n_averaged)[0].rank
        free = fitted(rank=rank)
        assert not free.trait_models
        far, near = (jp.kl_divergence(TRUTH, one.pmf).value for one in (free, fit_once()))
        assert near < far / 2

    def test_the_tables_are_met(self):
        assert fit_once().residuals[0][1] < 0.03

    def test_the_same_seed_gives_the_same_bits(self):
        again = fitted(**BRIEF)
        assert again.trait_models
        assert again.pmf.weights.tolist() == fit_once(**BRIEF).pmf.weights.tolist()

    def test_a_checkpoint_changes_nothing(self, tmp_path):
        for _ in range(2):
            found = fitted(checkpoint=tmp_path, **BRIEF)
            assert found.trait_models
            assert found.pmf.factors[0].tolist() == fit_once(**BRIEF).pmf.factors[0].tolist()

    def test_what_is_free_can_be_walked_from(self):
        low, high = fit_once().spread({"a": "yes", "h": "yes"}, random_state=0)
        assert high - low > 1e-3

    def test_replicates_keep_the_shares(self):
        found = fit_once().uncertainty(n=3, random_state=0)
        share, members = some_trait_members(fit_once())
        kept = sum(member.rank for member in members)
        np.testing.assert_allclose(found.weights[:, :kept].sum(axis=1), share)

    def test_a_file_tells_which_components_are_whose(self, tmp_path):
        fit_once().save(tmp_path / "model.safetensors")
        loaded = jp.load(tmp_path / "model.safetensors")
        found, expected = (
            members_of(pmf, fit_once().n_averaged) for pmf in (loaded, fit_once().pmf)
        )
        assert len(found) == fit_once().n_averaged - len(loaded.trait_models)
        np.testing.assert_allclose(found[-1].weights, expected[-1].weights)


class TestWhereThereAreNone:
    def test_the_rank_is_given(self):
        assert not fitted(rank=2).trait_models

    def test_how_many_are_averaged_is_given(self):
        assert not fitted(search=jp.Search(n_average=2)).trait_models

    def test_something_is_impossible(self):
        cells = [{"a": "no", "b": "yes", "c": "no"}]
        assert not fitted(tables(impossible=cells), max_iter=10).trait_models

    def test_tables_are_few(self):
        assert not fitted(tables([NAMES[:3], NAMES[2:6], NAMES[5:]])).trait_models

    def test_variables_are_independent(self):
        generator = np.random.default_rng(0)
        rows = jp.Codes(DOMAIN, generator.integers(2, size=(500, 8)))
        known = jp.MarginalSet.from_table(rows, subsets=CHAIN)
        assert fitted(known, max_iter=10).pmf.rank == 1


def test_a_stop_among_traits_keeps_what_was_found():
    stages = []

    def callback(step, pmf):
        stages.append(step.stage)
        return step.stage.startswith("traits")

    solution = fitted(callback=callback, **BRIEF)
    assert stages[-1].startswith("traits")
    assert solution.status is jp.Status.STOPPED
    assert not solution.trait_models
    assert solution.n_averaged > 1


@pytest.mark.parametrize(
    "options",
    [
        {"given": ["a"]},
        {"where": {"c": "yes"}},
        {"noise": 3.0},
    ],
    ids=["slices", "part", "noise"],
)
def test_how_a_variable_is_distributed_is_told_by_whole_tables_only(options):
    table = [[0.5, 0.5], [0.25, 0.75]] if "given" in options else [[20.0, 30.0], [10.0, 40.0]]
    marginal = jp.Marginal(("a", "b"), table, 100, **options)
    assert alone_of(marginal.measured(DOMAIN, 1.0)) == []


def test_how_variables_are_distributed():
    marginal = jp.Marginal(("a", "b"), [[20, 30], [10, 40]])
    first, second = alone_of(marginal.measured(DOMAIN, 1.0))
    assert (first.positions, first.counts.tolist()) == ((0,), [50, 50])
    assert (second.positions, second.counts.tolist()) == ((1,), [30, 70])


def test_tables_of_every_kind_can_be_held_out():
    known = [
        *tables().marginals[:7],
        jp.Marginal(("a", "h"), [[0.7, 0.3], [0.3, 0.7]], 500, given=["a"]),
        jp.Marginal(("c", "f"), [[700.0, 310.0], [290.0, 700.0]], 2000, noise=5.0),
        jp.Marginal(("d", "h"), [[900, np.nan], [200, 700]], 2000, where={"a": "yes"}),
    ]
    solution = fitted(jp.MarginalSet(DOMAIN, known), max_iter=15)
    assert np.isfinite(solution.objective)
    assert solution.pmf.rank > solution.n_averaged


def test_exact_tables_that_leave_much_open():
    known = jp.MarginalSet(
        DOMAIN, [jp.Marginal(names, TRUTH.marginal(names).table()) for names in CHAIN]
    )
    solution = fitted(known, max_iter=60)
    assert solution.trait_models
    assert solution.residuals[0][1] < 0.02
