"""Published tables, as files of counts or probabilities → a `MarginalSet`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from jointpmf.data.table_files import open_table
from jointpmf.data.texts import as_numbers, level_for, typed_texts
from jointpmf.domain import Domain, Variable
from jointpmf.errors import JointPMFError, shown
from jointpmf.marginals.marginal import Marginal, is_one
from jointpmf.marginals.marginal_set import MarginalSet


def read_marginals(paths: Sequence[str], missing: Iterable[str] = ()) -> MarginalSet:
    """Return the marginals in long tables: a column per variable, and a count or probability.

    Levels are the union of all tables': numbers in their order, texts in that of their appearance.
    Cells that a table does not list are zero.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = {"sex": ["f", "m"], "vote": ["no", "yes"], "count": [3, 1]}
    ...     _ = pl.DataFrame(rows).write_csv(f"{folder}/t.csv")
    ...     read_marginals([f"{folder}/t.csv"])[0].table.tolist()
    [[0.75, 0.0], [0.0, 0.25]]
    """
    tables = [_long_table(path, tuple(missing)) for path in paths]
    texts: dict[str, list[str]] = {}
    for table in tables:
        for column in table.get_columns()[:-1]:
            texts[column.name] = [*texts.get(column.name, []), *column]
    domain = Domain([_listed_variable(name, cells) for name, cells in texts.items()])
    marginals = [_marginal(path, table, domain) for path, table in zip(paths, tables, strict=True)]
    return MarginalSet(domain, marginals)


def _long_table(path: str, missing: tuple[str, ...]) -> pl.DataFrame:
    with open_table(path, missing) as file:
        measure = file.columns[-1]
        if measure not in ("count", "probability") or len(file.columns) < 2:
            raise JointPMFError(
                f"{file.name} must have a column per variable and a last column "
                f"'count' or 'probability', not {shown(measure)}"
            )
        batches = [batch.cast(pl.String) for batch in file.batches()]
    table = pl.concat(batches) if batches else pl.DataFrame()
    if not len(table):
        raise JointPMFError(f"{path} has no rows")
    for column in table:
        if column.null_count():
            row = int(column.is_null().arg_true()[0])
            raise JointPMFError(f"{path} has no {column.name!r} in row {row}")
    numbers = as_numbers(table[measure])
    if not numbers.dtype.is_numeric():
        raise JointPMFError(f"the column {measure!r} of {path} does not hold numbers only")
    return table.with_columns(numbers)


def _listed_variable(name: str, texts: list[str]) -> Variable:
    texts = list(dict.fromkeys(texts))
    levels = typed_texts(texts)
    return Variable(name, levels if levels == texts else sorted(levels))


def _marginal(path: str, long: pl.DataFrame, domain: Domain) -> Marginal:
    names, measure = long.columns[:-1], long.columns[-1]
    place = tuple(_positions(long[name], domain[name]) for name in names)
    numbers = long[measure].to_numpy()
    table = np.zeros([domain[name].size for name in names])
    if len(set(zip(*map(np.ndarray.tolist, place), strict=True))) < len(numbers):
        raise JointPMFError(f"{path} lists a cell twice")
    table[place] = numbers
    total = float(table.sum())
    if measure == "probability" and total > 0 and not is_one(total):
        raise JointPMFError(f"the probabilities in {path} sum to {total:g}, not to one")
    if measure == "probability" or not total > 0:
        return Marginal(names, table)
    return Marginal(names, table / total, n_obs=total)


def _positions(column: pl.Series, variable: Variable) -> np.ndarray:
    code_of = {text: variable.code(level_for(text, variable)) for text in column.unique()}
    return np.array([code_of[text] for text in column], np.int64)
