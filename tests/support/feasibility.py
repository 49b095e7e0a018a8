"""Whether weights and factors are those of a joint distribution."""

import numpy as np


def is_feasible(domain, weights, factors):
    """Tell whether weights and stacked columns are non-negative and sum to one."""
    parts = [np.asarray(weights)[:, None], *np.split(factors, domain.offsets[1:-1])]
    return all(p.min() >= 0 and np.abs(p.sum(axis=0) - 1).max() < 1e-12 for p in parts)


def feasible(pmf):
    """Tell whether a model's weights and columns are non-negative and sum to one."""
    return is_feasible(pmf.domain, pmf.weights, np.concatenate(pmf.factors))
