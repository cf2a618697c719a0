"""The folder of sources: what lies in it, and the text of one file. Blocking; reads only."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from services.storage import Outside

HIDDEN = "it is hidden"

_DEPTH = 64
"""Folders within folders; a link can make a tree as deep as it likes."""
_TENTH = 10
"""One unreadable letter in so many is a slip of the pen; more are no text."""


class NotText(Exception):
    """A file that is no source: the message says why."""


@dataclass(frozen=True, slots=True)
class FileText:
    text: str
    size_bytes: int
    mtime_ns: int


@dataclass(slots=True)
class Listing:
    """What a look through the folder found. Names are relative to it, with `/` between folders."""

    files: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Possible sources: size in bytes and time of change in nanoseconds."""
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Why something is no source."""
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """Folders (the folder itself: an empty name) and files about which nothing is known now, and why."""

    def unsure(self, name: str) -> bool:
        """Whether the absence of `name` means nothing, because nobody could look."""
        return any(not above or name == above or name.startswith(f"{above}/") for above in self.unreadable)


def list_files(folder: Path, max_bytes: int) -> Listing:
    """Look through `folder`, without reading files. Never raises: what cannot be looked at is in `unreadable`."""
    listing = Listing()
    home = os.path.realpath(folder)
    _walk(home, home, "", max_bytes, listing, (home,))
    return listing


def _walk(home: str, folder: str, prefix: str, max_bytes: int, listing: Listing, above: tuple[str, ...]) -> None:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=attrgetter("name"))
    except OSError as error:
        listing.unreadable[prefix.removesuffix("/")] = error.strerror or str(error)
        return
    files = listing.files
    for entry in entries:
        own = entry.name
        name = prefix + own
        # Of what is printable, only a blank is white space.
        if own[0] == "." or own[-1] == " " or "\\" in own or not own.isprintable():
            listing.left_out[name] = HIDDEN if own[0] == "." else "its name cannot stand in an index; rename it"
            continue
        try:
            if entry.is_file(follow_symlinks=False):  # nearly all there is: no detours
                status = entry.stat(follow_symlinks=False)
                if 0 < status.st_size <= max_bytes:
                    files[name] = status.st_size, status.st_mtime_ns
                    continue
            _take(home, entry, name, max_bytes, listing, above)
        except FileNotFoundError:
            continue  # gone in this very moment, or a link to nothing
        except OSError as error:
            listing.unreadable[name] = error.strerror or str(error)


def _take(
    home: str, entry: os.DirEntry[str], name: str, max_bytes: int, listing: Listing, above: tuple[str, ...]
) -> None:
    path = entry.path
    if entry.is_symlink():
        path = os.path.realpath(path)
        try:
            _check_inside(home, path)
        except Outside as error:
            listing.left_out[name] = str(error)
            return
    if entry.is_dir():
        if path in above or len(above) > _DEPTH:
            listing.left_out[name] = "it leads back into a folder above it"
        else:
            _walk(home, path, f"{name}/", max_bytes, listing, (*above, path))
        return
    status = entry.stat()
    if not stat.S_ISREG(status.st_mode):
        listing.left_out[name] = "it is no ordinary file"
    elif status.st_size == 0:
        listing.left_out[name] = "it is empty"
    elif status.st_size > max_bytes:
        listing.left_out[name] = f"it is larger than {max_bytes} bytes (kb.max_source_bytes)"
    else:
        listing.files[name] = status.st_size, status.st_mtime_ns


def read_text(folder: Path, name: str, max_bytes: int) -> FileText:
    """The text of a file that was listed, and what it looked like when it was read.

    Bytes that are no UTF-8 become U+FFFD, when they are few.

    Raises:
        NotText: it is binary, empty, too large, or no ordinary file inside the folder any more.
        OSError: it cannot be read.
    """
    home = os.path.realpath(folder)
    path = f"{home}/{name}"
    # A link that leads to another place inside is followed; one that was only just put there is not.
    target = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114 (texts throughout)
    try:
        _check_inside(home, target)
    except Outside as error:
        raise NotText(str(error)) from None
    descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotText("it is no ordinary file")
        data = _read(descriptor, min(status.st_size, max_bytes) + 1)
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise NotText(f"it is larger than {max_bytes} bytes (kb.max_source_bytes)")
    return FileText(_decoded(data), status.st_size, status.st_mtime_ns)


def _read(descriptor: int, size: int) -> bytes:
    data = os.read(descriptor, size)
    while len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data


def _decoded(data: bytes) -> str:
    if b"\0" in data:
        raise NotText("it is binary")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.count("\ufffd") * _TENTH > len(text):
        raise NotText("it is binary, or not UTF-8")
    if not text.strip():
        raise NotText("it is empty")
    return text


def _check_inside(home: str, path: str) -> None:
    """Whether a resolved path lies in `home`, and nothing hidden on the way to it."""
    steps = path.removeprefix(f"{home}/").split("/")
    if not path.startswith(f"{home}/") or any(step.startswith(".") for step in steps):
        raise Outside("it is a link to something hidden or outside of the folder")
