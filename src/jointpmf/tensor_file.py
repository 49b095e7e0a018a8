"""Files of arrays and texts: safetensors with JSON metadata. Nothing in a file is ever executed.

Models and replicates are such files. What is read is exactly as long as its header says, and has a
checksum; what the arrays and texts mean is checked by whoever asked for them.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_in
from safetensors.numpy import save

from jointpmf.errors import JointPMFError, shown
from jointpmf.output import PathLike, checked_path, reason_of

_MAX_HEADER = 100_000_000
"""The longest header, in bytes; safetensors has the same limit."""

_READ_AT_ONCE = 2**24
"""Bytes read at a time, so that a false size in a header allocates no memory."""


class Kind(NamedTuple):
    """What a file says that it is."""

    format: str
    version: str
    title: str
    """What people call it."""
    texts: tuple[str, ...]
    """The texts that it holds, in the order of the checksum."""


class TensorFile(NamedTuple):
    """What was read from a file of some kind."""

    name: PathLike
    kind: Kind
    metadata: dict[str, str]
    tensors: dict[str, np.ndarray]

    def check_unchanged(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Raise if the checksum is not that of the file's texts and these arrays, in order."""
        texts = [self.metadata[key] for key in self.kind.texts]
        if self.metadata.get("checksum") != checksum_of(texts, tensors.values()):
            raise JointPMFError(
                f"{self.name} was changed after it was written: its checksum is another"
            )


def file_bytes(
    kind: Kind,
    texts: Mapping[str, str],
    tensors: Mapping[str, np.ndarray],
    beside: Mapping[str, np.ndarray] | None = None,
) -> bytes:
    """Return the content of a file; equal arrays and texts give equal bytes.

    The checksum is of the texts that the kind names and of the tensors, not of those beside them.

    Examples
    --------
    >>> import io
    >>> kind = Kind("diary", "1", "diary", ("title",))
    >>> content = file_bytes(kind, {"title": "May"}, {"days": np.arange(3)})
    >>> read_tensors(io.BytesIO(content), kind).tensors["days"].tolist()
    [0, 1, 2]
    """
    metadata = {"format": kind.format, "version": kind.version, **texts}
    metadata["checksum"] = checksum_of([texts[key] for key in kind.texts], tensors.values())
    everything = {**tensors, **(beside or {})}
    arrays = {key: np.ascontiguousarray(array) for key, array in everything.items()}
    return with_header(*header_and_numbers(save(arrays, metadata)))


def checksum_of(texts: Iterable[str], tensors: Iterable[np.ndarray]) -> str:
    """Return the SHA-256 of texts and arrays, in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor, tensor.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def header_and_numbers(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and the bytes of its numbers."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def with_header(header: Mapping[str, Any], numbers: bytes) -> bytes:
    """Return a safetensors file; its header is sorted, so that equal models give equal bytes."""
    text = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin where a float64 may
    return len(text).to_bytes(8, "little") + text + numbers


def read_tensors(source: PathLike | BinaryIO, kind: Kind) -> TensorFile:
    """Return what a file of a kind holds; `source` is a path or an open binary file."""
    if not isinstance(source, (str, os.PathLike)) and hasattr(source, "read"):
        return _parsed(_content_of(source, "the input", kind), "the input", kind)
    source = checked_path(source, f"a {kind.title}")
    try:
        with open(source, "rb") as file:
            content = _content_of(file, source, kind)
    except JointPMFError:
        raise
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise JointPMFError(f"cannot read {source}: {reason_of(error)}") from None
    return _parsed(content, source, kind)


def format_of(path: PathLike) -> str | None:
    """Return what a file says that it is; None if it says nothing, or can be read only once."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            header = json.loads(_read(file, int.from_bytes(file.read(8), "little")))
        return str(header["__metadata__"]["format"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _content_of(file: BinaryIO, name: PathLike, kind: Kind) -> bytes:
    """Return the bytes of a file, as many as its header claims or fewer."""
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or not 2 <= length <= _MAX_HEADER:
        raise JointPMFError(f"{name} is not a {kind.title}: it does not begin with a header")
    header = _read(file, length)
    end = _claimed_end(_header_of(header, name, kind))
    in_file = _size_of(file)
    if end is None or (in_file is not None and in_file != 8 + length + end):
        raise JointPMFError(
            f"{name} is not a whole {kind.title}: its header and its length contradict each other"
        )
    return prefix + header + _read(file, end + 1)  # a byte more, to notice what should not be there


def _header_of(header: bytes, name: PathLike, kind: Kind) -> dict[str, Any]:
    try:
        found = json.loads(header)
    except (ValueError, RecursionError):
        raise JointPMFError(f"{name} is not a {kind.title}: its header is not JSON") from None
    if not isinstance(found, dict):
        raise JointPMFError(f"{name} is not a {kind.title}: its header is not a JSON object")
    return found


def _claimed_end(header: dict[str, Any]) -> int | None:
    """Return where the last tensor ends, by the header; None if that makes no sense."""
    try:
        ends = [spec["data_offsets"][1] for name, spec in header.items() if name != "__metadata__"]
    except (KeyError, IndexError, TypeError):
        return None
    return max(ends) if ends and all(isinstance(end, int) and end >= 0 for end in ends) else None


def _size_of(file: BinaryIO) -> int | None:
    """Return the length of a file on disk; None for a pipe, which has none."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _read(file: BinaryIO, count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0 and (part := file.read(min(count, _READ_AT_ONCE))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _parsed(content: bytes, name: PathLike, kind: Kind) -> TensorFile:
    try:
        tensors = tensors_in(content)
    except SafetensorError as error:
        raise JointPMFError(f"{name} is not a {kind.title}: {in_one_line(error)}") from None
    except (AttributeError, KeyError, TypeError, ValueError):  # a type that numpy does not have
        raise JointPMFError(f"{name} holds numbers of a type that no {kind.title} has") from None
    return TensorFile(name, kind, _metadata_of(content, name, kind), tensors)


def _metadata_of(content: bytes, name: PathLike, kind: Kind) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    metadata = _header_of(content[8 : 8 + length], name, kind).get("__metadata__")
    if not isinstance(metadata, dict) or "format" not in metadata:
        raise JointPMFError(f"{name} is not a jointpmf {kind.title}")
    if metadata["format"] != kind.format:
        found = shown(metadata["format"])
        raise JointPMFError(f"{name} is not a jointpmf {kind.title}: its format is {found}")
    if metadata.get("version") != kind.version:
        raise JointPMFError(
            f"{name} has format version {shown(metadata.get('version'))}; "
            f"this library reads {kind.version!r}"
        )
    return metadata


def in_one_line(error: Exception) -> str:
    """Return what an error says without line breaks."""
    if isinstance(error, KeyError):
        return f"{error} is not there"
    return " ".join(str(error).split()) or type(error).__name__
