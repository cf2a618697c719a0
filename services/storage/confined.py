"""Files that stay inside their folder: names from outside (an index, a model) cannot lead out of it."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

Signature = tuple[int, int, int]
"""Changes when a file does: its time of change in nanoseconds, size in bytes, and inode."""

NEVER: Signature = (-1, -1, -1)
"""The signature of no file."""


class OutsideFolder(Exception):
    """A name leads out of its folder, or to something hidden; the message says which."""


def locate(folder: Path, name: str) -> Path:
    """Return the path of `name` (with `/` between folders) in `folder`, without looking at the disk.

    Raises:
        OutsideFolder: the name is absolute, climbs (`..`), names something hidden, or holds a NUL or a backslash.
    """
    if "\0" in name or "\\" in name:
        raise OutsideFolder("its name holds a character that no source's name has")
    steps = name.split("/")
    if any(step == "" or step.startswith(".") for step in steps):
        raise OutsideFolder("it is hidden or lies outside of its folder")
    return folder.joinpath(*steps)


def resolve(home: str, path: str) -> str:
    """`path` with its symlinks followed; `home`: the folder, resolved already.

    Raises:
        OutsideFolder: it leads out of `home`, or to something hidden.
        OSError: that cannot be found out.
    """
    target = os.path.realpath(path)
    steps = target.removeprefix(f"{home}/").split("/")
    if not target.startswith(f"{home}/") or any(step.startswith(".") for step in steps):
        raise OutsideFolder("it is, or leads to, something hidden or outside of its folder")
    return target


def signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


def look(path: str | Path) -> Signature | None:
    """Return the signature of a file; None if there is none, or it cannot be accessed. Takes a microsecond or two."""
    try:
        return signature(os.stat(path))  # noqa: PTH116 (measured: half the cost)
    except OSError:
        return None


def read(folder: Path, path: Path, max_bytes: int) -> tuple[str, Signature, bool]:
    """Read the text of `path`, following symlinks as long as they stay inside `folder`; blocking.

    Bytes that are not UTF-8 become U+FFFD. Gives the text, the file's signature, and whether it was cut at
    `max_bytes`.

    Raises:
        OutsideFolder: a symlink leads out, or to something hidden, or it is no ordinary file.
        OSError: it cannot be read.
    """
    target = _without_symlinks(folder, path) or resolve(os.path.realpath(folder), os.fspath(path))
    # Resolved, so a symlink here is brand-new and refused; and opening a pipe must not wait for a writer.
    descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 (of a descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OutsideFolder("it is no ordinary file")
        data = file.read(min(max_bytes, status.st_size) + 1)
    cut = len(data) > max_bytes
    # Not final when cut: half a letter at the end is left out.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[:max_bytes], final=not cut)
    return text, signature(status), cut


def _without_symlinks(folder: Path, path: Path) -> str | None:
    """`path` as it is, if no symlink lies between `folder` and it; None: it has to be resolved.

    Each call to the system may cost a turn of Python's lock: resolving asks for every folder from the root on, twice,
    which took most of the time of reading thousands of files.
    """
    below = os.fspath(folder)
    for step in os.fspath(path).removeprefix(f"{below}{os.sep}").split(os.sep):  # noqa: PTH206 (as `look`)
        below = f"{below}{os.sep}{step}"
        if step.startswith(".") or not step or stat.S_ISLNK(os.lstat(below).st_mode):
            return None
    return below if below == os.fspath(path) else None
