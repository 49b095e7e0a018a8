"""Any table → Codes, by a domain that is given or learned from the table itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jointpmf.data.binning import bin_codes, bins_by_name, check_inside
from jointpmf.data.codes import Codes, code_dtype
from jointpmf.data.columns import check_shares, columns_of, plain_time, spread
from jointpmf.data.levels import LevelRules, learned_variable
from jointpmf.domain import MISSING, Domain, check_is_domain
from jointpmf.errors import JointPMFError, listing, shown, whole_number

if TYPE_CHECKING:
    from jointpmf.data.binning import Bins
    from jointpmf.data.columns import Column, Columns
    from jointpmf.domain import Variable

Unknown = Literal["error", "missing"]
"""What to do with a level that a given domain does not have."""


def encode(
    table: Any,
    domain: Domain | None = None,
    *,
    bins: Bins | None = None,
    unknown: Unknown = "error",
    max_levels: int = 100,
    missing_code: int | None = MISSING,
) -> Codes:
    """Return a table's codes, and with them its domain.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array or list of rows, Codes or Ratings
        Every spelling of a missing value becomes MISSING; in arrays of numbers −1 does too.
    domain : Domain, optional
        What can happen. Without one it is learned from the table: levels in their type's own
        order where it has one, sorted otherwise. A column that the domain has and the table
        has not is missing in every row; columns that the domain does not have are left out.
    bins : int, or mapping of name to int or edges, optional
        How to cut continuous columns: into that many parts of about equal count (fewer where
        many cells are equal), or at edges. A single number is for all columns of numbers with
        more than `max_levels` of them.
    unknown : {"error", "missing"}
        What to do with a level that the given domain does not have.
    max_levels : int
        A numeric column with more distinct values must be binned.
    missing_code : int or None
        The number that means missing in arrays; with None only NaN does.

    Examples
    --------
    >>> import polars as pl
    >>> codes = encode(pl.DataFrame({"vote": ["yes", None, "no"]}))
    >>> codes.domain["vote"].levels, codes.array[:, 0].tolist()
    (('no', 'yes'), [1, -1, 0])
    """
    if unknown not in ("error", "missing"):
        raise JointPMFError(f"unknown must be 'error' or 'missing', not {shown(unknown)}")
    if domain is not None:
        check_is_domain(domain)
    if isinstance(getattr(table, "codes", None), Codes):
        table = table.codes  # of Ratings
    if bins is not None and (domain is not None or isinstance(table, Codes)):
        raise JointPMFError("bins belong to the learning of a domain, which is given already")
    if isinstance(table, Codes):
        return table if domain is None else _recode(table, domain)
    n_rows, columns = columns_of(table, domain, missing_code)
    if domain is None:
        return _learn(n_rows, columns, bins, max_levels)
    check_shares(columns, domain)
    coded = {
        variable.name: _encode_column(columns[variable.name](), variable, unknown)
        for variable in domain
        if variable.name in columns
    }
    return _gather(domain, n_rows, coded)


def _recode(codes: Codes, domain: Domain) -> Codes:
    check_shares(codes.domain.names, domain)
    coded = {}
    for variable in domain:
        if variable.name not in codes.domain:
            continue
        if variable != codes.domain[variable.name]:
            raise JointPMFError(
                f"the codes were made for another domain, with other levels of variable "
                f"{variable.name!r}; encode the table itself again"
            )
        coded[variable.name] = codes.array[:, codes.domain.index(variable.name)]
    return _gather(domain, codes.n_rows, coded)


def _learn(n_rows: int, columns: Columns, bins: Bins | None, max_levels: int) -> Codes:
    if not columns or not n_rows:
        raise JointPMFError(LevelRules.empty)
    rules = LevelRules(
        max_numbers=whole_number(max_levels, "max_levels", 0),
        bins=bins_by_name(bins, list(columns)),
        other_bins=int(bins) if isinstance(bins, (int, np.integer)) else None,
    )
    variables, coded = [], {}
    for name, read in columns.items():
        column = read()
        variables.append(learned_variable(column, rules))
        coded[name] = _encode_column(column, variables[-1], "error")
    return _gather(Domain(variables), n_rows, coded)


def _encode_column(column: Column, variable: Variable, unknown: Unknown) -> np.ndarray:
    if variable.edges is not None and (numbers := column.numbers) is not None:
        if unknown == "error":
            check_inside(variable.name, numbers, column.missing, variable.edges)
        return spread(bin_codes(numbers, variable.edges), column.missing)
    code_of: dict[Hashable, int] = {}
    for level in column.distinct:
        try:
            code_of[level] = variable.code(level)
        except JointPMFError:
            if unknown == "error":
                raise JointPMFError(
                    f"column {variable.name!r} holds {shown(level)} in row "
                    f"{column.first_row(level)}, which is not one of its levels "
                    f"{listing(variable.levels)}"
                ) from None
            code_of[level] = MISSING
    return column.codes(code_of)


def _gather(domain: Domain, n_rows: int, coded: Mapping[str, np.ndarray]) -> Codes:
    """Return columns of codes side by side, and MISSING for the variables that have none."""
    array = np.full((n_rows, len(domain)), MISSING, code_dtype(max(domain.sizes, default=1)), "F")
    for name, codes in coded.items():
        array[:, domain.index(name)] = codes
    return Codes(domain, array)


def levels_and_codes(table: Any, names: Sequence[str]) -> list[tuple[list[Any], np.ndarray]]:
    """Return, for each of these columns, its distinct levels in order and every row's code.

    Nothing but None, NaN, NaT and NA is missing, in arrays too. Levels of several types that have
    no order between them are ordered by type, then by their text.

    Examples
    --------
    >>> import polars as pl
    >>> levels_and_codes(pl.DataFrame({"user": ["b", "a", None, "b"]}), ["user"])
    [(['a', 'b'], array([ 1,  0, -1,  1], dtype=int32))]
    """
    columns = columns_of(table, None, None)[1]
    found = []
    for name in names:
        if name not in columns:
            raise JointPMFError(
                f"the table has no column {shown(name)}; its columns are {listing(columns)}"
            )
        column = columns[name]()
        levels = column.distinct
        try:
            levels = sorted(levels)
        except TypeError:
            levels = sorted(levels, key=lambda level: (type(level).__name__, str(level)))
        codes = column.codes({level: code for code, level in enumerate(levels)})
        found.append((list(map(plain_time, levels)), codes))
    return found
