"""The range of an answer over the members of an average, beside brute force over joint tables."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.members import all_members
from support import traits
from support.planted import planted

DOMAIN = jp.Domain(
    [
        jp.Variable("vote", ("no", "yes")),
        jp.Variable("age", ("18-29", "30-59", "60+"), (24.0, 45.0, 70.0)),
        jp.Variable("sex", ("f", "m")),
    ]
)
SOLUTION = jp.fit_rows(jp.Codes(DOMAIN, [[0, 1, 1], [1, 2, 0]]), 1, random_state=0)


@cache
def models():
    """Return three models of rank 2."""
    found = [planted(DOMAIN.sizes, 2, seed, concentration=0.7) for seed in range(3)]
    return [jp.JointPMF(DOMAIN, pmf.weights, pmf.factors) for pmf in found]


def averaged(pmfs=None):
    pmfs = models() if pmfs is None else pmfs
    return replace(SOLUTION, pmf=jp.average(pmfs), n_averaged=len(pmfs))


def check(frame, of_table):
    """Compare a frame with a function of a joint table, computed of each member one by one."""
    tables = [pmf.table() for pmf in models()]
    values = np.array([np.ravel(of_table(table)) for table in tables])
    whole = np.ravel(of_table(sum(tables) / 3))
    assert frame.columns[-3:] == ["average", "lowest", "highest"]
    np.testing.assert_allclose(frame["average"], whole, atol=1e-12)
    np.testing.assert_allclose(frame["lowest"], values.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(frame["highest"], values.max(axis=0), atol=1e-12)
    assert (frame["lowest"] < frame["highest"]).all()


class TestBesideBruteForce:
    def test_a_probability(self):
        frame = averaged().member_range({"vote": "yes", "age": ["18-29", "60+"]})
        check(frame, lambda table: table[1][[0, 2]].sum())
        assert frame["quantity"].to_list() == ["P(vote = yes, age = 18-29 or 60+)"]

    def test_a_conditional_probability(self):
        frame = averaged().member_range({"vote": "yes"}, {"age": ["18-29", "60+"], "sex": "m"})
        given = [0, 2]
        check(frame, lambda table: table[1, given, 1].sum() / table[:, given, 1].sum())
        assert frame["quantity"].to_list() == ["P(vote = yes | age = 18-29 or 60+, sex = m)"]

    def test_an_expected_value(self):
        frame = averaged().member_range("age", given={"vote": "no"})
        values = np.array([24.0, 45.0, 70.0])
        check(frame, lambda table: table[0].sum(axis=1) @ values / table[0].sum())
        assert frame["quantity"].to_list() == ["E(age | vote = no)"]

    def test_the_distribution_of_a_variable(self):
        frame = averaged().member_range(["age"])
        check(frame, lambda table: table.sum(axis=(0, 2)))
        assert frame["age"].to_list() == list(DOMAIN["age"].levels)

    def test_a_joint_conditional_distribution(self):
        frame = averaged().member_range(["sex", "vote"], {"age": "30-59"})
        check(frame, lambda table: table[:, 1].T / table[:, 1].sum())
        assert frame.columns == ["sex", "vote", "average", "lowest", "highest"]

    def test_a_function_and_a_function_given_evidence(self):
        def first(pmf):
            return pmf.marginal(["vote"]).table()[0]

        solution = averaged()
        check(solution.member_range(first), lambda table: table[0].sum())
        frame = solution.member_range(first, {"sex": "f"})
        check(frame, lambda table: table[0, :, 0].sum() / table[:, :, 0].sum())

    def test_a_function_that_returns_a_mapping(self):
        frame = averaged().member_range(lambda pmf: {"women": pmf.marginal(["sex"]).table()[0]})
        check(frame, lambda table: table[:, :, 0].sum())
        assert frame["quantity"].to_list() == ["women"]

    def test_other_backends(self):
        frame = averaged().member_range(["vote"], backend="pandas")
        assert list(frame.columns) == ["vote", "average", "lowest", "highest"]


def test_the_average_of_probabilities_is_within_the_range_and_the_range_within_the_bounds():
    truth = planted([2, 3, 2], 2, seed=1)
    marginals = truth.marginals(order=2)
    fitted = jp.fit_marginals(marginals, rank=3, random_state=0)
    assert fitted.n_averaged > 1
    query, given = {"x0": 0, "x2": 1}, {"x1": 0}
    ((_, average, lowest, highest),) = fitted.member_range(query, given).rows()
    low, high = jp.bounds(marginals, query, given)
    slack = 5e-4 / truth.marginal(["x1"]).table()[0]  # a fit meets tables to 1e-4, not exactly
    assert low - slack <= lowest <= average <= highest <= high + slack
    assert lowest < highest


def test_the_mean_of_members_is_the_average():
    members = all_members(averaged().pmf, 3)
    assert len(members) == 3
    for member, model in zip(members, models(), strict=True):
        np.testing.assert_allclose(member.table(), model.table(), atol=1e-12)


class TestMembersWithTraits:
    def pmfs(self):
        domain = jp.Domain.of_sizes([2, 3, 2])
        space = traits.pmf_of(traits.planted(domain, n_points=8))
        return [space, *(planted([2, 3, 2], 2, seed) for seed in range(2))]

    def test_they_are_members_whatever_their_share(self):
        pmfs = self.pmfs()
        solution = replace(SOLUTION, pmf=jp.average(pmfs, [0.5, 0.25, 0.25]), n_averaged=3)
        answers = [pmf.marginal(["x0"]).table() for pmf in pmfs]
        frame = solution.member_range(["x0"])
        np.testing.assert_allclose(frame["lowest"], np.min(answers, axis=0), atol=1e-12)
        np.testing.assert_allclose(frame["highest"], np.max(answers, axis=0), atol=1e-12)

    def test_of_an_average_of_traits_alone(self):
        space = self.pmfs()[0]
        solution = replace(SOLUTION, pmf=jp.average([space, space]), n_averaged=2)
        frame = solution.member_range(["x0"])
        np.testing.assert_allclose(frame["lowest"], frame["highest"], atol=1e-12)

    def test_free_components_of_a_number_of_fits_that_is_not_known(self):
        space, *free = self.pmfs()
        pmf = jp.average([space, space, *free], [0.4, 0.4, 0.1, 0.1])
        with pytest.raises(jp.JointPMFError, match="the 2 members of this average cannot be told"):
            all_members(pmf, 2)


class TestWhatHasNoRange:
    def test_a_single_fit(self):
        with pytest.raises(jp.JointPMFError, match=r"single fit.*uncertainty\(\).*bounds\(\)"):
            SOLUTION.member_range({"vote": "yes"})

    def test_members_of_unequal_rank(self):
        pmfs = [*models(), jp.random_pmf(DOMAIN, 3, random_state=0)]
        with pytest.raises(jp.JointPMFError, match="the 4 members of this average cannot be told"):
            averaged(pmfs).member_range({"vote": "yes"})

    @pytest.mark.parametrize(
        ("query", "given"),
        [
            (["component"], None),
            (["vote"], {"component": 0}),
            (lambda pmf: pmf.marginal(["vote"]), {"component": 0}),
        ],
    )
    def test_the_component(self, query, given):
        with pytest.raises(jp.JointPMFError, match="has components of its own"):
            averaged().member_range(query, given)

    def test_numbers_of_each_component(self):
        with pytest.raises(jp.JointPMFError, match="another shape for member 0"):
            averaged().member_range(lambda pmf: pmf.weights)

    def test_evidence_that_has_probability_zero_in_a_member(self):
        factors = [np.eye(2), *models()[0].factors[1:]]
        never = jp.JointPMF(DOMAIN, [1.0, 0.0], factors)
        solution = averaged([*models(), never])
        with pytest.raises(jp.JointPMFError, match="failed for member 3: the evidence"):
            solution.member_range({"sex": "f"}, {"vote": "yes"})

    @pytest.mark.parametrize(
        ("query", "given", "message"),
        [
            ({}, None, "the query is empty"),
            ([], None, "no variable was asked for"),
            (3, None, "give a list of names"),
            ("vote", None, "'vote'"),
            ({"nobody": 1}, None, "no variable 'nobody'"),
            ({"vote": "yes"}, {"vote": "no"}, "'vote' is in the query and in given"),
            ({"vote": "yes"}, "age", "given must be a mapping"),
        ],
    )
    def test_a_query_that_means_nothing(self, query, given, message):
        with pytest.raises(jp.JointPMFError, match=message):
            averaged().member_range(query, given)

    def test_a_variable_that_is_called_as_a_column(self):
        domain = jp.Domain.of_sizes([2, 2], names=["lowest", "x"])
        pmfs = [jp.random_pmf(domain, 2, random_state=seed) for seed in range(2)]
        with pytest.raises(jp.JointPMFError, match="a variable is called 'lowest'"):
            averaged(pmfs).member_range(["lowest"])
