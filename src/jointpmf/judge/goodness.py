"""Does a model fit its table: whole rows, every pair of variables, and p-values by simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from jointpmf.data.decode import table_of
from jointpmf.domain import MISSING, text_of
from jointpmf.errors import repeats, seeded_generator
from jointpmf.judge.pairs import Pairs, no_pairs, pair_residuals, pairs_of
from jointpmf.judge.text import aligned, rows_text
from jointpmf.rows.distinct import distinct_codes
from jointpmf.solvers.jacobian import n_free_parameters
from jointpmf.threads import one_blas_thread

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.domain import Domain
    from jointpmf.pmf import JointPMF

_FEWEST_EXPECTED = 5
"""Rows per cell below which the χ² distribution does not hold: the usual rule of thumb."""

_MOST_PAIRS = 10
"""Pairs that are printed."""


class _Fit(NamedTuple):
    """How far whole rows are from a model."""

    g_squared: float
    x_squared: float


@dataclass(frozen=True)
class Goodness:
    """How well a model fits a table; `print` shows it with the pairs that fit worst.

    Attributes
    ----------
    rank, n_parameters : int
        The model's components and free parameters.
    n_rows : float
        Rows with an observed cell, or the sum of their weights.
    n_patterns : int
        Sets of variables that rows observe: 1 if no cell is missing.
    n_cells : int
        Cells of the table of all variables; with missing cells, of those of all patterns together.
    df : int
        Degrees of freedom: cells − patterns − parameters, which may be negative.
    g_squared, x_squared : float
        The likelihood-ratio statistic and Pearson's.
    g_p_value, x_p_value : float
        Their p-values by the χ² distribution; NaN without degrees of freedom. They hold only if
        there are enough rows per cell, see `is_sparse`.
    n_bootstrap : int
        How many tables were simulated.
    g_bootstrap_p, x_bootstrap_p : float
        How often a simulated table fits as badly; NaN without simulated tables.
    pairs : Pairs
        The residual of each pair of variables, the worst first.
    """

    rank: int
    n_parameters: int
    n_rows: float
    n_patterns: int
    n_cells: int = field(repr=False)  # its digits can fill a page
    g_squared: float
    x_squared: float
    n_bootstrap: int
    g_bootstrap_p: float
    x_bootstrap_p: float
    pairs: Pairs = field(repr=False)
    domain: Domain = field(repr=False)

    @property
    def df(self) -> int:
        """Degrees of freedom: cells − patterns − parameters."""
        return self.n_cells - self.n_patterns - self.n_parameters

    @property
    def g_p_value(self) -> float:
        """The p-value of G² by the χ² distribution."""
        return _chi2_p_value(self.g_squared, self.df)

    @property
    def x_p_value(self) -> float:
        """The p-value of X² by the χ² distribution."""
        return _chi2_p_value(self.x_squared, self.df)

    @property
    def is_sparse(self) -> bool:
        """Whether there are too few rows per cell for the χ² distribution to hold."""
        return self.n_rows < _FEWEST_EXPECTED * self.n_cells

    @property
    def has_chi2(self) -> bool:
        """Whether the p-values by the χ² distribution can be trusted."""
        return self.df > 0 and not self.is_sparse

    def to_frame(self, backend: str = "polars") -> Any:
        """Return the pairs as a frame, the worst first; `residual` is χ² / df.

        `first_level` and `second_level` name the cell with the largest residual.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame.

        Examples
        --------
        >>> import jointpmf as jp
        >>> rows = jp.Codes(jp.Domain.of_sizes([2, 2]), np.array([[0, 0], [1, 1]] * 2))
        >>> found = jp.summary(jp.fit_rows(rows, rank=1).pmf, rows).goodness_of_fit()
        >>> found.to_frame().select("first", "second", "chi2", "df").rows()
        [('x0', 'x1', 4.0, 1)]
        """
        pairs, variables = self.pairs, self.domain.variables
        level = [
            [text_of(variables[n].levels[code]) for n, code in zip(at, codes, strict=True)]
            for at, codes in ((pairs.first, pairs.first_level), (pairs.second, pairs.second_level))
        ]
        columns = {
            "first": [self.domain.names[n] for n in pairs.first],
            "second": [self.domain.names[n] for n in pairs.second],
            "residual": pairs.residual,
            "chi2": pairs.chi2,
            "df": pairs.df,
            "bootstrap_p": pairs.bootstrap_p,
            "n_rows": pairs.n_rows,
            "first_level": level[0],
            "second_level": level[1],
            "observed": pairs.observed,
            "expected": pairs.expected,
        }
        return table_of(columns, backend)

    def sentences(self, advice: str = "use n_bootstrap for p-values") -> list[str]:
        """Return what the numbers mean, and which of them do not hold, with some advice."""
        said = []
        if math.isinf(self.g_squared):
            said.append("Some rows have probability zero under the model.")
        if self.df <= 0:
            said.append(
                f"There are {self.n_parameters} parameters for {self.n_cells - self.n_patterns} "
                "free cells: the χ² test is not defined."
            )
        elif self.is_sparse:
            said.append(
                f"With {rows_text(self.n_rows)} rows for {_count_text(self.n_cells)} cells the χ² "
                f"distribution does not hold{'' if self.n_bootstrap else f': {advice}'}."
            )
        if self.n_patterns > 1:
            said.append(
                f"Cells are missing in {self.n_patterns:,} patterns; each is compared given how "
                "often it occurs."
            )
        if self.n_bootstrap:
            said.append(f"Bootstrap p-values are from {self.n_bootstrap:,} simulated tables.")
        return said

    def test_lines(self) -> list[list[str]]:
        """Return G² and X² with their p-values as cells of text, below a heading."""
        has_chi2, has_bootstrap = self.has_chi2, self.n_bootstrap > 0
        lines = [
            ["", "value", *["χ² p"] * has_chi2, *["bootstrap p"] * has_bootstrap],
        ]
        for name, value, by_chi2, by_bootstrap in (
            ("G²", self.g_squared, self.g_p_value, self.g_bootstrap_p),
            ("X²", self.x_squared, self.x_p_value, self.x_bootstrap_p),
        ):
            p_values = [f"{by_chi2:.3g}"] * has_chi2 + [f"{by_bootstrap:.3g}"] * has_bootstrap
            lines.append([name, _statistic_text(value), *p_values])
        return lines

    def pair_lines(self, most: int) -> list[list[str]]:
        """Return the worst pairs as cells of text, below a heading."""
        pairs, names, has_bootstrap = self.pairs, self.domain.names, self.n_bootstrap > 0
        p_value = ["bootstrap p"] * has_bootstrap
        lines = [["pair", "χ²/df", *p_value, "worst cell", "observed", "expected"]]
        for k in range(min(most, len(pairs))):
            at, codes = pairs.at(k)
            levels = (self.domain.variables[n].levels[c] for n, c in zip(at, codes, strict=True))
            lines.append(
                [
                    ", ".join(names[n] for n in at),
                    f"{pairs.residual[k]:.2f}",
                    *[f"{pairs.bootstrap_p[k]:.3g}"] * has_bootstrap,
                    ", ".join(map(text_of, levels)),
                    f"{pairs.observed[k]:g}",
                    f"{pairs.expected[k]:.1f}",
                ]
            )
        return lines

    @property
    def df_text(self) -> str:
        """The degrees of freedom, which can be very many, as text."""
        return _count_text(self.df)

    @property
    def heading(self) -> str:
        """What was compared."""
        return (
            f"{rows_text(self.n_rows)} rows, rank {self.rank}, {self.n_parameters} parameters, "
            f"df {self.df_text}"
        )

    def __str__(self) -> str:
        """Return the statistics, what they mean, and the pairs that fit worst."""
        lines = [self.heading, *aligned(self.test_lines(), gap="  "), *self.sentences()]
        if len(self.pairs):
            lines += ["", *aligned(self.pair_lines(_MOST_PAIRS), gap="  ")]
            rest = len(self.pairs) - _MOST_PAIRS
            lines += [f"… and {rest:,} more pairs"] if rest > 0 else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the statistics, what they mean, and the pairs that fit worst."""
        from jointpmf.show.notebook import goodness_html

        return goodness_html(self)


def goodness_of_fit(
    pmf: JointPMF,
    codes: Codes,
    weights: np.ndarray | None,
    *,
    has_pairs: bool = True,
    n_bootstrap: int = 0,
    random_state: Any = None,
    verbose: bool = False,
) -> Goodness:
    """Return how well a model fits a table (docs/math.md, eqs. 54 and 55).

    Parameters
    ----------
    pmf : JointPMF
        A fitted model.
    codes, weights
        The rows that it was fitted to, and what each counts for.
    has_pairs : bool
        Whether pairs of variables are compared too.
    n_bootstrap, random_state, verbose
        As in `Summary.goodness_of_fit`.
    """
    n_bootstrap = repeats(n_bootstrap, "n_bootstrap", 0)
    generator = seeded_generator(random_state)
    with one_blas_thread:
        distinct, counts = distinct_codes(codes, weights)
        fit = _fit_of_rows(pmf, distinct, counts)
        pairs = pairs_of(pmf, distinct, counts) if has_pairs else no_pairs()
        simulated = _Simulated(pmf, fit, pairs)
        if n_bootstrap:
            simulated.run(codes, weights, n_bootstrap, generator, verbose)
    n_patterns, n_cells = _patterns_and_cells(distinct)
    by_rows = simulated.p_values(simulated.rows)
    return Goodness(
        rank=pmf.rank,
        n_parameters=n_free_parameters(pmf.domain, pmf.rank),
        n_rows=float(counts.sum()),
        n_patterns=n_patterns,
        n_cells=n_cells,
        g_squared=fit.g_squared,
        x_squared=fit.x_squared,
        n_bootstrap=simulated.done,
        g_bootstrap_p=float(by_rows[0]),
        x_bootstrap_p=float(by_rows[1]),
        pairs=pairs.worst_first(simulated.p_values(simulated.pairs)),
        domain=pmf.domain,
    )


class _Simulated:
    """How many simulated tables fit their models as badly as the table does: rows and pairs."""

    def __init__(self, pmf: JointPMF, fit: _Fit, pairs: Pairs) -> None:
        self._pmf, self._fit, self._residual = pmf, np.array(fit), pairs.residual
        self.rows, self.pairs, self.done = np.zeros(2), np.zeros(len(pairs)), 0

    def run(
        self,
        codes: Codes,
        weights: np.ndarray | None,
        count: int,
        generator: np.random.Generator,
        verbose: bool,
    ) -> None:
        """Simulate tables, fit a model of the same rank to each, and compare."""
        from jointpmf.judge.bootstrap import refitted, simulate
        from jointpmf.rows.source import Table

        def compare(simulated: Table) -> None:
            pmf = refitted(self._pmf, simulated, generator)
            rows = distinct_codes(simulated.codes, simulated.weights)
            fit, residual = _fit_of_rows(pmf, *rows), pair_residuals(pmf, *rows)
            self.rows += np.array(fit) >= self._fit
            self.pairs += residual >= self._residual
            self.done += 1

        simulate(self._pmf, Table.of_codes(codes, weights), count, compare, generator, verbose)

    def p_values(self, n_above: np.ndarray) -> np.ndarray:
        """Return p-values for how many tables were above; NaN if there was no table."""
        return (1 + n_above) / (1 + self.done) if self.done else np.full(len(n_above), math.nan)


def _fit_of_rows(pmf: JointPMF, distinct: Codes, counts: np.ndarray) -> _Fit:
    """Return G² and X² of distinct rows, given how often their cells are missing (eq. 54)."""
    _, pattern = _patterns(distinct)
    of_pattern = np.bincount(pattern, counts)[pattern]
    logs = np.log(counts) - np.log(of_pattern) - pmf.log_probability(distinct)
    with np.errstate(over="ignore"):
        x_squared = counts @ np.exp(logs) - counts.sum()
    return _Fit(float(2 * counts @ logs), float(x_squared))


def _patterns(codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Return which sets of variables rows observe, and the set of each row."""
    packed = np.packbits(codes.array != MISSING, axis=1)
    distinct, inverse = np.unique(packed, axis=0, return_inverse=True)
    return np.unpackbits(distinct, axis=1, count=len(codes.domain)), inverse.ravel()


def _patterns_and_cells(codes: Codes) -> tuple[int, int]:
    """Return how many sets of variables rows observe, and the cells of all their tables."""
    observed, _ = _patterns(codes)
    sizes = codes.domain.sizes
    cells = (
        math.prod(s for s, is_seen in zip(sizes, row, strict=True) if is_seen) for row in observed
    )
    return len(observed), sum(cells)


def _chi2_p_value(statistic: float, df: int) -> float:
    """Return a p-value; NaN where there is no such distribution."""
    return float(chi2.sf(statistic, float(df))) if 0 < df < 2**1000 else math.nan


def _count_text(count: int) -> str:
    """Return a count; a very large one is known by its power of ten."""
    return f"{count:,}" if abs(count) < 10**9 else f"about 1e{math.log10(count):.0f}"


def _statistic_text(value: float) -> str:
    return f"{value:.4f}" if value < 1e9 else f"{value:.4g}"
