"""A population: whole rows of a model that meet tables as exactly as whole people can.

Rows are drawn systematically, component by component, and then changed by moves that the model
finds plausible until the tables are met (docs/math.md, eqs. 52 and 53).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.compiled.population import improve
from jointpmf.data.codes import Codes
from jointpmf.data.decode import decode, table_of
from jointpmf.errors import (
    JointPMFError,
    check_size,
    one_of,
    seeded_generator,
    text_of_count,
    whole_number,
)
from jointpmf.fit.progress import progress_bar
from jointpmf.predict.targets import Targets, tables_of
from jointpmf.probabilities import cumulative

if TYPE_CHECKING:
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.pmf import JointPMF

logger = logging.getLogger("jointpmf")

_MAX_PROPOSALS = 40_000_000
"""Moves that are proposed at most, if that allows `_SWEEPS`; more take longer and leave less."""

_SWEEPS = (20, 400)
"""The least and the most sweeps over all levels of all rows, however many these are."""

_HEAT = 0.7
"""The rise of the cost, in people squared, that is as good as none in the first sweep.

It falls to zero. More of it needs more sweeps, and leaves less in the end.
"""

_COLD = 0.1
"""The part of the sweeps, the last ones, in which the cost may not rise."""

_ALL_ROWS_EVERY = 10
"""Sweeps after which rows are moved too that are in no cell with too many people."""

_MET = 0.01
"""The error of a table, as a part of the rows, above which a warning says that it is not met."""

_TRIES = 1000
"""Draws after which rows without impossible combinations are given up."""


@dataclass(frozen=True)
class Residual:
    """What is left between a table and the rows that should meet it.

    Attributes
    ----------
    names : tuple of str
        The variables of the table.
    error : float
        The sum of the absolute differences of its published cells, as a part of all rows.
    largest : float
        The largest of them, in rows.
    """

    names: tuple[str, ...]
    error: float
    largest: float

    def __str__(self) -> str:
        """Say what is left in words."""
        return (
            f"{', '.join(self.names)}: {self.error:.2%} of the rows, a cell by {self.largest:.3g}"
        )


@dataclass(frozen=True, eq=False)
class Population:
    """Rows that meet tables, and what is left of each table.

    Attributes
    ----------
    rows : table or array
        Of the kind asked for.
    residuals : tuple of Residual
        One for each table, in their order.
    n_rows : int
        How many rows there are.
    is_stopped : bool
        Whether it was interrupted before it was done; the rows are the best until then.
    """

    rows: Any
    residuals: tuple[Residual, ...]
    n_rows: int
    is_stopped: bool = False

    @property
    def error(self) -> float:
        """The mean of the tables' errors; 0 without tables."""
        return float(np.mean([one.error for one in self.residuals])) if self.residuals else 0.0

    @property
    def unmet(self) -> tuple[Residual, ...]:
        """The tables that are not met by more than rounding to whole rows, the worst first."""
        far = [one for one in self.residuals if one.error > _MET and one.largest >= 1.5]
        return tuple(sorted(far, key=lambda one: -one.error))

    def __str__(self) -> str:
        """Say how well the tables are met."""
        stopped = "; interrupted" if self.is_stopped else ""
        if not self.residuals:
            return f"{self.n_rows} rows{stopped}"
        worst = max(self.residuals, key=lambda one: one.error)
        return (
            f"{self.n_rows} rows that differ from {len(self.residuals)} tables by {self.error:.2%} "
            f"of the rows on average, most from {worst}{stopped}"
        )

    def to_frame(self, backend: str = "polars") -> Any:
        """Return what is left of each table as a frame."""
        names = [", ".join(one.names) for one in self.residuals]
        levels = list(dict.fromkeys(names)) or [""]
        columns = {
            "table": (levels, np.array([levels.index(name) for name in names], np.int64)),
            "error": np.array([one.error for one in self.residuals]),
            "largest": np.array([one.largest for one in self.residuals]),
        }
        return table_of(columns, backend)


class _Draw(NamedTuple):
    """Rows, in the order of their components."""

    codes: np.ndarray
    component: np.ndarray


def population(
    pmf: JointPMF,
    n: Any,
    match: MarginalSet | None = None,
    random_state: Any = None,
    verbose: bool = False,
    backend: str = "polars",
) -> Population:
    """Return n rows of a model that meet the tables; see `JointPMF.population`."""
    n = whole_number(n, "the number of rows", 1)
    check_size(8 * n * (len(pmf.domain) + 2), f"{text_of_count(n)} rows")
    one_of(backend, ("polars", "pandas", "pyarrow", "codes"), "backend")
    generator = seeded_generator(random_state)
    tables = [] if match is None else tables_of(match, pmf.domain)
    targets = Targets(pmf.domain, tables, getattr(match, "impossible", ()), n)
    codes, is_stopped = _repaired(
        pmf, _allowed(pmf, n, targets, generator), targets, generator, verbose
    )
    found = Population(
        decode(Codes(pmf.domain, np.asfortranarray(generator.permutation(codes))), backend),
        tuple(_residuals(match, targets, codes)),
        n,
        is_stopped,
    )
    if found.unmet and not is_stopped:
        others = f", and {len(found.unmet) - 1} more" if len(found.unmet) > 1 else ""
        logger.warning("no rows were found that meet the table of %s%s", found.unmet[0], others)
    return found


def _systematic(pmf: JointPMF, n: int, generator: np.random.Generator) -> _Draw:
    """Return rows of which each component, and each level within it, has its share (eq. 53)."""
    sizes = _rounded(cumulative(pmf.weights[:, None]), np.array([n]), generator)[0]
    component = np.repeat(np.arange(pmf.rank), sizes)
    codes = np.empty((n, len(pmf.domain)), np.int32)
    for v, factor in enumerate(pmf.factors):
        counts = _rounded(cumulative(factor), sizes, generator)
        levels = np.tile(np.arange(len(factor)), pmf.rank)
        order = np.lexsort((generator.random(n), component))
        codes[order, v] = np.repeat(levels, counts.ravel())
    return _Draw(codes, component)


def _rounded(
    cumulative: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Return how many of `sizes` each level gets: its expected number, rounded up or down."""
    most = sizes[:, None].astype(float)
    ends = np.floor(most * cumulative + generator.random(most.shape))
    return np.diff(np.minimum(ends, most), axis=1, prepend=0.0).astype(np.int64)


def _allowed(pmf: JointPMF, n: int, targets: Targets, generator: np.random.Generator) -> _Draw:
    """Return rows without impossible combinations."""
    codes, component = _systematic(pmf, n, generator)
    for _ in range(_TRIES):
        wrong = np.flatnonzero(~targets.is_allowed(codes))
        if not len(wrong):
            order = np.argsort(component, kind="stable")
            return _Draw(codes[order], component[order])
        more = _systematic(pmf, len(wrong), generator)
        codes[wrong], component[wrong] = more
    raise JointPMFError(
        f"{len(wrong)} of {n} rows have combinations that are impossible, as the model gives "
        "others almost no probability"
    )


def _repaired(
    pmf: JointPMF, draw: _Draw, targets: Targets, generator: np.random.Generator, verbose: bool
) -> tuple[np.ndarray, bool]:
    """Return rows after the moves that bring them nearer to the tables, and whether it stopped."""
    if not targets.n_tables:
        return draw.codes, False
    moves = _Moves(pmf, draw, targets, generator)
    n_sweeps = int(np.clip(_MAX_PROPOSALS // moves.n_levels, *_SWEEPS))
    with progress_bar("population", n_sweeps, verbose) as advance:
        try:
            for k in range(n_sweeps):
                heat = _HEAT * max(0.0, 1 - k / ((1 - _COLD) * n_sweeps))
                if moves.sweep(heat, k % _ALL_ROWS_EVERY == 0) == 0:
                    break
                advance(f"{moves.error():.3%} of the rows away from a table")
        except KeyboardInterrupt:
            return moves.best, True
    return moves.best, False


class _Moves:
    """Rows that are moved, and the best of them until now."""

    def __init__(
        self, pmf: JointPMF, draw: _Draw, targets: Targets, generator: np.random.Generator
    ) -> None:
        self.targets = targets
        self.seed = generator.integers(2**63, size=1).astype(np.uint64)
        self.state = targets.state(draw.codes)
        variables = np.flatnonzero(np.diff(targets.maps[0]))
        self.n_levels = len(draw.codes) * max(len(variables), 1)
        self.model = (
            variables,
            np.asarray(pmf.domain.offsets),
            draw.component,
            np.searchsorted(draw.component, np.arange(pmf.rank + 1)),
            np.concatenate([cumulative(factor) for factor in pmf.factors], axis=1),
        )
        self.best, self.cost, self.least = draw.codes.copy(), 0.0, 0.0

    def sweep(self, heat: float, all_rows: bool) -> int:
        """Propose a move for every level, and return how many were proposed."""
        codes, cells, *tallies = self.state
        n_proposed, change = improve(
            self.model,
            codes,
            cells,
            self.targets.maps,
            tuple(self.targets.cells),
            tuple(tallies),
            self.targets.square,
            heat,
            all_rows,
            self.seed,
        )
        self.cost += change
        if self.cost < self.least:
            self.least = self.cost
            self.best[:] = codes
        return int(n_proposed)

    def error(self) -> float:
        """Return the mean error of the tables."""
        excess = self.targets.excess(self.state)
        return float(np.mean([np.abs(one).sum() for one in excess])) / self.targets.n_rows


def _residuals(
    match: MarginalSet | None, targets: Targets, codes: np.ndarray
) -> Sequence[Residual]:
    excess = targets.excess(targets.state(codes))
    return [
        Residual(
            tuple(marginal.names),
            float(np.abs(one).sum()) / targets.n_rows,
            float(np.abs(one).max(initial=0.0)),
        )
        for marginal, one in zip(match or (), excess, strict=True)
    ]
