"""Files that appear whole or not at all, and why a file could not be read or written."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from jointpmf.errors import JointPMFError, shown

PathLike = str | os.PathLike[str]


@contextmanager
def atomic_output(path: PathLike) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes its name only when all is written.

    A device or a pipe is written to directly: it has no old content to protect.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_output(f"{folder}/answer") as file:
    ...         _ = file.write(b"42")
    ...         before = os.path.exists(f"{folder}/answer")
    ...     before, os.path.exists(f"{folder}/answer")
    (False, True)
    """
    text = checked_path(path)
    try:
        # a link stays a link; but that to a pipe, as `>(…)` gives one, leads to no name
        is_special = os.path.exists(text) and not os.path.isfile(text)
        target = Path(text if is_special else os.path.realpath(text))
        with target.open("wb") if is_special else _renamed_when_whole(target) as file:
            yield file
    except OSError as error:
        raise JointPMFError(f"cannot write {path}: {reason_of(error)}") from None


def checked_path(path: Any, what: str = "a file to write to") -> str:
    """Return a path as text, or raise naming what was given instead.

    Examples
    --------
    >>> checked_path(Path("fit.html"))
    'fit.html'
    """
    try:
        text = os.fspath(path)
        os.fsencode(text)  # not of half a character
    except (TypeError, UnicodeEncodeError):
        text = None
    if not isinstance(text, str):
        raise JointPMFError(f"{what} is named by a path, not by {shown(path)}")
    if "\0" in text:
        raise JointPMFError(f"{what} is named by a path without null characters, not {shown(path)}")
    return text


@contextmanager
def _renamed_when_whole(target: Path) -> Iterator[BinaryIO]:
    # a name of its own for each writer, and no longer than the target's may be
    temporary = target.with_name(f".jointpmf-{secrets.token_hex(8)}.tmp")
    with temporary.open("xb") as file:
        try:
            yield file
            file.flush()
            if target.exists():  # what was there keeps who may read it
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def reason_of(error: Exception) -> str:
    """Return why a file could not be read or written, without the number of the error.

    Examples
    --------
    >>> reason_of(OSError("No space left on device (os error 28)"))
    'No space left on device'
    """
    return getattr(error, "strerror", None) or str(error).split(" (os error")[0]


@contextmanager
def keeping_codes(what: str = "codes") -> Iterator[None]:
    """Turn a full or missing temporary folder, where something is kept, into a sentence."""
    try:
        yield
    except OSError as error:
        folder = os.environ.get("TMPDIR") or tempfile.tempdir or "/tmp"
        raise JointPMFError(
            f"cannot keep {what} in the temporary folder {folder}: {reason_of(error)}; set TMPDIR "
            "to another"
        ) from None
