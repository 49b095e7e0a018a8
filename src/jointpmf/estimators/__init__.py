"""The scikit-learn classes: parameters in, fitted attributes out, no mathematics.

A table may be a pandas, Polars or PyArrow table or an array; missing cells are summed out, and
levels that were not seen in training say nothing. Begin with `base.py`, which has the parameters,
the reading of tables and the call of `fit_rows`.
"""
