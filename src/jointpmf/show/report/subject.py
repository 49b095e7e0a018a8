"""What a report is about: a model, and what is known of its fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointpmf.errors import JointPMFError
from jointpmf.pmf import JointPMF
from jointpmf.show.report.traits import has_traits
from jointpmf.show.text import whole_in
from jointpmf.solvers.loop import Status

if TYPE_CHECKING:
    from jointpmf.fit.solution import Restart, Solution
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.model_file import ModelFile
    from jointpmf.solvers.loop import Step


@dataclass(frozen=True)
class Subject:
    """A model and what is known of its fit, from a Solution or from a model file.

    `about` is text by topic, as in model files; `status` is None where it is not known.
    """

    pmf: JointPMF
    about: Mapping[str, str]
    status: Status | None = None
    history: Sequence[Step] = ()
    restarts: Sequence[Restart] = ()
    marginals: MarginalSet | None = None
    is_unique: bool | None = None
    n_averaged: int = 1
    """How many fits the model is the average of; 1 if it is a single fit."""
    is_of_file: bool = False
    """Whether all that is known of the fit comes from a model file."""

    def __post_init__(self) -> None:
        if not len(self.pmf.domain):
            raise JointPMFError("there is nothing to report on a model without variables")

    @classmethod
    def of_solution(cls, solution: Solution) -> Subject:
        """Return what a Solution tells."""
        marginals = solution.marginals
        about = {
            "method": "likelihood" if marginals is None else "marginals",
            "tables": "" if marginals is None else str(len(marginals)),
            "source": str(solution.source or ""),
            "start": str(solution.start or ""),
            "starts": str(solution.n_starts) if solution.replication else "",
            "agreed": str(solution.n_agreed) if solution.replication else "",
            "averaged": str(solution.n_averaged) if solution.n_averaged > 1 else "",
            "status": solution.status.value,
            "objective": f"{solution.objective:.10g}",
            "validation": "" if solution.validation is None else f"{solution.validation:.10g}",
            "iterations": str(solution.n_iter),
            "seconds": f"{solution.history[-1].seconds:.3g}" if solution.history else "",
        }
        return cls(
            solution.pmf,
            {topic: text for topic, text in about.items() if text},
            solution.status,
            solution.history,
            solution.restarts,
            marginals,
            solution.is_unique,
            solution.n_averaged,
        )

    @classmethod
    def of_file(cls, found: ModelFile) -> Subject:
        """Return what a model file tells."""
        status = next((one for one in Status if one.value == found.about.get("status")), None)
        n_averaged = max(whole_in(found.about.get("averaged", "")) or 1, 1)
        pmf = JointPMF(*found.model)
        return cls(pmf, found.about, status, n_averaged=n_averaged, is_of_file=True)

    @property
    def has_components(self) -> bool:
        """Whether the components are to be read one by one, and their parameters counted."""
        return self.n_averaged == 1 and not has_traits(self.pmf)

    @property
    def is_by_rows(self) -> bool:
        """Whether whole rows were fitted, as far as is known, rather than marginals."""
        return self.about.get("method", "likelihood") == "likelihood" and self.marginals is None

    @property
    def n_rows(self) -> float | None:
        """How many rows were fitted, if known."""
        if (rows := whole_in(self.about.get("rows", ""))) is not None:
            return rows
        counted = [m.n_obs for m in self.marginals or () if m.n_obs is not None]
        return max(counted, default=None)
