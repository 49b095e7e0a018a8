"""What the build adds: results that other folders hold, as pages, without copying them.

A page's links are written for the repository, so that they also work where its files are read as
they are. Here they are turned into links of the site.
"""

import os
import posixpath
import re
import subprocess
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
SHOWN = ("CHANGELOG.md", "paper/results/*.md", "paper/results/*.png", "benchmarks/results/*.md")
SHOWN += ("benchmarks/results/*.png",)
LINK = re.compile(r"(\]\()([^)#\s]+)")
"""The target of a link or of a picture, without its fragment."""
WHOLE_NUMBERS = "<style>.md-typeset td { white-space: nowrap }</style>"
"""Wide tables scroll; a number such as 1e-15 is never broken at its sign."""


def on_files(files, config):
    """Add the results and the changes to the pages, under their path in the repository."""
    for pattern in SHOWN:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, **_):
    """Turn links between files of the repository into links between pages."""
    uri = page.file.src_uri
    home = uri if page.file.generated_by else f"docs/{uri}"

    def link_of_site(found):
        target = found[2]
        if re.match(r"\w+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        path = path.removeprefix("docs/")
        return found[1] + os.path.relpath(path, posixpath.dirname(uri) or ".")

    written = LINK.sub(link_of_site, markdown)
    return dated(written, uri) if "/results/" in uri else written


def dated(markdown, uri):
    """Say when these results were written, where the history is there to tell."""
    try:
        command = ["git", "log", "-1", "--no-merges", "--format=%as", "--", uri]
        day = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git here
        day = ""
    made = "make paper" if uri.startswith("paper/") else "make bench"
    line = f"`{made}` writes this page" + (f"; last on {day}." if day else ".")
    heading, _, rest = markdown.partition("\n")
    return f"{heading}\n\n*{line} [The machine](../../benchmarks.md).*\n\n{WHOLE_NUMBERS}\n{rest}"
