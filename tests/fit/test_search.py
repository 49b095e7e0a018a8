"""The one search: candidates in turn, what fails, what stops it, and which fits are the best."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.errors import CheckpointError
from jointpmf.fit.search import Trials, badness, concluded
from jointpmf.fit.solution import Solution, Start

PMF = jp.random_pmf(jp.Domain.of_sizes([2]), rank=1, random_state=0)


def solution(objective, validation=None, status=jp.Status.CONVERGED):
    return Solution(PMF, status, objective, [], Start("rows"), validation=validation)


def candidates(*objectives, seen=None):
    """Yield fits with these objectives, or that raise these errors."""
    for k, given in enumerate(objectives):

        def fit(given=given):
            if isinstance(given, (type, Exception)):
                raise given
            return solution(given)

        if seen is not None:
            seen.append(k)
        yield k, fit


def test_the_best_is_the_one_with_the_lowest_score():
    trials = Trials().run(candidates(3.0, 1.0, 2.0))
    assert trials.best.objective == 1.0
    assert [restart.objective for restart in trials.restarts] == [3.0, 1.0, 2.0]
    assert badness(solution(1.0, validation=5.0)) == 5.0


def test_candidates_are_drawn_one_at_a_time_until_it_is_enough():
    seen = []
    Trials().run(candidates(3.0, 1.0, 2.0, seen=seen), lambda trials: trials.best.objective < 2)
    assert seen == [0, 1]


@pytest.mark.parametrize("error", [jp.JointPMFError, np.linalg.LinAlgError, OverflowError])
def test_one_that_fails_is_recorded_unless_all_fail(error):
    trials = Trials().run(candidates(error("too bad"), 1.0))
    assert [restart.error for restart in trials.restarts] == ["too bad", ""]
    assert trials.best.objective == 1.0
    with pytest.raises(error, match="worse"):
        Trials().run(candidates(error("too bad"), error("worse")))
    with pytest.raises(error, match="too bad"):
        Trials(is_tolerant=False).run(candidates(error("too bad"), 1.0))


@pytest.mark.parametrize("error", [CheckpointError, RuntimeError])
def test_what_no_other_start_can_make_up_for_ends_the_search(error):
    with pytest.raises(error):
        Trials().run(candidates(1.0, error, 2.0))


def test_an_interrupt_keeps_what_there_is():
    trials = Trials().run(candidates(2.0, KeyboardInterrupt, 1.0))
    assert (trials.best.objective, trials.is_stopped) == (2.0, True)
    with pytest.raises(KeyboardInterrupt):
        Trials().run(candidates(KeyboardInterrupt, 1.0))


def test_a_fit_that_was_stopped_ends_the_search():
    def stopped():
        return solution(5.0, status=jp.Status.STOPPED)

    trials = Trials().run([("a", stopped), ("b", stopped)])
    assert (trials.kinds, trials.is_stopped) == (["a"], True)


@pytest.mark.parametrize(
    ("objectives", "tolerance", "relative", "near"),
    [
        ((1.0, 1.05, 2.0), 0.1, False, [0, 1]),
        ((10.0, 10.5, 20.0), 0.1, True, [0, 1]),
        ((-10.0, -9.5, 2.0), 0.1, True, [0, 1]),
        ((0.0, 1e-9), 0.1, True, [0]),
    ],
)
def test_the_fits_near_the_best(objectives, tolerance, relative, near):
    trials = Trials().run(candidates(*objectives))
    assert [trial.kind for trial in trials.near_best(tolerance, relative)] == near


def test_fits_of_a_kind_in_their_order():
    trials = Trials().run([("a", lambda: solution(1.0)), ("b", lambda: solution(2.0))] * 2)
    assert trials.kinds == ["a", "b"]
    assert [found.objective for found in trials.of("b")] == [2.0, 2.0]


def test_an_interrupt_in_compiled_code_is_an_interrupt():
    """Numba raises it as a SystemError."""

    def interrupted():
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    trials = Trials().run([("a", lambda: solution(1.0)), ("b", interrupted)])
    assert (trials.kinds, trials.is_stopped) == (["a"], True)


def test_an_interrupt_at_the_end_loses_nothing():
    calls = []

    def conclusion():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return solution(1.0)

    assert concluded(conclusion).status is jp.Status.STOPPED
    assert concluded(conclusion).status is jp.Status.CONVERGED
