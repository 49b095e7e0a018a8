"""Settings are values: they compare by content, and refuse nonsense in one sentence."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.settings import Effort, checked_objective, checked_search


def test_they_compare_by_content():
    assert jp.Likelihood(smoothing=1) == jp.Likelihood(smoothing=1.0) != jp.Likelihood()
    assert jp.Search(n_starts=2) == jp.Search(n_starts=2) != jp.Search()


def test_without_settings_there_are_the_defaults():
    assert checked_objective(None) == jp.Likelihood()
    assert checked_search(None) == jp.Search()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: jp.Likelihood(smoothing=-1), "smoothing must be a number of at least 0, not -1"),
        (lambda: jp.Likelihood(towards="mean"), "towards must be 'uniform' or 'marginal'"),
        (lambda: jp.Likelihood(emphasis=0), "emphasis must be a whole number of at least 1"),
        (lambda: jp.Search(n_starts=0), "n_starts must be a whole number of at least 1"),
        (lambda: jp.Search(n_average=1.5), "n_average must be a whole number of at least 1"),
        (lambda: jp.HiddenCells(0.1, "rmse"), "scoring must be 'likelihood' or 'error'"),
        (lambda: jp.Checkpoint("c", every=0), "every must be a whole number of at least 1"),
        (lambda: jp.Checkpoint("c", seconds=-1), "seconds must be a number of at least 0"),
        (lambda: checked_objective("magic"), "objective must be a Likelihood, not 'magic'"),
        (lambda: checked_objective(np.ones(2)), "objective must be a Likelihood, not array"),
        (lambda: checked_search("random"), "search must be a Search, not 'random'"),
    ],
)
def test_nonsense_is_refused(make, sentence):
    with pytest.raises(jp.JointPMFError, match=sentence):
        make()


def test_of_a_large_table_a_part_of_the_rows_is_searched():
    effort = Effort()
    assert effort.n_rows_searched(10**6, 10**8, rank=1) == 10**6
    assert effort.n_rows_searched(1000, 10_000, rank=5) == 1000
    assert 1000 < effort.n_rows_searched(10**6, 10**8, rank=10) < 10**5
    assert effort.n_rows_searched(10**6, 10**9, rank=100) == 30_000  # 300 for each component


@pytest.mark.parametrize(
    ("n_starts", "n_distinct", "is_enough"),
    [(2, 1, False), (3, 1, True), (3, 2, False), (4, 2, False), (5, 2, True), (6, 3, False)],
)
def test_the_more_optima_the_more_starts_are_evidence(n_starts, n_distinct, is_enough):
    assert Effort().is_evidence(n_starts, n_distinct) is is_enough


def test_a_sample_for_rows_that_are_not_in_memory():
    effort = Effort()
    assert effort.sample_size(5) == 50_000
    assert effort.sample_size(10**4) == 1000
