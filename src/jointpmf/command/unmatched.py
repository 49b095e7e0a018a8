"""Columns of a table that a model does not have, and variables of a model that a table lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jointpmf.command.console import warn
from jointpmf.errors import listing


class Unmatched(NamedTuple):
    """What of a table and of a model does not belong to each other."""

    left_out: list[str]
    """Columns of the table that are not in the model."""
    lacking: list[str]
    """Variables of the model that the table does not have."""

    @classmethod
    def of(
        cls, variables: Iterable[str], columns: Iterable[str], used: Iterable[str | None] = ()
    ) -> Unmatched:
        """Return what does not match, except columns that are used for something else.

        Examples
        --------
        >>> Unmatched.of(["age", "vote"], ["id", "age", "w"], used=["w"])
        Unmatched(left_out=['id'], lacking=['vote'])
        """
        variables, columns = list(variables), list(columns)
        known = {*variables, *used}
        return cls(
            [name for name in columns if name not in known],
            [name for name in variables if name not in set(columns)],
        )

    def say(self, fate: str) -> None:
        """Say on stderr what does not match; `fate` is what became of the columns."""
        if self.left_out:
            are = "1 column of the table that is"
            if len(self.left_out) > 1:
                are = f"{len(self.left_out)} columns of the table that are"
            warn(f"{fate}: {are} not in the model, {listing(self.left_out)}")
        if self.lacking:
            warn(f"taken as missing: {listing(self.lacking)} of the model, not in the table")
