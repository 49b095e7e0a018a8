"""How every loop here is compiled: at its first call, never at import, and kept on disk."""

from __future__ import annotations

from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
"""The decorator of all compiled functions.

They release the GIL. "contract" lets a product and a sum become one instruction; nothing else may
be reordered, so the same machine gives the same bits.
"""

LANES = 4
"""Doubles in one vector register of the machines we know; ranks are padded to a multiple."""
