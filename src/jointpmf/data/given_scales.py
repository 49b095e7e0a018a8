"""Scales that a user gives: levels in their order, for all columns that share them or for one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jointpmf.domain import number_in, text_of
from jointpmf.errors import JointPMFError, is_hashable, listing, shown

if TYPE_CHECKING:
    from jointpmf.domain import Variable

logger = logging.getLogger("jointpmf")

Levels = Sequence[Any] | Mapping[str, Sequence[Any]]
"""A scale, several scales, or the scale of each column that is named."""


@dataclass(frozen=True)
class Scales:
    """The scales that a user has given.

    Attributes
    ----------
    of_any : sequence of scales
        Of every column of text that has a level in common with one of them.
    by_name : mapping of name to scale
        Of one column each.
    """

    of_any: Sequence[tuple[str, ...]] = ()
    by_name: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, levels: Levels | None) -> Scales:
        """Return the scales that a list, a list of lists or a mapping is, after checking them.

        Examples
        --------
        >>> Scales.of(["low", "high"]).of_any, Scales.of({"dose": [1, 5]}).by_name
        ((('low', 'high'),), {'dose': (1, 5)})
        """
        if levels is None or isinstance(levels, Scales):
            return levels or cls()
        if isinstance(levels, Mapping):
            return cls((), {name: _checked(one, f"of {name!r}") for name, one in levels.items()})
        if not isinstance(levels, (list, tuple)) or not levels:
            raise JointPMFError(
                "levels must be a list of levels in their order, several of them, or map a "
                f"column's name to one, not {shown(levels)}"
            )
        several = [one for one in levels if isinstance(one, (list, tuple))]
        scales = several if len(several) == len(levels) else [levels]
        return cls(tuple(_checked(one, f"{shown(one)}", is_text=True) for one in scales))

    def check_names(self, names: Sequence[str]) -> None:
        """Raise if a scale was given for a column that there is not."""
        for name in self.by_name:
            if name not in names:
                raise JointPMFError(
                    f"levels name {shown(name)}, which is no column; columns are {listing(names)}"
                )

    def check_used(self, variables: Iterable[Variable]) -> None:
        """Log which scale has no level in common with any column, and is of no use."""
        used = {level for variable in variables for level in variable.levels}
        for scale in self.of_any:
            if used.isdisjoint(scale):
                logger.warning("no column has a level of the scale %s", _written(scale))

    def levels_of(
        self, name: str, levels: Sequence[Any], order: Sequence[Any] | None = None
    ) -> tuple[Any, ...] | None:
        """Return all levels of a column in the order of its scale; None if it has none.

        Parameters
        ----------
        name : str
            The column's name.
        levels : sequence
            The levels that it has.
        order : sequence, optional
            The same levels in an order that is the column's own, which a scale may not contradict.

        Examples
        --------
        >>> Scales.of(["low", "some", "high"]).levels_of("dose", ["high", "low"])
        ('low', 'some', 'high')
        """
        scale = self._scale_of(name, levels)
        if scale is None:
            return None
        found = _in_own_types(scale, levels)
        missed = [level for level in levels if level not in found]
        if missed:
            raise JointPMFError(
                f"the scale {_written(scale)} misses the level {shown(missed[0])} of column "
                f"{name!r}; give all of its levels, or scales by name: levels={{{name!r}: […]}}"
            )
        given = [level for level in found if level in levels]
        if order is not None and list(order) != given:
            raise JointPMFError(
                f"the scale {_written(scale)} contradicts the order of the type of column "
                f"{name!r}, {_written(order)}"
            )
        return found

    def _scale_of(self, name: str, levels: Sequence[Any]) -> tuple[Any, ...] | None:
        if name in self.by_name:
            return self.by_name[name]
        if not all(isinstance(level, str) for level in levels):
            return None
        sharing = [scale for scale in self.of_any if set(scale) & set(levels)]
        whole = [scale for scale in sharing if set(scale) >= set(levels)]
        return next(iter(whole or sharing), None)


def _checked(scale: Any, which: str, is_text: bool = False) -> tuple[Any, ...]:
    if not isinstance(scale, (list, tuple)) or len(scale) < 2:
        raise JointPMFError(f"the scale {which} must be a list of at least two levels")
    if not all(map(is_hashable, scale)) or len(set(scale)) < len(scale):
        raise JointPMFError(f"the scale {which} has a level twice")
    if is_text and not all(isinstance(level, str) for level in scale):
        raise JointPMFError(
            f"the scale {which} is not of text: say which column it is of, levels={{name: […]}}"
        )
    return tuple(scale)


def _written(levels: Sequence[Any]) -> str:
    return shown(" < ".join(map(text_of, levels)))


def _in_own_types(scale: Sequence[Any], levels: Sequence[Any]) -> tuple[Any, ...]:
    """Return a scale with the column's own levels: texts may stand for numbers or times."""
    by_text = {text_of(level): level for level in levels}
    are_numbers = not any(isinstance(level, str) for level in levels)
    found = []
    for level in scale:
        if level not in levels and isinstance(level, str):
            number = number_in(level) if are_numbers else None
            level = by_text.get(level, level if number is None else number)
        found.append(level)
    return tuple(found)
