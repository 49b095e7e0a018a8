"""The work of `impute`: which models fill a table, and the completed tables one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from jointpmf.command.console import warn
from jointpmf.data.as_it_came import AsItCame
from jointpmf.data.file_codes import coded_batches
from jointpmf.errors import JointPMFError
from jointpmf.judge.replicate_file import read_beside, replicates_path
from jointpmf.judge.uncertainty import Uncertainty
from jointpmf.predict.impute import check_is_drawn, impute, models_of_draws

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile
    from jointpmf.pmf import JointPMF

DRAW = "draw"
"""The column that says which of several tables a row is of."""


def models_for(
    pmf: JointPMF, path: str, draws: int, generator: np.random.Generator
) -> list[JointPMF]:
    """Return the model that each table is drawn from: replicates beside the model, if there are."""
    if path == "-" or not os.path.exists(replicates_path(path)):
        warn(
            "all tables are drawn from the one model, so that standard errors from them are too "
            "small: fit --replicates 200 writes models that can be drawn from beside it"
        )
        return models_of_draws(pmf, draws, generator)
    return models_of_draws(Uncertainty(*read_beside(path, pmf)), draws, generator)


def place_of_filled(data: str, output: str) -> str:
    """Return where a table is written that replaces what it is made from: there itself."""
    if data == "-":
        raise JointPMFError("--in-place needs a file; stdin cannot be replaced")
    if output != "-" and not (os.path.exists(output) and os.path.samefile(output, data)):
        raise JointPMFError(f"--in-place writes to {data}, not to {output}: leave one of them out")
    return data


@dataclass
class Filling:
    """A table whose holes are filled, once or several times.

    Attributes
    ----------
    pmf : JointPMF
        The model.
    generator : numpy Generator
        For draws.
    n_rows, n_filled : int
        How many rows the table has, and how many of its cells have been filled, each time.
    """

    pmf: JointPMF
    generator: np.random.Generator
    n_rows: int = field(default=0, init=False)
    n_filled: int = field(default=0, init=False)

    def once(self, table: TableFile, unknown: str, strategy: str) -> Iterator[pl.DataFrame]:
        """Yield the rows with their holes filled, some at a time."""
        yield from self._filled(self.pmf, table, unknown, strategy)

    def often(
        self, models: Sequence[JointPMF], table: TableFile, unknown: str, strategy: str
    ) -> Iterator[pl.DataFrame]:
        """Yield all rows with their holes drawn, and then again, from one model after the other."""
        check_is_drawn(strategy)
        if DRAW in table.columns:
            raise JointPMFError(
                f"the table has a column {DRAW!r} already, which is to say which draw a row is of: "
                "give it another name"
            )
        for number, pmf in enumerate(models, 1):
            for batch in self._filled(pmf, table, unknown, "sample"):
                yield batch.select(pl.lit(number).alias(DRAW), pl.all())

    def _filled(
        self, pmf: JointPMF, table: TableFile, unknown: str, strategy: str
    ) -> Iterator[pl.DataFrame]:
        self.n_rows = self.n_filled = 0
        rows = AsItCame(table, pmf.domain.names)
        for batch, codes in coded_batches(rows, pmf.domain, unknown):  # type: ignore[arg-type]
            known = [name for name in pmf.domain.names if name in batch.columns]
            filled = impute(pmf, batch, _strategies(pmf, known, strategy), self.generator)
            self.n_rows += len(batch)
            self.n_filled += int((codes.array[:, pmf.domain.indices(known)] < 0).sum())
            yield filled.select(batch.columns)


def _strategies(pmf: JointPMF, known: Sequence[str], strategy: str) -> dict[str, str]:
    """Return the strategy of each column: levels without values have a mode, but no mean."""
    if strategy != "expectation":
        return dict.fromkeys(known, strategy)
    return {name: "mode" if pmf.domain[name].values is None else "expectation" for name in known}
