"""What a fit will cost: the arithmetic of the plan, and that it follows the library's choices."""

import pytest

import jointpmf as jp
from jointpmf import forecast

SMALL = {"n_rows": 2000, "n_variables": 6, "levels": 3, "rank": 2}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(forecast, "PROBE_SECONDS", 0.0)


def test_likelihood():
    plan = jp.plan(**SMALL, n_iter=7)
    assert plan.passes == 14
    assert plan.code_bytes == 12_000
    assert plan.memory > plan.code_bytes
    assert plan.seconds > plan.passes * plan.seconds_per_pass
    assert "EM" in plan.how


def test_few_variables_are_counted():
    plan = jp.plan(**SMALL, method="marginals")
    assert plan.how == "20 marginals of order 3, counted in one pass over the rows"


def test_many_variables_are_not():
    plan = jp.plan(5000, 200, 4, 3, method="marginals", n_iter=10)
    assert plan.how == "marginals of order 3, implicitly from the rows"
    assert plan.passes == 20
    assert plan.memory > plan.code_bytes + 5000 * 3 * 3 * 8


@pytest.mark.parametrize("method", ["likelihood", "marginals"])
def test_rows_make_it_proportionally_longer(method, monkeypatch):
    monkeypatch.setattr(forecast, "_seconds", lambda run: 0.01)  # a machine that is never busy
    one, ten = (jp.plan(n, 300, 4, 3, method=method) for n in (10**6, 10**7))
    assert ten.seconds_per_pass == pytest.approx(10 * one.seconds_per_pass)
    assert ten.flops_per_pass == pytest.approx(10 * one.flops_per_pass)


def test_its_text_is_for_people():
    plan = forecast.Plan("a table", "EM", 100, 200, 1.5e9, 1e9, 2e9, 0.5, 200.0)
    assert str(plan).splitlines() == [
        "a table",
        "  way      EM",
        "  passes   200 for 100 iterations",
        "  memory   1.5 GB, of which codes 1 GB",
        "  work     2.0e+09 flops a pass",
        "  time     0.5 s a pass, 3.3 min in all on this machine",
    ]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"n_rows": 0}, "n_rows"),
        ({"n_variables": 2.5}, "n_variables"),
        ({"levels": -1}, "levels"),
        ({"rank": 0}, "rank"),
        ({"n_iter": -1}, "n_iter"),
        ({"method": "magic"}, "method"),
        ({"method": "marginals", "order": 1}, "order"),
        ({"method": "marginals", "order": 7}, "order 7 is larger than the 6 variables"),
    ],
)
def test_bad_input(bad, sentence):
    with pytest.raises(jp.JointPMFError, match=sentence):
        jp.plan(**(SMALL | bad))
