"""The range of an answer over the members of an average of fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointpmf.components import means_component
from jointpmf.domain import name_list
from jointpmf.errors import JointPMFError
from jointpmf.fit.members import all_members
from jointpmf.judge.answers import Answer, Query, answer_of, answers_of
from jointpmf.judge.linear_query import Question

if TYPE_CHECKING:
    from jointpmf.domain import Domain
    from jointpmf.fit.solution import Solution
    from jointpmf.pmf import JointPMF


class MemberRange(NamedTuple):
    """The answer of an average, and the lowest and highest of its members, number by number."""

    average: Answer
    lowest: np.ndarray
    highest: np.ndarray


def member_range(
    solution: Solution, query: Any, given: Mapping[str, Any] | None, backend: str
) -> Any:
    """Return an answer of an average with its range over the members, as a frame."""
    if solution.n_averaged == 1:
        raise JointPMFError(
            "this model is a single fit, so there is no range over members; use uncertainty() for "
            "confidence intervals, or jointpmf.bounds() for what the tables leave open"
        )
    function = _function_of(query, given, solution.pmf.domain)
    found = range_over_members(solution.pmf, solution.n_averaged, function)
    columns = {
        "average": found.average.values,
        "lowest": found.lowest,
        "highest": found.highest,
    }
    return found.average.to_frame(columns, backend)


def range_over_members(pmf: JointPMF, n_averaged: int, query: Query) -> MemberRange:
    """Return what an average and its members answer to a function of a JointPMF.

    Examples
    --------
    >>> import jointpmf as jp
    >>> pmfs = [jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, random_state=k) for k in (0, 1)]
    >>> found = range_over_members(jp.average(pmfs), 2, lambda pmf: pmf.marginal(["x0"]))
    >>> bool((found.lowest < found.highest).all())
    True
    """
    members = all_members(pmf, n_averaged)
    average = answer_of(query, pmf, "the average")
    values = answers_of(query, members, "member", average)
    return MemberRange(average, values.min(axis=0), values.max(axis=0))


def distribution(names: Iterable[str], given: Mapping[str, Any] | None, domain: Domain) -> Query:
    """Return the function that gives the distribution of some variables, given the evidence."""
    asked = name_list(names)
    if not asked:
        raise JointPMFError("no variable was asked for")
    _check_no_component([*asked, *(given or {})], domain)
    return lambda pmf: _given(pmf, given).marginal(asked)


def _function_of(query: Any, given: Mapping[str, Any] | None, domain: Domain) -> Query:
    """Return a query in any form as a function of a JointPMF."""
    if given is not None and not isinstance(given, Mapping):
        raise JointPMFError('given must be a mapping, such as {"name": level}')
    if callable(query):
        _check_no_component(given or {}, domain)
        return lambda pmf: query(_given(pmf, given))
    if isinstance(query, (str, Mapping)):
        return _number(Question.of(domain, query, given), given, domain)
    return distribution(query, given, domain)


def _number(question: Question, given: Mapping[str, Any] | None, domain: Domain) -> Query:
    """Return the function that gives a probability or an expected value, labelled in words."""
    evidence = question.given or {}
    asked = {domain.names[n]: row for n, row in question.asked.items() if n not in evidence}

    def number(pmf: JointPMF) -> dict[str, float]:
        pmf = _given(pmf, given)
        parts = [row @ pmf.factors[pmf.domain.index(name)] for name, row in asked.items()]
        return {question.what: float(pmf.weights @ np.prod(parts, axis=0))}

    return number


def _given(pmf: JointPMF, given: Mapping[str, Any] | None) -> JointPMF:
    return pmf.condition(given) if given else pmf


def _check_no_component(names: Iterable[Any], domain: Domain) -> None:
    """Refuse the component, which is another one in each member."""
    if any(means_component(name, domain) for name in names):
        raise JointPMFError(
            "the component has no range over members, because each member of an average has "
            "components of its own; ask for variables"
        )
