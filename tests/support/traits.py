"""Trait models that tests know everything about."""

from dataclasses import replace

import numpy as np

import jointpmf as jp
from jointpmf.traits import Scores, Space, TraitModel

MIXED = jp.Domain(
    [
        jp.Variable("mood", (1, 2, 3, 4, 5)),
        jp.Variable("party", ("left", "middle", "right")),
        jp.Variable("member", (False, True)),
        jp.Variable("only", ("one",)),
        jp.Variable("age", ("<30", "30..60", ">=60"), (20.0, 45.0, 70.0), (0, 30, 60, 99)),
    ]
)
"""Ordered, nominal, binary, and a variable that cannot vary."""


def planted(domain=MIXED, n_points=128, n_traits=2, n_waves=0, seed=0, size=0.8):
    """Return a model with random coefficients at random points."""
    generator = np.random.default_rng(seed)
    n_levels = int(domain.offsets[-1])
    marginal = np.concatenate([np.full(size, 1 / size) for size in domain.sizes])
    scores = Scores.of(domain, marginal)
    space = Space.drawn(n_points, n_traits, n_waves, generator=generator)
    shape = int(scores.offsets[-1]), n_traits + n_waves
    intercepts = generator.normal(size=n_levels) / 2
    return TraitModel(scores, space, intercepts, size * generator.normal(size=shape))


def pmf_of(*models, weights=None, n_free=0, seed=0):
    """Return the joint PMF of trait models, and of components that have none."""
    domain = models[0].domain
    free = jp.random_pmf(domain, n_free, seed).factors if n_free else [np.empty((0, 0))] * 0
    columns = [np.split(model.factors, domain.offsets[1:-1]) for model in models]
    if n_free:
        columns.append(list(free))
    factors = [np.hstack(same) for same in zip(*columns, strict=True)]
    rank = factors[0].shape[1]
    own = np.full(rank, 1 / rank) if weights is None else weights / weights.sum()
    return jp.JointPMF(domain, own, factors, trait_models=models)


def turned(model, turn):
    """Return the same model in other coordinates of its space; it must have no waves."""
    space = model.space._replace(points=model.space.points @ turn)
    return replace(model, space=space, coefficients=model.coefficients @ np.linalg.inv(turn).T)
