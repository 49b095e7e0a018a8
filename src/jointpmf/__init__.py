"""The joint probability mass function of many discrete variables.

Learn it from an incomplete table (`fit_rows`) or from low-order marginals (`fit_marginals`), and
ask it anything (`JointPMF`). Nothing prints: messages go to the logger "jointpmf".
"""

import logging

from jointpmf.domain import MISSING, Domain, Variable
from jointpmf.encoding import Codes, encode
from jointpmf.errors import JointPMFError
from jointpmf.fit import fit_marginals
from jointpmf.identifiability import (
    ErrorLimits,
    Identifiability,
    error_limits,
    identifiability,
)
from jointpmf.information import (
    entropy,
    factor_error,
    kl_divergence,
    mutual_information,
    tensor_error,
)
from jointpmf.likelihood import fit_rows
from jointpmf.marginals import Marginal, MarginalCounts, MarginalSet
from jointpmf.pmf import JointPMF, average, load, random_pmf
from jointpmf.rank import BootstrapTest, RankCurve, bootstrap_test, choose_rank
from jointpmf.solvers.loop import Solution, Status
from jointpmf.summary import Summary, summary

__version__ = "0.1.0"

logging.getLogger("jointpmf").addHandler(logging.NullHandler())

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
    "RankCurve",
    "Solution",
    "Status",
    "Summary",
    "Variable",
    "average",
    "bootstrap_test",
    "choose_rank",
    "encode",
    "entropy",
    "error_limits",
    "factor_error",
    "fit_marginals",
    "fit_rows",
    "identifiability",
    "kl_divergence",
    "load",
    "mutual_information",
    "random_pmf",
    "summary",
    "tensor_error",
]
