"""Sums over parts against the whole table: counts, the E-step, samples, fits."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.settings import Effort
from jointpmf.point import Point
from jointpmf.rows.parts import CountLevels, DrawSample, Part, PartedRows
from jointpmf.rows.table import ColumnRows, Rows
from jointpmf.solvers.loop import Loop
from support.sources import InMemory

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 5, 3, 3]), 2, random_state=0)


def holey(n_rows=900, missing=0.3):
    array = TRUTH.sample(n_rows, random_state=0, backend="codes")
    array[np.random.default_rng(0).random(array.shape) < missing] = -1
    return jp.Codes(TRUTH.domain, array)


@pytest.mark.parametrize("n_parts", [1, 4])
@pytest.mark.parametrize("is_weighted", [False, True])
class TestSums:
    def rows(self, n_parts, is_weighted):
        codes = holey()
        weights = np.random.default_rng(2).random(codes.n_rows) if is_weighted else None
        return PartedRows(InMemory(codes, n_parts, weights)), Rows.of_codes(codes, weights), codes

    def test_levels(self, n_parts, is_weighted):
        parted, whole, codes = self.rows(n_parts, is_weighted)
        np.testing.assert_allclose(parted.levels.counts, whole.counts)
        np.testing.assert_allclose(parted.marginal, whole.marginal)
        assert parted.total == pytest.approx(whole.total, rel=1e-12)
        n_empty = int((codes.array < 0).all(axis=1).sum())
        assert parted.levels.n_empty == whole.n_empty == n_empty

    def test_expected_counts(self, n_parts, is_weighted):
        parted, whole, _ = self.rows(n_parts, is_weighted)
        one, other = parted.expectation(2), whole.expectation(2)
        stack = one.stack(Point.of_pmf(TRUTH))
        (counts, log), (expected, expected_log) = one.counts(stack), other.counts(stack)
        np.testing.assert_allclose(counts, expected, atol=1e-10)
        assert log == pytest.approx(expected_log, rel=1e-13)


def test_weights_that_are_no_counts_tell_tables_apart():
    domain, halves = jp.Domain.of_sizes([2, 2]), np.full(2, 0.5)
    one, other = (jp.Codes(domain, rows) for rows in ([[0, 0], [1, 1]], [[0, 1], [1, 0]]))
    digests = [PartedRows(InMemory(codes, 1, halves)).digest for codes in (one, one, other)]
    assert digests[0] == digests[1] != digests[2]
    huge = [PartedRows(InMemory(codes, 1, 1e40 * halves)).digest for codes in (one, other)]
    assert len({*digests, *huge}) == 4


class TestSample:
    def test_holds_rows_of_the_table(self):
        codes = holey(400)
        sample, weights = PartedRows(InMemory(codes, 3)).sample(50, 0)
        rows = {tuple(row) for row in codes.array.tolist()}
        assert {tuple(row) for row in sample.array.tolist()} <= rows
        assert 25 < weights.sum() < 100

    def test_takes_all_rows_of_a_small_table(self):
        codes = holey(20)
        observed = codes.array[(codes.array >= 0).any(axis=1)]
        sample, weights = PartedRows(InMemory(codes, 3)).sample(50, 0)
        assert sorted(sample.array.tolist()) == sorted(observed.tolist())
        assert (weights == 1).all()

    def test_does_not_depend_on_how_parts_are_merged(self):
        a, b, c, d = map(DrawSample(0.2, 7), InMemory(holey(300), 4).parts)
        one = a.merged(b).merged(c).merged(d)
        other = a.merged(b.merged(c.merged(d)))
        np.testing.assert_array_equal(one.columns, other.columns)

    def test_prefers_heavy_rows(self):
        domain = jp.Domain.of_sizes([2, 500])
        array = np.column_stack([np.arange(1000) // 500, np.arange(1000) % 500])
        weights = np.where(array[:, 0] == 1, 9.0, 1.0)
        parts = InMemory(jp.Codes(domain, array), 2, weights)
        sample, drawn = PartedRows(parts).sample(200, 0)
        assert 0.8 < drawn[sample.array[:, 0] == 1].sum() / drawn.sum() < 0.98


def fit_parts(parts, fit):
    return fit.run(PartedRows(parts), np.random.default_rng(0))


class TestFit:
    loop = Loop(max_iter=300, tol=1e-12)

    def test_equals_that_in_memory(self):
        codes = holey()
        parted = fit_parts(InMemory(codes, 3), EMFit(2, self.loop))
        whole = jp.fit_rows(codes, 2, random_state=0, max_iter=300, tol=1e-12)
        assert parted.objective == pytest.approx(whole.objective, abs=1e-7)
        assert parted.start.n_rows == Rows.of_codes(codes).total

    def test_takes_the_same_steps_from_the_same_start(self):
        codes = holey()
        fit = EMFit(2, Loop(30, 1e-12), smoothing=0.5, towards="marginal", start=TRUTH)
        parted = fit_parts(InMemory(codes, 3), fit)
        whole = jp.fit_rows(
            codes,
            2,
            search=jp.Search(TRUTH),
            objective=jp.Likelihood(0.5, "marginal"),
            max_iter=30,
            tol=1e-12,
        )
        for one, other in zip(parted.history, whole.history, strict=True):
            assert one.objective == pytest.approx(other.objective, abs=1e-11)

    def test_levels_that_the_sample_missed_can_happen(self):
        rare = np.random.default_rng(0).integers(2, size=(500, 3))
        rare[7] = 2
        codes = jp.Codes(jp.Domain.of_sizes([3, 3, 3]), rare)
        found = fit_parts(InMemory(codes, 2), EMFit(2, self.loop, effort=Effort(sample_rows=10)))
        assert found.start.n_rows < 100
        assert found.pmf.probability(np.array([[2, 2, 2]]))[0] > 0

    @pytest.mark.parametrize("column", [None, 1])
    def test_columns_without_a_cell_are_refused(self, column):
        array = np.array(holey(50).array)
        array[:, slice(None) if column is None else column] = -1
        parts = InMemory(jp.Codes(TRUTH.domain, array), 2)
        sentence = "no row has an observed cell" if column is None else "'x1' has no observed cell"
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit_parts(parts, EMFit(2, self.loop))


def test_repeated_rows_are_kept_once():
    codes = jp.Codes(jp.Domain.of_sizes([2, 2]), np.array([[0, 1], [0, 1], [1, 0], [0, 1]]))
    part = Part.of_codes(0, codes)
    assert isinstance(part.rows, ColumnRows)
    assert len(part.rows) == 2
    assert CountLevels()(part).weight == 4
