"""The joint probability mass function of many discrete variables.

Learn it from an incomplete table (`fit_rows`, `fit_auto`, `fit_cells`; `fit_batches` for one larger
than memory) or from low-order marginals (`fit_marginals`), and ask it anything (`JointPMF`).
Nothing prints: messages go to the logger "jointpmf". Names are imported when they are first used.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointpmf.data import datasets as datasets
    from jointpmf.data.codes import Codes
    from jointpmf.data.encode import encode
    from jointpmf.data.pivot import pivot_ratings
    from jointpmf.data.ratings import Ratings
    from jointpmf.domain import MISSING, Domain, Variable
    from jointpmf.errors import JointPMFError
    from jointpmf.estimators import PMFClassifier, PMFEstimator, PMFImputer, PMFRegressor
    from jointpmf.fit.automatic import fit_auto, fit_marginals_auto
    from jointpmf.fit.batches import fit_batches
    from jointpmf.fit.cells import fit_cells
    from jointpmf.fit.coupled import fit_marginals
    from jointpmf.fit.forecast import Plan, plan
    from jointpmf.fit.rows import fit_rows
    from jointpmf.fit.unrated import with_unrated_items
    from jointpmf.judge.identifiability import (
        ErrorLimits,
        Identifiability,
        error_limits,
        identifiability,
    )
    from jointpmf.judge.information import (
        entropy,
        factor_error,
        kl_divergence,
        mutual_information,
        pairwise_mutual_information,
        tensor_error,
    )
    from jointpmf.judge.rank import BootstrapTest, RankCurve, bootstrap_test, choose_rank
    from jointpmf.judge.summary import Summary, summary
    from jointpmf.marginals.counts import MarginalCounts
    from jointpmf.marginals.marginal import Marginal
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.pmf import JointPMF, average, load, random_pmf
    from jointpmf.predict.impute import impute
    from jointpmf.predict.recommend import coverage, recommend
    from jointpmf.show import plots as plots
    from jointpmf.solvers.loop import Solution, Status

__version__ = "0.1.0"

logging.getLogger("jointpmf").addHandler(logging.NullHandler())

_NAMES_OF = {
    "fit.automatic": ["fit_auto", "fit_marginals_auto"],
    "fit.batches": ["fit_batches"],
    "fit.cells": ["fit_cells"],
    "domain": ["MISSING", "Domain", "Variable"],
    "data.codes": ["Codes"],
    "data.encode": ["encode"],
    "errors": ["JointPMFError"],
    "estimators": ["PMFClassifier", "PMFEstimator", "PMFImputer", "PMFRegressor"],
    "fit.coupled": ["fit_marginals"],
    "fit.forecast": ["Plan", "plan"],
    "judge.identifiability": ["ErrorLimits", "Identifiability", "error_limits", "identifiability"],
    "predict.impute": ["impute"],
    "judge.information": [
        "entropy",
        "factor_error",
        "kl_divergence",
        "mutual_information",
        "pairwise_mutual_information",
        "tensor_error",
    ],
    "fit.rows": ["fit_rows"],
    "marginals.counts": ["MarginalCounts"],
    "marginals.marginal": ["Marginal"],
    "marginals.marginal_set": ["MarginalSet"],
    "pmf": ["JointPMF", "average", "load", "random_pmf"],
    "judge.rank": ["BootstrapTest", "RankCurve", "bootstrap_test", "choose_rank"],
    "data.pivot": ["pivot_ratings"],
    "data.ratings": ["Ratings"],
    "predict.recommend": ["coverage", "recommend"],
    "fit.unrated": ["with_unrated_items"],
    "solvers.loop": ["Solution", "Status"],
    "judge.summary": ["Summary", "summary"],
}
_MODULES = {"datasets": "data.datasets", "plots": "show.plots"}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    "MISSING",
    "BootstrapTest",
    "Codes",
    "Domain",
    "ErrorLimits",
    "Identifiability",
    "JointPMF",
    "JointPMFError",
    "Marginal",
    "MarginalCounts",
    "MarginalSet",
    "PMFClassifier",
    "PMFEstimator",
    "PMFImputer",
    "PMFRegressor",
    "Plan",
    "RankCurve",
    "Ratings",
    "Solution",
    "Status",
    "Summary",
    "Variable",
    "average",
    "bootstrap_test",
    "choose_rank",
    "coverage",
    "encode",
    "entropy",
    "error_limits",
    "factor_error",
    "fit_auto",
    "fit_batches",
    "fit_cells",
    "fit_marginals",
    "fit_marginals_auto",
    "fit_rows",
    "identifiability",
    "impute",
    "kl_divergence",
    "load",
    "mutual_information",
    "pairwise_mutual_information",
    "pivot_ratings",
    "plan",
    "random_pmf",
    "recommend",
    "summary",
    "tensor_error",
    "with_unrated_items",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the file that it lives in, the first time it is asked for."""
    if name in _MODULES:
        return import_module(f"jointpmf.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'jointpmf' has no attribute {name!r}")
    found = getattr(import_module(f"jointpmf.{_HOME[name]}"), name)
    globals()[name] = found  # also where a submodule has the same name
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
