"""Two cores, one answer: work is split the same way whatever the number of threads.

BLAS is held to one thread, because the bits of its products depend on how many it uses; the
threads are ours, over tasks whose results do not depend on who runs them.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

_limit: ContextVar[int | None] = ContextVar("limit", default=None)

_WORTH_SHARING = 2**15
"""Numbers that a task goes through at a time, from which on other threads help. With fewer they
wait for each other's Python more than they compute, and two take up to twice as long as one."""


def n_threads() -> int:
    """Return how many threads work is spread over."""
    limit = _limit.get()
    if limit is not None:
        return limit
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limited_to(count: int) -> Iterator[None]:
    """Use at most `count` threads for what the calling thread does inside; the same bits."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def interrupts() -> Iterator[None]:
    """Raise Ctrl-C as what it is: numba makes a SystemError of one that comes in compiled code.

    Examples
    --------
    >>> try:
    ...     with interrupts():
    ...         raise SystemError("in compiled code") from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     "stopped"
    'stopped'
    """
    try:
        yield
    except SystemError as error:
        cause = error.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def run_all(tasks: Sequence[Callable[[], None]], numbers: float = math.inf) -> None:
    """Run tasks that write to places of their own, and return when all are done.

    The calling thread works too; the others only help, unless a task goes through few `numbers`
    between one line of Python and the next.
    """
    if len(tasks) == 1 or numbers < _WORTH_SHARING:
        for task in tasks:
            task()
        return
    waiting = deque(tasks)

    def work() -> None:
        while waiting:
            try:
                task = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            task()

    n_helpers = min(n_threads(), len(tasks)) - 1
    helpers = [_pool(n_helpers, os.getpid()).submit(work) for _ in range(n_helpers)]
    try:
        work()
    finally:
        waiting.clear()
        for helper in helpers:
            if not helper.cancel():  # one that never began is not waited for
                helper.result()


def made_ahead(make: Callable[[T], R], items: Iterable[T], most: int = 4) -> Iterator[R]:
    """Yield what is made of items, in their order, while other threads make the next ones.

    There are at most `most` threads, and one thing more than threads that is made and not yielded.

    Examples
    --------
    >>> list(made_ahead(abs, [-3, 2, -1]))
    [3, 2, 1]
    """
    count = min(n_threads(), most)
    if count == 1:
        yield from map(make, items)
        return
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(_pool(count, os.getpid()).submit(make, item))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([one for one in waiting if not one.cancel()])  # what was begun may read a file


@cache
def _pool(workers: int, _process: int) -> ThreadPoolExecutor:
    # keyed by process: a fork has none of its parent's threads
    return ThreadPoolExecutor(workers, thread_name_prefix="jointpmf")


def row_blocks(n_rows: int, size: int = 65536) -> list[tuple[int, int]]:
    """Return (begin, end) of blocks of rows, the same for any number of threads."""
    return [(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]


class _OneBlasThread:
    """BLAS at one thread from the first entry to the last exit, whichever threads those are in."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._depth = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._limit.__exit__(*error)


one_blas_thread = _OneBlasThread()
"""The context in which BLAS uses one thread."""


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  its BLAS must be loaded by now to be found

    return ThreadpoolController()
