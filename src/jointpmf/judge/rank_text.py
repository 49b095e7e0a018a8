"""The curve of ranks as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jointpmf.judge.rank import RankCurve


def curve_text(curve: RankCurve) -> str:
    """Return a curve as a table, the chosen rank marked, and below it where the curve bends."""
    has_errors = curve.criterion == "validation"
    has_models = any(math.isfinite(s.smallest) for s in curve.scores)
    score_name = "held-out" if has_errors else curve.criterion.upper()
    lines = [
        f"{'rank':>6} {score_name:>12}{' ± error' if has_errors else ''} {'fitted':>10} "
        f"{'gain':>8} {'parameters':>10}{' smallest entropy' if has_models else ''}"
    ]
    for s, gain in zip(curve.scores, curve.gains, strict=True):
        error = f" {s.standard_error:7.4f}" if has_errors else ""
        own = f" {percent_text(s.smallest):>8} {_number(s.relative_entropy, 3):>7}"
        mark = " ←" if s.rank == curve.rank else ""
        lines.append(
            f"{s.rank:>6} {s.score:>12.4f}{error} {s.log_likelihood:>10.4f} "
            f"{_number(gain, 4):>8} {s.n_parameters:>10}{own if has_models else ''}{mark}"
        )
    if curve.elbow is not None:
        lines.append(f"elbow of fitted: rank {curve.elbow}")
    if curve.not_replicated:
        ranks = ", ".join(map(str, curve.not_replicated))
        lines.append(f"best optimum found by only one start: rank {ranks}")
    return "\n".join(lines)


def percent_text(share: float) -> str:
    """Return a share as a percentage with one decimal, or nothing if it is not known.

    Examples
    --------
    >>> percent_text(0.125), percent_text(math.nan)
    ('12.5 %', '')
    """
    return f"{100 * share:.1f} %" if math.isfinite(share) else ""


def _number(number: float, digits: int) -> str:
    return f"{number:.{digits}f}" if math.isfinite(number) else ""
