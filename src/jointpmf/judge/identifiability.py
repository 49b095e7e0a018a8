"""What can be known: is the model unique, and how small can its error be.

Local identifiability is the rank of the Jacobian of the marginals over the feasible directions,
which JᵀJ has too and no Jacobian is needed for (docs/math.md, eq. 14). The same matrices give the
Cramér–Rao bound for known noise, and the error that least squares on the marginals will have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np
from scipy.linalg.lapack import dpstrf

from jointpmf.data.codes import Codes
from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, seeded_generator, whole_number
from jointpmf.marginals.counting import names_of_order, positions_of
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.pmf import JointPMF
from jointpmf.show.html import element, facts, fragment, number_text
from jointpmf.solvers.curvature import Curvature, Tangent
from jointpmf.solvers.point import Point
from jointpmf.threads import one_blas_thread

Subset = tuple[int, ...]

MAX_PARAMETERS = 4000
"""Models of more parameters are not decided by the Jacobian: it would take minutes."""

MAX_SEARCHED = 1500
"""Parameters of the largest model that the search for the largest rank looks at."""

NULL = 1e-11
"""Pivots below this, JᵀJ scaled to a unit diagonal, are zero."""

N_POINTS = 2
"""Random models at which the generic rank of the Jacobian is sought."""


@dataclass(frozen=True)
class Identifiability:
    """Whether marginals determine a model of some rank; its text is advice.

    Attributes
    ----------
    rank : int
        The rank that was asked about.
    identifiable : bool or None
        Whether the marginals determine the model locally; None where it was too large to tell.
    n_parameters, jacobian_rank : int, int or None
        How many free parameters the model has, and in how many directions the marginals see them.
    n_equations : int
        How many independent numbers the marginals hold.
    largest_rank, is_largest : int, bool
        The largest rank that was found identifiable, and whether larger ones were found not to be
        (otherwise they were too large to try).
    counting_bound : int
        No larger rank can be: it would have more parameters than there are equations.
    paper_condition : bool
        Whether the paper's sufficient condition for uniqueness holds, with the stack's rank
        where the paper has a product.
    condition : float or None
        At a fitted model: by how much the least visible direction is magnified.
    known : str
        What the marginals are, in words.
    """

    rank: int
    identifiable: bool | None
    n_parameters: int
    jacobian_rank: int | None
    n_equations: int
    largest_rank: int
    is_largest: bool
    counting_bound: int
    paper_condition: bool
    condition: float | None
    known: str
    highest_order: int

    def __str__(self) -> str:
        """Say whether the model is unique, and what to do if it is not."""
        parts = [self._verdict(), self._limits()]
        if self.paper_condition:
            parts.append("The paper's sufficient condition for uniqueness holds.")
        if self.condition is not None:
            parts.append(
                f"At the fitted model the condition number is {self.condition:.2g}: an error in "
                "the marginals can appear in the factors so many times larger."
            )
        return " ".join(parts)

    def _repr_html_(self) -> str:
        """Return the advice, and below it the numbers that it rests on."""
        verdicts = {True: "identifiable", False: "not identifiable", None: "too large to tell"}
        heading = f"Rank {self.rank}: {verdicts[self.identifiable]}"
        numbers: list[tuple[str, float | None]] = [
            ("free parameters", self.n_parameters),
            ("seen by the marginals", self.jacobian_rank),
            ("independent equations", self.n_equations),
            ("largest identifiable rank", self.largest_rank),
            ("largest rank by counting", self.counting_bound),
        ]
        if self.condition is not None:
            numbers.append(("condition number", self.condition))
        return fragment(
            element("p", element("b", heading)),
            element("p", str(self)),
            facts((topic, number_text(number)) for topic, number in numbers),
        )

    def _verdict(self) -> str:
        what = f"From {self.known}, rank {self.rank}"
        if self.identifiable is None:
            return f"{what} has too many parameters to decide by the Jacobian."
        if self.identifiable:
            return (
                f"{what} is locally identifiable: all {self.n_parameters} parameters are seen; "
                "only the order of the components is free."
            )
        seen = min(self.n_equations, self.n_parameters)
        missing = self.n_parameters - (seen if self.jacobian_rank is None else self.jacobian_rank)
        return (
            f"{what} is not identifiable: of {self.n_parameters} parameters {missing} "
            "can change without changing any of these tables, so that very different models "
            f"fit equally well; {self._remedy()}."
        )

    def _remedy(self) -> str:
        lower = f"lower the rank to {self.largest_rank}" if self.largest_rank else "lower the rank"
        names = {1: "pairs, better triples", 2: "triples", 3: "quadruples"}
        return f"add {names.get(self.highest_order, 'larger marginals')} or {lower}"

    def _limits(self) -> str:
        found = f"The largest identifiable rank is {self.largest_rank}"
        if not self.is_largest:
            found = f"Ranks up to {self.largest_rank} were found identifiable, larger not tried"
        return (
            f"{found}; counting equations ({self.n_equations}) allows at most "
            f"{self.counting_bound}."
        )


def identifiability(
    known: MarginalSet | Domain | tuple[Domain, int],
    rank: int,
    *,
    order: int | None = None,
    pmf: JointPMF | None = None,
    random_state: object = 0,
) -> Identifiability:
    """Return whether marginals determine a joint PMF of some rank.

    Parameters
    ----------
    known : MarginalSet, Domain or (Domain, order)
        Which marginals are known; only their variables matter, not what is in them.
    rank : int
        Number of components.
    order : int, optional
        With a Domain: all subsets of so many variables are known.
    pmf : JointPMF, optional
        A fitted model; the Jacobian is then taken there, and its condition number is reported.
    random_state : int or numpy Generator
        For the random models at which the generic rank is sought.

    Examples
    --------
    >>> import jointpmf as jp
    >>> report = jp.identifiability(jp.Domain.of_sizes([4] * 5), rank=3, order=2)
    >>> report.identifiable
    False
    >>> jp.identifiability(jp.Domain.of_sizes([4] * 5), rank=3, order=3).identifiable
    True
    """
    domain, subsets = _known_subsets(known, order)
    rank = whole_number(rank, "the rank", 1)
    if pmf is not None and (pmf.domain != domain or pmf.rank != rank):
        raise JointPMFError(f"the model {pmf!r} is not of rank {rank} over these variables")
    generator = seeded_generator(random_state)
    curvature = Curvature(domain, subsets, np.ones(len(subsets)))
    n_equations = _n_equations(domain, subsets)
    per_component = 1 + sum(size - 1 for size in domain.sizes)
    n_parameters = rank * per_component - 1
    counting_bound = (n_equations + 1) // per_component
    found = jacobian_rank(curvature, rank, pmf, generator)
    identifiable = _are_all_seen(found, n_parameters, n_equations)
    largest, is_largest = _largest_rank(curvature, counting_bound, per_component, generator)
    return Identifiability(
        rank,
        identifiable,
        n_parameters,
        found,
        n_equations,
        max(largest, rank if identifiable else 0),
        is_largest,
        counting_bound,
        _paper_condition(domain, subsets, rank),
        None if pmf is None else _condition(curvature, Point.of_pmf(pmf)),
        _in_words(domain, subsets),
        max(map(len, subsets)),
    )


def _known_subsets(
    known: MarginalSet | Domain | tuple[Domain, int], order: int | None
) -> tuple[Domain, list[Subset]]:
    if isinstance(known, MarginalSet):
        return known.domain, sorted(set(known.subsets))
    if isinstance(known, tuple) and len(known) == 2:
        known, order = known
    if not isinstance(known, Domain) or order is None:
        raise JointPMFError("say what is known: a MarginalSet, or a Domain and an order")
    return known, positions_of(known, names_of_order(known, order))


def is_determined(curvature: Curvature, rank: int, generator: np.random.Generator) -> bool | None:
    """Tell whether the marginals see all parameters of a model; None if it is too large to tell."""
    domain = curvature.domain
    n_parameters = rank * (1 + sum(size - 1 for size in domain.sizes)) - 1
    found = jacobian_rank(curvature, rank, None, generator)
    return _are_all_seen(found, n_parameters, _n_equations(domain, curvature.subsets))


def _are_all_seen(found: int | None, n_parameters: int, n_equations: int) -> bool | None:
    if n_parameters > n_equations:
        return False
    return None if found is None else found == n_parameters


def _n_equations(domain: Domain, subsets: Iterable[Subset]) -> int:
    """Return how many independent numbers the tables hold: interactions of all their variables."""
    below = {part for s in subsets for k in range(1, len(s) + 1) for part in combinations(s, k)}
    return sum(math.prod(domain.sizes[n] - 1 for n in part) for part in below)


def jacobian_rank(
    curvature: Curvature, rank: int, pmf: JointPMF | None, generator: np.random.Generator
) -> int | None:
    """Return the rank of the Jacobian at a model, or the highest at random models of a rank."""
    if rank * (1 + sum(curvature.domain.sizes)) > MAX_PARAMETERS:
        return None
    if pmf is not None:
        return _rank_at(curvature, Point.of_pmf(pmf))
    models = (_spread_model(curvature.domain, rank, generator) for _ in range(N_POINTS))
    return max(_rank_at(curvature, model) for model in models)


def _spread_model(domain: Domain, rank: int, generator: np.random.Generator) -> Point:
    """Return a random model with clearly different columns, where rank shows best."""
    columns = [generator.dirichlet(np.full(size, 0.7), rank).T for size in domain.sizes]
    return Point(np.full(rank, 1 / rank), np.concatenate(columns))


def _rank_at(curvature: Curvature, point: Point) -> int:
    return _positive_rank(_reduced(curvature, point))


def _positive_rank(reduced: np.ndarray) -> int:
    """Return the rank of a positive semidefinite matrix, by its pivoted Cholesky factor."""
    scale = np.sqrt(np.maximum(np.diag(reduced), 0.0))  # rounding may leave less than nothing
    seen = scale > 0
    if not seen.any():
        return 0
    alike = reduced[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen])
    with one_blas_thread:
        return int(dpstrf(alike, tol=NULL)[2])


def _condition(curvature: Curvature, point: Point) -> float:
    """Return the ratio of J's extreme singular values over the feasible directions."""
    with one_blas_thread:
        values = np.linalg.eigvalsh(_reduced(curvature, point))
    visible = len(values) and values[0] > NULL * values[-1]
    return math.sqrt(values[-1] / values[0]) if visible else math.inf


def _reduced(curvature: Curvature, point: Point) -> np.ndarray:
    """Return JᵀJ over all feasible directions at a point."""
    return _tangent(curvature.domain, point).reduce_matrix(curvature.matrix(point))


def _tangent(domain: Domain, point: Point) -> Tangent:
    nothing_fixed = np.zeros(len(point.weights) + point.factors.size, bool)
    return Tangent.at(point, domain.offsets, nothing_fixed)


def _largest_rank(
    curvature: Curvature, counting_bound: int, per_component: int, generator: np.random.Generator
) -> tuple[int, bool]:
    """Return the largest identifiable rank, by bisection, and whether it is sure to be."""
    largest = max(1, MAX_SEARCHED // (1 + sum(curvature.domain.sizes)))
    low, high = 0, min(counting_bound, largest)
    is_largest = counting_bound <= largest
    while low < high:
        middle = (low + high + 1) // 2
        if jacobian_rank(curvature, middle, None, generator) == middle * per_component - 1:
            low = middle
        else:
            high, is_largest = middle - 1, True
    return low, is_largest


def _paper_condition(domain: Domain, subsets: Sequence[Subset], rank: int) -> bool:
    """Tell whether two variables and a stack of others, all triples known, force uniqueness."""
    triples = {frozenset(t) for s in subsets for t in combinations(s, 3)}
    for i, j in combinations(range(len(domain)), 2):
        small, large = sorted((domain.sizes[i], domain.sizes[j]))
        others = [n for n in range(len(domain)) if frozenset((i, j, n)) in triples]
        stack = 1 + sum(domain.sizes[n] - 1 for n in others)
        if small >= 3 and (small - 1) * (large - 1) >= rank and others and stack >= rank:
            return True
    return False


def _in_words(domain: Domain, subsets: Sequence[Subset]) -> str:
    orders = sorted({len(s) for s in subsets})
    names = {1: "singles", 2: "pairs", 3: "triples", 4: "quadruples"}
    words = " and ".join(names.get(order, f"{order}-tuples") for order in orders)
    everything = sum(math.comb(len(domain), order) for order in orders)
    count = f"all {words}" if len(subsets) == everything else f"{len(subsets)} {words}"
    return f"{count} of {len(domain)} variables"


@dataclass(frozen=True)
class ErrorLimits:
    """The smallest relative errors that are possible, and those that least squares will have.

    `factor_bound` and `tensor_bound` are the Cramér–Rao bounds, from all of the data;
    `factor_predicted` and `tensor_predicted` are for least squares on the marginals, infinite
    where those do not determine the model.
    """

    factor_bound: float
    tensor_bound: float
    factor_predicted: float
    tensor_predicted: float


def error_limits(
    pmf: JointPMF,
    known: MarginalSet | int,
    *,
    sigma: float | None = None,
    n_rows: int | None = None,
    n_samples: int = 100_000,
    random_state: object = 0,
) -> ErrorLimits:
    """Return how well a model can be learned under known noise, to first order in the noise.

    Parameters
    ----------
    pmf : JointPMF
        The true model.
    known : MarginalSet or int
        Which marginals least squares sees, or their order.
    sigma : float, optional
        White noise of this standard deviation on every cell of the joint, marginals summed from it.
    n_rows : int, optional
        Instead: the marginals are counted over so many complete rows.
    n_samples, random_state
        Rows over which expectations are taken where the joint has too many cells.

    Examples
    --------
    >>> import jointpmf as jp
    >>> truth = jp.random_pmf(jp.Domain.of_sizes([5] * 4), rank=2, random_state=0)
    >>> limits = jp.error_limits(truth, 3, n_rows=10_000)
    >>> limits.factor_bound <= limits.factor_predicted
    True
    """
    if (sigma is None) == (n_rows is None):
        raise JointPMFError("say either sigma, noise on every cell, or n_rows, rows counted")
    if not all(number is None or number > 0 for number in (sigma, n_rows)):
        raise JointPMFError("sigma and n_rows must be positive")
    given = known if isinstance(known, MarginalSet) else (pmf.domain, known)
    domain, subsets = _known_subsets(given, None)
    if domain != pmf.domain:
        raise JointPMFError("the marginals are not over the same domain as the model")
    point = Point.of_pmf(pmf)
    tangent = _tangent(domain, point)
    curvature = Curvature(domain, subsets, np.ones(len(subsets)))
    marginal = tangent.reduce_matrix(curvature.matrix(point))
    everything = Curvature(domain, [tuple(range(len(domain)))], np.ones(1)).matrix(point)
    with one_blas_thread:
        if sigma is not None:
            information = tangent.reduce_matrix(everything) / sigma**2
            noise = sigma**2 * tangent.reduce_matrix(_shared_noise(domain, subsets, point))
        else:
            rows, weights = _expectation_rows(pmf, n_samples, random_state)
            information, noise = _of_rows(pmf, rows, weights, subsets, tangent)
            total = float(n_rows or 1)
            information, noise = information * total, noise / total
        bound = _inverse(information)
        inverse = _inverse(marginal)
        predicted = None if inverse is None else inverse @ noise @ inverse
    return ErrorLimits(
        *_relative_errors(pmf, bound, tangent, everything),
        *_relative_errors(pmf, predicted, tangent, everything),
    )


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a positive matrix, or None if some direction is not seen at all."""
    return np.linalg.inv(matrix) if _positive_rank(matrix) == len(matrix) else None


def _shared_noise(domain: Domain, subsets: Sequence[Subset], point: Point) -> np.ndarray:
    """Return Jᵀ(covariance)J: tables have the noise of the cells that they share (eq. 19)."""
    shared: dict[Subset, float] = {}
    for s, t in product(subsets, repeat=2):
        both = tuple(sorted(set(s) & set(t)))
        outside = math.prod(domain.sizes[n] for n in range(len(domain)) if n not in {*s, *t})
        if both:
            shared[both] = shared.get(both, 0.0) + outside
    return Curvature(domain, list(shared), np.array(list(shared.values()))).matrix(point)


def _expectation_rows(
    pmf: JointPMF, n_samples: int, random_state: object
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and their weights that stand for the distribution: all cells, or a sample."""
    if math.prod(pmf.domain.sizes) <= n_samples:
        cells = np.indices(pmf.domain.sizes).reshape(len(pmf.domain), -1).T
        return cells, pmf.table().ravel()
    rows = pmf.sample(n_samples, random_state=random_state, backend="codes")
    return rows, np.full(n_samples, 1 / n_samples)


def _of_rows(
    pmf: JointPMF,
    rows: np.ndarray,
    weights: np.ndarray,
    subsets: Sequence[Subset],
    tangent: Tangent,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the information in one row, and the covariance of what it adds to the gradient."""
    information = np.zeros((len(tangent.moved),) * 2)
    second = np.zeros_like(information)
    first = np.zeros(len(tangent.moved))
    seen = weights > 0
    rows, weights = rows[seen], weights[seen]
    for begin in range(0, len(rows), 4096):
        part, weight = rows[begin : begin + 4096], weights[begin : begin + 4096]
        score = _reduce_rows(tangent, _scores(pmf, part))
        information += (score * weight[:, None]).T @ score
        pull = _reduce_rows(tangent, _pulls(pmf, part, subsets))
        second += (pull * weight[:, None]).T @ pull
        first += weight @ pull
    return information, second - np.outer(first, first)


def _reduce_rows(tangent: Tangent, rows: np.ndarray) -> np.ndarray:
    return rows[:, tangent.moved] - rows[:, tangent.pivots]


def _scores(pmf: JointPMF, rows: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's log-probability in all parameters."""
    pulls = _pulls(pmf, rows, [tuple(range(len(pmf.domain)))])
    return pulls / pmf.probability(Codes(pmf.domain, rows))[:, None]


def _pulls(pmf: JointPMF, rows: np.ndarray, subsets: Sequence[Subset]) -> np.ndarray:
    """Return, for each row, the gradient of the sum of its cells in all marginal tables."""
    rank, offsets = pmf.rank, pmf.domain.offsets
    factors = [pmf.factors[n][rows[:, n]] for n in range(len(pmf.domain))]
    out = np.zeros((len(rows), rank + int(offsets[-1]) * rank))
    at = np.arange(len(rows))[:, None]
    for subset in subsets:
        out[:, :rank] += math.prod(factors[n] for n in subset)
        for n in subset:
            rest = pmf.weights * math.prod([np.ones(rank)] + [factors[m] for m in subset if m != n])
            columns = rank + (offsets[n] + rows[:, n])[:, None] * rank + np.arange(rank)
            out[at, columns] += rest
    return out


def _relative_errors(
    pmf: JointPMF, covariance: np.ndarray | None, tangent: Tangent, everything: np.ndarray
) -> tuple[float, float]:
    """Return the expected relative errors of the factors and of the joint for a covariance."""
    if covariance is None:
        return math.inf, math.inf
    rank, offsets = pmf.rank, pmf.domain.offsets
    expand = np.zeros((tangent.n_parameters, len(tangent.moved)))
    expand[tangent.moved, np.arange(len(tangent.moved))] = 1.0
    np.subtract.at(expand, (tangent.pivots, np.arange(len(tangent.moved))), 1.0)
    variance = np.einsum("ij,jk,ik->i", expand, covariance, expand, optimize=True)[rank:]
    factor = [
        math.sqrt(variance[begin * rank : end * rank].sum()) / np.linalg.norm(pmf.factors[n])
        for n, (begin, end) in enumerate(pairwise(offsets))
    ]
    tensor = float(np.vdot(tangent.reduce_matrix(everything), covariance))
    whole = pmf.weights @ math.prod(a.T @ a for a in pmf.factors) @ pmf.weights
    return float(np.mean(factor)), math.sqrt(max(tensor, 0.0) / whole)
