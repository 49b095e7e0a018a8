"""Components in another order, with names, given and asked for: against the explicit joint."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from support import oracle

NAMES = ("dogs", "cats", "both", "neither", "birds")


@st.composite
def pmfs(draw):
    """Draw a model, with or without names of its components, some of which may weigh nothing."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    domain = oracle.random_domain(generator, draw(st.integers(1, 4)))
    pmf = jp.random_pmf(domain, draw(st.integers(1, 5)), generator)
    weights = pmf.weights * (np.arange(pmf.rank) != draw(st.integers(1, 5)))
    names = draw(st.sampled_from([None, NAMES[: pmf.rank]]))
    return jp.JointPMF(domain, weights / weights.sum(), pmf.factors, names)


def explicit(pmf):
    """Return the joint of the component, as the first axis, and all variables."""
    parts = [
        weight * oracle.cp_tensor([1.0], [factor[:, [f]] for factor in pmf.factors])
        for f, weight in enumerate(pmf.weights)
    ]
    return np.array(parts)


def evidence_on_components(pmf, random):
    """Return evidence of some kind, and the likelihood of each component that it stands for."""
    chosen = random.sample(range(pmf.rank), random.randint(1, pmf.rank))
    likelihood = np.isin(np.arange(pmf.rank), chosen).astype(float)
    kind = random.choice(["number", "numbers", "names", "likelihood"])
    if kind == "number":
        return chosen[0], np.eye(pmf.rank)[chosen[0]]
    if kind == "likelihood":
        likelihood = np.array([random.randint(0, 4) / 4 for _ in range(pmf.rank)])
        return likelihood, likelihood
    if kind == "names" and pmf.component_names is not None:
        return {pmf.component_names[f] for f in chosen}, likelihood
    return set(chosen), likelihood


class TestAsked:
    @settings(max_examples=40, deadline=None)
    @given(pmfs(), st.randoms(use_true_random=False))
    def test_the_component_is_an_axis_of_the_joint(self, pmf, random):
        names = ["component", *pmf.domain.names]
        asked = random.sample(names, random.randint(1, len(names)))
        found = pmf.marginal(asked)
        expected = oracle.sum_onto(explicit(pmf), [names.index(name) for name in asked])
        np.testing.assert_allclose(found.table(), expected, atol=1e-14)
        assert found.domain.names == tuple(asked)
        assert found.component_names == pmf.component_names

    def test_its_levels_are_numbers_or_names(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2]), 3, 0)
        assert pmf.marginal(["component"]).domain["component"].levels == (0, 1, 2)
        named = pmf.reordered([0, 1, 2], names=NAMES[:3])
        assert named.marginal(["component"]).domain["component"].levels == NAMES[:3]
        frame = named.condition({"x0": 1}).marginal(["component"]).to_frame()
        assert frame["component"].to_list() == list(NAMES[:3])
        np.testing.assert_allclose(frame["probability"], named.responsibilities([[1]])[0])

    def test_a_table_of_a_component_given_an_answer_is_its_posterior(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 3, 0)
        found = pmf.condition({"x1": 2}).marginal(["component"]).table()
        np.testing.assert_allclose(found, pmf.responsibilities([[None, 2]])[0], atol=1e-14)

    def test_rows_have_a_component_too(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 3, 0)
        rows = [[0, 2], [1, None], [None, None]]
        posterior = pmf.responsibilities(rows)
        np.testing.assert_array_equal(pmf.predict_proba(rows, "component"), posterior)
        assert pmf.mode(rows, "component").tolist() == posterior.argmax(axis=1).tolist()
        named = pmf.reordered([0, 1, 2], names=NAMES[:3])
        assert named.mode(rows, "component").tolist() == [
            NAMES[f] for f in posterior.argmax(axis=1)
        ]

    def test_rows_drawn_with_their_component_have_the_joint_distribution(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        rows = sure.marginal(["component", "x0"]).sample(200, random_state=0)
        assert rows["component"].to_list() == rows["x0"].to_list()
        assert 0 < rows["component"].sum() < 200


class TestGiven:
    @settings(max_examples=60, deadline=None)
    @given(pmfs(), st.randoms(use_true_random=False), st.booleans())
    def test_conditioning_is_bayes_rule(self, pmf, random, gives_an_answer):
        evidence, likelihood = evidence_on_components(pmf, random)
        known = {"component": evidence}
        table = explicit(pmf) * likelihood.reshape([-1] + [1] * len(pmf.domain))
        if gives_an_answer:
            variable = pmf.domain.variables[-1]
            known[variable.name] = variable.levels[0]
            table = table[..., 0]
        table = table.sum(axis=0)
        if not table.sum():
            with pytest.raises(jp.JointPMFError, match="probability zero"):
                pmf.condition(known)
            return
        found = pmf.condition(known)
        np.testing.assert_allclose(found.table(), table / table.sum(), atol=1e-12)
        assert found.component_names == pmf.component_names
        assert found.rank == pmf.rank

    def test_draws_given_a_component_are_of_that_component(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([3, 3]), [0.2, 0.3, 0.5], [np.eye(3), np.eye(3)])
        rows = sure.sample(20, given={"component": 1}, random_state=0)
        assert rows.columns == ["x0", "x1"]
        assert set(rows.rows()) == {(1, 1)}

    def test_the_most_likely_row_given_a_component(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([3, 3]), [0.2, 0.3, 0.5], [np.eye(3), np.eye(3)])
        found = sure.most_likely(2, given={"component": {0, 1}})
        assert found.select("x0", "x1").rows() == [(1, 1), (0, 0)]
        np.testing.assert_allclose(found["probability"], [0.6, 0.4])


class TestOwnVariable:
    """A variable of the model that is called "component" is what the name means."""

    DOMAIN = jp.Domain(
        [jp.Variable("component", ("cpu", "disk", "fan")), jp.Variable("ok", (0, 1))]
    )
    PMF = jp.random_pmf(DOMAIN, 2, 0)

    def test_it_is_given_and_asked_for(self):
        table = oracle.joint(self.PMF)
        found = self.PMF.condition({"component": "disk"})
        np.testing.assert_allclose(found.table(), table[1] / table[1].sum(), atol=1e-14)
        asked = self.PMF.marginal(["component"])
        np.testing.assert_allclose(asked.table(), table.sum(axis=1), atol=1e-14)
        assert self.PMF.predict_proba([[None, 1]], "component").shape == (1, 3)
        assert self.PMF.mode([[None, 1]], "component")[0] in ("cpu", "disk", "fan")
        rows = self.PMF.sample(5, given={"component": "fan"}, random_state=0)
        assert rows["component"].to_list() == ["fan"] * 5

    def test_a_component_that_was_asked_for_is_still_the_component(self):
        asked = jp.random_pmf(jp.Domain.of_sizes([2]), 3, 0).marginal(["component", "x0"])
        with pytest.raises(jp.JointPMFError, match="'component' has no level 7") as caught:
            asked.condition({"component": 7})
        assert "latent class" not in str(caught.value)


class TestOrder:
    @settings(max_examples=30, deadline=None)
    @given(pmfs(), st.randoms(use_true_random=False))
    def test_the_joint_is_the_same_and_components_are_as_asked(self, pmf, random):
        order = random.sample(range(pmf.rank), pmf.rank)
        found = pmf.reordered(order)
        np.testing.assert_allclose(found.table(), pmf.table(), atol=1e-15)
        np.testing.assert_array_equal(explicit(found), explicit(pmf)[order])
        if pmf.component_names is not None:
            assert found.component_names == tuple(pmf.component_names[f] for f in order)

    def test_by_default_the_largest_is_first_and_ties_keep_their_order(self):
        weights = np.array([0.1, 0.3, 0.2, 0.3, 0.1])
        pmf = jp.JointPMF(jp.Domain.of_sizes([5]), weights, [np.eye(5)], NAMES)
        found = pmf.reordered()
        assert found.weights.tolist() == [0.3, 0.3, 0.2, 0.1, 0.1]
        assert found.component_names == ("cats", "neither", "both", "dogs", "birds")
        np.testing.assert_array_equal(found.factors[0], np.eye(5)[:, [1, 3, 2, 0, 4]])

    def test_new_names_are_in_the_new_order(self):
        pmf = jp.JointPMF(jp.Domain.of_sizes([2]), [0.4, 0.6], [np.eye(2)], ["old", "older"])
        found = pmf.reordered(names=["large", "small"])
        assert found.component_names == found.component_labels == ("large", "small")
        assert found.weights.tolist() == [0.6, 0.4]
        assert found.reordered(np.array([1, 0])).component_names == ("small", "large")

    def test_without_names_labels_are_numbers(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2]), 2, 0)
        assert pmf.component_names is None
        assert pmf.component_labels == ("0", "1")
        assert pmf.reordered().component_names is None
