"""How far to trust a model, and which rank to choose.

A table, marginals or a fitted model come in; curves, tests, summaries and limits go out.
Begin with `rank.py`; `identifiability.py` tells whether a model is the only one that fits.
"""
