"""Files that stay inside their folder: names from outside (an index, a model) cannot lead out of it."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

Signature = tuple[int, int, int]
"""Changes when a file does: its time of change in nanoseconds, size and inode."""

NEVER: Signature = (-1, -1, -1)
"""What no file looks like."""


class Outside(Exception):
    """A name that leads out of its folder, or to something hidden; the message says which."""


def locate(folder: Path, name: str) -> Path:
    """The file `name` (with `/` between folders) in `folder`, by its name alone: nothing is looked up.

    Raises:
        Outside: the name is absolute, climbs (`..`), names something hidden, or holds a NUL or a backslash.
    """
    if "\0" in name or "\\" in name:
        raise Outside("its name holds a character that no source's name has")
    steps = name.split("/")
    if any(step == "" or step.startswith(".") for step in steps):
        raise Outside("it is hidden or lies outside of its folder")
    return folder.joinpath(*steps)


def signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


def read(folder: Path, path: Path, max_bytes: int) -> tuple[str, Signature, bool]:
    """The text of `path`, wherever symlinks lead, provided that is inside `folder`; blocking.

    Bytes that are no UTF-8 become U+FFFD. Gives the text, the file's signature, and whether it was cut at
    `max_bytes`.

    Raises:
        Outside: a symlink leads out, or to something hidden, or it is no ordinary file.
        OSError: it cannot be read.
    """
    home = os.path.realpath(folder)
    target = os.path.realpath(path)
    steps = Path(os.path.relpath(target, home)).parts
    if not steps or any(step.startswith(".") for step in steps):
        raise Outside("it is hidden or lies outside of its folder")
    # Resolved already, so a link here has only just been put there; and opening a pipe must not wait for a writer.
    descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (of a descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Outside("it is no ordinary file")
        data = file.read(max_bytes + 1)
    cut = len(data) > max_bytes
    # Not final when cut: half a letter at the end is left out.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[:max_bytes], final=not cut)
    return text, signature(status), cut
