"""The codes that a column has before its levels are ordered: its library's own, or integers.

A library knows best how to find the distinct cells of its columns. What is left to do here is one
pass that makes its codes small, and one lookup that gives them the order of the levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

_UNCODED = -1
"""The code of a missing cell: MISSING, under a name of this file, which imports none of ours."""

_BLOCK_CELLS = 2**16
"""Rows that are worked on at a time, so that they stay near the processor."""


class OwnCodes:
    """Small integers, one for each row: the same for the same level, and −1 for missing.

    Parameters
    ----------
    codes : array of int
        From 0 to below `size`, or −1.
    size : int
        How many different ones there may be.

    Examples
    --------
    >>> own = OwnCodes(np.array([2, -1, 0, 2]), 3)
    >>> own.first_rows.tolist(), own.recoded([5, 6, 7]).tolist()
    ([2, -1, 0], [7, -1, 5, 7])
    """

    def __init__(self, codes: np.ndarray, size: int) -> None:
        self.codes = codes.astype(_small(size), copy=False)
        self.first_rows = _first_rows(self.codes, size)
        """The first row of each code, and −1 of those that no row has."""

    def recoded(self, new: Iterable[int]) -> np.ndarray:
        """Return the rows' new codes, given the new code of each."""
        return recoded(self.codes, new)


def recoded(codes: np.ndarray, new: Iterable[int]) -> np.ndarray:
    """Return the new codes of rows, given the new code of each; −1 stays what it is.

    Examples
    --------
    >>> recoded(np.array([1, -1, 0], np.int8), [300, 7])
    array([  7,  -1, 300], dtype=int16)
    """
    table = np.array([*new, _UNCODED], np.int32)
    if np.array_equal(table[:-1], np.arange(len(table) - 1)):
        return codes
    table = table.astype(_small(int(table.max()) + 1))
    if codes.dtype == table.dtype == np.int8:  # bytes have a lookup of their own, twice as fast
        every = np.full(256, _UNCODED, np.int8)
        known = table[:-1][:128]  # no code of a byte is above 127
        every[: len(known)] = known
        return np.frombuffer(codes.tobytes().translate(every.tobytes()), np.int8)
    found = np.empty(len(codes), table.dtype)
    for rows in _blocks(len(codes)):
        found[rows] = table[codes[rows]]  # −1 is the last of the table
    return found


def _first_rows(codes: np.ndarray, size: int) -> np.ndarray:
    first = np.full(size + 1, -1, np.int64)
    first[_UNCODED] = 0
    n_left = size
    for rows in _blocks(len(codes), least=2**10):
        block = codes[rows]
        new = np.flatnonzero(first[block] < 0)
        first[block[new[::-1]]] = rows.start + new[::-1]  # of several the last stays: the first row
        n_left -= int(np.count_nonzero(first[block[new]] == rows.start + new))
        if not n_left:  # the usual case after a short block
            break
    return first[:-1]


def codes_of_numbers(cells: np.ndarray) -> tuple[float, OwnCodes] | None:
    """Return the lowest of some numbers and how far each lies above it, in whole numbers.

    None if one does not, or if they reach farther than there are numbers.

    Examples
    --------
    >>> low, own = codes_of_numbers(np.array([7.0, 5.0, 7.0]))
    >>> low, own.codes.tolist()
    (5.0, [2, 0, 2])
    """
    if cells.dtype.kind not in "iuf" or not len(cells):
        return None
    low, high = _ends(cells)
    if not high - low < len(cells):
        return None
    codes = _above(cells, low, int(high - low) + 1)
    are_whole = cells.dtype.kind in "iu" or all(
        (codes[rows] + low == cells[rows]).all() for rows in _blocks(len(cells))
    )
    return (low, OwnCodes(codes, int(high - low) + 1)) if are_whole else None


def _above(cells: np.ndarray, low: Any, size: int) -> np.ndarray:
    """Return how far cells lie above the lowest of them, as codes of that many levels."""
    dtype = _small(size)
    if cells.dtype.kind == "f":
        return (cells - low).astype(dtype)
    codes = cells.astype(dtype)  # modulo 2**bits, which the difference is not beyond
    codes -= np.array(low, cells.dtype).astype(dtype)
    return codes


def _small(size: int) -> np.dtype[Any]:
    """Return the type of the codes of so many levels, as `code_dtype` does."""
    return np.min_scalar_type(-size - 1)


def _blocks(n_rows: int, least: int = _BLOCK_CELLS) -> Iterator[slice]:
    """Yield all rows in blocks, which begin with the least size and grow."""
    begin, size = 0, least
    while begin < n_rows:
        yield slice(begin, begin + size)
        begin, size = begin + size, min(2 * size, _BLOCK_CELLS)


def _ends(cells: np.ndarray) -> tuple[Any, Any]:
    """Return the lowest and the highest number, as objects of Python, which do not overflow."""
    blocks = [cells[rows] for rows in _blocks(len(cells))]
    ends = [(block.min(), block.max()) for block in blocks]  # the second pass is near the processor
    return min(low for low, _ in ends).item(), max(high for _, high in ends).item()


def codes_of_pandas(series: Any) -> OwnCodes:
    """Return the codes that pandas has or makes for the levels of a column."""
    if hasattr(series.dtype, "categories"):
        return OwnCodes(series.cat.codes.to_numpy(), len(series.dtype.categories))
    codes, levels = series.factorize()
    kind: Any = type(series)
    if _cuts_texts(kind) and _are_cut(series, codes, levels):
        return _codes_of_texts(series.to_numpy(object), codes != _UNCODED)
    return OwnCodes(codes, len(levels))


@cache
def _cuts_texts(kind: Any) -> bool:
    """Tell whether pandas reads texts only up to their first NUL, as it did before 3.1."""
    return len(kind(["", "\0"], dtype=object).factorize()[1]) == 1


def _are_cut(series: Any, codes: np.ndarray, levels: Any) -> bool:
    """Tell whether any code is that of another text than the cell's."""
    in_python = series.dtype.kind == "O" and getattr(series.dtype, "storage", "python") == "python"
    if not in_python or not len(levels):
        return False
    is_known = codes != _UNCODED
    texts = np.asarray(levels, object)[codes[is_known]]
    return bool((texts != series.to_numpy(object)[is_known]).any())


def _codes_of_texts(cells: np.ndarray, is_known: np.ndarray) -> OwnCodes:
    r"""Return codes in the order of first rows, by what Python holds for equal.

    Examples
    --------
    >>> texts = np.array(["a\0", None, "a", "a\0"], object)
    >>> _codes_of_texts(texts, texts != None).codes.tolist()
    [0, -1, 1, 0]
    """
    code_of: dict[Any, int] = {}
    codes = np.full(len(cells), _UNCODED, np.int64)
    codes[is_known] = [code_of.setdefault(cell, len(code_of)) for cell in cells[is_known]]
    return OwnCodes(codes, len(code_of))


def codes_of_polars(series: Any, are_listed: bool) -> OwnCodes:
    """Return the codes of a column of Polars, which has its own if its levels are listed.

    Examples
    --------
    >>> import polars as pl
    >>> answers = pl.Series(["yes", None, "no"], dtype=pl.Enum(["yes", "no"]))
    >>> codes_of_polars(answers, True).codes.tolist()
    [0, -1, 1]
    """
    own = series.to_physical() if are_listed else series.rank("dense")
    low, high = own.min(), own.max()
    if low is None:
        return OwnCodes(np.full(len(own), _UNCODED), 0)
    size, top = high - low + 1, np.iinfo(own[:0].to_numpy().dtype).max
    if np.iinfo(_small(size)).max > top:
        own, top = own.cast(int), 2**63 - 1
    # all categories of a process have codes together, so that a column's may begin anywhere;
    # what lies one below the lowest, modulo 2**bits, becomes −1
    filled = own.fill_null((low - 1) % (top + 1)) if own.null_count() else own
    return OwnCodes(_above(filled.to_numpy(), low, size), size)


def codes_of_pyarrow(column: Any) -> OwnCodes:
    """Return the codes that PyArrow has or makes for the levels of a column."""
    has_codes = hasattr(column.type, "index_type")
    chunks = (column.unify_dictionaries() if has_codes else column.dictionary_encode()).chunks
    size = len(chunks[0].dictionary) if chunks else 0
    small = _small(size).name
    codes = [one.indices.cast(small, safe=False).fill_null(_UNCODED).to_numpy() for one in chunks]
    return OwnCodes(np.concatenate(codes or [np.empty(0, np.int8)]), size)
