"""The one exception that bad input raises, and the checks that every layer makes.

Every public module imports this one, so that what is logged is not printed.
"""

from __future__ import annotations

import logging
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

logging.getLogger("jointpmf").addHandler(logging.NullHandler())

_LONGEST = 399
"""Characters of a sentence; a longer one would not be read, and could fill a screen."""

_MOST_BYTES = 2**36
"""Memory beyond which nothing is begun on any machine: it would take hours, and then fail."""

_LARGEST = 1e100
"""A number beyond it is no setting: squares and products would overflow."""

_ON_LINE: dict[int, int] = {
    **{code: 0x2400 + code for code in range(0x20)},  # Unicode's pictures of these characters
    **dict.fromkeys((*range(0x7F, 0xA0), *range(0xD800, 0xE000)), 0xFFFD),
    **dict.fromkeys((0x061C, 0x200E, 0x200F), 0xFFFD),
    **dict.fromkeys((*range(0x2028, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
"""What is printed instead of controls, halves of characters and marks that turn the direction."""


def on_line(text: str) -> str:
    r"""Return a text as it can be printed: no character of it moves a cursor or turns a line.

    Examples
    --------
    >>> on_line("red \x1b[31m")
    'red ␛[31m'
    """
    return text.translate(_ON_LINE)


def on_lines(text: str) -> str:
    """Return a text as it can be printed, on as many lines as it has."""
    return "\n".join(map(on_line, text.split("\n")))


def sentence(text: str) -> str:
    """Return a text on one line of fewer than 400 characters; of a longer one, both ends.

    Examples
    --------
    >>> len(sentence("there is no variable " + "a" * 1000 + "; the variables are b and c"))
    399
    """
    line = on_line(" ".join(text.split("\n")))
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]}…{line[-half:]}"


class JointPMFError(ValueError):
    """Bad input, said in one sentence that names the variable, the level or the row.

    The sentence is on one line and has fewer than 400 characters, whatever the names are.

    Examples
    --------
    >>> import jointpmf as jp
    >>> jp.Domain.of_sizes([2, 3]).index("colour")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: there is no variable 'colour'; the variables are 'x0', 'x1'
    """

    def __init__(self, text: object = "") -> None:
        super().__init__(sentence(str(text)))


class CheckpointError(JointPMFError):
    """A checkpoint that cannot be read or written, for which no other start can make up."""


def listing(
    items: Iterable[Any],
    limit: int = 8,
    width: int = 160,
    show: Callable[[Any], str] | None = None,
) -> str:
    """Return items as a readable list, cut after `limit` of them or before `width` characters.

    Examples
    --------
    >>> listing(["a", "b" * 200, "c"], width=60)
    "'a' and 2 more"
    """
    items = list(items)
    texts = list(map(show or shown, items[:limit]))
    ends = list(accumulate(len(text) + 2 for text in texts))
    kept = max(sum(end <= width for end in ends), 1)
    rest = len(items) - kept
    return ", ".join(texts[:kept]) + (f" and {rest} more" if rest > 0 else "")


def shown(item: object, width: int = 80) -> str:
    """Return how an object looks, on one line of at most `width` characters.

    Examples
    --------
    >>> shown("a" * 100, width=12)
    "'aaaaaaaaaa…"
    """
    try:
        whole = repr(item)
    except Exception:  # Python writes no number of more than 4,300 digits, and others may fail too
        whole = f"<{type(item).__name__}>"
    line = " ".join(part.strip() for part in whole.splitlines())
    return line if len(line) <= width else line[: width - 1] + "…"


def instance_of(given: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """Return an object of a class, or of one of several, or raise naming what it should have been.

    Examples
    --------
    >>> instance_of(3, (str, bytes), "a note")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: a note must be a str or a bytes, not 3
    """
    if not isinstance(given, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(f"a {one.__name__}" for one in kinds)
        raise JointPMFError(f"{what} must be {names}, not {shown(given)}")
    return given


def checked_text(given: Any, what: str) -> str:
    """Return a text, or raise naming what it should have been."""
    if not isinstance(given, str):
        raise JointPMFError(f"{what} must be a text, not {shown(given)}")
    return given


def is_unicode(text: str) -> bool:
    r"""Tell whether a text has whole characters only: no file or table can hold half of one.

    Examples
    --------
    >>> is_unicode("naïve"), is_unicode("\ud800")
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def true_or_false(given: Any, what: str) -> bool:
    """Return whether something is wanted; a whole number says so too, as in `verbose=1`."""
    import numpy as np  # later, so that help is quick

    if not isinstance(given, (int, np.integer, np.bool_)):
        raise JointPMFError(f"{what} must be True or False, not {shown(given)}")
    return bool(given)


def items_of(given: Any, otherwise: str) -> list[Any]:
    """Return what there is in a list, or in what else has items, or raise; no text is a list.

    Examples
    --------
    >>> items_of(3, "give a list of names")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: give a list of names, not 3
    """
    try:
        if not isinstance(given, (str, bytes)):
            return list(given)
    except TypeError:  # also of what looks like a list, such as an array without an axis
        pass
    raise JointPMFError(f"{otherwise}, not {shown(given)}")


def is_hashable(given: Any) -> bool:
    """Tell whether an object can be looked up; some of hashable types, such as sNaN, cannot.

    Examples
    --------
    >>> is_hashable("x"), is_hashable([])
    (True, False)
    """
    try:
        hash(given)
    except TypeError:
        return False
    return True


def mapping(given: Any, what: str) -> Mapping[Any, Any]:
    """Return a mapping, or raise naming what it should have been."""
    if not isinstance(given, Mapping):
        raise JointPMFError(f"{what} must be a mapping, not {shown(given)}")
    return given


def float_of(number: Any) -> float:
    """Return a number as a float, NaN for whatever is none or does not fit.

    Examples
    --------
    >>> float_of(2), float_of("2"), float_of(True), float_of(10**400)
    (2.0, nan, nan, nan)
    """
    if isinstance(number, bool) or not isinstance(number, Real):
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.nan


def float_array(numbers: Any, otherwise: str) -> np.ndarray:
    """Return numbers as an array of floats, or raise with a sentence; what is masked is NaN.

    Examples
    --------
    >>> float_array([1, 2j], "the costs are not numbers")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: the costs are not numbers
    """
    import numpy as np  # later, so that help is quick

    try:
        array = np.asanyarray(numbers)
        if array.dtype.kind not in "biufOSU":  # no complex numbers, times or records
            raise TypeError(array.dtype)
        if isinstance(array, np.ma.MaskedArray):
            array = np.ma.filled(array.astype(np.float64), np.nan)
        return np.asarray(array, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise JointPMFError(otherwise) from None


def whole_number(number: Any, what: str, least: int, most: float = math.inf) -> int:
    """Return a whole number of any integer type, or raise naming what it should have been."""
    try:
        whole = operator.index(number)
    except TypeError:
        whole = least - 1
    if isinstance(number, bool) or not least <= whole <= most:
        limit = f"at most {most:,}" if whole > most else f"at least {least}"
        raise JointPMFError(f"{what} must be a whole number of {limit}, not {shown(number)}")
    return whole


def repeats(number: Any, what: str, least: int = 1) -> int:
    """Return how often something is done, or raise if no one would live to see the end of it."""
    return whole_number(number, what, least, most=10**6)


def whole_rank(rank: Any, n_levels: int = 1) -> int:
    """Return a rank that is a whole number, or raise if no machine could hold such a model."""
    rank = whole_number(rank, "the rank", 1)
    check_size(8 * rank * n_levels, f"a model of rank {text_of_count(rank)}")
    return rank


def check_size(n_bytes: int, what: str) -> None:
    """Raise now, rather than after minutes, if something would take more memory than there is.

    Examples
    --------
    >>> check_size(10**15, "10^15 rows")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: 10^15 rows would take 909 TiB, more memory than there is
    """
    try:
        limit = min(_MOST_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # a system that does not say
        limit = _MOST_BYTES
    if n_bytes > limit:
        raise JointPMFError(f"{what} would take {text_of_size(n_bytes)}, more memory than there is")


def text_of_size(n_bytes: int) -> str:
    """Return an amount of memory as people write it.

    Examples
    --------
    >>> text_of_size(1536), text_of_size(10**40)
    ('1.5 KiB', '10^40 bytes')
    """
    if n_bytes >= 2**60:
        return f"{text_of_count(n_bytes)} bytes"
    power = max(n_bytes.bit_length() - 1, 0) // 10
    return f"{n_bytes / 1024**power:.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"


def text_of_count(count: int) -> str:
    """Return a number as people write it; of one that is very large, how large it is.

    Examples
    --------
    >>> text_of_count(20_000), text_of_count(10**18)
    ('20,000', '10^18')
    """
    return f"{count:,}" if count < 10**15 else f"10^{math.log10(count):.0f}"


def one_of(given: Any, allowed: tuple[str, ...], what: str) -> str:
    """Return a word that is one of those allowed, or raise naming what it should have been."""
    if not isinstance(given, str) or given not in allowed:
        words = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise JointPMFError(f"{what} must be {words}, not {shown(given)}")
    return given


def at_least_zero(number: Any, what: str) -> float:
    """Return a number that is not negative, or raise naming what it should have been."""
    value = float_of(number)
    if not 0 <= value <= _LARGEST:
        raise JointPMFError(f"{what} must be a number of at least 0, not {shown(number)}")
    return value


def fraction(number: Any, what: str) -> float:
    """Return a number from 0 to 1, or raise naming what it should have been."""
    value = float_of(number)
    if not 0 <= value <= 1:
        raise JointPMFError(f"{what} must be a number from 0 to 1, not {shown(number)}")
    return value


def checked_level(level: Any) -> float:
    """Return how often intervals hold the truth, between 0 and 1, both excluded.

    Examples
    --------
    >>> checked_level(0.9)
    0.9
    """
    value = float_of(level)
    if not 0 < value < 1:
        raise JointPMFError(f"the level must be between 0 and 1, such as 0.9, not {shown(level)}")
    return value


def rectangle(rows: Any, what: str, dtype: Any = None) -> np.ndarray:
    """Return rows as an array, or raise if they do not all have the same length."""
    import numpy as np  # later, so that help is quick

    try:
        array = np.asarray(rows, dtype)
        may_hold_rows = array.ndim == 1 and array.dtype == object
        ragged = may_hold_rows and any(isinstance(row, (list, tuple, np.ndarray)) for row in array)
    except ValueError:
        ragged = True
    if ragged:
        raise JointPMFError(f"the rows of the {what} do not all have the same length")
    return array


def seeded_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a seed, a generator or None stands for."""
    import numpy as np  # later, so that help is quick

    if _is_seed(random_state):
        return np.random.default_rng(random_state)
    raise JointPMFError(
        f"random_state must be a whole number or a numpy Generator, not {shown(random_state)}"
    )


def _is_seed(given: Any) -> bool:
    """Tell whether numpy takes a seed; what it does not take may end the process."""
    import numpy as np  # later, so that help is quick

    random = np.random
    kinds = random.Generator, random.BitGenerator, random.SeedSequence, random.RandomState
    if given is None or isinstance(given, kinds):
        return True
    numbers = list(given) if isinstance(given, (list, tuple)) else [given]
    if isinstance(given, np.ndarray) and given.ndim == 1:
        numbers = given.tolist()
    whole = (int, np.integer)
    return all(
        isinstance(number, whole) and not isinstance(number, bool) and number >= 0
        for number in numbers
    )
