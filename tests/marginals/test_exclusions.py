"""Combinations that cannot happen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.marginals.exclusions import Exclusions

DOMAIN = jp.Domain(
    [
        jp.Variable("sex", ("female", "male")),
        jp.Variable("pregnant", ("no", "yes")),
        jp.Variable("age", ("child", "adult", "old")),
    ]
)
PREGNANT = {"sex": "male", "pregnant": "yes"}
UNIFORM = np.concatenate([np.full(size, 1 / size) for size in DOMAIN.sizes])


def tables(counts, impossible, names=("sex", "pregnant")):
    other = jp.Marginal(("age",), [10, 20, 30], 60)
    return jp.MarginalSet(DOMAIN, [jp.Marginal(names, counts, 60), other], impossible=impossible)


@given(st.integers(1, 6), st.integers(0, 2**31), st.lists(st.integers(0, 6), max_size=4))
def test_every_component_avoids_every_combination(rank, seed, chosen):
    combinations = [
        PREGNANT,
        {"pregnant": "yes", "age": ("child", "old")},
        {"age": "old"},
        {"sex": "female", "age": "child"},
        {"sex": "male", "pregnant": "no", "age": "adult"},
        {"sex": "male", "age": "child"},
        {"pregnant": "no", "age": "adult"},
    ]
    found = Exclusions.of(DOMAIN, [combinations[k] for k in chosen])
    allowed = found.drawn(rank, UNIFORM, np.random.default_rng(seed))
    if allowed is None:
        return
    parts = np.split(allowed, DOMAIN.offsets[1:-1])
    for part in parts:
        assert part.any(axis=0).all()
    for cell in found.cells:
        may_be = [parts[n][mask].any(axis=0) for n, mask in cell.items()]
        assert not np.logical_and.reduce(may_be).any()


def test_without_any_all_is_allowed():
    none = Exclusions.of(DOMAIN, [])
    assert not none
    assert none.drawn(2, UNIFORM, np.random.default_rng(0)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tables([[10, 5], [45, 0]], ["male"]), "mapping of names to levels"),
        (lambda: tables([[10, 5], [45, 0]], [{}]), "mapping of names to levels"),
        (lambda: tables([[10, 5], [45, 0]], [{"sex": "other"}]), "other"),
        (lambda: tables([[10, 5], [45, 0]], [{"height": "tall"}]), "no variable 'height'"),
        (
            lambda: tables([[10, 5], [45, 0]], [{"sex": "male"}, {"sex": "female"}]),
            "leave 'sex' no level",
        ),
        (lambda: tables([[10, 5], [41, 4]], [PREGNANT]), "counts 4 in a combination"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(jp.JointPMFError, match=message):
        call()


def test_combinations_that_contradict_each_other():
    every = [{"sex": a, "pregnant": b} for a in ("female", "male") for b in ("no", "yes")]
    singles = [jp.Marginal((v.name,), np.full(v.size, 60 / v.size), 60) for v in DOMAIN.variables]
    with pytest.raises(jp.JointPMFError, match="contradict"):
        jp.fit_marginals(jp.MarginalSet(DOMAIN, singles, impossible=every), 3, random_state=0)


def test_part_of_the_population_may_be_impossible():
    men = jp.Marginal(("pregnant",), [20, 1], 21, where={"sex": "male"})
    ages = jp.Marginal(("age", "sex"), np.full((3, 2), 10), 60)
    with pytest.raises(jp.JointPMFError, match="counts 1 in a combination"):
        jp.MarginalSet(DOMAIN, [men, ages], impossible=[PREGNANT])
