"""What a fit returns: the model, and every fact about how it was found, as fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.errors import shown
from jointpmf.solvers.loop import Outcome, Status, Step, sentence_of_end

if TYPE_CHECKING:
    import os

    from jointpmf.domain import Domain
    from jointpmf.fit.settings import Likelihood
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.pmf import JointPMF
    from jointpmf.rows.source import Source
    from jointpmf.traits import TraitModel

Reopen = Callable[[], "AbstractContextManager[Source]"]
"""Gives the rows of a fit again, wherever they are."""

Callback = Callable[[Step, "JointPMF"], Any]
"""Called after every iteration with its line of history and the model; returning True stops."""


@dataclass(frozen=True)
class Start:
    """Where a fit began, and why there; `str` is a sentence.

    Attributes
    ----------
    kind : str
        "merged rows", "rows", "random", "traits", "algebraic" or "given".
    reason : str
        Why this one, if there is more to say.
    n_rows : float or None
        Size of the sample of rows on which it was found, if not on all of them.
    in_steps : bool
        Whether steps over all rows followed before the first iteration.
    """

    kind: str
    reason: str = ""
    n_rows: float | None = None
    in_steps: bool = False

    def __str__(self) -> str:
        """Say where the fit began."""
        text = f"{self.kind}: {self.reason}" if self.reason else self.kind
        if self.n_rows is not None:
            text += f", on {self.n_rows:.0f} rows"
        return text + (", then in steps" if self.in_steps else "")


class Restart(NamedTuple):
    """One of several fits: from where, how it ended, or why it failed."""

    start: str
    objective: float
    status: Status | None
    validation: float | None = None
    error: str = ""


class Residuals(list[tuple[tuple[str, ...], float]]):
    """The names of each marginal, and how far it is from the model's."""

    def to_frame(self, backend: str = "polars") -> Any:
        """Return them as a frame with the columns marginal and norm.

        Examples
        --------
        >>> Residuals([(("age", "vote"), 0.25)]).to_frame().rows()
        [('age, vote', 0.25)]
        """
        from jointpmf.data.decode import table_of

        names = [", ".join(names) for names, _ in self]
        norms = np.array([norm for _, norm in self], float)
        return table_of({"marginal": names, "norm": norms}, backend)


@dataclass(frozen=True)
class FittedTo:
    """What was fitted; `str` is a sentence.

    Attributes
    ----------
    kind : str
        "rows" or "marginals".
    n_rows, n_marginals : int or None
        How many rows or marginals there were.
    n_sampled : int or None
        How many of the rows were fitted, where that were not all.
    loss : str or None
        Of marginals: "squares", "likelihood" or "gaussian".
    weighting : "counts", tuple of float or None
        By squares: the weight of each of them; None if all are equal.
    """

    kind: str
    n_rows: int | None = None
    n_marginals: int | None = None
    n_sampled: int | None = None
    loss: str | None = None
    weighting: str | tuple[float, ...] | None = None

    def __str__(self) -> str:
        """Say what was fitted."""
        if self.kind == "marginals":
            return f"{self.n_marginals} marginals"
        if self.n_sampled is not None:
            return f"a sample of {self.n_sampled} of {self.n_rows} rows"
        return f"{self.n_rows} rows"


@dataclass(frozen=True)
class Solution:
    """A fitted model and how it was found.

    Attributes
    ----------
    pmf : JointPMF
        The best model that was found.
    status : Status
        How the fit ended; `status.value` is a sentence.
    objective : float
        What was minimised, at `pmf`.
    history : list of Step
        One line per iteration; the first is the start.
    start : Start or None
        Where the fit began, and why there.
    kkt : float or None
        How far a projected gradient step would move the model: zero at a stationary point.
    is_unique : bool or None
        Whether the marginals determine a model of this rank; None if it is too large to tell.
    validation : float or None
        The objective of the validation part at `pmf`, which is the lowest of all iterations.
    restarts : tuple of Restart
        All fits of a search that had several, the failed ones too.
    n_starts, n_agreed : int
        How many starts were tried, and how many of them ended at the best objective, to within a
        tolerance.
    n_averaged : int
        How many fits the model is the average of; 1 if it is a single fit.
    disagreement : float or None
        How far fits that are as good as each other are from their average, in nats.
    source : FittedTo or None
        What was fitted.
    settings : Likelihood or None
        The settings of a fit by likelihood.
    marginals : MarginalSet or None
        The tables, of a fit to tables.
    reopen : callable or None
        Gives the rows again, of a fit to rows that can be read again.
    fingerprint : int or None
        What rows in memory are known by.
    """

    pmf: JointPMF
    status: Status
    objective: float
    history: list[Step]
    start: Start | None = None
    kkt: float | None = None
    is_unique: bool | None = None
    validation: float | None = None
    restarts: tuple[Restart, ...] = ()
    n_starts: int = 1
    n_agreed: int = 1
    n_averaged: int = 1
    disagreement: float | None = None
    source: FittedTo | None = None
    settings: Likelihood | None = None
    marginals: MarginalSet | None = None
    reopen: Reopen | None = field(default=None, compare=False)
    fingerprint: int | None = None

    @classmethod
    def of(cls, outcome: Outcome, domain: Domain, start: Start | None = None) -> Solution:
        """Return where a run ended, with the model there."""
        from jointpmf.pmf import JointPMF

        point, status, objective, history, kkt, validation = outcome
        pmf = JointPMF.at(point, domain)
        return cls(pmf, status, objective, history, start, kkt, validation=validation)

    def __getstate__(self) -> dict[str, Any]:
        # a pickled solution, as that of an estimator, does not carry the rows with it
        return {**self.__dict__, "reopen": None}

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return self.history[-1].iteration if self.history else 0

    @property
    def trait_models(self) -> tuple[TraitModel, ...]:
        """Of components that lie in a space of traits: what they were computed from."""
        return self.pmf.trait_models

    @property
    def is_replicated(self) -> bool:
        """Whether the best optimum was found by more than one start, or is the only one."""
        return self.n_agreed > 1 or self.pmf.rank == 1

    @property
    def replication(self) -> str:
        """How often the best optimum was found, in words; empty after a single fit.

        Examples
        --------
        >>> import jointpmf as jp
        >>> pmf = jp.random_pmf(jp.Domain.of_sizes([2, 2]), rank=2, random_state=0)
        >>> Solution(pmf, jp.Status.CONVERGED, 1.0, [], n_starts=8, n_agreed=3).replication
        'found by 3 of 8 starts'
        """
        if self.n_starts == 1 or self.n_averaged > 1:
            return ""
        times = "only one" if self.n_agreed == 1 else str(self.n_agreed)
        return f"found by {times} of {self.n_starts} starts"

    def as_restart(self) -> Restart:
        """Return what is recorded of this fit where it is one of several."""
        return Restart(str(self.start), self.objective, self.status, self.validation)

    def stopped(self) -> Solution:
        """Return this solution as one that was stopped."""
        return replace(self, status=Status.STOPPED)

    @cached_property
    def residuals(self) -> Residuals:
        """How far each marginal is from the model's, as a Euclidean norm, worst first.

        Marginals that contradict each other end up here: the fit is their compromise.
        """
        norms = []
        for marginal in self.marginals or ():
            if marginal.is_of_everyone:
                fitted = self.pmf.marginal(marginal.names).table()
            else:
                measured = marginal.measured(self.pmf.domain, 1.0)
                fitted = measured.predicted(self.pmf.weights, self.pmf.factors)
            gaps = np.asarray(marginal.table) - fitted
            norms.append((tuple(marginal.names), float(np.sqrt(np.nansum(gaps**2)))))
        return Residuals(sorted(norms, key=lambda item: -item[1]))

    @property
    def about(self) -> dict[str, str]:
        """What a file of this model says of the fit, as texts by topic (docs/format.md)."""
        from jointpmf.fit.about import about_of

        return about_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, and from what and how it was learned; `jointpmf.load` reads the model.

        Examples
        --------
        >>> import tempfile
        >>> import jointpmf as jp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     jp.fit_rows([["rain"], ["sun"]], rank=1).save(f"{folder}/weather.safetensors")
        ...     jp.load(f"{folder}/weather.safetensors").domain.names
        ('x0',)
        """
        from jointpmf.model_file import write_model

        pmf = self.pmf
        known = pmf.component_names, pmf.trait_models
        write_model(path, pmf.domain, pmf.weights, pmf.factors, self.about, *known)

    def traits(self, rows: Any, backend: str = "polars") -> Any:
        """Return where each row lies in the space of traits, as `JointPMF.traits` does."""
        return self.pmf.traits(rows, backend)

    def loadings(self, backend: str = "polars") -> Any:
        """Return how the variables move with each trait, as `JointPMF.loadings` does."""
        return self.pmf.loadings(backend)

    def report(
        self,
        path: str | os.PathLike[str],
        table: Any = None,
        curve: Any = None,
        sample_weight: Any = None,
        uncertainty: Uncertainty | None = None,
        title: str | None = None,
    ) -> None:
        """Write one HTML page on the fit that a colleague can read; any browser opens it.

        What to watch out for, the components as a profile plot, in words and as a table, how well
        the model fits, the variables and their holes, whether the fit is unique and converged.

        Parameters
        ----------
        path : path
            Where to; a name that ends with ``.json`` is written as plain data.
        table : pandas, Polars or PyArrow table, array, or Codes, optional
            The rows that were fitted; without them, what needs them is left out.
        curve : RankCurve, optional
            What `choose_rank` returned.
        sample_weight : array of shape (rows,), optional
            What each row of the table counts for, as in the fit.
        uncertainty : Uncertainty, optional
            What `uncertainty` returned; bars and components then have 90 % intervals.
        title : str, optional
            What stands above it all; by default the name of the file.

        Examples
        --------
        >>> import os
        >>> import tempfile
        >>> import jointpmf as jp
        >>> rows = [["rain", "wet"], ["sun", "dry"], ["sun", None], ["rain", "wet"]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     jp.fit_rows(rows, rank=2, random_state=0).report(f"{folder}/fit.html", rows)
        ...     os.listdir(folder)
        ['fit.html']
        """
        from jointpmf.show.report.page import write_report

        write_report(path, self, table, curve, sample_weight, uncertainty, title)

    def uncertainty(
        self,
        n: int = 200,
        *,
        random_state: Any = None,
        resample: str = "auto",
        groups: Any = None,
        strata: Any = None,
        data: Any = None,
        sample_weight: Any = None,
        verbose: bool = False,
    ) -> Uncertainty:
        """Return how sure the model is: the same fit to data as other samples would have given.

        Parameters
        ----------
        n : int
            How many replicates. After Ctrl-C there are those that were done.
        random_state : int or numpy Generator, optional
            The same seed gives the same bits, whatever the number of threads.
        resample : {"auto", "bayesian", "multinomial", "counts", "model"}
            Rows get random weights, of the Bayesian bootstrap (by default) or whole numbers. Tables
            are drawn from their own counts, each by itself, or from the model, whose people are
            counted in all of them; by default from the model if the tables agree so well that they
            must be about the same people. Noise that tables have is drawn in either case.
        groups : array of labels of shape (rows,), optional
            Rows that were drawn together, such as the pupils of a school: whole groups are
            resampled.
        strata : array of labels of shape (rows,), optional
            Parts of the population that were drawn from separately; groups are resampled within.
        data, sample_weight : table and array, optional
            The rows of the fit and their weights, where the solution cannot open them again: those
            that came once, and those of a fit by `choose_rank`.
        verbose : bool
            Whether to show a progress bar.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> solution = jp.fit_rows(truth.sample(400, random_state=0), rank=1)
        >>> sure = solution.uncertainty(n=100, random_state=0)
        >>> frame = sure.marginal(["x0"])
        >>> bool((frame["low"] < frame["estimate"]).all())
        True
        """
        from jointpmf.judge.replicates import uncertainty_of

        return uncertainty_of(
            self, n, random_state, resample, groups, strata, data, sample_weight, verbose
        )

    def member_range(
        self, query: Any, given: Mapping[str, Any] | None = None, *, backend: str = "polars"
    ) -> Any:
        """Return an answer of an average of fits, with the lowest and highest of its members.

        The range shows how much the averaged fits differ. It is not a confidence interval, for
        which there is `uncertainty`, and it does not bound what the tables leave open, for which
        there is `jointpmf.bounds`.

        Parameters
        ----------
        query : mapping, str, list of str or callable
            Levels by variable, for their probability; the name of a variable whose levels have
            values, for its expected value; a list of names, for the probability of each
            combination of their levels; or a function of a JointPMF, as in `Uncertainty.interval`.
        given : mapping of names to levels, optional
            The evidence, on which the model and its members are conditioned.
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame.

        Returns
        -------
        frame
            One row per number: its labels, then the columns average, lowest and highest.

        Raises
        ------
        JointPMFError
            If the model is a single fit, or its members cannot be told apart.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 2, 2]), rank=2, random_state=0)
        >>> solution = jp.fit_marginals(truth.marginals(order=2), rank=3, random_state=0)
        >>> frame = solution.member_range({"x0": 0, "x1": 0}, given={"x2": 1})
        >>> frame.columns, frame["quantity"][0]
        (['quantity', 'average', 'lowest', 'highest'], 'P(x0 = 0, x1 = 0 | x2 = 1)')
        """
        from jointpmf.judge.member_range import member_range

        return member_range(self, query, given, backend)

    def __repr__(self) -> str:
        """Return the model and what is most worth knowing of the fit, on a line or two."""
        facts = [f"objective {self.objective:.6g}", f"{self.n_iter} iterations"]
        facts += [f"start {shown(str(self.start))}"] if self.start is not None else []
        facts += [self.replication] if self.replication else []
        facts += [f"the average of {self.n_averaged} fits"] if self.n_averaged > 1 else []
        facts += [f"fitted to {self.source}"] if self.source is not None else []
        return f"Solution({self.pmf!r}, {self.status.name}, {', '.join(facts)})"

    def __str__(self) -> str:
        """Say how the fit ended."""
        return f"{sentence_of_end(self.status, self.objective, self.history)}; {self.pmf!r}"

    def _repr_html_(self) -> str:
        """Return how the fit ended, and the model."""
        from jointpmf.show.notebook import solution_html

        return solution_html(self)
