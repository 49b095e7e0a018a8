"""Traits as people read them: where rows lie, and what moves with them."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointpmf as jp
from support.traits import MIXED, planted, pmf_of, turned


def rows_of(pmf, n=300, missing=0.2):
    """Return rows of codes, some of whose cells are missing; the last row has none at all."""
    rows = pmf.sample(n, random_state=1, backend="codes")
    hidden = np.random.default_rng(2).random(rows.shape) < missing
    hidden[-1] = True
    return jp.Codes(pmf.domain, np.where(hidden, jp.MISSING, rows))


def matrix(frame, *but):
    return frame.drop(*but).to_numpy()


class TestPositions:
    def test_they_are_posterior_means_and_spreads(self):
        model = planted()
        pmf = pmf_of(model)
        codes = rows_of(pmf)
        found, where = pmf.traits(codes), pmf.trait_axes.positions
        posterior = pmf.responsibilities(codes)
        for t in range(2):
            means = posterior @ where[:, t]
            spreads = np.sqrt(posterior @ where[:, t] ** 2 - means**2)
            np.testing.assert_allclose(found[f"trait {t}"], means, atol=1e-9)
            np.testing.assert_allclose(found[f"trait {t} sd"], spreads, atol=1e-9)

    def test_a_row_without_cells_lies_anywhere(self):
        pmf = pmf_of(planted(), weights=np.random.default_rng(0).random(128))
        found = pmf.traits(rows_of(pmf))[-1].to_numpy()[0]
        np.testing.assert_allclose(found, [0, 1, 0, 1], atol=1e-9)

    def test_more_cells_say_more(self):
        domain = jp.Domain.of_sizes([2] * 30)
        pmf = pmf_of(planted(domain, 512, 1))
        rows = pmf.sample(200, random_state=0, backend="codes")
        few = np.where(np.arange(30) < 5, rows, jp.MISSING)
        spreads = [pmf.traits(jp.Codes(domain, some))["trait 0 sd"].mean() for some in (few, rows)]
        assert spreads[1] < 0.7 * spreads[0] < 0.7

    def test_planted_positions_are_found(self):
        domain = jp.Domain.of_sizes([2] * 40)
        model = planted(domain, 256, 2, size=2.0)
        pmf = pmf_of(model)
        components = np.random.default_rng(0).integers(256, size=200)
        draws = np.random.default_rng(1).random((200, 40))
        rows = (draws < model.factors[1::2, components].T).astype(int)
        found = matrix(pmf.traits(rows), "trait 0 sd", "trait 1 sd")
        truth = pmf.trait_axes.positions[components]
        assert np.corrcoef(found[:, 0], truth[:, 0])[0, 1] > 0.95
        assert np.corrcoef(found[:, 1], truth[:, 1])[0, 1] > 0.95

    def test_rows_in_blocks_are_the_same(self, monkeypatch):
        pmf = pmf_of(planted())
        codes = rows_of(pmf)
        whole = pmf.traits(codes)
        monkeypatch.setattr("jointpmf.trait_axes._BLOCK", 128 * 7)
        np.testing.assert_allclose(pmf.traits(codes), whole, atol=1e-12)

    def test_an_impossible_row_is_answered_without_evidence(self, caplog):
        model = planted()
        pmf = pmf_of(model)
        factors = [*pmf.factors]
        factors[2] = np.array([np.ones(128), np.zeros(128)])
        sure = jp.JointPMF(MIXED, pmf.weights, factors, trait_models=[model])
        with caplog.at_level(logging.WARNING, "jointpmf"):
            found = sure.traits(jp.Codes(MIXED, [[0, 0, 0, 0, 0], [0, 0, 1, 0, 0]]))
        assert "1 rows have probability zero, row 1 first" in caplog.text
        np.testing.assert_allclose(found[1].to_numpy()[0], [0, 1, 0, 1], atol=1e-9)

    @pytest.mark.parametrize(
        ("backend", "kind"),
        [("polars", pl.DataFrame), ("pandas", pd.DataFrame), ("pyarrow", pa.Table)],
    )
    def test_frames_are_of_the_users_kind(self, backend, kind):
        pmf = pmf_of(planted())
        assert isinstance(pmf.traits(rows_of(pmf), backend), kind)
        assert isinstance(pmf.loadings(backend), kind)

    def test_another_backend_is_refused(self):
        pmf = pmf_of(planted())
        with pytest.raises(jp.JointPMFError, match="backend"):
            pmf.traits(rows_of(pmf), backend="excel")

    def test_tables_with_levels_are_read(self):
        pmf = pmf_of(planted())
        table = pmf.sample(20, random_state=0)
        table = table.with_columns(party=pl.lit(None, pl.String))
        assert pmf.traits(table).shape == (20, 4)


class TestAxes:
    @pytest.mark.parametrize("n_waves", [0, 7])
    def test_the_population_has_uncorrelated_traits(self, n_waves):
        weights = np.random.default_rng(0).random(128)
        axes = pmf_of(planted(n_waves=n_waves), weights=weights).trait_axes
        own = weights / weights.sum()
        np.testing.assert_allclose(own @ axes.positions, 0, atol=1e-12)
        covariance = (axes.positions * own[:, None]).T @ axes.positions
        np.testing.assert_allclose(covariance, np.eye(2), atol=1e-12)
        assert axes.shares[0] > axes.shares[1]
        assert axes.shares.sum() == pytest.approx(1)

    def test_how_the_space_is_turned_and_stretched_does_not_matter(self):
        model = planted(n_traits=3)
        other = turned(model, np.random.default_rng(5).normal(size=(3, 3)))
        np.testing.assert_allclose(model.factors, other.factors)
        one, two = pmf_of(model), pmf_of(other)
        codes = rows_of(one)
        np.testing.assert_allclose(one.traits(codes), two.traits(codes), atol=1e-8)
        labels = ("variable", "level")
        found = [matrix(pmf.loadings(), *labels) for pmf in (one, two)]
        np.testing.assert_allclose(*found, atol=1e-8)

    def test_the_largest_loading_on_a_trait_is_positive(self):
        for seed in range(5):
            ordered = pmf_of(planted(seed=seed)).loadings().filter(pl.col("variable") != "party")
            found = matrix(ordered, "variable", "level", "explained")
            assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()
        parties = jp.Domain([jp.Variable(name, ("a", "b", "c")) for name in "xyz"])
        found = matrix(pmf_of(planted(parties)).loadings(), "variable", "level", "explained")
        assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()

    def test_a_trait_along_which_no_point_varies_is_left_out(self):
        model = planted(n_traits=2)
        points = model.space.points * [1.0, 0.0]
        flat = replace(model, space=model.space._replace(points=points))
        assert pmf_of(flat).loadings().columns == ["variable", "level", "trait 0", "explained"]

    def test_all_rows_at_one_point_have_no_traits(self):
        with pytest.raises(jp.JointPMFError, match="all rows lie at one point"):
            pmf_of(planted(n_points=1)).loadings()

    def test_points_without_weight_have_no_traits(self):
        pmf = pmf_of(planted(), weights=np.repeat([0.0, 1.0], [128, 2]), n_free=2)
        with pytest.raises(jp.JointPMFError, match="no row lies at the points"):
            pmf.loadings()

    def test_a_flat_model_has_loadings_of_zero(self):
        model = planted()
        flat = replace(model, coefficients=np.zeros_like(model.coefficients))
        found = pmf_of(flat).loadings()
        assert (matrix(found, "variable", "level", "explained") == 0).all()
        assert (found["explained"] == 1).all()


class TestLoadings:
    def test_ordered_variables_have_one_line_and_others_one_per_level(self):
        found = pmf_of(planted()).loadings()
        lines = list(zip(found["variable"], found["level"], strict=True))
        party = [("party", level) for level in ("left", "middle", "right")]
        assert lines == [("mood", None), *party, ("member", "true"), ("age", None)]
        assert (found["explained"] > 1 - 1e-9).all()

    def test_a_binary_variable_has_the_slope_of_its_log_odds(self):
        """What item response theory calls the discrimination."""
        domain = jp.Domain.of_sizes([2] * 4)
        model = planted(domain, 256, 1)
        found = pmf_of(model).loadings()["trait 0"].to_numpy()
        points = model.space.points[:, 0]
        slopes = model.coefficients[:, 0] * points.std()
        np.testing.assert_allclose(np.abs(found), np.abs(slopes), rtol=1e-9)

    def test_an_ordered_variable_moves_its_mean_as_its_line_says(self):
        model = planted(n_points=512, size=0.01)
        pmf = pmf_of(model)
        loading = matrix(pmf.loadings()[:1], "variable", "level", "explained")[0]
        values = model.scores.of_variable(0)[:, 0]
        means = values @ pmf.factors[0]
        share = pmf.marginal(["mood"]).table()
        variance = share @ values**2 - (share @ values) ** 2
        slopes = pmf.weights @ ((means - pmf.weights @ means)[:, None] * pmf.trait_axes.positions)
        np.testing.assert_allclose(slopes, loading * variance, atol=1e-4)

    def test_a_level_of_three_is_held_against_the_others(self):
        model = planted(n_points=512, size=0.01)
        pmf = pmf_of(model)
        found = pmf.loadings()
        shares = pmf.factors[1]
        for i, level in enumerate(("left", "middle", "right")):
            line = found.filter(variable="party", level=level)
            odds = np.log(shares[i] / (1 - shares[i]))
            slopes = pmf.weights @ (odds[:, None] * pmf.trait_axes.positions)
            loading = matrix(line, "variable", "level", "explained")[0]
            np.testing.assert_allclose(loading, slopes, atol=1e-4)

    def test_with_waves_they_are_regressions_over_the_population(self):
        model = planted(n_waves=9, n_points=256, seed=3)
        weights = np.random.default_rng(1).random(256)
        pmf = pmf_of(model, weights=weights)
        found = pmf.loadings().filter(variable="member")
        score = model.scores.offsets[2]
        design = np.column_stack([np.ones(256), pmf.trait_axes.positions])
        root = np.sqrt(weights)
        tilt = model.tilts[score]
        slopes = np.linalg.lstsq(design * root[:, None], tilt * root, rcond=None)[0]
        np.testing.assert_allclose(
            matrix(found, "variable", "level", "explained")[0], slopes[1:], atol=1e-9
        )
        own = weights / weights.sum()
        rest = own @ (tilt - design @ slopes) ** 2 / (own @ (tilt - own @ tilt) ** 2)
        assert found["explained"][0] == pytest.approx(1 - rest)
        assert 0 < found["explained"][0] < 1


class TestWhoseTraits:
    def test_free_components_have_none(self):
        pmf = jp.random_pmf(MIXED, 3, 0)
        for ask in (pmf.loadings, lambda: pmf.traits(rows_of(pmf))):
            with pytest.raises(jp.JointPMFError, match="components of this model are free"):
                ask()

    def test_an_average_has_those_of_its_first_member(self):
        first, second = pmf_of(planted(seed=0)), pmf_of(planted(seed=1, n_points=64))
        both = jp.average([first, second])
        codes = rows_of(first)
        assert len(both.trait_models) == 2
        found = [matrix(pmf.loadings(), "variable", "level") for pmf in (both, first)]
        np.testing.assert_allclose(*found, atol=1e-12)
        np.testing.assert_allclose(both.traits(codes), first.traits(codes), atol=1e-12)

    def test_in_an_average_components_without_traits_come_last(self):
        free, placed = jp.random_pmf(MIXED, 3, 0), pmf_of(planted(n_points=16), n_free=2)
        both = jp.average([free, placed])
        assert both.rank == 21
        assert [len(model.space.points) for model in both.trait_models] == [16]
        np.testing.assert_array_equal(both.factors[0][:, :16], placed.factors[0][:, :16])
        rows = rows_of(free)
        mean = (free.probability(rows) + placed.probability(rows)) / 2
        np.testing.assert_allclose(both.probability(rows), mean)

    def test_columns_that_moved_count_as_they_are_now(self):
        model = planted()
        pmf = pmf_of(model)
        moved = [0.9 * factor + 0.1 / len(factor) for factor in pmf.factors]
        other = jp.JointPMF(MIXED, pmf.weights, moved, trait_models=[model])
        codes = rows_of(pmf)
        found = other.traits(codes)["trait 0"]
        means = other.responsibilities(codes) @ other.trait_axes.positions[:, 0]
        np.testing.assert_allclose(found, means, atol=1e-9)

    def test_a_solution_has_those_of_its_model(self):
        pmf = pmf_of(planted())
        solution = jp.Solution(pmf, jp.Status.CONVERGED, 1.0, [])
        codes = rows_of(pmf)
        assert solution.trait_models == pmf.trait_models
        assert solution.loadings().equals(pmf.loadings())
        assert solution.traits(codes).equals(pmf.traits(codes))
        assert isinstance(solution.traits(codes, backend="pandas"), pd.DataFrame)


class TestWhatAModelKeeps:
    def test_an_order_of_components_keeps_them_beside_their_points(self):
        model = planted(n_points=16)
        pmf = pmf_of(model, weights=np.random.default_rng(0).random(16))
        there = pmf.reordered()
        (moved,) = there.trait_models
        np.testing.assert_allclose(np.vstack(there.factors), moved.factors)
        codes = rows_of(pmf)
        np.testing.assert_allclose(there.traits(codes), pmf.traits(codes), atol=1e-9)

    def test_members_may_change_places(self):
        models = planted(n_points=4), planted(n_points=3, seed=1)
        pmf = pmf_of(*models, n_free=2)
        there = pmf.reordered([6, 5, 4, 0, 2, 1, 3, 8, 7])
        assert [len(model.space.points) for model in there.trait_models] == [3, 4]
        for k, own in enumerate((slice(0, 3), slice(3, 7))):
            columns = np.vstack(there.factors)[:, own]
            np.testing.assert_allclose(columns, there.trait_models[k].factors)

    @pytest.mark.parametrize("order", [[4, 0, 1, 2, 3], [0, 1, 4, 2, 3]])
    def test_members_that_are_torn_apart_are_left_out(self, order):
        pmf = pmf_of(planted(n_points=4), n_free=1)
        assert pmf.reordered(order).trait_models == ()

    def test_marginals_and_conditions_have_other_components(self):
        pmf = pmf_of(planted(n_points=4))
        assert pmf.marginal(["mood"]).trait_models == ()
        assert pmf.condition({"mood": 1}).trait_models == ()

    def test_a_model_of_other_variables_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="of other variables"):
            jp.JointPMF(jp.Domain.of_sizes([2]), [1.0], [np.ones((2, 1)) / 2], None, [planted()])

    def test_more_points_than_components_are_refused(self):
        with pytest.raises(jp.JointPMFError, match="128 points for 1 components"):
            jp.JointPMF(MIXED, [1.0], jp.random_pmf(MIXED, 1, 0).factors, None, [planted()])

    @pytest.mark.parametrize("given", ["abc", 3, [None]])
    def test_what_is_no_trait_model_is_refused(self, given):
        with pytest.raises(jp.JointPMFError, match="must be TraitModels"):
            jp.JointPMF(MIXED, [1.0], jp.random_pmf(MIXED, 1, 0).factors, None, given)
