"""Ctrl-C at any moment: once a fit has a model, it is returned."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import jointpmf as jp
from jointpmf.fit.settings import Effort, Traits
from jointpmf.fit.stopping import BestSoFar, stoppable
from jointpmf.point import Point
from jointpmf.solvers.loop import Outcome
from support.feasibility import feasible
from support.interrupted import Interrupt, in_compiled_code
from support.small_fits import DOMAIN, FEW, ROWS, fit, with_holes

MANY = Effort(many_rows=200, passes=8, sample_rows=100, step_work=0, patience=1, step_rows=64)
FRAME = pd.DataFrame(np.where(ROWS < 0, np.nan, ROWS), columns=list("abcde"))
COUNTS = jp.MarginalSet.from_table(jp.Codes(DOMAIN, ROWS), 2)
EXACT = jp.random_pmf(DOMAIN, 2, 0).marginals(3)
SHORT = {"max_iter": 15}

FITS = {
    "one start": lambda: fit(n_starts=1, **SHORT),
    "a sample first": lambda: fit(effort=replace(FEW, work=1e5, sample_work=1e6), **SHORT),
    "many rows": lambda: fit(effort=MANY, **SHORT),
    "validation": lambda: fit(validation=0.2, **SHORT),
    "average": lambda: fit(validation=0.2, n_average=2, **SHORT),
    "traits": lambda: fit(rank=16, traits=Traits(2), validation=0.2, **SHORT),
    "batches": lambda: fit([FRAME[:200], FRAME[200:]], domain=None, effort=MANY, **SHORT),
    "pairs by squares": lambda: jp.fit_marginals(
        COUNTS, 3, loss="squares", random_state=0, **SHORT
    ),
    "exact tables": lambda: jp.fit_marginals(EXACT, 2, random_state=0, **SHORT),
    "any rank of tables": lambda: jp.fit_marginals(EXACT, random_state=0, **SHORT),
    "counts": lambda: jp.fit_marginals(
        COUNTS, 2, search=jp.Search(n_average=2), random_state=0, **SHORT
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_once_there_is_a_model_it_is_returned(name, caplog):
    caplog.set_level(logging.ERROR, logger="jointpmf")
    FITS[name]()  # what is compiled or cached, is now
    wholes = [Interrupt(), Interrupt()]
    for whole in wholes:
        whole.run(FITS[name])
    # what other tests left to be closed may be counted in one of them
    first, last = (
        min(numbers) for numbers in zip(*((w.first, w.n_calls) for w in wholes), strict=True)
    )
    moments = np.linspace(first + 1, last - 1, 9).astype(int).tolist()
    for k, error in zip(moments, [KeyboardInterrupt, in_compiled_code()] * 5, strict=False):
        stopped = Interrupt(k, error)
        found = stopped.run(FITS[name])
        assert found.status is jp.Status.STOPPED, stopped.where
        assert feasible(found.pmf), stopped.where
        assert found.pmf.domain.sizes == DOMAIN.sizes


def test_before_there_is_a_model_the_interrupt_is_raised():
    with pytest.raises(KeyboardInterrupt):
        Interrupt(5).run(FITS["one start"])


def test_the_rows_are_open_no_longer_but_the_model_is_returned(monkeypatch):
    """While files are closed, and what rows are known by is counted, all is already found."""

    def stops(*_):
        raise KeyboardInterrupt

    whole = fit(n_average=2, validation=0.2)
    monkeypatch.setattr("jointpmf.fit.rows.fingerprint_of", stops)
    found = fit(n_average=2, validation=0.2)
    assert found.status is jp.Status.STOPPED
    assert found.n_averaged == 2
    np.testing.assert_array_equal(found.pmf.weights, whole.pmf.weights)


def test_items_that_nobody_rated_are_in_a_model_that_was_stopped():
    domain = jp.Domain([jp.Variable(name, (1, 2, 3)) for name in "abcd"])
    codes = with_holes(np.random.default_rng(0).integers(0, 3, (60, 4)), 0.3)
    codes[:, 2] = jp.MISSING
    ratings = jp.Ratings(np.arange(60), jp.Codes(domain, codes))
    options = {"random_state": 0, "max_iter": 5}
    whole = Interrupt()
    whole.run(lambda: jp.fit_rows(ratings, **options))
    found = Interrupt(whole.first + 200).run(lambda: jp.fit_rows(ratings, **options))
    assert found.status is jp.Status.STOPPED
    assert found.pmf.domain == domain


class TestBestSoFar:
    @staticmethod
    def outcome(objective, validation=None):
        point = Point(np.ones(1), np.full((2, 1), 0.5))
        return Outcome(point, jp.Status.STOPPED, objective, [], validation=validation)

    def test_the_lowest_is_kept_but_a_sample_gives_way(self):
        domain, best = jp.Domain.of_sizes([2]), BestSoFar()
        assert best.solution() is None
        for objective, is_preliminary in [(1.0, True), (3.0, False), (2.0, False), (2.5, False)]:
            best.note(self.outcome(objective), domain, is_preliminary)
        assert best.solution().objective == 2.0

    def test_what_is_held_out_decides(self):
        domain, best = jp.Domain.of_sizes([2]), BestSoFar()
        for objective, validation in [(1.0, 5.0), (2.0, 4.0)]:
            best.note(self.outcome(objective, validation), domain, False)
        assert best.solution().objective == 2.0

    def test_nothing_is_invented(self):
        with pytest.raises(SystemError, match="broken"):
            stoppable(lambda best: (_ for _ in ()).throw(SystemError("broken")))
