"""Text that results share when they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def aligned(lines: Sequence[Sequence[str]], gap: str = " ") -> list[str]:
    """Return cells in columns, the first one to the left and the others to the right.

    Examples
    --------
    >>> aligned([["level", "share"], ["yes", "5 %"]])
    ['level share', 'yes     5 %']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        gap.join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for line in lines
    ]


def rows_text(rows: float) -> str:
    """Return how many rows there are, or the sum of their weights.

    Examples
    --------
    >>> rows_text(1234567.0), rows_text(118.25)
    ('1,234,567', '118.25')
    """
    return f"{rows:,.0f}" if float(rows).is_integer() else f"{rows:,.6g}"


def shares_text(shares: Iterable[float]) -> list[str]:
    """Return percentages that line up in a column: all with one decimal, however small.

    Examples
    --------
    >>> shares_text([0.5, 0.0001, float("nan")])
    ['50.0 %', '0.0 %', '–']
    """
    return [share_text(share) for share in shares]


def share_text(share: float) -> str:
    """Return a percentage with one decimal, or a dash where it is not known.

    Examples
    --------
    >>> share_text(0.125), share_text(float("nan"))
    ('12.5 %', '–')
    """
    return "–" if share != share else f"{100 * share:.1f} %"
