"""What a fit will cost: the plan against real fits."""

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


@pytest.mark.parametrize("size", [(20_000, 10, 4, 3), (200_000, 5, 3, 3)])
def test_as_much_memory_as_planned(size):
    n_rows, n_variables, levels, rank = size
    codes = random_rows(n_variables, levels, rank, n_rows)
    fit = partial(jp.fit_rows, rank=rank, max_iter=2, random_state=0)
    fit(codes)  # all is compiled and imported by now, on the very path that is measured
    plan = jp.plan(*size)
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
    assert forecast._trial(size[2], codes)[-1] == len(np.unique(codes.array, axis=0))


@pytest.mark.parametrize(
    "size", [(1, 3, 1, 1), (1, 3, 2, 4), (7, 3, 1, 2), (10, 3, 40, 2), (10**12, 10, 3, 2)]
)
def test_edges(size):
    plan = jp.plan(*size)
    assert 0 <= plan.start_seconds <= plan.seconds < np.inf
    assert 0 < plan.code_bytes < plan.memory < np.inf


def test_an_iteration_is_two_passes():
    plan = jp.plan(**SMALL, n_iter=7)
    assert plan.passes == 14
    assert plan.code_bytes == 12_000
    assert plan.seconds == pytest.approx(plan.start_seconds + 14 * plan.seconds_per_pass)


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
    plan = Plan("a table", 100, 200, 1.5e9, 1e9, 0.5, 90.0, 200.0)
    assert str(plan).splitlines() == [
        "a table",
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
    ],
)
def test_bad_input(bad, sentence):
    with pytest.raises(jp.JointPMFError, match=sentence):
        jp.plan(**(SMALL | bad))
