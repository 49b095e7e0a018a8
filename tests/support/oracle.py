"""The truth by brute force: dense joints, sums over all cells, one einsum per term.

Nothing here is clever and nothing here imports the code that it checks, except for the plain
containers. Einsum over variables uses integer sublists with the component as index 0.
"""

from itertools import pairwise, product

import numpy as np

import jointpmf as jp


def cp_tensor(weights, factors):
    """Return the dense tensor of a weighted sum of rank-one terms."""
    operands = [np.asarray(weights), [0]]
    for n, factor in enumerate(factors):
        operands += [np.asarray(factor), [n + 1, 0]]
    return np.einsum(*operands, list(range(1, len(factors) + 1)))


def joint(pmf):
    """Return all joint probabilities of a JointPMF."""
    return cp_tensor(pmf.weights, pmf.factors)


def sum_onto(table, axes):
    """Return a dense table summed onto some of its axes, in the order asked."""
    rest = tuple(k for k in range(table.ndim) if k not in axes)
    kept = [k for k in range(table.ndim) if k in axes]
    return table.sum(axis=rest).transpose([kept.index(k) for k in axes])


def likelihood_of(variable, given):
    """Return evidence of any kind as a vector over levels."""
    if isinstance(given, np.ndarray):
        return given / (given.max() or 1.0)
    levels = given if isinstance(given, (set, list)) else {given}
    return np.array([float(level in levels) for level in variable.levels])


def conditioned(pmf, evidence):
    """Return the dense joint of the variables that the evidence does not name."""
    table = joint(pmf)
    for n, variable in enumerate(pmf.domain):
        if variable.name in evidence:
            shape = [-1 if k == n else 1 for k in range(table.ndim)]
            table = table * likelihood_of(variable, evidence[variable.name]).reshape(shape)
    free = [n for n, name in enumerate(pmf.domain.names) if name not in evidence]
    table = sum_onto(table, free)
    return table / table.sum()


def row_probability(pmf, row):
    """Return the probability of the cells of one row of codes that are not −1."""
    index = tuple(slice(None) if code < 0 else code for code in row)
    return joint(pmf)[index].sum()


def row_prediction(pmf, row, target):
    """Return P(target | the row's other observed cells)."""
    row = [-1 if n == target else code for n, code in enumerate(row)]
    index = tuple(slice(None) if code < 0 else slice(code, code + 1) for code in row)
    table = sum_onto(joint(pmf)[index], [target])
    return table / table.sum()


def count_table(rows, subset, sizes, weights=None):
    """Return the counts of one subset, row by row."""
    table = np.zeros([sizes[n] for n in subset])
    for m, row in enumerate(rows):
        cell = tuple(row[n] for n in subset)
        if min(cell) >= 0:
            table[cell] += 1 if weights is None else weights[m]
    return table


def coupled_cost(marginals, weights, factors, scales):
    """Return the coupled least-squares objective, from dense tables."""
    total = 0.0
    for subset, marginal, scale in zip(marginals.subsets, marginals, scales, strict=True):
        fitted = cp_tensor(weights, [factors[n] for n in subset])
        total += 0.5 * scale * ((np.asarray(marginal.table) - fitted) ** 2).sum()
    return total


def _unit(shape, position):
    """Return zeros with a single one."""
    array = np.zeros(shape)
    array[position] = 1.0
    return array


def jacobian(subsets, weights, factors, scales):
    """Return the Jacobian of √scale · model of every subset, weights first, cells by parameters.

    The model is multilinear, so a column is the model with one factor (or the weights) replaced by
    a unit: exact, no finite differences.
    """
    rank = len(weights)
    columns = [(_unit(rank, f), factors, None) for f in range(rank)]
    for n, factor in enumerate(factors):
        for position in np.ndindex(*factor.shape):
            changed = [*factors[:n], _unit(factor.shape, position), *factors[n + 1 :]]
            columns.append((weights, changed, n))
    return np.concatenate(
        [
            np.sqrt(scale)
            * np.column_stack(
                [
                    (moved is None or moved in subset)
                    * cp_tensor(w, [a[n] for n in subset]).ravel()
                    for w, a, moved in columns
                ]
            )
            for subset, scale in zip(subsets, scales, strict=True)
        ]
    )


def residual(marginals, weights, factors, scales):
    """Return √scale · (model − table) of every marginal, cell by cell."""
    return np.concatenate(
        [
            np.sqrt(scale)
            * (cp_tensor(weights, [factors[n] for n in s]) - np.asarray(m.table)).ravel()
            for s, m, scale in zip(marginals.subsets, marginals, scales, strict=True)
        ]
    )


def entropy(table):
    """Return the entropy of a dense table, cell by cell."""
    return -sum(p * np.log(p) for p in table.ravel() if p > 0)


def all_cells(domain):
    """Return every joint cell of a domain as rows of codes."""
    return np.array(list(product(*(range(size) for size in domain.sizes))))


def random_domain(generator, n_variables, largest=4):
    """Return a small domain of unequal alphabets."""
    return jp.Domain.of_sizes(generator.integers(1, largest + 1, n_variables).tolist())


def random_table(generator, domain, n_rows, holes=0.0):
    """Return rows of codes drawn level by level, some cells of which are missing."""
    rows = np.column_stack([generator.integers(0, size, n_rows) for size in domain.sizes])
    rows[generator.random(rows.shape) < holes] = -1
    return rows


def log_terms(weights, factors, row):
    """Return log(weight · probability of the row's observed cells) of every component."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(weights))
        for factor, code in zip(factors, row, strict=True):
            if code >= 0:
                logs = logs + np.log(factor[code])
    return logs


def log_probability(weights, factors, row):
    """Return the log-probability of a row's observed cells, the largest term set apart."""
    logs = log_terms(weights, factors, row)
    top = logs.max()
    return top + np.log(np.exp(logs - top).sum()) if top > -np.inf else -np.inf


def expected_counts(weights, factors, rows, row_weights):
    """Return C_n of every variable and C, row by row; a row that cannot happen adds nothing."""
    levels, components = [np.zeros(factor.shape) for factor in factors], np.zeros(len(weights))
    for row, row_weight in zip(rows, row_weights, strict=True):
        total = log_probability(weights, factors, row)
        if total == -np.inf:
            continue
        posterior = row_weight * np.exp(log_terms(weights, factors, row) - total)
        components += posterior
        for table, code in zip(levels, row, strict=True):
            if code >= 0:
                table[code] += posterior
    return levels, components


def em_step(weights, factors, rows, row_weights, pseudo_counts=None):
    """Return weights and factors after one EM step; a column without counts stays as it is."""
    levels, components = expected_counts(weights, factors, rows, row_weights)
    for n, extra in enumerate(pseudo_counts or []):
        levels[n] = levels[n] + np.asarray(extra)[:, None]
    moved = []
    for factor, counts in zip(factors, levels, strict=True):
        totals = counts.sum(axis=0)
        moved.append(np.where(totals > 0, counts / np.where(totals > 0, totals, 1), factor))
    return components / components.sum(), moved


def em_objective(weights, factors, rows, row_weights, pseudo_counts=None):
    """Return minus the mean of the log-likelihood of the rows and the log of the prior."""
    total = 0.0
    for row, row_weight in zip(rows, row_weights, strict=True):
        total += row_weight * log_probability(weights, factors, row)
    if pseudo_counts is not None:
        for factor, extra in zip(factors, pseudo_counts, strict=True):
            for column in factor.T:
                total += sum(a * np.log(p) for a, p in zip(extra, column, strict=True))
    return -total / sum(row_weights)


def merging_loss(counts, offsets, f, g):
    """Return what one component in place of two loses, level by level."""

    def fit(column):
        total = 0.0
        for begin, end in pairwise(offsets):
            part = column[begin:end]
            total += sum(c * np.log(c / part.sum()) for c in part if c > 0)
        return total

    return fit(counts[:, f]) + fit(counts[:, g]) - fit(counts[:, f] + counts[:, g])


def merged_components(counts, offsets, rank):
    """Return the counts left when the two cheapest components are merged again and again."""
    columns = list(np.array(counts).T)
    while len(columns) > rank:
        table = np.array(columns).T
        pairs = [(f, g) for f in range(len(columns)) for g in range(f)]
        f, g = min(pairs, key=lambda pair: merging_loss(table, offsets, *pair))
        columns[g] = columns[g] + columns[f]
        del columns[f]
    return np.array(columns).T


class StepwiseEM:
    """EM that sees each row once, docs/math.md, eqs. (32) and (33), in plain numpy."""

    def __init__(self, rows, row_weights, pmf, smoothing, towards):
        self.domain, self.smoothing, self.towards = pmf.domain, smoothing, towards
        self.total, self.seen = row_weights.sum(), self.level_counts(rows, row_weights)
        levels, components = expected_counts(pmf.weights, pmf.factors, rows, row_weights)
        components = components / self.total
        levels = [
            0.99 * level / self.total + 0.01 * seen[:, None] / self.total * components
            for level, seen in zip(levels, self.seen, strict=True)
        ]
        self.mean = self.mean_of_means = [components, *levels]
        self.log_likelihood = self.log_likelihood_of(pmf, rows, row_weights)

    def level_counts(self, rows, row_weights):
        return [
            np.array([row_weights[rows[:, n] == code].sum() for code in range(size)])
            for n, size in enumerate(self.domain.sizes)
        ]

    def log_likelihood_of(self, pmf, rows, row_weights):
        logs = [log_probability(pmf.weights, pmf.factors, row) for row in rows]
        return float(row_weights @ logs)

    def model(self, mean):
        components, *levels = mean
        factors = []
        for level, seen in zip(levels, self.seen, strict=True):
            size = len(level)
            share = np.full(size, 1 / size)
            if self.towards == "marginal":
                share = 0.999 * seen / seen.sum() + 0.001 / size
            counts = self.total * level + self.smoothing * size * share[:, None]
            factors.append(counts / counts.sum(axis=0))
        return jp.JointPMF(self.domain, components / components.sum(), factors)

    def add(self, rows, row_weights):
        new = row_weights.sum()
        self.total += new
        more = self.level_counts(rows, row_weights)
        self.seen = [a + b for a, b in zip(self.seen, more, strict=True)]
        pmf = self.model(self.mean)
        levels, components = expected_counts(pmf.weights, pmf.factors, rows, row_weights)
        batch = [counts / new for counts in (components, *levels)]
        self.mean = moved(self.mean, batch, (new / self.total) ** 0.6)
        self.mean_of_means = moved(self.mean_of_means, self.mean, 2 * new / (self.total + new))
        self.log_likelihood += self.log_likelihood_of(pmf, rows, row_weights)

    def pmf(self):
        return self.model(self.mean_of_means)


def moved(arrays, towards, part):
    """Return arrays that went a part of the way to others."""
    return [(1 - part) * a + part * b for a, b in zip(arrays, towards, strict=True)]
