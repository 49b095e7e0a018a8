"""What tests of pages share: the browser, sizes of screens, and text that must stay text."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT = ROOT / "build" / "explorer"
AXE = ROOT / ".venv" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = next(
    filter(None, map(shutil.which, ["chromium-headless-shell", "chromium", "chromium-browser"])),
    None,
)  # the first opens a page in half the time
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = (1280, 900), (375, 740)

HOSTILE = [
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "<!--<script>",
    "'\"`\\",
    "${window.hacked=1}",
    "$numbers $$ {{script}}",
    "javascript:window.hacked=1",
    "&lt;b&gt;&amp;",
    "👩‍👩‍👧 emoji 🏳️‍🌈",
    "שלום עולם \u202eright to left",
    "مرحبا",
    "x" * 10_000,
    "a line\nand\r\nanother\u2028and\u2029more\ttab",
    "__proto__",
    "constructor",
    "",
    " in spaces ",
    "a=b",
    "a",
    "one|two",
    "one",
    "two",
    "-x",
    "--debug",
    "--given",
    "%41 & ; : , # ?",
    "null \0 character",
    "$(touch hacked) `touch hacked` !!",
    "\ufeff\ufffe\x07\x7f",
]
"""Names and levels that a page must show as text, and never run."""


@contextmanager
def opened():
    """Return a browser, which is closed in the end; without one the test is skipped."""
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


def skip_or_fail(reason):
    """Skip a test that cannot run here, unless this is where it must."""
    if "browser" in os.environ.get("JOINTPMF_REQUIRE", ""):
        pytest.fail(reason)
    pytest.skip(reason)


SCHEMES = {
    "light": "document, {resultTypes: ['violations'], preload: false}",
    "dark": (
        "{exclude: [['[hidden]']]},"
        "{resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']}"
    ),
}
"""What axe checks in each scheme: they differ in nothing but colours, which hidden parts lack.

Nothing is loaded before: only sounds and films need it, which no page has.
"""


def faults_for_axe(page, scheme):
    """Return what axe has to say of a page as it is shown now."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate(f"axe.run({SCHEMES[scheme]}).then((all) => all.violations)")
    return [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found]
