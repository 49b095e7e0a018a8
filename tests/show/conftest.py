"""One browser for all tests of pages, and one fit that is worth looking at."""

import itertools
import json
from collections import defaultdict

import pytest

import jointpmf as jp
from jointpmf.command.demo import BINS, RANK
from jointpmf.data.datasets import anes96
from support.browser import DESKTOP, opened
from support.explorer import Explorer


@pytest.fixture(scope="session")
def browser():
    with opened() as started:
        yield started


@pytest.fixture(scope="session")
def table():
    """Return the survey, of which every fourth vote is not known."""
    table = anes96()
    table.loc[::4, "vote"] = None
    return table


@pytest.fixture(scope="session")
def fit(table):
    return jp.fit_rows(table, RANK, bins=BINS, random_state=2)


@pytest.fixture(scope="session")
def sure(fit):
    return fit.uncertainty(200, random_state=0)


@pytest.fixture(scope="module")
def windows(browser):
    """Return the open pages by the options of their contexts, for one test after the other."""
    found = defaultdict(list)
    yield found
    for page in itertools.chain(*found.values()):
        page.page.context.close()


@pytest.fixture
def explore(browser, windows, tmp_path):
    """Return what opens the page of a model; afterwards the page must have been well-behaved."""
    opened = []

    def open_page(
        pmf,
        fragment="",
        size=DESKTOP,
        name="model",
        scheme="light",
        sure=None,
        rows=None,
        **options,
    ):
        path = tmp_path / f"{name}.html"
        pmf.explore(path, uncertainty=sure, rows=rows)
        width, height = size
        options["viewport"] = {"width": width, "height": height}
        free = windows[json.dumps(options, sort_keys=True)]
        page = free.pop() if free else Explorer(browser.new_context(**options))
        opened.append((free, page))
        return page.open(path, fragment, scheme)

    yield open_page
    for free, page in opened:
        page.close()
        free.append(page)
