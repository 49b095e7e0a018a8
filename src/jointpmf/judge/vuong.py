"""The Vuong–Lo–Mendell–Rubin test: whether further components gain more than chance would.

Each model is described by the scores of its rows and by its observed information. Parameters at
the boundary, probabilities of zero or one, count as known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from jointpmf.data.codes import Codes
from jointpmf.data.decode import table_of
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError
from jointpmf.judge.weighted_squares import survival
from jointpmf.point import Point
from jointpmf.rows.distinct import distinct_codes
from jointpmf.solvers.curvature import Tangent
from jointpmf.solvers.jacobian import n_free_parameters
from jointpmf.threads import one_blas_thread, row_blocks

if TYPE_CHECKING:
    from jointpmf.pmf import JointPMF

_MOST_PARAMETERS = 2000
"""Parameters of the largest model that is tested: more would take minutes."""

_BOUNDARY = 1e-4
"""Probabilities below it are at the boundary: EM comes near to zero and does not reach it."""

_FLAT = 1e-9
"""Information below this, with a unit diagonal, is none: the rows leave that direction open."""

_AT_ONCE = 2**22
"""Numbers of the largest block of scores."""


def _p_text(p_value: float) -> str:
    """Return a p-value in words of the digits that the inversion has."""
    return "< 1e-6" if p_value < 1e-6 else f"= {p_value:.3g}"


@dataclass(frozen=True)
class VLMRTest:
    """The Vuong–Lo–Mendell–Rubin test of one rank against a larger one; `print` says what it found.

    Attributes
    ----------
    rank, larger : int
        The rank under test, and the one that it is compared with.
    statistic : float
        Twice the gain in log-likelihood by the larger model.
    p_value : float
        The probability of at least that gain under the reference distribution.
    adjusted_statistic, adjusted_p_value : float
        The same with the correction of Lo, Mendell and Rubin for few rows.
    weights : array
        The reference distribution is that of a sum of squares of independent normal variables with
        these weights; `mean` and `sd` are its moments.
    n_fixed : int
        Parameters of both models that are at the boundary and count as known.
    n_open : int
        Directions of both models that the rows do not determine, which are left out.
    """

    rank: int
    larger: int
    statistic: float
    p_value: float
    adjusted_statistic: float
    adjusted_p_value: float
    weights: np.ndarray = field(repr=False)
    n_fixed: int
    n_open: int

    @property
    def mean(self) -> float:
        """The mean of the reference distribution."""
        return float(self.weights.sum())

    @property
    def sd(self) -> float:
        """The standard deviation of the reference distribution."""
        return math.sqrt(2 * float(self.weights @ self.weights))

    def __str__(self) -> str:
        """Say what the test found."""
        verdict = "is not enough" if self.adjusted_p_value <= 0.05 else "may be enough"
        notes = ""
        if self.n_fixed:
            notes += f" {self.n_fixed} parameters at the boundary count as known."
        if self.n_open:
            notes += f" {self.n_open} directions that the rows leave open are left out."
        return (
            f"Rank {self.rank} against {self.larger}: likelihood ratio {self.statistic:.3f} "
            f"(expected {self.mean:.3f} ± {self.sd:.3f}), VLMR p {_p_text(self.p_value)}, adjusted "
            f"p {_p_text(self.adjusted_p_value)}; by this test rank {self.rank} {verdict}.{notes}"
        )

    def _repr_html_(self) -> str:
        """Return what the test found."""
        from jointpmf.show.notebook import sentence_html

        return sentence_html(self)


@dataclass(frozen=True)
class VLMRTests:
    """The tests of all ranks of a curve, each against the next one; `print` shows them."""

    tests: tuple[VLMRTest, ...]

    def __str__(self) -> str:
        """Return one line for each test."""
        return "\n".join(map(str, self.tests))

    def to_frame(self, backend: str = "polars") -> Any:
        """Return the tests as a frame, "polars", "pandas" or "pyarrow": one row per test.

        Examples
        --------
        >>> test = VLMRTest(1, 2, 30.5, 0.01, 29.0, 0.02, np.ones(3), n_fixed=0, n_open=0)
        >>> VLMRTests((test,)).to_frame().select("rank", "statistic", "mean").rows()
        [(1, 30.5, 3.0)]
        """
        names = (
            "rank",
            "larger",
            "statistic",
            "mean",
            "sd",
            "p_value",
            "adjusted_statistic",
            "adjusted_p_value",
            "n_fixed",
            "n_open",
        )
        columns = {name: [getattr(test, name) for test in self.tests] for name in names}
        return table_of(columns, backend)

    def _repr_html_(self) -> str:
        """Return one line for each test."""
        from jointpmf.show.notebook import sentence_html

        return "".join(map(sentence_html, self.tests))


def vlmr_test(
    small: JointPMF, large: JointPMF, codes: Codes, sample_weight: np.ndarray | None
) -> VLMRTest:
    """Return the test of a maximum-likelihood fit against a larger one (docs/math.md, eq. 56)."""
    n_small, n_large = (n_free_parameters(pmf.domain, pmf.rank) for pmf in (small, large))
    if n_large > _MOST_PARAMETERS:
        raise JointPMFError(
            f"the model of rank {large.rank} has {n_large} parameters; the Vuong–Lo–Mendell–Rubin "
            f"test needs at most {_MOST_PARAMETERS}, bootstrap_test any number"
        )
    with one_blas_thread:
        distinct, counts = distinct_codes(codes, sample_weight)
        total = float(counts.sum())
        gained = large.log_probability(distinct) - small.log_probability(distinct)
        found = reference_weights(small, large, distinct, counts)
    statistic = 2 * float(counts @ gained)
    adjusted = statistic / (1 + 1 / ((n_large - n_small) * math.log(total)))
    return VLMRTest(
        small.rank,
        large.rank,
        statistic,
        survival(found.weights, statistic),
        adjusted,
        survival(found.weights, adjusted),
        *found,
    )


class Reference(NamedTuple):
    """The weights of the reference distribution, and what is not in them."""

    weights: np.ndarray
    n_fixed: int
    n_open: int


def reference_weights(
    small: JointPMF, large: JointPMF, codes: Codes, counts: np.ndarray
) -> Reference:
    """Return the eigenvalues of Vuong's W for two models and the rows that they were fitted to."""
    parts = [_Likelihood(pmf) for pmf in (large, small)]
    products = np.zeros((sum(part.n_free for part in parts),) * 2)
    height = max(_AT_ONCE // max(part.second.shape[0] for part in parts), 1)
    for begin, end in row_blocks(codes.n_rows, height):
        some, count = Codes(codes.domain, codes.array[begin:end]), counts[begin:end]
        scores = np.concatenate([part.add(some, count) for part in parts], axis=1)
        products += scores.T @ (count[:, None] * scores)
    own = np.split(np.arange(len(products)), [parts[0].n_free])
    roots = [p.inverse_root(products[np.ix_(at, at)]) for p, at in zip(parts, own, strict=True)]
    weights = _eigenvalues(block_diag(*roots), products, roots[0].shape[1])
    n_open = len(products) - len(weights)
    return Reference(weights, sum(part.n_fixed for part in parts), n_open)


def _eigenvalues(root: np.ndarray, products: np.ndarray, n_plus: int) -> np.ndarray:
    """Return the eigenvalues of B (inverse information, that of the smaller model negative).

    They are those of a symmetric matrix, and so real.
    """
    values, vectors = np.linalg.eigh(root.T @ products @ root)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    signs = np.where(np.arange(len(half)) < n_plus, 1.0, -1.0)
    return np.linalg.eigvalsh(half.T @ (signs[:, None] * half))


class _Likelihood:
    """The derivatives of a model's log-likelihood over the directions in which it can move."""

    def __init__(self, pmf: JointPMF) -> None:
        self._pmf, point = pmf, Point.of_pmf(pmf)
        parameters = point.vector
        is_fixed = parameters < _BOUNDARY
        self.n_fixed = int(is_fixed.sum())
        self.tangent = Tangent.at(point, pmf.domain.offsets, is_fixed)
        self.n_free = len(self.tangent.moved)
        self._inverse = np.where(is_fixed, 0.0, 1 / np.maximum(parameters, _BOUNDARY))
        self.second = np.zeros((len(parameters),) * 2)

    def add(self, codes: Codes, counts: np.ndarray) -> np.ndarray:
        """Return the score of each row, and add up the second derivatives of probabilities."""
        rank, offsets = self._pmf.rank, self._pmf.domain.offsets
        posterior = self._pmf.responsibilities(codes)
        is_seen = np.zeros((codes.n_rows, 1 + int(offsets[-1])))  # the weight, then all levels
        is_seen[:, 0] = 1.0
        row, n = np.nonzero(codes.array != MISSING)
        is_seen[row, 1 + offsets[n] + codes.array[row, n]] = 1.0
        scores = np.empty((codes.n_rows, len(self._inverse)))
        for f in range(rank):
            scaled = is_seen * self._inverse[f::rank]
            scores[:, f::rank] = posterior[:, f, None] * scaled
            self.second[f::rank, f::rank] += scaled.T @ (counts[:, None] * scores[:, f::rank])
        return scores[:, self.tangent.moved] - scores[:, self.tangent.pivots]

    def inverse_root(self, products: np.ndarray) -> np.ndarray:
        """Return R with RRᵀ the inverse of the observed information; open directions left out."""
        second = self.second.copy()
        rank = self._pmf.rank
        for begin, end in pairwise([0, *(1 + self._pmf.domain.offsets)]):
            # a row has one level of each variable, and one component
            second[begin * rank : end * rank, begin * rank : end * rank] = 0.0
        information = products - self.tangent.reduce_matrix(second)
        scale = 1 / np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
        is_told = values > _FLAT
        return scale[:, None] * vectors[:, is_told] / np.sqrt(values[is_told])
