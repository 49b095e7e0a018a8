"""All code that numba or LLVM compiles, and the small functions that say how to call it.

Plain arrays, whole numbers and tuples of them come in; results are returned or written into arrays
that the caller owns, the same bits on one machine whatever the number of threads. Begin with
`posteriors.py`, then read docs/compiled.md for the loops that exist twice.
"""
