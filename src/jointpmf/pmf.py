"""JointPMF: the joint distribution as weights and factors, and its queries.

A hidden component f has probability `weights[f]`; given it the variables are independent, and
variable n has level i with probability `factors[n][i, f]` (docs/math.md, eq. 1). Two operations
are closed, `marginal` and `condition`, and everything else follows from them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.components import (
    COMPONENT,
    by_name,
    checked_names,
    checked_order,
    component_variable,
    means_component,
)
from jointpmf.data.codes import Codes
from jointpmf.data.decode import decode, frame_of_rows
from jointpmf.data.encode import encode
from jointpmf.domain import Domain, checked_domain, name_list, some_names
from jointpmf.errors import JointPMFError, items_of, seeded_generator, whole_number, whole_rank
from jointpmf.evidence import posterior
from jointpmf.model_file import read_model, write_model
from jointpmf.most_likely import most_likely_codes
from jointpmf.probabilities import (
    check_memory,
    checked_factors,
    drawn_codes,
    multiplied_out,
    normalised,
    on_simplex,
)
from jointpmf.row_queries import RowQueries
from jointpmf.threads import one_blas_thread
from jointpmf.trait_queries import TraitQueries, checked_trait_models, in_order

if TYPE_CHECKING:
    from jointpmf.data.ratings import Ratings
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.point import Point
    from jointpmf.predict.population import Population
    from jointpmf.traits import TraitModel

_MEMORY_BUDGET = 2**30
"""Bytes that a table may take, unless the caller says otherwise."""


class JointPMF(RowQueries, TraitQueries):
    """The joint probability mass function of several discrete variables.

    Parameters
    ----------
    domain : Domain
        The variables.
    weights : array of shape (rank,)
        Probability of each component.
    factors : sequence of arrays of shape (size_n, rank)
        For each variable, a column per component: the probabilities of its levels.
    component_names : sequence of str, optional
        What the components (latent classes) are called; otherwise by their numbers, from 0.
    trait_models : sequence of TraitModel, optional
        Of components that lie in a space of traits: what they were computed from, in the order of
        the components. An average has several; components without traits come last.

    Examples
    --------
    >>> domain = Domain.of_sizes([2, 2], names=["rain", "umbrella"])
    >>> pmf = JointPMF(domain, [0.3, 0.7], [[[0.1, 0.9], [0.9, 0.1]], [[0.2, 1.0], [0.8, 0.0]]])
    >>> pmf.table().round(3).tolist()
    [[0.636, 0.024], [0.124, 0.216]]
    >>> pmf.condition({"umbrella": 1}).table().round(3).tolist()
    [0.1, 0.9]
    """

    def __init__(
        self,
        domain: Domain,
        weights: Any,
        factors: Sequence[Any],
        component_names: Sequence[str] | None = None,
        trait_models: Sequence[TraitModel] = (),
    ) -> None:
        self.domain = checked_domain(domain)
        self.weights = on_simplex(weights, "the weights")
        if self.weights.ndim != 1 or not len(self.weights):
            raise JointPMFError("the weights must be a vector with an entry per component")
        factors = items_of(factors, "the factors must be a list")
        if len(factors) != len(domain):
            raise JointPMFError(f"there are {len(factors)} factors for {len(domain)} variables")
        self.factors = checked_factors(factors, domain, self.rank)
        self.component_names = checked_names(component_names, self.rank)
        self.trait_models = checked_trait_models(trait_models, domain, self.rank)
        self.weights.setflags(write=False)

    def _codes(self, rows: Any) -> Codes:
        return encode(rows, self.domain)

    @classmethod
    def at(
        cls,
        point: Point,
        domain: Domain,
        component_names: Sequence[str] | None = None,
        trait_models: Sequence[TraitModel] = (),
    ) -> JointPMF:
        """Return the joint PMF of a point, at which a solver is."""
        ends = pairwise(domain.offsets.tolist())
        factors = [point.factors[begin:end] for begin, end in ends]
        return cls(domain, point.weights, factors, component_names, trait_models)

    @property
    def rank(self) -> int:
        """Number of components."""
        return len(self.weights)

    @property
    def component_labels(self) -> tuple[str, ...]:
        """The components as people read them: their names, or else their numbers from 0."""
        return self.component_names or tuple(map(str, range(self.rank)))

    def __repr__(self) -> str:
        """Name the variables and the rank."""
        names = some_names(self.domain.names)
        return f"JointPMF({names}; {len(self.domain)} variables, rank {self.rank})"

    def _repr_html_(self) -> str:
        """Return the first variables with their distributions, and the largest components."""
        from jointpmf.show.notebook import pmf_html

        return pmf_html(self)

    def marginal(self, names: Iterable[str]) -> JointPMF:
        """Return the joint PMF of these variables only, in the order asked.

        The component (latent class) is asked for by the name "component", as if it were a variable;
        its levels are the components' names, or their numbers. Where a variable of the model is
        called "component", that name means the variable, here and in evidence.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3, 4]), rank=2, random_state=0)
        >>> pmf.marginal(["x2", "x0"]).domain.sizes
        (4, 2)
        >>> bool((pmf.marginal(["component"]).table() == pmf.weights).all())
        True
        """
        names = name_list(names)
        if any(means_component(name, self.domain) for name in names):
            return self._with_component().marginal(names)
        kept = self.domain.indices(names)
        domain = Domain(tuple(self.domain.variables[n] for n in kept))
        factors = [self.factors[n] for n in kept]
        return JointPMF(domain, self.weights, factors, self.component_names)

    def _with_component(self) -> JointPMF:
        """Return the joint PMF of the component and all variables."""
        component = component_variable(self.rank, self.component_names)
        factors = [np.eye(self.rank), *self.factors]
        return JointPMF(
            Domain((component, *self.domain)), self.weights, factors, self.component_names
        )

    def reordered(self, order: Any = "size", names: Sequence[str] | None = None) -> JointPMF:
        """Return the same model with its components (latent classes) in another order.

        Parameters
        ----------
        order : "size" or sequence of int
            By decreasing weight, where equal ones keep their order; or the numbers of the
            components, from 0, in the new order.
        names : sequence of str, optional
            What the components are called, in the new order. Without it they keep their names.

        Examples
        --------
        >>> pmf = JointPMF(Domain.of_sizes([2]), [0.25, 0.75], [np.eye(2)])
        >>> named = pmf.reordered(names=["often", "seldom"])
        >>> named.weights.tolist(), named.component_names
        ([0.75, 0.25], ('often', 'seldom'))
        >>> named.condition({"component": "seldom"}).marginal(["x0"]).table().tolist()
        [1.0, 0.0]
        >>> named.reordered([1, 0]).component_names
        ('seldom', 'often')
        """
        taken = checked_order(order, self.weights)
        if names is None and self.component_names is not None:
            names = [self.component_names[f] for f in taken]
        factors = [factor[:, taken] for factor in self.factors]
        models = in_order(self.trait_models, taken)
        return JointPMF(self.domain, self.weights[taken], factors, names, models)

    def condition(self, evidence: Mapping[str, Any]) -> JointPMF:
        """Return the joint PMF of the other variables, given the evidence.

        Parameters
        ----------
        evidence : mapping of name to level, levels or likelihood
            For each known variable: its level; or a set, list or tuple of levels it is one of; or
            a numpy array with the likelihood of each of its levels. The component may be given in
            the same ways, by its name or number: `{"component": 2}`, see `marginal`.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3, 4]), rank=2, random_state=0)
        >>> pmf.condition({"x0": 1, "x2": {0, 3}}).domain.names
        ('x1',)
        >>> pmf.condition({"component": 1}).weights.tolist()
        [0.0, 1.0]
        """
        given = self._given(evidence)
        return given.marginal([name for name in self.domain.names if name not in evidence])

    def _given(self, evidence: Mapping[str, Any]) -> JointPMF:
        """Return the posterior over all variables, including those of the evidence."""
        if isinstance(evidence, Mapping) and any(means_component(k, self.domain) for k in evidence):
            levels = by_name(evidence[COMPONENT], self.component_names)
            given = self._with_component()._given({**evidence, COMPONENT: levels})
            weights, factors = given.weights, given.factors[1:]
        else:
            weights, factors = posterior(self.domain, self.weights, self.factors, evidence)
        return JointPMF(self.domain, weights, factors, self.component_names)

    def table(self, max_bytes: int = _MEMORY_BUDGET) -> np.ndarray:
        """Return all joint probabilities, one axis per variable.

        Parameters
        ----------
        max_bytes : int
            A table that would take more memory is refused.

        Examples
        --------
        >>> random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0).table().shape
        (2, 3)
        """
        check_memory(self.domain.sizes, max_bytes)
        with one_blas_thread:
            return multiplied_out(self.weights, self.factors)

    def to_frame(
        self,
        backend: str = "polars",
        *,
        column: str = "probability",
        max_bytes: int = _MEMORY_BUDGET,
    ) -> Any:
        """Return all joint probabilities as a frame: one row per cell, in the table's order.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The kind of frame.
        column : str
            The name of the column of probabilities, after those of the variables.
        max_bytes : int
            A frame that would take more memory is refused.

        Examples
        --------
        >>> pmf = JointPMF(Domain.of_sizes([2, 2]), [0.25, 0.75], [np.eye(2), np.eye(2)])
        >>> pmf.to_frame().rows()
        [(0, 0, 0.25), (0, 1, 0.0), (1, 0, 0.0), (1, 1, 0.75)]
        """
        sizes = self.domain.sizes
        check_memory(sizes, max_bytes, n_columns=len(sizes) + 1)
        codes = np.unravel_index(np.arange(math.prod(sizes)), sizes) if sizes else ()
        return frame_of_rows(self.domain, codes, self.table(max_bytes).ravel(), column, backend)

    def most_likely(
        self,
        n: int = 1,
        given: Mapping[str, Any] | None = None,
        *,
        max_nodes: int = 100_000,
        backend: str = "polars",
        column: str = "probability",
    ) -> Any:
        """Return the n most probable complete rows, exactly, with their probabilities.

        The most probable row need not consist of each variable's most probable level. Rows of
        probability zero are left out, so there may be fewer than n. Rows come in decreasing order
        of probability; those that agree in ten digits, in the order of their levels.

        Parameters
        ----------
        n : int
            How many rows.
        given : mapping of name to level, levels or likelihood, optional
            Evidence as in `condition`; the rows hold those variables too, and their probabilities
            are conditional on it.
        max_nodes : int
            How many partial rows the search may look at. If that is not enough to be certain of
            all n rows, it raises.
        backend, column
            As in `to_frame`. A probability too small for a float is 0.0; `log_probability` of the
            frame has its logarithm.

        Examples
        --------
        >>> factors = [[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
        >>> pmf = JointPMF(Domain.of_sizes([2, 2]), [0.4, 0.35, 0.25], factors)
        >>> rows = pmf.most_likely(2)
        >>> rows["x0"].to_list(), rows["x1"].to_list(), rows["probability"].round(6).to_list()
        ([1, 0], [0, 0], [0.4, 0.35])
        """
        n, max_nodes = whole_number(n, "n", 1), whole_number(max_nodes, "max_nodes", 1)
        pmf = self if given is None else self._given(given)
        codes = Codes(self.domain, most_likely_codes(pmf.weights, pmf.factors, n, max_nodes))
        return frame_of_rows(self.domain, codes.columns, pmf.probability(codes), column, backend)

    def with_unrated_items(self, ratings: Ratings) -> JointPMF:
        """Return a model that has all items of some ratings, also those that nobody rated.

        A model cannot be fitted to an item without ratings (`Ratings.rated` leaves it out). Here
        such an item is independent of the others and distributed as all ratings are.

        Examples
        --------
        >>> from jointpmf import Ratings, Variable
        >>> domain = Domain([Variable("Alien", (1, 2)), Variable("Brazil", (1, 2))])
        >>> ratings = Ratings([7, 8, 9], Codes(domain, [[1, -1], [1, -1], [0, -1]]))
        >>> pmf = JointPMF(domain.project(["Alien"]), [1.0], [[[0.5], [0.5]]])
        >>> pmf.with_unrated_items(ratings).marginal(["Brazil"]).table().round(2).tolist()
        [0.33, 0.67]
        """
        from jointpmf.fit.unrated import with_unrated_items

        return with_unrated_items(self, ratings)

    def marginals(
        self, order: int = 3, *, subsets: Iterable[Sequence[str]] | None = None
    ) -> MarginalSet:
        """Return the exact marginals of all subsets of one order, or of the subsets asked.

        Examples
        --------
        >>> random_pmf(Domain.of_sizes([2, 2, 3]), rank=2, random_state=0).marginals(order=2)
        MarginalSet(3 marginals of order 2 over 3 variables)
        """
        from jointpmf.marginals.counting import names_of_order, positions_of
        from jointpmf.marginals.marginal import Marginal
        from jointpmf.marginals.marginal_set import MarginalSet

        names = names_of_order(self.domain, order) if subsets is None else subsets
        asked = positions_of(self.domain, names)
        for subset in asked:
            check_memory([self.domain.sizes[n] for n in subset], _MEMORY_BUDGET)
        with one_blas_thread:
            tables = [
                multiplied_out(self.weights, [self.factors[n] for n in subset]) for subset in asked
            ]
        marginals = [
            Marginal([self.domain.names[n] for n in subset], table)
            for subset, table in zip(asked, tables, strict=True)
        ]
        return MarginalSet._exact(self.domain, marginals)

    def sample(
        self,
        n: int,
        given: Mapping[str, Any] | None = None,
        random_state: Any = None,
        backend: str = "polars",
    ) -> Any:
        """Return n rows drawn from the distribution, exactly, given the evidence if there is any.

        Parameters
        ----------
        n : int
            How many rows.
        given : mapping of name to level, levels or likelihood, optional
            Evidence as in `condition`; the rows hold those variables too. To draw components as
            well, draw from `marginal(["component", …])`.
        random_state : int or numpy Generator, optional
            The same seed gives the same rows.
        backend : {"polars", "pandas", "pyarrow", "codes"}
            The kind of table; "codes" is an array of the levels' positions, which
            `Codes(pmf.domain, array)` makes a table again.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> pmf.sample(3, given={"x0": 1}, random_state=0)["x0"].to_list()
        [1, 1, 1]
        """
        n = whole_number(n, "the number of rows", 0)
        source = self if given is None else self._given(given)
        generator = seeded_generator(random_state)
        array = drawn_codes(source.weights, source.factors, n, generator)
        return decode(Codes(self.domain, array), backend)

    def population(
        self,
        n: int,
        match: MarginalSet | None = None,
        random_state: Any = None,
        *,
        verbose: bool = False,
        backend: str = "polars",
    ) -> Population:
        """Return n whole rows that meet tables as exactly as whole rows can.

        What is left of each table is in `residuals`; a warning is logged if one could not be met.
        Ctrl-C returns the best rows until then.

        Parameters
        ----------
        match : MarginalSet, optional
            The tables, over variables of the model. Their shares count, not their totals.
        verbose : bool
            Whether to show a progress bar.
        n, random_state, backend
            As in `sample`, but at least one row.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3, 2]), rank=2, random_state=0)
        >>> people = pmf.population(60, match=pmf.marginals(order=2), random_state=0)
        >>> people.rows.shape, max(one.largest for one in people.residuals) < 1
        ((60, 3), True)
        """
        from jointpmf.predict.population import population

        return population(self, n, match, random_state, verbose, backend)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file, whole or not at all; `jointpmf.load` reads it."""
        model, known = (self.domain, self.weights, self.factors), self.component_names
        write_model(path, *model, None, known, self.trait_models)

    def explore(
        self,
        path: str | os.PathLike[str],
        model: str | os.PathLike[str] | None = None,
        uncertainty: Any = None,
        rows: Any = None,
    ) -> None:
        """Write an HTML page to `path` that answers queries by clicks, in any browser.

        The page shows its queries as Python code, which reads the model from the file `model`; by
        default that is `path` with the suffix .safetensors. With an `uncertainty`, which
        `Solution.uncertainty` returns, every bar has a whisker: its 90 % interval. With `rows`, a
        table, the page also shows which pairs of variables depend on each other in them beyond what
        the model explains; it holds no rows.

        Examples
        --------
        >>> import tempfile
        >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pmf.explore(f"{folder}/model.html")
        ...     os.listdir(folder)
        ['model.html']
        """
        from jointpmf.show.explorer.page import write_page

        write_page(path, self, model, uncertainty, rows)


def load(path: str | os.PathLike[str]) -> JointPMF:
    """Return the model in a file that `JointPMF.save` wrote; everything in it is checked.

    Examples
    --------
    >>> import tempfile
    >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pmf.save(f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors")
    JointPMF(x0, x1; 2 variables, rank 2)
    """
    return JointPMF(*read_model(path))


def random_pmf(domain: Domain, rank: int, random_state: Any = None) -> JointPMF:
    """Return a random joint PMF: uniform entries, normalised, as in the paper's experiments.

    Examples
    --------
    >>> random_pmf(Domain.of_sizes([2, 3]), rank=4, random_state=0)
    JointPMF(x0, x1; 2 variables, rank 4)
    """
    rank = whole_rank(rank, sum(checked_domain(domain).sizes))
    generator = seeded_generator(random_state)
    weights = normalised(generator.random(rank))
    return JointPMF(
        domain, weights, [normalised(generator.random((size, rank))) for size in domain.sizes]
    )
