"""A report as plain data for programs.

`docs/report.md` describes each field. Numbers that are not finite, and what is not known, are null.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from jointpmf import __version__
from jointpmf.domain import text_of
from jointpmf.show.intervals import intervals, size_intervals
from jointpmf.show.report.components import MOST_TELLING, telling_levels
from jointpmf.show.report.quality import MOST_WORST, criteria
from jointpmf.show.report.traits import has_traits
from jointpmf.show.report.variables import observed_shares
from jointpmf.show.text import unicode_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jointpmf.judge.curve import RankCurve
    from jointpmf.judge.goodness import Goodness
    from jointpmf.pmf import JointPMF
    from jointpmf.show.report.comparison import Comparison
    from jointpmf.show.report.findings import Findings
    from jointpmf.show.report.tally import Tally

_FACTS_VERSION = 1
"""Of the fields: larger when one of them is taken away or gets another meaning."""


def report_facts(found: Findings, title: str) -> dict[str, Any]:
    """Return all that the report says, as numbers, texts, lists and dicts."""
    subject, tally = found.subject, found.tally
    pmf, goodness, compared = subject.pmf, found.goodness, found.comparison
    return _plain(
        {
            "format": "jointpmf report",
            "version": _FACTS_VERSION,
            "library": __version__,
            "title": title,
            "warnings": [one._asdict() for one in found.cautions],
            "model": {
                "rank": pmf.rank,
                "variables": len(pmf.domain),
                "parameters": found.n_parameters if subject.has_components else None,
                "averaged": subject.n_averaged,
                "unique": found.is_unique,
            },
            "fit": {"rows": found.n_fitted, **_fit(subject.about)},
            "rows": None if tally is None else _rows(tally),
            "likelihood": None if tally is None else _likelihood(found, tally),
            "goodness": None if goodness is None else _goodness(goodness),
            "marginals": None if compared is None else _marginals(compared),
            "components": _components(found) if subject.has_components else None,
            "traits": _traits(pmf) if has_traits(pmf) else None,
            "variables": _variables(found),
            "ranks": None if found.curve is None else _ranks(found.curve),
        }
    )


def _plain(part: Any) -> Any:
    """Return what JSON can hold: no arrays, no numbers that are not finite, no half characters."""
    if isinstance(part, dict):
        return {unicode_text(str(name)): _plain(one) for name, one in part.items()}
    if isinstance(part, list | tuple | np.ndarray):
        return [_plain(one) for one in part]
    if isinstance(part, np.generic):
        return _plain(part.item())
    if isinstance(part, float):
        return part if math.isfinite(part) else None
    return unicode_text(part) if isinstance(part, str) else part


def _fit(about: Mapping[str, str]) -> dict[str, str]:
    return {topic: text for topic, text in about.items() if topic not in ("rows", "rank")}


def _rows(tally: Tally) -> dict[str, Any]:
    return {
        "rows": tally.n_rows,
        "weight": tally.weight,
        "observed_cells": tally.n_observed,
        "share_missing": tally.share_missing,
        "unknown_cells": tally.n_unknown,
        "empty_rows": tally.n_empty,
        "impossible_rows": tally.n_impossible,
    }


def _likelihood(found: Findings, tally: Tally) -> dict[str, Any]:
    by_model, alone = tally.typical_probability or (None, None)
    return {
        "log_likelihood": None if tally.n_impossible else tally.log_likelihood,
        "criteria": criteria(found),
        "relative_entropy": tally.sharpness if found.subject.has_components else None,
        "typical_probability": by_model,
        "typical_probability_alone": alone,
    }


def _goodness(goodness: Goodness) -> dict[str, Any]:
    holds = goodness.has_chi2
    return {
        "g_squared": goodness.g_squared,
        "x_squared": goodness.x_squared,
        "df": goodness.df,
        "g_p_value": goodness.g_p_value if holds else None,
        "x_p_value": goodness.x_p_value if holds else None,
    }


def _marginals(compared: Comparison) -> dict[str, Any]:
    worst = [
        {
            "variables": misfit.names,
            "levels": list(map(text_of, misfit.levels)),
            "observed": misfit.observed,
            "fitted": misfit.fitted,
            "distance": misfit.distance,
            "chance": misfit.chance,
            "residual": misfit.residual,
            "rows": misfit.n_obs,
        }
        for misfit in compared.misfits[:MOST_WORST]
    ]
    return {"all": compared.n_all, "compared": len(compared.misfits), "worst": worst}


def _components(found: Findings) -> list[dict[str, Any]]:
    pmf, tally = found.subject.pmf, found.tally
    sizes = size_intervals(found.uncertainty)
    counted = tally.components if tally is not None and tally.components.total else None
    told = telling_levels(pmf, range(pmf.rank), MOST_TELLING)
    return [
        {
            "name": pmf.component_labels[f],
            "weight": pmf.weights[f],
            "by_posterior": None if counted is None else counted.by_posterior[f],
            "by_most_likely": None if counted is None else counted.by_component[f],
            "se": None if sizes is None else sizes.se[f],
            "low": None if sizes is None else sizes.low[f],
            "high": None if sizes is None else sizes.high[f],
            "telling": [
                {
                    "variable": one.name,
                    "levels": one.levels,
                    "within": one.within,
                    "overall": one.overall,
                }
                for one in told[f]
            ],
        }
        for f in range(pmf.rank)
    ]


def _variables(found: Findings) -> list[dict[str, Any]]:
    pmf, tally = found.subject.pmf, found.tally
    has_profiles = found.subject.has_components
    sizes = size_intervals(found.uncertainty) if has_profiles else None
    known = None
    if sizes is not None and found.uncertainty is not None:
        known = intervals(found.uncertainty, lambda one: np.concatenate(one.factors))
    parts = [slice(*pair) for pair in zip(pmf.domain.offsets, pmf.domain.offsets[1:], strict=False)]
    return [
        {
            "name": variable.name,
            "levels": list(map(text_of, variable.levels)),
            "share_missing": None if tally is None else tally.shares_missing[n],
            "observed": None if tally is None else observed_shares(tally, n),
            "fitted": pmf.factors[n] @ pmf.weights,
            "profiles": pmf.factors[n] if has_profiles else None,
            "profiles_low": None if known is None else known.low[parts[n]],
            "profiles_high": None if known is None else known.high[parts[n]],
        }
        for n, variable in enumerate(pmf.domain)
    ]


def _traits(pmf: JointPMF) -> dict[str, Any]:
    axes, variables = pmf.trait_axes, pmf.domain.variables
    lines = [
        {
            "variable": variables[line.variable].name,
            "level": None
            if line.level is None
            else text_of(variables[line.variable].levels[line.level]),
            "loadings": line.slopes,
            "explained": line.explained,
        }
        for line in axes.lines
    ]
    return {"shares": axes.shares, "loadings": lines}


def _ranks(curve: RankCurve) -> dict[str, Any]:
    scores = [
        {
            "rank": score.rank,
            "score": score.score,
            "standard_error": score.standard_error,
            "log_likelihood": score.log_likelihood,
            "parameters": score.n_parameters,
            "smallest": score.smallest,
            "relative_entropy": score.relative_entropy,
        }
        for score in curve.scores
    ]
    best = curve.rank if curve.has_best else None
    return {"criterion": curve.criterion, "best": best, "scores": scores}
