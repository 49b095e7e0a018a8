"""The report: one HTML page on a fit, for a colleague who has not heard of tensors.

The page is one file that fetches nothing and runs nothing, and holds no rows: of the data it shows
counts and shares only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointpmf import __version__
from jointpmf.errors import JointPMFError, shown
from jointpmf.output import atomic_output, checked_path
from jointpmf.show.html import Html, element, joined, page
from jointpmf.show.intervals import checked_uncertainty
from jointpmf.show.report.cards import course, fitted, head, uniqueness, watch_out
from jointpmf.show.report.components import components, ranks
from jointpmf.show.report.facts import report_facts
from jointpmf.show.report.findings import findings_in_memory
from jointpmf.show.report.profiles import profiles
from jointpmf.show.report.quality import quality
from jointpmf.show.report.sureness import sureness
from jointpmf.show.report.traits import has_traits, traits
from jointpmf.show.report.variables import data

if TYPE_CHECKING:
    from jointpmf.fit.solution import Solution
    from jointpmf.judge.curve import RankCurve
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.output import PathLike
    from jointpmf.show.report.findings import Findings


def write_report(
    path: PathLike,
    solution: Solution,
    table: Any = None,
    curve: RankCurve | None = None,
    sample_weight: Any = None,
    uncertainty: Uncertainty | None = None,
    title: str | None = None,
) -> None:
    """Write the report on a fit, see `Solution.report`; the file appears whole or not at all."""
    name = checked_path(path)
    if title is not None and not isinstance(title, str):
        raise JointPMFError(f"the title must be text, not {shown(title)}")
    if curve is not None:
        _check_curve(curve)
    if table is None and sample_weight is not None:
        raise JointPMFError("sample_weight belongs to a table, and none is given")
    if uncertainty is not None:
        checked_uncertainty(uncertainty, solution.pmf)
    found = findings_in_memory(solution, table, curve, sample_weight, uncertainty)
    content = content_for(str(name), found, title or Path(name).stem)
    with atomic_output(path) as file:
        file.write(content)


def _check_curve(curve: Any) -> None:
    from jointpmf.judge.curve import RankCurve

    if not isinstance(curve, RankCurve):
        raise JointPMFError(f"the curve must be what choose_rank returns, not {shown(curve)}")
    if not curve.scores:
        raise JointPMFError("the curve has no ranks to report on")


def content_for(path: str, found: Findings, title: str) -> bytes:
    """Return the report as the ending of its file's name asks for: HTML or JSON."""
    if Path(path).suffix.lower() != ".json":
        return report_bytes(found, title)
    facts = report_facts(found, title)
    return (json.dumps(facts, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def report_bytes(found: Findings, title: str) -> bytes:
    """Return the page as it is written to a file."""
    style = files("jointpmf.show.report").joinpath("report.css").read_text(encoding="utf-8")
    return page(title, style, body(found, title))


def body(found: Findings, title: str) -> Html:
    """Return all that stands on the page."""
    what, kind = ("What", "care") if found.cautions else ("Nothing", "fine")
    sections = [
        _section(f"{what} to watch out for", watch_out(found), kind, is_open=True),
        *_inside(found),
        _section("How well does it fit?", quality(found)),
        *_sureness(found),
        *([] if found.curve is None else [_section(_RANK_HEADING, ranks(found, found.curve))]),
        _section("The variables", data(found)),
        _section("Is it the only such model?", uniqueness(found)),
        _section("Did the fit converge?", course(found)),
        _section("What was fitted", fitted(found)),
    ]
    parts = [
        element("header", *head(found, title)),
        element("main", *sections),
        element("footer", f"Written by jointpmf {__version__}."),
    ]
    return joined(parts, "\n")


_RANK_HEADING = "How many components?"


def _inside(found: Findings) -> list[Html]:
    """Return what the model is made of: traits, or components to be read one by one."""
    if has_traits(found.subject.pmf):
        return [_section("The traits", traits(found), is_open=True)]
    return [
        _section("The components", components(found), is_open=True),
        _section("The components, level by level", profiles(found)),
    ]


def _sureness(found: Findings) -> list[Html]:
    if found.uncertainty is None:
        return []
    return [_section("How sure is it?", sureness(found.uncertainty))]


def _section(
    heading: str, content: Iterable[Html], kind: str | None = None, is_open: bool = False
) -> Html:
    """Return a section; on a small screen a box beside its heading folds it, without a script."""
    box = Html(f'<input type="checkbox" class="fold"{" checked" * is_open}/>')
    title = element("h2", element("label", box, heading))
    return element("section", title, *content, class_=kind)
