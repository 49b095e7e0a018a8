"""A fitted model as latent-class analysts read it: weights, profiles, criteria, separation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.codes import Codes, checked_weights
from jointpmf.data.decode import table_of
from jointpmf.data.encode import encode
from jointpmf.domain import MISSING, text_of
from jointpmf.errors import JointPMFError, shown
from jointpmf.fit.solution import Solution
from jointpmf.judge.posteriors import ComponentTally, most_likely, posterior_frame
from jointpmf.judge.sizes import labels_and_codes, sizes_in
from jointpmf.judge.text import aligned, rows_text, shares_text
from jointpmf.pmf import JointPMF
from jointpmf.solvers.jacobian import n_free_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jointpmf.judge.goodness import Goodness
    from jointpmf.judge.sizes import Sizes

_NAMES = {"aic": "AIC", "bic": "BIC", "abic": "aBIC", "caic": "CAIC"}
CRITERIA = tuple(_NAMES)
"""The information criteria; for all of them, smaller is better."""


def information_criteria(
    log_likelihood: float, n_parameters: int, n_rows: float
) -> dict[str, float]:
    """Return AIC, BIC, sample-size adjusted BIC and consistent AIC (docs/math.md, eq. 24).

    Examples
    --------
    >>> {k: round(v, 1) for k, v in information_criteria(-317.2568, 15, 118).items()}
    {'aic': 664.5, 'bic': 706.1, 'abic': 658.7, 'caic': 721.1}
    """
    penalties = {
        "aic": 2.0,
        "bic": math.log(n_rows),
        "abic": math.log((n_rows + 2) / 24),
        "caic": math.log(n_rows) + 1,
    }
    return {name: -2 * log_likelihood + n_parameters * penalties[name] for name in CRITERIA}


def criterion_name(criterion: str) -> str:
    """Return an information criterion by the name that people know it by; others are as they are.

    Examples
    --------
    >>> criterion_name("abic"), criterion_name("validation")
    ('aBIC', 'validation')
    """
    return _NAMES.get(criterion, criterion)


@dataclass(frozen=True)
class Summary:
    """What a model says about a table; `print` shows it as text.

    Attributes
    ----------
    pmf : JointPMF
        The model.
    n_rows, log_likelihood : float
        Rows with an observed cell, or the sum of their weights, and their log-likelihood.
    n_parameters : int
        Free parameters of the model.
    aic, bic, abic, caic : float
        Information criteria; smaller is better.
    relative_entropy : float
        How well the components (latent classes) separate, also called entropy R²: 1 if the
        component of every row is certain, 0 if the rows say nothing about it.
    components : array of shape (rows,)
        The most likely component of each row, −1 for a row without any observed cell.
    responsibilities : array of shape (rows, rank)
        P(component | row), the posterior; for a row without any observed cell, the weights.
    replication : str
        How often the best optimum was found, if the summary is of a Solution.
    """

    pmf: JointPMF
    n_rows: float
    log_likelihood: float
    n_parameters: int
    aic: float
    bic: float
    abic: float
    caic: float
    relative_entropy: float
    components: np.ndarray = field(repr=False)
    responsibilities: np.ndarray = field(repr=False)
    _table: tuple[Codes, np.ndarray | None] = field(repr=False, compare=False)
    _source: Any = field(repr=False, compare=False)
    replication: str = ""

    @property
    def criteria(self) -> dict[str, float]:
        """The information criteria by the names that people know them by."""
        return {criterion_name(name): getattr(self, name) for name in CRITERIA}

    @cached_property
    def sizes(self) -> Sizes:
        """How large the components are in all rows: by posterior, and by most likely component."""
        return self._sizes(np.zeros(len(self.components), np.int64), ["all"], "")

    @cached_property
    def classification(self) -> np.ndarray:
        """The classification table, of shape (rank, rank): mean posteriors by assigned component.

        Row `f` is about the rows whose most likely component is `f`: the mean of their posteriors.
        The nearer the diagonal is to one, the surer the assignment. NaN where there is no such row.
        """
        labels = range(self.pmf.rank)
        return self._sizes(self.components, labels, "").by_posterior[: self.pmf.rank]

    @property
    def told_sizes(self) -> dict[str, np.ndarray]:
        """What is printed of the sizes of the components, each array of shape (rank,), by name."""
        return {
            "weight": self.pmf.weights,
            "by posterior": self.sizes.by_posterior[0],
            "by most likely": self.sizes.by_component[0],
            "mean posterior": self.classification.diagonal(),
        }

    def sizes_by(self, column: Any) -> Sizes:
        """Return how large the components (latent classes) are in groups of rows.

        Parameters
        ----------
        column : str or array of shape (rows,)
            What the groups are: a column of the table that was summarised, whether the model has
            it or not, or a label for each row. Rows without a label are a group of their own, the
            last. Weights count as in the summary, and rows without any observed cell do not count.

        Examples
        --------
        >>> import polars as pl
        >>> from jointpmf import Domain, Variable
        >>> vote = Domain([Variable("vote", ("no", "yes"))])
        >>> sure = JointPMF(vote, [0.25, 0.75], [np.eye(2)], ["against", "for"])
        >>> people = pl.DataFrame({"vote": ["no", "yes", "yes"], "town": ["Bath", "Bath", "York"]})
        >>> print(summary(sure, people).sizes_by("town"))
        town rows against     for
        Bath    2  50.0 %  50.0 %
        York    1   0.0 % 100.0 %
        """
        labels, codes = labels_and_codes(column, self._source, self._table[0])
        return self._sizes(codes, labels, column if isinstance(column, str) else "label")

    def _sizes(self, codes: np.ndarray, labels: Sequence[Any], title: str) -> Sizes:
        components = self.pmf.component_labels
        return sizes_in(
            self.responsibilities, self._weights, codes, labels, components=components, title=title
        )

    @property
    def _weights(self) -> np.ndarray:
        """What each row counts for: nothing if it has no observed cell."""
        given = self._table[1]
        return (self.components != MISSING) * (1.0 if given is None else given)

    def posteriors(self, backend: str = "polars") -> Any:
        """Return the posteriors as a frame: a row for each row of the table.

        A column for each component (latent class) has P(component | row), and the column
        `most likely` the most likely one, which is missing for a row without any observed cell.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame.

        Examples
        --------
        >>> from jointpmf import Domain
        >>> sure = JointPMF(Domain.of_sizes([2]), [0.25, 0.75], [np.eye(2)])
        >>> summary(sure, [[1], [None]]).posteriors().rows()
        [(0.0, 1.0, 1), (0.25, 0.75, None)]
        >>> summary(sure, [[1], [None]]).posteriors().columns
        ['component 0', 'component 1', 'most likely']
        """
        return posterior_frame(self.pmf, self.responsibilities, self.components, backend)

    def __str__(self) -> str:
        """Return the weights, the profile of every variable and the criteria as text."""
        pmf = self.pmf
        heading = ["component", *pmf.component_labels]
        lines = [[name, *shares_text(shares)] for name, shares in self.told_sizes.items()]
        for variable, factor in zip(pmf.domain, pmf.factors, strict=True):
            lines.append([variable.name] + [""] * pmf.rank)
            for level, row in zip(variable.levels, factor, strict=True):
                lines.append([f"  {level}", *shares_text(row)])
        rows = f"{rows_text(self.n_rows)} rows, rank {pmf.rank}, {self.n_parameters} parameters"
        criteria = "  ".join(f"{label} {value:.2f}" for label, value in self.criteria.items())
        return "\n".join(
            [
                rows,
                f"log-likelihood {self.log_likelihood:.4f}",
                criteria,
                f"relative entropy (entropy R²) {self.relative_entropy:.3f}",
                *([self.replication] if self.replication else []),
                "",
                *aligned([heading, *lines]),
            ]
        )

    def to_frame(self, backend: str = "polars") -> Any:
        """Return the profiles as a frame: one row for each variable, level and component.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame. Levels are text, since variables have levels of different types.

        Examples
        --------
        >>> from jointpmf import Domain
        >>> sure = JointPMF(Domain.of_sizes([2]), [0.25, 0.75], [np.eye(2)])
        >>> summary(sure, [[0], [1]]).to_frame().columns
        ['variable', 'level', 'component', 'weight', 'probability']
        """
        pmf = self.pmf
        levels = [(v.name, text_of(level)) for v in pmf.domain for level in v.levels]
        number = np.tile(np.arange(pmf.rank), len(levels))
        component = number if pmf.component_names is None else (pmf.component_names, number)
        columns = {
            "variable": [name for name, _ in levels for _ in range(pmf.rank)],
            "level": [level for _, level in levels for _ in range(pmf.rank)],
            "component": component,
            "weight": np.tile(pmf.weights, len(levels)),
            "probability": np.concatenate([factor.ravel() for factor in pmf.factors]),
        }
        return table_of(columns, backend)

    def goodness_of_fit(
        self, n_bootstrap: int = 0, random_state: Any = None, verbose: bool = False
    ) -> Goodness:
        """Return how well the model fits the table: G², X², and the residual of every pair.

        The χ² distribution of G² and X² needs several rows for each cell of the table of all
        variables, which few tables have; simulated tables always give a p-value
        (docs/math.md, eqs. 54 and 55).

        Parameters
        ----------
        n_bootstrap : int
            How many tables are simulated from the model, with the same missing cells and weights,
            and fitted anew; 99 or more for p-values that you will publish. After Ctrl-C the
            p-values are those of the tables that were done.
        random_state : int or numpy Generator, optional
            The same seed gives the same tables.
        verbose : bool
            Whether a bar shows how many are done.

        Examples
        --------
        >>> from jointpmf import Codes, Domain, fit_rows
        >>> rows = Codes(Domain.of_sizes([2, 2]), [[0, 0]] * 4 + [[1, 1], [1, 0]])
        >>> print(summary(fit_rows(rows, rank=1).pmf, rows).goodness_of_fit())
        6 rows, rank 1, 2 parameters, df 1
             value
        G²  2.6341
        X²  2.4000
        With 6 rows for 4 cells the χ² distribution does not hold: use n_bootstrap for p-values.
        <BLANKLINE>
        pair    χ²/df  worst cell  observed  expected
        x0, x1   2.40        1, 1         1       0.3
        """
        from jointpmf.judge.goodness import goodness_of_fit

        return goodness_of_fit(
            self.pmf,
            *self._table,
            n_bootstrap=n_bootstrap,
            random_state=random_state,
            verbose=verbose,
        )

    def _repr_html_(self) -> str:
        """Return the criteria, and the profile of the first variables and components."""
        from jointpmf.show.notebook import summary_html

        return summary_html(self)


def summary(pmf: JointPMF | Solution, table: Any, sample_weight: Any = None) -> Summary:
    """Return the latent-class summary of a model on a table.

    It tells the sizes of the components (latent classes) in three ways: their weights in the model;
    the mean of the rows' posteriors; and the share of rows whose most likely component each is. The
    mean posterior is that of these rows, and says how sure it is that they belong there.

    Parameters
    ----------
    pmf : JointPMF or Solution
        A fitted model; of a Solution the summary also says how often its optimum was found.
    table : pandas, Polars or PyArrow table, array, or Codes
        The rows to compare it with, usually those it was fitted to.
    sample_weight : array of shape (rows,), optional
        What each row counts for.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
    >>> print(summary(sure, [[0, 0], [1, 1], [1, None], [0, 0]]))
    4 rows, rank 2, 5 parameters
    log-likelihood -2.7726
    AIC 15.55  BIC 12.48  aBIC -1.39  CAIC 17.48
    relative entropy (entropy R²) 1.000
    <BLANKLINE>
    component            0       1
    weight          50.0 %  50.0 %
    by posterior    50.0 %  50.0 %
    by most likely  50.0 %  50.0 %
    mean posterior 100.0 % 100.0 %
    x0
      0            100.0 %   0.0 %
      1              0.0 % 100.0 %
    x1
      0            100.0 %   0.0 %
      1              0.0 % 100.0 %
    """
    replication = ""
    if isinstance(pmf, Solution):
        replication, pmf = pmf.replication, pmf.pmf
    if not isinstance(pmf, JointPMF):
        raise JointPMFError(f"a summary is of a JointPMF, not of {shown(pmf)}")
    codes = encode(table, pmf.domain)
    given = checked_weights(sample_weight, codes.n_rows)
    is_seen = (codes.array != MISSING).any(axis=1)
    weights = is_seen * (np.ones(codes.n_rows) if given is None else given)
    if not weights.any():
        raise JointPMFError("no row of the table has an observed cell to summarise")
    logs, posterior = pmf.log_probability(codes), pmf.responsibilities(codes)
    tally = ComponentTally(pmf)
    tally.add(posterior, weights)
    log_likelihood = float((weights * np.where(weights > 0, logs, 0.0)).sum())
    n_parameters = n_free_parameters(pmf.domain, pmf.rank)
    n_rows = float(weights.sum())
    return Summary(
        pmf,
        n_rows,
        log_likelihood,
        n_parameters,
        **information_criteria(log_likelihood, n_parameters, n_rows),
        relative_entropy=tally.relative_entropy,
        components=most_likely(codes, posterior),
        responsibilities=posterior,
        _table=(codes, given),
        _source=table.codes if isinstance(getattr(table, "codes", None), Codes) else table,
        replication=replication,
    )
