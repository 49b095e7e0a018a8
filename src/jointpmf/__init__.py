"""The joint probability mass function of many discrete variables.

Learn it from an incomplete table (`fit_rows`) or from low-order marginals (`fit_marginals`), and
ask it anything (`JointPMF`). Nothing prints: messages go to the logger "jointpmf". Names are
imported when they are first used, so that importing the package takes no time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jointpmf.data import datasets as datasets
    from jointpmf.data.codes import Codes
    from jointpmf.data.encode import encode
    from jointpmf.data.pivot import pivot_ratings
    from jointpmf.data.ratings import Ratings
    from jointpmf.domain import MISSING, Domain, Variable
    from jointpmf.errors import JointPMFError
    from jointpmf.estimators.density import PMFEstimator
    from jointpmf.estimators.imputer import PMFImputer
    from jointpmf.estimators.supervised import PMFClassifier, PMFRegressor
    from jointpmf.fit.marginals import fit_marginals
    from jointpmf.fit.rows import fit_rows
    from jointpmf.fit.settings import Checkpoint, HiddenCells, Likelihood, Search, Traits
    from jointpmf.fit.solution import Solution
    from jointpmf.judge.bootstrap import bootstrap_test
    from jointpmf.judge.bounds import bounds
    from jointpmf.judge.identifiability import identifiability
    from jointpmf.judge.information import (
        entropy,
        factor_error,
        kl_divergence,
        mutual_information,
        tensor_error,
    )
    from jointpmf.judge.rank import choose_rank
    from jointpmf.judge.summary import summary
    from jointpmf.judge.uncertainty import Uncertainty
    from jointpmf.marginals.counts import MarginalCounts
    from jointpmf.marginals.marginal import Marginal
    from jointpmf.marginals.marginal_set import MarginalSet
    from jointpmf.mixing import average
    from jointpmf.pmf import JointPMF, load, random_pmf
    from jointpmf.predict.impute import impute
    from jointpmf.predict.recommend import coverage, recommend
    from jointpmf.rows.reading import Files
    from jointpmf.show import plots as plots
    from jointpmf.solvers.loop import Status

__version__ = "0.1.0"

_NAMES_OF = {
    "domain": ["Domain", "MISSING", "Variable"],
    "errors": ["JointPMFError"],
    "data.codes": ["Codes"],
    "data.encode": ["encode"],
    "data.pivot": ["pivot_ratings"],
    "data.ratings": ["Ratings"],
    "predict.recommend": ["coverage", "recommend"],
    "marginals.counts": ["MarginalCounts"],
    "marginals.marginal": ["Marginal"],
    "marginals.marginal_set": ["MarginalSet"],
    "mixing": ["average"],
    "pmf": ["JointPMF", "load", "random_pmf"],
    "rows.reading": ["Files"],
    "solvers.loop": ["Status"],
    "fit.settings": ["Checkpoint", "HiddenCells", "Likelihood", "Search", "Traits"],
    "fit.solution": ["Solution"],
    "fit.rows": ["fit_rows"],
    "fit.marginals": ["fit_marginals"],
    "judge.identifiability": ["identifiability"],
    "judge.information": [
        "entropy",
        "factor_error",
        "kl_divergence",
        "mutual_information",
        "tensor_error",
    ],
    "judge.bootstrap": ["bootstrap_test"],
    "judge.bounds": ["bounds"],
    "judge.rank": ["choose_rank"],
    "judge.summary": ["summary"],
    "judge.uncertainty": ["Uncertainty"],
    "predict.impute": ["impute"],
    "estimators.density": ["PMFEstimator"],
    "estimators.imputer": ["PMFImputer"],
    "estimators.supervised": ["PMFClassifier", "PMFRegressor"],
}
_MODULES = {"datasets": "data.datasets", "plots": "show.plots"}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    "MISSING",
    "Checkpoint",
    "Codes",
    "Domain",
    "Files",
    "HiddenCells",
    "JointPMF",
    "JointPMFError",
    "Likelihood",
    "Marginal",
    "MarginalCounts",
    "MarginalSet",
    "PMFClassifier",
    "PMFEstimator",
    "PMFImputer",
    "PMFRegressor",
    "Ratings",
    "Search",
    "Solution",
    "Status",
    "Traits",
    "Uncertainty",
    "Variable",
    "average",
    "bootstrap_test",
    "bounds",
    "choose_rank",
    "coverage",
    "encode",
    "entropy",
    "factor_error",
    "fit_marginals",
    "fit_rows",
    "identifiability",
    "impute",
    "kl_divergence",
    "load",
    "mutual_information",
    "pivot_ratings",
    "random_pmf",
    "recommend",
    "summary",
    "tensor_error",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the file that it lives in, the first time it is asked for."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"jointpmf.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'jointpmf' has no attribute {name!r}")
    found = getattr(import_module(f"jointpmf.{_HOME[name]}"), name)
    globals()[name] = found  # also where a submodule has the same name
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
