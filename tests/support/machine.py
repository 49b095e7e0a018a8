"""What only some machines have, the tests that need it, and which instructions are used."""

import os

import pytest


def needs(what, is_here):
    """Return the mark of tests that are skipped where something is not.

    Where `JOINTPMF_REQUIRE` names it, among others between commas, they run and fail instead.
    """
    is_required = what in os.environ.get("JOINTPMF_REQUIRE", "").split(",")
    return pytest.mark.skipif(not is_here and not is_required, reason=f"there is no {what} here")


def instructions():
    """Return which instructions BLAS and the compiled loops use."""
    import scipy.linalg  # noqa: F401 has a BLAS of its own
    from numba.core.registry import cpu_target
    from threadpoolctl import threadpool_info

    blas = {library.get("architecture") for library in threadpool_info()} - {None}
    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    loops = "AVX2" if "+avx2" in features.split(",") else "no AVX2"
    return f"BLAS for {', '.join(sorted(blas))}; compiled loops for {name}, {loops}"


if __name__ == "__main__":
    print(instructions())  # noqa: T201
