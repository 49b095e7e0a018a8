"""Where rows live, and the sums over them that a fit needs.

In come tables, files, batches and Dask or Spark frames; out goes a `Source`, which counts levels,
draws a sample, counts marginals and does the E-step, wherever its rows are.
Begin with `source.py`, which has the protocol and a table in memory; `fit/opening.py` makes one of
whatever the user has.
"""
