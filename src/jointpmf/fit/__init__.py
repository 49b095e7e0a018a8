"""From rows or marginals to a fitted model: settings, a search over starts and ranks, a Solution.

In come a source of rows or a `MarginalSet`, and settings that are plain values.
Out goes a `Solution`: the model, and every fact about how it was found.
Begin with `rows.py` and `marginals.py`, the two public functions; `likelihood.py` and `coupled.py`
do one fit each, and `search.py` is how several of them are tried.
"""
