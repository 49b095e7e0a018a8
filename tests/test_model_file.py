"""Model files: what goes in comes out, and nothing else gets in."""

import datetime
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import jointpmf as jp
from jointpmf.command.models import put_model, read_pmf
from jointpmf.model_file import domain_to_json, read_about, write_model
from support.traits import planted, pmf_of


@pytest.fixture
def pmf():
    domain = jp.Domain(
        [
            jp.Variable("text", ("a", "ß", "")),
            jp.Variable("number", (1, 2.5)),
            jp.Variable("truth", (False, True)),
            jp.Variable("day", (datetime.date(2020, 1, 2), datetime.date(2021, 3, 4))),
            jp.Variable("moment", (datetime.datetime(2020, 1, 2, 3, 4), datetime.datetime.max)),
            jp.Variable("span", (datetime.timedelta(days=1), datetime.timedelta(microseconds=3))),
            jp.Variable("price", (Decimal("1.10"), Decimal("2"))),
            jp.Variable("bin", ("<1", ">=1"), values=(0.5, 3), edges=(-np.inf, 1, np.inf)),
        ]
    )
    return jp.random_pmf(domain, 3, 0)


def test_a_model_comes_back_bit_for_bit(pmf, tmp_path):
    pmf.save(tmp_path / "m.safetensors")
    again = jp.load(tmp_path / "m.safetensors")
    assert again.domain == pmf.domain
    assert [type(v.levels[0]) for v in again.domain] == [type(v.levels[0]) for v in pmf.domain]
    for a, b in zip((pmf.weights, *pmf.factors), (again.weights, *again.factors), strict=True):
        np.testing.assert_array_equal(a, b)


def test_writing_replaces_and_leaves_nothing_behind(pmf, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_text("old")
    pmf.save(path)
    assert jp.load(path).rank == 3
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_one_sentence(pmf, tmp_path):
    with pytest.raises(jp.JointPMFError, match=r"cannot write .*: No such file or directory"):
        pmf.save(tmp_path / "nowhere" / "m.safetensors")
    with pytest.raises(jp.JointPMFError, match=r"cannot write .*: Is a directory"):
        pmf.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_level_that_no_file_can_hold_is_named(tmp_path):
    pmf = jp.random_pmf(jp.Domain([jp.Variable("pair", ((1, 2), (3, 4)))]), 1, 0)
    with pytest.raises(jp.JointPMFError, match=r"level \(1, 2\) of 'pair'"):
        pmf.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_what_is_said_about_a_model_comes_back(pmf, tmp_path):
    path = tmp_path / "m.safetensors"
    about = {"method": "likelihood", "rows": "944", "by": "Zoë"}
    write_model(path, pmf.domain, pmf.weights, pmf.factors, about)
    assert read_about(path) == about
    assert jp.load(path).domain == pmf.domain
    pmf.save(path)
    assert read_about(path) == {}


@pytest.mark.parametrize("about", [{"rows": 3}, {3: "rows"}, ["rows"]])
def test_what_is_said_about_a_model_must_be_text(pmf, tmp_path, about):
    with pytest.raises(jp.JointPMFError, match="must be texts, not"):
        write_model(tmp_path / "m", pmf.domain, pmf.weights, pmf.factors, about)
    assert list(tmp_path.iterdir()) == []


def test_the_same_model_is_the_same_file(pmf, tmp_path):
    pmf.save(tmp_path / "a")
    pmf.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_full_disk_is_one_sentence_and_stays_a_device(pmf):
    device = os.stat("/dev/full")
    with pytest.raises(jp.JointPMFError, match=r"cannot write /dev/full: No space left on device"):
        pmf.save("/dev/full")
    assert os.stat("/dev/full").st_rdev == device.st_rdev


def test_a_disk_that_fills_up_leaves_the_old_file(pmf, tmp_path):
    path = tmp_path / "m.safetensors"
    pmf.save(path)
    old = path.read_bytes()
    code = (
        "import jointpmf as jp, resource, sys; pmf = jp.load(sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); pmf.save(sys.argv[1])"
    )
    ended = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "JointPMFError: cannot write" in ended.stderr
    assert "File too large" in ended.stderr
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == old


def test_a_link_stays_a_link(pmf, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    pmf.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert jp.load(tmp_path / "target").rank == 3


def test_the_format_can_be_read_as_its_description_says(pmf, tmp_path):
    """The reader in docs/format.md, which uses nothing but json and numpy."""
    path = tmp_path / "m.safetensors"
    pmf.save(path)
    text = (Path(__file__).parent.parent / "docs/format.md").read_text()
    namespace = {}
    exec(text.split("```python\n")[1].split("```")[0], namespace)
    domain, weights, factors = namespace["read_model"](path)
    assert [variable["name"] for variable in domain["variables"]] == list(pmf.domain.names)
    np.testing.assert_array_equal(weights, pmf.weights)
    for mine, theirs in zip(pmf.factors, factors, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_names_of_components_come_back_and_old_files_have_none(pmf, tmp_path):
    named = pmf.reordered([0, 1, 2], names=["ß", "two\nlines", "</b>"])
    named.save(tmp_path / "named")
    pmf.save(tmp_path / "plain")
    assert jp.load(tmp_path / "named").component_names == named.component_names
    assert jp.load(tmp_path / "plain").component_names is None
    assert b"components" not in (tmp_path / "plain").read_bytes()


def test_a_fit_keeps_the_names_of_its_components(tmp_path):
    solution = jp.fit_rows([["rain", "wet"], ["sun", "dry"], ["sun", None]], rank=2, random_state=0)
    named = replace(solution, pmf=solution.pmf.reordered(names=["bad", "good"]))
    named.save(tmp_path / "m")
    assert jp.load(tmp_path / "m").component_names == ("bad", "good")
    assert read_about(tmp_path / "m")["rank"] == "2"


def test_a_name_of_a_component_that_is_no_unicode_is_refused(pmf, tmp_path):
    with pytest.raises(jp.JointPMFError, match="not Unicode"):
        pmf.reordered(names=["a", "b", "\ud800"]).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a"], "components in .*m cannot be read.*each of 3"),
        (["a", "b", "a"], "names 'a' twice"),
        (["a", "b", 3], "must be a text, not 3"),
        (["a", "b", ""], "must be a text, not ''"),
        ("abc", "list of names"),
        (7, "list of names"),
    ],
)
def test_a_file_with_bad_names_of_components_is_refused(pmf, tmp_path, names, says):
    path = tmp_path / "m"
    domain = json.loads(domain_to_json(pmf.domain))
    tampered(pmf, path, domain=json.dumps({**domain, "components": names}))
    with pytest.raises(jp.JointPMFError, match=says):
        jp.load(path)


def tampered(pmf, path, tensors=None, **metadata):
    """Write the model with some tensors or metadata replaced."""
    pmf.save(path)
    with safe_open(path, framework="numpy") as file:
        meta = file.metadata()
    save_file(load_file(path) | (tensors or {}), path, {**meta, **metadata})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "is not a jointpmf model"),
        ({"version": "9"}, "format version '9'"),
        ({"domain": "{"}, "domain .* cannot be read"),
        ({"domain": '{"variables": []}'}, "weights and a factor per variable"),
        ({"tensors": {"weights": np.array([0.5, 0.4, 0.2])}}, "'weights' .* do not sum to one"),
        ({"tensors": {"weights": np.array([1.5, -0.5, 0.0])}}, "something else than prob"),
        ({"tensors": {"weights": np.array([np.nan, 0.5, 0.5])}}, "something else than prob"),
        ({"tensors": {"weights": np.ones(1)}}, "'weights'.* have shape|'text'.* have shape"),
        ({"tensors": {"factor.0": np.full((2, 3), 0.5)}}, "'text' .* have shape"),
        ({"tensors": {"weights": np.array(1.0)}}, "'weights'.* have shape"),
        ({"tensors": {"weights": np.array([0.2, 0.3, 0.5], np.float32)}}, "something else than"),
        ({"about": "[]"}, "says about its model"),
        ({"checksum": "00"}, "changed after it was written"),
        ({"tensors": {"weights": np.array([0.2, 0.3, 0.5])}}, "changed after it was written"),
        ({"tensors": {"more": np.ones(1)}}, "weights and a factor per variable"),
    ],
)
def test_a_file_that_was_changed_is_refused(pmf, tmp_path, change, says):
    path = tmp_path / "m.safetensors"
    tampered(pmf, path, **change)
    with pytest.raises(jp.JointPMFError, match=says):
        jp.load(path)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(jp.JointPMFError, match="cannot read"):
        jp.load(tmp_path / "absent")
    for content in (b"", b"junk", b"\xff" * 100):
        (tmp_path / "junk").write_bytes(content)
        with pytest.raises(jp.JointPMFError, match="not a model file"):
            jp.load(tmp_path / "junk")


@pytest.fixture
def placed():
    """Return a model with traits: two spaces, one of them with waves, and free components."""
    return pmf_of(planted(n_points=8), planted(n_points=5, n_waves=3, seed=1), n_free=2)


class TestTraits:
    def test_they_come_back_bit_for_bit(self, placed, tmp_path):
        placed.save(tmp_path / "m")
        again = jp.load(tmp_path / "m")
        assert len(again.trait_models) == 2
        for mine, theirs in zip(placed.trait_models, again.trait_models, strict=True):
            for a, b in zip(mine.space, theirs.space, strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(mine.intercepts, theirs.intercepts)
            np.testing.assert_array_equal(mine.coefficients, theirs.coefficients)
            np.testing.assert_array_equal(mine.factors, theirs.factors)
        rows = placed.sample(20, random_state=0)
        assert placed.traits(rows).equals(again.traits(rows))
        assert placed.loadings().equals(again.loadings())

    def test_a_fit_writes_them_too(self, placed, tmp_path):
        jp.Solution(placed, jp.Status.CONVERGED, 1.0, []).save(tmp_path / "m")
        assert len(jp.load(tmp_path / "m").trait_models) == 2
        assert read_about(tmp_path / "m")["rank"] == "15"

    def test_a_model_without_them_has_no_word_of_them(self, pmf, tmp_path):
        pmf.save(tmp_path / "m")
        assert b"traits" not in (tmp_path / "m").read_bytes()

    def test_a_reader_that_does_not_know_them_reads_the_rest(self, placed, tmp_path):
        placed.save(tmp_path / "m")
        text = (Path(__file__).parent.parent / "docs/format.md").read_text()
        namespace = {}
        exec(text.split("```python\n")[1].split("```")[0], namespace)
        _, weights, factors = namespace["read_model"](tmp_path / "m")
        np.testing.assert_array_equal(weights, placed.weights)
        np.testing.assert_array_equal(np.vstack(factors), np.vstack(placed.factors))

    def test_their_description_computes_the_same_columns(self, placed, tmp_path):
        """The function in docs/format.md, which uses nothing but json and numpy."""
        placed.save(tmp_path / "m")
        text = (Path(__file__).parent.parent / "docs/format.md").read_text()
        namespace = {}
        for block in text.split("```python\n")[1:3]:
            exec(block.split("```")[0], namespace)
        for k, model in enumerate(placed.trait_models):
            found = namespace["trait_columns"](tmp_path / "m", k)
            np.testing.assert_allclose(np.vstack(found), model.factors, rtol=1e-12)

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"0.points": np.ones((8, 3))}, "do not fit its variables and each other"),
            ({"0.points": np.ones(8)}, r"points of traits .* shape \(8,\)"),
            ({"0.points": np.ones((0, 2))}, "points of traits .* shape"),
            ({"0.points": np.ones((90, 2))}, "95 points for 15 components"),
            ({"0.points": np.full((8, 2), np.nan)}, "0.points .* else than finite numbers"),
            ({"0.points": np.ones((8, 2), np.float32)}, "0.points .* else than finite numbers"),
            ({"0.directions": np.ones((2, 4))}, "do not fit its variables and each other"),
            ({"0.phases": np.array(1.0)}, "do not fit its variables and each other"),
            ({"0.intercepts": np.ones(3)}, "do not fit its variables and each other"),
            ({"0.centres": np.ones(3)}, "do not fit its variables and each other"),
            ({"0.coefficients": np.ones((8, 3))}, r"shape \(8, 3\), not \(8, 2\)"),
            ({"0.coefficients": np.full((8, 2), 1e308)}, "no finite columns"),
            ({"0.scales": np.array([1.0, 0, 0, 0, -1.0])}, "scale -1 for the values of 'age'"),
            ({"0.scales": np.array([1.0, 1.0, 0, 0, 1.0])}, "scale 1 for the values of 'party'"),
            ({"0.scales": np.array([1.0, 0, 0, 0, 1e-308])}, "scales too small"),
            ({"2.points": np.ones((1, 2))}, "for each trait model"),
            ({"0.more": np.ones(1)}, "for each trait model"),
            ({"x.points": np.ones(1)}, "for each trait model"),
        ],
    )
    def test_arrays_that_are_no_traits_are_refused(self, placed, tmp_path, change, says):
        path = tmp_path / "m"
        change = {f"traits.{key}": np.asarray(array) for key, array in change.items()}
        tampered(placed, path, change)
        digest = hashlib.sha256()
        found = load_file(path)
        for k in range(2):
            for part in PARTS:
                digest.update(found[f"traits.{k}.{part}"].tobytes())
        tampered(placed, path, change, traits=digest.hexdigest())
        with pytest.raises(jp.JointPMFError, match=says):
            jp.load(path)

    def test_more_waves_than_fit_into_memory_are_refused(self, tmp_path, monkeypatch):
        pmf_of(planted(n_points=8, n_waves=100)).save(tmp_path / "m")
        monkeypatch.setattr("jointpmf.trait_file._MOST_FEATURES", 800)
        with pytest.raises(jp.JointPMFError, match="more waves than fit into memory"):
            jp.load(tmp_path / "m")

    def test_points_without_weight_are_refused(self, tmp_path):
        weights = np.repeat([0.0, 1.0], [8, 2])
        pmf_of(planted(n_points=8), weights=weights, n_free=2).save(tmp_path / "m")
        with pytest.raises(jp.JointPMFError, match="no row lies at the points"):
            jp.load(tmp_path / "m")

    def test_damage_is_noticed(self, placed, tmp_path):
        tampered(placed, tmp_path / "m", {"traits.1.phases": np.zeros(3)})
        with pytest.raises(jp.JointPMFError, match=r"traits in .* were changed after"):
            jp.load(tmp_path / "m")
        placed.save(tmp_path / "m")
        with safe_open(tmp_path / "m", framework="numpy") as file:
            meta = file.metadata()
        kept = {k: t for k, t in load_file(tmp_path / "m").items() if not k.startswith("traits")}
        save_file(kept, tmp_path / "m", meta)
        with pytest.raises(jp.JointPMFError, match=r"traits in .* were changed after"):
            jp.load(tmp_path / "m")

    def test_the_command_keeps_them(self, placed, tmp_path):
        put_model(str(tmp_path / "m"), placed, {})
        assert len(read_pmf(str(tmp_path / "m")).trait_models) == 2


PARTS = ("points", "directions", "phases", "intercepts", "coefficients", "centres", "scales")
