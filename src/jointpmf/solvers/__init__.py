"""Objectives, and the steps that lower them.

A `Point` (weights and factors) comes in, with rows or tables to compare it with; an `Outcome` with
a better point goes out, and no model is made on the way.
Begin with `loop.py`, the only iteration loop and what it asks of a solver; `em.py` is the shortest
of the solvers.
"""
