"""What a joint PMF says of traits: where rows lie, and what variables have to do with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.decode import table_of
from jointpmf.domain import MISSING, text_of
from jointpmf.errors import JointPMFError, items_of, shown

if TYPE_CHECKING:
    from jointpmf.data.codes import Codes
    from jointpmf.domain import Domain
    from jointpmf.trait_axes import TraitAxes
    from jointpmf.traits import TraitModel


class TraitQueries(ABC):
    """The part of `JointPMF` that answers for traits; it needs no more than these four."""

    domain: Domain
    weights: np.ndarray
    factors: Sequence[np.ndarray]
    trait_models: tuple[TraitModel, ...]

    def traits(self, rows: Any, backend: str = "polars") -> Any:
        """Return where each row lies in the space of traits: the posterior mean and spread.

        The traits of the population are uncorrelated, with mean zero and standard deviation one;
        the first moves the log-odds of the variables most, and the ordered or binary variable that
        moves most with a trait grows with it (`loadings`). A missing cell is no evidence: a row
        without any has mean zero and spread one. Of an average of several fits, whose spaces have
        nothing to do with each other, these are the traits of the first.

        Parameters
        ----------
        rows : pandas, Polars or PyArrow table, array, or Codes
            The rows, of which any cells may be missing.
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame. It has two columns for each trait: "trait 0", its mean given the
            row's observed cells, and "trait 0 sd", its standard deviation given them.

        Examples
        --------
        >>> from jointpmf.domain import Domain
        >>> from jointpmf.pmf import JointPMF
        >>> from jointpmf.traits import Scores, Space, TraitModel
        >>> items = Domain.of_sizes([2, 2])
        >>> space, slopes = Space.drawn(64, n_traits=1), np.ones((2, 1))
        >>> model = TraitModel(Scores.of(items, np.full(4, 0.5)), space, np.zeros(4), slopes)
        >>> pmf = JointPMF.at(model.point(), items, trait_models=[model])
        >>> pmf.traits([[0, 0], [1, None], [1, 1]])["trait 0"].round(1).to_list()
        [-0.7, 0.4, 0.7]
        """
        from jointpmf.trait_axes import moments_of_rows

        positions = self.trait_axes.positions
        weights, factors = self._at_points
        means, spreads = moments_of_rows(self._codes(rows), positions, weights, factors)
        columns: dict[str, np.ndarray] = {}
        for t in range(positions.shape[1]):
            columns |= {f"trait {t}": means[:, t], f"trait {t} sd": spreads[:, t]}
        return table_of(columns, backend)

    def loadings(self, backend: str = "polars") -> Any:
        """Return how the variables move with each trait, in log-odds per standard deviation of it.

        An ordered variable has one line: what one standard deviation of its value gains in
        log-odds. A binary one has a line for its second level against its first, and any other a
        line for each level against all others. These are the slopes of straight lines through the
        population; `explained` is the part of the variance that lies on them, which is all of it
        where the model has no waves.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame. It has the columns "variable", "level" (missing for ordered
            variables), one for each trait, as in `traits`, and "explained".

        Examples
        --------
        >>> from jointpmf.domain import Domain
        >>> from jointpmf.pmf import JointPMF
        >>> from jointpmf.traits import Scores, Space, TraitModel
        >>> items = Domain.of_sizes([2, 2])
        >>> space, slopes = Space.drawn(64, n_traits=1), np.array([[-1.0], [2.0]])
        >>> model = TraitModel(Scores.of(items, np.full(4, 0.5)), space, np.zeros(4), slopes)
        >>> pmf = JointPMF.at(model.point(), items, trait_models=[model])
        >>> pmf.loadings().columns, pmf.loadings()["trait 0"].round(1).to_list()
        (['variable', 'level', 'trait 0', 'explained'], [-1.0, 2.0])
        """
        lines, n_traits = self.trait_axes.lines, self.trait_axes.positions.shape[1]
        variables = [self.domain.variables[line.variable] for line in lines]
        titles = [
            None if line.level is None else text_of(variable.levels[line.level])
            for line, variable in zip(lines, variables, strict=True)
        ]
        levels = list(dict.fromkeys(title for title in titles if title is not None)) or [""]
        places = [MISSING if title is None else levels.index(title) for title in titles]
        slopes = np.array([line.slopes for line in lines]).reshape(len(lines), n_traits)
        columns: dict[str, Any] = {
            "variable": [variable.name for variable in variables],
            "level": (levels, np.array(places, np.int64)),
        }
        columns |= {f"trait {t}": column for t, column in enumerate(slopes.T)}
        columns["explained"] = np.array([line.explained for line in lines], float)
        return table_of(columns, backend)

    @cached_property
    def trait_axes(self) -> TraitAxes:
        """The principal axes of the first space of traits."""
        from jointpmf.trait_axes import TraitAxes

        if not self.trait_models:
            raise JointPMFError(
                "the components of this model are free: they do not lie in a space of traits. "
                "Ask a fit for traits, or read the components themselves with summary"
            )
        return TraitAxes.of(self.trait_models[0], *self._at_points)

    @property
    def _at_points(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """The weights and columns of the components at the points of the first space."""
        n_points = len(self.trait_models[0].space.points)
        return self.weights[:n_points], [factor[:, :n_points] for factor in self.factors]

    @abstractmethod
    def _codes(self, rows: Any) -> Codes:
        """Return rows of any kind as codes of the domain."""


def checked_trait_models(given: Any, domain: Domain, rank: int) -> tuple[TraitModel, ...]:
    """Return the trait models of a joint PMF, if they are of its variables and components.

    Examples
    --------
    >>> from jointpmf.domain import Domain
    >>> checked_trait_models((), Domain.of_sizes([2]), rank=3)
    ()
    """
    models = tuple(items_of(given, "trait_models must be TraitModels in a list"))
    if not all(hasattr(model, "space") and hasattr(model, "scores") for model in models):
        raise JointPMFError(f"trait_models must be TraitModels, not {shown(given)}")
    if any(model.domain != domain for model in models):
        raise JointPMFError("a trait model is of other variables")
    n_points = sum(len(model.space.points) for model in models)
    if n_points > rank:
        raise JointPMFError(f"the trait models have {n_points} points for {rank} components")
    return models


def in_order(models: Sequence[TraitModel], order: np.ndarray) -> tuple[TraitModel, ...]:
    """Return the models of components in another order, or none where they no longer fit it.

    The components of each model must stay together, before those that have none.
    """
    if not models:
        return ()
    ends = np.cumsum([len(model.space.points) for model in models])
    owners = np.searchsorted(ends, order, side="right")
    changes = np.flatnonzero(np.diff(owners)) + 1
    runs = np.split(order, changes)
    whose = [int(owners[begin]) for begin in (0, *changes)]
    are_last = len(models) not in whose[:-1]
    if len(set(whose)) < len(whose) or not are_last:
        return ()
    begins = [0, *ends]
    return tuple(
        models[owner].taken(run - begins[owner])
        for owner, run in zip(whose, runs, strict=True)
        if owner < len(models)
    )
