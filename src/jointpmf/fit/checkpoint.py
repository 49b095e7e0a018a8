"""Fits that can be killed and gone on with: how far each of their runs has come, in a folder.

A fit is one run of the loop or several, in an order that the data, the options and the seed
determine. What a run has reached is written, and read again by the next call of the same fit. What
lies between the runs is made again, and so is a run of which nothing was written: the bits are the
same. What is in the files is in docs/format.md.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_in
from safetensors.numpy import save

from jointpmf import __version__
from jointpmf.data.codes import Codes
from jointpmf.errors import CheckpointError, JointPMFError, seeded_generator, shown
from jointpmf.fit.settings import Checkpoint
from jointpmf.marginals.marginal_set import MarginalSet
from jointpmf.output import PathLike, atomic_output, reason_of
from jointpmf.pmf import JointPMF
from jointpmf.rows.source import digest_of, is_digest, parts_of_domain
from jointpmf.tensor_file import header_and_numbers, with_header

if TYPE_CHECKING:
    from jointpmf.solvers.loop import Arrays

logger = logging.getLogger("jointpmf")

_FORMAT, _VERSION = "jointpmf checkpoint", "1"

_SAME_START = 1e-6
"""How far two starts of a run may differ: on another processor sums are rounded otherwise."""


class SavedFit:
    """The folder of a checkpoint, while a fit is running.

    Parameters
    ----------
    checkpoint : Checkpoint or path
        The folder, and how often to write.
    identity : mapping of str to Any
        What is fitted and how: a checkpoint serves the same fit only.
    random_state : int or numpy Generator, optional
        Without one a seed is drawn, and kept in the folder.

    Attributes
    ----------
    generator : numpy Generator
        What the fit draws from.
    """

    def __init__(
        self, checkpoint: Checkpoint | PathLike, identity: Mapping[str, Any], random_state: Any
    ) -> None:
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        self.every, self._seconds = checkpoint.every, checkpoint.seconds
        try:
            self.folder = Path(checkpoint.folder)
        except TypeError:
            folder = shown(checkpoint.folder)
            raise JointPMFError(f"the checkpoint must be a folder, not {folder}") from None
        self.generator = seeded_generator(random_state)
        is_seeded = random_state is not None
        state = digest_of(_json(self.generator.bit_generator.state))
        asked = {name: _described(value) for name, value in identity.items()}
        asked["random_state"] = state if is_seeded else None
        seed = "" if is_seeded else str(np.random.SeedSequence().entropy)
        self._texts = self._found_texts(asked) or {"fit": _json(asked), "seed": seed}
        if not is_seeded:
            self.generator = np.random.default_rng(int(self._texts["seed"]))
        self._n_runs = 0
        self._found: dict[int, Arrays] = {}
        self._ended: dict[int, Arrays] = {}
        self._last_write = time.monotonic()

    @property
    def _file(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    def _found_texts(self, asked: dict[str, Any]) -> dict[str, str] | None:
        """Return what the folder says of this fit, if anything; raise if it is of another."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:  # a path with a null character is a ValueError
            raise CheckpointError(
                f"{self.folder} cannot be a checkpoint: {reason_of(error)}"
            ) from None
        if self._file.name not in names:
            if all(name.startswith(".") for name in names):
                return None
            raise CheckpointError(f"{self.folder} has other files in it, and no checkpoint")
        texts, _ = _read(self._file)
        if "fit" not in texts:
            raise CheckpointError(f"{self._file} is of runs, not of a fit")
        with _undamaged(self._file):
            differences = _differences(json.loads(texts["fit"]), json.loads(_json(asked)))
            np.random.SeedSequence(int(texts["seed"] or 0))  # without one, the fit has its own
        if differences:
            raise CheckpointError(
                f"the checkpoint in {self.folder} is of another fit ({differences})"
            )
        return {name: texts[name] for name in ("fit", "seed")}

    def next_run(self, start: np.ndarray) -> SavedRun:
        """Return what is kept of the run that begins; `start` is what tells it from others."""
        if not self._file.exists():
            self._make()
        self._n_runs += 1
        path = self._file_from(self._n_runs)
        if path.exists():
            self._found |= self._runs_in(path)
        return SavedRun(self, self._n_runs, start, self._found.pop(self._n_runs, None))

    def _make(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"cannot make {self.folder}: {reason_of(error)}") from None
        _write(self._file, self._texts, {})

    def _file_from(self, number: int) -> Path:
        """Return the file of some runs in a row, by the first of them."""
        return self.folder / f"runs-{number:04}.safetensors"

    def _runs_in(self, path: Path) -> dict[int, Arrays]:
        texts, arrays = _read(path)
        if texts.get("of") != digest_of(self._texts):
            raise CheckpointError(f"{path} belongs to another fit")
        runs: dict[int, Arrays] = defaultdict(dict)
        with _undamaged(path):
            for name, array in arrays.items():
                number, _, own_name = name.partition(".")
                runs[int(number)][own_name] = array
        return runs

    def is_time(self, begin: float = -math.inf) -> bool:
        """Tell whether the last write, and what began since, is long enough ago."""
        return time.monotonic() - max(self._last_write, begin) >= self._seconds

    def write(self, number: int, arrays: Arrays) -> None:
        """Write what a run has reached, after all that ended before."""
        self._write_ended()
        self._write_runs({number: arrays})

    def note_end(self, number: int, arrays: Arrays) -> None:
        """Keep what a run has come to: short ones are written together, not each on its own."""
        self._ended[number] = arrays
        if self.is_time():
            self._write_ended()

    def _write_ended(self) -> None:
        if self._ended:
            self._write_runs(self._ended)
            self._ended = {}

    def _write_runs(self, runs: dict[int, Arrays]) -> None:
        arrays = {f"{n}.{name}": array for n, run in runs.items() for name, array in run.items()}
        _write(self._file_from(min(runs)), {"of": digest_of(self._texts)}, arrays)
        self._last_write = time.monotonic()


class SavedRun:
    """One run of a fit, as a checkpoint keeps it.

    Attributes
    ----------
    found : dict of arrays, or None
        What it had reached when it was last written, if ever.
    """

    def __init__(self, fit: SavedFit, number: int, start: np.ndarray, found: Arrays | None) -> None:
        self._fit, self._number, self._start = fit, number, start
        self.found = found
        self._begin = time.monotonic()
        self._iteration = -1  # the last that was written
        if found is not None:
            with _undamaged(fit.folder):
                self._check_start(found["start"])
                self._iteration = int(found["iteration"])
            logger.info("run %d goes on from iteration %d", number, self._iteration)

    def _check_start(self, start: np.ndarray) -> None:
        if np.array_equal(start, self._start):
            return
        name = f"run {self._number} of the checkpoint in {self._fit.folder}"
        is_same = start.shape == self._start.shape
        if not is_same or not np.allclose(start, self._start, _SAME_START, _SAME_START):
            raise CheckpointError(f"{name} began elsewhere than that of this fit")
        logger.warning(
            "%s began where numbers are rounded otherwise; it goes on, but not to the same bits",
            name,
        )

    def is_due(self, iteration: int) -> bool:
        """Tell whether to write after an iteration."""
        return iteration % self._fit.every == 0 and self._fit.is_time(self._begin)

    def write(self, iteration: int, arrays: Arrays) -> None:
        """Write what was reached after an iteration."""
        self._fit.write(self._number, self._with_place(iteration, arrays))
        self._iteration = iteration

    def end(self, iteration: int, arrays: Arrays, is_stopped: bool) -> None:
        """Keep what was reached at the end.

        Now the model is what counts: that it cannot be written is only a warning.
        """
        if iteration == self._iteration:
            return
        try:
            if is_stopped or self._iteration >= 0:
                self.write(iteration, arrays)
            else:
                self._fit.note_end(self._number, self._with_place(iteration, arrays))
        except CheckpointError as error:
            logger.warning("%s", error)

    def _with_place(self, iteration: int, arrays: Arrays) -> Arrays:
        return {"start": self._start, "iteration": np.array(iteration), **arrays}


def generator_and_runs(
    checkpoint: Checkpoint | PathLike | None,
    identity: Callable[[], Mapping[str, Any]],
    random_state: Any,
) -> tuple[np.random.Generator, SavedFit | None]:
    """Return what a fit draws from, and where its runs are saved, if they are.

    What is fitted is described only then: that reads all of it.
    """
    if checkpoint is None:
        return seeded_generator(random_state), None
    saved = SavedFit(checkpoint, identity(), random_state)
    return saved.generator, saved


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Raise naming the file if what is in it is not what was written there."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, JointPMFError):
            raise
        raise CheckpointError(f"{path} is damaged: {reason_of(error)}") from None


def _described(value: Any) -> Any:
    """Return what JSON can hold of a value: itself, its fields, or its digest."""
    if isinstance(value, Codes):
        return digest_of(*parts_of_domain(value.domain), value.columns)
    if isinstance(value, MarginalSet):
        return digest_of(*parts_of_domain(value.domain), *value.content())
    if isinstance(value, JointPMF):
        return digest_of(value.weights, *value.factors)
    if is_dataclass(value):
        described = {f.name: _described(getattr(value, f.name)) for f in fields(value)}
        return {"kind": type(value).__name__, **described}
    if isinstance(value, np.ndarray):
        return digest_of(value)
    return True if callable(value) else value  # a function has no content to compare


def _json(content: Any) -> str:
    return json.dumps(content, default=lambda value: getattr(value, "tolist", value.__repr__)())


def _differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Say in what one fit differs from another; nothing if in nothing."""
    there, here = _flat(there), _flat(here)
    names = [name for name in there | here if there.get(name) != here.get(name)]
    if "fit" in names:  # fits to rows and to marginals have other settings
        names = ["fit"]
    return "; ".join(_difference(name, there.get(name), here.get(name)) for name in names)


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """Return nested facts under names such as `objective.smoothing`."""
    found: dict[str, Any] = {}
    for name, fact in facts.items():
        inner = _flat(fact) if isinstance(fact, dict) else {"": fact}
        found |= {f"{name}.{key}".rstrip("."): value for key, value in inner.items()}
    return found


def _difference(name: str, there: Any, here: Any) -> str:
    if is_digest(there) or is_digest(here):
        return f"{name}: not the same"
    return f"{name}: {there!r}, not {here!r}"


def _write(path: Path, texts: Mapping[str, str], arrays: Arrays) -> None:
    """Write a file of a checkpoint, whole or not at all."""
    tensors: Arrays = {}
    for name, array in arrays.items():
        compact = np.array(array, order="K")
        in_rows = compact.flags.c_contiguous
        # by columns it stays: in which order numbers lie decides in which they are summed
        tensors[name if in_rows else f"{name}.T"] = compact if in_rows else compact.T
    metadata = {"format": _FORMAT, "version": _VERSION, "library": __version__, **texts}
    header, numbers = header_and_numbers(save(tensors, metadata))
    header["__metadata__"]["checksum"] = _checksum(header, numbers)
    try:
        with atomic_output(path) as file:
            file.write(with_header(header, numbers))
    except JointPMFError as error:
        raise CheckpointError(str(error)) from None


def _read(path: Path) -> tuple[dict[str, str], Arrays]:
    """Return the texts and arrays of a file, which is whole and of this version."""
    try:
        content = path.read_bytes()
        tensors = tensors_in(content)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {reason_of(error)}") from None
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {reason_of(error)}") from None
    header, numbers = header_and_numbers(content)
    metadata = header.get("__metadata__") or {}
    if metadata.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint")
    if metadata.get("version") != _VERSION:
        version = shown(metadata.get("version"))
        raise CheckpointError(
            f"{path} has format version {version}; this library reads {_VERSION!r}"
        )
    if metadata.get("library") != __version__:
        raise CheckpointError(
            f"{path} was written by jointpmf {metadata.get('library')}, and this is {__version__}, "
            "whose numbers may be others"
        )
    if metadata.pop("checksum", None) != _checksum(header, numbers):
        raise CheckpointError(f"{path} was changed after it was written: its checksum is another")
    arrays = {name: np.array(array) for name, array in tensors.items()}  # which can be written to
    by_columns = [name for name in arrays if name.endswith(".T")]
    return metadata, arrays | {name.removesuffix(".T"): arrays[name].T for name in by_columns}


def _checksum(header: Mapping[str, Any], numbers: bytes) -> str:
    """Return the SHA-256 of all that a file says, except itself."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(numbers)
    return digest.hexdigest()
