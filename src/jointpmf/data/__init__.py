"""Any table ⇄ `Codes`.

In comes a data frame, an array, a file or ratings, with the user's own names and levels.
Out go `Codes`, small integers over a `Domain`, and at the end tables of the user's own kind again.
Begin with `encode.py`, which reads a column (`columns.py`) and learns its levels (`levels.py`).
"""
