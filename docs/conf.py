"""How the documentation is built: `make docs`, which stops at the first warning.

Sphinx, because it has outlived every other generator and belongs to no company: Python's own manual
is made with it. Material for MkDocs, which made this site before, is maintained until May 2027.
Its successor Zensical is at version 0.0.74, and MkDocs itself has had no release since 2024. Pages
are plain Markdown (MyST) and the navigation is below, so that another move would be as short.

The source is the whole repository: pages in `docs/` link to results in `paper/` and `benchmarks/`
as they do where the files are read as they are. Nothing is fetched, neither by the build nor by its
pages: system fonts and no CDN. Links and the search work on files as they lie.
"""

import re
import subprocess
import sys
from pathlib import Path

from sphinx.addnodes import pending_xref

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

SHELVES = {
    "Begin": ["tutorial", "fitting", "command", "explorer"],
    "How to": [
        "latent_class",
        "traits",
        "imputation",
        "ratings",
        "published_tables",
        "population",
        "rank",
        "how_sure",
        "scikit_learn",
        "scale",
        "plots",
        "report",
    ],
    "Studies": [
        "studies",
        "tables_or_rows",
        "averaging_or_traits",
        "how_many_starts",
        "paper",
        "benchmarks",
    ],
    "Background": ["math", "identifiability", "format", "compiled"],
    "Reference": ["api/index", "/CHANGELOG"],
}
"""The navigation: pages by shelf, as paths from `docs/`."""

UNDER = {
    "docs/paper": ["/paper/results/*"],
    "docs/benchmarks": ["/benchmarks/results/*"],
    "docs/api/index": [
        "tables",
        "fitting",
        "model",
        "judging",
        "ratings",
        "scikit_learn",
        "plots",
        "datasets",
    ],
}
"""Pages under a page of the navigation."""

TITLES = {
    "ratings": "Predict ratings",
    "latent_class": "Latent-class analysis",
    "tables_or_rows": "Tables or rows, pairs or triples",
    "math": "The mathematics",
    "paper": "The paper's experiments",
}
"""Pages whose own titles are too long for the navigation."""

project = "jointpmf"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#24476b", "color-brand-content": "#1f5a94"},
    "dark_css_variables": {"color-brand-primary": "#8ab8e6", "color-brand-content": "#8ab8e6"},
}
root_doc = "docs/index"
include_patterns = ["docs/**.md", "paper/results/*.md", "benchmarks/results/*.md", "CHANGELOG.md"]
exclude_patterns = [".*", "build", "dist", "site", "src", "tests"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
suppress_warnings = ["misc.highlighting_failure"]  # parts of a program, and output, are no programs

myst_heading_anchors = 4
default_role = "code"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
add_module_names = False
toc_object_entries_show_parents = "hide"
trim_doctest_flags = True

html_theme = "furo"
html_title = "jointpmf"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_additional_pages = {"index": "home.html"}
templates_path = ["templates"]


def setup(app):
    """Complete pages as they are read."""
    app.connect("source-read", completed)
    app.connect("autodoc-skip-member", is_skipped)
    app.connect("doctree-read", unlinked)


def is_skipped(app, what, name, member, skip, options):
    """Leave out the methods that scikit-learn adds by itself."""
    return skip or name.endswith("_request")


def unlinked(app, doctree):
    """Leave words of a type, as in "array of shape (rows, rank)", text; classes are linked."""
    for found in list(doctree.findall(pending_xref)):
        last = found["reftarget"].rpartition(".")[2]
        if found.get("refdomain") == "py" and not last[:1].isupper():
            found.replace_self(found.children)


def completed(_, name, source):
    """Add the navigation to the first page, and to results when they were written."""
    if name == root_doc:
        source[0] += "".join(shelf(title, pages) for title, pages in SHELVES.items())
    if name in UNDER:
        source[0] += shelf("", UNDER[name])
    if "/results/" in name:
        source[0] = dated(source[0], name)
    source[0] = re.sub(
        r'```(\w+) title="([^"]+)"', r"```{code-block} \1\n:caption: \2\n", source[0]
    )


def shelf(title, pages):
    """Return one shelf of the navigation."""
    lines = [f"{TITLES[page]} <{page}>" if page in TITLES else page for page in pages]
    options = [":hidden:", ":glob:", *([f":caption: {title}"] if title else [])]
    return "\n\n" + "\n".join(["```{toctree}", *options, "", *lines, "```"]) + "\n"


def dated(markdown, name):
    """Say when these results were written, where the history tells; their tables take the width."""
    try:
        command = ["git", "log", "-1", "--no-merges", "--format=%as", "--", f"{name}.md"]
        day = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git here
        day = ""
    made = "make paper" if name.startswith("paper/") else "make bench"
    line = f"`{made}` writes this page" + (f"; last on {day}." if day else ".")
    heading, _, rest = markdown.partition("\n")
    rest = re.sub(r"(?<=\| )[\d.]+e-\d+(?= \|)", r'<span class="number">\g<0></span>', rest)
    when = f'*{line} [The machine](../../docs/benchmarks.md).* <span class="results"></span>'
    return f"---\nhide-toc: true\n---\n{heading}\n\n{when}\n{rest}"
