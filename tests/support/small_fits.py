"""A small table with holes, the model it was drawn from, and fits to it."""

from contextlib import contextmanager
from dataclasses import fields
from unittest import mock

import numpy as np

import jointpmf as jp
from jointpmf.fit import settings as fit_settings
from jointpmf.fit.settings import EFFORT, KINDS, Effort
from support import oracle

DOMAIN = jp.Domain.of_sizes([4, 2, 5, 3, 4])

FEW = Effort(most_starts=2, patience=2)
"""Two starts and few moves, where more would only take their time."""


@contextmanager
def tuned(effort=EFFORT, kinds=KINDS):
    """Replace the internal settings of the search."""
    with mock.patch.multiple(fit_settings, EFFORT=effort, KINDS=kinds):
        yield


def fit_rows(rows, rank="auto", *, effort=EFFORT, kinds=KINDS, **options):
    """Fit with other internal settings, and settings by their own names."""
    with tuned(effort, kinds):
        return jp.fit_rows(rows, rank, **settings(**options))


def settings(**options):
    """Return the arguments of a fit, given the fields of its settings by their own names."""
    found = dict(options)
    for name, setting in ("objective", jp.Likelihood), ("search", jp.Search):
        names = [field.name for field in fields(setting)]
        own = {key: found.pop(key) for key in names if key in found}
        if own:
            found[name] = setting(**own)
    if "scoring" in found:
        found["validation"] = jp.HiddenCells(found["validation"], found.pop("scoring"))
    return found


def separated_pmf(domain, weights, seed):
    """Return a model whose components are easy to tell apart."""
    generator = np.random.default_rng(seed)
    columns = [generator.dirichlet(np.full(size, 0.3), len(weights)).T for size in domain.sizes]
    return jp.JointPMF(domain, weights, columns)


def with_holes(rows, part, seed=1):
    holes = np.random.default_rng(seed).random(rows.shape) < part
    return np.where(holes, jp.MISSING, rows)


TRUTH = separated_pmf(DOMAIN, [0.5, 0.3, 0.2], seed=0)
ROWS = with_holes(TRUTH.sample(400, random_state=0, backend="codes"), 0.3)
OTHER_ROWS = with_holes(TRUTH.sample(200, random_state=9, backend="codes"), 0.3)


def fit(rows=ROWS, rank=3, **options):
    """Fit, from few starts."""
    options = {"random_state": 0, "domain": DOMAIN, "max_iter": 200, "effort": FEW} | options
    return fit_rows(rows, rank, **options)


def assert_same_bits(first, second):
    np.testing.assert_array_equal(first.weights, second.weights)
    for a, b in zip(first.factors, second.factors, strict=True):
        np.testing.assert_array_equal(a, b)


def observed(rows):
    return rows[(rows >= 0).any(axis=1)]


def pseudo_counts(rows, smoothing, towards="uniform"):
    """Return what smoothing adds to each level, by the definition (docs/math.md, eq. 21)."""
    added = []
    for n, size in enumerate(DOMAIN.sizes):
        share = np.full(size, 1 / size)
        if towards == "marginal":
            counts = oracle.count_table(rows, [n], DOMAIN.sizes)
            share = 0.999 * counts / counts.sum() + 0.001 * share
        added.append(smoothing * size * share)
    return added


def cost(pmf, rows, **smoothing):
    """Return minus the mean log-likelihood with the prior, by brute force."""
    rows = observed(rows)
    added = pseudo_counts(rows, **smoothing) if smoothing else None
    return oracle.em_objective(pmf.weights, pmf.factors, rows, np.ones(len(rows)), added)


def note_outcomes(monkeypatch):
    """Return a list that every run of the loop by maximum likelihood adds its outcome to."""
    from jointpmf.fit import likelihood

    ended, loop = [], likelihood.iterate

    def noted(*args, **options):
        ended.append(loop(*args, **options))
        return ended[-1]

    monkeypatch.setattr(likelihood, "iterate", noted)
    return ended


def failing(function, calls, which, error=jp.JointPMFError):
    """Return the function, made to fail at some of its calls."""

    def wrapped(*args):
        calls.append(args)
        if len(calls) in which:
            raise error(f"call {len(calls)} failed")
        return function(*args)

    return wrapped
