"""What a person should know of a fit: how it was made, what the data are, what to be wary of.

Everything is counted over parts of the table, which need not be in memory at once; how it is shown
is in report.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from jointpmf.data.codes import Codes, checked_weights
from jointpmf.domain import MISSING, Domain, Variable, text_of
from jointpmf.fit.solution import Restart, Solution
from jointpmf.judge.identifiability import MAX_SEARCHED, Identifiability, identifiability
from jointpmf.judge.rank import RankCurve
from jointpmf.judge.summary import component_entropies, n_free_parameters
from jointpmf.marginals.counts import MarginalCounts
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.model_file import ModelFile
from jointpmf.pmf import JointPMF, posterior_of_rows
from jointpmf.show.text import count_text, number_text, percent, shortened
from jointpmf.solvers.loop import Status, Step

MOST_MARGINALS, MOST_CELLS = 2000, 10**7
"""Marginals that are compared with the model, and cells of all of them: of more, some at random."""

MOST_SUBSETS = 20_000
"""Marginals from which it is told whether they determine the model; with more it takes long."""

ROW_NUMBERS = 2**22
"""Numbers that are in memory at a time for the components of rows."""

TELLING = 0.05
"""Levels that say less of their component, in nats, are not worth a word."""

FEW_ROWS = 10
"""A component that stands for fewer rows is tiny; with an unknown number of rows, one whose weight
is below TINY."""
TINY = 0.005

ROWS_PER_PARAMETER = 5
MANY_HOLES = 0.5

CLEAR = 2
"""Distances of more than so many times what chance explains, and of more than NOTICEABLE, are
misfits."""
NOTICEABLE = 0.02

LISTED = 5
"""Names in a warning; of more, so many are named."""

MOST_DIGITS = 15
"""A longer number in a model file is none that a fit has written."""


@dataclass(frozen=True)
class Subject:
    """A model and what is known of its fit, from a Solution or from a model file.

    `about` is in words, by topic, as in model files; `status` is None where nobody knows.
    """

    pmf: JointPMF
    about: Mapping[str, str]
    status: Status | None = None
    history: Sequence[Step] = ()
    restarts: Sequence[Restart] = ()
    marginals: MarginalSet | None = None
    is_unique: bool | None = None
    is_of_file: bool = False
    """Whether a model file is all that tells of the fit."""

    @classmethod
    def of_solution(cls, solution: Solution) -> Subject:
        """Return what a Solution tells.

        Examples
        --------
        >>> from jointpmf.pmf import random_pmf
        >>> pmf = random_pmf(Domain.of_sizes([2, 2]), 1, 0)
        >>> Subject.of_solution(Solution(pmf, Status.CONVERGED, 1.5, [])).about["objective"]
        '1.5'
        """
        marginals = solution.marginals
        by_marginals = marginals is not None or bool(solution.source)
        about = {
            "method": "marginals" if by_marginals else "likelihood",
            "tables": "" if marginals is None else str(len(marginals)),
            "source": solution.source,
            "start": solution.start,
            "status": solution.status.value,
            "objective": f"{solution.objective:.10g}",
            "validation": "" if solution.validation is None else f"{solution.validation:.10g}",
            "iterations": str(solution.n_iter),
            "seconds": f"{solution.history[-1].seconds:.3g}" if solution.history else "",
        }
        return cls(
            solution.pmf,
            {topic: text for topic, text in about.items() if text},
            solution.status,
            solution.history,
            solution.restarts,
            marginals,
            solution.is_unique,
        )

    @classmethod
    def of_file(cls, found: ModelFile) -> Subject:
        """Return what a model file tells.

        Examples
        --------
        >>> coin = ModelFile(Domain.of_sizes([2]), np.ones(1), [np.full((2, 1), 0.5)], {})
        >>> Subject.of_file(coin).status is None
        True
        """
        status = next((one for one in Status if one.value == found.about.get("status")), None)
        return cls(JointPMF(*found[:3]), found.about, status, is_of_file=True)

    @property
    def is_by_rows(self) -> bool:
        """Whether whole rows were fitted, as far as is known, and not tables of a few variables."""
        return self.about.get("method", "likelihood") == "likelihood" and self.marginals is None

    @property
    def n_rows(self) -> float | None:
        """How many rows were fitted, if that is known."""
        if (rows := whole_in(self.about.get("rows", ""))) is not None:
            return rows
        counted = [m.n_obs for m in self.marginals or () if m.n_obs is not None]
        return max(counted, default=None)

    @property
    def n_averaged(self) -> int:
        """Of how many fits the model is an average; 1 if it is one fit.

        Examples
        --------
        >>> from jointpmf.pmf import random_pmf
        >>> pmf = random_pmf(Domain.of_sizes([2, 2]), 1, 0)
        >>> start = "the average of 4 fits from rows, rank 10 and 2 fits from factors, rank 32"
        >>> Subject(pmf, {"start": start}).n_averaged
        6
        """
        start = self.about.get("start", "")
        if not start.startswith("the average of "):
            return 1
        counts = [whole_in(count) or 0 for count in re.findall(r"(\d+) fits", start)]
        return max(sum(counts), 1)


def whole_in(text: str) -> int | None:
    """Return a whole number that a model file holds as text, if it does.

    Examples
    --------
    >>> whole_in("944"), whole_in("9" * 5000), whole_in("many")
    (944, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


class Tally:
    """What a report needs of a table, added up over its parts.

    Parameters
    ----------
    pmf : JointPMF
        The model that the rows are compared with.
    subsets : sequence of sequences of str
        What to count, for the comparison with the model's marginals.

    Examples
    --------
    >>> from jointpmf.pmf import random_pmf
    >>> tally = Tally(random_pmf(Domain.of_sizes([2, 3]), rank=2, random_state=0), [("x0", "x1")])
    >>> tally.add(Codes(tally.pmf.domain, np.array([[0, 2], [1, -1], [-1, -1]])))
    >>> tally.n_rows, tally.n_empty, tally.shares_missing.round(2).tolist()
    (3, 1, [0.33, 0.67])
    """

    def __init__(self, pmf: JointPMF, subsets: Sequence[Sequence[str]] = ()) -> None:
        self.pmf = pmf
        self._factors = np.concatenate([np.zeros((0, pmf.rank)), *pmf.factors])
        self.counts = MarginalCounts(pmf.domain, subsets)
        self.levels = [np.zeros(size) for size in pmf.domain.sizes]
        """How often each level was observed, by the weights of the rows."""
        self.n_cells = np.zeros(len(pmf.domain), np.int64)
        """How many cells of each variable are observed."""
        self.n_rows = self.n_empty = self.n_impossible = 0
        self.n_unknown = 0
        """Cells that are taken to be missing, since the model does not know their level."""
        self.is_weighted = False
        self.weight = self.weight_seen = 0.0
        """What the rows with an observed cell count for, and those of them that are possible."""
        self.first_impossible: int | None = None
        self.log_likelihood = 0.0
        """Of the rows that are possible."""
        self.entropy = 0.0
        """Of the components of the rows that are possible and have an observed cell."""

    def add(self, codes: Codes, sample_weight: Any = None) -> None:
        """Count more rows."""
        weights = checked_weights(sample_weight, codes.n_rows)
        self.is_weighted = self.is_weighted or weights is not None
        if self.counts.subsets:
            self.counts.add(codes, weights)
        for n, size in enumerate(codes.domain.sizes):
            column = codes.columns[n]
            is_observed = column != MISSING
            counted = None if weights is None else weights[is_observed]
            self.levels[n] += np.bincount(column[is_observed], counted, minlength=size)
            self.n_cells[n] += is_observed.sum()
        if weights is None:
            weights = np.ones(codes.n_rows)
        size = max(ROW_NUMBERS // max(self.pmf.rank, len(self.pmf.domain)), 1)
        for begin in range(0, codes.n_rows, size):
            part = slice(begin, begin + size)
            self._add_rows(Codes(codes.domain, codes.array[part]), weights[part])

    def _add_rows(self, codes: Codes, weights: np.ndarray) -> None:
        posterior, logs = posterior_of_rows(codes, self.pmf.weights, self._factors)
        is_possible = (logs > -np.inf) | (weights == 0)  # a row that does not count may be any
        is_seen = (codes.array != MISSING).any(axis=1)
        if self.first_impossible is None and not is_possible.all():
            self.first_impossible = self.n_rows + int(is_possible.argmin())
        self.n_rows += codes.n_rows
        self.n_empty += int((~is_seen).sum())
        self.n_impossible += int((~is_possible).sum())
        counts = is_possible & is_seen & (weights > 0)
        self.weight += float(weights[is_seen].sum())
        self.weight_seen += float(weights[counts].sum())
        self.log_likelihood += float(weights[counts] @ logs[counts])
        self.entropy += float(weights[counts] @ component_entropies(posterior[counts]))

    @property
    def n_observed(self) -> int:
        """How many cells are observed."""
        return int(self.n_cells.sum())

    @property
    def shares_missing(self) -> np.ndarray:
        """The part of each variable's cells that is missing."""
        return 1 - self.n_cells / self.n_rows if self.n_rows else np.zeros(len(self.levels))

    @property
    def share_missing(self) -> float:
        """The part of all cells that is missing."""
        return float(self.shares_missing.mean()) if len(self.levels) else 0.0

    @property
    def sharpness(self) -> float | None:
        """How surely rows belong to one component: 1 surely, 0 not at all; None at rank 1."""
        if self.pmf.rank == 1 or not self.weight_seen:
            return None
        return 1 - self.entropy / (self.weight_seen * math.log(self.pmf.rank))

    @property
    def typical_probability(self) -> tuple[float, float] | None:
        """What the model gives an observed cell, and what the variables' own shares give it.

        Geometric means; None where a row is impossible or nothing is observed.
        """
        total = float(sum(counts.sum() for counts in self.levels))
        if self.n_impossible or not total:
            return None
        alone = 0.0
        for counts in self.levels:
            seen = counts[counts > 0]
            alone += float((seen * np.log(seen / seen.sum())).sum())
        return math.exp(self.log_likelihood / total), math.exp(alone / total)


class Misfit(NamedTuple):
    """One marginal beside the model's: how far apart they are, and where most of all.

    `distance` is the part of the rows that would have to be in other cells; `chance` is what it
    would be on average if the model were the truth, where the number of rows is known.
    """

    names: tuple[str, ...]
    distance: float
    chance: float | None
    n_obs: float | None
    levels: tuple[object, ...]
    observed: float
    fitted: float

    @property
    def beyond_chance(self) -> float:
        """How much of the distance chance does not explain."""
        return self.distance - (self.chance or 0.0)

    @property
    def is_clear(self) -> bool:
        """Whether it is worth a warning."""
        return self.distance > NOTICEABLE + CLEAR * (self.chance or 0.0)


class Comparison(NamedTuple):
    """How well the marginals are met: the worst first, of so many that there are."""

    misfits: list[Misfit]
    n_all: int


def compared_pairs(domain: Domain) -> list[tuple[str, ...]]:
    """Return the pairs of variables to count for a comparison, or single ones.

    Of more than can be counted, some at random, always the same. Single variables where there is
    only one, or where every pair has too many cells.

    Examples
    --------
    >>> compared_pairs(Domain.of_sizes([2, 2, 2]))
    [('x0', 'x1'), ('x0', 'x2'), ('x1', 'x2')]
    >>> len(compared_pairs(Domain.of_sizes([2] * 500))) == MOST_MARGINALS
    True
    >>> compared_pairs(Domain.of_sizes([4000, 4000]))
    [('x0',), ('x1',)]
    """
    return _countable(domain, _some_pairs(len(domain))) or _countable(
        domain, [(k,) for k in range(len(domain))]
    )


def _some_pairs(n: int) -> list[tuple[int, ...]]:
    """Return all pairs of so many variables, or some at random."""
    subsets: list[tuple[int, ...]]
    if math.comb(n, 2) <= 2 * MOST_MARGINALS:
        subsets = list(combinations(range(n), 2))
    else:
        generator = np.random.default_rng(0)
        drawn = generator.integers(0, n, (4 * MOST_MARGINALS, 2))
        subsets = sorted({(min(pair), max(pair)) for pair in drawn.tolist() if len(set(pair)) == 2})
    return subsets


def _countable(domain: Domain, subsets: Sequence[tuple[int, ...]]) -> list[tuple[str, ...]]:
    """Return the names of some subsets whose tables are small enough."""
    names, sizes = domain.names, domain.sizes
    kept = _within_budget([math.prod(sizes[k] for k in subset) for subset in subsets])
    return [tuple(names[k] for k in subsets[position]) for position in kept]


def _within_budget(n_cells: Sequence[int]) -> list[int]:
    """Return the positions of some tables, drawn at random if all of them are too many or large."""
    kept: list[int] = []
    room = MOST_CELLS
    for position in np.random.default_rng(0).permutation(len(n_cells)).tolist():
        if n_cells[position] <= room and len(kept) < MOST_MARGINALS:
            room -= n_cells[position]
            kept.append(position)
    return sorted(kept)


def comparison(subject: Subject, tally: Tally | None) -> Comparison | None:
    """Return how far the model is from the marginals it was fitted to, or from the table's.

    Examples
    --------
    >>> from jointpmf.pmf import random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([2, 2]), rank=1, random_state=0)
    >>> comparison(Subject(pmf, {}, marginals=pmf.marginals(2)), None).misfits[0].distance < 1e-12
    True
    """
    if subject.marginals is not None:
        n_all = len(subject.marginals)
        observed = _chosen(subject.marginals)
    elif tally is not None and tally.counts.tables is not None:
        n_all = math.comb(len(subject.pmf.domain), len(tally.counts.subsets[0]))
        observed = _counted(tally.counts)
    else:
        return None
    found = [_misfit(subject.pmf, *one) for one in observed]
    return Comparison(sorted(found, key=lambda one: -one.beyond_chance), n_all)


Observed = tuple[tuple[str, ...], np.ndarray, float | None]
"""Names, table of probabilities, and number of rows."""


def _chosen(marginals: MarginalSet) -> Iterator[Observed]:
    for position in _within_budget([math.prod(m.table.shape) for m in marginals]):
        marginal = marginals[position]
        yield tuple(marginal.names), np.asarray(marginal.table), marginal.n_obs


def _counted(counts: MarginalCounts) -> Iterator[Observed]:
    """Yield the tables of counts as probabilities, but for those that no row observes."""
    names = counts.domain.names
    for subset, table in zip(counts.subsets, counts.tables or (), strict=True):
        dense = np.asarray(table)
        if total := float(dense.sum()):
            yield tuple(names[n] for n in subset), dense / total, total


def _misfit(
    pmf: JointPMF, names: tuple[str, ...], observed: np.ndarray, n_obs: float | None
) -> Misfit:
    own = pmf.marginal(names)
    fitted = own.table()
    apart = np.abs(observed - fitted)
    cell = np.unravel_index(int(apart.argmax()), apart.shape)
    return Misfit(
        names,
        float(apart.sum()) / 2,
        None if n_obs is None else _chance(fitted, n_obs),
        n_obs,
        tuple(v.levels[int(k)] for v, k in zip(own.domain, cell, strict=True)),
        float(observed[cell]),
        float(fitted[cell]),
    )


def _chance(shares: np.ndarray, n_obs: float) -> float:
    """Return the mean distance of so many drawn rows from the distribution they are drawn from."""
    variance = np.clip(shares * (1 - shares), 0, None)
    return float(np.minimum(np.sqrt(2 * variance / (math.pi * n_obs)), 2 * variance).sum()) / 2


class Telling(NamedTuple):
    """Levels of a variable that tell a component from the rest."""

    name: str
    levels: tuple[str, ...]
    is_run: bool
    """Whether they are neighbours among levels that have an order."""
    within: float
    overall: float


def telling_levels(pmf: JointPMF, components: Sequence[int], most: int) -> list[list[Telling]]:
    """Return, for some components, the levels by which each differs most from all rows.

    Those with the largest P(level | component) · log(P(level | component) / P(level)): likely
    there, and more likely than elsewhere. Neighbouring numeric levels are taken together.

    Examples
    --------
    >>> sure = JointPMF(Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.full((2, 2), 0.5)])
    >>> [(one.name, one.levels, one.within) for one in telling_levels(sure, [1], 5)[0]]
    [('x0', ('1',), 1.0)]
    """
    found: list[list[tuple[float, Telling]]] = [[] for _ in components]
    for variable, factor in zip(pmf.domain, pmf.factors, strict=True):
        overall = np.maximum(factor @ pmf.weights, np.finfo(float).tiny)
        within = factor[:, list(components)]
        information = _information(within, overall[:, None])
        for k, best in enumerate(information.argmax(axis=0).tolist()):
            if information[best, k] >= TELLING / variable.size:
                found[k].append(_around(variable, best, within[:, k], overall))
    return [
        [telling for gain, telling in sorted(one, key=lambda pair: -pair[0]) if gain >= TELLING][
            :most
        ]
        for one in found
    ]


def _information(within: np.ndarray, overall: np.ndarray) -> np.ndarray:
    return within * np.log(np.maximum(within, np.finfo(float).tiny) / overall)


def _around(
    variable: Variable, best: int, within: np.ndarray, overall: np.ndarray
) -> tuple[float, Telling]:
    """Return the telling level, with those beside it that tell the same, and how much they tell."""
    begin, end = best, best + 1
    is_ordered = variable.values is not None and variable.size > 2
    if is_ordered:
        while begin > 0 and within[begin - 1] > overall[begin - 1]:
            begin -= 1
        while end < variable.size and within[end] > overall[end]:
            end += 1
    inside, outside = float(within[begin:end].sum()), float(overall[begin:end].sum())
    levels = tuple(text_of(level) for level in variable.levels[begin:end])
    gain = float(_information(np.array(inside), np.array(outside)))
    return gain, Telling(variable.name, levels, is_ordered, inside, outside)


def identified(subject: Subject) -> Identifiability | None:
    """Return whether what was fitted determines the model; None where that is not known.

    Whole rows are judged by their triples, which they hold and more.

    Examples
    --------
    >>> from jointpmf.pmf import random_pmf
    >>> identified(Subject(random_pmf(Domain.of_sizes([4] * 4), 2, 0), {})).identifiable
    True
    """
    pmf, domain = subject.pmf, subject.pmf.domain
    if pmf.rank * (1 + sum(domain.sizes)) > MAX_SEARCHED or not len(domain):
        return None
    if subject.n_averaged > 1:  # its rank is the sum of theirs, which nobody asked to be unique
        return None
    if subject.marginals is not None:
        small = len(subject.marginals) <= MOST_SUBSETS
        return identifiability(subject.marginals, pmf.rank) if small else None
    order = subject.about.get("order", "3" if subject.is_by_rows else "")
    if not (given := whole_in(order)):
        return None
    known = min(given, len(domain))
    if math.comb(len(domain), known) > MOST_SUBSETS:
        return None
    return identifiability(domain, pmf.rank, order=known)


@dataclass(frozen=True)
class Findings:
    """All that a report says."""

    subject: Subject
    tally: Tally | None
    curve: RankCurve | None
    curve_note: str
    identified: Identifiability | None
    comparison: Comparison | None
    warnings: list[str] = field(default_factory=list)

    @property
    def n_fitted(self) -> float | None:
        """Rows that were fitted, by their weights, if they are known; else those of the table.

        A row without any observed cell tells a fit nothing, and is not counted.
        """
        known = self.subject.n_rows
        if self.tally is None or (known and known != self.tally.n_rows):
            return known
        return self.tally.weight

    @property
    def is_unique(self) -> bool | None:
        """Whether what was fitted determines the model, as far as is known."""
        if self.subject.n_averaged > 1:
            return None
        if self.identified is not None and self.identified.identifiable is not None:
            return self.identified.identifiable
        if self.subject.status is Status.NOT_UNIQUE:
            return False
        return self.subject.is_unique


def findings_of(
    subject: Subject,
    tally: Tally | None = None,
    curve: RankCurve | None = None,
    curve_note: str = "",
) -> Findings:
    """Return what is to be said of a fit.

    Examples
    --------
    >>> from jointpmf.pmf import random_pmf
    >>> pmf = random_pmf(Domain.of_sizes([4] * 4), rank=2, random_state=0)
    >>> findings_of(Subject(pmf, {}, Status.MAX_ITER)).warnings[0][:25]
    'The fit did not converge:'
    """
    found = Findings(
        subject, tally, curve, curve_note, identified(subject), comparison(subject, tally)
    )
    found.warnings.extend(_warnings(found))
    return found


def _warnings(found: Findings) -> Iterator[str]:
    yield from _of_the_fit(found)
    yield from _of_the_data(found)
    yield from _of_the_model(found)
    yield from _of_the_curve(found)


def _of_the_fit(found: Findings) -> Iterator[str]:
    status = found.subject.status
    if status is Status.MAX_ITER:
        yield (
            "The fit did not converge: more iterations would still change the model. "
            "Fit again with a larger max_iter before you rely on it."
        )
    if status is Status.STOPPED:
        yield (
            "The fit was stopped before it converged: more iterations would still change the "
            "model. Let it run to its end before you rely on it."
        )
    if status is Status.ONE_PASS:
        yield "Every row was seen only once: more passes over the data would fit it better."
    if found.is_unique is False and found.subject.is_by_rows and len(found.subject.pmf.domain) < 4:
        yield (
            "The model is not unique: others of this rank fit the same rows just as well. Trust "
            "what it says of the variables together, but not its components."
        )
    elif found.is_unique is False and found.subject.is_by_rows:
        yield (
            "The tables of up to three variables do not determine the model. Only combinations of "
            "more variables in the rows tell such models apart, so do not read much into single "
            "components."
        )
    elif found.is_unique is False:
        yield (
            "The model is not unique: others of this rank fit the same tables just as well. Trust "
            "what it says of those tables, but not its components, nor combinations of variables "
            "that no table holds."
        )
    marginals = found.subject.marginals
    if marginals is not None and (conflicts := marginals.disagreements()):
        where = count_text(len(conflicts), "variable or pair")
        yield (
            f"The tables contradict each other on {where}; the model is a compromise. Most of all, "
            f"{conflicts[0]}."
        )
    failed = [restart for restart in found.subject.restarts if restart.error]
    if failed:
        count, first = len(failed), shortened(failed[0].error)
        yield f"{count_text(count, 'start')} of {len(found.subject.restarts)} failed: {first}."


def _of_the_data(found: Findings) -> Iterator[str]:
    tally, subject = found.tally, found.subject
    domain = subject.pmf.domain
    if tally is not None:
        fitted = subject.n_rows if subject.marginals is None else None
        if fitted is not None and fitted != tally.n_rows:
            yield (
                f"The model was fitted to {count_text(fitted, 'row')}, and this table has "
                f"{tally.n_rows:,}: what is said of the data is about other rows."
            )
        if tally.n_impossible:
            yield (
                f"{count_text(tally.n_impossible, 'row')} cannot happen according to the model "
                f"(the first is row {tally.first_impossible}, counted from 0). Smoothing avoids "
                "that."
            )
        if tally.n_empty:
            hold = "holds" if tally.n_empty == 1 else "hold"
            yield (
                f"{count_text(tally.n_empty, 'row')} of {tally.n_rows:,} {hold} no observed cell "
                "at all."
            )
        if tally.n_unknown:
            yield (
                f"{count_text(tally.n_unknown, 'cell')} of a level that the model does not know "
                f"{'counts' if tally.n_unknown == 1 else 'count'} as missing here."
            )
        holes = tally.shares_missing
        absent = [name for name, share in zip(domain.names, holes, strict=True) if share == 1]
        if absent:
            yield f"Nothing is observed of {_names(absent)}."
        shares = [
            f"{_quoted(domain.names[n])} ({holes[n]:.0%})"
            for n in np.argsort(-holes, kind="stable").tolist()
            if MANY_HOLES < holes[n] < 1
        ]
        if shares:
            yield f"More is missing than observed of {_listed(shares)}."
    n_rows = found.n_fitted
    n_free = n_free_parameters(domain, math.ceil(subject.pmf.rank / subject.n_averaged))
    is_held_back = subject.status is Status.VALIDATED  # what is held out keeps it from overfitting
    if n_rows is not None and not is_held_back and n_rows < ROWS_PER_PARAMETER * n_free:
        yield (
            f"There are only {number_text(n_rows / max(n_free, 1), 2)} rows for each of the "
            f"{n_free:,} numbers that were fitted: details of the model may be accidents of this "
            "sample. A smaller rank, or smoothing, is safer; rows held out tell."
        )


def _of_the_model(found: Findings) -> Iterator[str]:
    pmf, n_rows = found.subject.pmf, found.n_fitted
    tiny = TINY if n_rows is None else FEW_ROWS / max(n_rows, 1)
    tiny /= found.subject.n_averaged  # an average has the components of all its fits
    small = [(f, w) for f, w in enumerate(pmf.weights.tolist()) if w < tiny]
    if small and pmf.rank > 1:
        names = [f"component {f} ({percent(weight)})" for f, weight in small]
        rows = f"fewer than {FEW_ROWS} rows each" if n_rows is not None else "hardly any rows"
        yield f"Some components stand for {rows}, too few to tell much: {_listed(names)}."
    impossible = [
        f"{_quoted(variable.name)} = {_quoted(text_of(variable.levels[code]))}"
        for variable, factor in zip(pmf.domain, pmf.factors, strict=True)
        for code in np.flatnonzero(factor @ pmf.weights == 0).tolist()
    ]
    if impossible:
        yield (
            f"The model takes {count_text(len(impossible), 'level')} to be impossible: "
            f"{_listed(impossible)}."
        )
    constant = [variable.name for variable in pmf.domain if variable.size == 1]
    if constant:
        yield f"Always the same, and so of no use to the model: {_names(constant)}."
    misfits = found.comparison.misfits if found.comparison else []
    clear = [misfit for misfit in misfits if misfit.is_clear]
    if clear:
        names = [" with ".join(map(_quoted, misfit.names)) for misfit in clear]
        yield (
            f"{count_text(len(clear), 'marginal')} of {len(misfits):,} compared "
            f"{'is' if len(clear) == 1 else 'are'} not met, by more than chance explains: "
            f"{_listed(names)}. A larger rank may fit better."
        )


def _of_the_curve(found: Findings) -> Iterator[str]:
    curve, rank = found.curve, found.subject.pmf.rank
    if curve is None:
        return
    ranks = [score.rank for score in curve.scores]
    if not curve.has_best:
        yield "No rank that was tried can be told best: all have a score that is not finite."
        return
    if curve.rank == max(ranks) and len(ranks) > 1:
        yield f"The best rank, {curve.rank}, is the largest that was tried: try larger ones."
    is_average = found.subject.n_averaged > 1  # of whose fits the rank is not known here
    if not is_average and rank in ranks and _is_worse(curve, ranks.index(rank)):
        yield f"The model has rank {rank}, but by the rank curve rank {curve.rank} does better."


def _is_worse(curve: RankCurve, position: int) -> bool:
    """Tell whether a rank is worse than the best by more than its standard error, if there is one.

    Examples
    --------
    >>> from jointpmf.judge.rank import RankScore
    >>> scores = tuple(RankScore(k + 1, s, 0.2, s, 5, 0.1) for k, s in enumerate((-3, -2, -2.1)))
    >>> curve = RankCurve("validation", scores, np.zeros((3, 1)))
    >>> _is_worse(curve, 0), _is_worse(curve, 2)
    (True, False)
    """
    best = next(score for score in curve.scores if score.rank == curve.rank)
    error = 0.0 if math.isnan(best.standard_error) else best.standard_error
    return not abs(curve.scores[position].score - best.score) <= error


def _quoted(text: str) -> str:
    return f"“{shortened(text, 40)}”"


def _names(names: Iterable[str]) -> str:
    return _listed([_quoted(name) for name in names])


def _listed(texts: Sequence[str]) -> str:
    rest = len(texts) - LISTED
    return ", ".join(texts[:LISTED]) + (f" and {rest:,} more" if rest > 0 else "")
