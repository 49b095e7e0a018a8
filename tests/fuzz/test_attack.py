"""A small fixed part of `make fuzz`, and what it has found."""

import numpy as np
import pytest

import jointpmf as jp
from fuzz import commands, files
from fuzz.attack import TARGETS, attacked
from jointpmf.fit.checkpoint import _read, _write

N_CASES = {"files": 60, "tables": 8, "commands": 8, "stops": 2}
"""Without kills, which take their time."""


@pytest.mark.parametrize("target", N_CASES)
def test_a_few_cases(target):
    assert attacked(target, seed=0, n_cases=N_CASES[target]) == N_CASES[target]
    assert target in TARGETS


@pytest.mark.parametrize("name", commands.FILES)
def test_a_file_of_the_attack_is_one_that_can_be_fitted_before_it_is_changed(tmp_path, name):
    for other, text in commands.FILES.items():
        (tmp_path / other).write_text(text)
    code, output = commands.run(["fit", name, "-o", "m", "--rank", "1", "--json"], tmp_path)
    assert code == 0, output


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("1.history", np.zeros((3, 5))),
        ("1.history", np.zeros(3)),
        ("1.weights", np.ones(3)),
        ("1.n_small", np.array(np.nan)),
        ("1.best_iteration", np.array(99)),
        ("1.iteration", np.array(np.inf)),
        ("one.history", np.zeros(1)),
    ],
)
def test_a_checkpoint_that_holds_something_else_is_one_sentence(tmp_path, name, array):
    for other, content in files._checkpoint().items():
        (tmp_path / other).write_bytes(content)
    path = tmp_path / "runs-0001.safetensors"
    texts, arrays = _read(path)
    _write(path, {"of": texts["of"]}, arrays | {name: array})
    with pytest.raises(jp.JointPMFError, match=r"damaged|gone on with"):
        files._fit(tmp_path)


@pytest.mark.parametrize("seed", [None, "x", "-1"])
def test_a_checkpoint_without_a_seed_that_is_one_is_one_sentence(tmp_path, seed):
    for name, content in files._checkpoint().items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "checkpoint.safetensors"
    texts, arrays = _read(path)
    kept = {"fit": texts["fit"]} | ({} if seed is None else {"seed": seed})
    _write(path, kept, arrays)
    with pytest.raises(jp.JointPMFError, match="damaged"):
        files._fit(tmp_path)
