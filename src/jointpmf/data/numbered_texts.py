"""The texts in a column of a file, which Polars numbers while it reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from jointpmf.data.codes import code_dtype
from jointpmf.domain import MISSING, is_missing, text_of

if TYPE_CHECKING:
    from jointpmf.data.table_files import TableFile


class NumberedTexts:
    """What the numbers of one column mean, as far as it has been read.

    Threads that read ahead number texts too, in no certain order, so that a number says nothing
    but which text it is.

    Parameters
    ----------
    missing : collection of str
        Texts that mean missing.
    missing_code : optional
        What else means missing, as in `encode`.

    Examples
    --------
    >>> numbered = NumberedTexts(["NA"])
    >>> cells = pl.Series(["yes", "NA", None, "no"], dtype=numbered.dtype)
    >>> numbered.codes(cells.to_physical().fill_null(2**32 - 1)).tolist()
    [0, -1, -1, 2]
    >>> numbered.texts
    ['yes', None, 'no']
    """

    def __init__(self, missing: Sequence[str] = (), missing_code: Any = None) -> None:
        self._missing, self._missing_code = missing, missing_code
        self._categories = pl.Categories.random()
        self.dtype = pl.Categorical(self._categories)
        """The type to read the column as, whose categories are its own."""
        self._kept = pl.Series(dtype=self.dtype)  # without any data Polars forgets the categories
        self.texts: list[str | None] = []
        """The text of each number, None if it means missing or if no cell was read that has it."""
        self.n_observed = 0
        """How many cells hold a text that does not mean missing."""
        self._n_certain = 0
        self._nothing: set[int] = set()

    def codes(self, numbers: pl.Series) -> np.ndarray:
        """Return the numbers of more cells, as small as they can be, −1 where one is missing."""
        codes = numbers.to_numpy().view(np.int32)  # what is missing has the largest number
        top = int(codes.max(initial=MISSING))
        if top >= self._n_certain:
            self._learn(top)
        small = codes.astype(code_dtype(top + 1))
        for number in self._nothing:
            small[codes == number] = MISSING
        self.n_observed += int(np.count_nonzero(small != MISSING))
        return small

    def _learn(self, top: int) -> None:
        """Find the texts up to a number; one that is still being read has no text yet."""
        found = list(map(self._text, range(self._n_certain, top + 1)))
        absent = [k for k, text in enumerate(found) if text is None]
        nothing = self._mean_missing(found)
        first = self._n_certain
        self.texts[first:] = [
            None if is_nothing else text for text, is_nothing in zip(found, nothing, strict=True)
        ]
        self._nothing |= {first + k for k in np.flatnonzero(nothing).tolist()}
        self._n_certain += absent[0] if absent else len(found)

    def _text(self, number: int) -> str | None:
        try:
            return self._categories[number]  # type: ignore[return-value]
        except IndexError:
            return None

    def _mean_missing(self, texts: list[str | None]) -> np.ndarray:
        cells = pl.Series(texts, dtype=pl.String)
        nothing = cells.is_in(list(self._missing))
        left = without_code(cells, self._missing_code)
        return (nothing | (left.is_null() & cells.is_not_null())).fill_null(False).to_numpy()


def numbered_texts(
    table: TableFile, names: Iterable[str], missing_code: Any
) -> dict[str, NumberedTexts]:
    """Return those of some columns of a file that hold text, none of which was read yet."""
    if table.is_text:
        return {name: NumberedTexts(table.missing, missing_code) for name in names}
    texts = [name for name in names if table.schema[name] == pl.String]
    return {name: NumberedTexts((), missing_code) for name in texts}


def cleaned_batches(
    table: TableFile,
    names: Sequence[str],
    missing_code: Any,
    texts: Mapping[str, NumberedTexts],
    others: Sequence[str] = (),
) -> Iterator[pl.DataFrame]:
    """Yield some columns, some rows at a time, without the cells that mean missing; and others.

    Texts are numbered, also those that mean missing.
    """
    typed = [name for name in names if name not in texts]
    categories = {name: one.dtype for name, one in texts.items()}
    for batch in table.batches([*names, *others], categories):
        yield batch.with_columns(without_code(batch[name], missing_code) for name in typed)


def without_code(column: pl.Series, missing_code: Any) -> pl.Series:
    """Return a column without the cells that mean missing, by their text where they are text."""
    if missing_code is None or is_missing(missing_code):
        return column
    is_text = column.dtype in (pl.String, pl.Categorical, pl.Enum)
    if not is_text and (isinstance(missing_code, str) or not column.dtype.is_numeric()):
        return column
    texts = column.cast(pl.String).str.strip_chars() if is_text else column
    is_code = texts == (text_of(missing_code) if is_text else missing_code)
    if is_text and not isinstance(missing_code, str):  # numbers of a text file, however written
        is_code |= texts.cast(pl.Float64, strict=False) == missing_code
    return column.set(is_code.fill_null(False), None)
