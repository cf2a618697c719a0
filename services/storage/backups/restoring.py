"""Restores a backup: checks it, unpacks it into a separate folder, compares the files, and moves them into place.
Deletes old backups: those that lie beside a new one and whose names differ from its name in the date only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from services.storage import data_folder, files
from services.storage.backups import manifest
from services.storage.backups.manifest import (
    DATA_PREFIX,
    IN_EVERY_FOLDER,
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    BadBackup,
    CopiedFile,
    Manifest,
)
from services.storage.backups.writing import CopyProgress

_READ_BYTES = 1024 * 1024
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED_FLAG = 0x1
_MIN_FREE_BYTES = 16 * 1024 * 1024
"""The space that stays free on the disk."""


class FolderInUse(Exception):
    """A folder is not empty. The message is the name of a file in it."""


def restore(file: Path, root: Path, progress: CopyProgress | None = None) -> Manifest:
    """Restore the data folder `root`, which must be empty and locked by the caller. Returns the manifest of the backup.

    Everything is unpacked and compared first. After a crash at any moment `root` is empty or, once it is locked again,
    complete. Files and folders are made for their owner alone.

    Raises:
        FolderInUse: `root` is not empty.
        BadBackup: `file` is no backup, or damaged, or too large for the disk; nothing has changed.
        OSError: something cannot be read or written; nothing has changed.
    """
    names = sorted(set(os.listdir(root)) - IN_EVERY_FOLDER)  # noqa: PTH208 (names only)
    if names:
        raise FolderInUse(names[0])
    with _open(file) as (archive, listed):
        if listed.total_bytes + _MIN_FREE_BYTES > (free := shutil.disk_usage(root).free):
            raise BadBackup(f"needs {listed.total_bytes} bytes, and {root} has {free}; make room")
        try:
            _unpack(archive, listed, root / data_folder.RESTORING, progress or CopyProgress())
            data_folder.commit_restored(root)
        except BaseException:
            with contextlib.suppress(OSError):
                data_folder.drop_unfinished_restore(root)
            raise
    try:
        data_folder.finish_restore(root)
    except KeyboardInterrupt:
        data_folder.finish_restore(root)  # too late to stop: the restore is committed
    return listed


def read_manifest(file: Path) -> Manifest:
    """Read the list of a backup's files, and compare it with the archive's. Raises BadBackup, OSError."""
    with _open(file) as (_, listed):
        return listed


@contextlib.contextmanager
def _open(file: Path) -> Generator[tuple[zipfile.ZipFile, Manifest]]:
    with _report_damage():
        archive = zipfile.ZipFile(file)
    with archive:
        with _report_damage():
            listed = _read_manifest(archive)
        yield archive, listed


@contextlib.contextmanager
def _report_damage() -> Generator[None]:
    """Turn the errors of `zipfile` about a damaged archive into a BadBackup."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError) as error:
        raise BadBackup(f"is damaged, or no backup ({error}); use another one") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BadBackup("is damaged: it leads outside of itself; use another one") from None


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    entries = archive.infolist()
    own = [entry for entry in entries if entry.filename == MANIFEST_NAME]
    if not own:
        raise BadBackup(f"is no backup of this program: it holds no {MANIFEST_NAME}")
    for entry in entries:
        file_type = stat.S_IFMT(entry.external_attr >> 16)
        is_plain = file_type in {0, stat.S_IFREG} and not entry.flag_bits & _ENCRYPTED_FLAG
        if not is_plain or entry.compress_type not in _COMPRESSIONS:
            raise BadBackup(f"holds something that is no plain file ({entry.filename[:80]!r}); do not use it")
    if own[0].file_size > MAX_MANIFEST_BYTES:
        raise BadBackup(f"is damaged: its {MANIFEST_NAME} is too large; use another backup")
    with archive.open(own[0]) as packed:
        listed = manifest.parse(packed.read(MAX_MANIFEST_BYTES))
    found = sorted((entry.filename, entry.file_size) for entry in entries)
    if found != sorted(
        [(MANIFEST_NAME, own[0].file_size), *((DATA_PREFIX + each.path, each.size) for each in listed.files)]
    ):
        raise BadBackup(f"is damaged: it does not hold what its {MANIFEST_NAME} says; use another backup")
    return listed


def _unpack(archive: zipfile.ZipFile, listed: Manifest, target: Path, progress: CopyProgress) -> None:
    """Unpack the listed files and folders, durably. Raises BadBackup, OSError."""
    paths = {*listed.folders, *(each.path for each in listed.files)}
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}
    folders = [target, *(target / path for path in sorted({*parents, *listed.folders}))]
    for folder in folders:
        os.mkdir(folder, 0o700)  # noqa: PTH102 (the crash tests cut at the system calls)
    progress.total = len(listed.files)
    for each in listed.files:
        _unpack_file(archive, each, target / each.path, progress)
        progress.files += 1
    for folder in folders:
        files.sync_folder(folder)


def _read(packed: IO[bytes]) -> bytes:
    with _report_damage():
        return packed.read(_READ_BYTES)


def _unpack_file(archive: zipfile.ZipFile, copied: CopiedFile, path: Path, progress: CopyProgress) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        hashed, left = hashlib.sha256(), copied.size
        with _report_damage():
            packed = archive.open(DATA_PREFIX + copied.path)
        with packed:
            while data := _read(packed):
                left -= len(data)
                if left < 0:
                    break
                try:
                    files.write_all(descriptor, data)
                except OSError as error:
                    error.filename = str(path)
                    raise
                hashed.update(data)
                progress.size += len(data)
        if left or hashed.hexdigest() != copied.sha256:
            raise BadBackup(f"is damaged: {copied.path} is not what was copied; use another backup")
        os.utime(descriptor, ns=(copied.mtime_ns, copied.mtime_ns))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_SERIES_MARKS = {
    "date": re.compile(
        r"(?<![0-9])(?:(?:19|20)[0-9]{2}-?W[0-9]{2}|(?:19|20)[0-9]{2}(?:[-_.:T ]?[0-9]{2}){1,5}"
        r"|[0-9]{2}[-_.][0-9]{2}[-_.](?:19|20)[0-9]{2})(?![0-9])"
    ),
    "seconds": re.compile(r"(?<![0-9])[0-9]{9,13}(?![0-9])"),
    "number": re.compile(r"(?<![A-Za-z0-9])[0-9]+"),
}
"""The parts of names that tell backups of a series apart, the surest first: `2026-02-01`, `20260201T031056`,
`2026-W05`, `01.02.2026`; seconds since 1970; a number that is no part of a name such as `bot2`.
"""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The names of deleted backups, and of files that look like backups and are none, with the reason in brackets."""

    deleted: tuple[str, ...]
    left: tuple[str, ...]


def series_of(name: str) -> str | None:
    """Return the name with a mark for its date, which all backups of a series share; without a date, for its last
    number. Other numbers may tell one bot from another, as in `bot2-2026-02-01.zip`. None: it holds neither.
    """
    for kind, pattern in _SERIES_MARKS.items():
        if found := [*pattern.finditer(name)]:
            return f"{name[: found[-1].start()]}<{kind}>{name[found[-1].end() :]}"
    return None


def prune(newest: Path, keep: int) -> PruneResult:
    """Delete the oldest backups of the series of `newest` beyond `keep`, by the times in them; `newest` always stays.

    Each is deleted whole, by one step, after its manifest was read. Links, folders and what is no whole backup stay.
    Raises OSError: a file cannot be read or deleted; the others that were not yet deleted stay.
    """
    newest = Path(os.path.realpath(newest))
    others: list[tuple[str, Path]] = []
    left: list[str] = []
    for path in sorted(newest.parent.iterdir()):
        same_series = path.name != newest.name and series_of(path.name) == series_of(newest.name) is not None
        if not same_series or path.is_symlink() or not path.is_file():
            continue
        try:
            others.append((read_manifest(path).made_at, path))
        except BadBackup as bad:
            left.append(f"{path.name} ({bad})")
    others.sort(reverse=True)
    old = [path for _, path in others[max(keep - 1, 0) :]]
    for path in reversed(old):
        path.unlink(missing_ok=True)
    if old:
        files.sync_folder(newest.parent)
    return PruneResult(tuple(path.name for path in reversed(old)), tuple(left))
