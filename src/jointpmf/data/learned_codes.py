"""The levels of a table file and the codes of its rows, in one reading of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf.data.binning import bin_codes, check_inside
from jointpmf.data.code_file import CodeFile
from jointpmf.data.codes import Codes
from jointpmf.data.given_scales import Scales
from jointpmf.data.levels import LevelCollector, LevelRules
from jointpmf.data.numbered_texts import cleaned_batches, numbered_texts
from jointpmf.data.own_codes import recoded
from jointpmf.data.texts import as_numbers, codes_of_cells, typed_texts
from jointpmf.data.weight_column import WeightColumn

if TYPE_CHECKING:
    import polars as pl

    from jointpmf.data.binning import Cut
    from jointpmf.data.given_scales import Levels
    from jointpmf.data.table_files import TableFile
    from jointpmf.domain import Domain, Variable


class LearnedCodes:
    """The rows of a file whose levels were not known: what was found in one reading.

    While it is read, levels are numbered as they come; at the end their order is known, and each
    code is looked up once more. Until then the codes are in a temporary file, small ones in memory.

    Parameters
    ----------
    table : TableFile
        What to read.
    names : sequence of str
        The columns that are variables.
    weights : str, optional
        The column that says what each row counts for.
    bins, levels, missing_code
        How columns are read, as in `encode`.
    max_binned : int
        Numbers by which a column is cut: of more of them, evenly spaced ones.
    """

    def __init__(
        self,
        table: TableFile,
        names: Sequence[str],
        bins: Mapping[str, Cut],
        levels: Levels | None = None,
        missing_code: Any = None,
        weights: str | None = None,
        max_binned: int = 2**22,
    ) -> None:
        scales = Scales.of(levels)
        scales.check_names(names)
        collector = LevelCollector(_rules(table, bins, missing_code, max_binned))
        column = None if weights is None else WeightColumn(weights, table.columns, names)
        others = [] if column is None else [column.name]
        self._names, self._file = list(names), CodeFile()
        uncut = [name for name in names if name not in bins]
        self._texts = numbered_texts(table, uncut, missing_code)
        for batch in cleaned_batches(table, names, missing_code, self._texts, others):
            cut = batch.with_columns(as_numbers(batch[name]) for name in names if name in bins)
            found = self._coded(cut, collector) if len(batch) else []
            self._file.write([*found, *([] if column is None else [column.weights(batch)])])
            self._check_texts(collector)
        self.domain = self._learned_domain(collector, scales)
        if column is not None:
            column.finish()
        self._new = [self._new_codes(one, collector) for one in self.domain]

    def _coded(self, batch: pl.DataFrame, collector: LevelCollector) -> list[np.ndarray]:
        """Return the codes of columns by the order levels came in, and numbers that will be cut."""
        typed = [name for name in self._names if name not in self._texts]
        found = dict(zip(typed, collector.add_coded(batch, typed), strict=True)) if typed else {}
        found |= {name: texts.codes(batch[name]) for name, texts in self._texts.items()}
        return [found[name] for name in self._names]

    def _check_texts(self, collector: LevelCollector) -> None:
        """Raise if a column has too many texts; what was read ahead of the rows does not count."""
        most = collector.rules.max_levels
        for name, numbered in self._texts.items():
            if most is not None and len(numbered.texts) > most:
                codes = self._file.distinct(self._names.index(name))
                collector.add_texts(name, [numbered.texts[code] for code in codes], 0)

    def _learned_domain(self, collector: LevelCollector, scales: Scales) -> Domain:
        for name, numbered in self._texts.items() if self._file.n_batches else ():
            collector.add_texts(name, numbered.texts, numbered.n_observed)
        return collector.domain(scales, self._names)

    def _new_codes(self, variable: Variable, collector: LevelCollector) -> list[int]:
        """Return the codes of what was numbered as it came."""
        numbered = self._texts.get(variable.name)
        found = collector.first_levels(variable.name) if numbered is None else numbered.texts
        return codes_of_cells(found, variable)

    def batches(self) -> Iterator[tuple[Codes, np.ndarray | None]]:
        """Yield the codes of the rows, some at a time, and what each row counts for."""
        n_rows, n = 0, len(self.domain)
        for columns in self._file.read():
            pairs = zip(self.domain, columns[:n], self._new, strict=True)
            coded = [_final_codes(*pair, n_rows) for pair in pairs]
            codes = Codes.of_columns(self.domain, len(columns[0]), coded)
            n_rows += codes.n_rows
            yield codes, columns[n] if len(columns) > n else None


def _final_codes(
    variable: Variable, found: np.ndarray, new: Sequence[int], first_row: int
) -> np.ndarray:
    if variable.edges is None:
        return recoded(found, new)
    missing, edges, time = np.isnan(found), variable.edges, variable.time
    check_inside(variable.name, found[~missing], missing, edges, time, first_row)
    return bin_codes(found, edges)


def _rules(
    table: TableFile, bins: Mapping[str, Cut], missing_code: Any, max_binned: int
) -> LevelRules:
    return LevelRules(
        max_levels=100_000,
        may_be_unique=False,
        typed=typed_texts if table.is_text else None,
        missing_code=missing_code,
        bins=bins,
        max_binned=max_binned,
        too_many_numbers=(
            "column {name!r} has more than {max_numbers} different {what}: cut it "
            'with bins (--bins "{name}=8"), or leave it out with drop (--drop "{name}")'
        ),
        too_many_levels=(
            "column {name!r} has {count} different texts, too many to learn from: "
            'leave it out with drop (--drop "{name}")'
        ),
        no_cell="column {name!r} has no observed cell; leave it out with drop (--drop)",
        empty=f"{table.name} has no rows",
    )
