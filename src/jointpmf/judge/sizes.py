"""How large the components are, in all rows and in groups of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.codes import Codes
from jointpmf.data.columns import columns_of
from jointpmf.data.decode import table_of
from jointpmf.data.levels import LevelRules, learned_variable
from jointpmf.domain import MISSING, text_of
from jointpmf.errors import JointPMFError, listing, shown
from jointpmf.judge.text import aligned, rows_text, shares_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jointpmf.data.columns import Column
    from jointpmf.domain import Domain


@dataclass(frozen=True)
class Sizes:
    """How large the components (latent classes) are in groups of rows; `print` shows it as text.

    Attributes
    ----------
    labels : tuple
        The groups; None is the group of rows without a label, the last if there are any.
    n_rows : array of shape (groups,)
        How many rows each group has, or the sum of their weights.
    by_posterior : array of shape (groups, rank)
        The share of each component among the rows of a group: the mean of P(component | row). NaN
        in a group of no weight.
    by_component : array of shape (groups, rank)
        The share of its rows whose most likely component it is.
    components : tuple of str
        The components' names, or their numbers.
    """

    labels: tuple[Any, ...]
    n_rows: np.ndarray = field(repr=False)
    by_posterior: np.ndarray = field(repr=False)
    by_component: np.ndarray = field(repr=False)
    components: tuple[str, ...]
    title: str = "label"

    def __str__(self) -> str:
        """Return a line for each group: its rows, and the shares of its components."""
        texts = ["missing" if label is None else text_of(label) for label in self.labels]
        lines = [
            [text, rows_text(rows), *shares_text(shares)]
            for text, rows, shares in zip(texts, self.n_rows, self.by_posterior, strict=True)
        ]
        return "\n".join(aligned([[self.title, "rows", *self.components], *lines]))

    def to_frame(self, backend: str = "polars") -> Any:
        """Return a frame with a row for each group and component.

        The columns: label (text, missing in the group without one), component, rows (what belongs
        to the component, by posterior), and its share of the group by_posterior and by_component.

        Examples
        --------
        >>> from jointpmf import Domain, JointPMF, summary
        >>> sure = JointPMF(Domain.of_sizes([2]), [0.25, 0.75], [np.eye(2)])
        >>> sizes = summary(sure, [[0], [1], [1]]).sizes_by(["a", "b", None])
        >>> sizes.to_frame().rows()[3:]
        [('b', '1', 1.0, 1.0, 1.0), (None, '0', 0.0, 0.0, 0.0), (None, '1', 1.0, 1.0, 1.0)]
        """
        n_groups, rank = self.by_posterior.shape
        texts = [None if label is None else text_of(label) for label in self.labels]
        columns = {
            "label": [text for text in texts for _ in range(rank)],
            "component": (self.components, np.tile(np.arange(rank), n_groups)),
            "rows": (self.n_rows[:, None] * np.nan_to_num(self.by_posterior)).ravel(),
            "by_posterior": self.by_posterior.ravel(),
            "by_component": self.by_component.ravel(),
        }
        return table_of(columns, backend)


def sizes_in(
    posterior: np.ndarray,
    weights: np.ndarray,
    codes: np.ndarray,
    labels: Sequence[Any],
    **more: Any,
) -> Sizes:
    """Return the sizes of components in groups of rows; `more` are fields of Sizes.

    Examples
    --------
    >>> posterior = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> print(sizes_in(posterior, np.array([1.0, 3.0]), np.array([0, 0]), ["x"], components="ab"))
    label rows      a      b
    x        4 37.5 % 62.5 %
    """
    has_missing = bool((codes == MISSING).any())
    found = (*labels, *([None] if has_missing else []))
    group = np.where(codes == MISSING, len(labels), codes)

    def total(parts: np.ndarray) -> np.ndarray:
        return np.bincount(group, weights * parts, minlength=len(found))

    n_rows, assigned = total(np.ones(len(codes))), posterior.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        shares = [
            np.column_stack([total(part) for part in parts]) / n_rows[:, None]
            for parts in (posterior.T, [assigned == f for f in range(posterior.shape[1])])
        ]
    return Sizes(found, n_rows, *shares, **more)


def labels_and_codes(column: Any, table: Any, codes: Codes) -> tuple[Sequence[Any], np.ndarray]:
    """Return the labels of rows, in order, and the position of each row's own, or MISSING.

    `column` names one of the model's variables, whose `codes` are known, or any other column of the
    table; or it is an array of labels.
    """
    if isinstance(column, str):
        coded = table if isinstance(table, Codes) and column not in codes.domain else codes
        if column in coded.domain:
            return _of_variable(coded.domain, column, coded)
        return _of_column(_named(column, table, codes.domain))
    labels = _as_rows(column)
    if len(labels) != codes.n_rows:
        raise JointPMFError(f"there are {len(labels)} labels for {codes.n_rows} rows")
    return _of_column(replace(columns_of(labels, None, None)[1]["x0"](), name="labels"))


def _of_variable(domain: Domain, name: str, codes: Codes) -> tuple[Sequence[Any], np.ndarray]:
    return domain[name].levels, codes.columns[domain.index(name)]


def _named(name: str, table: Any, domain: Domain) -> Column:
    columns = {} if isinstance(table, Codes) else columns_of(table, None, None)[1]
    if name not in columns:
        known = dict.fromkeys([*columns, *domain.names])
        raise JointPMFError(f"there is no column {shown(name)}; the columns are {listing(known)}")
    return columns[name]()


def _as_rows(column: Any) -> np.ndarray:
    """Return labels, one for each row, as a table of one column."""
    try:
        labels = np.array(list(column), object)
    except TypeError:
        labels = np.empty((0, 0))
    if labels.ndim != 1:
        raise JointPMFError(
            f"give the name of a column, or a label for each row, not {shown(column)}"
        )
    return labels[:, None]


def _of_column(column: Column) -> tuple[Sequence[Any], np.ndarray]:
    if not column.n_observed:
        return (), np.full(len(column.missing), MISSING)
    variable = learned_variable(column, LevelRules(max_numbers=column.n_observed))
    return variable.levels, column.codes({one: variable.code(one) for one in column.distinct})
