"""The explorer: a model as one HTML page that answers clicks, with nothing to install or fetch.

The page is assets/page.html with the style, the scripts and the model written into it. The numbers
are float64 as they are, so the page and the library agree; packing.py says which of them are there.
Names and levels are data in the page and never markup: see `_json`, and the policy that lets only
our own script run.
"""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from jointpmf.components import component_variable
from jointpmf.domain import evidence_of, matching_level, text_of
from jointpmf.errors import JointPMFError
from jointpmf.output import atomic_output, checked_path
from jointpmf.show.explorer.packing import packed, packed_model, packed_residuals
from jointpmf.show.html import Html, base64_text, element, escaped, policy
from jointpmf.show.intervals import checked_uncertainty, how_made, shown_level, shown_parts
from jointpmf.show.text import unicode_text

if TYPE_CHECKING:
    from jointpmf.domain import Domain, Variable
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.output import PathLike
    from jointpmf.pmf import JointPMF

_SCRIPTS = (
    "model.js",
    "traits.js",
    "text.js",
    "intervals.js",
    "evidence.js",
    "address.js",
    "strip.js",
    "stacked.js",
    "cards.js",
    "dependencies.js",
    "tables.js",
    "components.js",
    "rows.js",
    "code.js",
    "start.js",
)
"""Joined in this order into one script: a file uses only what those above it define."""

_ESCAPING = (
    "A spreadsheet computes a cell that begins with =, +, - or @. If the box is ticked, such text "
    "gets an apostrophe before it, and stays text."
)
"""What the page says of its CSV files."""

_AS_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""The characters in JSON that could end a script element or a line of a script."""


def write_page(
    path: PathLike,
    pmf: JointPMF,
    model: PathLike | None = None,
    uncertainty: Uncertainty | None = None,
    rows: Any = None,
) -> None:
    """Write the page of a model; the file appears whole or not at all.

    The queries that the page shows as code read the file `model`, by default `path` with the suffix
    .safetensors. With replicates of the fit, bars have whiskers; with rows, the page also says how
    far pairs of variables are in them from the model. It holds no rows.
    """
    if model is None:
        model = os.path.splitext(os.path.basename(checked_path(path)))[0] + ".safetensors"
    content = page_bytes(pmf, model, uncertainty, rows)
    with atomic_output(path) as file:
        file.write(content)


def page_bytes(
    pmf: JointPMF, model: PathLike, uncertainty: Uncertainty | None = None, rows: Any = None
) -> bytes:
    """Return the page of a model as it is written to a file."""
    if not len(pmf.domain):
        raise JointPMFError("a model without variables cannot be explored")
    described = _description(pmf, unicode_text(checked_path(model, "a model file")))
    computed, numbers = packed_model(pmf)
    if computed:
        described["traits"] = computed
    replicates = residuals = ""
    if uncertainty is not None:
        sure = checked_uncertainty(uncertainty, pmf)
        described["replicates"] = _replicates(sure)
        replicates = _stored("replicates", packed(sure))
    if rows is not None:
        residuals = _stored("residuals", packed_residuals(pmf, rows))
    style = _source("page.css")
    script = "\n".join(['"use strict";', *map(_source, _SCRIPTS)])
    text = Template(_source("page.html")).substitute(
        policy=policy(style, script),
        title=escaped(Path(model).stem, width=10**6),
        style=style,
        script=script,
        description=_json(described),
        numbers=base64_text(numbers),
        replicates=replicates,
        residuals=residuals,
        escaping=_ESCAPING,
    )
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise JointPMFError("a name or a level holds text that is not Unicode") from None


def _stored(name: str, content: bytes) -> Html:
    """Return bytes as an element of the page that is not shown."""
    return element("script", Html(base64_text(content)), type="text/plain", id=name)


def _source(name: str) -> str:
    return files("jointpmf.show.explorer").joinpath("assets", name).read_text(encoding="utf-8")


def _json(content: Any) -> str:
    """Return JSON that can stand inside a script element, whatever its texts are."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_AS_ESCAPES)


def _description(pmf: JointPMF, model: str) -> dict[str, Any]:
    variables = [_variable(variable, pmf.domain) for variable in pmf.domain]
    described: dict[str, Any] = {"model": model, "rank": pmf.rank, "variables": variables}
    if pmf.component_names is not None:
        component = component_variable(pmf.rank, pmf.component_names)
        described["component"] = _variable(component, pmf.domain)
    return described


def _replicates(sure: Uncertainty) -> dict[str, Any]:
    n_unclear = len(sure) - int(sure.is_clear.sum())
    count, rank = sure.weights.shape
    known = {"count": count, "rank": rank, "unclear": n_unclear}
    parts = shown_parts(len(sure)).round(6).tolist()
    return {**known, "level": shown_level(), "parts": parts, "how": how_made(sure)}


def _variable(variable: Variable, domain: Domain) -> dict[str, Any]:
    """Return what the page needs of a variable; the page derives the rest from the levels."""
    texts = [text_of(level) for level in variable.levels]
    if len(set(texts)) < len(texts):  # such as 1 and "1"
        texts = [repr(level) for level in variable.levels]
    described: dict[str, Any] = {"name": variable.name, "levels": texts}
    if not all(type(level) is str for level in variable.levels):
        described["literals"] = [repr(level) for level in variable.levels]
    are_numbers = variable.time is None and {type(level) for level in variable.levels} != {bool}
    if variable.values is not None and are_numbers:
        described["values"] = variable.values
    codes = range(variable.size)
    if untyped := [code for code in codes if not _is_typed(domain, variable, code, texts[code])]:
        described["untyped"] = untyped
    return described


def _is_typed(domain: Domain, variable: Variable, code: int, text: str) -> bool:
    """Tell whether the command's `--given name=text` means this very level."""
    if "\0" in variable.name + text:
        return False
    if "=" in variable.name or variable.name != variable.name.strip():
        try:
            given = evidence_of(domain, [f"{variable.name}={text}"])
        except JointPMFError:
            return False
        return given == {variable.name: [variable.levels[code]]}
    found = matching_level(variable, text.strip())
    return found is not None and variable.code(found) == code
