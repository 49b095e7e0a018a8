"""The report: one HTML page on a fit, for a colleague who has not heard of tensors.

The page is one file that fetches nothing and runs nothing, and holds no rows: of the data it shows
counts and shares only.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointpmf import __version__
from jointpmf.errors import JointPMFError, shown
from jointpmf.output import atomic_output, checked_path
from jointpmf.show.html import Html, element, joined, page
from jointpmf.show.intervals import checked_uncertainty
from jointpmf.show.report.cards import course, data, fitted, head, uniqueness, watch_out
from jointpmf.show.report.components import components, ranks
from jointpmf.show.report.findings import findings_in_memory
from jointpmf.show.report.profiles import profiles
from jointpmf.show.report.quality import quality
from jointpmf.show.report.sureness import sureness
from jointpmf.show.report.traits import has_traits, traits

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
) -> None:
    """Write the report on a fit, see `Solution.report`; the file appears whole or not at all."""
    title = Path(checked_path(path)).stem
    if curve is not None:
        _check_curve(curve)
    if table is None and sample_weight is not None:
        raise JointPMFError("sample_weight belongs to a table, and none is given")
    if uncertainty is not None:
        checked_uncertainty(uncertainty, solution.pmf)
    found = findings_in_memory(solution, table, curve, sample_weight, uncertainty)
    content = report_bytes(found, title)
    with atomic_output(path) as file:
        file.write(content)


def _check_curve(curve: Any) -> None:
    from jointpmf.judge.curve import RankCurve

    if not isinstance(curve, RankCurve):
        raise JointPMFError(f"the curve must be what choose_rank returns, not {shown(curve)}")
    if not curve.scores:
        raise JointPMFError("the curve has no ranks to report on")


def report_bytes(found: Findings, title: str) -> bytes:
    """Return the page as it is written to a file."""
    if not len(found.subject.pmf.domain):
        raise JointPMFError("there is nothing to report on a model without variables")
    style = files("jointpmf.show.report").joinpath("report.css").read_text(encoding="utf-8")
    return page(title, style, body(found, title))


def body(found: Findings, title: str) -> Html:
    """Return all that stands on the page."""
    what, kind = ("What", "care") if found.warnings else ("Nothing", "fine")
    sections = [
        _section(f"{what} to watch out for", watch_out(found), kind),
        _section("What was fitted", fitted(found)),
        _section("The data", data(found)),
        _section("Did the fit converge?", course(found)),
        _section("Is it the only such model?", uniqueness(found)),
        _section("How well does it fit?", quality(found)),
        *_sureness(found),
        *_inside(found),
    ]
    if found.curve is not None:
        sections.append(_section("How many components?", ranks(found, found.curve)))
    parts = [
        element("header", *head(found, title)),
        element("main", *sections),
        element("footer", f"Written by jointpmf {__version__}."),
    ]
    return joined(parts, "\n")


def _inside(found: Findings) -> list[Html]:
    """Return what the model is made of: traits, or components to be read one by one."""
    if has_traits(found.subject.pmf):
        return [_section("The traits", traits(found))]
    return [
        _section("The components in words", components(found)),
        _section("The components in numbers", profiles(found)),
    ]


def _sureness(found: Findings) -> list[Html]:
    if found.uncertainty is None:
        return []
    return [_section("How sure is it?", sureness(found.uncertainty))]


def _section(heading: str, content: Iterable[Html], kind: str | None = None) -> Html:
    return element("section", element("h2", heading), *content, class_=kind)
