"""What can be asked of a fit, as values: the likelihood, the search for starts, what is hidden.

Everything here is frozen and compares by content, so that a checkpoint knows a fit by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from jointpmf.errors import (
    JointPMFError,
    at_least_zero,
    items_of,
    one_of,
    repeats,
    shown,
    whole_number,
    whole_rank,
)

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.pmf import JointPMF

_PASSES_OF_A_FIT = 150
"""Passes over the rows that a fit takes, about."""

_CLIMBS, _PASSES_OF_A_CLIMB = 4, 250
"""Climbs that what starts may cost is meant for, and the passes that one takes, about."""


def _check_numbers(setting: Any) -> None:
    """Raise unless every field that is a number has one, of its type and not negative."""
    for each in fields(setting):
        given = getattr(setting, each.name)
        if each.type == "int":
            most = each.metadata.get("most", math.inf)
            what = each.metadata.get("what", each.name)
            given = whole_number(given, what, each.metadata.get("least", 1), most)
        elif each.type == "float":
            given = at_least_zero(given, each.name)
        object.__setattr__(setting, each.name, given)


@dataclass(frozen=True)
class Traits:
    """Components at points of a space of a few traits, instead of free ones.

    Parameters
    ----------
    count : int
        How many traits: dimensions of the space. The rank is the number of points in it.
    waves : int
        How many waves over the space are features too, so that curves need not be straight.
    pace : float
        How fast waves change, per standard deviation of a trait.
    ridge : float
        How strongly coefficients are pulled to zero; those of waves ten times as much.
    widths : float
        How many times stronger the ridge is on how wide the distribution of an ordered variable is
        than on where it is.
    pulls : tuple of float
        With something held out: columns may in the end leave what traits predict, if that helps;
        how many rows of each component the prediction then counts for.

    Examples
    --------
    >>> str(Traits(2, waves=24))
    '2 traits, 24 waves of pace 0.7, ridge 0.3'
    """

    count: int = field(default=4, metadata={"what": "the number of traits", "most": 10**6})
    waves: int = field(default=48, metadata={"least": 0, "most": 10**6})
    pace: float = 0.7
    ridge: float = 0.3
    widths: float = 30.0
    pulls: tuple[float, ...] = (10.0, 30.0, 3.0)

    def __post_init__(self) -> None:
        _check_numbers(self)
        listed = items_of(self.pulls, "pulls must be a list")
        pulls = tuple(at_least_zero(pull, "a pull") for pull in listed)
        object.__setattr__(self, "pulls", pulls)

    def __str__(self) -> str:
        """Say what the space is like."""
        text = f"{self.count} trait{'s' if self.count > 1 else ''}"
        if self.waves:
            text += f", {self.waves} waves of pace {self.pace:.3g}"
        return text + f", ridge {self.ridge:.3g}"


_STRAIGHT = Traits(8, waves=0, ridge=3.0, widths=1000.0, pulls=())
"""Where the search by hidden cells begins: widths that follow the traits predict means worse."""


@dataclass(frozen=True)
class Likelihood:
    """Maximum likelihood over the observed cells of all rows, by EM.

    Parameters
    ----------
    smoothing : float, optional
        Pseudo-counts per level and component, on average (a Dirichlet prior). With 0 a level that
        was never seen has probability zero. By default 0 for a given rank; with `rank="auto"` the
        better of 0.1 and 1.
    towards : {"uniform", "marginal"}, optional
        Where smoothing pulls the columns: to all levels alike, or to how each variable is
        distributed. By default uniform for a given rank, and marginal with `rank="auto"`.
    target : str, optional
        With `rank="auto"`: the variable that will be predicted; its cells are held out and
        predicted from the rest of their rows.
    emphasis : int, optional
        How often a cell of the target counts. By default once, or half as often as there are other
        variables if that helps.
    traits : int or Traits, optional
        Components at points of a space of this many traits, instead of free ones; the rank is then
        the number of points. By default free for a given rank; with `rank="auto"` what is better.

    Examples
    --------
    >>> Likelihood(smoothing=0.5).smoothing
    0.5
    >>> Likelihood(traits=2).traits.count
    2
    """

    smoothing: float | None = None
    towards: str | None = None
    target: str | None = None
    emphasis: int | None = None
    traits: Any = None

    def __post_init__(self) -> None:
        if self.traits is not None and not isinstance(self.traits, Traits):
            object.__setattr__(self, "traits", Traits(self.traits))
        if self.traits is not None and self.smoothing is not None:
            raise JointPMFError("smoothing is of free components: traits have a ridge")
        if self.smoothing is not None:
            object.__setattr__(self, "smoothing", at_least_zero(self.smoothing, "smoothing"))
        if self.towards is not None:
            one_of(self.towards, ("uniform", "marginal"), "towards")
        if self.emphasis is not None:
            whole_number(self.emphasis, "emphasis", 1)


def emphasis_of(n_others: int) -> int:
    """Return how often a target counts beside some other variables: for half of them.

    For one cell among many no component would be made otherwise.
    """
    return max(round(0.5 * n_others), 1)


def checked_objective(objective: Any) -> Likelihood:
    """Return the settings of a fit to rows; None are the defaults."""
    if objective is None or isinstance(objective, Likelihood):
        return objective or Likelihood()
    raise JointPMFError(f"objective must be a Likelihood, not {shown(objective)}")


def checked_rank(rank: Any) -> int | None:
    """Return a rank that is a number, or None for "auto"."""
    if isinstance(rank, str):
        if rank != "auto":
            raise JointPMFError(f"the rank must be a whole number or 'auto', not {shown(rank)}")
        return None
    return whole_rank(rank)


@dataclass(frozen=True)
class Effort:
    """How much work goes into finding the best optimum of a likelihood.

    Attributes
    ----------
    most_starts : int
        How many starts are tried at most, where n_starts does not say it.
    patience : int
        A start ends when this many moves in a row have not improved it; more find better optima,
        and cost more.
    agreement : float
        Fits whose objectives differ by less than this part of them have found the same optimum.
    doubt : float
        The search ends when the best optimum was found again and the probability that another start
        finds a new one is smaller, as the optima found so far suggest (docs/math.md, eq. 59).
    fits : float
        What all starts together may cost, in fits from a fresh point to the end.
    work : float
        If they would cost more than this, in cells times components times passes over the rows,
        every start is tried on a sample of the rows first.
    sample_work : float
        What all starts on such samples may cost.
    most_sampled : int
        How many starts are then tried at most: each ends with a fit to all rows.
    step_work : float
        What any pass costs at least, in cells times components.
    rows_per_component : int
        A sample has no fewer rows than this per component.
    n_steps : int
        Iterations after which starts are compared where something is held out.
    many_rows : int
        A table of more rows than this is searched on a sample of them, in memory or not.
    passes : float
        What the passes of all starts may then cost, in passes over all rows. What they need
        besides, and one pass in steps, come on top: together they stay within 20.
    sample_rows, sample_part, sample_cells : int, float, int
        Rows of that sample, about: so many at least, and this part of all, but no more cells.
    sample_iter : int
        Iterations that the model of that sample gets; they save passes over all rows.
    step_rows : int
        Rows of one step, where all rows are then seen once.
    block_bytes : int
        Memory of a block of rows that are on disk, which is read and worked on at once.
    """

    most_starts: int = 12
    patience: int = 8
    agreement: float = 1e-6
    doubt: float = 0.35
    fits: float = 34.0
    work: float = 6e10
    sample_work: float = 5e9
    most_sampled: int = 5
    step_work: float = 5e5
    rows_per_component: int = 300
    n_steps: int = 50
    many_rows: int = 10**6
    passes: float = 15.0
    sample_rows: int = 50_000
    sample_part: float = 0.04
    sample_cells: int = 10**7
    sample_iter: int = 100
    step_rows: int = 2**14
    block_bytes: int = 2**24

    def n_rows_searched(
        self, n_rows: int, n_cells: int, rank: int, most_work: float | None = None
    ) -> int:
        """Return how many rows starts are tried on: all, or a sample where that costs too much."""
        work = self.fits * _PASSES_OF_A_FIT * (n_cells * rank + self.step_work)
        if rank == 1 or work <= min(self.work, most_work or self.work):
            return n_rows
        part = self.sample_work / work
        if most_work is not None:
            of_pass = most_work / (_CLIMBS * _PASSES_OF_A_CLIMB) - self.step_work
            part = min(part, of_pass / (n_cells * rank))
        return min(max(int(part * n_rows), self.rows_per_component * rank), n_rows)

    def is_evidence(self, n_starts: int, n_distinct: int) -> bool:
        """Tell whether so few optima from so many starts leave little to find (eq. 59).

        Examples
        --------
        >>> effort = Effort()
        >>> effort.is_evidence(3, 1), effort.is_evidence(3, 2), effort.is_evidence(5, 2)
        (True, False, True)
        """
        left = n_distinct * (n_distinct + 1) / (n_starts * (n_starts - 1))
        return left < self.doubt

    def sample_size(self, n_variables: int, n_rows: int = 0) -> int:
        """Return on how many of many rows, or of those that are not in memory, a start is found."""
        size = max(self.sample_rows, int(self.sample_part * n_rows))
        return min(size, max(self.sample_cells // n_variables, 1))

    def work_of_passes(self, n_rows: int, n_cells: int, rank: int) -> float | None:
        """Return what starts on a sample of so many rows may cost; None if they are not many."""
        if n_rows <= self.many_rows:
            return None
        return self.passes * (n_cells * rank + self.step_work)


@dataclass(frozen=True)
class Kinds:
    """Which kinds of fits are tried where the rank is not given.

    Attributes
    ----------
    ranks : tuple of int
        By held-out rows: ranks, upwards, until they no longer help.
    traits : Traits or None
        By held-out rows: the space of traits that is tried first; None if none is.
    points : tuple of int
        How many points traits have, upwards: the first while the space is chosen.
    row_ranks : tuple of int
        By hidden cells: ranks of fits that begin at rows, upwards, until they no longer help.
    cell_traits : Traits or None
        By hidden cells: the space of traits that is tried first; None if none is.
    cell_points : tuple of int
        How many points it has in the end, upwards: the first while the space is chosen.
    step_points : int
        How many points, each time others, it has in every step.
    """

    ranks: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    traits: Traits | None = field(default_factory=Traits)
    points: tuple[int, ...] = (512, 1024, 2048, 4096)
    row_ranks: tuple[int, ...] = (10, 20, 40, 80)
    cell_traits: Traits | None = field(default_factory=lambda: _STRAIGHT)
    cell_points: tuple[int, ...] = (2048, 8192)
    step_points: int = 1024


EFFORT, KINDS = Effort(), Kinds()
"""Internal settings of every search. Tests replace them to keep fits small."""


@dataclass(frozen=True)
class Search:
    """Where a fit begins, how often, and how many fits are averaged.

    Parameters
    ----------
    start : str or JointPMF
        "auto": several kinds of starts, until the best optimum was found again. For rows also
        "rows" (components at single rows) and "random"; for marginals "algebraic" (in closed form
        from triples) and "random"; or a model.
    n_starts : int, optional
        From how many starts to fit; the best fit is returned. By default from as many as it takes
        to find the best optimum again, and once if `start` is not "auto".
    n_average : int, optional
        How many fits to average into one model. By default one for a given rank; with
        `rank="auto"` as many as the size of the table suggests.

    Examples
    --------
    >>> Search(start="random", n_starts=5).n_starts
    5
    """

    start: str | JointPMF = "auto"
    n_starts: int | None = None
    n_average: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_starts", "n_average"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, repeats(getattr(self, name), name))

    def check_start(
        self, kinds: tuple[str, ...], domain: Domain, rank: int | None, whose: str
    ) -> None:
        """Raise unless the start is one of some kinds, or a model of that rank over that domain."""
        start = self.start
        if isinstance(start, str) and start in kinds:
            return
        if isinstance(start, str) or not hasattr(start, "factors"):
            listed = ", ".join(map(repr, kinds))
            raise JointPMFError(f"start must be {listed} or a JointPMF, not {shown(start)}")
        if rank is None:
            raise JointPMFError("a start that is a model needs a rank, not rank='auto'")
        if start.domain != domain or start.rank != rank:
            raise JointPMFError(
                f"the start {start!r} is not of rank {rank} over the {whose} domain"
            )


def checked_search(search: Any) -> Search:
    """Return a search; None is the default one."""
    if search is None or isinstance(search, Search):
        return search or Search()
    raise JointPMFError(f"search must be a Search, not {shown(search)}")


@dataclass(frozen=True, eq=False)
class HiddenCells:
    """Cells that a fit does not see and must predict from the rest of their rows.

    Parameters
    ----------
    cells : float or array of bool
        A fraction of the observed cells, or which cells of the table.
    scoring : {"likelihood", "error"}, optional
        How predictions are judged: by the log-probability of the hidden levels, or by the root of
        the mean squared difference between their values and the expected ones. By default error
        for Ratings, whose items share one scale, and likelihood otherwise.

    Examples
    --------
    >>> HiddenCells(0.2, scoring="error").scoring
    'error'
    """

    cells: Any = 0.1
    scoring: str | None = None

    def __post_init__(self) -> None:
        if self.scoring is not None:
            one_of(self.scoring, ("likelihood", "error"), "scoring")


@dataclass(frozen=True)
class Checkpoint:
    """A folder in which a fit leaves how far it has come.

    The same call goes on from there, after a kill too, to the same bits. The folder stays until
    you delete it.

    Parameters
    ----------
    folder : path
        Where; it is made when the first run begins.
    every : int
        Iterations between two writes.
    seconds : float
        Time between two writes, at least.

    Examples
    --------
    >>> Checkpoint("half-way", every=5).every
    5
    """

    folder: Any
    every: int = 10
    seconds: float = 1.0

    def __post_init__(self) -> None:
        _check_numbers(self)
