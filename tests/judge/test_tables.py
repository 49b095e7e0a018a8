"""What tables can tell before any fit."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.judge.tables import check_tables

NAMES = ["age", "sex", "vote", "job"]
DOMAIN = jp.Domain.of_sizes([3, 3, 3, 3], NAMES)
TRUTH = jp.random_pmf(DOMAIN, 2, random_state=0)


def tables(*subsets, **more):
    return [jp.Marginal(s, TRUTH.marginal(s).table(), **more) for s in subsets]


def report(*marginals):
    names = [n for n in NAMES if any(n in m.names or n in m.where for m in marginals)]
    return check_tables(jp.MarginalSet(DOMAIN.project(names), marginals))


def test_groups_that_no_table_connects():
    found = report(*tables(("age", "sex"), ("vote", "job")))
    assert found.groups == (("age", "sex"), ("vote", "job"))
    assert len(found.unseen_pairs) == 4
    assert found.wanted == (("age", "vote"),)
    text = str(found)
    assert "how these groups of variables depend on each other: age, sex; vote, job" in text
    assert "a table of age by vote, which connects age, sex with vote, job" in text
    assert "What disagrees:\n  nothing" in text


def test_a_chain_of_pairs_asks_for_triples():
    found = report(*tables(("age", "sex"), ("sex", "vote"), ("vote", "job")))
    assert found.groups == (tuple(NAMES),)
    assert found.unseen_pairs == (("age", "vote"), ("age", "job"), ("sex", "job"))
    assert all(len(names) == 3 for names in found.wanted)
    shown = {frozenset(p) for names in found.wanted for p in [names[:2], names[1:], names[::2]]}
    assert {frozenset(pair) for pair in found.unseen_pairs} <= shown
    assert (found.largest_rank, found.is_largest) == (1, True)
    assert "pairs that no table shows together: age, vote; age, job; sex, job" in str(found)


def test_all_triples_need_nothing_more():
    found = check_tables(TRUTH.marginals(order=3))
    assert (found.disagreements, found.unseen_pairs, found.wanted) == ((), (), ())
    assert found.largest_rank > 2
    assert "nothing more is needed" in str(found)


def test_a_table_of_all_variables_leaves_nothing_open():
    found = report(*tables(("age", "sex", "vote")))
    assert (found.largest_rank, found.wanted) == (None, ())
    assert str(found).startswith("1 table of 3 variables:")
    assert "What is not determined:\n  nothing" in str(found)


def test_what_disagrees():
    first, second = tables(("age", "sex"), ("sex", "vote"), n_obs=1000)
    other = jp.Marginal(("sex", "vote"), np.asarray(second.table)[::-1] ** 2, n_obs=None)
    found = report(first, jp.Marginal(("sex", "vote"), other.table, n_obs=9000))
    assert found.disagreements[0].variables == ("sex",)
    assert found.totals == ((("age", "sex"), 1000), (("sex", "vote"), 9000))
    text = str(found)
    assert "how many people were counted: age, sex 1,000; sex, vote 9,000" in text


def test_an_axis_that_looks_permuted():
    first, second = tables(("age", "sex"), ("sex", "vote"))
    found = report(first, jp.Marginal(("sex", "vote"), np.asarray(second.table)[[2, 0, 1]]))
    assert [one.variable for one in found.reordered] == ["sex"]
    assert "its axis may be permuted; say with levels" in str(found)


def test_a_level_that_a_table_does_not_have():
    first = jp.Marginal(("age", "sex"), np.full((3, 3), 100))
    second = jp.Marginal(("sex", "vote"), [[300, 100, 100], [100, 200, 100], [0, 0, 0]])
    found = report(first, second)
    assert "if a table has bands instead of that level, say so with levels" in str(found)


def test_tables_that_are_not_whole():
    part = jp.Marginal(("vote",), [20, np.nan, 30], where={"sex": 1}, n_obs=60)
    found = report(*tables(("age", "sex"), ("vote", "job")), part)
    assert found.groups == (("age", "sex", "vote", "job"),)
    assert found.tables[2].n_hidden == 1
    text = str(found)
    assert "vote: 3 cells, 60 people, 1 cell hidden" in text


class TestBands:
    AGES = jp.Variable("age", ("a", "b", "c", "d"))

    def found(self, *marginals):
        names = ["age", *{n: None for m in marginals for n in m.names if n != "age"}]
        others = [jp.Variable(n, ("no", "yes")) for n in names[1:]]
        return check_tables(jp.MarginalSet(jp.Domain([self.AGES, *others]), marginals))

    def test_bands_are_compared_on_what_both_can_tell(self):
        fine = jp.Marginal(("age", "x"), [[100, 100], [100, 200], [200, 100], [100, 100]])
        coarse = {"age": [("a", "b", "c"), "d"]}
        agree = jp.Marginal(("age", "y"), [[500, 300], [100, 100]], levels=coarse)
        assert self.found(fine, agree).disagreements == ()
        other = jp.Marginal(("age", "y"), [[300, 300], [200, 200]], levels=coarse)
        (one,) = self.found(fine, other).disagreements
        assert (one.variables, one.first, one.second) == (("age",), ("age", "x"), ("age", "y"))
        assert sorted([one.first_probability, one.second_probability]) == pytest.approx([0.6, 0.8])

    def test_bands_that_cross_are_compared_on_their_union(self):
        first = {"age": [("a", "b"), "c", "d"]}
        second = {"age": ["a", ("b", "c"), "d"]}
        one = jp.Marginal(("age",), [500, 300, 200], levels=first)
        like = jp.Marginal(("age",), [100, 700, 200], levels=second)
        assert self.found(one, like).disagreements == ()
        other = jp.Marginal(("age",), [100, 300, 600], levels=second)
        (found,) = self.found(one, other).disagreements
        assert found.levels[0] in ("d", ("a", "b", "c"))
        assert found.by == pytest.approx(0.4)

    def test_noise_and_rounding_may_explain_a_difference(self):
        fine = jp.Marginal(("age",), [100, 200, 300, 400])
        bands = {"age": [("a", "b"), ("c", "d")]}
        for more in ({"noise": 40}, {"rounding": 200}):
            other = jp.Marginal(("age",), [440, 560], levels=bands, **more)
            assert self.found(fine, other).disagreements == ()
        for more in ({}, {"noise": 5}, {"rounding": 5}):
            other = jp.Marginal(("age",), [440, 560], levels=bands, **more)
            assert len(self.found(fine, other).disagreements) == 1

    def test_tables_that_tell_nothing_of_a_variable(self):
        fine = jp.Marginal(("age",), [100, 200, 300, 400])
        within = jp.Marginal(("x", "age"), [[50] * 4, [50] * 4], given=["age"])
        hidden = jp.Marginal(("age", "x"), [[np.nan, 1]] + [[70, 900]] * 3, n_obs=5000)
        part = jp.Marginal(("age",), [400, 300, 200, 100], where={"x": "no"})
        some = jp.Marginal(("age",), [400, 300], levels={"age": ["a", "b"]})
        assert self.found(fine, within, hidden, part, some).disagreements == ()


def test_only_a_set_is_checked():
    with pytest.raises(jp.JointPMFError, match="must be a MarginalSet, not list"):
        check_tables([])


def test_percentages_within_levels_alone_determine_no_rank():
    """Nothing says how many people the levels have."""
    domain = jp.Domain.of_sizes([3, 2])
    shares = jp.Marginal(("x0", "x1"), [[0.2, 0.8], [0.5, 0.5], [0.6, 0.4]], given=["x0"])
    assert "models of any rank: many fit" in str(check_tables(jp.MarginalSet(domain, [shares])))
