"""Files of replicates: what goes in comes out, to seven digits, and nothing else gets in."""

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import jointpmf as jp
from jointpmf.judge.replicate_file import (
    Replicates,
    read_beside,
    read_replicates,
    replicates_path,
    write_replicates,
)
from jointpmf.judge.uncertainty import Uncertainty

DOMAIN = jp.Domain(
    [
        jp.Variable("text", ("a", "ß", "")),
        jp.Variable("bin", ("<1", ">=1"), values=(0.5, 3), edges=(-np.inf, 1, np.inf)),
    ]
)


def made(n=5, rank=3, own_rank=3, seed=0, names=None):
    """Return made-up replicates; those of an average may have another rank than the model."""
    pmf = jp.random_pmf(DOMAIN, own_rank, seed)
    pmf = jp.JointPMF(DOMAIN, pmf.weights, pmf.factors, names)
    models = [jp.random_pmf(DOMAIN, rank, seed + 1 + k) for k in range(n)]
    return Uncertainty(
        pmf,
        np.array([one.weights for one in models]),
        np.array([np.concatenate(one.factors) for one in models]),
        np.arange(n) % 2 == 0,
        jp.random_pmf(DOMAIN, rank, seed + 99),
        "bayesian",
    )


@pytest.fixture
def sure():
    return made()


@pytest.mark.parametrize(("rank", "own_rank"), [(3, 3), (2, 6), (1, 1)])
def test_replicates_come_back(tmp_path, rank, own_rank):
    sure = made(rank=rank, own_rank=own_rank)
    sure.save(tmp_path / "r")
    again = Uncertainty.load(tmp_path / "r")
    assert again.pmf.domain == sure.pmf.domain
    for one, other in ((sure.pmf, again.pmf), (sure.reference, again.reference)):
        for a, b in zip((one.weights, *one.factors), (other.weights, *other.factors), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(again.weights, sure.weights, rtol=1e-6)
    np.testing.assert_allclose(again.factors, sure.factors, rtol=1e-6)
    np.testing.assert_array_equal(again.is_clear, sure.is_clear)
    assert again.is_clear.dtype == bool
    assert again.resampling == "bayesian"


def test_intervals_stay_the_same(sure, tmp_path):
    sure.save(tmp_path / "r")
    before, after = (one.marginal(["text"]) for one in (sure, Uncertainty.load(tmp_path / "r")))
    for column in ("estimate", "se", "low", "high"):
        np.testing.assert_allclose(after[column], before[column], atol=1e-6)


def test_replicates_are_feasible_after_reading(tmp_path):
    sure = made(n=50, rank=7, own_rank=7)
    sure.save(tmp_path / "r")
    again = read_replicates(tmp_path / "r")
    for weights, factors in zip(again.weights, again.factors, strict=True):
        assert abs(weights.sum() - 1) < 1e-14
        for factor in np.split(factors, DOMAIN.offsets[1:-1]):
            np.testing.assert_allclose(factor.sum(axis=0), 1, atol=1e-14)


def test_what_is_possible_stays_possible_and_what_is_not_does_not_become_so(tmp_path):
    sure = made(n=2, rank=1, own_rank=1)
    sure.factors[0, :3, 0] = 1e-60, 0.0, 1 - 1e-60
    sure.save(tmp_path / "r")
    rare, never, _ = read_replicates(tmp_path / "r").factors[0, :3, 0]
    assert 0 < rare < 1e-37
    assert never == 0


def test_replicates_take_half_of_the_bytes(tmp_path):
    sure = made(n=200, rank=10, own_rank=10)
    sure.save(tmp_path / "r")
    in_memory = sure.weights.nbytes + sure.factors.nbytes
    assert os.path.getsize(tmp_path / "r") < 0.55 * in_memory


def test_the_same_replicates_are_the_same_file(sure, tmp_path):
    sure.save(tmp_path / "a")
    made().save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_writing_replaces_and_leaves_nothing_behind(sure, tmp_path):
    path = tmp_path / "r"
    path.write_text("old")
    sure.save(path)
    assert len(Uncertainty.load(path)) == 5
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(jp.JointPMFError, match=r"cannot write .*: Is a directory"):
        sure.save(tmp_path)
    with pytest.raises(jp.JointPMFError, match="named by a path, not by 3"):
        sure.save(3)


def test_names_of_components_come_back_and_name_the_reference(tmp_path):
    made(names=["young", "old", "ß"]).save(tmp_path / "r")
    again = Uncertainty.load(tmp_path / "r")
    assert again.pmf.component_names == ("young", "old", "ß")
    assert again.reference.component_names == ("young", "old", "ß")
    made(names=["young", "old", "ß"], rank=2).save(tmp_path / "r")
    assert read_replicates(tmp_path / "r").reference.component_names is None


def test_a_file_can_come_from_a_stream(sure, tmp_path):
    sure.save(tmp_path / "r")
    assert len(read_replicates(io.BytesIO((tmp_path / "r").read_bytes())).weights) == 5


def test_the_format_can_be_read_as_its_description_says(sure, tmp_path):
    """The reader in docs/format.md, which uses nothing but json and numpy."""
    sure.save(tmp_path / "r")
    text = (Path(__file__).parents[2] / "docs/format.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    namespace = {}
    exec(next(block for block in blocks if "def read_replicates" in block), namespace)
    found = namespace["read_replicates"](tmp_path / "r")
    np.testing.assert_array_equal(found["weights"], sure.pmf.weights)
    np.testing.assert_allclose(found["replicates.factors"], sure.factors, rtol=1e-6)


def tampered(path, tensors=None, without=(), **metadata):
    """Write made-up replicates with some tensors or metadata replaced."""
    made().save(path)
    with safe_open(path, framework="numpy") as file:
        meta = {key: text for key, text in (file.metadata() | metadata).items() if text is not None}
    arrays = load_file(path) | (tensors or {})
    save_file({key: array for key, array in arrays.items() if key not in without}, path, meta)


def f4(*shape):
    return np.full(shape, 1 / 3, np.float32)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "jointpmf"}, "not a jointpmf file of replicates: its format is 'jointpmf'"),
        ({"version": "2"}, "format version '2'"),
        ({"domain": "{"}, "domain .* cannot be read"),
        ({"resampling": "counts"}, "changed after it was written"),
        ({"resampling": None}, "does not say how its replicates were made"),
        ({"checksum": None}, "changed after it was written"),
        ({"without": ["is_clear"]}, "does not hold weights and a factor per variable, and ref"),
        ({"tensors": {"more": np.ones(1)}}, "does not hold weights and a factor per variable"),
        ({"tensors": {"weights": np.array([0.5, 0.4, 0.2])}}, "'weights' .* do not sum to one"),
        ({"tensors": {"weights": np.array([0.2, 0.3, 0.5])}}, "changed after it was written"),
        ({"tensors": {"replicates.weights": f4(3)}}, r"have shape \(3,\), not two"),
        ({"tensors": {"replicates.weights": f4(1, 3)}}, r"have shape \(1, 3\), not two"),
        ({"tensors": {"replicates.weights": f4(5, 0)}}, r"have shape \(5, 0\), not two"),
        ({"tensors": {"replicates.factors": f4(5, 4, 3)}}, r"shape \(5, 4, 3\), not .*\(5, 5, 3\)"),
        ({"tensors": {"replicates.factors": np.ones((5, 5, 3))}}, "is float64 of shape"),
        ({"tensors": {"reference.weights": np.full(2, 0.5)}}, r"shape \(2,\), not .*\(3,\)"),
        ({"tensors": {"reference.factors": np.ones((5, 2))}}, r"shape \(5, 2\), not .*\(5, 3\)"),
        ({"tensors": {"is_clear": np.ones(4, np.uint8)}}, r"shape \(4,\), not uint8 of .*\(5,\)"),
        ({"tensors": {"is_clear": np.ones(5, bool)}}, "is_clear .* is bool"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path, change, says):
    tampered(tmp_path / "r", **change)
    with pytest.raises(jp.JointPMFError, match=says):
        Uncertainty.load(tmp_path / "r")


@pytest.mark.parametrize(
    ("field", "place", "number", "says"),
    [
        ("weights", (1, 0), np.nan, "something else than probabilities for the replicates"),
        ("weights", (1, 0), -0.5, "something else than probabilities for the replicates"),
        ("weights", (1, 0), 0.99, "replicates in .* do not sum to one"),
        ("factors", (1, 0, 0), np.inf, "something else than probabilities for the replicates"),
        ("factors", (1, 0, 0), -0.5, "something else than probabilities for the replicates"),
        ("factors", (1, 0, 0), 1.5, "replicates in .* do not sum to one"),
    ],
)
def test_numbers_that_are_no_probabilities_are_refused(tmp_path, field, place, number, says):
    """The checksum is right: whoever wrote the file was wrong."""
    sure = made()
    array = getattr(sure, field).copy()
    array[place] = number
    fields = {name: getattr(sure, name) for name in Replicates._fields} | {field: array}
    write_replicates(tmp_path / "r", Replicates(**fields))
    with pytest.raises(jp.JointPMFError, match=says):
        read_replicates(tmp_path / "r")


def test_a_model_is_no_replicates_and_replicates_are_no_model(sure, tmp_path):
    sure.save(tmp_path / "r")
    sure.pmf.save(tmp_path / "m")
    with pytest.raises(jp.JointPMFError, match="model file: its format is 'jointpmf replicates'"):
        jp.load(tmp_path / "r")
    with pytest.raises(jp.JointPMFError, match="file of replicates: its format is 'jointpmf'"):
        Uncertainty.load(tmp_path / "m")


def test_what_is_no_file_of_replicates_is_refused(tmp_path):
    with pytest.raises(jp.JointPMFError, match="cannot read"):
        Uncertainty.load(tmp_path / "absent")
    for content in (b"", b"junk", b"\xff" * 100, struct.pack("<Q", 2) + b"[]"):
        (tmp_path / "junk").write_bytes(content)
        with pytest.raises(jp.JointPMFError, match="not a file of replicates"):
            Uncertainty.load(tmp_path / "junk")


def test_a_damaged_file_is_one_sentence_wherever_it_is_damaged(sure, tmp_path):
    """Any byte changed, and any end cut off: a JointPMFError, or a header that says the same."""
    sure.save(tmp_path / "r")
    whole = (tmp_path / "r").read_bytes()
    generator = np.random.default_rng(0)
    refusals = []
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(generator.integers(1, 4)):
            content[generator.integers(len(content))] = generator.integers(256)
        try:
            again = read_replicates(io.BytesIO(bytes(content)))
        except jp.JointPMFError as error:
            refusals.append(str(error))
        else:
            np.testing.assert_array_equal(again.pmf.weights, sure.pmf.weights)
    assert len(refusals) > 380
    assert not any("\n" in refusal for refusal in refusals)
    for end in range(0, len(whole), 37):
        with pytest.raises(jp.JointPMFError):
            read_replicates(io.BytesIO(whole[:end]))


def test_replicates_lie_beside_their_model():
    assert replicates_path("a/m.safetensors") == Path("a/m.replicates.safetensors")
    assert replicates_path("a/m.x") == Path("a/m.x.replicates.safetensors")
    assert replicates_path(Path("m")) == Path("m.replicates.safetensors")


def test_replicates_beside_a_model_must_be_of_it(sure, tmp_path):
    path = tmp_path / "m.safetensors"
    sure.pmf.save(path)
    with pytest.raises(jp.JointPMFError, match=r"no replicates of .*fit --replicates 200"):
        read_beside(path, sure.pmf)
    sure.save(replicates_path(path))
    assert len(read_beside(path, jp.load(path)).weights) == 5
    for other in (
        jp.random_pmf(DOMAIN, 3, 1),
        jp.random_pmf(DOMAIN, 2, 0),
        jp.random_pmf(jp.Domain.of_sizes([3, 2]), 3, 0),
        jp.random_pmf(jp.Domain.of_sizes([3]), 3, 0),
    ):
        with pytest.raises(jp.JointPMFError, match="of another model than"):
            read_beside(path, other)


def test_a_model_whose_components_got_names_keeps_its_replicates(sure, tmp_path):
    path = tmp_path / "m.safetensors"
    sure.save(replicates_path(path))
    named = sure.pmf.reordered([0, 1, 2], names=["young", "old", "ß"])
    named.save(path)
    found = read_beside(path, jp.load(path))
    assert found.pmf.component_names == found.reference.component_names == ("young", "old", "ß")
