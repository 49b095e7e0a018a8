"""Spaces of traits, the scores that move in them, and the columns that follow."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.traits import Scores, Space, TraitModel, check_n_traits, is_ordered
from support.feasibility import feasible

DOMAIN = jp.Domain(
    [
        jp.Variable("stars", (1, 2, 3, 4, 5)),
        jp.Variable("colour", ("red", "green", "blue")),
        jp.Variable("seen", ("no", "yes")),
        jp.Variable("planet", ("earth",)),
        jp.Variable("money", ("low", "high", "top"), values=(1.0, 5.0, 30.0)),
    ]
)


def model(n_points=16, n_traits=2, n_waves=3, seed=0):
    """Return a model with random coefficients."""
    generator = np.random.default_rng(seed)
    marginal = np.concatenate([generator.dirichlet(np.ones(v.size)) for v in DOMAIN])
    scores = Scores.of(DOMAIN, marginal)
    space = Space.drawn(n_points, n_traits, n_waves, generator=generator)
    coefficients = generator.normal(size=(int(scores.offsets[-1]), n_traits + n_waves))
    return TraitModel(scores, space, np.log(marginal), coefficients)


class TestSpace:
    def test_points_fill_a_standard_normal(self):
        points = Space.drawn(1024, 3).points
        assert np.allclose(points.mean(axis=0), 0, atol=0.02)
        assert np.allclose(np.cov(points.T), np.eye(3), atol=0.05)

    def test_the_same_generator_gives_the_same_space(self):
        one, other = (Space.drawn(64, 2, 4, generator=np.random.default_rng(3)) for _ in range(2))
        assert all((a == b).all() for a, b in zip(one, other, strict=True))

    def test_the_number_of_points_may_be_any(self):
        assert Space.drawn(100, 2).points.shape == (100, 2)

    def test_features_are_coordinates_then_waves(self):
        space = Space.drawn(8, 2, 5)
        waves = np.cos(space.points @ space.directions + space.phases) * np.sqrt(2 / 5)
        assert np.allclose(space.features, np.hstack([space.points, waves]))
        assert (Space.drawn(8, 2).features == Space.drawn(8, 2).points).all()

    @pytest.mark.parametrize(("n_points", "n_traits"), [(0, 2), (8, 0), (2.5, 2)])
    def test_a_space_needs_points_and_traits(self, n_points, n_traits):
        with pytest.raises(jp.JointPMFError, match="must be a whole number of at least 1"):
            Space.drawn(n_points, n_traits)


class TestScores:
    def test_ordered_values_are_standardised(self):
        share = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
        marginal = np.concatenate([share, np.full(3, 1 / 3), [0.5, 0.5], [1.0], np.full(3, 1 / 3)])
        own = Scores.of(DOMAIN, marginal).all[0]
        assert np.allclose([share @ own[:, 0], share @ own[:, 0] ** 2], [0, 1])
        assert np.allclose(own[:, 1], own[:, 0] ** 2)

    def test_each_kind_of_variable_has_its_own(self):
        shapes = [own.shape for own in model().scores.all]
        assert shapes == [(5, 2), (3, 3), (2, 1), (1, 0), (3, 2)]

    def test_an_answer_that_all_rows_give_has_a_scale(self):
        marginal = np.concatenate([[0, 0, 1.0, 0, 0], [1, 0, 0], [1, 0], [1], [1.0, 0, 0]])
        assert all(np.isfinite(own).all() for own in Scores.of(DOMAIN, marginal).all)

    def test_equal_values_have_no_order(self):
        assert not is_ordered(jp.Variable("x", ("a", "b", "c"), values=(1.0, 1.0, 1.0)))
        assert is_ordered(DOMAIN["money"])
        assert not is_ordered(DOMAIN["colour"])


class TestColumns:
    def test_they_are_the_softmax_of_the_log_odds(self):
        found = model()
        for n, (first, end) in enumerate(zip(DOMAIN.offsets, DOMAIN.offsets[1:], strict=False)):
            for k, z in enumerate(found.space.points):
                waves = np.cos(z @ found.space.directions + found.space.phases) * np.sqrt(2 / 3)
                own = found.coefficients[slice(*found.scores.offsets[n : n + 2])]
                tilts = own @ np.concatenate([z, waves])
                odds = np.exp(found.intercepts[first:end] + found.scores.all[n] @ tilts)
                assert np.allclose(found.factors[first:end, k], odds / odds.sum())
                assert np.isclose(found.log_totals[n, k], np.log(odds.sum()))

    def test_the_model_is_feasible_whatever_the_coefficients(self):
        found = model()
        large = TraitModel(found.scores, found.space, found.intercepts, 1e3 * found.coefficients)
        assert feasible(jp.JointPMF.at(large.point(), DOMAIN))

    def test_some_points_have_the_same_columns(self):
        found, which = model(), np.array([3, 5])
        assert np.allclose(found.taken(which).factors, found.factors[:, which])

    def test_a_point_tells_what_it_was_computed_from(self):
        found = model()
        again = model(seed=0).of_point(found.point())
        assert (again.factors == found.factors).all()


def test_more_traits_than_variables_are_refused():
    with pytest.raises(jp.JointPMFError, match="6 traits are more than the 5 variables"):
        check_n_traits(6, DOMAIN)
