"""The one exception that bad input raises."""


class JointPMFError(ValueError):
    """Bad input, said in one sentence that names the variable, the level or the row.

    Examples
    --------
    >>> import jointpmf as jp
    >>> jp.Domain.of_sizes([2, 3]).index("colour")
    Traceback (most recent call last):
    jointpmf.errors.JointPMFError: there is no variable 'colour'; the variables are 'x0', 'x1'
    """


def listing(items: object, limit: int = 8) -> str:
    """Return items as a readable list, cut after `limit` of them."""
    shown = [repr(item) for item in items]  # type: ignore[attr-defined]
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {rest} more" if rest > 0 else "")
