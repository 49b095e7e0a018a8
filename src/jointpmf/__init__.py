"""The joint probability mass function of many discrete variables.

Learn it from an incomplete table (`fit_rows`) or from low-order marginals (`fit_marginals`), and
ask it anything (`JointPMF`). Nothing prints: messages go to the logger "jointpmf". Names are
imported when they are first used.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointpmf.data import datasets as datasets
    from jointpmf.data.encoding import Codes as Codes
    from jointpmf.data.encoding import encode as encode
    from jointpmf.data.ratings import Ratings as Ratings
    from jointpmf.data.ratings import coverage as coverage
    from jointpmf.data.ratings import pivot_ratings as pivot_ratings
    from jointpmf.data.ratings import recommend as recommend
    from jointpmf.domain import MISSING as MISSING
    from jointpmf.domain import Domain as Domain
    from jointpmf.domain import Variable as Variable
    from jointpmf.errors import JointPMFError as JointPMFError
    from jointpmf.estimators import PMFClassifier as PMFClassifier
    from jointpmf.estimators import PMFEstimator as PMFEstimator
    from jointpmf.estimators import PMFImputer as PMFImputer
    from jointpmf.estimators import PMFRegressor as PMFRegressor
    from jointpmf.fit.forecast import plan as plan
    from jointpmf.fit.marginals import fit_marginals as fit_marginals
    from jointpmf.fit.rows import fit_rows as fit_rows
    from jointpmf.fit.settings import Checkpoint as Checkpoint
    from jointpmf.fit.settings import Coupled as Coupled
    from jointpmf.fit.settings import HiddenCells as HiddenCells
    from jointpmf.fit.settings import Likelihood as Likelihood
    from jointpmf.fit.settings import Search as Search
    from jointpmf.fit.solution import Solution as Solution
    from jointpmf.fit.unrated import with_unrated_items as with_unrated_items
    from jointpmf.judge.bootstrap import bootstrap_test as bootstrap_test
    from jointpmf.judge.error_limits import error_limits as error_limits
    from jointpmf.judge.identifiability import identifiability as identifiability
    from jointpmf.judge.information import entropy as entropy
    from jointpmf.judge.information import factor_error as factor_error
    from jointpmf.judge.information import kl_divergence as kl_divergence
    from jointpmf.judge.information import mutual_information as mutual_information
    from jointpmf.judge.information import (
        pairwise_mutual_information as pairwise_mutual_information,
    )
    from jointpmf.judge.information import tensor_error as tensor_error
    from jointpmf.judge.rank import choose_rank as choose_rank
    from jointpmf.judge.summary import summary as summary
    from jointpmf.marginals.marginal_set import Marginal as Marginal
    from jointpmf.marginals.marginal_set import MarginalCounts as MarginalCounts
    from jointpmf.marginals.marginal_set import MarginalSet as MarginalSet
    from jointpmf.pmf import JointPMF as JointPMF
    from jointpmf.pmf import average as average
    from jointpmf.pmf import load as load
    from jointpmf.pmf import random_pmf as random_pmf
    from jointpmf.predict.impute import impute as impute
    from jointpmf.rows.reading import Files as Files
    from jointpmf.show import plots as plots
    from jointpmf.solvers.loop import Status as Status

__version__ = "0.1.0"

logging.getLogger("jointpmf").addHandler(logging.NullHandler())

_NAMES_OF = {
    "domain": ["Domain", "MISSING", "Variable"],
    "errors": ["JointPMFError"],
    "data.encoding": ["Codes", "encode"],
    "data.ratings": ["Ratings", "coverage", "pivot_ratings", "recommend"],
    "marginals.marginal_set": ["Marginal", "MarginalCounts", "MarginalSet"],
    "pmf": ["JointPMF", "average", "load", "random_pmf"],
    "rows.reading": ["Files"],
    "solvers.loop": ["Status"],
    "fit.settings": ["Checkpoint", "Coupled", "HiddenCells", "Likelihood", "Search"],
    "fit.solution": ["Solution"],
    "fit.rows": ["fit_rows"],
    "fit.marginals": ["fit_marginals"],
    "fit.forecast": ["plan"],
    "fit.unrated": ["with_unrated_items"],
    "judge.identifiability": ["identifiability"],
    "judge.error_limits": ["error_limits"],
    "judge.information": [
        "entropy",
        "factor_error",
        "kl_divergence",
        "mutual_information",
        "pairwise_mutual_information",
        "tensor_error",
    ],
    "judge.bootstrap": ["bootstrap_test"],
    "judge.rank": ["choose_rank"],
    "judge.summary": ["summary"],
    "predict.impute": ["impute"],
    "estimators": ["PMFClassifier", "PMFEstimator", "PMFImputer", "PMFRegressor"],
}
_MODULES = {"datasets": "data.datasets", "plots": "show.plots"}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    "MISSING",
    "Checkpoint",
    "Codes",
    "Coupled",
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
    "Variable",
    "average",
    "bootstrap_test",
    "choose_rank",
    "coverage",
    "encode",
    "entropy",
    "error_limits",
    "factor_error",
    "fit_marginals",
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
    return sorted({*__all__, *_MODULES, "__version__"})
