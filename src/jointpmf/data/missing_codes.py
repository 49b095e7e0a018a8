"""What means missing because the user says so: a number or a text, besides None and NaN."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from jointpmf.domain import Domain, is_missing, number_in
from jointpmf.errors import JointPMFError, float_of, shown


def check_missing_code(missing_code: Any, domain: Domain | None) -> None:
    """Raise if something cannot mean missing: what is no number or text, or a level of a domain."""
    if missing_code is None or is_missing(missing_code):
        return
    if not isinstance(missing_code, str) and np.isnan(float_of(missing_code)):
        raise JointPMFError(f"missing_code must be a number or a text, not {shown(missing_code)}")
    for variable in domain or ():
        if any(is_same(level, missing_code) for level in variable.levels):
            raise JointPMFError(
                f"missing_code is {shown(missing_code)}, which is a level of variable "
                f"{variable.name!r}: it cannot mean missing too"
            )


def is_same(level: Any, missing_code: Any) -> bool:
    """Tell whether a level is the one that means missing; a boolean is no number."""
    kind: Any = str if isinstance(missing_code, str) else (Real, Decimal)
    return isinstance(level, kind) and not isinstance(level, bool) and level == missing_code


def names_number(level: Any, missing_code: Any) -> bool:
    """Tell whether a level is the text of the number that means missing, as in a text file.

    Examples
    --------
    >>> names_number(" 99.0", 99), names_number("99", "99"), names_number(99, 99)
    (True, False, False)
    """
    if not isinstance(level, str) or isinstance(missing_code, str) or "_" in level:
        return False
    return number_in(level) == missing_code
