"""The bar on a terminal: how far, how long so far, and no guess of what is left."""

import functools
import io
import re

import pytest
import rich.console

from jointpmf.fit.progress import progress_bar


@pytest.fixture
def terminal(monkeypatch):
    """Return what is shown on a terminal."""
    screen = io.StringIO()
    console = functools.partial(rich.console.Console, file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(rich.console, "Console", lambda stderr: console())
    return screen


@pytest.mark.parametrize("total", [None, 12])
def test_it_guesses_no_time_that_is_left(terminal, total):
    with progress_bar("fitting", total, is_shown=True) as advance:
        for start in range(3):
            advance(f"start {start + 1} of at most 12, best −27.4183, found twice")
    shown = terminal.getvalue()
    assert "fitting: start 3 of at most 12, best −27.4183, found twice" in shown
    assert ("3/12" in shown) == (total is not None)
    for line in re.split("[\r\n]", shown):
        assert len(re.findall(r"[-\d]+:[-\d]{2}:[-\d]{2}", line)) <= 1, line  # how long so far
