"""Pictures of fits and models: each function draws on one Axes and returns it.

The only file that knows matplotlib (extra `plots`), which is imported when something is drawn. All
pictures share a style, which ends with them: the user's own settings stay as they are, fonts and
the colours of text and background are taken from them, and matplotlib says so where a font lacks a
character of a name. Curves have colours of Okabe and Ito, which people with any kind of colour
vision can tell apart; equal steps of a heat map look equally large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, text_of
from jointpmf.errors import JointPMFError, seeded_generator, shown
from jointpmf.judge.information import component_information, pairwise_mutual_information
from jointpmf.judge.rank import RankCurve
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.solvers.loop import Restart, Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, ORANGE = "#0072B2", "#D55E00", "#E69F00"

COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#56B4E9", ORANGE)
"""The colours of curves, in the order in which they are taken."""

MARKERS = "oDv^sP"
"""The marks on curves, for those who see no colours."""

GREY = "0.55"
"""What is seen on white and on black, and stands back."""

HEAT = (
    "#F7FAFC",
    "#CCDFEE",
    "#A2C4E0",
    "#77A9D2",
    "#4A8EC2",
    "#0673B3",
    "#0A588D",
    "#0D3D68",
    "#0B2545",
)
"""The colours of heat maps from zero on, at equal distances in Oklab."""

STYLE: dict[Any, Any] = {
    "axes.prop_cycle": f"cycler(color={list(COLOURS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "font.size": 9.0,
    "legend.edgecolor": "none",
    "legend.facecolor": "inherit",
    "legend.framealpha": 0.75,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
}

REFERENCE_LINES = ("--", "-", ":", "-.")
"""How the lines of methods without a rank are drawn, in this order."""

MOST_LEVELS, MOST_COMPONENTS, MOST_VARIABLES = 80, 30, 40
"""What a heat map shows of a large model unless it is told which variables."""

TELLING = "those that tell most"

MOST_POINTS, N_WORST = 2000, 3
"""Cells of marginals that are drawn one by one, and those that are named."""

MOST_PREDICTED, N_BINS = 100_000, 10
"""Cells of a table that are predicted for a reliability curve, and its points."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of this library inside of the context; afterwards all is as before.

    Examples
    --------
    >>> import jointpmf as jp
    >>> from matplotlib.figure import Figure
    >>> with jp.plots.style():
    ...     ax = Figure().subplots()
    >>> ax.spines["top"].get_visible()
    False
    """
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError:
        raise JointPMFError("plots need the extra: pip install 'jointpmf[plots]'") from None
    with rc_context(STYLE):
        yield


def convergence(solution: Solution, ax: Axes | None = None) -> Axes:
    """Draw how the objective fell, iteration by iteration, and return the Axes.

    The best iterate is marked, which is the model of the solution. The objective of the validation
    part is drawn where there is one, on a scale of its own at the right if it is of another size
    (of hidden cells, say, and not of rows). Marks at the right end show where other starts ended.
    Of an average of several fits it is the history of one of them.

    Parameters
    ----------
    solution : Solution
        What a fit returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
    >>> rows = truth.sample(500, random_state=0, backend="codes")
    >>> ax = jp.plots.convergence(jp.fit_rows(rows, rank=2, random_state=0))
    >>> ax.get_xlabel()
    'iteration'
    """
    _check_kind(solution, Solution, "convergence")
    iterations = np.array([step.iteration for step in solution.history])
    objective = _finite([step.objective for step in solution.history])
    held_out = _finite([step.validation for step in solution.history])
    is_coupled = solution.marginals is not None or bool(solution.source)
    unit = "½ squared error of the marginals" if is_coupled else "−log-likelihood per row (nats)"
    with _drawing(ax) as ax:
        ax.set(xlabel="iteration", ylabel=unit)
        if np.isnan(objective).all():
            return _say(ax, "There is no iteration to draw.")
        right = ax if _is_alike(objective, held_out) else _right_of(ax)
        ax.plot(iterations, objective, color=BLUE, label="objective")
        judged = objective
        best = len(objective) - 1 - int(np.nanargmin(objective[::-1]))  # the last one of equals
        if not np.isnan(held_out).all():
            right.plot(iterations, held_out, color=VERMILION, ls="--", label="validation part")
            judged, best = held_out, int(np.nanargmin(held_out))
        label = f"best: iteration {iterations[best]:,}"
        right.plot(iterations[best], judged[best], "o", color=_ink(ax), label=label, zorder=3)
        _mark_ends(ax, int(iterations[-1]), solution.restarts)
        _scale(ax, objective, int(iterations[-1]))
        _legend(right, *dict.fromkeys((ax, right)))
    return ax


def _is_alike(objective: np.ndarray, held_out: np.ndarray) -> bool:
    """Tell whether two curves can share a scale; one that is not there can."""
    if np.isnan(held_out).all():
        return True
    first, second = np.nanmedian(objective), np.nanmedian(held_out)
    return bool(abs(first - second) < max(abs(first), np.ptp(objective[~np.isnan(objective)])) / 2)


def _right_of(ax: Axes) -> Axes:
    """Return an Axes for the validation part, with its scale at the right."""
    right = ax.twinx()
    right.spines["right"].set_visible(True)
    right.set_ylabel("validation part", color=VERMILION)
    return right


def _mark_ends(ax: Axes, at: int, restarts: Sequence[Restart]) -> None:
    ends = _finite([restart.objective for restart in restarts])
    ends = ends[~np.isnan(ends)]
    if len(ends):
        label = f"ends of {len(ends)} starts"
        ax.plot(np.full(len(ends), at), ends, "_", color=GREY, ms=9, label=label, zorder=1)


def _scale(ax: Axes, objective: np.ndarray, n_iter: int) -> None:
    """Show decades of the objective, and of iterations, where most would be in a corner else."""
    lowest, highest = np.nanmin(objective), np.nanmax(objective)
    heights = objective
    if lowest > 0 and highest > 10 * lowest:
        ax.set_yscale("log")
        heights = np.log(objective)
    elif highest - lowest < 1e-6 * abs(lowest):  # rounding is no fall
        ax.set_ylim(lowest - 1e-3 * abs(lowest), highest + 1e-3 * abs(lowest))
    left = heights - np.nanmin(heights)
    if n_iter > 50 and left[len(left) // 10] < 0.1 * left[0]:
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xlim(0, 1.2 * n_iter)
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        _whole_numbers(ax)


def marginal_fit(
    pmf: JointPMF | Solution, marginals: MarginalSet | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the observed against the fitted cells of marginals, and return the Axes.

    Both axes show square roots, on which the noise of counting is equally large everywhere: where
    the marginals know their number of observations, a band shows what two standard errors of it
    explain, for the fewest observations if they differ. Of the cells that are farther from the
    diagonal than two standard errors of their own table, the farthest are named. More than two
    thousand cells are drawn as a density.

    Parameters
    ----------
    pmf : JointPMF or Solution
        A model, or a fit to marginals.
    marginals : MarginalSet, optional
        What was observed; by default what the solution was fitted to.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
    >>> rows = truth.sample(500, random_state=0, backend="codes")
    >>> ax = jp.plots.marginal_fit(truth, jp.MarginalSet.from_table(rows, order=2))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('fitted probability', 'observed probability')
    """
    if isinstance(pmf, Solution):
        marginals = pmf.marginals if marginals is None else marginals
        pmf = pmf.pmf
    _check_kind(pmf, JointPMF, "marginal_fit")
    if marginals is None:
        raise JointPMFError(
            "give the marginals to compare with, such as MarginalSet.from_table(table, order=2)"
        )
    _check_kind(marginals, MarginalSet, "marginal_fit")
    cells = _Cells.of(pmf, marginals)
    top = 1.05 * max(cells.observed.max(), cells.fitted.max())
    with _drawing(ax, 5.6, 4.9) as ax:
        _draw_cells(ax, cells, top)
        _draw_diagonal(ax, top)
        _draw_band(ax, [one.n_obs for one in marginals if one.n_obs is not None], top)
        n_named = min(max(int(_cell_points(ax, (1, 1))[1]) // 90, 1), N_WORST)
        worst = cells.worst(math.sqrt(top))[:n_named]
        for k, marker in zip(worst, MARKERS, strict=False):
            at = cells.fitted[k], cells.observed[k]
            ax.plot(*at, marker, color=VERMILION, ms=6, label=_entry(cells.name(k)))
        _square_roots(ax, top)
        ax.set(xlabel="fitted probability", ylabel="observed probability", aspect="equal")
        n_above = sum(cells.observed[k] > cells.fitted[k] for k in worst)
        free = "lower right" if 2 * n_above > len(worst) else "upper left"
        _legend(ax, loc=free, borderaxespad=0.3, fontsize="small")
    return ax


def _draw_diagonal(ax: Axes, top: float) -> None:
    """Draw where observed and fitted are equal."""
    values = np.linspace(0, math.sqrt(top), 200) ** 2
    ax.plot(values, values, color=GREY, lw=1, zorder=1)


def _draw_band(ax: Axes, n_obs: Sequence[float], top: float) -> None:
    """Draw two standard errors around the diagonal, those of the fewest observations."""
    if not n_obs:
        return
    roots = np.linspace(0, math.sqrt(top), 200)
    width = 2 * _standard_error(min(n_obs))
    ends = np.maximum(roots - width, 0) ** 2, (roots + width) ** 2
    of = "" if min(n_obs) == max(n_obs) else f" of {min(n_obs):,.0f} observations"
    label = f"two standard errors{of}"
    ax.fill_between(roots**2, *ends, color=GREY, alpha=0.2, lw=0, label=label)


def _standard_error(n_obs: float | None) -> float:
    """Return that of the root of a cell; none is known without a number of observations."""
    return 0.0 if n_obs is None else 0.5 / math.sqrt(n_obs)


class _Cells(NamedTuple):
    """The cells of all marginals, one after the other."""

    marginals: MarginalSet
    observed: np.ndarray
    fitted: np.ndarray

    @classmethod
    def of(cls, pmf: JointPMF, marginals: MarginalSet) -> _Cells:
        """Return the cells as they are in marginals and in a model, which must know them."""
        model = pmf.marginal(marginals.domain.names)
        for own, other in zip(model.domain, marginals.domain, strict=True):
            if own.levels != other.levels:
                raise JointPMFError(f"{own.name!r} has other levels in the model than in the table")
        fitted = model.marginals(subsets=[marginal.names for marginal in marginals])
        return cls(marginals, *map(_flat, (marginals, fitted)))

    @property
    def noise(self) -> np.ndarray:
        """The standard error of the root of each cell, by the observations of its marginal."""
        errors = [_standard_error(marginal.n_obs) for marginal in self.marginals]
        return np.repeat(errors, [math.prod(marginal.table.shape) for marginal in self.marginals])

    def worst(self, top: float) -> list[int]:
        """Return the cells that lie farthest from the diagonal, if far enough to be seen."""
        distance = np.abs(np.sqrt(self.observed) - np.sqrt(self.fitted))
        is_far = distance > np.maximum(2 * self.noise, top / 50)
        order = np.argsort(-distance, kind="stable")
        return [int(k) for k in order[is_far[order]][:N_WORST]]

    def name(self, cell: int) -> str:
        """Return the variables and levels of a cell, and its observed and fitted probability."""
        ends = np.cumsum([math.prod(marginal.table.shape) for marginal in self.marginals])
        which = int(np.searchsorted(ends, cell, side="right"))
        marginal = self.marginals[which]
        size = math.prod(marginal.table.shape)
        codes = np.unravel_index(cell - (ends[which] - size), marginal.table.shape)
        parts = [
            f"{_short(name, 16)} = {_short(self.marginals.domain[name].levels[code], 16)}"
            for name, code in zip(marginal.names, codes, strict=True)
        ]
        parts.append(f"{self.observed[cell]:.3g}, fitted {self.fitted[cell]:.3g}")
        return "\n".join(parts)


def _flat(marginals: MarginalSet) -> np.ndarray:
    return np.concatenate([np.asarray(marginal.table).ravel() for marginal in marginals])


def _draw_cells(ax: Axes, cells: _Cells, top: float) -> None:
    n_cells = len(cells.observed)
    if n_cells <= MOST_POINTS:
        (dots,) = ax.plot(cells.fitted, cells.observed, "o", color=BLUE, label=f"{n_cells:,} cells")
        dots.set(markersize=3.5, markeredgewidth=0, alpha=min(1.0, 0.25 + 20 / n_cells))
        return
    edges = np.linspace(0, math.sqrt(top), 81)
    roots = np.sqrt(cells.fitted), np.sqrt(cells.observed)
    counts = np.histogram2d(*roots, bins=(edges, edges))[0].T
    mesh = ax.pcolormesh(
        edges**2,
        edges**2,
        np.ma.masked_equal(counts, 0),
        cmap=_heat_colours(HEAT[2:]),
        norm="log",
        rasterized=True,
    )
    ax.figure.colorbar(mesh, ax=ax, label=f"how many of {n_cells:,} cells", shrink=0.7)


def _square_roots(ax: Axes, top: float) -> None:
    """Let both axes show square roots up to `top`, with round numbers where there is room."""
    room = max(0.09, 30 / min(_cell_points(ax, (1, 1))))
    ticks = [0.0]
    for tick in (digit * 10.0**power for power in range(-7, 1) for digit in (1, 2, 5)):
        if tick <= top and math.sqrt(tick) - math.sqrt(ticks[-1]) > room * math.sqrt(top):
            ticks.append(tick)
    functions = (lambda x: np.sqrt(np.maximum(x, 0)), np.square)
    ax.set_xscale("function", functions=functions)
    ax.set_yscale("function", functions=functions)
    labels = [f"{tick:g}" for tick in ticks]
    ax.set_xticks(ticks, labels)
    ax.set_yticks(ticks, labels)
    ax.set(xlim=(0, top), ylim=(0, top))


def factors(pmf: JointPMF, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw P(level | component) as a heat map, and return the Axes.

    A column is a component, under its number and its weight, the heaviest first; a row is a level.
    Of a model with more levels or components than can be read, those variables are shown that tell
    most about the component, and the heaviest components.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    names : iterable of str, optional
        Which variables, in this order.
    ax : Axes, optional
        Where to draw; by default in a new figure that has room for all levels.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> ax = jp.plots.factors(pmf)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0', '0', '1', 'x1', '0', '1', '2']
    """
    _check_kind(pmf, JointPMF, "factors")
    part = _part_with_room(pmf) if names is None else pmf.marginal(names)
    if not len(part.domain):
        raise JointPMFError("there is no variable to draw")
    order = np.argsort(-part.weights, kind="stable")[:MOST_COMPONENTS]
    gap = np.full((1, len(order)), np.nan)
    rows = np.vstack([row for factor in part.factors for row in (gap, factor[:, order])])
    labels = [text for v in part.domain for text in (v.name, *v.levels)]
    heads = [part.domain.offsets[n] + n for n in range(len(part.domain))]
    notes = [
        _some(len(part.domain), len(pmf.domain), "variables", TELLING) if names is None else "",
        _some(len(order), pmf.rank, "components", f"{part.weights[order].sum():.0%} of the weight"),
    ]
    width = 0.5 if len(order) <= 12 else 0.32
    with _drawing(ax, 2.6 + width * max(len(order), 4), 1.3 + 0.19 * len(rows)) as ax:
        _heat_map(ax, rows, 1.0, "P(level | component)")
        _label_rows(ax, [_short(text, 24) for text in labels], heads)
        heads_of_columns = [f"{f}\n{part.weights[f]:.1%}" for f in order]
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        size = _label_size(_cell_points(ax, rows.shape)[0] / 3)
        ax.set_xticks(np.arange(len(order)) + 0.5, heads_of_columns, fontsize=size)
        ax.tick_params(length=0)
        ax.set(xlabel="component and its weight")
        _note(ax, notes)
    return ax


def _part_with_room(pmf: JointPMF) -> JointPMF:
    """Return the variables that there is room for, levels and headings being rows."""
    told = _by_information(pmf)
    n_rows = np.cumsum([pmf.domain.sizes[n] + 1 for n in told])
    return _first_of(pmf, told, max(int((n_rows <= MOST_LEVELS).sum()), 1))


def _by_information(pmf: JointPMF) -> np.ndarray:
    """Return the variables, those first that tell most about the component."""
    return np.argsort(-component_information(pmf), kind="stable")


def _first_of(pmf: JointPMF, told: np.ndarray, count: int) -> JointPMF:
    """Return the first variables of an order, as the model has them in turn."""
    if len(pmf.domain) <= count:
        return pmf
    return pmf.marginal([pmf.domain.names[n] for n in np.sort(told[:count])])


def _label_rows(ax: Axes, labels: Sequence[str], heads: Sequence[int]) -> None:
    """Name the rows of a heat map, the heads in bold, and only those where rows are too low."""
    room = _cell_points(ax, (len(labels), 1))[1]
    named = range(len(labels)) if room > 5 else heads
    ax.set_yticks([k + 0.5 for k in named], [labels[k] for k in named], fontsize=_label_size(room))
    for k, text in zip(named, ax.get_yticklabels(), strict=True):
        text.set_fontweight("bold" if k in heads else "normal")


def rank_curve(curve: RankCurve, ax: Axes | None = None) -> Axes:
    """Draw how well each rank does, and return the Axes.

    Bars are standard errors. The rank with the best score is marked, and the smallest one whose
    score is within one standard error of it, which the dashed line shows.

    Parameters
    ----------
    curve : RankCurve
        What `choose_rank` returned.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
    >>> rows = truth.sample(2000, random_state=0, backend="codes")
    >>> curve = jp.choose_rank(rows, [1, 2, 3], criterion="bic", random_state=0)
    >>> jp.plots.rank_curve(curve).get_ylabel()
    'BIC'
    """
    _check_kind(curve, RankCurve, "rank_curve")
    ranks = np.array([score.rank for score in curve.scores])
    scores = _finite([score.score for score in curve.scores])
    errors = _finite([score.standard_error for score in curve.scores])
    is_held_out = curve.criterion == "validation"
    name = "held-out log-likelihood per row (nats)" if is_held_out else curve.criterion.upper()
    with _drawing(ax) as ax:
        ax.set(xlabel="rank", ylabel=name)
        if np.isnan(scores).all():
            return _say(ax, "No rank has a finite score.")
        bars = None if np.isnan(errors).all() else errors
        ax.errorbar(ranks, scores, bars, color=BLUE, marker="o", capsize=2, zorder=2)
        best, simplest = (int(np.searchsorted(ranks, r)) for r in (curve.rank, curve.simplest_rank))
        if simplest != best:
            ax.axhline(scores[best] - errors[best], color=GREY, ls="--", lw=1)
            label = f"rank {ranks[simplest]}: simplest within one standard error"
            _mark(ax, ranks[simplest], scores[simplest], "D", ORANGE, label)
        _mark(ax, ranks[best], scores[best], "o", VERMILION, f"rank {ranks[best]}: best")
        _rank_axis(ax, ranks)
        ax.legend()
    return ax


def _mark(ax: Axes, x: float, y: float, marker: str, colour: str, label: str) -> None:
    ax.plot(x, y, marker, color=colour, ms=8, label=label, zorder=3)


def _rank_axis(ax: Axes, ranks: np.ndarray) -> None:
    """Show ranks as whole numbers, by octaves where their steps grow."""
    steps = np.diff(ranks)
    if len(ranks) > 3 and steps[-1] >= 8 * steps[0]:
        ax.set_xscale("log", base=2)
    if len(ranks) <= 12:
        ax.set_xticks(ranks, [f"{rank:,}" for rank in ranks])
        ax.minorticks_off()
    else:
        _whole_numbers(ax)


def _whole_numbers(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def dependencies(pmf: JointPMF, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw how much every two variables tell about each other, and return the Axes.

    It is their mutual information in nats, see `pairwise_mutual_information`; colours follow its
    square root, so that weak dependencies are seen beside strong ones. Of a model with more than
    forty variables those are shown that tell most about the component.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    names : iterable of str, optional
        Which variables, in this order.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4]), rank=2, random_state=0)
    >>> ax = jp.plots.dependencies(pmf)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x0', 'x1', 'x2']
    """
    _check_kind(pmf, JointPMF, "dependencies")
    if names is None:
        part = _first_of(pmf, _by_information(pmf), MOST_VARIABLES)
    else:
        part = pmf.marginal(names)
    count = len(part.domain)
    if count < 2:
        raise JointPMFError("dependencies are those of two variables or more")
    information = pairwise_mutual_information(part)
    np.fill_diagonal(information, np.nan)
    note = _some(count, len(pmf.domain), "variables", TELLING) if names is None else ""
    side = 2.0 + min(max(0.42 * count, 2.0), 8.0)
    with _drawing(ax, side + 0.8, side) as ax:
        _heat_map(ax, information, 0.5, "mutual information (nats)")
        room = min(_cell_points(ax, information.shape))
        step = math.ceil(8 / room)  # names that have no room are left out
        some, size = np.arange(0, count, step), _label_size(step * room)
        labels = [_short(part.domain.names[n], 24) for n in some]
        ax.set_xticks(some + 0.5, labels, fontsize=size, rotation=90)
        ax.set_yticks(some + 0.5, labels, fontsize=size)
        ax.tick_params(length=0)
        ax.set(aspect="equal")
        _note(ax, [note])
    return ax


def calibration(
    pmf: JointPMF, table: Any, target: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how often predicted levels happen, against their probability, and return the Axes.

    Every observed cell is predicted from the other observed cells of its row, and every level of
    it is a case: it has a probability, and it happens or not. Cases are grouped by probability, in
    tenths; a point shows their mean probability and how often they happened, with an interval of
    95 % as if cases were independent. On the diagonal probabilities mean what they say; below it
    they are too high. Bars show how many cases there are; the legend has their mean distance to
    the diagonal.

    Use rows that the model was not fitted to. Of more than a hundred thousand cells, some rows are
    used. `coverage` tells how often what happens lies in sets of a probability.

    Parameters
    ----------
    pmf : JointPMF
        The model.
    table : pandas, Polars or PyArrow table, array, or Codes
        Rows whose observed cells are predicted.
    target : str, optional
        The variable to predict; all by default.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmf = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
    >>> ax = jp.plots.calibration(pmf, pmf.sample(500, random_state=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability', 'observed frequency')
    """
    _check_kind(pmf, JointPMF, "calibration")
    targets = pmf.domain.names if target is None else (pmf.domain[target].name,)
    cases = _Cases.of(pmf, encode(table, pmf.domain), targets)
    with _drawing(ax, 4.8, 4.8) as ax:
        ax.plot([0, 1], [0, 1], color=GREY, lw=1, zorder=1)
        heights = np.log10(cases.counts + 1)
        ax.bar(
            (np.arange(N_BINS) + 0.5) / N_BINS,
            0.15 * heights / heights.max(),
            0.9 / N_BINS,
            color=GREY,
            alpha=0.3,
            label=f"{cases.counts.sum():,} cases (log scale)",
        )
        some = cases.counts > 0
        low, middle, high = (part[some] for part in cases.intervals())
        label = f"mean distance {cases.distance:.3f}"
        ax.errorbar(
            cases.predicted[some],
            middle,
            (middle - low, high - middle),
            color=BLUE,
            marker="o",
            label=label,
        )
        ax.set(
            xlabel="predicted probability",
            ylabel="observed frequency",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        ax.legend(loc="upper left")
    return ax


class _Cases(NamedTuple):
    """Predicted levels grouped by their probability: how many, their mean, how many happened."""

    counts: np.ndarray
    predicted: np.ndarray
    happened: np.ndarray

    @classmethod
    def of(cls, pmf: JointPMF, codes: Codes, targets: Sequence[str]) -> _Cases:
        """Return the cases of all observed cells of the targets, or of those of some rows."""
        places = [pmf.domain.index(target) for target in targets]
        rows = np.flatnonzero((codes.array[:, places] != MISSING).any(axis=1))
        if not len(rows):
            raise JointPMFError("the table has no observed cell to predict")
        n_used = max(MOST_PREDICTED // len(places), 1)
        if len(rows) > n_used:
            rows = np.sort(seeded_generator(0).choice(rows, n_used, replace=False))
        used = Codes(codes.domain, codes.array[rows])
        counts, sums, happened = np.zeros((3, N_BINS))
        for target, n in zip(targets, places, strict=True):
            seen = np.flatnonzero(used.array[:, n] != MISSING)
            if len(seen):
                chances = pmf.predict_proba(Codes(used.domain, used.array[seen]), target)
                group = np.minimum((chances * N_BINS).astype(int), N_BINS - 1)
                own = group[np.arange(len(seen)), used.array[seen, n]]
                counts += np.bincount(group.ravel(), minlength=N_BINS)
                sums += np.bincount(group.ravel(), chances.ravel(), N_BINS)
                happened += np.bincount(own, minlength=N_BINS)
        return cls(counts.astype(int), sums / np.maximum(counts, 1), happened)

    @property
    def distance(self) -> float:
        """The mean distance between what was predicted and what happened."""
        happened = self.happened / np.maximum(self.counts, 1)
        return float(self.counts @ np.abs(self.predicted - happened) / self.counts.sum())

    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return low, what was seen, and high: Wilson's interval of 95 %."""
        n, z = np.maximum(self.counts, 1), 1.96
        share = self.happened / n
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return np.minimum(middle - half, share), share, np.maximum(middle + half, share)


def error_by_rank(
    ranks: Sequence[int],
    errors: Any,
    *,
    label: str | None = None,
    references: Mapping[str, float] | None = None,
    measure: str = "RMSE",
    ax: Axes | None = None,
) -> Axes:
    """Draw the error of predictions by rank, and return the Axes.

    Call it again with the same Axes to add other methods: each gets a colour and a mark of its own.

    Parameters
    ----------
    ranks : sequence of int
        The ranks, increasing.
    errors : array of shape (ranks,) or (splits, ranks)
        The error at each rank; of several splits the means are drawn, with their standard errors.
    label : str, optional
        The name of the method, for the legend.
    references : mapping of str to float, optional
        Errors of methods without a rank, which are drawn as lines across.
    measure : str
        What the errors are.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import jointpmf as jp
    >>> ax = jp.plots.error_by_rank([5, 10, 20], [[0.9, 0.8, 0.85], [1.0, 0.82, 0.85]], label="EM")
    >>> ax = jp.plots.error_by_rank([5, 10], [0.95, 0.9], references={"mean": 1.0}, ax=ax)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rank', 'RMSE')
    """
    at, means, spread = _errors_by_rank(ranks, errors)
    levels = _checked_references({} if references is None else references)
    _check_text(measure, "measure")
    if label is not None:
        _check_text(label, "label")
    with _drawing(ax) as ax:
        place = len(ax.containers)
        ax.errorbar(
            at,
            means,
            spread,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            label=None if label is None else _entry(_plain(label)),
        )
        for (name, level), line in zip(levels.items(), cycle(REFERENCE_LINES), strict=False):
            ax.axhline(level, color=_ink(ax), ls=line, lw=1.2, label=_entry(_plain(name)))
        ax.margins(y=0.08)
        ax.set(xlabel="rank", ylabel=_plain(measure))
        _whole_numbers(ax)
        _legend(ax)
    return ax


def _checked_references(references: Any) -> dict[str, float]:
    if not isinstance(references, Mapping):
        raise JointPMFError(f"references must map names to errors, not {shown(references)}")
    for name, level in references.items():
        _check_text(name, "the name of a reference")
        if not isinstance(level, Real) or not math.isfinite(level):
            raise JointPMFError(f"the error of {shown(name)} must be a number, not {shown(level)}")
    return dict(references)


def _check_text(given: Any, what: str) -> None:
    if not isinstance(given, str):
        raise JointPMFError(f"{what} must be text, not {shown(given)}")


def _errors_by_rank(ranks: Any, errors: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the ranks, the mean error of each, and its standard error if there are splits."""
    try:
        at, splits = np.asarray(ranks, float), np.atleast_2d(np.asarray(errors, float))
    except (TypeError, ValueError):
        raise JointPMFError("ranks and errors must be numbers") from None
    if at.ndim != 1 or splits.ndim != 2 or not splits.size or splits.shape[1] != len(at):
        raise JointPMFError(
            f"errors must be of shape ({at.size},) or (splits, {at.size}), "
            f"one for each rank, not {np.shape(errors)}"
        )
    splits = _finite(splits.ravel()).reshape(splits.shape)
    if len(splits) == 1:
        return at, splits[0], None
    return at, splits.mean(axis=0), splits.std(axis=0, ddof=1) / math.sqrt(len(splits))


def _finite(numbers: Iterable[float | None]) -> np.ndarray:
    """Return numbers, with NaN for all that cannot be drawn."""
    array = np.array([math.nan if number is None else number for number in numbers], float)
    return np.where(np.isfinite(array), array, math.nan)


def _check_kind(given: Any, kind: type, where: str) -> None:
    if not isinstance(given, kind):
        raise JointPMFError(f"plots.{where} draws a {kind.__name__}, not {shown(given)}")


@contextmanager
def _drawing(ax: Axes | None, width: float = 6.0, height: float = 3.8) -> Iterator[Axes]:
    """Give the Axes to draw on, in our style: the one that was given, or that of a new figure."""
    with style():
        from matplotlib import pyplot as plt
        from matplotlib.axes import Axes

        if ax is None:
            ax = plt.subplots(figsize=(width, height))[1]
        elif not isinstance(ax, Axes):
            raise JointPMFError(f"ax must be one Axes of matplotlib, not {shown(ax)}")
        elif ax.name != "rectilinear":
            raise JointPMFError(f"ax must have two straight axes; this one is {ax.name!r}")
        ax.spines[["top", "right"]].set_visible(False)
        yield ax


def _ink(ax: Axes) -> Any:
    """Return the colour of text, which is seen on the background whatever that is."""
    return ax.xaxis.label.get_color()


def _legend(ax: Axes, *drawn: Axes, **where: Any) -> None:
    """Say what was drawn, there or on several Axes, if any of it has a name."""
    entries = [one.get_legend_handles_labels() for one in drawn or (ax,)]
    handles = [handle for some, _ in entries for handle in some]
    if handles:
        ax.legend(handles, [label for _, some in entries for label in some], **where)


def _say(ax: Axes, sentence: str) -> Axes:
    ax.text(0.5, 0.5, sentence, ha="center", va="center", transform=ax.transAxes, color=GREY)
    return ax


def _short(item: object, width: int) -> str:
    """Return a name or a level as a label of at most `width` characters on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text_of(item)).split())
    return _plain(line if len(line) <= width else line[: width - 1] + "…")


def _plain(text: str) -> str:
    """Return text that is not taken for a formula."""
    return text.replace("$", r"\$")


def _entry(text: str) -> str:
    """Return text for a legend, which would leave out what begins with an underscore."""
    return f"\u200b{text}" if text.startswith("_") else text


def _some(count: int, total: int, what: str, which: str) -> str:
    """Say how many are shown, if not all are."""
    return "" if count == total else f"{count:,} of {total:,} {what} ({which})"


def _note(ax: Axes, notes: Iterable[str]) -> None:
    """Say above the picture what has to be said; if nothing, the user's title stays."""
    if said := ", ".join(filter(None, notes)):
        ax.set_title(said)


def _heat_colours(colours: Sequence[str] = HEAT) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heat", colours)


def _cell_points(ax: Axes, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return about how wide and high the cells of a heat map are, in points."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return 72 * box.width / shape[1], 72 * box.height / shape[0]


def _label_size(room: float) -> float:
    return min(max(0.9 * room, 4.0), 9.0)


def _heat_map(ax: Axes, values: np.ndarray, power: float, label: str) -> None:
    """Draw values from zero on as colours, the first row on top, with numbers that have room."""
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(power, 0, float(np.nanmax(values)) or 1.0)
    colours = _heat_colours()
    mesh = ax.pcolormesh(np.ma.masked_invalid(values), cmap=colours, norm=norm, rasterized=True)
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)
    width, height = _cell_points(ax, values.shape)
    shrink = min(0.8, 180 / (height * len(values)))
    ax.figure.colorbar(mesh, ax=ax, label=label, aspect=18, shrink=shrink, anchor=(0, 1))
    if min(width, height) > 6:
        mesh.set(edgecolor=ax.get_facecolor(), linewidth=0.6)
    if width < 24 or height < 9:
        return
    for (row, column), value in np.ndenumerate(values):
        if value >= 0.005:  # NaN is not
            colour = "white" if norm(value) > 0.55 else "0.15"
            at = column + 0.5, row + 0.5
            ax.text(*at, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
