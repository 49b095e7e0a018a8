"""Compile the inner loops that most tests use, so that no two of their processes do it.

Run by `make test` before the tests; what is compiled is kept in NUMBA_CACHE_DIR. A loop that is
missing here is compiled by the first test that needs it.
"""

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
    jp.fit_rows(codes, 3, objective="marginals", random_state=0, max_iter=20)
    jp.identifiability(truth.marginals(3), 3)


if __name__ == "__main__":
    compile_loops()
