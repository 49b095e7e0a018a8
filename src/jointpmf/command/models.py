"""Model files as a command is given them: by a path, or by stdin and stdout."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jointpmf.model_file import ModelFile
    from jointpmf.pmf import JointPMF


def read_model(path: str) -> ModelFile:
    """Return what is in a model file, or in stdin for "-"."""
    from jointpmf.model_file import read_model_file

    return read_model_file(sys.stdin.buffer if path == "-" else path)


def read_pmf(path: str, data: str = "") -> JointPMF:
    """Return the model in a file; `data` is what else the command reads."""
    from jointpmf.pmf import JointPMF

    check_stdin(path, data)
    return JointPMF(*read_model(path).model)


def check_stdin(model: str, data: str) -> None:
    """Raise if two files are to come from stdin."""
    if model == data == "-":
        raise JointPMFError("the model and the data cannot both come from stdin")


def check_place(output: str, checkpoint: str | None = None) -> None:
    """Raise now, rather than after a long fit, if a file cannot be written there."""
    if output == "-":
        return
    place = os.path.realpath(output)
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise JointPMFError(f"cannot write {output}: there is no directory {folder}")
    if checkpoint is not None and place == os.path.realpath(checkpoint):
        raise JointPMFError(f"cannot write {output}: it is the folder of the checkpoint")
    if os.path.isdir(place):
        raise JointPMFError(f"cannot write {output}: it is a directory")
    is_special = os.path.exists(output) and not os.path.isfile(output)
    if not os.access(output if is_special else folder, os.W_OK):  # a file is replaced as a whole
        raise JointPMFError(f"cannot write {output}: permission denied")


def check_replaces_nothing(
    output: str,
    what: str,
    sources: Mapping[str, str | Sequence[str]],
    instead: str = "give another --output",
) -> None:
    """Raise if what is written would replace a file that it is made from, by whatever name.

    A stream is the file that it was redirected to, a folder all files in it, and a `tables.toml`
    the tables that it lists too.
    """
    place = _identity(output, sys.stdout)
    for kind, paths in sources.items():
        for path in [paths] if isinstance(paths, str) else paths:
            if place is not None and place in _identities(path):
                name = "that comes from stdin" if path == "-" else path
                raise JointPMFError(f"the {what} would replace the {kind} {name}; {instead}")


def _identities(path: str) -> set[tuple[int, int] | None]:
    """Return which files are read at a path."""
    paths = [path]
    with suppress(OSError, JointPMFError):
        if path.endswith(".toml"):
            from jointpmf.marginals.tables_file import read_table_list

            paths += [entry.path for entry in read_table_list(path).tables]
        if os.path.isdir(path):
            paths += [entry.path for entry in os.scandir(path)]
    return {_identity(one, sys.stdin) for one in paths}


def _identity(path: str, stream: TextIO) -> tuple[int, int] | None:
    """Return what tells a file from all others, whatever it is called; None if there is none."""
    try:
        found = os.fstat(stream.fileno()) if path == "-" else os.stat(path)
    except (OSError, ValueError):  # no file yet, or no stream of the system
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def put_model(output: str, pmf: JointPMF, about: Mapping[str, str]) -> None:
    """Write a model to a file, or to stdout for "-"."""
    from jointpmf.model_file import model_bytes, write_model

    model, known = (pmf.domain, pmf.weights, pmf.factors), (pmf.component_names, pmf.trait_models)
    if output == "-":
        sys.stdout.buffer.write(model_bytes(*model, about, *known))
        sys.stdout.flush()
    else:
        write_model(output, *model, about, *known)
