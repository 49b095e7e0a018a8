"""Fits of traits: on any source, weighed, pulled, and chosen by what is held out."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.settings import Kinds, Traits
from jointpmf.fit.trait_search import TraitClimb, TraitKind
from support.feasibility import feasible
from support.small_fits import fit_rows

N_ITEMS = 7


def survey(n_rows=1500, seed=0):
    """Return answers from 1 to 5 that two traits move, some of which are missing."""
    generator = np.random.default_rng(seed)
    traits = generator.normal(size=(n_rows, 2))
    loadings = np.random.default_rng(99).normal(size=(2, N_ITEMS))
    answers = traits @ loadings + generator.normal(size=(n_rows, N_ITEMS))
    codes = np.clip(np.round(answers) + 2, 0, 4).astype(int)
    codes[generator.random(codes.shape) < 0.1] = jp.MISSING
    return codes


DOMAIN = jp.Domain([jp.Variable(f"item {n}", (1, 2, 3, 4, 5)) for n in range(N_ITEMS)])
ROWS = jp.Codes(DOMAIN, survey())
OTHERS = jp.Codes(DOMAIN, survey(seed=1))


def fit(rows=ROWS, rank=64, traits=2, **options):
    objective = jp.Likelihood(traits=traits)
    options = {"random_state": 0, "max_iter": 25} | options
    return jp.fit_rows(rows, rank, objective=objective, **options)


class TestGivenRank:
    def test_it_predicts_other_rows_better_than_free_components(self):
        free = jp.fit_rows(ROWS, 64, random_state=0, search=jp.Search(start="rows"), max_iter=50)
        own, other = (f.pmf.log_probability(OTHERS).mean() for f in (fit(), free))
        assert own > other + 0.05

    def test_the_objective_never_rises_before_points_are_dropped(self):
        objective = np.array([step.objective for step in fit().history])
        assert (np.diff(objective) <= 1e-6).all()

    def test_points_without_rows_are_dropped(self):
        found = fit(rank=256, max_iter=200)
        assert found.pmf.rank < 256
        (model,) = found.trait_models
        assert len(model.space.points) == found.pmf.rank
        assert feasible(found.pmf)

    def test_columns_are_those_of_the_traits(self):
        found = fit()
        assert np.allclose(np.concatenate(found.pmf.factors), found.trait_models[0].factors)

    @pytest.mark.parametrize("kind", ["batches", "a callable"])
    def test_rows_elsewhere_give_the_same_model(self, kind):
        batches = [jp.Codes(DOMAIN, part) for part in np.array_split(ROWS.array, 3)]
        source = batches if kind == "batches" else lambda: iter(batches)
        there, here = fit(source, domain=DOMAIN).pmf, fit().pmf
        assert np.allclose(there.log_probability(OTHERS), here.log_probability(OTHERS), atol=0.05)

    def test_a_weight_of_two_is_the_row_twice(self):
        weights = np.random.default_rng(0).integers(1, 3, ROWS.n_rows)
        twice = jp.Codes(DOMAIN, np.repeat(ROWS.array, weights, axis=0))
        one, other = fit(sample_weight=weights.astype(float)), fit(twice)
        assert np.isclose(one.objective, other.objective, atol=1e-5)

    def test_an_average_has_all_spaces(self):
        found = fit(search=jp.Search(n_average=3), validation=0.2)
        assert len(found.trait_models) == 3
        assert found.pmf.rank == sum(len(model.space.points) for model in found.trait_models)

    def test_pulled_columns_leave_the_traits_where_that_helps(self):
        # three classes that no straight line through the scores can follow
        truth = jp.random_pmf(jp.Domain.of_sizes([3] * 8), 3, random_state=0)
        rows = truth.sample(3000, random_state=1, backend="codes")
        plain, pulled = (
            fit(rows, traits=Traits(1, waves=0, pulls=pulls), validation=0.3)
            for pulls in ((), (3.0,))
        )
        assert pulled.validation < plain.validation

    def test_a_callback_stops_it(self):
        found = fit(callback=lambda step, pmf: step.iteration == 3)
        assert (found.status, found.n_iter) == (jp.Status.STOPPED, 3)

    def test_a_solution_says_what_it_is(self):
        found = fit(traits=Traits(2, waves=5, ridge=0.5))
        assert str(found.start) == "traits: 2 traits, 5 waves of pace 0.7, ridge 0.5"
        assert found.settings.traits.count == 2


def test_replicates_vary_as_samples_do():
    """How far answers of replicates are from each other, beside fits to other samples."""

    def fitted(seed):
        rows = jp.Codes(DOMAIN, survey(500, seed))
        return fit(rows, traits=Traits(1, waves=0), rank=16, max_iter=15)

    sure = fitted(0).uncertainty(n=30, random_state=0)
    own = sure.marginal(["item 0"])["se"].to_numpy()
    others = [fitted(seed).pmf.marginal(["item 0"]).table() for seed in range(1, 20)]
    assert np.isclose(np.median(own / np.std(others, axis=0)), 1.0, atol=0.4)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"traits": 8}, "8 traits are more than the 7 variables"),
            ({"traits": 0}, "the number of traits must be a whole number of at least 1"),
            ({"rank": 10**9}, "1,000,000,000 points over 35 levels would take about"),
            ({"rank": "auto"}, "traits need a rank, the number of points"),
            ({"search": jp.Search(start="rows")}, "leave the start out"),
            ({"rows": iter([ROWS]), "domain": DOMAIN}, "rows that can be read again"),
        ],
    )
    def test_it_is_refused_with_a_sentence(self, options, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit(**options)

    def test_smoothing_is_of_free_components(self):
        with pytest.raises(jp.JointPMFError, match="traits have a ridge"):
            jp.Likelihood(smoothing=0.1, traits=2)

    @pytest.mark.parametrize("setting", [{"pace": -1.0}, {"ridge": -1.0}, {"pulls": (-1.0,)}])
    def test_no_setting_is_negative(self, setting):
        with pytest.raises(jp.JointPMFError, match=next(iter(setting)).rstrip("s")):
            Traits(2, **setting)

    def test_a_variable_with_one_level_and_equal_values(self):
        domain = jp.Domain(
            [
                jp.Variable("planet", ("earth",)),
                jp.Variable("same", ("a", "b", "c"), values=(1.0, 1.0, 1.0)),
                *DOMAIN,
            ]
        )
        generator = np.random.default_rng(0)
        same = generator.integers(0, 3, ROWS.n_rows)
        array = np.column_stack([np.zeros(ROWS.n_rows, int), same, ROWS.array])
        assert feasible(fit(jp.Codes(domain, array)).pmf)

    def test_rows_that_are_all_alike(self):
        found = fit(jp.Codes(DOMAIN, np.tile([[0, 1, 2, 3, 4, 0, 1]], (100, 1))))
        assert feasible(found.pmf)


class TestSearch:
    FEW = Kinds(ranks=(1, 2), traits=Traits(2, waves=4), points=(16, 32))

    def fitted(self, **options):
        rows = jp.Codes(DOMAIN, survey(5000))
        few = {"kinds": self.FEW, "n_average": 2, "max_iter": 12}
        return fit_rows(rows, random_state=0, **few, **options)

    def test_traits_are_chosen_where_they_predict_better(self):
        found = self.fitted()
        assert found.start.kind == "traits"
        assert found.settings.traits is not None
        assert len(found.trait_models) == found.n_averaged == 2
        assert any("points" in restart.start for restart in found.restarts)

    def test_the_same_seed_gives_the_same_bits(self):
        one, other = (fit(validation=0.2, max_iter=5) for _ in range(2))
        assert (one.pmf.weights == other.pmf.weights).all()

    def test_free_components_are_chosen_where_they_do(self):
        # an exclusive or of two bits, and noise: nothing moves with anything by itself
        generator = np.random.default_rng(0)
        bits = generator.integers(0, 2, (6000, 4))
        bits[:, 2] = bits[:, 0] ^ bits[:, 1]
        kinds = Kinds(ranks=(1, 2, 4), traits=Traits(2, waves=4), points=(32,))
        found = fit_rows(bits, kinds=kinds, random_state=0, max_iter=60)
        assert found.trait_models == ()

    def test_free_components_take_part_where_they_help(self):
        # two traits, and two items that only classes explain
        generator = np.random.default_rng(0)
        bits = generator.integers(0, 2, (5000, 2))
        own = np.column_stack([bits, bits[:, 0] ^ bits[:, 1]])
        domain = jp.Domain([*DOMAIN, *jp.Domain.of_sizes([2] * 3, names=["a", "b", "c"])])
        rows = jp.Codes(domain, np.hstack([survey(5000), own]))
        kinds = Kinds(ranks=(1, 4, 8), traits=Traits(2, waves=0), points=(32,))
        found = fit_rows(rows, kinds=kinds, n_average=2, random_state=0, max_iter=15)
        n_points = sum(len(model.space.points) for model in found.trait_models)
        assert 0 < n_points < found.pmf.rank

    def test_small_tables_stay_with_free_components(self):
        found = fit_rows(ROWS, kinds=self.FEW, random_state=0, max_iter=5)
        assert not any("points" in restart.start for restart in found.restarts)


class TestClimb:
    """The search over settings, with costs that are known."""

    def climbed(self, cost, first=None, points=(64,)):
        tried = []
        first = first or TraitKind(32, Traits(2, waves=8, ridge=0.3))

        def try_it(kind):
            if kind not in tried:
                tried.append(kind)
                yield kind

        climb = TraitClimb(jp.Domain.of_sizes([2] * 20), try_it, cost, 1e-9)

        def run():
            best = yield from climb.candidates(first, points)
            result.append(best)

        result = []
        list(run())
        return result[0], tried

    def test_it_finds_the_best_of_each_setting(self):
        def cost(kind):
            own = kind.traits
            return abs(own.count - 8) + abs(np.log(own.ridge / 2.7)) + abs(own.waves - 32)

        best, _ = self.climbed(cost)
        assert (best.traits.count, best.traits.waves) == (8, 32)
        assert np.isclose(best.traits.ridge, 2.7)

    def test_more_points_are_kept_only_where_they_help(self):
        fewer, _ = self.climbed(lambda kind: 1 + kind.rank)
        more, _ = self.climbed(lambda kind: 1 / kind.rank)
        assert (fewer.rank, more.rank) == (32, 64)

    def test_no_kind_has_more_traits_than_variables(self):
        _, tried = self.climbed(lambda kind: -kind.traits.count)
        assert max(kind.traits.count for kind in tried) == 16

    def test_the_best_is_fitted_to_the_end(self):
        best, tried = self.climbed(lambda kind: 1.0)
        assert best.is_final
        assert tried[-1] == best
