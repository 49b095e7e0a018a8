"""What has to hold before any test runs: which are slow, and which come first."""

import gc
import os
import signal
from pathlib import Path

import pytest

from jointpmf import threads

# Without it scikit-learn skips its check of array API input; of other code it changes nothing.
os.environ["SCIPY_ARRAY_API"] = "1"

SLOW = {
    "command/test_main.py",
    "compiled/test_loops.py",
    "fit/test_batches.py",
    "fit/test_checkpoint.py",
    "fit/test_files.py",
    "fit/test_opening.py",
    "fit/test_published.py",
    "fit/test_rank_by_cells.py",
    "fit/test_rank_by_rows.py",
    "judge/test_rank.py",
    "rows/test_distributed.py",
    "rows/test_source.py",
    "show/test_explorer.py",
    "show/test_explorer_views.py",
    "show/test_intervals.py",
    "show/test_plots.py",
    "show/test_report.py",
    "test_docs.py",
    "test_estimators.py",
    "test_imports.py",
}
"""What `make check` leaves out beside the examples in docstrings: files with processes, browsers,
clusters or many fits."""

FIRST = ("rows/test_distributed.py", "rows/test_source.py", "show/")
"""Files with a cluster or a browser. A worker takes tests from the end of another's list, so what
is at its beginning stays in one process, which starts the cluster once."""


def pytest_collection_modifyitems(items):
    """Mark what is slow, and put first what has costly fixtures."""
    folder = Path(__file__).parent
    for item in items:
        is_example = not item.path.is_relative_to(folder)
        if is_example or str(item.path.relative_to(folder)) in SLOW:
            item.add_marker("slow")
    firsts = tuple(str(folder / first) for first in FIRST)
    items.sort(key=lambda item: not str(item.path).startswith(firsts))


def pytest_collection_finish():
    """Spare the garbage collector what was imported: it would look at all of it every time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def small_tasks_shared(monkeypatch):
    """Let threads share tasks that are too small for it: what is small can show their faults."""
    monkeypatch.setattr(threads, "_WORTH_SHARING", 0)


@pytest.fixture(autouse=True, scope="session")
def _interrupts_interrupt():
    """Make SIGINT what it is in a terminal: a shell lets its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
