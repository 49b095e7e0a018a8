"""How every loop here is compiled: at its first call, never at import, and kept on disk."""

from __future__ import annotations

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,  # what C would call, which nobody does
}

compiled = njit(**_OPTIONS)
"""The decorator of the compiled functions that Python calls.

They release the GIL. "contract" lets a product and a sum become one instruction; nothing else may
be reordered, so the same machine gives the same bits.
"""

inner = njit(**{**_OPTIONS, "no_cpython_wrapper": True})
"""The decorator of those that only compiled functions call: nothing is compiled that unpacks
Python's objects for them."""

LANES = 4
"""Doubles in one vector register of the machines we know; ranks are padded to a multiple."""

LINE = 8
"""Doubles that come from memory together."""
