"""How close to the truth: coupled triples, EM from several starts, and the Cramér–Rao prediction.

Eight variables of five levels, rank 6, 20 % of the cells missing, 20 random models, growing numbers
of rows. The measure is KL(truth ‖ fit) in nats. Maximum likelihood and least squares both put some
cells at exactly zero, where the divergence is infinite; so every fit is averaged with the product
of its own marginals, which gets the weight of one row. Results are written beside this file.

The prediction: to first order the divergence of an efficient estimator is, in the mean,
trace(I J⁻¹) / (2 rows), with I the Fisher information of a complete row and J that of a row with
holes; without holes, half the number of parameters per row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from rich.progress import track

import jointpmf as jp
from jointpmf.show import plots

SIZES, RANK, MISSING_PART, N_TRUTHS = [5] * 8, 6, 0.2, 20
N_ROWS = (1_000, 10_000, 100_000)
RESULTS = Path(__file__).parent / "results"

SMOOTHED = jp.Likelihood(smoothing=1.0, towards="marginal")
METHODS: dict[str, Callable[[jp.Codes, int], jp.JointPMF]] = {
    "coupled triples": lambda rows, seed: coupled(rows, seed),
    "EM from random": lambda rows, seed: em(rows, seed, start="random"),
    "EM from coupled": lambda rows, seed: em(rows, seed, start=inside(coupled(rows, seed))),
    "EM, default": lambda rows, seed: em(rows, seed),
    "EM, smoothing 1": lambda rows, seed: em(rows, seed, SMOOTHED),
}


def coupled(rows: jp.Codes, seed: int) -> jp.JointPMF:
    """Return the least-squares fit to all triples."""
    triples = jp.MarginalSet.from_table(rows, order=3)
    return jp.fit_marginals(
        triples, RANK, loss="squares", weighting="counts", random_state=seed
    ).pmf


def inside(pmf: jp.JointPMF) -> jp.JointPMF:
    """Return a model with a fifth of the marginals in every column: EM never leaves a zero."""
    factors = [0.8 * factor + 0.2 * (factor @ pmf.weights)[:, None] for factor in pmf.factors]
    return jp.JointPMF(pmf.domain, pmf.weights, factors)


def em(
    rows: jp.Codes,
    seed: int,
    objective: jp.Likelihood | None = None,
    start: str | jp.JointPMF = "auto",
) -> jp.JointPMF:
    """Return the maximum-likelihood fit."""
    return jp.fit_rows(
        rows,
        RANK,
        objective=objective or jp.Likelihood(),
        search=jp.Search(start=start),
        random_state=seed,
    ).pmf


def main() -> None:
    """Fit, write the table and the picture."""
    lines = []
    for seed in track(range(N_TRUTHS), "estimation"):
        truth, generator = planted(seed), np.random.default_rng(1000 + seed)
        for n_rows in N_ROWS:
            rows = holed(truth, n_rows, generator)
            for name, fit in METHODS.items():
                divergence = jp.kl_divergence(truth, with_one_row(fit(rows, seed), n_rows)).value
                lines.append((seed, n_rows, name, divergence))
            lines.append((seed, n_rows, "Cramér–Rao", predicted(truth, rows)))
    table = pl.DataFrame(lines, ["model", "rows", "method", "kl"], orient="row")
    RESULTS.mkdir(exist_ok=True)
    table.write_csv(RESULTS / "estimation.csv")
    (RESULTS / "estimation.md").write_text(text(table))
    draw(table, RESULTS / "estimation.png")
    print(text(table))


def planted(seed: int) -> jp.JointPMF:
    """Return a model whose columns are drawn uniformly from the simplex."""
    generator = np.random.default_rng(seed)
    columns = [generator.dirichlet(np.ones(size), RANK).T for size in SIZES]
    return jp.JointPMF(jp.Domain.of_sizes(SIZES), generator.dirichlet(np.full(RANK, 5.0)), columns)


def holed(truth: jp.JointPMF, n_rows: int, generator: np.random.Generator) -> jp.Codes:
    """Return rows of a model, some cells missing completely at random."""
    rows = np.array(truth.sample(n_rows, random_state=generator, backend="codes"))
    rows[generator.random(rows.shape) < MISSING_PART] = jp.MISSING
    return jp.Codes(truth.domain, rows)


def with_one_row(pmf: jp.JointPMF, n_rows: int) -> jp.JointPMF:
    """Return a fit averaged with the product of its marginals, lifted off zero, as one row."""
    singles = [0.99 * factor @ pmf.weights + 0.01 / len(factor) for factor in pmf.factors]
    independent = jp.JointPMF(pmf.domain, [1.0], [single[:, None] for single in singles])
    return jp.average([pmf, independent], [n_rows, 1])


def predicted(truth: jp.JointPMF, rows: jp.Codes) -> float:
    """Return the divergence of an efficient estimator, to first order."""
    sample = np.array(truth.sample(200_000, random_state=0, backend="codes"))
    complete = information(truth, sample)
    sample[np.random.default_rng(0).random(sample.shape) < MISSING_PART] = jp.MISSING
    return float(np.trace(np.linalg.solve(information(truth, sample), complete))) / (
        2 * rows.n_rows
    )


def information(truth: jp.JointPMF, rows: np.ndarray) -> np.ndarray:
    """Return the Fisher information of one row, a mean over many."""
    return sum(
        score.T @ score
        for part in np.array_split(rows, len(rows) // 4096 + 1)
        for score in [scores(truth, part)]
    ) / len(rows)


def scores(truth: jp.JointPMF, rows: np.ndarray) -> np.ndarray:
    """Return each row's derivative by the free parameters: all but the last of each simplex."""
    posterior = truth.responsibilities(jp.Codes(truth.domain, rows))
    ratios = posterior / truth.weights
    parts = [ratios[:, :-1] - ratios[:, -1:]]
    for n, factor in enumerate(truth.factors):
        ratio = (
            posterior[:, None, :]
            / factor
            * (rows[:, n, None, None] == np.arange(len(factor))[:, None])
        )
        parts.append((ratio[:, :-1] - ratio[:, -1:]).reshape(len(rows), -1))
    return np.hstack(parts)


def text(table: pl.DataFrame) -> str:
    """Return means and standard errors of the divergences as a table."""
    title = "KL(truth ‖ fit), nats: mean ± standard error over the models"
    return text_of_means(table, title, [*METHODS, "Cramér–Rao"], "kl", 5, "benchmarks.estimation")


def text_of_means(
    table: pl.DataFrame, title: str, methods: list[str], column: str, digits: int, module: str
) -> str:
    """Return the mean and standard error of a column by rows and method, as a page."""
    lines = [
        f"# {title}",
        "",
        f"{len(SIZES)} variables of {SIZES[0]} levels, rank {RANK}, {MISSING_PART:.0%} of the "
        f"cells missing, {table['model'].n_unique()} models (`python -m {module}`).",
        "",
        "| rows | " + " | ".join(methods) + " |",
        "|---:|" + "---:|" * len(methods),
    ]
    for n_rows in N_ROWS:
        cells = []
        for method in methods:
            chosen = table.filter(pl.col("rows") == n_rows, pl.col("method") == method)
            found = chosen[column].to_numpy()
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
            cells.append(f"{found.mean():.{digits}f} ± {error:.{digits}f}")
        lines.append(f"| {n_rows:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(table: pl.DataFrame, path: Path) -> None:
    """Draw the divergence, as a multiple of the prediction, against rows, a line per method."""
    bound = np.array([mean_of(table, n_rows, "Cramér–Rao") for n_rows in N_ROWS])
    with plots.style():
        figure = Figure(figsize=(7, 4.5))
        ax = figure.subplots()
        for k, (method, marker) in enumerate(zip(METHODS, plots.MARKERS, strict=False)):
            means = np.array([mean_of(table, n_rows, method) for n_rows in N_ROWS])
            shifted = np.array(N_ROWS) * 1.03 ** (k - 2)  # lest equal ones hide each other
            ax.plot(shifted, means / bound, marker=marker, label=method)
        ax.axhline(1, color="black", linestyle="--", label="Cramér–Rao prediction")
        ax.set(xscale="log", xlabel="rows", ylabel="KL(truth ‖ fit) / prediction", ylim=(0, None))
        ax.set_title("Eight variables of five levels, rank 6, 20 % missing; mean of 20 models")
        ax.legend(loc="lower left", ncols=2)
        figure.savefig(path, dpi=120)


def mean_of(table: pl.DataFrame, n_rows: int, method: str) -> float:
    """Return the mean divergence of a method."""
    chosen = table.filter(pl.col("rows") == n_rows, pl.col("method") == method)
    return float(chosen["kl"].to_numpy().mean())


if __name__ == "__main__":
    main()
