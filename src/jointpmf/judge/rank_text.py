"""The curve of ranks as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jointpmf.judge.text import share_text

if TYPE_CHECKING:
    from jointpmf.judge.curve import RankCurve


def curve_text(curve: RankCurve) -> str:
    """Return a curve as a table, the chosen rank marked, and below it where the curve bends."""
    has_errors = curve.criterion == "validation"
    has_models = any(math.isfinite(s.smallest) for s in curve.scores)
    score_name = "held-out" if has_errors else curve.criterion_name
    lines = [
        f"{'rank':>6} {score_name:>12}{' ± error' if has_errors else ''} {'fitted':>10} "
        f"{'gain':>8} {'parameters':>10}{' smallest entropy' if has_models else ''}"
    ]
    for s, gain in zip(curve.scores, curve.gains, strict=True):
        error = f" {s.standard_error:7.4f}" if has_errors else ""
        own = f" {share_text(s.smallest):>8} {_number(s.relative_entropy, 3):>7}"
        mark = " ←" if s.rank == curve.rank else ""
        lines.append(
            f"{s.rank:>6} {s.score:>12.4f}{error} {s.log_likelihood:>10.4f} "
            f"{_number(gain, 4):>8} {s.n_parameters:>10}{own if has_models else ''}{mark}"
        )
    return "\n".join([*lines, *curve_sentences(curve)])


def curve_sentences(curve: RankCurve) -> list[str]:
    """Return where a curve bends, which fits are in doubt, and whether it ends too early.

    Examples
    --------
    >>> import numpy as np
    >>> from jointpmf.judge.curve import RankCurve, RankScore
    >>> scores = tuple(RankScore(k, -10.0 * k, 0.1, -9.0, 5 * k, 0.1) for k in (1, 2))
    >>> print(*curve_sentences(RankCurve("validation", scores[::-1], np.zeros((2, 1)))))
    The held-out log-likelihood still improves at rank 1, the last one tried: try larger ones.
    """
    said = []
    if curve.elbow is not None:
        said.append(f"The fitted log-likelihood bends at rank {curve.elbow} (elbow).")
    if curve.not_replicated:
        ranks = ", ".join(map(str, curve.not_replicated))
        said.append(
            f"Found by only one start, so that there may be a better optimum: rank {ranks}."
        )
    last = curve.scores[-1].rank
    if len(curve.scores) > 1 and curve.has_best and curve.rank == last:
        many = ", or, with many rows, go by the elbow, the gain and the smallest component"
        said.append(
            f"The {curve.criterion_name} still improves at rank {last}, the last one tried: try "
            f"larger ones{'' if curve.criterion == 'validation' else many}."
        )
    return said


def _number(number: float, digits: int) -> str:
    return f"{number:.{digits}f}" if math.isfinite(number) else ""
