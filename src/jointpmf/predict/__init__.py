"""What a model says about single rows: holes filled, items recommended, populations made.

A model and a table with missing cells, or tables to meet, come in; a table of the same kind,
recommendations or whole rows go out. Begin with `impute.py`.
"""
