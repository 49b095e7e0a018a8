"""Model files as a command is given them: by a path, or by stdin and stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def check_place(output: str) -> None:
    """Raise now, rather than after a long fit, if a file cannot be written there."""
    folder = os.path.dirname(os.path.realpath(output))
    if output != "-" and not os.path.isdir(folder):
        raise JointPMFError(f"cannot write {output}: there is no directory {folder}")
    if os.path.isdir(output):
        raise JointPMFError(f"cannot write {output}: it is a directory")


def check_replaces_nothing(output: str, what: str, sources: Mapping[str, str]) -> None:
    """Raise if what is written would replace a file that it is made from, by whatever name."""
    for kind, path in sources.items():
        is_stream = "-" in (output, path)  # what comes from stdin is not what goes to stdout
        are_files = not is_stream and os.path.exists(output) and os.path.exists(path)
        if are_files and os.path.samefile(output, path):
            raise JointPMFError(
                f"the {what} would replace the {kind} {path}; give another --output"
            )


def put_model(output: str, pmf: JointPMF, about: Mapping[str, str]) -> None:
    """Write a model to a file, or to stdout for "-"."""
    from jointpmf.model_file import model_bytes, write_model

    model, known = (pmf.domain, pmf.weights, pmf.factors), (pmf.component_names, pmf.trait_models)
    if output == "-":
        sys.stdout.buffer.write(model_bytes(*model, about, *known))
        sys.stdout.flush()
    else:
        write_model(output, *model, about, *known)
