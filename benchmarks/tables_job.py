"""Fit tables by one method, and write the probabilities of given rows and the seconds of the fit.

Arguments: the method, a file with the tables, and the file to write. Methods that are not ours run
in the peers' interpreter, so this file imports neither ours nor theirs before it is told which.
Tables come as counts. Peers that know one population get them as parts of the same number of rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

DENSE_CELLS = 2e7
"""Cells of the largest array with all variables that is tried, 160 MB."""

SWEEPS, STEADY = 1000, 1e-7
"""Of proportional fitting in plain numpy: the most, and the change of its error that ends it."""

Found = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Tables:
    """What a job is given: sizes of the variables, and for each table its axes and counts.

    The rows that were counted are there for the one method that tells what tables cost.
    """

    sizes: tuple[int, ...]
    axes: list[tuple[int, ...]]
    counts: list[np.ndarray]
    train: np.ndarray

    @property
    def total(self) -> float:
        """How many rows there were."""
        return float(max(table.sum() for table in self.counts))

    @property
    def scaled(self) -> list[np.ndarray]:
        """The tables, as if all had counted the same number of rows."""
        return [table * (self.total / table.sum()) for table in self.counts]

    @property
    def names(self) -> list[str]:
        """A name for each variable."""
        return [f"x{n}" for n in range(len(self.sizes))]

    def dense(self) -> np.ndarray:
        """Return the uniform distribution, or stop where it is too large."""
        if np.prod(self.sizes, dtype=float) > DENSE_CELLS:
            sys.exit("too large")
        return np.full(self.sizes, self.total / np.prod(self.sizes, dtype=float))


def ours(tables: Tables, loss: str = "auto") -> Found:
    """Fit as `fit_marginals` does by default, or with another loss."""
    import jointpmf as jp

    domain = jp.Domain.of_sizes(tables.sizes)
    marginals = [
        jp.Marginal([domain.names[n] for n in axes], counts, n_obs=counts.sum())
        for axes, counts in zip(tables.axes, tables.counts, strict=True)
    ]
    known = jp.MarginalSet(domain, marginals)
    pmf = jp.fit_marginals(known, loss=loss, random_state=0).pmf
    return lambda rows: np.exp(pmf.log_probability(jp.Codes(domain, rows)))


def from_rows(tables: Tables) -> Found:
    """Fit the rows that the tables were counted over, as `fit_rows` does by default."""
    import jointpmf as jp

    rows = jp.Codes(jp.Domain.of_sizes(tables.sizes), tables.train)
    pmf = jp.fit_rows(rows, random_state=0).pmf
    return lambda rows: np.exp(pmf.log_probability(jp.Codes(pmf.domain, rows)))


def warm_up() -> None:
    """Fit something small first: what numba compiles is kept on disk, and not a part of a fit."""
    counts = [np.full((3, 3), 9.0) + np.eye(3), np.full((3,) * 3, 3.0)]
    rows = np.random.default_rng(0).integers(3, size=(100, 4))
    small = Tables((3,) * 4, [(0, 1), (1, 2, 3)], counts, rows)
    for method in OURS:
        METHODS[method](small)


def plain_ipf(tables: Tables) -> Found:
    """Fit by iterative proportional fitting of one dense array, in plain numpy."""
    found, error = tables.dense(), np.inf
    for _ in range(SWEEPS):
        before, error = error, 0.0
        for axes, table in zip(tables.axes, tables.scaled, strict=True):
            others = tuple(n for n in range(found.ndim) if n not in axes)
            sums = found.sum(axis=others)
            error = max(error, float(np.abs(sums - table).max()) / tables.total)
            ratio = np.divide(table, sums, out=np.zeros_like(sums), where=sums > 0)
            found *= np.expand_dims(ratio, others)
        if abs(before - error) < STEADY:
            break
    return of_dense(found)


def ipfn(tables: Tables) -> Found:
    """Fit by the package ipfn."""
    from ipfn.ipfn import ipfn

    with np.errstate(all="ignore"):
        return of_dense(ipfn(tables.dense(), tables.scaled, list(tables.axes)).iteration())


def humanleague_ipf(tables: Tables) -> Found:
    """Fit by humanleague's proportional fitting."""
    import humanleague

    axes = [list(axes) for axes in tables.axes]
    return of_dense(humanleague.ipf(tables.dense(), axes, tables.scaled)[0])


def humanleague_qisi(tables: Tables) -> Found:
    """Fit by humanleague's quasirandom integer sampling of a proportional fit."""
    import humanleague

    axes = [list(axes) for axes in tables.axes]
    whole = [np.rint(table).astype(np.int64) for table in tables.scaled]
    return of_dense(humanleague.qisi(tables.dense(), axes, whole)[0].astype(float))


def of_dense(found: np.ndarray) -> Found:
    """Return what looks rows up in an array."""
    return lambda rows: found[tuple(rows.T)] / found.sum()


def mbi_mixture(tables: Tables) -> Found:
    """Fit mbi's mixture of products; its optimizer has no default, Adam is what its text names."""
    import optax
    from mbi.extensions.mixture_of_products import MixtureOfProductsEstimator

    estimator = MixtureOfProductsEstimator(optimizer=optax.adam(0.1))
    products = estimator.estimate(*measured(tables)).products
    factors = [np.asarray(products[name], float) for name in tables.names]

    def probabilities(rows: np.ndarray) -> np.ndarray:
        parts = np.ones((len(factors[0]), len(rows)))
        for factor, column in zip(factors, rows.T, strict=True):
            parts *= factor[:, column]
        return parts.mean(axis=0)

    return probabilities


def mbi_field(tables: Tables) -> Found:
    """Fit mbi's Markov random field by mirror descent, which it recommends."""
    from mbi import estimation, junction_tree, marginal_oracles

    domain, measurements = measured(tables)
    tree = junction_tree.make_junction_tree(domain, [m.clique for m in measurements])[0]
    if max(float(domain.size(clique)) for clique in tree.nodes) > DENSE_CELLS:
        sys.exit("too large")
    potentials = estimation.MirrorDescent().estimate(domain, measurements).potentials
    beliefs = marginal_oracles.message_passing_stable(potentials.expand(list(tree.nodes)), 1.0)

    def looked_up(clique: tuple[str, ...], rows: np.ndarray) -> np.ndarray:
        belief = beliefs.project(clique)
        table = np.asarray(belief.datavector(flatten=False), float)
        return table[tuple(rows[:, int(name[1:])] for name in belief.domain.attributes)]

    def probabilities(rows: np.ndarray) -> np.ndarray:
        found = np.ones(len(rows))
        for clique in tree.nodes:
            found *= looked_up(clique, rows)
        for one, other in tree.edges:
            shared = tuple(name for name in one if name in other)
            below = looked_up(shared, rows) if shared else np.ones(len(rows))
            found = np.divide(found, below, out=np.zeros_like(found), where=below > 0)
        return found

    return probabilities


def measured(tables: Tables) -> tuple:
    """Return the domain and the tables as mbi takes them."""
    from mbi import Domain, LinearMeasurement

    names = tables.names
    measurements = [
        LinearMeasurement(table.ravel(), tuple(names[n] for n in axes))
        for axes, table in zip(tables.axes, tables.scaled, strict=True)
    ]
    return Domain(names, tables.sizes), measurements


OURS, WARM_UP = ("jointpmf", "least squares", "from rows"), "warm up"

METHODS: dict[str, Callable[[Tables], Found]] = {
    "jointpmf": ours,
    "least squares": lambda tables: ours(tables, loss="squares"),
    "from rows": from_rows,
    "IPF in numpy": plain_ipf,
    "ipfn": ipfn,
    "humanleague ipf": humanleague_ipf,
    "humanleague qisi": humanleague_qisi,
    "mbi mixture": mbi_mixture,
    "mbi field": mbi_field,
}


def main(method: str, path: str = "", out: str = "") -> None:
    """Fit, and write the probabilities of the rows and the seconds."""
    warnings.simplefilter("ignore")
    if method in (*OURS, WARM_UP):
        warm_up()
    if method == WARM_UP:
        return
    with np.load(path) as file:
        axes = [tuple(file[f"axes_{k}"].tolist()) for k in range(file["count"])]
        counts = [file[f"counts_{k}"] for k in range(file["count"])]
        tables = Tables(tuple(file["sizes"].tolist()), axes, counts, file["train"])
        rows = file["rows"]
    begin = time.perf_counter()
    found = METHODS[method](tables)
    seconds = time.perf_counter() - begin
    np.savez(out, probabilities=found(rows), seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
