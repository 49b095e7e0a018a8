"""The rank by a criterion, found upwards: one rank after the other, until none does better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.judge.curve import RankCurve


_MOST_RANKS = 20
"""The largest rank that is tried where none was named."""


def climbing_curves(
    codes: Codes,
    criterion: str,
    ranks: Iterable[int] | None = None,
    patience: int = 2,
    **options: Any,
) -> Iterator[RankCurve]:
    """Yield the curve of all ranks so far after each rank, so that none is lost by an interrupt.

    Parameters
    ----------
    codes : Codes
        The rows.
    criterion : str
        What ranks are judged by, as for `choose_rank`.
    ranks : iterable of int, optional
        All to try; by default 1, 2 and so on, until the last `patience` of them were no better
        than the best before, but no more than 20: of many rows a criterion only says "more".
    patience : int
        How many ranks in a row may be no better.
    **options
        Those of `choose_rank`; a seed gives every rank the same folds.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([6] * 6), rank=2, random_state=0)
    >>> rows = jp.encode(truth.sample(2000, random_state=0))
    >>> curves = list(climbing_curves(rows, "bic", random_state=0))
    >>> curves[-1].rank, [score.rank for score in curves[-1].scores]
    (2, [1, 2, 3, 4])
    """
    from jointpmf.judge.rank import choose_rank  # later: all of a fit is below it

    curve: RankCurve | None = None
    for rank in range(1, _MOST_RANKS + 1) if ranks is None else ranks:
        one = choose_rank(codes, [rank], criterion, **options)
        if not one.solutions:
            raise KeyboardInterrupt  # after its score: a curve needs the model of every rank
        curve = one if curve is None else _joined(curve, one)
        yield curve
        if ranks is None and rank - curve.rank >= patience:
            return


def _joined(curve: RankCurve, more: RankCurve) -> RankCurve:
    return replace(
        curve,
        scores=curve.scores + more.scores,
        fold_scores=np.concatenate([curve.fold_scores, more.fold_scores]),
        solutions=curve.solutions + more.solutions,
    )
