"""What only some machines have, and the tests that need it."""

import os

import pytest


def needs(what, is_here):
    """Return the mark of tests that are skipped where something is not.

    Where `JOINTPMF_REQUIRE` names it, among others between commas, they run and fail instead.
    """
    is_required = what in os.environ.get("JOINTPMF_REQUIRE", "").split(",")
    return pytest.mark.skipif(not is_here and not is_required, reason=f"there is no {what} here")
