"""How much memory this process has, and how much more it may take."""

from __future__ import annotations

import os
from pathlib import Path


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
    """Return the memory that is free, for the machine or its container; None if nobody knows.

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
