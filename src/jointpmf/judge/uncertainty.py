"""How sure: what the model would have been from other samples, and what that does to an answer.

Every replicate is a whole model, so that any question may be asked of it; how far the answers are
apart is how unsure the answer is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.decode import table_of
from jointpmf.domain import name_list, text_of
from jointpmf.errors import JointPMFError, checked_level, shown
from jointpmf.judge.answers import Answer, Query, answer_of, answers_of
from jointpmf.judge.information import mutual_information
from jointpmf.judge.intervals import interval_columns
from jointpmf.pmf import JointPMF
from jointpmf.point import Point

if TYPE_CHECKING:
    from jointpmf.output import PathLike

logger = logging.getLogger("jointpmf")

_MOST_UNCLEAR = 0.1
"""The part of the replicates whose components may be hard to match without a warning."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """A model, and what it would have been from other samples.

    Attributes
    ----------
    pmf : JointPMF
        The model: the estimate.
    weights : array of shape (replicates, rank)
        The weights of each replicate; its components are in the order of the model's.
    factors : array of shape (replicates, levels, rank)
        The factors of all variables of each replicate, under each other.
    is_clear : array of bool of shape (replicates,)
        Of which replicates it is clear which component is which of the model's.
    reference : JointPMF
        What the way of refitting makes of the data as they are, from which replicates differ.
    resampling : str
        How the data were resampled: rows by "bayesian" or "multinomial" weights, tables from
        their "counts" or from the "model".

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
    >>> solution = jp.fit_rows(truth.sample(99, random_state=0), rank=1)
    >>> sure = solution.uncertainty(n=50, random_state=0)
    >>> sure.marginal(["x0"], level=0.95).columns
    ['x0', 'estimate', 'se', 'low', 'high']
    """

    pmf: JointPMF
    weights: np.ndarray
    factors: np.ndarray
    is_clear: np.ndarray
    reference: JointPMF
    resampling: str

    def __len__(self) -> int:
        """Return the number of replicates."""
        return len(self.weights)

    @cached_property
    def pmfs(self) -> tuple[JointPMF, ...]:
        """The replicates, each as a model."""
        domain, names = self.pmf.domain, self.pmf.component_names
        points = map(Point, self.weights, self.factors)
        return tuple(JointPMF.at(point, domain, names) for point in points)

    def __repr__(self) -> str:
        """Say how many replicates there are, and how they were made."""
        return f"Uncertainty({len(self)} replicates ({self.resampling}) of {self.pmf!r})"

    def _repr_html_(self) -> str:
        """Return the first variables with their intervals."""
        from jointpmf.show.notebook import uncertainty_html

        return uncertainty_html(self)

    def interval(self, query: Query, level: float = 0.9, *, backend: str = "polars") -> Any:
        """Return the answer to any question about the model, with its standard error and interval.

        Parameters
        ----------
        query : callable
            A function of a JointPMF that returns a number, an array, a mapping of names to numbers,
            or a JointPMF of few variables, whose cells are then labelled by their levels.
        level : float
            How often such intervals hold the truth.
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame.

        Returns
        -------
        frame
            One row per number: what it is of, then estimate, se, low and high.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> sure.interval(lambda pmf: pmf.marginal(["x1"])).columns
        ['x1', 'estimate', 'se', 'low', 'high']
        """
        estimate, columns = self.columns(query, level)
        return estimate.to_frame(columns, backend)

    def columns(
        self, query: Query, level: float, are_probabilities: bool = False
    ) -> tuple[Answer, dict[str, np.ndarray]]:
        """Return the model's answer, and its columns estimate, se, low and high."""
        level = checked_level(level)
        estimate, deviations = self.deviations(query)
        are_probabilities = are_probabilities or estimate.are_probabilities
        return estimate, interval_columns(estimate.values, deviations, level, are_probabilities)

    def deviations(self, query: Query) -> tuple[Answer, np.ndarray]:
        """Return the model's answer, and how far that of each replicate is from the reference's."""
        if not callable(query):
            raise JointPMFError(f"a query must be a function of a JointPMF, not {shown(query)}")
        estimate = answer_of(query, self.pmf, "the model")
        reference = answer_of(query, self.reference, "the reference")
        values = answers_of(query, self.pmfs, "replicate", estimate)
        return estimate, values - reference.values

    def marginal(
        self,
        names: Iterable[str],
        given: Mapping[str, Any] | None = None,
        level: float = 0.9,
        *,
        backend: str = "polars",
    ) -> Any:
        """Return the probabilities of some variables, given the evidence if there is any.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> sure.marginal(["x1"], given={"x0": 1})["x1"].to_list()
        [0, 1, 2]
        """
        asked = name_list(names)
        if not asked:
            raise JointPMFError("no variable was asked for")

        def query(pmf: JointPMF) -> JointPMF:
            return (pmf if given is None else pmf.condition(given)).marginal(asked)

        return self.interval(query, level, backend=backend)

    def predict_proba(
        self, rows: Any, target: str, level: float = 0.9, *, backend: str = "polars"
    ) -> Any:
        """Return the probability of each level of the target given each row's other cells.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> sure.predict_proba([[0, None], [1, None]], "x1").shape
        (6, 6)
        """
        codes = self.pmf._codes(rows)
        estimate, columns = self.columns(lambda pmf: pmf.predict_proba(codes, target), level, True)
        row, place = estimate.labels.values()
        levels = self.pmf.marginal([target]).domain.variables[0].levels
        if target == "row":
            raise JointPMFError("a variable is called 'row', as a column of the answer is")
        labelled = replace(estimate, labels={"row": row, target: (levels, place)})
        return labelled.to_frame(columns, backend)

    def expectation(
        self, rows: Any, target: str, level: float = 0.9, *, backend: str = "polars"
    ) -> Any:
        """Return the expected value of the target given each row's other observed cells.

        The interval is of the expectation, which is much narrower than where the value itself
        may be.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> sure.expectation([[0, None], [1, None]], "x1").columns
        ['row', 'estimate', 'se', 'low', 'high']
        """
        codes = self.pmf._codes(rows)
        _, columns = self.columns(lambda pmf: pmf.expectation(codes, target), level)
        return table_of({"row": np.arange(codes.n_rows), **columns}, backend)

    def mode(self, rows: Any, target: str, level: float = 0.9, *, backend: str = "polars") -> Any:
        """Return the most likely level of the target given each row's other observed cells.

        `share` is the part of the replicates that agree; low and high are the levels between which
        the most likely ones are, where levels have values, and se is that of these values.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> sure.mode([[0, None], [1, None]], "x1").columns
        ['row', 'estimate', 'se', 'low', 'high', 'share']
        """
        codes, tail = self.pmf._codes(rows), (1 - checked_level(level)) / 2
        variable = self.pmf.marginal([target]).domain.variables[0]
        best = np.array([p.predict_proba(codes, target).argmax(axis=1) for p in self.pmfs])
        own = self.pmf.predict_proba(codes, target).argmax(axis=1)
        columns: dict[str, Any] = {"row": np.arange(codes.n_rows)}
        columns["estimate"] = (variable.levels, own)
        if variable.values is None:
            unknown = np.full(codes.n_rows, np.nan)
            columns |= {"se": unknown, "low": unknown, "high": unknown}
        else:
            columns["se"] = np.array(variable.values)[best].std(axis=0, ddof=1)
            for name, part in (("low", tail), ("high", 1 - tail)):
                place = np.quantile(best, part, axis=0, method="nearest")
                columns[name] = (variable.levels, place.astype(np.int64))
        return table_of({**columns, "share": (best == own).mean(axis=0)}, backend)

    def mutual_information(
        self,
        first: Iterable[str],
        second: Iterable[str],
        level: float = 0.9,
        *,
        backend: str = "polars",
    ) -> Any:
        """Return the mutual information of two small groups of variables, in nats.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=2, random_state=0).uncertainty(n=50, random_state=0)
        >>> sure.mutual_information("x0", "x1").columns
        ['estimate', 'se', 'low', 'high']
        """
        return self.interval(
            lambda pmf: mutual_information(pmf, first, second), level, backend=backend
        )

    def sizes(self, level: float = 0.9, *, backend: str = "polars") -> Any:
        """Return the weights of the components (latent classes).

        Components of the replicates are those of the model that they are most like. Where that is
        not clear for more than a tenth of them, a warning says so.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
        >>> rows = truth.sample(500, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=2, random_state=0).uncertainty(n=50, random_state=0)
        >>> sure.sizes().columns
        ['component', 'estimate', 'se', 'low', 'high']
        """
        self._check_components()
        _, columns = self.columns(lambda pmf: pmf.weights, level, are_probabilities=True)
        return table_of({"component": [*self.pmf.component_labels], **columns}, backend)

    def profiles(
        self, names: Iterable[str] | None = None, level: float = 0.9, *, backend: str = "polars"
    ) -> Any:
        """Return the probability of each level of some or all variables in each component.

        Components are matched as in `sizes`.

        Examples
        --------
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([3] * 4), rank=2, random_state=0)
        >>> rows = truth.sample(500, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=2, random_state=0).uncertainty(n=50, random_state=0)
        >>> sure.profiles(["x0"]).columns
        ['component', 'variable', 'level', 'estimate', 'se', 'low', 'high']
        """
        self._check_components()
        domain, rank = self.pmf.domain, self.pmf.rank
        which = domain.indices(domain.names if names is None else name_list(names))

        def query(pmf: JointPMF) -> np.ndarray:
            return np.concatenate([pmf.factors[n].ravel() for n in which])

        _, columns = self.columns(query, level, are_probabilities=True)
        kept = [domain.variables[n] for n in which]
        titles = [(v.name, text_of(each)) for v in kept for each in v.levels for _ in range(rank)]
        labels = {
            "component": [*self.pmf.component_labels] * (len(titles) // rank),
            "variable": [name for name, _ in titles],
            "level": [text for _, text in titles],
        }
        return table_of({**labels, **columns}, backend)

    def _check_components(self) -> None:
        """Refuse questions about components that mean nothing, and warn where they mean little."""
        if not self.is_clear.any():
            raise JointPMFError(
                "its components cannot be matched across replicates: the model is the average of "
                "several fits, or its rank is too large for the data"
            )
        n_unclear = len(self) - int(self.is_clear.sum())
        if n_unclear > _MOST_UNCLEAR * len(self):
            logger.warning(
                "in %d of %d replicates it is not clear which component is which, so that "
                "intervals of components mean little: a smaller rank may help",
                n_unclear,
                len(self),
            )

    def save(self, path: PathLike) -> None:
        """Write the model and its replicates to a file; docs/format.md describes it.

        The model keeps its bits; replicates keep seven digits. The command looks for the replicates
        of `survey.safetensors` in `survey.replicates.safetensors`.

        Examples
        --------
        >>> import tempfile
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sure.save(f"{folder}/survey.replicates.safetensors")
        ...     len(Uncertainty.load(f"{folder}/survey.replicates.safetensors"))
        50
        """
        from jointpmf.judge.replicate_file import write_replicates

        write_replicates(path, self)

    @classmethod
    def load(cls, path: PathLike) -> Uncertainty:
        """Return the model and its replicates from a file that `save` wrote.

        Examples
        --------
        >>> import tempfile
        >>> import jointpmf as jp
        >>> truth = jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank=1, random_state=0)
        >>> rows = truth.sample(99, random_state=0)
        >>> sure = jp.fit_rows(rows, rank=1).uncertainty(n=50, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sure.save(f"{folder}/survey.replicates.safetensors")
        ...     again = Uncertainty.load(f"{folder}/survey.replicates.safetensors")
        >>> bool((again.pmf.weights == sure.pmf.weights).all())
        True
        """
        from jointpmf.judge.replicate_file import read_replicates

        return cls(*read_replicates(path))
