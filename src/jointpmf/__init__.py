"""The joint probability mass function of many discrete variables.

Learn it from an incomplete table (`fit_rows`, `fit_auto`, `fit_cells`; `fit_batches` for one larger
than memory) or from low-order marginals (`fit_marginals`), and ask it anything (`JointPMF`).
Nothing prints: messages go to the logger "jointpmf". Names are imported when they are first used.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointpmf import plots as plots
    from jointpmf.automatic import fit_auto, fit_marginals_auto
    from jointpmf.batches import fit_batches
    from jointpmf.cells import fit_cells
    from jointpmf.domain import MISSING, Domain, Variable
    from jointpmf.encoding import Codes, encode
    from jointpmf.errors import JointPMFError
    from jointpmf.estimators import PMFClassifier, PMFEstimator, PMFImputer, PMFRegressor
    from jointpmf.fit import fit_marginals
    from jointpmf.forecast import Plan, plan
    from jointpmf.imputation import impute
    from jointpmf.information import (
        entropy,
        factor_error,
        kl_divergence,
        mutual_information,
        pairwise_mutual_information,
        tensor_error,
    )
    from jointpmf.latent import Summary, summary
    from jointpmf.likelihood import fit_rows
    from jointpmf.limits import (
        ErrorLimits,
        Identifiability,
        error_limits,
        identifiability,
    )
    from jointpmf.marginals import Marginal, MarginalCounts, MarginalSet
    from jointpmf.pmf import JointPMF, average, load, random_pmf
    from jointpmf.rank import BootstrapTest, RankCurve, bootstrap_test, choose_rank
    from jointpmf.ratings import (
        Ratings,
        coverage,
        pivot_ratings,
        recommend,
        with_unrated_items,
    )
    from jointpmf.solvers.loop import Solution, Status

__version__ = "0.1.0"

logging.getLogger("jointpmf").addHandler(logging.NullHandler())

_NAMES_OF = {
    "automatic": ["fit_auto", "fit_marginals_auto"],
    "batches": ["fit_batches"],
    "cells": ["fit_cells"],
    "domain": ["MISSING", "Domain", "Variable"],
    "encoding": ["Codes", "encode"],
    "errors": ["JointPMFError"],
    "estimators": ["PMFClassifier", "PMFEstimator", "PMFImputer", "PMFRegressor"],
    "fit": ["fit_marginals"],
    "forecast": ["Plan", "plan"],
    "limits": ["ErrorLimits", "Identifiability", "error_limits", "identifiability"],
    "imputation": ["impute"],
    "information": [
        "entropy",
        "factor_error",
        "kl_divergence",
        "mutual_information",
        "pairwise_mutual_information",
        "tensor_error",
    ],
    "likelihood": ["fit_rows"],
    "marginals": ["Marginal", "MarginalCounts", "MarginalSet"],
    "pmf": ["JointPMF", "average", "load", "random_pmf"],
    "rank": ["BootstrapTest", "RankCurve", "bootstrap_test", "choose_rank"],
    "ratings": ["Ratings", "coverage", "pivot_ratings", "recommend", "with_unrated_items"],
    "solvers.loop": ["Solution", "Status"],
    "latent": ["Summary", "summary"],
}
_MODULES = ("plots",)
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
        return import_module(f"jointpmf.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'jointpmf' has no attribute {name!r}")
    found = getattr(import_module(f"jointpmf.{_HOME[name]}"), name)
    globals()[name] = found  # also where a submodule has the same name
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
