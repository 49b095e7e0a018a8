"""`jointpmf fit --replicates`: what the model would have been from other samples."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jointpmf as jp
from jointpmf.command.console import console, warn
from jointpmf.command.models import check_replaces_nothing
from jointpmf.errors import JointPMFError
from jointpmf.judge.replicate_file import replicates_path
from jointpmf.rows.resampling import Design

if TYPE_CHECKING:
    from jointpmf.command.fitting import Columns, Sample
    from jointpmf.fit.memory import Room
    from jointpmf.rows.reading import FileReading


@dataclass
class Replicating:
    """Replicates that are to be made of a fit, while its rows are open.

    Attributes
    ----------
    sample : Sample
        How many, and which columns say which rows were drawn together.
    seed : int
        That of the fit.
    held : ExitStack
        Keeps the rows open until the replicates are made.
    labels : dict of arrays
        The groups and the strata of the rows, if columns were named.
    """

    sample: Sample
    seed: int
    held: ExitStack
    labels: dict[str, Any] = field(default_factory=dict)

    def left_out(self, columns: Columns) -> list[str]:
        """Return the columns that are no variables of the model, unless --only names them."""
        return [name for name in self.sample.columns.values() if name not in (columns.only or ())]

    def read_labels(self, reading: FileReading, room: Room) -> None:
        """Read which rows were drawn together, and raise now if that cannot be resampled."""
        from jointpmf.data.label_column import labels_in

        columns = self.sample.columns
        self.labels = {what: labels_in(reading.table, columns[what], what) for what in columns}
        if self.labels:
            n_rows = len(next(iter(self.labels.values())))
            Design.of(self.labels.get("groups"), self.labels.get("strata"), n_rows)
            if n_rows > room.n_rows(reading.domain):
                raise JointPMFError(
                    f"groups and strata need rows in memory, and the {n_rows} rows of "
                    f"{reading.table.name} are too many for {room}"
                )

    def put(self, solution: jp.Solution, output: str) -> dict[str, Any] | None:
        """Make the replicates and write them; return what there is to say of them."""
        n = self.sample.replicates
        if n is None:
            return None
        if solution.status == jp.Status.STOPPED:
            warn("the fit was stopped, so that no replicates were made")
            return None
        bar = console(stderr=True).is_terminal
        try:
            sure = solution.uncertainty(n, random_state=self.seed, verbose=bar, **self.labels)
        except KeyboardInterrupt:
            warn("interrupted before two replicates were done, so that none are written")
            return None
        path = str(replicates_path(output))
        sure.save(path)
        return {"file": path, "number": len(sure), "resampling": sure.resampling}


def check_sample(sample: Sample, output: str, data: Sequence[str]) -> None:
    """Raise if replicates are asked for that should not be written there, or half asked for."""
    if sample.replicates is None and sample.columns:
        raise JointPMFError("--groups and --strata belong to --replicates")
    if sample.replicates is not None and output == "-":
        raise JointPMFError("--replicates are written beside the model: give -o a file, not -")
    if sample.replicates is not None:
        check_replaces_nothing(str(replicates_path(output)), "replicates", {"data": data})
