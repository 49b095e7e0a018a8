"""Threads that share tasks, and those that make the next things while the first are used."""

import time
from functools import partial
from itertools import count
from threading import Barrier, get_ident

import pytest

from jointpmf.threads import limited_to, made_ahead, run_all


class TestRunAll:
    def test_large_tasks_are_shared(self):
        meeting = Barrier(2, timeout=20)  # which one thread alone would wait at in vain
        with limited_to(2):
            run_all([meeting.wait] * 2, numbers=10**6)

    def test_small_tasks_stay_with_the_calling_thread_in_their_order(self):
        done = []
        with limited_to(8):
            run_all([partial(lambda k: done.append((k, get_ident())), k) for k in range(9)], 100)
        assert done == [(k, get_ident()) for k in range(9)]


def slowest_first(number):
    time.sleep(0.01 * (3 - number % 4))
    return number


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_the_order_is_that_of_the_items(n_threads):
    with limited_to(n_threads):
        assert list(made_ahead(slowest_first, range(12))) == list(range(12))


@pytest.mark.parametrize(("n_threads", "n_begun"), [(1, 1), (2, 3), (8, 5)])
def test_few_are_made_before_they_are_asked_for(n_threads, n_begun):
    begun = []
    with limited_to(n_threads):
        made = made_ahead(abs, (begun.append(k) or k for k in count()))
        assert next(made) == 0
    made.close()
    assert len(begun) == n_begun


def test_an_error_comes_in_its_turn():
    with limited_to(2):
        made = made_ahead(lambda k: 6 // (k - 2), [1, 0, 2, 3])
        assert [next(made), next(made)] == [-6, -3]
        with pytest.raises(ZeroDivisionError):
            next(made)
