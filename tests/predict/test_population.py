"""Populations: rows that meet tables of any kind, and stay rows that the model finds likely."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.predict import population as module
from jointpmf.predict.targets import Targets
from support.oracle import random_domain
from support.planted import planted, random_marginals

SIZES = (3, 2, 4, 3, 2)


@pytest.fixture(scope="module")
def truth():
    return planted(SIZES, 4, seed=1, concentration=0.5)


@pytest.fixture(scope="module")
def tables(truth):
    """Return pairs and triples of people, as counts."""
    rows = jp.Codes(truth.domain, truth.sample(600, random_state=2, backend="codes"))
    names = truth.domain.names
    subsets = [names[:2], names[1:3], names[2:5], (names[0], names[3], names[4])]
    return jp.MarginalSet.from_table(rows, subsets=subsets)


def excess_by_hand(table, codes):
    """Return k − p · (people in the slice) of each cell, one row of codes at a time."""
    people = np.zeros(table.counts.shape)
    for row in codes:
        if all(mask[row[n]] for n, mask in table.where):
            inside = [s[:, row[n]] for n, s in zip(table.positions, table.sets, strict=True)]
            for cell in np.ndindex(people.shape):
                people[cell] += all(one[i] for one, i in zip(inside, cell, strict=True))
    hidden = np.isnan(table.counts)
    n_obs = np.full(people.shape, np.nan)
    if table.n_obs is not None:
        n_obs[:] = np.expand_dims(table.n_obs, table.others if table.given else ())
    is_open = np.isnan(n_obs)
    counted = np.where(hidden & is_open, 0.0, people).sum(axis=table.others, keepdims=True)
    total = np.nansum(table.counts, axis=table.others, keepdims=True) + np.zeros(people.shape)
    complete = ~hidden.any(axis=table.others, keepdims=True)
    total = np.where(is_open | complete, total, n_obs)
    return (people - table.counts / total * counted)[~hidden]


def any_table(domain, generator):
    """Return a table of one or two variables with bands, a part, slices or hidden cells."""
    order = int(generator.integers(1, 3))
    names = [domain.names[n] for n in generator.permutation(len(domain))[: order + 1]]
    axes, other = names[:order], names[order]
    levels = {}
    for name in axes:
        masks = generator.random((int(generator.integers(1, 4)), domain[name].size)) < 0.6
        masks[:, int(generator.integers(domain[name].size))] |= ~masks.any(axis=1)
        levels[name] = [
            tuple(level for level, inside in zip(domain[name].levels, mask, strict=True) if inside)
            for mask in masks
        ]
    shape = [len(levels[name]) for name in axes]
    counts = generator.integers(1, 20, shape).astype(float)
    n_obs = float(counts.sum())
    if counts.size > 1 and generator.random() < 0.4:
        counts.flat[0] = np.nan
    is_sliced = order == 2 and generator.random() < 0.4 and not np.isnan(counts).any()
    return jp.Marginal(
        axes,
        counts,
        levels=levels,
        where={other: domain[other].levels[0]} if generator.random() < 0.4 else {},
        given=axes[:1] if is_sliced else (),
        n_obs=n_obs if generator.random() < 0.5 and not is_sliced else None,
    )


class TestTheTallyOfMoves:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10_000))
    def test_it_is_that_of_the_rows_however_they_are_moved(self, seed):
        generator = np.random.default_rng(seed)
        domain = random_domain(generator, 4)
        pmf = jp.random_pmf(domain, 3, random_state=seed)
        marginals = [any_table(domain, generator) for _ in range(3)]
        marginals.append(jp.Marginal((domain.names[0],), np.full(domain.sizes[0], 10.0)))
        measured = [one.measured(domain, 1.0) for one in marginals]
        targets = Targets(domain, measured, (), 30)
        draw = module._systematic(pmf, 30, generator)
        moves = module._Moves(pmf, draw, targets, generator)
        before = sum((one**2).sum() for one in targets.excess(moves.state))
        for sweep in range(3):
            moves.sweep(5.0, sweep == 0)
        found = targets.excess(moves.state)
        for one, table in zip(found, measured, strict=True):
            np.testing.assert_allclose(
                one, excess_by_hand(table, moves.state.codes).ravel(), atol=1e-9
            )
        change = sum((one**2).sum() for one in found) - before
        assert moves.cost == pytest.approx(change, abs=1e-7)
        anew = targets.state(moves.state.codes)
        for kept, made in zip(moves.state, anew, strict=True):
            np.testing.assert_allclose(kept, made, atol=1e-9)


class TestTables:
    def test_whole_tables_are_met_to_rounding(self, truth, tables):
        people = truth.population(600, match=tables, random_state=0, backend="codes")
        assert people.rows.shape == (600, len(SIZES))
        for one, table in zip(people.residuals, tables.measurements, strict=True):
            left = excess_by_hand(table, people.rows)
            assert one.error == pytest.approx(np.abs(left).sum() / 600)
            assert one.largest == pytest.approx(np.abs(left).max())
            assert one.largest < 1
        assert not people.unmet
        assert people.error < 1e-3

    @pytest.mark.parametrize("n", [1, 7, 1000])
    def test_their_shares_count_and_not_their_totals(self, truth, tables, n):
        people = truth.population(n, match=tables, random_state=0)
        assert len(people.rows) == n
        assert all(one.largest < 1.5 for one in people.residuals)

    def test_tables_as_they_are_printed(self, truth):
        a, b, c, d, e = truth.domain.names
        rows = truth.sample(1000, random_state=3)
        share = rows.group_by(a, b).len().sort(a, b)["len"].to_numpy().reshape(3, 2)
        part = rows.filter(pl.col(e) == 1).group_by(d).len().sort(d)["len"].to_numpy()
        hidden = rows.group_by(c).len().sort(c)["len"].to_numpy().astype(float)
        hidden[2] = np.nan
        bands = rows.select((pl.col(c) < 2).alias("low"), pl.col(d) == 0).to_numpy()
        banded = [[(bands == (x, y)).all(axis=1).sum() for y in (1, 0)] for x in (1, 0)]
        printed = jp.MarginalSet(
            truth.domain,
            [
                jp.Marginal(
                    (a, b), 100 * share / share.sum(axis=1, keepdims=True), given=[a], n_obs=1
                ),
                jp.Marginal((d,), part, where={e: 1}),
                jp.Marginal((c,), hidden, n_obs=1000),
                jp.Marginal((c, d), banded, levels={c: [(0, 1), (2, 3)], d: [0, (1, 2)]}),
                jp.Marginal((e,), [600, 400], n_obs=1000),
            ],
        )
        people = truth.population(1000, match=printed, random_state=0, backend="codes")
        for table in printed.measurements:
            assert np.abs(excess_by_hand(table, people.rows)).max() < 1
        assert (people.rows[:, 4] == 0).sum() == 600

    def test_random_ones_bring_rows_nearer(self):
        for seed in range(4):
            marginals, _ = random_marginals(seed, 4, 4)
            pmf = jp.random_pmf(marginals.domain, 3, random_state=seed)
            targets = Targets(pmf.domain, marginals.measurements, (), 200)
            plain = pmf.population(200, random_state=seed, backend="codes").rows
            met = pmf.population(200, match=marginals, random_state=seed, backend="codes").rows
            far, near = (
                sum((one**2).sum() for one in targets.excess(targets.state(rows)))
                for rows in (plain, met)
            )
            assert near < far

    def test_some_variables_and_levels_in_another_order(self, truth):
        few = jp.Domain([jp.Variable("x2", (3, 1, 0, 2)), jp.Variable("x0", (0, 1, 2))])
        match = jp.MarginalSet(few, [jp.Marginal(("x2", "x0"), np.full((4, 3), 10.0), n_obs=120)])
        twisted = jp.MarginalSet(few, [jp.Marginal(("x2",), [40, 30, 20, 10]), match[0]])
        rows = truth.population(120, match=match, random_state=0).rows
        assert (rows.group_by("x0", "x2").len()["len"] == 10).all()
        one = jp.MarginalSet(few, [twisted[0], jp.Marginal(("x0",), [50, 25, 25])])
        rows = truth.population(100, match=one, random_state=0).rows
        assert rows["x2"].value_counts().sort("x2")["count"].to_list() == [20, 30, 10, 40]

    def test_they_may_contradict_each_other_which_is_said(self, truth, caplog):
        few = jp.Domain([jp.Variable("x0", (0, 1, 2)), jp.Variable("x1", (0, 1))])
        with caplog.at_level(logging.ERROR):
            match = jp.MarginalSet(
                few,
                [
                    jp.Marginal(("x0", "x1"), np.full((3, 2), 1 / 6), n_obs=300),
                    jp.Marginal(("x1",), [0.9, 0.1], n_obs=300),
                ],
            )
        with caplog.at_level(logging.WARNING):
            people = truth.population(300, match=match, random_state=0)
        assert "no rows were found that meet the table of x" in caplog.text
        assert "and 1 more" in caplog.text
        assert {one.names for one in people.unmet} == {("x0", "x1"), ("x1",)}
        assert people.residuals[1].largest > 25
        assert "most from x1" in str(people) or "most from x0, x1" in str(people)

    def test_impossible_combinations_never(self, truth, tables):
        impossible = ({"x0": 0, "x2": [1, 2]}, {"x4": 1, "x3": 2})
        match = jp.MarginalSet(tables.domain, tables.marginals)
        object.__setattr__(match, "impossible", impossible)
        rows = truth.population(600, match=match, random_state=0).rows
        assert not len(rows.filter((pl.col("x0") == 0) & pl.col("x2").is_in([1, 2])))
        assert not len(rows.filter((pl.col("x4") == 1) & (pl.col("x3") == 2)))


class TestRows:
    def test_they_are_as_likely_as_independent_ones(self):
        truth = planted((4, 5, 3, 6, 4, 3), 5, seed=0, concentration=0.5)
        names = truth.domain.names
        drawn = jp.Codes(truth.domain, truth.sample(2000, random_state=1, backend="codes"))
        subsets = [names[:2], names[2:4], names[4:], names[1:4], (names[0], names[2], names[5])]
        match = jp.MarginalSet.from_table(drawn, subsets=subsets)
        people = truth.population(2000, match=match, random_state=0, backend="codes")
        assert people.error < 2e-3
        logs = truth.log_probability(jp.Codes(truth.domain, people.rows))
        independent = truth.log_probability(drawn)
        noise = independent.std() / np.sqrt(2000)
        assert abs(logs.mean() - independent.mean()) < 4 * noise
        assert abs(logs.std() / independent.std() - 1) < 0.1

    def test_without_tables_every_level_of_a_component_has_its_share(self):
        pmf = jp.JointPMF(
            jp.Domain.of_sizes([3, 2]),
            [0.25, 0.75],
            [[[0.5, 0.0], [0.25, 0.5], [0.25, 0.5]], [[1.0, 0.0], [0.0, 1.0]]],
        )
        people = pmf.population(80, random_state=0)
        assert people.residuals == ()
        assert people.rows["x1"].value_counts().sort("x1")["count"].to_list() == [20, 60]
        assert people.rows["x0"].value_counts().sort("x0")["count"].to_list() == [10, 35, 35]
        assert people.rows["x1"].to_list() != sorted(people.rows["x1"])
        assert str(people) == "80 rows"
        assert people.to_frame().shape == (0, 3)

    def test_the_same_seed_gives_the_same_rows(self, truth, tables):
        first, again, other = (
            truth.population(200, match=tables, random_state=seed, backend="codes").rows
            for seed in (0, 0, 1)
        )
        assert (first == again).all()
        assert (first != other).any()

    @pytest.mark.parametrize(
        ("backend", "kind"),
        [
            ("polars", pl.DataFrame),
            ("pandas", pd.DataFrame),
            ("pyarrow", pa.Table),
            ("codes", np.ndarray),
        ],
    )
    def test_they_are_of_the_kind_asked_for(self, truth, tables, backend, kind):
        people = truth.population(20, match=tables, random_state=0, backend=backend)
        assert isinstance(people.rows, kind)
        frame = people.to_frame("polars" if backend == "codes" else backend)
        assert str(frame["table"][0]) == "x0, x1"

    def test_levels_are_the_users_own(self):
        domain = jp.Domain([jp.Variable("vote", ("no", "yes"))])
        pmf = jp.JointPMF(domain, [1.0], [[[0.5], [0.5]]])
        match = jp.MarginalSet(domain, [jp.Marginal(("vote",), [3, 1])])
        rows = pmf.population(8, match=match, random_state=0).rows
        assert sorted(rows["vote"]) == ["no"] * 6 + ["yes"] * 2

    def test_an_interrupt_leaves_the_best_until_then(self, truth, tables, monkeypatch):
        calls = []
        improve = module.improve

        def third_fails(*given):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return improve(*given)

        plain = truth.population(600, random_state=0, backend="codes").rows
        monkeypatch.setattr(module, "improve", third_fails)
        people = truth.population(600, match=tables, random_state=0, verbose=True, backend="codes")
        targets = Targets(truth.domain, tables.measurements, (), 600)
        far = np.mean([np.abs(e).sum() for e in targets.excess(targets.state(plain))]) / 600
        assert people.is_stopped
        assert "interrupted" in str(people)
        assert people.error < far
        assert len(calls) == 3


class TestBadInput:
    @pytest.mark.parametrize("n", [0, -1, 2.5, True, "many", None])
    def test_a_population_has_a_whole_number_of_rows(self, truth, n):
        sentence = "the number of rows must be a whole number of at least 1, not "
        with pytest.raises(jp.JointPMFError, match=sentence):
            truth.population(n)

    def test_a_backend_is_one_of_four(self, truth):
        with pytest.raises(jp.JointPMFError, match=r"backend must be .* not 'excel'"):
            truth.population(5, backend="excel")

    def test_what_is_matched_is_a_set_of_marginals(self, truth):
        with pytest.raises(jp.JointPMFError, match="match must be a MarginalSet, not "):
            truth.population(5, match=[jp.Marginal(("x0",), [1, 2, 3])])

    def test_its_variables_are_those_of_the_model(self, truth):
        domain = jp.Domain([jp.Variable("colour", ("red", "blue"))])
        match = jp.MarginalSet(domain, [jp.Marginal(("colour",), [1, 2])])
        with pytest.raises(jp.JointPMFError, match="there is no variable 'colour'"):
            truth.population(5, match=match)

    @pytest.mark.parametrize(
        ("levels", "sentence"),
        [
            ((0, 1, 2), "'x1' has the level 2 in the tables, but not in the model"),
            ((0,), "'x1' has the level 1 in the model, but not in the tables"),
        ],
    )
    def test_its_levels_are_those_of_the_model(self, truth, levels, sentence):
        domain = jp.Domain([jp.Variable("x1", levels)])
        match = jp.MarginalSet(domain, [jp.Marginal(("x1",), np.arange(1, len(levels) + 1))])
        with pytest.raises(jp.JointPMFError, match=sentence):
            truth.population(5, match=match)

    def test_a_model_of_impossible_combinations_only(self):
        domain = jp.Domain.of_sizes([2, 2])
        pmf = jp.JointPMF(domain, [1.0], [[[1.0], [0.0]], [[1.0], [0.0]]])
        match = jp.MarginalSet(domain, [jp.Marginal(("x0", "x1"), [[1, 1], [1, 1]])])
        object.__setattr__(match, "impossible", ({"x0": 0, "x1": 0},))
        with pytest.raises(jp.JointPMFError, match="5 of 5 rows have combinations that are imposs"):
            pmf.population(5, match=match)
