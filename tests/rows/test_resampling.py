"""Rows that count otherwise: as other samples of the same design would differ."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.rows.parts import CountLevels, Part, Reweighted
from jointpmf.rows.resampling import Design, resampled
from jointpmf.rows.source import Table
from jointpmf.rows.spool import Spool, SpooledRows
from jointpmf.rows.table import ColumnRows, Rows

DOMAIN = jp.Domain.of_sizes([3, 2])
ROWS = np.array(
    jp.random_pmf(DOMAIN, 2, random_state=0).sample(600, random_state=0, backend="codes")
)
HOWS = ("bayesian", "multinomial")


def variance_of_means(design, values, how, n=20_000):
    """Return how much the mean of some values differs between replicates."""
    generator = np.random.default_rng(0)
    means = [design.factors(how, generator) @ values / len(values) for _ in range(n)]
    return np.var(means)


@pytest.mark.parametrize("how", HOWS)
def test_the_variance_of_a_mean_is_the_textbook_one(how):
    values = np.random.default_rng(1).normal(size=9)
    found = variance_of_means(Design.of(None, None, 9), values, how)
    assert found == pytest.approx(values.var(ddof=1) / 9, rel=0.05)


@pytest.mark.parametrize("how", HOWS)
def test_clusters_within_strata_give_the_variance_of_the_design(how):
    generator = np.random.default_rng(2)
    strata = np.repeat(["a", "b"], [12, 18])
    groups = np.concatenate([np.repeat([1, 2, 3], 4), np.repeat([1, 2, 3, 4, 5, 6], 3)])
    values = generator.normal(size=30) + 3 * groups * (strata == "b")
    found = variance_of_means(Design.of(groups, strata, 30), values, how)
    wanted = 0.0
    for stratum in "ab":
        own = strata == stratum
        sums = np.array([values[own & (groups == g)].sum() for g in np.unique(groups[own])])
        wanted += len(sums) * sums.var(ddof=1)  # of the total of a stratum
    assert found == pytest.approx(wanted / 30**2, rel=0.05)


@pytest.mark.parametrize("how", HOWS)
def test_a_cluster_counts_as_one_and_a_stratum_keeps_its_size(how):
    groups, strata = np.repeat(np.arange(10), 3), np.repeat([0, 1], 15)
    factors = Design.of(groups, strata, 30).factors(how, np.random.default_rng(0))
    assert all(len(set(factors[groups == g])) == 1 for g in range(10))
    assert [factors[:15].sum(), factors[15:].sum()] == pytest.approx([15, 15])


@pytest.mark.parametrize("how", HOWS)
def test_of_two_clusters_one_counts_for_both(how):
    factors = Design.of([1, 1, 2], None, 3).factors(how, np.random.default_rng(0))
    assert sorted(set(factors)) == [0.0, 2.0]


def test_a_table_is_reweighted_row_by_row():
    own = np.random.default_rng(0).random(len(ROWS))
    table = Table.of_codes(jp.Codes(DOMAIN, ROWS), own)
    drawn = resampled(table, "bayesian", np.arange(len(ROWS)) // 2, None, 5)(3)
    assert drawn.rows.total == pytest.approx(drawn.weights.sum())
    design = Design.of(np.arange(len(ROWS)) // 2, None, len(ROWS))
    factors = design.factors("bayesian", np.random.default_rng((5, 3)))
    wanted = Rows.of_codes(jp.Codes(DOMAIN, ROWS), own * factors)
    assert np.allclose(drawn.counts, wanted.counts)
    assert np.array_equal(drawn.rows.cells, wanted.cells)


def test_rows_that_stay_columns_are_reweighted_too():
    holes = np.vstack([ROWS, [[-1, -1]]])
    codes = jp.Codes(DOMAIN, holes)
    table = Table(codes, None, ColumnRows.as_they_are(codes))
    drawn = resampled(table, "bayesian", None, None, 5)(0)
    listed = resampled(Table.of_codes(codes), "bayesian", None, None, 5)(0)
    assert np.allclose(drawn.counts, listed.counts)
    assert drawn.rows.weights[-1] == 0


@pytest.mark.parametrize("how", HOWS)
def test_parts_draw_the_same_wherever_and_whenever_they_are(how):
    codes = jp.Codes(DOMAIN, ROWS)
    part = Part(3, ColumnRows.as_they_are(codes))
    first = Reweighted(CountLevels(), how, 7, 2)(part)
    assert np.array_equal(first.counts, Reweighted(CountLevels(), how, 7, 2)(part).counts)
    others = [
        Reweighted(CountLevels(), how, 7, 1)(part),
        Reweighted(CountLevels(), how, 8, 2)(part),
    ]
    others.append(Reweighted(CountLevels(), how, 7, 2)(Part(4, part.rows)))
    assert all(other.weight != first.weight for other in others)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("unit", [None, 1.0, 0.5, 1000.0])
def test_spooled_rows_vary_as_rows_in_memory_do(how, unit):
    """Counts of levels vary by the root of how many rows there are, whatever each counts for."""
    with Spool(DOMAIN, block_bytes=4000) as spool:
        weights = None if unit is None else np.full(len(ROWS), unit)
        spool.add(jp.Codes(DOMAIN, ROWS), weights)
        source = SpooledRows(spool)
        draw = resampled(source, how, None, None, 1)
        counts, own = np.array([draw(k).counts for k in range(400)]), source.counts
    assert np.allclose(counts.mean(axis=0), own, rtol=0.1)
    unit = unit or 1.0
    assert np.allclose(counts.std(axis=0), unit * np.sqrt(own / unit), rtol=0.15)


def test_bad_designs_are_refused():
    with pytest.raises(jp.JointPMFError, match="there is one cluster"):
        Design.of([1, 1, 1], None, 3)
    with pytest.raises(jp.JointPMFError, match="stratum 'b': there is one cluster"):
        Design.of([1, 2, 3, 3], ["a", "a", "b", "b"], 4)
    with pytest.raises(jp.JointPMFError, match="groups must be one label for each of 3 rows"):
        Design.of([1, 2], None, 3)
    with pytest.raises(jp.JointPMFError, match="strata of row 1 is missing"):
        Design.of(None, [0.0, np.nan, 1.0], 3)
    with pytest.raises(jp.JointPMFError, match="groups of row 0 is missing"):
        Design.of(np.array([np.nan, 1.0, 2.0], object), None, 3)
    with pytest.raises(jp.JointPMFError, match="all numbers or all text"):
        Design.of([1, "a", None], None, 3)
    with pytest.raises(jp.JointPMFError, match="one row cannot be resampled"):
        Design.of(None, None, 1)
    with Spool(DOMAIN) as spool:
        spool.add(jp.Codes(DOMAIN, ROWS))
        with pytest.raises(jp.JointPMFError, match="groups and strata need rows in memory"):
            resampled(SpooledRows(spool), "bayesian", [1], None, 0)
