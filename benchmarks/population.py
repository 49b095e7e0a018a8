"""Populations that meet fifteen tables, beside rows drawn independently from the same model.

The error of a table is Σ |people in a cell − people that it should have| / n, and the mean is over
the tables; a person in a wrong cell counts twice, where they are and where they should be. Needs
survey/gss_cat.csv.gz in the folder that JOINTPMF_DATA names.
"""

from __future__ import annotations

import os
from time import perf_counter

import numpy as np
import polars as pl

import jointpmf as jp
from benchmarks.measure import print_lines
from jointpmf.predict.targets import Targets

EDGES = {"age": [29, 37, 46, 54, 66], "tvhours": [1, 2, 3, 4]}
"""Where numbers are cut; those that are missing are a level of their own."""

PAIRS = [
    ("year", "marital"),
    ("marital", "age"),
    ("age", "race"),
    ("race", "rincome"),
    ("rincome", "partyid"),
    ("partyid", "relig"),
    ("relig", "denom"),
    ("denom", "tvhours"),
]
TRIPLES = [
    ("year", "race", "partyid"),
    ("marital", "age", "rincome"),
    ("age", "race", "partyid"),
    ("race", "relig", "tvhours"),
    ("year", "rincome", "tvhours"),
    ("marital", "partyid", "relig"),
    ("age", "relig", "denom"),
]
N_LARGE = 100_000


def survey(folder: str, most_levels: int) -> pl.DataFrame:
    """Return the survey, with the rarest levels of each variable put together."""
    rows = pl.read_csv(os.path.join(folder, "survey", "gss_cat.csv.gz"), null_values=["NA", ""])
    for name, edges in EDGES.items():
        numbers = rows[name].fill_null(-1).to_numpy()
        bins = np.where(numbers < 0, -1, np.digitize(numbers, edges))
        rows = rows.with_columns(pl.Series(name, bins))
    texts = rows.with_columns(pl.all().cast(pl.String))
    for name in texts.columns:
        common = texts[name].value_counts(sort=True)[name].to_list()[: most_levels - 1]
        kept = pl.col(name).is_in(common)
        if texts[name].n_unique() > most_levels:
            texts = texts.with_columns(pl.when(kept).then(name).otherwise(pl.lit("rest")))
    return texts


def error_of(codes: np.ndarray, match: jp.MarginalSet) -> float:
    """Return the mean error of the tables of rows."""
    targets = Targets(match.domain, match.measurements, (), len(codes))
    left = targets.excess(targets.state(np.ascontiguousarray(codes)))
    return float(np.mean([np.abs(one).sum() for one in left])) / len(codes)


def line(
    what: str, pmf: jp.JointPMF, match: jp.MarginalSet, n: int, asked: str
) -> tuple[str, str, str, str]:
    """Make a population, and independent draws beside it."""
    begin = perf_counter()
    people = pmf.population(n, match=match, random_state=0, backend="codes")
    took = perf_counter() - begin
    drawn = pmf.sample(n, random_state=0, backend="codes")
    logs = [pmf.log_probability(jp.Codes(pmf.domain, rows)).mean() for rows in (people.rows, drawn)]
    return (
        what,
        f"{people.error:.3%} of n in {took:.0f} s",
        f"independent {error_of(drawn, match):.2%}; nats per row {logs[0]:.2f} and {logs[1]:.2f}",
        asked,
    )


def large() -> tuple[jp.JointPMF, jp.MarginalSet]:
    """Return a model of 13 variables, and 15 tables of people who are drawn from it."""
    generator = np.random.default_rng(0)
    domain = jp.Domain.of_sizes(generator.integers(2, 12, 13).tolist())
    columns = [generator.dirichlet(np.full(size, 0.5), 40).T for size in domain.sizes]
    pmf = jp.JointPMF(domain, generator.dirichlet(np.full(40, 5.0)), columns)
    names = domain.names
    subsets: list[tuple[str, ...]] = [(names[k], names[k + 1]) for k in range(8)]
    subsets += [(names[k], names[k + 3], names[k + 6]) for k in range(7)]
    rows = jp.Codes(domain, pmf.sample(N_LARGE, random_state=1, backend="codes"))
    return pmf, jp.MarginalSet.from_table(rows, subsets=subsets)


def main() -> None:
    """Measure and print."""
    pmf, match = large()
    pmf.population(100, match=match, random_state=0)  # compiles
    lines = [line("100,000 × 13, 15 tables", pmf, match, N_LARGE, "under a minute")]
    folder = os.environ.get("JOINTPMF_DATA")
    sets = ((99, "gss_cat, all levels"), (5, "gss_cat, at most 5 levels"))
    for most, what in sets if folder else ():
        rows = survey(str(folder), most)
        match = jp.MarginalSet.from_table(rows, subsets=[*PAIRS, *TRIPLES])
        pmf = jp.fit_marginals(match, loss="likelihood", random_state=0).pmf
        lines.append(line(f"{what}, 15 tables", pmf, match, len(rows), "0.12 % of n"))
    print_lines("Populations that meet tables: what is left of them", lines)


if __name__ == "__main__":
    main()
