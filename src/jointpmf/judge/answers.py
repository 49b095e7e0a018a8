"""An answer about a model as a column of numbers, each with what it is the answer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointpmf.data.decode import table_of
from jointpmf.errors import JointPMFError, shown
from jointpmf.pmf import JointPMF

Columns = dict[str, Any]

Query = Callable[[JointPMF], Any]


@dataclass(frozen=True)
class Answer:
    """Numbers, and the columns that say what each of them is.

    Attributes
    ----------
    values : array of shape (numbers,)
        The numbers.
    shape : tuple
        The shape they had.
    labels : dict
        For each column, an array, or the levels and the code of each number.
    are_probabilities : bool
        Whether the numbers are surely between 0 and 1.
    """

    values: np.ndarray
    shape: tuple[Any, ...]
    labels: Columns
    are_probabilities: bool = False

    @classmethod
    def of(cls, found: Any) -> Answer:
        """Return a number, an array, a mapping or a JointPMF, cell by cell.

        Examples
        --------
        >>> Answer.of({"mean": 2.0, "mode": 3}).labels["quantity"][0]
        ['mean', 'mode']
        >>> {name: cells.tolist() for name, cells in Answer.of(np.zeros((1, 2))).labels.items()}
        {'index_0': [0, 0], 'index_1': [0, 1]}
        """
        if isinstance(found, JointPMF):
            return cls._of_pmf(found)
        if isinstance(found, Mapping):
            values = _numbers(list(found.values()))
            if values.shape != (len(found),):
                raise JointPMFError("every entry of a mapping must be one number")
            return cls(values, tuple(found), {"quantity": (list(found), np.arange(len(found)))})
        values = _numbers(found)
        places = np.unravel_index(np.arange(values.size), values.shape) if values.ndim else ()
        names = ["index"] if values.ndim == 1 else [f"index_{k}" for k in range(values.ndim)]
        return cls(values.ravel(), values.shape, dict(zip(names, places, strict=True)))

    @classmethod
    def _of_pmf(cls, pmf: JointPMF) -> Answer:
        table = pmf.table()
        places = np.unravel_index(np.arange(table.size), table.shape) if table.ndim else ()
        cells = zip(pmf.domain, places, strict=True)
        labels = {variable.name: (variable.levels, place) for variable, place in cells}
        return cls(table.ravel(), (pmf.domain, table.shape), labels, are_probabilities=True)

    def to_frame(self, columns: Mapping[str, np.ndarray], backend: str) -> Any:
        """Return what the numbers are of, and what is known of them, as a frame."""
        clash = [name for name in self.labels if name in columns]
        if clash:
            raise JointPMFError(
                f"a variable is called {clash[0]!r}, as a column of the answer is; without names: "
                "lambda pmf: pmf.marginal([…]).table()"
            )
        return table_of({**self.labels, **columns}, backend)


def answer_of(query: Query, pmf: JointPMF, of: str) -> Answer:
    """Return the answer of a model; an error says which model has none."""
    try:
        return Answer.of(query(pmf))
    except JointPMFError as error:
        raise JointPMFError(f"the query failed for {of}: {error}") from None
    except Exception as error:
        raise JointPMFError(
            f"the query failed for {of}: {type(error).__name__}: {error}"
        ) from error


def answers_of(query: Query, pmfs: Sequence[JointPMF], what: str, estimate: Answer) -> np.ndarray:
    """Return the answers of several models, one row each, in the shape that the model's has."""
    values = np.empty((len(pmfs), len(estimate.values)))
    for k, pmf in enumerate(pmfs):
        answer = answer_of(query, pmf, f"{what} {k}")
        if answer.shape != estimate.shape:
            raise JointPMFError(
                f"the query returned another shape for {what} {k}, {answer.shape}, than "
                f"for the model, {estimate.shape}"
            )
        values[k] = answer.values
    return values


def _numbers(found: Any) -> np.ndarray:
    try:
        if found is None:
            raise TypeError("nothing")
        values = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        raise JointPMFError(f"it returned {shown(found)}, which is not a number") from None
    if not np.isfinite(values).all():
        raise JointPMFError("it returned NaN or infinity")
    return values
