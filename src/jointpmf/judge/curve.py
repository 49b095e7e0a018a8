"""The curve of ranks that `choose_rank` returns: scores, models, and what tells where to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.data.decode import table_of
from jointpmf.errors import JointPMFError, shown
from jointpmf.judge.elbow import elbow, gains
from jointpmf.judge.rank_text import curve_text
from jointpmf.judge.summary import criterion_name

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution


class RankScore(NamedTuple):
    """One rank of a curve.

    `score` is the mean held-out log-likelihood per row (the larger the better) or an information
    criterion (the smaller the better); `standard_error` that of the mean over folds, or over
    validation rows, and NaN for a criterion. `smallest` is the weight of the smallest component of
    the fit to all rows, and `relative_entropy` says how well its components separate, as in
    `summary`; NaN where the curve has no such fit.
    """

    rank: int
    score: float
    standard_error: float
    log_likelihood: float
    n_parameters: int
    seconds: float
    smallest: float = math.nan
    relative_entropy: float = math.nan


@dataclass(frozen=True)
class RankCurve:
    """How well each rank does; `print` shows it as a table.

    Attributes
    ----------
    criterion : str
        What the scores are.
    scores : tuple of RankScore
        One for each rank, in increasing order; their `log_likelihood` is that of the fitted rows,
        per row.
    rank : int
        The rank with the best score.
    simplest_rank : int
        The smallest rank whose score is within one standard error of the best.
    gains : list of float
        What the fitted log-likelihood of a row gains on the rank before, per component added.
    elbow : int or None
        The rank at which the fitted log-likelihood bends; None if it does not.
    fold_scores : array of shape (ranks, folds)
        The held-out log-likelihoods of each fold, for comparisons in pairs.
    solutions : tuple of Solution
        The fit of each rank to all rows, in the order of the scores; `curve[5]` is that of rank 5,
        the same that `fit_rows` returns for this rank and seed.
    not_replicated : list of int
        The ranks whose best optimum was found by only one start.
    """

    criterion: str
    scores: tuple[RankScore, ...]
    fold_scores: np.ndarray = field(repr=False)
    solutions: tuple[Solution, ...] = field(default=(), repr=False)

    def __getitem__(self, rank: int) -> Solution:
        """Return the fit of a rank to all rows."""
        for score, solution in zip(self.scores, self.solutions, strict=False):
            if score.rank == rank:
                return solution
        raise JointPMFError(f"the curve has no model of rank {shown(rank)}")

    @property
    def _best(self) -> RankScore:
        if self.criterion == "validation":
            return max(self.scores, key=lambda score: score.score)
        return min(self.scores, key=lambda score: score.score)

    @property
    def criterion_name(self) -> str:
        """The criterion by the name that people know it by."""
        is_held_out = self.criterion == "validation"
        return "held-out log-likelihood" if is_held_out else criterion_name(self.criterion)

    @property
    def has_best(self) -> bool:
        """Whether a rank has a score by which it can be the best."""
        return any(math.isfinite(score.score) for score in self.scores)

    @property
    def rank(self) -> int:
        """The rank with the best score."""
        return self._best.rank

    @property
    def simplest_rank(self) -> int:
        """The smallest rank within one standard error of the best."""
        best = self._best
        if math.isnan(best.standard_error):
            return best.rank
        return min(s.rank for s in self.scores if s.score >= best.score - best.standard_error)

    @property
    def not_replicated(self) -> list[int]:
        """The ranks whose best optimum was found by only one start, so that it may not be it."""
        return [found.pmf.rank for found in self.solutions if not found.is_replicated]

    @property
    def _ranks(self) -> list[int]:
        return [score.rank for score in self.scores]

    @property
    def gains(self) -> list[float]:
        """What the fitted log-likelihood gains on the rank before, per component added."""
        return gains(self._ranks, [score.log_likelihood for score in self.scores])

    @property
    def elbow(self) -> int | None:
        """The rank at which the fitted log-likelihood bends (docs/math.md, eq. 58)."""
        return elbow(self._ranks, [score.log_likelihood for score in self.scores])

    def to_frame(self, backend: str = "polars") -> Any:
        """Return the scores as a frame, "polars", "pandas" or "pyarrow": one row per rank.

        Examples
        --------
        >>> scores = (RankScore(1, -2.5, 0.1, -2.4, 5, 0.1),)
        >>> RankCurve("validation", scores, np.zeros((1, 1))).to_frame()["score"].to_list()
        [-2.5]
        """
        cells = map(list, zip(*self.scores, strict=True))
        columns = dict(zip(RankScore._fields, cells, strict=True))
        return table_of(columns | {"gain": self.gains}, backend)

    def __str__(self) -> str:
        """Return the curve as a table, the chosen rank marked."""
        return curve_text(self)

    def _repr_html_(self) -> str:
        """Return the best rank, and the curve as a chart and as a table."""
        from jointpmf.show.notebook import rank_curve_html

        return rank_curve_html(self)
