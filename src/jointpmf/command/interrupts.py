"""Ctrl-C where there is nothing to gain by it, and where Python would lose it."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

_MOMENT = 0.01
"""Seconds after which Ctrl-C comes again if it came while a module was imported."""


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


def between_imports(begin: CodeType) -> None:
    """Let Ctrl-C wait while a module is imported, and come again where Python has lost it.

    Many modules make another error of one that comes while they are imported, or print it; what
    destroys an object prints it and goes on.

    Parameters
    ----------
    begin : code
        Of the function that the command begins with: what has called it is none of its imports.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame, begin):
            _come_again()
        else:
            signal.default_int_handler(number, frame)

    def unraisable(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _come_again()
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = unraisable
    signal.signal(signal.SIGINT, interrupt)


def _is_importing(frame: FrameType | None, begin: CodeType) -> bool:
    while frame is not None and frame.f_code is not begin:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _come_again() -> None:
    """Interrupt the main thread a moment later; threads of `threading` would need its locks."""
    main = threading.main_thread().ident

    def interrupt() -> None:
        time.sleep(_MOMENT)
        if main is not None and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, signal.SIGINT)  # also out of what waits for input
        else:
            _thread.interrupt_main()

    _thread.start_new_thread(interrupt, ())
