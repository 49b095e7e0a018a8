"""All benchmarks of speed, one after the other, and a page of what they measured.

The page says when, on which processor and with which versions; nothing on it is typed.
"""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import gemm_flops, printed
from jointpmf.threads import n_threads

BENCHMARKS = (
    *("first_call", "encoding", "many_rows", "likelihood", "large_rank", "conditional"),
    *("counting", "sampling", "sweep"),
)
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "polars", "pandas", "pyarrow", "scikit-learn")
RESULT = Path(__file__).parent / "results" / "speed.md"


def main() -> None:
    """Measure, print and write the page."""
    text = ["# Speed", "", *machine(), "", "Written by `python -m benchmarks.speed`.", ""]
    for name in BENCHMARKS:
        printed.clear()
        import_module(f"benchmarks.{name}").main()
        for title, lines in printed:
            text += [
                f"## {title}",
                "",
                "| what | measured | beside it | asked |",
                "|---|---|---|---|",
            ]
            text += ["| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines]
            text.append("")
    RESULT.write_text("\n".join(text))


def machine() -> list[str]:
    """Return what was measured with, as a list for a page."""
    versions = ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
    return [
        f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- {processor()}, {n_threads()} cores, {gemm_flops() / 1e9:.0f} GFLOPS by BLAS",
        f"- load when this began: {os.getloadavg()[0]:.1f}",
        f"- Python {platform.python_version()}, {versions}",
    ]


def processor() -> str:
    """Return the processor's name, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
