"""Ctrl-C at any moment of small fits of every kind: once there is a model, it is returned."""

from functools import cache

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.fit.settings import Effort, Kinds, Traits
from support.feasibility import feasible
from support.interrupted import Interrupt, in_compiled_code
from support.small_fits import DOMAIN, ROWS, fit, fit_rows

MANY = Effort(many_rows=200, passes=8, sample_rows=100, step_work=0, patience=1, step_rows=64)
SMALL = Effort(most_starts=2, patience=2, work=1e5, sample_work=1e6, rows_per_component=20)
KINDS = Kinds(row_ranks=(2, 4), cell_points=(16, 32), step_points=16)
FEW = {"n_average": 2, "kinds": KINDS}
FRAME = pd.DataFrame(np.where(ROWS < 0, np.nan, ROWS), columns=list("abcde"))
COUNTS = jp.MarginalSet.from_table(jp.Codes(DOMAIN, ROWS), 2)
EXACT = jp.random_pmf(DOMAIN, 2, 0).marginals(3)
OPTIONS = {"random_state": 0, "max_iter": 12}

FITS = {
    "starts": lambda: fit(max_iter=30),
    "a sample first": lambda: fit(effort=SMALL, max_iter=30),
    "many rows": lambda: fit(effort=MANY, max_iter=30),
    "batches": lambda: fit([FRAME[:200], FRAME[200:]], domain=None, effort=MANY, max_iter=30),
    "average": lambda: fit(validation=0.2, n_average=2, max_iter=30),
    "traits": lambda: fit(rank=16, traits=Traits(2), validation=0.2, max_iter=12),
    "any rank": lambda: fit_rows(ROWS, domain=DOMAIN, **FEW, **OPTIONS),
    "hidden cells": lambda: fit_rows(
        jp.Codes(DOMAIN, ROWS), validation=jp.HiddenCells(0.1), **FEW, **OPTIONS
    ),
    "pairs by squares": lambda: jp.fit_marginals(COUNTS, 3, loss="squares", **OPTIONS),
    "exact tables": lambda: jp.fit_marginals(EXACT, random_state=0),
    "counts": lambda: jp.fit_marginals(COUNTS, 2, **OPTIONS),
}


@cache
def _whole(name):
    """Return how many functions a fit calls, and how many before it has a model."""
    FITS[name]()  # what is compiled or cached, is now
    whole = Interrupt()
    whole.run(FITS[name])
    return whole.first, whole.n_calls


def attack(data):
    """Interrupt a fit anywhere after its first model."""
    name = data.draw(st.sampled_from(sorted(FITS)))
    first, n_calls = _whole(name)
    moment = data.draw(st.integers(first + 1, n_calls - 1))
    error = KeyboardInterrupt if data.draw(st.booleans()) else in_compiled_code()
    stopped = Interrupt(moment, error)
    try:
        found = stopped.run(FITS[name])
    except BaseException as lost:
        raise AssertionError(f"{name} was lost at {stopped.where}: {lost!r}") from None
    assert feasible(found.pmf), (name, stopped.where)
    assert found.status is jp.Status.STOPPED, (name, stopped.where)
