"""Where a solver may begin.

Rows or tables and a rank come in; a `Point` goes out, in closed form, at rows of the data, or at
random. Begin with `random.py`; `algebraic.py` has the closed form.
"""
