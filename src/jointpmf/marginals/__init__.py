"""What is known of a joint distribution: tables of a few of its variables.

In come codes to be counted, or tables that somebody published.
Out goes a `MarginalSet`: tables of probabilities over one domain, dense or sparse.
Begin with `marginal.py`, one such table; `counting.py` is how rows become tables.
`published.py` is how files do: labels (`layout.py`), cells by these (`reading.py`), totals.
"""
