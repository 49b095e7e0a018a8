"""JointPMF: the joint distribution as weights and factors, and every question to it.

A hidden component f has probability `weights[f]`; given it the variables are independent, and
variable n has level i with probability `factors[n][i, f]` (docs/math.md, eq. 1). Two operations
are closed, `marginal` and `condition`, and everything else follows from them.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jointpmf.compiled.cells import listed_cells
from jointpmf.compiled.panels import lanes_of, panel_width
from jointpmf.compiled.posteriors import (
    e_step,
    lift_subnormals,
    mix_rows,
    safe_cells,
    stack_of,
)
from jointpmf.compiled.sampling import draw_levels
from jointpmf.data.encoding import Codes, decode, encode
from jointpmf.domain import Domain, Variable, text_of
from jointpmf.errors import JointPMFError, whole_number
from jointpmf.marginals.marginal_set import (
    Marginal,
    MarginalSet,
    checked_weights,
    names_of_order,
    positions_of,
)
from jointpmf.model_file import read_model, write_model
from jointpmf.show.html import bars, element, fragment, html_table, name_of, percent
from jointpmf.threads import one_blas_thread, row_blocks, run_all

logger = logging.getLogger("jointpmf")

FEASIBLE = 1e-6
"""How far sums may be from one in what a user gives; inside they are one to rounding."""

MEMORY_BUDGET = 2**30
"""Bytes that `table()` may take unless it is told otherwise."""

SHOWN_VARIABLES, SHOWN_WEIGHTS = 8, 6
"""Variables and components that a notebook shows."""


class JointPMF:
    """The joint probability mass function of several discrete variables.

    Parameters
    ----------
    domain : Domain
        The variables.
    weights : array of shape (rank,)
        Probability of each component.
    factors : sequence of arrays of shape (size_n, rank)
        For each variable, a column per component: the probabilities of its levels.

    Examples
    --------
    >>> domain = Domain.of_sizes([2, 2], names=["rain", "umbrella"])
    >>> pmf = JointPMF(domain, [0.3, 0.7], [[[0.1, 0.9], [0.9, 0.1]], [[0.2, 1.0], [0.8, 0.0]]])
    >>> pmf.table().round(3).tolist()
    [[0.636, 0.024], [0.124, 0.216]]
    >>> pmf.condition({"umbrella": 1}).table().round(3).tolist()
    [0.1, 0.9]
    """

    def __init__(self, domain: Domain, weights: Any, factors: Sequence[Any]) -> None:
        self.domain = domain
        self.weights = _on_simplex(weights, "the weights")
        if self.weights.ndim != 1 or not len(self.weights):
            raise JointPMFError("the weights must be a vector with an entry per component")
        n_factors = len(factors) if hasattr(factors, "__len__") else 0
        if n_factors != len(domain):
            raise JointPMFError(f"there are {n_factors} factors for {len(domain)} variables")
        self.factors = tuple(
            self._checked_factor(variable, factor)
            for variable, factor in zip(domain, factors, strict=True)
        )
        for array in (self.weights, *self.factors):
            array.setflags(write=False)

    def _checked_factor(self, variable: Variable, factor: Any) -> np.ndarray:
        array = _on_simplex(factor, f"the factor of {variable.name!r}")
        if array.shape != (variable.size, self.rank):
            raise JointPMFError(
                f"the factor of {variable.name!r} has shape {array.shape}, "
                f"not ({variable.size}, {self.rank})"
            )
        return array

    @property
    def rank(self) -> int:
        """Number of components."""
        return len(self.weights)

    def __repr__(self) -> str:
        """Name the variables and the rank."""
        names = ", ".join(self.domain.names[:6]) + (", …" if len(self.domain) > 6 else "")
        return f"JointPMF({names}; {len(self.domain)} variables, rank {self.rank})"

    def _repr_html_(self) -> str:
        """Return the first variables with their distributions, and the largest components."""
        heading = f"JointPMF: {len(self.domain)} variables, rank {self.rank}"
        largest = sorted(self.weights.tolist(), reverse=True)
        weights = ", ".join(map(percent, largest[:SHOWN_WEIGHTS]))
        rest = self.rank - SHOWN_WEIGHTS
        more = f" and {rest} smaller" if rest > 0 else ""
        parts = [
            element("p", element("b", heading)),
            element("p", f"Weights of the components: {weights}{more}."),
        ]
        if len(self.domain):
            headings = ("variable", "levels", "distribution", "most likely", "probability")
            shown = range(min(SHOWN_VARIABLES, len(self.domain)))
            parts.append(html_table(headings, map(self._variable_cells, shown), numbers=(1, 4)))
        if len(self.domain) > SHOWN_VARIABLES:
            hidden = len(self.domain) - SHOWN_VARIABLES
            parts.append(element("p", f"… and {hidden} more variables."))
        return fragment(*parts)

    def _variable_cells(self, n: int) -> list[object]:
        """Return what a notebook shows of one variable."""
        variable, shares = self.domain.variables[n], self.factors[n] @ self.weights
        best = int(shares.argmax())
        return [
            name_of(variable.name),
            f"{variable.size:,}",
            bars(shares.tolist()),
            name_of(text_of(variable.levels[best])),
            percent(float(shares[best])),
        ]

    def marginal(self, names: Iterable[str]) -> JointPMF:
        """Return the joint PMF of these variables only, in the order asked.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3, 4]), rank=2, random_state=0)
        >>> pmf.marginal(["x2", "x0"]).domain.sizes
        (4, 2)
        """
        kept = self.domain.indices(names)
        domain = Domain(tuple(self.domain.variables[n] for n in kept))
        return JointPMF(domain, self.weights, [self.factors[n] for n in kept])

    def condition(self, evidence: Mapping[str, Any]) -> JointPMF:
        """Return the joint PMF of the other variables, given the evidence.

        Parameters
        ----------
        evidence : mapping of name to level, levels or likelihood
            For each known variable: its level; or a set, list or tuple of levels it is one of; or
            a numpy array with the likelihood of each of its levels.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3, 4]), rank=2, random_state=0)
        >>> pmf.condition({"x0": 1, "x2": {0, 3}}).domain.names
        ('x1',)
        """
        posterior = self._given(evidence)
        return posterior.marginal([name for name in self.domain.names if name not in evidence])

    def _given(self, evidence: Mapping[str, Any]) -> JointPMF:
        """Return the posterior over all variables, those of the evidence too (eq. 3)."""
        if not isinstance(evidence, Mapping):
            raise JointPMFError('the evidence must be a mapping, such as {"name": level}')
        log_weights = _log(self.weights)
        factors = list(self.factors)
        for name, given in evidence.items():
            n = self.domain.index(name)
            joint = _likelihood(self.domain.variables[n], given)[:, None] * self.factors[n]
            total = joint.sum(axis=0)
            log_weights = log_weights + _log(total)
            # a component that the evidence excludes keeps some distribution, with weight zero
            factors[n] = np.where(total > 0, joint / np.where(total > 0, total, 1), self.factors[n])
        top = log_weights.max()
        if top == -np.inf:
            raise JointPMFError(f"the evidence {dict(evidence)!r} has probability zero")
        return JointPMF(self.domain, _normalised(np.exp(log_weights - top)), factors)

    def table(self, max_bytes: int = MEMORY_BUDGET) -> np.ndarray:
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
        everything = range(len(self.domain))
        self._check_memory(everything, max_bytes)
        with one_blas_thread:
            return self._subset_table(everything)

    def _check_memory(self, subset: Sequence[int], max_bytes: int) -> None:
        size = 8 * math.prod(self.domain.sizes[n] for n in subset)
        if size > max_bytes:
            raise JointPMFError(
                f"the table of {len(subset)} variables would take {_bytes(size)}, more than "
                f"{_bytes(max_bytes)}; ask for a marginal, or raise max_bytes"
            )

    def _subset_table(self, subset: Iterable[int]) -> np.ndarray:
        """Return one marginal's table: a product of two joint factors, eq. 2."""
        subset = list(subset)
        half = len(subset) // 2
        left = self._joint_factor(subset[:half]) * self.weights
        table = left @ self._joint_factor(subset[half:]).T
        return table.reshape([self.domain.sizes[n] for n in subset])

    def _joint_factor(self, subset: Sequence[int]) -> np.ndarray:
        joint = np.ones((1, self.rank))
        for n in subset:
            joint = (joint[:, None] * self.factors[n]).reshape(-1, self.rank)
        return joint

    def marginals(
        self, order: int = 3, *, subsets: Iterable[Sequence[str]] | None = None
    ) -> MarginalSet:
        """Return the exact marginals of all subsets of one order, or of the subsets asked.

        Examples
        --------
        >>> random_pmf(Domain.of_sizes([2, 2, 3]), rank=2, random_state=0).marginals(order=2)
        MarginalSet(3 marginals of order 2 over 3 variables)
        """
        names = names_of_order(self.domain, order) if subsets is None else subsets
        asked = positions_of(self.domain, names)
        for subset in asked:
            self._check_memory(subset, MEMORY_BUDGET)
        with one_blas_thread:
            tables = [self._subset_table(subset) for subset in asked]
        marginals = [
            Marginal([self.domain.names[n] for n in subset], table)
            for subset, table in zip(asked, tables, strict=True)
        ]
        return MarginalSet._exact(self.domain, marginals)

    def log_probability(self, rows: Any) -> np.ndarray:
        """Return the log-probability of each row's observed cells; missing cells are summed out.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> pmf.log_probability(np.array([[-1, -1]])).round(12).tolist()
        [0.0]
        """
        logs = self._posterior(self._codes(rows))[1]
        impossible = np.flatnonzero(logs == -np.inf)
        if len(impossible):
            logger.warning(
                "%d rows have probability zero, row %d first", len(impossible), impossible[0]
            )
        return logs

    def probability(self, rows: Any) -> np.ndarray:
        """Return the probability of each row's observed cells; missing cells are summed out.

        Examples
        --------
        >>> coins = JointPMF(Domain.of_sizes([2, 2]), [1.0], [[[0.5], [0.5]], [[0.5], [0.5]]])
        >>> coins.probability([[0, 1], [0, None]]).round(12).tolist()
        [0.25, 0.5]
        """
        return np.exp(self.log_probability(rows))

    def responsibilities(self, rows: Any) -> np.ndarray:
        """Return, of shape (rows, rank), P(component | the row's observed cells).

        A row of probability zero says nothing: it gets the weights, and a warning is logged.

        Examples
        --------
        >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        >>> sure.responsibilities([[1, None], [None, None]]).tolist()
        [[0.0, 1.0], [0.3, 0.7]]
        """
        return self._responsibilities(self._codes(rows), None)

    def predict_proba(self, rows: Any, target: str) -> np.ndarray:
        """Return, of shape (rows, size), P(target | the row's other observed cells).

        The target's own cell is never used. A row whose other cells have probability zero says
        nothing: it gets the target's marginal, and a warning is logged.

        Examples
        --------
        >>> pmf = random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0)
        >>> pmf.predict_proba(np.array([[1, -1]]), "x1").sum(axis=1).round(12).tolist()
        [1.0]
        """
        n = self.domain.index(target)
        posterior = self._responsibilities(self._codes(rows), n)
        mixed = np.empty((len(posterior), self.domain.sizes[n]))
        run_all(
            [
                partial(mix_rows, posterior, self.factors[n], *ends, mixed)
                for ends in row_blocks(len(posterior))
            ]
        )
        return mixed

    def expectation(self, rows: Any, target: str) -> np.ndarray:
        """Return the expected value of the target given each row's other observed cells.

        Examples
        --------
        >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        >>> sure.expectation([[1, None], [None, None]], "x1").round(12).tolist()
        [1.0, 0.7]
        """
        values = self.domain[target].values
        if values is None:
            raise JointPMFError(f"the levels of {target!r} have no numeric values to average")
        return (self.predict_proba(rows, target) * np.array(values)).sum(axis=1)

    def mode(self, rows: Any, target: str) -> np.ndarray:
        """Return the most likely level of the target given each row's other observed cells.

        Examples
        --------
        >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.3, 0.7], [np.eye(2), np.eye(2)])
        >>> sure.mode([[0, None], [None, None]], "x1").tolist()
        [0, 1]
        """
        levels = np.empty(self.domain[target].size, object)
        levels[:] = self.domain[target].levels
        chosen = levels[self.predict_proba(rows, target).argmax(axis=1)]
        kinds = {type(level) for level in levels}
        return chosen.astype(kinds.pop()) if kinds in ({int}, {float}, {bool}, {str}) else chosen

    def _codes(self, rows: Any) -> Codes:
        return encode(rows, self.domain)

    def _responsibilities(self, codes: Codes, target: int | None) -> np.ndarray:
        posterior, logs = self._posterior(codes, target)
        impossible = np.flatnonzero(logs == -np.inf)
        if len(impossible):
            logger.warning(
                "%d rows have probability zero, row %d first; they are answered without evidence",
                len(impossible),
                impossible[0],
            )
        return posterior

    def _posterior(self, codes: Codes, target: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        stacked = np.concatenate([np.zeros((0, self.rank)), *self.factors])
        return posterior_of_rows(codes, self.weights, stacked, target)

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
            Evidence as in `condition`; the rows hold those variables too.
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
        return decode(source._draw(n, seeded_generator(random_state)), backend)

    def _draw(self, n: int, generator: np.random.Generator) -> Codes:
        components = np.empty(n, np.int64)
        zeros = np.zeros(n, np.int64)
        draw_levels(cumulative(self.weights[:, None]), zeros, generator.random(n), components)
        array = np.empty((n, len(self.domain)), np.int32, order="F")
        for v, factor in enumerate(self.factors):
            uniforms = generator.random(n)
            draw_levels(cumulative(factor), components, uniforms, array[:, v])
        return Codes(self.domain, array)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file, whole or not at all; `jointpmf.load` reads it."""
        write_model(path, self.domain, self.weights, self.factors)

    def explore(
        self, path: str | os.PathLike[str], model: str | os.PathLike[str] | None = None
    ) -> None:
        """Write one HTML file in which the model answers clicks; any browser opens it.

        Parameters
        ----------
        path : path
            Where to.
        model : path, optional
            The model's file, which the queries that the page shows as code read; by default
            `path` with the suffix .safetensors.

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

        write_page(path, self.domain, self.weights, self.factors, model)


def posterior_of_rows(
    codes: Codes, weights: np.ndarray, factors: np.ndarray, target: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(component | row without the target) and the log-probability of that (eq. 4).

    `factors` has a row for each level of each variable. The log of a row that cannot happen is −∞,
    and its posterior is the weights.
    """
    rank, offsets = len(weights), codes.domain.offsets
    stack = stack_of(weights, factors)
    if target is not None:
        stack[offsets[target] : offsets[target + 1], :rank] = 1.0  # its cells say nothing
    n_safe = safe_cells(stack)
    power = lift_subnormals(stack) if n_safe == 0 else 0
    lanes = lanes_of(panel_width(rank))
    posterior, logs = np.empty((codes.n_rows, rank)), np.empty(codes.n_rows)
    no_weights, no_counts = np.empty(0), np.empty((0, 0))

    def block(begin: int, end: int) -> None:
        for rows, cells, ptr in listed_cells(codes.columns, offsets, begin, end):
            e_step(
                cells, ptr, no_weights, stack, n_safe, posterior[rows], no_counts, logs[rows], lanes
            )
            if power:
                logs[rows] -= power * math.log(2) * (np.diff(ptr) + 1)

    run_all([partial(block, *ends) for ends in row_blocks(codes.n_rows)])
    posterior[logs == -np.inf] = weights
    return posterior, logs


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


def average(pmfs: Sequence[JointPMF], weights: Any = None) -> JointPMF:
    """Return the average of several distributions, as one model whose rank is the sum of theirs.

    Parameters
    ----------
    pmfs : sequence of JointPMF
        Over the same domain.
    weights : array, optional
        What each of them counts for; all alike by default.

    Examples
    --------
    >>> pmfs = [random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=seed) for seed in (0, 1)]
    >>> mean = average(pmfs)
    >>> mean.rank, bool(np.allclose(mean.table(), (pmfs[0].table() + pmfs[1].table()) / 2))
    (4, True)
    """
    pmfs = list(pmfs) if isinstance(pmfs, Iterable) else []
    if not pmfs or not all(isinstance(pmf, JointPMF) for pmf in pmfs):
        raise JointPMFError("average needs one JointPMF or more")
    if any(pmf.domain != pmfs[0].domain for pmf in pmfs):
        raise JointPMFError("the distributions to average are not over the same domain")
    shares = checked_weights(weights, len(pmfs), "weight of model", most=np.inf)
    shares = np.ones(len(pmfs)) if shares is None else shares
    if not shares.any():
        raise JointPMFError("the weights of all models are zero")
    shares = shares / shares.max()  # lest their sum overflows
    parts = [share * pmf.weights for share, pmf in zip(shares / shares.sum(), pmfs, strict=True)]
    factors = [np.hstack(same) for same in zip(*(pmf.factors for pmf in pmfs), strict=True)]
    return JointPMF(pmfs[0].domain, np.concatenate(parts), factors)


def seeded_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a seed, a generator or None stands for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise JointPMFError(
            f"random_state must be a whole number or a numpy Generator, not {random_state!r}"
        ) from None


def random_pmf(domain: Domain, rank: int, random_state: Any = None) -> JointPMF:
    """Return a random joint PMF, uniform entries made to sum to one, as in the paper's experiments.

    Examples
    --------
    >>> random_pmf(Domain.of_sizes([2, 3]), rank=4, random_state=0)
    JointPMF(x0, x1; 2 variables, rank 4)
    """
    rank = whole_number(rank, "the rank", 1)
    generator = seeded_generator(random_state)
    weights = _normalised(generator.random(rank))
    return JointPMF(
        domain, weights, [_normalised(generator.random((size, rank))) for size in domain.sizes]
    )


def _normalised(array: np.ndarray) -> np.ndarray:
    return array / array.sum(axis=0)


def _on_simplex(given: Any, what: str) -> np.ndarray:
    """Return an array whose columns are checked to be probabilities, and sum to one to rounding."""
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise JointPMFError(f"{what} must be an array of numbers") from None
    if not np.isfinite(array).all():
        raise JointPMFError(f"{what} must be finite")
    off = np.abs(array.sum(axis=0) - 1).max(initial=0)
    if (array < 0).any() or off > FEASIBLE:
        raise JointPMFError(f"{what} must be non-negative and sum to one")
    return array if off < 1e-14 else _normalised(array)  # what was divided before stays


def _likelihood(variable: Variable, given: Any) -> np.ndarray:
    """Return evidence of any kind as a likelihood of each level."""
    if isinstance(given, np.ndarray):
        if given.shape != (variable.size,) or given.dtype.kind not in "fiub":
            raise JointPMFError(
                f"the likelihood of {variable.name!r} must be {variable.size} numbers, "
                f"not of shape {given.shape}"
            )
        likelihood = given.astype(float)
        if not np.isfinite(likelihood).all() or (likelihood < 0).any():
            raise JointPMFError(
                f"the likelihood of {variable.name!r} must be finite and at least 0"
            )
        return likelihood / (likelihood.max() or 1.0)  # its scale does not matter, its digits do
    if hasattr(given, "to_numpy"):
        raise JointPMFError(f"give the likelihood of {variable.name!r} as a numpy array")
    likelihood = np.zeros(variable.size)
    several = isinstance(given, (set, frozenset, list, tuple)) and given not in variable
    for level in given if several else [given]:
        likelihood[variable.code(level)] = 1.0
    return likelihood


def _log(array: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(array)


def cumulative(columns: np.ndarray) -> np.ndarray:
    """Return cumulative probabilities, a row per component, that end in one exactly."""
    cumulative = np.ascontiguousarray(columns.cumsum(axis=0).T)
    cumulative[cumulative >= cumulative[:, -1:]] = 1.0  # from the last possible level on
    return cumulative


def _bytes(count: int) -> str:
    if count >= 2**60:
        return f"10^{math.log10(count):.0f} bytes"
    power = max(count.bit_length() - 1, 0) // 10
    return f"{count / 1024**power:.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"
