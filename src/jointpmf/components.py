"""The components of a model: what they are called, their order, and the component as a variable."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.domain import Variable, check_distinct
from jointpmf.errors import JointPMFError, items_of, shown

if TYPE_CHECKING:
    from jointpmf.domain import Domain

COMPONENT = "component"
"""The name by which the component is given and asked for, unless a variable has it."""


def checked_names(names: Any, rank: int) -> tuple[str, ...] | None:
    """Return the names of components: none at all, or a text for each, all different.

    Examples
    --------
    >>> checked_names(["young", "old"], rank=2)
    ('young', 'old')
    """
    if names is None:
        return None
    found = tuple(items_of(names, "give a list of names, one per component"))
    if len(found) != rank:
        raise JointPMFError(
            f"the names must be one for each of {rank} components, not {shown(found)}"
        )
    for name in found:
        if not isinstance(name, str) or not name.strip():
            raise JointPMFError(f"a component's name must be a text, not {shown(name)}")
    check_distinct(found, "the list of components")
    return found


def checked_order(order: Any, weights: np.ndarray) -> np.ndarray:
    """Return the components in the order asked: by decreasing weight, or as they are listed.

    Examples
    --------
    >>> checked_order("size", np.array([0.2, 0.3, 0.3, 0.2])).tolist()
    [1, 2, 0, 3]
    """
    if isinstance(order, str) and order == "size":
        return np.argsort(-weights, kind="stable")
    what = f"order must be 'size', or the components 0 to {len(weights) - 1}, each once"
    listed = items_of(order, what)
    if not all(map(_is_whole, listed)) or sorted(listed) != list(range(len(weights))):
        raise JointPMFError(f"{what}, not {shown(order)}")
    return np.array(listed, np.int64)


def component_variable(rank: int, names: Sequence[str] | None) -> Variable:
    """Return the component as a variable; its levels are the components' names, or numbers.

    Examples
    --------
    >>> component_variable(3, None).levels
    (0, 1, 2)
    """
    return Variable(COMPONENT, range(rank) if names is None else names)


def component_titles(rank: int, names: Sequence[str] | None) -> list[str]:
    """Return what components are called where nothing else says that they are components.

    Examples
    --------
    >>> component_titles(2, None), component_titles(2, ("young", "old"))
    (['component 0', 'component 1'], ['young', 'old'])
    """
    return [f"{COMPONENT} {f}" for f in range(rank)] if names is None else list(names)


def means_component(name: Any, domain: Domain) -> bool:
    """Tell whether a name stands for the component rather than for a variable of the domain.

    Examples
    --------
    >>> from jointpmf import Domain
    >>> means_component("component", Domain.of_sizes([2], names=["vote"]))
    True
    >>> means_component("component", Domain.of_sizes([2], names=["component"]))
    False
    """
    return isinstance(name, str) and name == COMPONENT and COMPONENT not in domain


def of_own_variable(error: JointPMFError) -> JointPMFError:
    """Return an error on evidence that also says that a variable takes the component's name."""
    return JointPMFError(
        f"{error}; this model has a variable {COMPONENT!r}, so that name does not mean the "
        "component (latent class)"
    )


def by_name(given: Any, names: Sequence[str] | None) -> Any:
    """Return evidence on the component in which numbers stand for names, if there are names.

    Examples
    --------
    >>> by_name({0}, ("young", "old")), by_name("old", ("young", "old")), by_name(1, None)
    (['young'], 'old', 1)
    """
    if names is None or isinstance(given, np.ndarray):
        return given
    if isinstance(given, (set, frozenset, list, tuple)):
        return [by_name(one, names) for one in given]
    is_number = _is_whole(given) and 0 <= given < len(names)
    return names[int(given)] if is_number else given


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)
