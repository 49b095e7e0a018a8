"""What a fit will cost: the plan against real fits, and that it follows the library's choices."""

import logging
import tracemalloc
from functools import partial

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import forecast
from jointpmf.fit.forecast import Plan

SMALL = {"n_rows": 2000, "n_variables": 6, "levels": 3, "rank": 2}


def random_rows(n_variables, levels, rank, n_rows):
    """Return rows of a random model, which repeat as rows do."""
    model = jp.random_pmf(jp.Domain.of_sizes([levels] * n_variables), rank, 0)
    return jp.Codes(model.domain, model.sample(n_rows, random_state=0, backend="codes"))


@pytest.mark.parametrize(
    ("size", "objective", "max_iter"),
    [
        ((20_000, 10, 4, 3), jp.Likelihood(), 2),
        ((200_000, 5, 3, 3), jp.Likelihood(), 2),
        ((100_000, 12, 5, 3), jp.Coupled(3), 5),
        ((3000, 40, 4, 3), jp.Coupled(2), 3),
        ((5000, 10, 8, 3), jp.Coupled(4), 5),
    ],
)
def test_as_much_memory_as_planned(size, objective, max_iter):
    n_rows, n_variables, levels, rank = size
    codes = random_rows(n_variables, levels, rank, n_rows)
    fit = partial(jp.fit_rows, rank=rank, objective=objective, max_iter=max_iter, random_state=0)
    fit(codes)  # all is compiled and imported by now, on the very path that is measured
    method = "likelihood" if isinstance(objective, jp.Likelihood) else "marginals"
    plan = jp.plan(*size, method=method, order=getattr(objective, "order", 3))
    tracemalloc.start()
    try:
        fit(codes)
        held = tracemalloc.get_traced_memory()[1] + codes.array.nbytes
    finally:
        tracemalloc.stop()
    assert held / 2 < plan.memory < 2 * held


@pytest.mark.parametrize("size", [(6, 3, 2, 50_000), (30, 4, 2, 3000)])
def test_rows_that_repeat_are_passed_once(size):
    codes = random_rows(*size)
    assert forecast._likelihood(size[2], codes)[-1] == len(np.unique(codes.array, axis=0))


@pytest.mark.parametrize("method", ["likelihood", "marginals"])
@pytest.mark.parametrize(
    "size", [(1, 3, 1, 1), (1, 3, 2, 4), (7, 3, 1, 2), (10, 3, 40, 2), (10**12, 10, 3, 2)]
)
def test_edges(size, method):
    plan = jp.plan(*size, method=method)
    assert 0 <= plan.start_seconds <= plan.seconds < np.inf
    assert 0 < plan.code_bytes < plan.memory < np.inf


def test_likelihood():
    plan = jp.plan(**SMALL, n_iter=7)
    assert plan.passes == 14
    assert plan.code_bytes == 12_000
    assert plan.seconds == pytest.approx(plan.start_seconds + 14 * plan.seconds_per_pass)
    assert plan.how == "maximum likelihood by EM"


def test_few_variables_are_counted():
    plan = jp.plan(**SMALL, method="marginals")
    assert plan.how == "marginals of order 3, counted in one pass over the rows, from 2 starts"
    assert plan.passes == 200


def test_many_variables_are_not():
    plan = jp.plan(1000, 10, 8, 3, method="marginals", order=4, n_iter=10)
    assert plan.how == "marginals of order 4, implicitly from the rows"
    assert plan.passes == 20
    assert plan.memory > plan.code_bytes + 1000 * 3 * 3 * 8


def test_what_is_said_of_small_tables_is_not_told(caplog):
    caplog.set_level(logging.INFO, "jointpmf")
    jp.plan(**SMALL, method="marginals", order=2)
    assert "identifiable" not in caplog.text
    assert logging.getLogger("jointpmf").level == logging.INFO


def test_it_leaves_the_tracing_of_memory_as_it_was():
    tracemalloc.start()
    try:
        jp.plan(**SMALL)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    jp.plan(**SMALL)
    assert not tracemalloc.is_tracing()


def test_its_text_is_for_people():
    plan = Plan("a table", "EM", 100, 200, 1.5e9, 1e9, 0.5, 90.0, 200.0)
    assert str(plan).splitlines() == [
        "a table",
        "  way      EM",
        "  passes   200 for 100 iterations",
        "  memory   1.5GB, of which codes 1GB",
        "  time     0.5 s a pass, 3.3 min in all on this machine,",
        "           90 s of it before the first iteration",
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
