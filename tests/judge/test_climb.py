"""A curve that is found one rank after the other is a curve like any other."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from jointpmf.judge.climb import climbing_curves

TRUTH = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
ROWS = jp.Codes(TRUTH.domain, TRUTH.sample(2000, random_state=0, backend="codes"))
WEIGHTS = np.random.default_rng(0).integers(1, 3, ROWS.n_rows).astype(float)


def climbed(criterion="bic", **options):
    return list(climbing_curves(ROWS, criterion, random_state=0, **options))[-1]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_its_ranks_are_those_of_single_curves(weights):
    curve = climbed(sample_weight=weights)
    ranks = [score.rank for score in curve.scores]
    assert ranks == [1, 2, 3, 4]
    assert curve.rank == 2
    for rank, score, solution in zip(ranks, curve.scores, curve.solutions, strict=True):
        one = jp.choose_rank(ROWS, [rank], "bic", sample_weight=weights, random_state=0)
        assert score._replace(seconds=0.0) == one.scores[0]._replace(seconds=0.0)
        assert curve[rank] is solution
        np.testing.assert_array_equal(solution.pmf.weights, one[rank].pmf.weights)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_it_bends_and_gains_like_any_other(weights):
    curve = climbed(ranks=[1, 2, 3], sample_weight=weights)
    heights = [score.log_likelihood for score in curve.scores]
    np.testing.assert_allclose(curve.gains[1:], np.diff(heights))
    assert curve.elbow == 2
    assert "bends at rank 2" in str(curve)


def test_held_out_rows_are_the_same_for_every_rank():
    curve = climbed("validation", ranks=[1, 2], n_folds=3)
    assert curve.fold_scores.shape == (2, 3)
    whole = jp.choose_rank(ROWS, [1, 2], n_folds=3, random_state=0)
    np.testing.assert_allclose(curve.fold_scores[0], whole.fold_scores[0])


def test_an_interrupt_between_the_score_and_the_model_of_a_rank_ends_the_climb(monkeypatch):
    run, curves = EMFit.run, []

    def spy(self, source, generator):
        if self.rank == 2 and source.codes.n_rows == ROWS.n_rows:
            raise KeyboardInterrupt
        return run(self, source, generator)

    monkeypatch.setattr(EMFit, "run", spy)
    with pytest.raises(KeyboardInterrupt):
        curves.extend(climbing_curves(ROWS, "validation", n_folds=2, random_state=0))
    assert [score.rank for curve in curves for score in curve.scores] == [1]
    assert curves[0][1].pmf.rank == 1
