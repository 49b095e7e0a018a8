"""What a model says about single rows: holes filled, items recommended.

A model and a table with missing cells come in; a table of the same kind, or recommendations, go
out. Begin with `impute.py`.
"""
