"""Text files below a folder, as sources."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal

from clock import from_rfc3339, now, rfc3339
from services.knowledge.cache import Count, Record, hash_text
from services.knowledge.file_selection import (
    DRAFT,
    LEFT_OUT_BY_SPHINX,
    NOT_CHOSEN,
    PART,
    PRIVATE,
    PathFilter,
    is_part,
    is_unpublished,
    sphinx_excludes,
    with_parts,
)
from services.knowledge.source_kinds import (
    CannotList,
    LeftOut,
    LineResult,
    LinksLine,
    Listing,
    SourceDetails,
    SourceSetup,
    Text,
    Trouble,
    read_inside,
)
from services.storage import OutsideFolder, confined, in_thread

HIDDEN = "it is hidden"

_DEEPEST = 64
"""Folders within folders; symlinks can make a tree of any depth."""
_LETTERS_PER_UNDECODABLE = 10
"""A text may have one undecodable letter in so many."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`rel_path`: below the folder of sources, with `/` between folders."""

    rel_path: str
    size_bytes: Count
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord(Record):
    file: FileFacts
    source_type: Literal["file"] = "file"

    @property
    def source_id(self) -> str:
        return self.file.rel_path


class TextFiles:
    """The `SourceKind` of text files below a folder; their paths are their ids. A file is read again when its size or
    time of change differs from the record.
    """

    noun, plural = "file", "files"
    step, record = "examine", FileRecord
    # A thread for each file would cost more than reading it. One thread waits for the disk while the other computes.
    batch, concurrency = 64, 2

    def __init__(self, setup: SourceSetup) -> None:
        self._folder, self._choice, self._max_bytes = setup.sources_dir, setup.choice, setup.max_bytes
        self._newest_part = 0
        self._stamps: dict[str, tuple[int, int]] = {}
        """Size and time of each file, as it was last listed."""
        self._refused: dict[str, tuple[tuple[int, int], str]] = {}
        """Files that were read and are no sources: their stamps then, and why. They need not be read again."""
        self._excluded: dict[str, tuple[tuple[int, int], PathFilter]] = {}
        """By the path of a `conf.py` its stamps, and what it leaves out."""

    def owns(self, source_id: str) -> bool:
        return bool(source_id)

    @staticmethod
    def address(_source_id: str) -> str | None:
        return None  # where files are published is a setting

    def details(self, record: FileRecord) -> SourceDetails:
        return SourceDetails(record.file.size_bytes, record.file.mtime_ns / 1e9)

    def line_result(self, _line: LinksLine) -> LineResult | None:
        return None

    async def survey(self, _at: float) -> Sequence[Trouble]:
        return ()  # the folder is all there is

    def list_sources(self, records: Mapping[str, FileRecord], _at: float) -> Listing:
        found = list_files(self._folder, self._max_bytes)
        self._stamps = found.files
        if "" in found.unreadable:
            remedy = "make this folder, and let this program read it; its sources stay as they are until then"
            raise CannotList(str(self._folder), f"{found.unreadable['']}; {remedy}", "kb.sources_dir")
        remedy = "nothing below it changes until it can be read"
        troubles = {str(self._folder / name): f"{reason}; {remedy}" for name, reason in found.unreadable.items()}
        listing = Listing(left_out=found.left_out, troubles=troubles, unsure=found.unsure)
        excluded = self._sphinx_excludes(found.files)
        newest_part = max((stamps[1] for name, stamps in found.files.items() if is_part(name)), default=0)
        for name, stamps in found.files.items():
            if (refusal := self._refusal(name, excluded)) is not None:
                listing.left_out[name] = refusal
                continue
            record = records.get(name)
            # What a page includes may have changed since it was last read.
            older = newest_part and record is not None and _nanoseconds_of(record.last_indexed_at) < newest_part
            same = record is not None and (record.file.size_bytes, record.file.mtime_ns) == stamps
            if record is not None and same and record.content_hash and not (older and self._newest_part != newest_part):
                listing.unchanged.append(name)
            elif (refused := self._refused.get(name)) is not None and refused[0] == stamps:
                listing.left_out[name] = refused[1]
            else:
                listing.due.append(name)
        self._newest_part = newest_part
        return listing

    async def fetch(self, due: Mapping[str, FileRecord | None]) -> Sequence[FileRecord | LeftOut | Trouble]:
        at = rfc3339(now())
        return await in_thread(lambda: [each for name in due for each in self._examine(name, due[name], at)])

    def read(self, source_id: str) -> Text:
        text = read_inside(self._folder, confined.locate(self._folder, source_id), self._max_bytes)
        flaw = text_flaw(text, self._max_bytes) or (DRAFT if is_unpublished(text.text) else "")
        whole, has_parts = with_parts(source_id, text.text.removeprefix("\ufeff"), self._part)
        return replace(text, text=whole, flaw=flaw, has_parts=has_parts)

    def forget(self, source_id: str) -> None:
        """Nothing is kept besides the file."""

    def _refusal(self, name: str, excluded: Mapping[str, PathFilter]) -> str | None:
        if (refusal := self._choice.refusal(name)) is not None or self._choice.include:
            return refusal
        if is_part(name):
            return PART
        left_out = any(
            name.startswith(folder) and choice.refusal(f"/{name.removeprefix(folder)}") == NOT_CHOSEN
            for folder, choice in excluded.items()
        )
        return LEFT_OUT_BY_SPHINX if left_out else None

    def _sphinx_excludes(self, files: Mapping[str, tuple[int, int]]) -> dict[str, PathFilter]:
        """What each `conf.py` leaves out of its folder, by the path of that with its slash."""
        known, self._excluded = self._excluded, {}
        for name, stamps in files.items():
            if name.rpartition("/")[2] == "conf.py":
                with suppress(OSError, OutsideFolder):  # an unreadable one leaves nothing out
                    before = known.get(name)
                    same = before if before is not None and before[0] == stamps else None
                    self._excluded[name] = same or (stamps, self._excluded_by(name))
        found = self._excluded.items()
        return {name.removesuffix("conf.py"): choice for name, (_, choice) in found if choice.exclude}

    def _excluded_by(self, name: str) -> PathFilter:
        conf = read_inside(self._folder, confined.locate(self._folder, name), self._max_bytes)
        globs = [glob.strip("/") for glob in sphinx_excludes(conf.text) if glob.strip("/")]
        return PathFilter(exclude=[each for glob in globs for each in (f"/{glob}", f"/{glob}/**")])

    def _part(self, name: str) -> str | None:
        """The text of a file that is no page by itself; None: it is one, or it is kept out, or cannot be read."""
        refusal = self._choice.refusal(name)
        if not is_part(name) and (refusal in {None, PRIVATE} or self._choice.excludes(name)):
            return None
        try:
            part = read_inside(self._folder, confined.locate(self._folder, name), self._max_bytes)
        except (OSError, OutsideFolder):
            return None
        return None if text_flaw(part, self._max_bytes) else part.text

    def _examine(self, name: str, record: FileRecord | None, at: str) -> list[FileRecord | LeftOut | Trouble]:
        try:
            found = self.read(name)
        except FileNotFoundError:
            return [LeftOut(name, "it is gone")]  # the next listing tells whether it is, or the whole folder
        except OSError as error:
            return [Trouble(name, "read", error.strerror or str(error))]
        except OutsideFolder as error:
            flaw = str(error)
        else:
            flaw = found.flaw
            if not flaw:
                mtime_ns, size_bytes, _ = found.signature
                facts = FileFacts(name, size_bytes, mtime_ns)
                known = FileRecord.new(at, file=facts) if record is None else replace(record, file=facts)
                return [known.holding(hash_text(found.text))]
        if name in self._stamps:
            self._refused[name] = self._stamps[name], flaw
        if record is None or record.gone_at is not None:
            return [LeftOut(name, flaw)]
        return [LeftOut(name, flaw), replace(record, gone_at=at)]


def _nanoseconds_of(time: str) -> float:
    return from_rfc3339(time) * 1e9


def text_flaw(text: Text, max_bytes: int) -> str:
    """Return why a file that was read cannot be a source (too large, binary, empty); empty if it can."""
    if text.cut:
        return too_large(max_bytes)
    if "\0" in text.text:
        return "it is binary"
    if text.text.count("\ufffd") * _LETTERS_PER_UNDECODABLE > len(text.text):
        return "it is binary, or not UTF-8"
    return "" if text.text.strip() else "it is empty"


@dataclass(slots=True)
class FolderListing:
    """The files found below a folder. Names are relative to it, with `/` between folders.

    Attributes:
        files: possible sources: size in bytes and time of change in nanoseconds.
        left_out: why something is no source.
        unreadable: folders (the folder itself: an empty name) and files that could not be looked at, and why.
    """

    files: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])

    def unsure(self, name: str) -> bool:
        """Return whether `name` may exist although it is not listed, because a folder above it could not be read."""
        return any(not above or name == above or name.startswith(f"{above}/") for above in self.unreadable)


def list_files(folder: Path, max_bytes: int) -> FolderListing:
    """Look through `folder`, without reading files. Blocking; never raises."""
    listing = FolderListing()
    root = os.path.realpath(folder)
    _walk(root, root, "", max_bytes, listing, (root,))
    return listing


def _walk(root: str, folder: str, prefix: str, max_bytes: int, listing: FolderListing, above: tuple[str, ...]) -> None:
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
            if entry.is_file(follow_symlinks=False):  # nearly all entries: no detours
                status = entry.stat(follow_symlinks=False)
                if 0 < status.st_size <= max_bytes:
                    files[name] = status.st_size, status.st_mtime_ns
                    continue
            _list_entry(root, entry, name, max_bytes, listing, above)
        except FileNotFoundError:
            continue  # deleted this very moment, or a symlink to nothing
        except OSError as error:
            listing.unreadable[name] = error.strerror or str(error)
        except OutsideFolder as error:
            listing.left_out[name] = str(error)


def _list_entry(
    root: str, entry: os.DirEntry[str], name: str, max_bytes: int, listing: FolderListing, above: tuple[str, ...]
) -> None:
    """Raises OutsideFolder: it is a symlink that leads out."""
    path = confined.resolve(root, entry.path) if entry.is_symlink() else entry.path
    if entry.is_dir():
        if path in above:
            listing.left_out[name] = "it leads back into a folder above it"
        elif len(above) > _DEEPEST:
            listing.left_out[name] = f"it lies below more than {_DEEPEST} folders"
        else:
            _walk(root, path, f"{name}/", max_bytes, listing, (*above, path))
        return
    status = entry.stat()
    if not stat.S_ISREG(status.st_mode):
        listing.left_out[name] = "it is no ordinary file"
    elif status.st_size == 0:
        listing.left_out[name] = "it is empty"
    elif status.st_size > max_bytes:
        listing.left_out[name] = too_large(max_bytes)
    else:
        listing.files[name] = status.st_size, status.st_mtime_ns


def too_large(max_bytes: int) -> str:
    return f"it is larger than {max_bytes} bytes (kb.max_source_bytes)"
