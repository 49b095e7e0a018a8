"""One browser for all tests of pages, and one fit that is worth looking at."""

import pytest

import jointpmf as jp
from jointpmf.command.demo import BINS, RANK
from jointpmf.data.datasets import anes96
from support.browser import CHROMIUM, OPTIONS, skip_or_fail


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        skip_or_fail("the Python package playwright is not installed")
    if CHROMIUM is None:
        skip_or_fail("there is no Chromium, such as Debian's package chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def table():
    """Return the survey, of which every fourth vote is not known."""
    table = anes96()
    table.loc[::4, "vote"] = None
    return table


@pytest.fixture(scope="session")
def fit(table):
    return jp.fit_rows(table, RANK, bins=BINS, random_state=0)
