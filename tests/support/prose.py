"""What prose is held to: its code prints what it says, commands work, links lead somewhere."""

import contextlib
import io
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from jointpmf.command.main import app

ROOT = Path(__file__).parent.parent.parent


def check_code(text):
    """Run all blocks of code, one after the other; those that print say so."""
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", text, re.DOTALL)
    assert len(blocks) == len(re.findall("```python", text))
    namespace = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        assert printed.getvalue() == expected


def check_commands(text):
    """Run all calls of the command; those that show what is printed, say it."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for call in ("\n" + block).split("\n$ ")[1:]:
            line, _, expected = call.partition("\n")
            words = shlex.split(line, comments=True)
            assert words[0] == "jointpmf", line
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, (line, result.output)
            if expected.strip():
                assert printed_words(result.stdout) == printed_words(expected), line


def printed_words(text):
    """Return what was printed without its layout and its bars, which depend on the terminal."""
    return [word for word in text.split() if word.isascii()]


def links(text):
    """Return the targets of a text's links and pictures, those in code left out."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(text):
    """Return the anchors of a text's headings, as both GitHub and the site make them."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path):
    """Return the relative links of a file of the repository that lead nowhere."""
    broken = []
    for link in links(path.read_text()):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = path.parent / target if target else path
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            broken.append(link)
    return broken


def cited_equations(text):
    """Return how a text cites equations: "eq." or "eqs.", and the numbers, ranges filled in."""
    text = re.sub(r"\s*\n\s*(# )?", " ", text)
    a_range = r"\d+(?: ?(?:–|-|to) ?\d+)?"
    found = re.findall(rf"\b(eqs?\.) ({a_range}(?:(?:, (?!and)| and ){a_range})*)", text)
    return [(word, list(_numbers(listed))) for word, listed in found]


def _numbers(listed):
    for first, last in re.findall(r"(\d+)(?: ?(?:–|-|to) ?(\d+))?", listed):
        yield from range(int(first), int(last or first) + 1)
