"""Ctrl-C while something is written that takes a moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Finish what takes a moment, such as writing a model, unless Ctrl-C is pressed twice.

    Examples
    --------
    >>> with uninterrupted():
    ...     signal.raise_signal(signal.SIGINT)
    ...     print("written")
    written
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ignore_the_first(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ignore_the_first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
