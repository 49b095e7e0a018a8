"""Files of publishers: found in a folder, or downloaded, checked by their SHA-256 sum and kept."""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointpmf.errors import JointPMFError
from jointpmf.output import checked_path

logger = logging.getLogger("jointpmf")

_PLACE = "a folder that you give as data_home or in the environment variable JOINTPMF_DATA"


@dataclass(frozen=True)
class Archive:
    """A file as it can be downloaded: the publisher's address first, then those of copies."""

    file: str
    unpacked: str
    sha256: str
    addresses: tuple[str, ...]


def _movielens_archive(release: str, sha256: str) -> Archive:
    file = f"ml-{release}.zip"
    address = f"https://files.grouplens.org/datasets/movielens/{file}"
    return Archive(file, f"ml-{release}", sha256, (address,))


ARCHIVES = {
    "latest-small": _movielens_archive(  # as generated in September 2018
        "latest-small", "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436"
    ),
    "20m": _movielens_archive(
        "20m", "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3"
    ),
    "25m": _movielens_archive(
        "25m", "8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa"
    ),
    "32m": _movielens_archive(
        "32m", "e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee"
    ),
    "jester": Archive(
        "jester_dataset_1_1.zip",
        "jester-data-1.xls",
        "cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615",
        (
            "https://eigentaste.berkeley.edu/dataset/jester_dataset_1_1.zip",
            "https://web.archive.org/web/20260301101947id_/"
            "https://eigentaste.berkeley.edu/dataset/jester_dataset_1_1.zip",
        ),
    ),
}
"""What can be downloaded, and the SHA-256 sum that it must have."""


def _root(data_home: Any) -> Path | None:
    """Return the folder that was given, as an argument or in the environment."""
    given = os.environ.get("JOINTPMF_DATA") or None if data_home is None else data_home
    if given is None:
        return None
    root = Path(checked_path(given, "the folder data_home")).expanduser()
    if not os.path.isdir(root) and (data_home is None or os.path.exists(root)):
        whose = "JOINTPMF_DATA" if data_home is None else "data_home"
        raise JointPMFError(f"{whose} names {str(given)!r}, which is not a folder")
    return root


def data_folders(data_home: Any) -> list[Path]:
    """Return the folders to look in."""
    root = _root(data_home)
    return [] if root is None else [root, root / "ratings"]


def packed_or_not(file: str) -> list[str]:
    """Return the names that a file may have, packed or not."""
    return [file, f"{file}.gz"]


def first_file(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    """Return the first file there is."""
    names = list(names)
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.is_file()), None)


def publisher_file(key: str, folder: str, data_home: Any) -> Path:
    """Return the publisher's file, from the folder if it is there undamaged, or downloaded."""
    if key not in ARCHIVES:
        raise JointPMFError(
            f"{key!r} cannot be downloaded: put a folder {folder!r} with ratings.csv and "
            f"movies.csv into {_PLACE}"
        )
    archive = ARCHIVES[key]
    for path in (shelf / archive.file for shelf in data_folders(data_home)):
        if path.is_file():
            if _sha256(path) == archive.sha256:
                return path
            logger.warning("%s is damaged or of another release: its SHA-256 sum differs", path)
    return _downloaded(archive, None if data_home is None else _root(data_home))


def _sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _downloaded(archive: Archive, folder: Path | None) -> Path:
    """Return a file that was downloaded, now or before, and has the right sum."""
    try:
        import pooch
    except ImportError:
        raise JointPMFError(
            f"downloading {archive.file} needs the extra: pip install 'jointpmf[paper]'; or put "
            f"the {archive.unpacked!r} that it unpacks to into {_PLACE}"
        ) from None
    failures = []
    for address in archive.addresses:
        try:
            with _quiet(pooch.get_logger()):
                path = pooch.retrieve(
                    address,
                    known_hash=f"sha256:{archive.sha256}",
                    fname=archive.file,
                    path=folder or pooch.os_cache("jointpmf"),
                    downloader=_checked(pooch.HTTPDownloader(chunk_size=2**20), archive),
                )
            return Path(path)
        except JointPMFError as error:
            failures.append(error)
        except OSError as error:
            failures.append(_not_downloaded(archive, address, error))
    raise failures[0]


def _checked(download: Callable[..., Any], archive: Archive) -> Callable[..., None]:
    """Return a downloader for pooch that names what is wrong with a file."""

    def checked(address: str, file: str, _: Any) -> None:
        download(address, file, None)
        sha256 = _sha256(file)
        if sha256 != archive.sha256:
            raise JointPMFError(
                f"{archive.file} from {address} has the SHA-256 sum {sha256} instead of "
                f"{archive.sha256}: try again, or unpack {archive.unpacked!r} from a copy that you "
                "trust into data_home or JOINTPMF_DATA"
            )

    return checked


def _not_downloaded(archive: Archive, address: str, error: OSError) -> JointPMFError:
    response = getattr(error, "response", None)
    reason = type(error).__name__ if response is None else f"HTTP status {response.status_code}"
    return JointPMFError(
        f"{archive.file} could not be downloaded from {address} ({reason}): put it, or the "
        f"{archive.unpacked!r} that it unpacks to, into {_PLACE}"
    )


@contextmanager
def _quiet(other: logging.Logger) -> Iterator[None]:
    """Keep another library from logging to stderr."""
    level = other.level
    other.setLevel(logging.WARNING)
    try:
        yield
    finally:
        other.setLevel(level)


def zip_member(archive: Path, name: str) -> bytes:
    """Return the content of a file in a zip."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.read(name)
    except KeyError:
        raise JointPMFError(f"{archive} has no file {name}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
        raise JointPMFError(
            f"{archive} is not a whole zip file; delete it, and it will be downloaded again"
        ) from None
