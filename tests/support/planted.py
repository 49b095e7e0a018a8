"""Models and marginals drawn at random, for tests that need any or know the truth."""

from itertools import combinations

import numpy as np

import jointpmf as jp
from support.oracle import random_domain


def planted(sizes, rank, seed=0, concentration=1.0, evenness=5.0):
    """Return a model of Dirichlet columns whose weights are not close to zero.

    A lower concentration makes its components easier to tell apart.
    """
    generator = np.random.default_rng(seed)
    columns = [generator.dirichlet(np.full(size, concentration), rank).T for size in sizes]
    weights = generator.dirichlet(np.full(rank, evenness))
    return jp.JointPMF(jp.Domain.of_sizes(sizes), weights, columns)


def random_marginals(seed, n_variables, n_subsets, largest=4):
    """Return marginals of random subsets, of mixed orders, that cover a random domain."""
    generator = np.random.default_rng(seed)
    domain = random_domain(generator, n_variables, largest)
    everything = [s for k in range(1, n_variables + 1) for s in combinations(range(n_variables), k)]
    chosen = [everything[k] for k in generator.integers(len(everything), size=n_subsets)]
    chosen += [(n,) for n in range(n_variables) if not any(n in s for s in chosen)]
    counts = [generator.integers(0, 3, [domain.sizes[n] for n in s]).astype(float) for s in chosen]
    for table in counts:
        table.flat[0] += 1
    names = [tuple(domain.names[n] for n in s) for s in chosen]
    marginals = [
        jp.Marginal(name, table, n_obs=table.sum())
        for name, table in zip(names, counts, strict=True)
    ]
    return jp.MarginalSet(domain, marginals), generator
