"""Ctrl-C at any moment of a fit: at the k-th function of the package that it calls."""

import math
import sys
from pathlib import Path

import jointpmf
from jointpmf.solvers.loop import _Run
from jointpmf.threads import limited_to

PACKAGE = str(Path(jointpmf.__file__).parent)


class Interrupt:
    """Run a function, and interrupt it when the package calls its k-th function, or never.

    Attributes
    ----------
    n_calls : int
        How many functions were called.
    first : int or None
        How many had been called when the first run of a solver had a model; None if none has.
    where : str
        The function that was interrupted.
    """

    def __init__(self, k=None, error=KeyboardInterrupt):
        self.k, self.error = k, error
        self.n_calls, self.first, self.where = 0, None, ""

    def run(self, function):
        """Return what the function returns."""
        before = sys.getprofile()
        sys.setprofile(self._profile)
        try:
            with limited_to(1):  # others would take some of the calls, now more and now fewer
                return function()
        finally:
            sys.setprofile(before)

    def _profile(self, frame, event, value):
        code = frame.f_code
        if event == "return" and self.first is None and code is _Run._reach.__code__:
            self.first = self.n_calls if value and math.isfinite(value.objective) else None
        if event == "call" and code.co_filename.startswith(PACKAGE):
            self.n_calls += 1
            if self.n_calls == self.k:
                self.where = f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}"
                sys.setprofile(None)
                raise self.error


def in_compiled_code():
    """Return what numba makes of Ctrl-C in a compiled function."""
    error = SystemError("a compiled function returned with an exception set")
    error.__cause__ = KeyboardInterrupt()
    return error
