"""What the command shows: tables with bars for people, plain objects for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jointpmf.components import component_variable
from jointpmf.domain import Domain, Variable, listing_of_texts, text_of
from jointpmf.errors import JointPMFError, on_line, on_lines
from jointpmf.pmf import JointPMF
from jointpmf.show.text import percent

if TYPE_CHECKING:
    from jointpmf.judge.member_range import MemberRange

_BAR_WIDTH = 30
"""Characters of the longest bar."""

_BESIDE_BAR = 66
"""Characters of a line that names and numbers need, beside a bar that has to be shorter."""

_MEMBERS = "members of this\naverage range from"
"""The heading of the column with the range over members."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"

_MAX_COLUMNS = 8
"""Levels of the second variable up to which two variables are shown as a crossed table."""


def json_text(content: Any, is_ascii: bool = False) -> str:
    """Return what a machine reads: levels that JSON does not have are text, no number is NaN.

    Characters that move a cursor are escaped, and with `is_ascii` all that are not in ASCII.

    Examples
    --------
    >>> json_text({"level": True, "objective": float("-inf")})
    '{"level": true, "objective": null}'
    """
    text = json.dumps(_for_json(content), ensure_ascii=is_ascii, allow_nan=False)
    return "".join(
        one if one == shown else f"\\u{ord(one):04x}"
        for one, shown in zip(text, on_line(text), strict=True)
    )


def _for_json(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _for_json(item) for key, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [_for_json(item) for item in content]
    if isinstance(content, np.generic):
        return _for_json(content.item())
    if isinstance(content, float) and not math.isfinite(content):
        return None
    if content is None or isinstance(content, (str, bool, int, float)):
        return content
    return text_of(content)


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Return a bar that is `share` of the width long, to an eighth of a character.

    Examples
    --------
    >>> bar(0.5, width=5)
    '██▌'
    """
    eighths = round(8 * width * share)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


class Errors(NamedTuple):
    """How sure some numbers are: an entry for each of them."""

    level: float
    """How often the intervals hold the truth."""
    se: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def for_json(self, place: int) -> dict[str, float]:
        """Return what is known of one number as a plain object."""
        return {name: float(getattr(self, name)[place]) for name in ("se", "low", "high")}


class Answer(NamedTuple):
    """What a query gives: the joint table of what was asked, and what was given."""

    pmf: JointPMF
    """Over the variables that were asked for, in the order asked."""
    given: Mapping[str, Sequence[Any]]
    errors: Errors | None = None
    """Of each cell in the order of `rows`, and of the mean if there is one."""
    members: MemberRange | None = None
    """The range of each cell over the members of an average of fits, in the order of `rows`."""
    note: str = ""
    """Why there is no such range, though the model is an average."""

    def with_members(self, pmf: JointPMF, n_averaged: int) -> Answer:
        """Return the answer with the range over the members of the model."""
        from jointpmf.judge.member_range import distribution, range_over_members

        try:
            query = distribution(self.pmf.domain.names, self.given, pmf.domain)
            return self._replace(members=range_over_members(pmf, n_averaged, query))
        except JointPMFError as error:
            return self._replace(note=f"The range over members is not shown: {error}.")

    @property
    def title(self) -> str:
        """What is shown, in words."""
        asked = " and ".join(self.pmf.domain.names)
        known = [f"{name} = {' or '.join(map(text_of, one))}" for name, one in self.given.items()]
        return f"{asked}, given {', '.join(known)}" if known else asked

    def rows(self) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Yield every combination of levels with its probability."""
        levels = product(*(variable.levels for variable in self.pmf.domain))
        return zip(levels, self.pmf.table().ravel().tolist(), strict=True)

    def moments(self) -> tuple[float, float] | None:
        """Return the mean and the standard deviation of a single variable that has values."""
        (first, *others) = self.pmf.domain
        if first == component_variable(self.pmf.rank, self.pmf.component_names):
            return None  # its numbers only tell components apart
        are_numbers = first.time is None and set(map(type, first.levels)) != {bool}
        if others or first.values is None or not are_numbers:
            return None
        values, shares = np.array(first.values), self.pmf.table()
        mean = float(shares @ values)
        return mean, math.sqrt(max(float(shares @ (values - mean) ** 2), 0.0))

    def for_json(self) -> dict[str, Any]:
        """Return all of it as plain objects."""
        names = self.pmf.domain.names
        found: dict[str, Any] = {
            "of": names,
            "given": self.given,
            "distribution": [
                {"levels": dict(zip(names, levels, strict=True)), "probability": share}
                for levels, share in self.rows()
            ],
            **({"note": self.note} if self.note else {}),
        }
        if moments := self.moments():
            found["mean"], found["standard_deviation"] = moments
        if self.members is not None:
            for place, cell in enumerate(found["distribution"]):
                cell["lowest_member"] = float(self.members.lowest[place])
                cell["highest_member"] = float(self.members.highest[place])
        if self.errors is not None:
            found["level"] = self.errors.level
            for place, cell in enumerate(found["distribution"]):
                cell |= self.errors.for_json(place)
            if moments:
                found["mean_error"] = self.errors.for_json(-1)
        return found

    def show(self, console: Console, top: int) -> None:
        """Print it as a table."""
        console.print(self._heading())
        self._show_table(console, top)
        if self.note:
            console.print(Text(self.note))

    def _show_table(self, console: Console, top: int) -> None:
        domain, errors = self.pmf.domain, self.errors
        is_small = len(domain) == 2 and domain.sizes[1] <= _MAX_COLUMNS and domain.sizes[0] <= top
        if is_small and errors is None and self.members is None:
            console.print(self._crossed())
            return
        rows = list(self.rows())
        order = list(range(len(rows)))
        if len(domain) > 1 or len(rows) > top:
            order.sort(key=lambda place: -rows[place][1])
        shown = [rows[place] for place in order[:top]]
        if errors is None:
            console.print(_bar_table(domain.names, shown, order, self.members))
        else:
            width = min(_BAR_WIDTH, max(8, console.width - _BESIDE_BAR))
            console.print(_error_table(domain.names, shown, errors, order, width, self.members))
        if len(rows) > top:
            rest = sum(rows[place][1] for place in order[top:])
            console.print(f"… and {len(rows) - top} less likely ones, {rest:.1%} together (--top)")
        if moments := self.moments():
            mean, deviation = moments
            between = "" if errors is None else f" ({errors.low[-1]:.4g} to {errors.high[-1]:.4g})"
            console.print(f"mean {mean:.4g}{between}, standard deviation {deviation:.4g}")

    def _heading(self) -> Text:
        title = label(self.title, "bold")
        if self.errors is not None:
            title.append(f"; from low to high: {100 * self.errors.level:g} %", style="not bold dim")
        return title

    def _crossed(self) -> Table:
        first, second = self.pmf.domain
        table = plain_table(first.name)
        for level in second.levels:
            table.add_column(label(f"{second.name}\n{text_of(level)}"), justify="right")
        table.add_column("all", justify="right")
        shares = self.pmf.table()
        for level, row in zip(first.levels, shares, strict=True):
            table.add_row(label(text_of(level)), *map(percent, row), percent(row.sum()))
        table.add_section()
        table.add_row("all", *map(percent, shares.sum(axis=0)), percent(1.0))
        return table


def label(text: str, style: str = "") -> Text:
    r"""Return a name or a level for a table, whose columns are as wide as what is shown.

    Examples
    --------
    >>> label("a\x1b[2J").plain
    'a␛[2J'
    """
    return Text(on_lines(text), style)


def plain_table(*headings: str) -> Table:
    """Return an empty table without lines around its cells."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(label(heading))
    return table


def _bar_table(
    names: Iterable[str],
    rows: Sequence[tuple[tuple[Any, ...], float]],
    places: Sequence[int],
    members: MemberRange | None,
) -> Table:
    """Return rows with bars; `places` says where in `members` each row is."""
    table = plain_table(*names)
    table.add_column("probability", justify="right")
    if members is not None:
        table.add_column(_MEMBERS)
    table.add_column("")
    most = max(share for _, share in rows) or 1.0
    for (levels, share), place in zip(rows, places, strict=False):
        cells = [label(text_of(level)) for level in levels]
        ends = _member_cells(members, place)
        table.add_row(*cells, percent(share), *ends, Text(bar(share / most), style="cyan"))
    return table


def _member_cells(members: MemberRange | None, place: int) -> list[str]:
    """Return the cell of the column of members, if there is such a column."""
    if members is None:
        return []
    return [f"{percent(members.lowest[place])} to {percent(members.highest[place])}"]


def _error_table(
    names: Iterable[str],
    rows: Sequence[tuple[tuple[Any, ...], float]],
    errors: Errors,
    places: Sequence[int],
    width: int,
    members: MemberRange | None,
) -> Table:
    """Return rows with how sure they are; bars are solid up to the low end, and light to the high.

    `places` says where in `errors` and `members` each row is, `width` how long the longest bar is.
    """
    table = plain_table(*names)
    for heading in ("probability", "se", "low", "high"):
        table.add_column(heading, justify="right")
    if members is not None:
        table.add_column(_MEMBERS)
    table.add_column("")
    most = max(errors.high[place] for place in places[: len(rows)]) or 1.0
    for (levels, share), place in zip(rows, places, strict=False):
        low, high = errors.low[place], errors.high[place]
        solid = bar(low / most, width)
        light = "░" * (round(width * high / most) - len(solid))
        cells = [label(text_of(level)) for level in levels]
        numbers = map(percent, (share, errors.se[place], low, high))
        ends = _member_cells(members, place)
        table.add_row(*cells, *numbers, *ends, Text(solid + light, style="cyan"))
    return table


def domain_table(domain: Domain) -> Table:
    """Return the variables and their levels as a table for people."""
    table = plain_table("variable")
    table.add_column("levels", justify="right")
    table.add_column("")
    for variable in domain:
        table.add_row(
            label(variable.name, "bold"),
            str(variable.size),
            label(listing_of_texts(variable.levels)),
        )
    return table


def variable_for_json(variable: Variable) -> dict[str, Any]:
    """Return a variable as plain objects.

    Examples
    --------
    >>> variable_for_json(Variable("vote", ("no", "yes")))
    {'name': 'vote', 'levels': ('no', 'yes'), 'values': None, 'edges': None}
    """
    return {
        "name": variable.name,
        "levels": variable.levels,
        "values": variable.values,
        "edges": variable.edges,
        **({} if variable.time is None else {"time": variable.time}),
    }
