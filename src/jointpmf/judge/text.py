"""Text that results share when they are printed."""

from __future__ import annotations

from collections.abc import Sequence


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
