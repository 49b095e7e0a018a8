"""How much memory a fit may take, and whether rows and a model fit into it."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.data.codes import code_dtype
from jointpmf.domain import number_in
from jointpmf.errors import JointPMFError, shown

if TYPE_CHECKING:
    from jointpmf.domain import Domain

_FREE_PART = 0.5
"""Part of the free memory that rows may take if nothing else is asked."""

_WORKING_BYTES = 280 * 10**6
"""What reading and fitting need, however few rows there are."""

_MODEL_COPIES = 40
"""Arrays of a model's size that a fit has at a time."""

_POINT_COPIES = 12
"""Arrays of that size that a fit of traits has at a time: sums of parts of the rows are most."""


@dataclass(frozen=True)
class Room:
    """What of the memory rows and a model may take.

    Parameters
    ----------
    memory : int, optional
        Bytes that the process may take, all in all; by default half of what is free.
    """

    memory: int | None = None

    @cached_property
    def free(self) -> float:
        """How many bytes there are for what grows with the rows."""
        if self.memory is None:
            free = available_bytes()
            return math.inf if free is None else _FREE_PART * free
        room = self.memory - used_bytes() - _WORKING_BYTES
        if room <= 0:
            raise JointPMFError(
                f"{self} is too little: this process itself needs about "
                f"{text_of_bytes(self.memory - room)}"
            )
        return room

    def __str__(self) -> str:
        """Return the limit in words."""
        return "the memory" if self.memory is None else f"memory {text_of_bytes(self.memory)}"

    def check_model(self, domain: Domain, rank: int) -> None:
        """Raise if the model alone would take too much."""
        n_levels = sum(domain.sizes)
        if self.memory is not None and 8 * n_levels * rank * _MODEL_COPIES > self.free:
            raise JointPMFError(
                f"a model of rank {rank} over {n_levels} levels is too large for {self}"
            )

    def check_points(self, domain: Domain, n_points: int) -> None:
        """Raise if so many points of a space of traits would take too much."""
        size = 8 * sum(domain.sizes) * n_points * _POINT_COPIES
        if size > self.free:
            raise JointPMFError(
                f"{n_points:,} points over {sum(domain.sizes)} levels would take about "
                f"{text_of_bytes(size)}, too much for {self}: ask for fewer (the rank)"
            )

    def n_rows(self, domain: Domain) -> float:
        """Return how many rows can be held while they are fitted: their codes several times."""
        size = np.dtype(code_dtype(max(domain.sizes, default=1))).itemsize
        return self.free / (5.0 * size * len(domain) + 80)


def bytes_of(text: str) -> int:
    """Return an amount of memory from a text such as `500MB`, `1.5GiB` or a number of bytes.

    Examples
    --------
    >>> bytes_of("2GB"), bytes_of("1.5 GiB"), bytes_of("65536")
    (2000000000, 1610612736, 65536)
    """
    parts = re.fullmatch(r"\s*([\d.]+)\s*(?:([kmgt])(i?))?b?\s*", text.lower())
    number = number_in(parts[1]) if parts else None
    if not parts or number is None:
        raise JointPMFError(f"write memory as 500MB, 2GB or 1.5GiB, not {shown(text)}")
    power = " kmgt".index(parts[2] or " ")
    return int(number * (1024 if parts[3] else 1000) ** power)


def text_of_bytes(size: float) -> str:
    """Return an amount of memory as one would type it.

    Examples
    --------
    >>> text_of_bytes(1.5e9), text_of_bytes(65536)
    ('1.5GB', '65.5kB')
    """
    power = min(int(math.log10(max(size, 1)) / 3), 4)
    return f"{size / 1000**power:.3g}{' kMGT'[power].strip()}B"


def used_bytes() -> int:
    """Return the memory that the process holds now; 0 where the system does not say.

    Examples
    --------
    >>> used_bytes() >= 0
    True
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def available_bytes() -> int | None:
    """Return the free memory of the machine or its container; None if the system does not say.

    Examples
    --------
    >>> free = available_bytes()
    >>> free is None or free > 0
    True
    """
    limits = [_free_in_machine(), _free_in_container()]
    return min((limit for limit in limits if limit is not None), default=None)


def _free_in_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(free[0]) * 1024 if free else None


def _free_in_container(folder: str = "/sys/fs/cgroup") -> int | None:
    try:
        limit = Path(folder, "memory.max").read_text().strip()
        used = Path(folder, "memory.current").read_text()
        return None if limit == "max" else max(int(limit) - int(used), 0)
    except OSError:
        return None
