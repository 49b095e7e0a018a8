"""What has to hold before any test runs."""

import os
import signal

import pytest

# Without it scikit-learn skips its check of array API input; of other code it changes nothing.
os.environ["SCIPY_ARRAY_API"] = "1"


@pytest.fixture(autouse=True, scope="session")
def _interrupts_interrupt():
    """Make SIGINT what it is in a terminal: a shell lets its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
