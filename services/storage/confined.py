"""Opens files by names from outside (an index, a model), which cannot lead out of their folder."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

Signature = tuple[int, int, int]
"""The time of the last change in nanoseconds, the size in bytes, and the inode of a file: they change with the file."""

NO_SIGNATURE: Signature = (-1, -1, -1)
"""The signature of no file."""


class OutsideFolder(Exception):
    """A name leads out of its folder, or to a hidden file. The message is the reason."""


def locate(folder: Path, name: str) -> Path:
    """Return the path of `name` (with `/` between folders) in `folder`, without looking at the disk. Raises
    OutsideFolder: the name is absolute or hidden, leads upwards (`..`), or contains a NUL or a backslash.
    """
    if "\0" in name or "\\" in name:
        raise OutsideFolder("its name holds a character that no source's name has")
    steps = name.split("/")
    if any(step == "" or step.startswith(".") for step in steps):
        raise OutsideFolder("it is hidden or lies outside of its folder")
    return folder.joinpath(*steps)


def resolve(folder: str, path: str) -> str:
    """Return `path` with its symlinks followed. `folder`: already resolved. Raises OutsideFolder: the path leads out of
    `folder`, or to a hidden file; OSError: a symlink cannot be read.
    """
    target = os.path.realpath(path)
    steps = target.removeprefix(f"{folder}/").split("/")
    if not target.startswith(f"{folder}/") or any(step.startswith(".") for step in steps):
        raise OutsideFolder("it is, or leads to, something hidden or outside of its folder")
    return target


def signature_of(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_signature(path: str | Path) -> Signature | None:
    """Return the signature of a file; None if it does not exist or cannot be accessed. Takes about two microseconds."""
    try:
        return signature_of(os.stat(path))  # noqa: PTH116 (measured: half the cost)
    except OSError:
        return None


def read(folder: Path, path: Path, max_bytes: int) -> tuple[str, Signature, bool]:
    """Read the text of `path`, following symlinks as long as they stay inside `folder`; blocking.

    Bytes that are not UTF-8 become U+FFFD. Returns the text, the file's signature, and True if the text was cut at
    `max_bytes`.

    Raises:
        OutsideFolder: a symlink leads out of the folder or to a hidden file, or the path is no ordinary file.
        OSError: the file cannot be read.
    """
    target = _without_symlinks(folder, path) or resolve(os.path.realpath(folder), os.fspath(path))
    # A symlink here was made since the path was resolved, and is refused. Opening a pipe must not wait for a writer.
    descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 (of a descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OutsideFolder("it is no ordinary file")
        data = file.read(min(max_bytes, status.st_size) + 1)
    cut = len(data) > max_bytes
    # A cut text is not final: half a letter at its end is left out.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[:max_bytes], final=not cut)
    return text, signature_of(status), cut


def _without_symlinks(folder: Path, path: Path) -> str | None:
    """Return `path` unchanged if it has no symlink below `folder`; None: it has to be resolved, which makes two system
    calls for every folder from the root on, and took most of the time of reading thousands of files.
    """
    below = os.fspath(folder)
    for step in os.fspath(path).removeprefix(f"{below}{os.sep}").split(os.sep):  # noqa: PTH206 (as `read_signature`)
        below = f"{below}{os.sep}{step}"
        if step.startswith(".") or not step or stat.S_ISLNK(os.lstat(below).st_mode):
            return None
    return below if below == os.fspath(path) else None
