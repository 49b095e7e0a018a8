"""Compile the inner loops that most tests use, so that no two of their processes do it.

Run by `make test` before the tests; what is compiled is kept in NUMBA_CACHE_DIR. A loop that is
missing here is compiled by the first test that needs it.
"""

import re
import sys

import numpy as np
from numba.core.dispatcher import Dispatcher

import jointpmf as jp


def compile_loops():
    """Fit and ask small models in all the usual ways."""
    domain = jp.Domain.of_sizes([2, 3, 4, 3, 2])
    truth = jp.random_pmf(domain, 3, random_state=0)
    table = truth.sample(300, random_state=0)
    codes = truth.sample(300, random_state=0, backend="codes")
    codes[::3, 0] = jp.MISSING
    codes = jp.Codes(domain, codes)
    for rows, rank in ((table, 3), (codes, 3), (codes, 8), (codes, 12)):  # of one to three vectors
        fitted = jp.fit_rows(rows, rank, random_state=0, max_iter=20).pmf
    fitted.log_probability(codes)
    fitted.predict_proba(codes, "x1")
    jp.impute(fitted, table)
    for options in ({}, {"method": "aoadmm"}, {"method": "newton"}):
        jp.fit_marginals(truth.marginals(3), 3, random_state=0, max_iter=20, **options)
    counted = jp.MarginalSet.from_table(codes, 3)  # exact marginals need no step after the start
    jp.fit_marginals(counted, 3, loss="squares", random_state=0, max_iter=20)
    jp.identifiability(truth.marginals(3), 3)
    truth.population(200, truth.marginals(2), random_state=0)
    ask_in_all_layouts(truth, codes)


def ask_in_all_layouts(pmf, codes):
    """Ask for the same with arrays that lie differently in memory, or are of other types."""
    for order in "CF":
        factors = [np.array(factor, order=order) for factor in pmf.factors]
        same = jp.JointPMF(pmf.domain, pmf.weights, factors)
        jp.fit_rows(codes, 3, random_state=0, max_iter=5, search=jp.Search(start=same))
        jp.fit_marginals(same.marginals(3), 3, max_iter=5, search=jp.Search(start=same))
        for kind in (np.int8, np.int32, np.int64):
            array = np.array(codes.array, kind, order=order)
            same.predict_proba(array, "x1")
            same.log_probability(jp.Codes(pmf.domain, array))
            jp.fit_rows(jp.Codes(pmf.domain, array), 3, random_state=0, max_iter=5)


def signatures():
    """Return the signatures of all compiled functions, by name; those of all widths are one."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("jointpmf.compiled."):
            for kind in vars(module).values():
                if isinstance(kind, Dispatcher) and kind.signatures:
                    texts = (
                        re.sub(r"UniTuple\((int64|bool), \d+\)", "lanes", str(s))
                        for s in kind.signatures
                    )
                    found[kind.__name__] = sorted(set(texts))
    return found


if __name__ == "__main__":
    compile_loops()
