"""Fits that are killed and gone on with: the same bits, or one clear sentence."""

import hashlib
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import jointpmf as jp
from jointpmf.command.main import main
from jointpmf.errors import CheckpointError
from jointpmf.fit import checkpoint
from jointpmf.fit.checkpoint import SavedFit
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.settings import Effort, Kinds
from jointpmf.marginals.tables import TableLimits
from jointpmf.rows import parts
from jointpmf.solvers.loop import Loop
from support.small_fits import fit_rows, settings

DOMAIN = jp.Domain.of_sizes([4, 3, 5, 4, 3, 4])
TRUTH = jp.random_pmf(DOMAIN, rank=4, random_state=0)
ROWS = TRUTH.sample(300, random_state=1, backend="codes")
ROWS[np.random.default_rng(0).random(ROWS.shape) < 0.3] = jp.MISSING
OTHER_ROWS = TRUTH.sample(100, random_state=2, backend="codes")
TRIPLES = jp.MarginalSet.from_table(ROWS, 3, domain=DOMAIN)
FEW_TRIPLES = jp.MarginalSet.from_table(
    jp.random_pmf(jp.Domain.of_sizes([4] * 5), 2, 0).sample(5000, random_state=0), 3
)
WEIGHTS = np.linspace(0.5, 2, len(ROWS))
HIDDEN = np.random.default_rng(3).random(ROWS.shape) < 0.2


MEMORY = Path("/dev/shm")
"""Where files are in memory: there a write that waits for the disk does not wait."""


@pytest.fixture
def tmp_path(tmp_path):
    """An empty folder, in memory if possible: thousands of checkpoints are written here."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def rows_fit(rank=4, source=None, **how):
    def fit(**options):
        table = ROWS if source is None else source()
        options = {"domain": DOMAIN, "random_state": 0, "max_iter": 60} | how | options
        return fit_rows(table, rank, **options)

    return fit


def marginals_fit(rank=4, marginals=TRIPLES, **how):
    def fit(**options):
        options = {"random_state": 0, "max_iter": 80} | how | options
        return jp.fit_marginals(marginals, rank, **settings(**options))

    return fit


def every(n_iter, folder):
    """Return a checkpoint that is written however little time has passed."""
    return jp.Checkpoint(folder, every=n_iter, seconds=0.0)


def misfit(pmf):
    return -float(pmf.log_probability(OTHER_ROWS).mean())


FEW_KINDS = Kinds(row_ranks=(4,), cell_points=(8, 16), step_points=8)
SMALL = Effort(most_starts=2, patience=2, sample_rows=100, step_rows=50, block_bytes=2000)

FITS = {
    "rows": rows_fit(start="rows"),
    "the best of many starts": rows_fit(tol=0.0, max_iter=30),
    "random start, weights": rows_fit(start="random", sample_weight=WEIGHTS),
    "given start": rows_fit(start=jp.random_pmf(DOMAIN, 4, 5)),
    "smoothing": rows_fit(start="rows", smoothing=0.5, towards="marginal"),
    "validation by rows": rows_fit(start="random", validation=0.2, tol=0.0),
    "validation by other rows": rows_fit(start="rows", validation=OTHER_ROWS),
    "validation by cells": rows_fit(start="rows", validation=HIDDEN, scoring="error"),
    "several starts": rows_fit(n_starts=3, start="random"),
    "an average": rows_fit(n_average=3, validation=0.2, smoothing=0.5),
    "marginals": marginals_fit(),
    "marginals, random start": marginals_fit(start="random"),
    "marginals, given start": marginals_fit(start=jp.random_pmf(DOMAIN, 4, 5)),
    "marginals, validation": marginals_fit(validation=misfit),
    "aoadmm": marginals_fit(method="aoadmm"),
    "aoadmm, random start": marginals_fit(method="aoadmm", start="random"),
    "aoadmm, validation": marginals_fit(method="aoadmm", start="random", validation=misfit),
    "newton": marginals_fit(method="newton"),
    "newton, random start": marginals_fit(method="newton", start="random"),
    "rank by the marginals": marginals_fit("auto", FEW_TRIPLES, loss="squares"),
    "marginals by squares": marginals_fit(loss="squares"),
    "rank by tables of other people": marginals_fit("auto", FEW_TRIPLES),
    "rank by rows": rows_fit("auto", kinds=Kinds(ranks=(1, 2)), n_average=2, max_iter=20),
    "rank by cells": rows_fit("auto", validation=HIDDEN, kinds=FEW_KINDS, n_average=2, max_iter=20),
    "batches": rows_fit(source=lambda: np.array_split(ROWS, 3), effort=SMALL),
    "a callable": rows_fit(source=lambda: lambda: iter(np.array_split(ROWS, 3)), effort=SMALL),
    "rows that come once": rows_fit(
        source=lambda: iter(np.array_split(ROWS, 3)), effort=Effort(most_starts=2, patience=2)
    ),
}

LONG = ("rows", "several starts", "marginals", "aoadmm", "newton")
"""Fits that go on long enough to be ended several times."""


@cache
def undisturbed(name):
    """Return a fit that nothing ends."""
    return FITS[name]()


class Crash(Exception):
    """What ends a fit without any warning."""


def ending_after(n_iter, how):
    """Return a callback that ends the fit after some iterations, of whatever run."""
    left = [n_iter]

    def callback(step, pmf):
        left[0] -= 1
        if left[0] == 0 and how is True:
            return True
        if left[0] == 0:
            raise how
        return None

    return callback


def in_pieces(fit, n_iter, how, **options):
    """Return what a fit comes to that is ended again and again, and how often it was.

    It is ended after more iterations each time: so no two ends are alike, and they are not many.
    """
    for n_ended in range(200):
        callback = ending_after(n_iter + n_ended * n_iter, how)
        try:
            solution = fit(callback=callback, **options)
        except Crash:
            continue
        if jp.Status.STOPPED not in {solution.status, *(r.status for r in solution.restarts)}:
            return solution, n_ended
    raise AssertionError("the fit does not get on")


def assert_same(one, other):
    """Assert that two fits are the same, bit for bit, except for the time they took."""
    for name in ("status", "objective", "start", "kkt", "is_unique", "validation", "restarts"):
        assert getattr(one, name) == getattr(other, name), name
    assert timeless(one.history) == timeless(other.history)
    arrays = zip(
        (one.pmf.weights, *one.pmf.factors), (other.pmf.weights, *other.pmf.factors), strict=True
    )
    for mine, theirs in arrays:
        assert np.array_equal(mine, theirs)


def timeless(history):
    return [step._replace(seconds=0.0) for step in history]


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_refused(fit, folder, message, **options):
    """Assert that a fit says why it cannot use a folder, and leaves it as it is."""
    before = content_of(folder)
    with pytest.raises(jp.JointPMFError, match=message) as raised:
        fit(checkpoint=folder, **options)
    assert "\n" not in str(raised.value)
    assert content_of(folder) == before


class TestGoingOn:
    @pytest.mark.parametrize(
        ("how", "n_iter", "n_between"),
        [(Crash, 9, 4), (KeyboardInterrupt, 7, 1000), (True, 11, 3)],
        ids=["crash", "ctrl-c", "callback"],
    )
    @pytest.mark.parametrize("name", FITS)
    def test_the_same_bits(self, tmp_path, name, how, n_iter, n_between):
        kept = {"checkpoint": every(n_between, tmp_path / "c")}
        solution, n_ended = in_pieces(FITS[name], n_iter, how, **kept)
        assert n_ended >= 2 or name not in LONG
        assert n_ended or solution.n_iter < n_iter
        assert_same(solution, undisturbed(name))

    def test_rank_by_what_is_held_out(self, tmp_path, monkeypatch):
        """Here the writing itself crashes, in whatever run."""
        fit = rows_fit("auto", max_iter=None)
        whole = fit()
        write, n_left = SavedFit._write_runs, [0]

        def write_and_crash(self, runs):
            write(self, runs)
            n_left[0] -= 1
            if n_left[0] == 0:
                raise Crash

        monkeypatch.setattr(SavedFit, "_write_runs", write_and_crash)
        for n_writes in (1, 30, 2):
            n_left[0] = n_writes
            with pytest.raises(Crash):
                fit(checkpoint=every(10, tmp_path))
        assert_same(fit(checkpoint=every(10, tmp_path)), whole)

    @pytest.mark.parametrize("name", ["the best of many starts", "an average", "marginals"])
    def test_a_finished_fit_is_returned_without_an_iteration(self, tmp_path, name):
        first = FITS[name](checkpoint=every(10, tmp_path))
        before = content_of(tmp_path)
        again = FITS[name](checkpoint=tmp_path, callback=ending_after(1, Crash))
        assert_same(again, first)
        assert [step.seconds for step in again.history] == [s.seconds for s in first.history]
        assert content_of(tmp_path) == before

    @pytest.mark.parametrize("name", ["the best of many starts", "an average", "marginals"])
    def test_runs_that_are_not_there_are_made_again(self, tmp_path, name):
        whole = FITS[name](checkpoint=every(10, tmp_path))
        runs = sorted(tmp_path.glob("runs-*"))
        assert len(runs) > 1
        for run in runs[::2]:
            run.unlink()
        assert_same(FITS[name](checkpoint=every(10, tmp_path)), whole)
        assert sorted(tmp_path.glob("runs-*")) == runs

    def test_what_a_kill_left_half_written_is_not_read(self, tmp_path):
        (tmp_path / ".checkpoint.safetensors.7.tmp").write_bytes(b"half")
        (tmp_path / ".runs-0001.safetensors.7.tmp").write_bytes(b"half")
        assert_same(FITS["rows"](checkpoint=every(10, tmp_path)), undisturbed("rows"))

    @pytest.mark.parametrize("name", ["rows", "aoadmm", "newton", "marginals by squares"])
    def test_ctrl_c_loses_no_iteration(self, tmp_path, name):
        stopped = FITS[name](checkpoint=tmp_path, callback=ending_after(5, KeyboardInterrupt))
        assert (stopped.status, stopped.n_iter) == (jp.Status.STOPPED, 5)
        seen = []
        FITS[name](checkpoint=tmp_path, callback=lambda step, pmf: seen.append(step.iteration))
        assert seen[0] == 6

    def test_an_interrupt_in_the_middle_of_a_sweep(self, tmp_path, monkeypatch):
        """The sweep has changed the solver's memory by then."""
        from jointpmf.solvers.aoadmm import AOADMM

        solve, n_solved = AOADMM._solve, [0]

        def interrupted(self, *block):
            n_solved[0] += 1
            if n_solved[0] == 40:
                raise KeyboardInterrupt
            return solve(self, *block)

        monkeypatch.setattr(AOADMM, "_solve", interrupted)
        stopped = FITS["aoadmm"](checkpoint=tmp_path)
        assert (stopped.status, stopped.n_iter) == (jp.Status.STOPPED, 39 // 7)
        assert_same(FITS["aoadmm"](checkpoint=tmp_path), undisturbed("aoadmm"))

    def test_ctrl_c_while_starts_are_tried(self, tmp_path, monkeypatch):
        """What is returned then are runs that an undisturbed fit does not have."""
        fit, whole = FITS["the best of many starts"], undisturbed("the best of many starts")
        write, n_written = SavedFit._write_runs, [0]

        def interrupted(self, runs):
            write(self, runs)
            n_written[0] += 1
            if n_written[0] in (20, 60):
                raise KeyboardInterrupt

        monkeypatch.setattr(SavedFit, "_write_runs", interrupted)
        kept = every(10, tmp_path)
        assert fit(checkpoint=kept).status is jp.Status.STOPPED
        assert fit(checkpoint=kept).status is jp.Status.STOPPED
        assert_same(fit(checkpoint=kept), whole)

    def test_rows_in_parts(self, tmp_path):
        codes = jp.encode(ROWS, DOMAIN)
        pieces = [jp.Codes(DOMAIN, codes.array[k::3]) for k in range(3)]
        rows = parts.PartedRows(InMemory([parts.Part.of_codes(k, p) for k, p in enumerate(pieces)]))

        def fit(callback=None, checkpoint=None):
            generator, saved = np.random.default_rng(0), None
            if checkpoint is not None:
                saved = SavedFit(checkpoint, {"table": rows.digest}, 0)
                generator = saved.generator
            loop = Loop(80, 0.0, callback, saved)
            return EMFit(4, loop, effort=Effort(most_starts=2, patience=2)).run(rows, generator)

        solution, n_ended = in_pieces(fit, 9, Crash, checkpoint=every(4, tmp_path))
        assert n_ended > 2
        assert_same(solution, fit())


class InMemory:
    """The simplest of all parts: a list of them."""

    def __init__(self, all_parts):
        self.parts, self.domain = all_parts, all_parts[0].rows.domain

    def total(self, task):
        first, *others = map(task, self.parts)
        for other in others:
            first = first.merged(other)
        return first


def test_the_digest_of_rows_in_parts_tells_tables_apart():
    def digest(rows):
        return parts.PartedRows(InMemory([parts.Part.of_codes(0, jp.encode(rows, DOMAIN))])).digest

    other, reordered = ROWS.copy(), ROWS.copy()
    other[0, 0] = (other[0, 0] + 1) % 4
    reordered[:, 1] = ROWS[::-1, 1]  # every level as often as before
    assert digest(ROWS) == digest(ROWS[::-1].copy())
    assert len({digest(ROWS), digest(ROWS[:-1]), digest(other), digest(reordered)}) == 4


class TestSeeds:
    def test_without_one_the_drawn_seed_is_kept(self, tmp_path):
        fit = rows_fit(start="random", random_state=None, tol=0.0)
        first, _ = in_pieces(fit, 9, Crash, checkpoint=every(4, tmp_path / "a"))
        assert_same(fit(checkpoint=tmp_path / "a"), first)
        for run in (tmp_path / "a").glob("runs-*"):
            run.unlink()
        assert_same(fit(checkpoint=tmp_path / "a"), first)
        assert fit(checkpoint=tmp_path / "b").objective != first.objective

    @pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
    def test_a_generator_is_known_by_its_state(self, tmp_path, kind):
        fit = rows_fit(start="random")
        whole, resumed = np.random.Generator(kind(7)), np.random.Generator(kind(7))
        first = fit(random_state=whole)
        fit(random_state=np.random.Generator(kind(7)), checkpoint=tmp_path)
        assert_same(fit(random_state=resumed, checkpoint=tmp_path), first)
        assert whole.random() == resumed.random()
        assert_refused(fit, tmp_path, "random_state: not the same", random_state=whole)


@pytest.fixture
def used(tmp_path):
    """A folder with the checkpoint of a fit that was ended in the middle."""
    folder = tmp_path / "used"
    FITS["rows"](checkpoint=every(10, folder), callback=ending_after(5, KeyboardInterrupt))
    assert set(content_of(folder)) == {"checkpoint.safetensors", "runs-0001.safetensors"}
    return folder


def changed_rows(n, cell):
    rows = ROWS.copy()
    rows[n, cell] = (rows[n, cell] + 1) % 3
    return rows


def renamed(domain):
    return jp.Domain([jp.Variable(f"{v.name}!", v.levels) for v in domain])


@pytest.fixture(scope="module")
def of_marginals(tmp_path_factory):
    """A folder with the checkpoint of a fit to marginals, which nothing may change."""
    folder = tmp_path_factory.mktemp("marginals")
    FITS["marginals"](checkpoint=folder)
    return folder


class TestAnotherFit:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_iter": 61}, "max_iter: 60, not 61"),
            ({"tol": 1e-3}, "tol: 1e-10, not 0.001"),
            ({"start": "random"}, r"search\.start: 'rows', not 'random'"),
            ({"start": TRUTH}, r"search\.start: not the same"),
            ({"smoothing": 0.5}, r"objective\.smoothing: None, not 0\.5"),
            ({"towards": "marginal"}, r"objective\.towards: None, not 'marginal'"),
            ({"n_starts": 2}, r"search\.n_starts: None, not 2"),
            ({"n_average": 2}, r"search\.n_average: None, not 2"),
            ({"validation": 0.5}, r"validation: None, not 0\.5"),
            ({"validation": OTHER_ROWS}, "validation: not the same"),
            ({"validation": HIDDEN}, "validation: not the same"),
            ({"sample_weight": WEIGHTS}, "sample_weight: not the same"),
            ({"random_state": 1}, "random_state: not the same"),
            ({"random_state": None}, "random_state: not the same"),
            ({"domain": renamed(DOMAIN)}, "table: not the same"),
            ({"validation": jp.HiddenCells(0.2)}, r"validation\.kind: None, not 'HiddenCells'; "),
            ({"validation": misfit}, "validation: None, not True"),
            ({"max_iter": 9, "tol": 1.0}, "max_iter: 60, not 9; tol: 1e-10, not 1"),
        ],
    )
    def test_other_options_are_named(self, used, options, message):
        message = rf"^the checkpoint in {used} is of another fit \({message}"
        assert_refused(FITS["rows"], used, message, **options)

    @pytest.mark.parametrize("rows", [changed_rows(0, 0), changed_rows(-1, 5), ROWS[:-1]])
    def test_another_table(self, used, rows):
        with pytest.raises(jp.JointPMFError, match="table: not the same"):
            rows_fit(source=lambda: rows, start="rows")(checkpoint=used)

    def test_another_rank_and_how_often_to_write(self, used):
        assert_refused(lambda **o: jp.fit_rows(ROWS, 5, domain=DOMAIN, **o), used, "rank: 4")
        assert FITS["rows"](checkpoint=jp.Checkpoint(used, every=3)).n_iter > 5

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "newton"}, "method: 'auto', not 'newton'"),
            ({"weighting": np.arange(1, 21)}, "weighting: not the same"),
            ({"validation": misfit}, "validation: False, not True"),
            ({"tol": 0.0}, "tol: "),
        ],
    )
    def test_other_options_of_marginals(self, of_marginals, options, message):
        assert_refused(FITS["marginals"], of_marginals, message, **options)

    def test_a_fit_to_marginals(self, used):
        assert_refused(FITS["marginals"], used, r"\(fit: 'rows', not 'marginals'\)")

    def test_other_rows_that_judge_marginals(self, tmp_path):
        FITS["marginals"](checkpoint=tmp_path, validation=ROWS[:50])
        other = {"validation": ROWS[50:100]}
        assert_refused(FITS["marginals"], tmp_path, "validation: not the same", **other)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_other_marginals(self, tmp_path, sparse):
        limits = TableLimits(sparse_below=2.0, smallest_sparse=1) if sparse else TableLimits()
        folders = tmp_path / "a", tmp_path / "b"
        for folder, rows in zip(folders, (ROWS, changed_rows(0, 0)), strict=True):
            triples = jp.MarginalSet.from_table(rows, 3, domain=DOMAIN, limits=limits)
            is_sparse = not isinstance(triples[0].table, np.ndarray)
            assert is_sparse == sparse
            jp.fit_marginals(triples, 4, random_state=0, checkpoint=folder)
        with pytest.raises(jp.JointPMFError, match="marginals: not the same"):
            jp.fit_marginals(triples, 4, random_state=0, checkpoint=folders[0])

    def test_levels_may_be_called_otherwise_but_not_have_other_values(self, tmp_path):
        def fit(name, values=None, **options):
            domain = jp.Domain([jp.Variable("x", (name, "b", "c"), values), DOMAIN["x1"]])
            rows = jp.Codes(domain, OTHER_ROWS[:, [1, 4]])
            return rows_fit(2, lambda: rows, domain=None, start="rows")(**options)

        first = fit("a", checkpoint=tmp_path)
        again = fit("A", checkpoint=tmp_path)
        assert_same(again, first)
        assert again.pmf.domain["x"].levels == ("A", "b", "c")
        with pytest.raises(jp.JointPMFError, match="table: not the same"):
            fit("a", values=(1, 2, 3), checkpoint=tmp_path)


def tampered(path, **metadata):
    """Change what a file says about itself, and make its checksum right again."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] |= metadata
    header["__metadata__"].pop("checksum")
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + content[end:])
    header["__metadata__"]["checksum"] = digest.hexdigest()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[end:])


class TestDamage:
    @pytest.mark.parametrize("name", ["checkpoint.safetensors", "runs-0001.safetensors"])
    def test_every_truncation_and_every_flipped_byte_is_found(self, used, name):
        whole = (used / name).read_bytes()
        places = np.linspace(0, len(whole) - 1, 40).astype(int)
        for place in places:
            (used / name).write_bytes(whole[:place])
            assert_refused(FITS["rows"], used, f"{name} is damaged: ")
            flipped = bytearray(whole)
            flipped[place] ^= 1
            (used / name).write_bytes(flipped)
            assert_refused(FITS["rows"], used, f"{name} (is|was|has) ")
        (used / name).write_bytes(whole + b"\0")
        assert_refused(FITS["rows"], used, f"{name} is damaged: ")
        (used / name).write_bytes(whole)
        assert_same(FITS["rows"](checkpoint=used), undisturbed("rows"))

    @pytest.mark.parametrize("name", ["checkpoint.safetensors", "runs-0001.safetensors"])
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": "jointpmf"}, "is not a checkpoint"),
            ({"version": "9"}, "has format version '9'; this library reads '1'"),
            ({"library": "0.0.9"}, r"was written by jointpmf 0\.0\.9, and this is "),
        ],
    )
    def test_another_version(self, used, name, change, message):
        tampered(used / name)
        FITS["rows"](checkpoint=used, callback=ending_after(1, True))
        tampered(used / name, **change)
        assert_refused(FITS["rows"], used, f"{name} {message}")

    def test_a_model_is_no_checkpoint(self, used):
        TRUTH.save(used / "runs-0001.safetensors")
        assert_refused(FITS["rows"], used, "runs-0001.safetensors is not a checkpoint")

    def test_a_run_of_another_fit(self, used, tmp_path):
        FITS["newton"](checkpoint=every(10, tmp_path / "other"))
        os.replace(tmp_path / "other" / "runs-0001.safetensors", used / "runs-0001.safetensors")
        assert_refused(FITS["rows"], used, "runs-0001.safetensors belongs to another fit")

    def test_a_run_in_the_place_of_another(self, tmp_path):
        FITS["several starts"](checkpoint=every(10, tmp_path))
        texts, arrays = checkpoint._read(tmp_path / "runs-0002.safetensors")
        arrays = {name.replace("2.", "1.", 1): array for name, array in arrays.items()}
        checkpoint._write(tmp_path / "runs-0001.safetensors", {"of": texts["of"]}, arrays)
        message = f"run 1 of the checkpoint in {tmp_path} began elsewhere than that of this fit"
        assert_refused(FITS["several starts"], tmp_path, message)

    def test_a_run_in_the_place_of_the_fit(self, used):
        os.replace(used / "runs-0001.safetensors", used / "checkpoint.safetensors")
        assert_refused(FITS["rows"], used, "checkpoint.safetensors is of runs, not of a fit")

    def test_a_start_that_was_rounded_otherwise_goes_on_and_says_so(self, used, caplog):
        path = used / "runs-0001.safetensors"
        texts, arrays = checkpoint._read(path)
        arrays["1.start"] = arrays["1.start"] * (1 + 1e-12)
        checkpoint._write(path, {"of": texts["of"]}, arrays)
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            solution = FITS["rows"](checkpoint=used)
        assert "not to the same bits" in caplog.text
        assert_same(solution, undisturbed("rows"))


class TestPlaces:
    def test_a_file(self, tmp_path):
        (tmp_path / "file").write_text("mine")
        with pytest.raises(jp.JointPMFError, match=r"file cannot be a checkpoint: Not a directory"):
            FITS["rows"](checkpoint=tmp_path / "file")
        with pytest.raises(jp.JointPMFError, match=r"cannot be a checkpoint: Not a directory"):
            FITS["rows"](checkpoint=tmp_path / "file" / "below")
        assert content_of(tmp_path) == {"file": b"mine"}

    def test_a_folder_of_other_things(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("mine")
        assert_refused(FITS["rows"], tmp_path, "has other files in it, and no checkpoint")

    @pytest.mark.parametrize("folder", ["/proc/nowhere", "/proc/self"])
    def test_a_folder_that_cannot_be_written(self, folder):
        if not os.path.isdir("/proc/self"):
            pytest.skip("no /proc, where nobody can write")
        with pytest.raises(jp.JointPMFError, match=rf"{folder}"):
            FITS["rows"](checkpoint=folder)

    def test_a_folder_without_the_right_to_write(self, tmp_path, monkeypatch):
        def refused(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("jointpmf.output._renamed_when_whole", refused)
        message = r"^cannot write .*checkpoint\.safetensors: Permission denied$"
        for name in ("rows", "the best of many starts", "several starts", "marginals"):
            assert_refused(FITS[name], tmp_path, message)

    @pytest.mark.parametrize(
        ("folder", "often", "message"),
        [
            (5, 10, "the checkpoint must be a folder, not 5"),
            (b"bytes", 10, "the checkpoint must be a folder"),
            ("null\0", 10, "null"),
            ("fine", 0, "every must be a whole number of at least 1, not 0"),
            ("fine", 2.5, r"every .* not 2\.5"),
        ],
    )
    def test_what_is_no_folder_and_no_number(self, tmp_path, monkeypatch, folder, often, message):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(jp.JointPMFError, match=message):
            FITS["rows"](checkpoint=jp.Checkpoint(folder, every=often))
        assert content_of(tmp_path) == {}

    def test_other_bad_input_leaves_no_folder(self, tmp_path):
        for fit, wrong in (
            (FITS["rows"], {"start": "magic"}),
            (FITS["rows"], {"validation": 2.0}),
            (FITS["rows"], {"random_state": "x"}),
            (FITS["marginals"], {"start": "magic"}),
            (FITS["marginals"], {"weighting": "magic"}),
            (marginals_fit("auto", [1]), {}),
            (FITS["rank by rows"], {"sample_weight": [1.0]}),
            (FITS["batches"], {"validation": 0.2}),
        ):
            with pytest.raises(jp.JointPMFError):
                fit(checkpoint=tmp_path / "c", **wrong)
        assert content_of(tmp_path) == {}


@contextmanager
def files_of_at_most(n_bytes):
    """Let no file become larger, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestFullDisk:
    @pytest.mark.parametrize("name", ["rows", "the best of many starts"])
    def test_the_old_checkpoint_stays(self, tmp_path, name):
        folder = tmp_path / "c"
        in_pieces(FITS[name], 5, True, checkpoint=every(10, folder))
        (folder / "runs-0001.safetensors").unlink()
        before = content_of(folder)
        too_large = pytest.raises(CheckpointError, match=r"cannot write .*: File too large")
        with too_large, files_of_at_most(1500):
            FITS[name](checkpoint=every(10, folder))
        assert content_of(folder) == before
        assert_same(FITS[name](checkpoint=folder), undisturbed(name))

    @pytest.mark.parametrize("name", ["several starts", "an average", "the best of many starts"])
    def test_it_does_not_count_as_a_start_that_failed(self, tmp_path, monkeypatch, name):
        """Else the fit would go on without that start, to another result."""
        write, n_written = checkpoint._write, [0]

        def full_once(*content):
            n_written[0] += 1
            if n_written[0] == 3:
                raise CheckpointError("cannot write: No space left on device")
            write(*content)

        monkeypatch.setattr(checkpoint, "_write", full_once)
        with pytest.raises(CheckpointError, match="No space left on device"):
            FITS[name](checkpoint=every(1, tmp_path))
        assert_same(FITS[name](checkpoint=tmp_path), undisturbed(name))

    def test_at_the_end_it_is_only_a_warning(self, tmp_path, monkeypatch, caplog):
        def full(self, runs):
            raise CheckpointError("cannot write runs-0001: No space left on device")

        monkeypatch.setattr(SavedFit, "_write_runs", full)
        stopped = FITS["rows"](checkpoint=tmp_path, callback=ending_after(5, KeyboardInterrupt))
        assert (stopped.status, stopped.n_iter) == (jp.Status.STOPPED, 5)
        assert "No space left on device" in caplog.text


class TestCost:
    def test_a_short_fit_writes_nothing_but_what_it_is(self, tmp_path):
        for name in ("the best of many starts", "an average", "marginals"):
            kept = jp.Checkpoint(tmp_path / name, seconds=1000.0)
            assert_same(FITS[name](checkpoint=kept), undisturbed(name))
            assert set(content_of(tmp_path / name)) == {"checkpoint.safetensors"}

    def test_it_is_written_every_so_many_iterations(self, tmp_path, monkeypatch):
        written = []
        write = checkpoint.SavedRun.write
        monkeypatch.setattr(
            checkpoint.SavedRun,
            "write",
            lambda self, iteration, arrays: (
                written.append(iteration),
                write(self, iteration, arrays),
            ),
        )
        n_iter = FITS["rows"](checkpoint=every(7, tmp_path)).n_iter
        assert written == [*range(7, n_iter, 7), n_iter]

    def test_without_a_checkpoint_no_memory_is_kept(self, monkeypatch):
        from jointpmf.solvers.aoadmm import AOADMM
        from jointpmf.solvers.em import EM

        for solver in (AOADMM, EM):
            monkeypatch.setattr(solver, "memory", None)
        FITS["rows"]()
        FITS["marginals"]()


def test_arrays_come_back_as_they_lie_in_memory(tmp_path):
    table = np.arange(12.0).reshape(3, 4)
    arrays = {
        "number": np.array(0.1),
        "whole": np.array(7),
        "vector": np.array([np.inf, -0.0, 5e-324]),
        "rows": table,
        "columns": np.asfortranarray(table),
        "part of rows": table[:, :2],
        "part of columns": np.asfortranarray(table)[:2],
        "column": table[:, :1],
        "empty": np.zeros((0, 3)),
    }
    checkpoint._write(tmp_path / "file", {"of": "nothing"}, arrays)
    texts, found = checkpoint._read(tmp_path / "file")
    assert texts["of"] == "nothing"
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert found[name].strides == np.array(array, order="K").strides, name
        assert found[name].flags.writeable


def test_the_files_are_what_their_description_says(used):
    """Read with nothing but json and numpy, and with safetensors."""
    for path in used.iterdir():
        content = path.read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:end])
        metadata = header["__metadata__"]
        stored = metadata.pop("checksum")
        digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + content[end:])
        assert stored == digest.hexdigest()
        assert (metadata["format"], metadata["version"]) == ("jointpmf checkpoint", "1")
    fit = json.loads(read_metadata(used / "checkpoint.safetensors")["fit"])
    assert (fit["rank"], fit["max_iter"], fit["search"]["start"]) == (4, 60, "rows")
    tensors = load_file(used / "runs-0001.safetensors")
    assert tensors["1.history"].shape == (6, 5)
    assert tensors["1.weights"].shape == (4,)
    assert int(tensors["1.iteration"]) == int(tensors["1.best_iteration"]) == 5
    described = (Path(__file__).parent.parent.parent / "docs/format.md").read_text()
    for name in tensors:
        assert f"`{name.removeprefix('1.')}`" in described, name


def read_metadata(path):
    content = path.read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]


COMMAND = "from jointpmf.command.main import main; main()"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("killed") / "rows.csv"
    truth = jp.random_pmf(jp.Domain.of_sizes([6] * 8), 8, 0)
    truth.sample(1500, random_state=0).write_csv(path)
    return path


@pytest.mark.parametrize(
    "options",
    [
        ["--rank", "8", "--max-iter", "60", "--tol", "0"],
        [],
    ],
    ids=["rank 8", "rank auto"],
)
def test_the_command_that_was_killed_writes_the_same_file(table, tmp_path, options):
    def words(model, *more):
        return ["fit", str(table), "-o", str(tmp_path / model), *options, *more]

    def run_here(*given):
        with pytest.raises(SystemExit) as ended:
            main(words(*given))
        assert ended.value.code in (0, 3)

    folder = tmp_path / "checkpoint"
    resumed = ["resumed", "--checkpoint", str(folder)]
    command = [sys.executable, "-c", COMMAND, *words(*resumed)]
    assert was_killed_after_a_write(command, folder, np.random.default_rng())
    run_here("whole")
    run_here(*resumed)
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_command_refuses_another_fit_in_one_sentence(table, tmp_path, capsys):
    def code_of(rank):
        options = {"-o": tmp_path / "m", "--max-iter": 1, "--checkpoint": tmp_path / "c"}
        words = [str(word) for pair in options.items() for word in pair]
        with pytest.raises(SystemExit) as ended:
            main(["fit", str(table), "--rank", rank, *words])
        return ended.value.code

    assert code_of("2") == 3
    capsys.readouterr()
    assert code_of("3") == 2
    sentence = f"jointpmf: the checkpoint in {tmp_path / 'c'} is of another fit (rank: 2, not 3)\n"
    assert capsys.readouterr().err == sentence


def was_killed_after_a_write(command, folder, generator):
    """Start a fit and kill it some time after it wrote something; tell whether it still ran.

    It sleeps for the second that is between two writes: so it need not be long to write one.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until((folder / "checkpoint.safetensors").exists, process)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: any(folder.glob("runs-*")), process)
        time.sleep(generator.uniform(0, 0.1))
        is_alive = process.poll() is None
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait(timeout=60)
    return is_alive


def wait_until(happens, process):
    """Wait until something happens, or the process ends, or it takes too long."""
    deadline = time.monotonic() + 60
    while process.poll() is None and not happens() and time.monotonic() < deadline:
        time.sleep(0.01)
