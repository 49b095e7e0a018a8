"""Any table → Codes, by a domain that is given or learned from the table itself."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jointpmf.data.binning import bin_codes, bins_by_name, check_inside
from jointpmf.data.codes import Codes
from jointpmf.data.columns import check_shares, columns_of, columns_ready, spread
from jointpmf.data.given_scales import Scales
from jointpmf.data.levels import LevelRules, learned_variable
from jointpmf.domain import MISSING, Domain, checked_domain
from jointpmf.errors import JointPMFError, listing, one_of, shown, whole_number
from jointpmf.times import are_comparable, are_numeric

if TYPE_CHECKING:
    from jointpmf.data.binning import Bins
    from jointpmf.data.columns import Column, Columns
    from jointpmf.data.given_scales import Levels
    from jointpmf.domain import Variable

logger = logging.getLogger("jointpmf")

_MANY_UNKNOWN = 20
"""Observed cells of a column, none of them known, that are no accident, whatever their type."""

Unknown = Literal["error", "missing"]
"""What to do with a level that a given domain does not have."""


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read: keywords of `encode` that several functions pass on."""

    domain: Domain | None = None
    bins: Any = None
    levels: Any = None
    missing_code: Any = None

    def __post_init__(self) -> None:
        if self.domain is not None:
            checked_domain(self.domain)
            _refuse_learning(self.bins, self.levels)


def _refuse_learning(bins: Any, levels: Any) -> None:
    for what, given in {"bins": bins, "levels": levels}.items():
        if given is not None:
            raise JointPMFError(
                f"{what} belong to the learning of a domain, which is given already"
            )


def encode(
    table: Any,
    domain: Domain | None = None,
    *,
    bins: Bins | None = None,
    levels: Levels | None = None,
    unknown: Unknown = "error",
    max_levels: int = 100,
    missing_code: Any = None,
) -> Codes:
    """Return a table's codes, and with them its domain.

    Parameters
    ----------
    table : pandas, Polars or PyArrow table, array or list of rows, Codes or Ratings
        Every spelling of a missing value becomes MISSING: None, NaN, NaT, NA.
    domain : Domain, optional
        What can happen. Without one it is learned from the table: levels in their type's own
        order where it has one, sorted otherwise; bands of numbers such as "18-29" and "65+" are
        sorted by their numbers (which is logged). A column that the domain has and the table has
        not is missing in every row; columns that the domain does not have are left out.
    bins : int, or mapping of name to int or edges, optional
        How to cut continuous columns, of numbers or times: into that many parts of about equal
        count (fewer where many cells are equal), or at edges; those of times may be texts such as
        "2020-01-31". A single number is for all columns with more than `max_levels` of them.
    levels : list, list of lists, or mapping of name to list, optional
        Levels in their order. A list is the scale of every column of text that has a level in
        common with it, and must have all levels of such a column; levels that nobody chose are
        levels too. A mapping gives columns a scale of their own, which may be of numbers.
    unknown : {"error", "missing"}
        What to do with a level that the given domain does not have. A column of which no cell is
        known is logged as a warning.
    max_levels : int
        A column of numbers or times with more distinct ones must be binned.
    missing_code : number or text, optional
        What means missing besides; a number also where a column of a frame holds it as text. By
        default nothing does, except that in arrays −1 does where the variable of a given domain has
        neither such a level nor a bin for it; NaN says that −1 does not even then.

    Examples
    --------
    >>> import polars as pl
    >>> codes = encode(pl.DataFrame({"vote": ["yes", None, "no"]}))
    >>> codes.domain["vote"].levels, codes.array[:, 0].tolist()
    (('no', 'yes'), [1, -1, 0])
    >>> encode([["hot"], ["cold"]], levels=["cold", "mild", "hot"]).domain["x0"].levels
    ('cold', 'mild', 'hot')
    """
    one_of(unknown, ("error", "missing"), "unknown")
    if domain is not None:
        checked_domain(domain)
    if isinstance(getattr(table, "codes", None), Codes):
        table = table.codes  # of Ratings
    if domain is not None or isinstance(table, Codes):
        _refuse_learning(bins, levels)
    if isinstance(table, Codes):
        return table if domain is None else _recode(table, domain)
    if domain is None:
        n_rows, columns = columns_of(table, None, missing_code)
        rules = _rules(columns, bins, max_levels, missing_code)
        return _learn(n_rows, columns, rules, Scales.of(levels))
    codes, doubts = codes_and_doubts(table, domain, unknown, missing_code)
    for doubt in doubts:
        logger.warning(doubt)
    return codes


def codes_and_doubts(
    table: Any, domain: Domain, unknown: Unknown = "missing", missing_code: Any = None
) -> tuple[Codes, list[str]]:
    """Return a table's codes over a domain, and what is strange about columns, in sentences.

    Examples
    --------
    >>> print(*codes_and_doubts([["0"], ["1"]], Domain.of_sizes([2]))[1])
    no cell of column 'x0' is a level that is known: its levels are numbers, the column holds text
    """
    n_rows, columns = columns_of(table, domain, missing_code)
    check_shares(columns, domain)
    known = {name: columns[name] for name in domain.names if name in columns}
    coded: dict[str, np.ndarray] = {}
    doubts = []
    for column in columns_ready(known):
        variable = domain[column.name]
        codes = coded[column.name] = _encode_column(column, variable, unknown)
        if column.n_observed and (codes == MISSING).all():
            doubts += doubts_of(variable, column.distinct, column.n_observed)
    return _gather(domain, n_rows, coded), doubts


def doubts_of(variable: Variable, cells: Sequence[Any], n_observed: int) -> list[str]:
    """Return a sentence on a column none of whose cells is known, or none if it may be by chance.

    Different types are no chance; other levels than the known ones are, in a few cells.
    """
    known, found = _kind_of(variable.levels), _kind_of(cells)
    known = "numbers" if variable.edges is not None and variable.time is None else known
    if known == found and n_observed < _MANY_UNKNOWN:
        return []
    why = f"its levels are {known}, the column holds {found}"
    if known == found:
        why = f"its levels are {listing(variable.levels)}, the column holds {listing(cells)}"
    return [f"no cell of column {variable.name!r} is a level that is known: {why}"]


def _kind_of(cells: Sequence[Any]) -> str:
    kinds = set(map(type, cells))
    if kinds <= {str}:
        return "text"
    return "booleans" if kinds == {bool} else "numbers" if are_numeric(kinds) else "other objects"


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


def _rules(columns: Columns, bins: Bins | None, max_levels: int, missing_code: Any) -> LevelRules:
    return LevelRules(
        max_numbers=whole_number(max_levels, "max_levels", 0),
        missing_code=missing_code,
        bins=bins_by_name(bins, list(columns)),
        other_bins=int(bins) if isinstance(bins, (int, np.integer)) else None,
    )


def _learn(n_rows: int, columns: Columns, rules: LevelRules, scales: Scales) -> Codes:
    if not columns or not n_rows:
        raise JointPMFError(LevelRules.empty)
    scales.check_names(list(columns))
    variables, coded = [], []
    for column in columns_ready(columns):
        variables.append(learned_variable(column, rules, scales))
        coded.append(_encode_column(column, variables[-1], "error"))
    scales.check_used(variables)
    return Codes.of_columns(Domain(variables), n_rows, coded)


def _encode_column(column: Column, variable: Variable, unknown: Unknown) -> np.ndarray:
    numbers = None
    if variable.edges is not None and are_comparable(column.time, variable.time):
        numbers = column.numbers
    if variable.edges is not None and numbers is not None:
        if unknown == "error":
            edges, time = variable.edges, variable.time
            check_inside(variable.name, numbers, column.missing, edges, time)
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
    return Codes.of_columns(domain, n_rows, (coded.get(name, MISSING) for name in domain.names))


def levels_and_codes(table: Any, names: Sequence[str]) -> list[tuple[list[Any], np.ndarray]]:
    """Return, for each of these columns, its distinct levels in order and every row's code.

    Nothing but None, NaN, NaT and NA is missing. Levels of several types that have no order between
    them are ordered by type, then by their text.

    Examples
    --------
    >>> import polars as pl
    >>> [(levels, codes)] = levels_and_codes(pl.DataFrame({"user": ["b", "a", None]}), ["user"])
    >>> levels, codes.tolist()
    (['a', 'b'], [1, 0, -1])
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
        found.append((levels, codes))
    return found
