"""The levels of the columns of a table file, found in one pass over its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jointpmf.data.levels import LevelCollector, LevelRules
from jointpmf.data.texts import as_numbers, typed_texts

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile
    from jointpmf.domain import Domain


def learned_domain(
    table: TableFile,
    names: Sequence[str],
    bins: Mapping[str, int | Sequence[float]],
    max_binned: int = 2**22,
) -> Domain:
    """Return the domain of some columns of a file.

    Parameters
    ----------
    table : TableFile
        The file.
    names : sequence of str
        Which columns.
    bins : mapping of name to int or edges
        How to cut columns of numbers.
    max_binned : int
        By how many numbers, at most, a column is cut: of more, by evenly spaced ones.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from jointpmf.data.table_files import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.DataFrame({"a": [1, 2], "b": ["x", None]}).write_csv(f"{folder}/t.csv")
    ...     with open_table(f"{folder}/t.csv") as table:
    ...         [variable.levels for variable in learned_domain(table, ["a", "b"], {})]
    [(1, 2), ('x',)]
    """
    collector = LevelCollector(
        LevelRules(
            max_levels=100_000,
            may_be_unique=False,
            typed=typed_texts if table.is_text else None,
            bins=bins,
            max_binned=max_binned,
            too_many_numbers=(
                "column {name!r} has more than {max_numbers} different numbers: cut it "
                'with bins (--bins "{name}=8"), or leave it out with drop (--drop "{name}")'
            ),
            too_many_levels=(
                "column {name!r} has {count} different texts, too many to learn from: "
                'leave it out with drop (--drop "{name}")'
            ),
            no_cell="column {name!r} has no observed cell; leave it out with drop (--drop)",
            empty=f"{table.name} has no rows",
        )
    )
    for batch in table.batches(names):
        collector.add(batch.with_columns(as_numbers(batch[name]) for name in names if name in bins))
    return collector.domain()
