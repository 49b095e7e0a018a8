"""What is printed of an object fits a screen, however much it holds."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.rows.source import Table

DOMAIN = jp.Domain(
    [jp.Variable(f"v{n}\n{'é' * 300}", tuple(f"level {k}" for k in range(50))) for n in range(60)]
)
PMF = jp.random_pmf(DOMAIN, rank=2, random_state=0)
CODES = jp.Codes(DOMAIN, PMF.sample(300, random_state=0, backend="codes"))
TABLE = Table.of_codes(CODES)
PAIRS = jp.random_pmf(jp.Domain.of_sizes([2] * 12), rank=2, random_state=0).marginals(order=2)
OBJECTS = {
    "domain": DOMAIN,
    "codes": CODES,
    "model": PMF,
    "table": TABLE,
    "rows": TABLE.rows,
    "solution": jp.fit_rows(CODES, rank=2, random_state=0, max_iter=3),
    "solution of tables": jp.fit_marginals(PAIRS, rank=2, random_state=0, max_iter=3),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_a_line_or_two(name):
    text = repr(OBJECTS[name])
    assert len(text) < 400
    assert "\n" not in text


def test_what_is_said():
    domain = jp.Domain.of_sizes([2, 3])
    assert repr(domain) == "Domain(x0, x1; 2 variables, 5 levels)"
    codes = jp.Codes(domain, np.array([[0, 2], [1, -1]]))
    assert str(codes) == "Codes(x0, x1; 2 variables, 2 rows)"
    text = repr(jp.fit_rows([["rain"], ["sun"]], rank=1))
    assert text.startswith("Solution(JointPMF(x0; 1 variables, rank 1), CONVERGED, objective 0.693")
    assert text.endswith("fitted to 2 rows)")
