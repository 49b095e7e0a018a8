"""What a fit will cost: the plan against real fits, and that it follows the library's choices.

Against real fits by a clock that ticks at every pass or step, so that no other process matters.
"""

import inspect
import time
import tracemalloc

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import forecast
from jointpmf.marginals import counting
from jointpmf.rows.table import Expectation
from jointpmf.solvers import implicit
from jointpmf.solvers.aoadmm import AOADMM
from jointpmf.solvers.newton import Newton

SMALL = {"n_rows": 2000, "n_variables": 6, "levels": 3, "rank": 2}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(forecast, "PROBE_SECONDS", 0.0)


@pytest.fixture
def clock(monkeypatch):
    """Time in passes of EM and steps of the coupled solvers."""
    ticks = [0]

    def ticking(method):
        def run(*arguments):
            ticks[0] += 1
            return method(*arguments)

        return run

    for owner, name in ((Expectation, "counts"), (AOADMM, "step"), (Newton, "step")):
        monkeypatch.setattr(owner, name, ticking(getattr(owner, name)))
    monkeypatch.setattr(time, "perf_counter", lambda: float(ticks[0]))
    monkeypatch.setattr(forecast, "PROBE_SECONDS", 50.0)
    return ticks


def rows_of(n_rows, n_variables, levels, rank):
    truth = jp.random_pmf(jp.Domain.of_sizes([levels] * n_variables), rank, random_state=0)
    return jp.Codes(truth.domain, truth.sample(n_rows, random_state=0, backend="codes"))


@pytest.mark.parametrize(
    ("size", "method"),
    [
        ((2000, 6, 3, 2), "likelihood"),  # all starts are tried
        ((100_000, 4, 2, 2), "likelihood"),  # sixteen distinct rows
        ((3000, 60, 4, 3), "likelihood"),  # components so clear that few iterations are made
        ((2000, 5, 3, 1), "likelihood"),
        ((5000, 8, 4, 3), "marginals"),
        ((5000, 6, 3, 2), "marginals"),
    ],
)
def test_as_many_passes_as_planned(size, method, clock):
    codes = rows_of(*size)
    before = clock[0]
    solution = jp.fit_rows(codes, size[-1], method=method, random_state=0)
    made = clock[0] - before
    plan = jp.plan(*size, method=method, n_iter=solution.n_iter)
    assert made / 2 < plan.seconds < 2 * made


@pytest.mark.parametrize(
    ("size", "method", "order", "max_iter"),
    [
        ((2000, 6, 3, 2), "likelihood", 3, 2),
        ((20_000, 10, 4, 5), "likelihood", 3, 2),
        ((200_000, 5, 3, 3), "likelihood", 3, 2),
        ((5000, 8, 4, 3), "marginals", 3, 25),
        ((3000, 40, 4, 3), "marginals", 2, 3),
        ((2000, 36, 4, 5), "marginals", 3, 3),
    ],
)
def test_as_much_memory_as_planned(size, method, order, max_iter):
    codes = rows_of(*size)
    plan = jp.plan(*size, method=method, order=order)
    tracemalloc.start()
    try:
        jp.fit_rows(codes, size[-1], method=method, order=order, max_iter=max_iter, random_state=0)
        held = tracemalloc.get_traced_memory()[1] + codes.array.nbytes
    finally:
        tracemalloc.stop()
    assert held / 2 < plan.memory < 2 * held


@pytest.mark.parametrize("size", [(50_000, 6, 3, 2), (20_000, 8, 4, 3), (3000, 30, 4, 2)])
def test_distinct_rows(size):
    table = forecast._Table(*size)
    found = len(np.unique(rows_of(*size).array, axis=0))
    assert forecast._Probe(table, 4000, size[1]).n_distinct == pytest.approx(found, rel=0.1)


def test_it_assumes_the_tolerance_of_a_fit():
    assert inspect.signature(jp.fit_rows).parameters["tol"].default == forecast.TOL


@pytest.mark.parametrize("method", ["likelihood", "marginals"])
def test_a_wide_table_is_tried_with_a_narrow_one(method, monkeypatch):
    tried = []

    class Recorded(forecast._Probe):
        def __init__(self, table, n_rows, n_variables):
            tried.append(n_rows * n_variables * table.rank)
            super().__init__(table, n_rows, n_variables)

    monkeypatch.setattr(forecast, "_Probe", Recorded)
    wide, wider = (jp.plan(1000, n, 2, 2, method=method) for n in (10_000, 100_000))
    assert max(tried) <= 4 * forecast.PROBE_WORK
    assert wider.flops_per_pass == pytest.approx(10 * wide.flops_per_pass)


def test_the_probe_does_not_count_all_subsets(monkeypatch):
    counted = []

    def count_tables(codes, subsets, weights):
        counted.append(codes.n_rows * len(subsets))
        return counting.count_tables(codes, subsets, weights)

    for module in (implicit, forecast):
        monkeypatch.setattr(module, "count_tables", count_tables)
    jp.plan(5000, 100, 4, 5, "marginals")
    assert 0 < sum(counted) < 1e8 < 5000 * 161_700


@pytest.mark.parametrize("method", ["likelihood", "marginals"])
@pytest.mark.parametrize(
    "size", [(1, 3, 1, 1), (1, 3, 2, 4), (7, 3, 1, 2), (10, 3, 40, 2), (10**12, 500, 3, 2)]
)
def test_edges(size, method):
    plan = jp.plan(*size, method=method)
    assert 0 <= plan.start_seconds <= plan.seconds < np.inf
    assert 0 < plan.code_bytes < plan.memory < np.inf


def test_likelihood():
    plan = jp.plan(**SMALL, n_iter=7)
    assert plan.passes == 14
    assert plan.code_bytes == 12_000
    assert plan.memory > plan.code_bytes
    assert plan.seconds > plan.passes * plan.seconds_per_pass
    assert "EM" in plan.how


def test_few_variables_are_counted():
    plan = jp.plan(**SMALL, method="marginals")
    assert plan.how == "20 marginals of order 3, counted in one pass over the rows, from 2 starts"
    assert plan.passes == 200


def test_many_variables_are_not():
    plan = jp.plan(5000, 200, 4, 3, method="marginals", n_iter=10)
    assert plan.how == "marginals of order 3, implicitly from the rows"
    assert plan.passes == 20
    assert plan.memory > plan.code_bytes + 5000 * 3 * 3 * 8


def test_rows_make_it_proportionally_longer(monkeypatch):
    monkeypatch.setattr(forecast, "_seconds", lambda run: 0.01)  # a machine that is never busy
    one, ten = (jp.plan(n, 300, 4, 3, method="marginals") for n in (10**6, 10**7))
    assert ten.seconds_per_pass == pytest.approx(10 * one.seconds_per_pass)
    assert ten.flops_per_pass == pytest.approx(10 * one.flops_per_pass)


def test_its_text_is_for_people():
    plan = forecast.Plan("a table", "EM", 100, 200, 1.5e9, 1e9, 2e9, 0.5, 3.0, 200.0)
    assert str(plan).splitlines() == [
        "a table",
        "  way      EM",
        "  passes   200 for 100 iterations",
        "  memory   1.5 GB, of which codes 1 GB",
        "  work     2.0e+09 flops a pass",
        "  time     0.5 s a pass, 3.3 min in all on this machine",
    ]


def test_a_considerable_start_is_told():
    plan = forecast.Plan("a table", "EM", 100, 200, 1.5e9, 1e9, 2e9, 0.5, 90.0, 200.0)
    assert str(plan).splitlines()[-1] == "           90 s of it before the first iteration"


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
