"""One browser for all tests of pages."""

import pytest

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
