"""A few small tables of every kind."""

import numpy as np

import jointpmf as jp
from jointpmf.solvers.table_cells import TableCells

DOMAIN = jp.Domain(
    [
        jp.Variable("stars", (1, 2, 3, 4)),
        jp.Variable("colour", ("red", "green", "blue")),
        jp.Variable("seen", ("no", "yes")),
        jp.Variable("planet", ("earth",)),
    ]
)
TRUTH = jp.random_pmf(DOMAIN, 3, random_state=2)


def counted(*names, n=500):
    """Return a table of the truth in whole people."""
    return jp.Marginal(names, np.rint(n * TRUTH.marginal(names).table()), n_obs=None)


PAIRS = [counted("stars", "colour"), counted("colour", "seen"), counted("stars", "planet")]
HIDDEN = PAIRS[0].table * 500
KINDS = {
    "plain": PAIRS,
    "bands": [
        jp.Marginal(("stars", "seen"), [[90, 30], [20, 60]], levels={"stars": [(1, 2), (3, 4)]}),
        *PAIRS,
    ],
    "percentages": [
        jp.Marginal(("seen", "colour"), [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], 200, given=["seen"]),
        *PAIRS,
    ],
    "part": [jp.Marginal(("seen",), [30, 70], where={"stars": [1, 2]}), *PAIRS],
    "hidden": [
        jp.Marginal(
            ("stars", "colour"), np.where(HIDDEN < 30, np.nan, HIDDEN), HIDDEN.sum(), bounds="<30"
        ),
        *PAIRS[1:],
    ],
    "noise": [jp.Marginal(("stars", "seen"), np.full((4, 2), 50.0), 400, noise=4.0), *PAIRS],
}


def cells_of(kind="plain"):
    """Return the cells of tables of one kind."""
    return TableCells(DOMAIN, jp.MarginalSet(DOMAIN, KINDS[kind]).measurements)
