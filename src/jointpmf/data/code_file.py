"""Codes that wait in a temporary file until the order of their levels is known."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jointpmf.output import keeping_codes


class CodeFile:
    """Arrays in a temporary file, those of each batch one after the other."""

    def __init__(self, most_in_memory: int = 2**24) -> None:
        self._file = tempfile.SpooledTemporaryFile(most_in_memory, prefix="jointpmf-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._kinds: list[list[tuple[np.dtype[Any], int]]] = []

    def write(self, arrays: Sequence[np.ndarray]) -> None:
        """Add the arrays of a batch."""
        if arrays and len(arrays[0]):
            self._kinds.append([(array.dtype, len(array)) for array in arrays])
            with keeping_codes():
                for array in arrays:
                    self._file.write(np.ascontiguousarray(array).data)

    @property
    def n_batches(self) -> int:
        """How many batches there are that have rows."""
        return len(self._kinds)

    def distinct(self, k: int) -> list[int]:
        """Return the distinct codes in the arrays of that place in each batch."""
        found = (np.unique(arrays[k]) for arrays in self.read())
        codes = np.unique(np.concatenate([np.empty(0, np.int32), *found]))
        return codes[codes >= 0].tolist()

    def read(self) -> Iterator[list[np.ndarray]]:
        """Yield the arrays of each batch."""
        place = 0
        for kinds in self._kinds:
            self._file.seek(place)
            sizes = [dtype.itemsize * length for dtype, length in kinds]
            yield [
                np.frombuffer(self._file.read(size), dtype)
                for (dtype, _), size in zip(kinds, sizes, strict=True)
            ]
            place += sum(sizes)
