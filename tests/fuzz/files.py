"""Changed files of models, traits, replicates and checkpoints: a sentence, or a feasible model."""

import contextlib
import io
import json
import struct
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load as tensors_in

import jointpmf as jp
from jointpmf.fit.checkpoint import _checksum
from jointpmf.judge.replicate_file import _BESIDE, read_replicates
from jointpmf.model_file import model_bytes
from jointpmf.tensor_file import checksum_of, header_and_numbers, with_header
from jointpmf.trait_file import _PARTS
from support.feasibility import feasible, is_feasible
from support.traits import MIXED, planted, pmf_of

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2**31, 2**63, 10**30, 1e308, float("nan"), float("-inf")]),
    st.sampled_from(["", "0", "F64", "I64", "BF16", "x" * 300, "\0", "\x1b[2J", "__proto__"]),
    st.sampled_from([[], {}, [[]], [0], [0, 8], [0, 10**15], {"a": 1}, [[[[[]]]]]]),
    st.text(max_size=5),
)
"""What is in JSON where something else should be."""

ROWS = jp.Codes(MIXED, jp.random_pmf(MIXED, 2, 0).sample(60, random_state=0, backend="codes"))


@cache
def originals():
    """Return the bytes of a file of each kind, with the texts and tensors that are in its seal."""
    plain = jp.random_pmf(MIXED, 3, 0)
    traits = pmf_of(planted(n_points=8), n_free=1)
    texts = ("domain", "about")
    return {
        "model": (_bytes_of(plain, component_names=("a", "b", "c")), texts),
        "traits": (_bytes_of(traits, trait_models=traits.trait_models), texts),
        "replicates": (_replicates(plain), ("domain", "resampling")),
        "checkpoint": (_checkpoint()["checkpoint.safetensors"], None),
        "runs": (_checkpoint()["runs-0001.safetensors"], None),
    }


def _bytes_of(pmf, **known):
    return model_bytes(pmf.domain, pmf.weights, pmf.factors, {"method": "guess"}, **known)


def _replicates(pmf):
    from jointpmf.judge.uncertainty import Uncertainty

    models = [jp.random_pmf(MIXED, 3, k) for k in range(4)]
    sure = Uncertainty(
        pmf,
        np.array([one.weights for one in models]),
        np.array([np.concatenate(one.factors) for one in models]),
        np.ones(4, bool),
        pmf,
        "bayesian",
    )
    with tempfile.TemporaryDirectory() as folder:
        sure.save(f"{folder}/r")
        return Path(folder, "r").read_bytes()


def _fit(folder, **options):
    search = jp.Search(n_starts=1, start="rows")
    options = {"max_iter": 12, "random_state": 0, "search": search} | options
    return jp.fit_rows(ROWS, 2, checkpoint=jp.Checkpoint(folder, every=1), **options)


@cache
def _checkpoint():
    """Return the files of a checkpoint, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        _fit(f"{folder}/c", callback=lambda step, _: step.iteration == 5)
        return {path.name: path.read_bytes() for path in Path(folder, "c").iterdir()}


def attack(data):
    """Change a file some times, perhaps seal it again, and read it."""
    kind = data.draw(st.sampled_from(sorted(originals())))
    content, texts = originals()[kind]
    for _ in range(data.draw(st.integers(1, 3))):
        content = data.draw(st.sampled_from(CHANGES))(data, content)
    if data.draw(st.booleans()):
        content = _sealed(content, texts, [*tensors_in(originals()[kind][0])])
    with contextlib.suppress(jp.JointPMFError), tempfile.TemporaryDirectory() as folder:
        READ[kind](Path(folder), content)


def _read_model(folder, content):
    path = folder / "m.safetensors"
    path.write_bytes(content)
    pmf = jp.load(path)
    assert feasible(pmf)
    pmf.sample(2, random_state=0)
    repr(pmf)
    pmf.save(folder / "again.safetensors")


def _read_replicates(_, content):
    found = read_replicates(io.BytesIO(content))
    for weights, factors in zip(found.weights, found.factors, strict=True):
        assert is_feasible(found.pmf.domain, weights, factors)


def _go_on(name, folder, content):
    (folder / "c").mkdir()
    for other, own in (_checkpoint() | {name: content}).items():
        (folder / "c" / other).write_bytes(own)
    assert feasible(_fit(folder / "c").pmf)


READ = {
    "model": _read_model,
    "traits": _read_model,
    "replicates": _read_replicates,
    "checkpoint": partial(_go_on, "checkpoint.safetensors"),
    "runs": partial(_go_on, "runs-0001.safetensors"),
}


def _flipped(data, content):
    at = data.draw(st.integers(0, max(len(content) - 1, 0)))
    return content[:at] + bytes([data.draw(st.integers(0, 255))]) + content[at + 1 :]


def _cut(data, content):
    return content[: data.draw(st.integers(0, len(content)))]


def _longer(data, content):
    at = data.draw(st.integers(0, len(content)))
    return content[:at] + data.draw(st.binary(max_size=20)) + content[at:]


def _other_length(data, content):
    lengths = [0, 1, 2, 7, 8, len(content), 10**8, 2**31, 2**63, 2**64 - 1]
    return data.draw(st.sampled_from(lengths)).to_bytes(8, "little") + content[8:]


def _other_number(data, content):
    found = _parsed(content)
    if found is None or len(found[1]) < 8:
        return content
    header, numbers = found
    at = 8 * data.draw(st.integers(0, len(numbers) // 8 - 1))
    odd = [0.0, -1.0, 2.0, 1e308, 5e-324, float("nan"), float("inf")]
    number = struct.pack("<d", data.draw(st.sampled_from(odd)))
    return with_header(header, numbers[:at] + number + numbers[at + 8 :])


def _other_header(data, content):
    found = _parsed(content)
    if found is None:
        return content
    header, numbers = found
    _change_somewhere(data, header)
    return _with(header, numbers, content)


def _other_text(data, content):
    """Change a text of the metadata that is JSON itself."""
    found = _parsed(content)
    metadata = found and found[0].get("__metadata__")
    if not isinstance(metadata, dict) or not metadata:
        return content
    key = data.draw(st.sampled_from(sorted(metadata)))
    try:
        text = json.loads(metadata[key])
    except (TypeError, ValueError, RecursionError):
        return content
    _change_somewhere(data, text)
    metadata[key] = json.dumps(text)
    return _with(*found, content)


CHANGES = [_flipped, _cut, _longer, _other_length, _other_number, _other_header, _other_text]


def _change_somewhere(data, inside):
    """Replace, delete or repeat something in nested lists and dicts."""
    while isinstance(inside, (dict, list)) and inside:
        keys = sorted(inside) if isinstance(inside, dict) else range(len(inside))
        key = data.draw(st.sampled_from(keys))
        deeper = inside[key]
        if isinstance(deeper, (dict, list)) and deeper and data.draw(st.booleans()):
            inside = deeper
            continue
        what = data.draw(st.sampled_from(["replace", "delete", "repeat"]))
        if what == "delete":
            del inside[key]
        elif what == "repeat" and isinstance(inside, list):
            inside.insert(key, deeper)
        else:
            inside[key] = data.draw(ODD)
        return


def _parsed(content):
    try:
        header, numbers = header_and_numbers(content)
    except (ValueError, RecursionError, OverflowError):
        return None
    return (header, numbers) if isinstance(header, dict) else None


def _with(header, numbers, content):
    try:
        return with_header(header, numbers)
    except (TypeError, ValueError, UnicodeError):
        return content


def _sealed(content, texts, names):
    """Return a file whose checksum is right again, so that what is in it is looked at."""
    found = _parsed(content)
    metadata = found and found[0].get("__metadata__")
    if not isinstance(metadata, dict):
        return content
    header, numbers = found
    metadata.pop("checksum", None)
    try:
        if texts is None:
            metadata["checksum"] = _checksum(header, numbers)
        else:
            tensors = tensors_in(content)
            own = [tensors[name] for name in _in_order(names, "weights", "factor.", *_BESIDE)]
            beside = [tensors[name] for name in _in_order(names, *_parts_of_traits())]
            if beside:
                metadata["traits"] = checksum_of((), beside)
            metadata["checksum"] = checksum_of([metadata[key] for key in texts], own)
    except Exception:  # too broken to be sealed
        return content
    return _with(header, numbers, content)


def _parts_of_traits():
    return [f"traits.0.{part}" for part in _PARTS]


def _in_order(names, *beginnings):
    """Return names in the order of how they begin."""
    return [name for begin in beginnings for name in sorted(names) if name.startswith(begin)]
