"""Text files below a folder, as sources."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal

from clock import from_rfc3339, now, rfc3339
from services.knowledge.cache import Count, Record, hash_text
from services.knowledge.file_selection import (
    CREDENTIALS,
    DRAFT,
    EXCLUDED_BY_SPHINX,
    NOT_CHOSEN,
    PARTIAL,
    PRIVATE,
    PathFilter,
    expand_includes,
    is_partial,
    is_unpublished,
    sphinx_excludes,
)
from services.knowledge.source_kinds import (
    CannotList,
    LeftOut,
    Listing,
    SourceDetails,
    SourceKind,
    SourceSetup,
    Text,
    Trouble,
    leave_out,
    read_inside,
)
from services.storage import OutsideFolder, confined, in_thread

HIDDEN = "it is hidden"

_MAX_DEPTH = 64
"""The depth of folders; symlinks can make a tree of any depth."""
_LETTERS_PER_UNDECODABLE = 10
"""The number of letters among which a text may have one that cannot be decoded."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts about a file. `rel_path`: its path below the folder of sources, with `/` between folders."""

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


class TextFiles(SourceKind[FileRecord]):
    """The `SourceKind` of text files below a folder; their paths are their ids. A file is read again when its size or
    time of change differs from the record.
    """

    noun, plural = "file", "files"
    step, record = "examine", FileRecord
    # A thread for each file would cost more than reading it. One thread waits for the disk while the other computes.
    batch, concurrency = 64, 2

    def __init__(self, setup: SourceSetup) -> None:
        self._folder, self._path_filter, self._max_bytes = setup.sources_dir, setup.path_filter, setup.max_bytes
        self._parts = [f"{name}/" for name in setup.source_folders]
        self._newest_partial = 0
        self._stamps: dict[str, tuple[int, int]] = {}
        """The size and time of each file in the last listing."""
        self._refused: dict[str, tuple[tuple[int, int], str]] = {}
        """The files that were read and are no sources, with their stamps then and the reason: not to be read again."""
        self._excluded: dict[str, tuple[tuple[int, int], PathFilter]] = {}
        """The stamps of each `conf.py` by its path, and the files that it excludes."""

    def owns(self, source_id: str) -> bool:
        return bool(source_id)

    def details(self, record: FileRecord) -> SourceDetails:
        read_at = from_rfc3339(record.last_indexed_at)
        return SourceDetails(record.file.size_bytes, record.file.mtime_ns / 1e9, read_at=read_at)

    def list_sources(self, records: Mapping[str, FileRecord], _at: float) -> Listing:
        found = list_files(self._folder, self._max_bytes, self._parts)
        self._stamps = found.files
        if "" in found.unreadable:
            remedy = "make this folder, and let this program read it; its sources stay as they are until then"
            raise CannotList(str(self._folder), f"{found.unreadable['']}; {remedy}", "kb.sources_dir")
        remedy = "nothing below it changes until it can be read"
        troubles = {str(self._folder / name): f"{reason}; {remedy}" for name, reason in found.unreadable.items()}
        listing = Listing(left_out=found.left_out, troubles=troubles, may_exist=found.may_exist)
        excluded = self._sphinx_excludes(found.files)
        newest_partial = max((stamps[1] for name, stamps in found.files.items() if is_partial(name)), default=0)
        for name, stamps in found.files.items():
            if (refusal := self._refusal(name, excluded)) is not None:
                listing.left_out[name] = refusal
                continue
            if self._is_unchanged(records.get(name), stamps, newest_partial):
                listing.unchanged.append(name)
            elif (refused := self._refused.get(name)) is not None and refused[0] == stamps:
                listing.left_out[name] = refused[1]
            else:
                listing.due.append(name)
        self._newest_partial = newest_partial
        return listing

    async def fetch(self, due: Mapping[str, FileRecord | None]) -> Sequence[FileRecord | LeftOut | Trouble]:
        at = rfc3339(now())
        return await in_thread(lambda: [each for name in due for each in self._examine(name, due[name], at)])

    def read(self, source_id: str) -> Text:
        return page_of(self._read(source_id), source_id, self._max_bytes, self._read_partial)

    def _is_unchanged(self, record: FileRecord | None, stamps: tuple[int, int], newest_partial: int) -> bool:
        if record is None or not record.content_hash or (record.file.size_bytes, record.file.mtime_ns) != stamps:
            return False
        # A partial that the page includes may have changed since the page was read.
        is_new = newest_partial != self._newest_partial
        return not (is_new and from_rfc3339(record.last_indexed_at) * 1e9 < newest_partial)

    def _refusal(self, name: str, excluded: Mapping[str, PathFilter]) -> str | None:
        if (refusal := self._path_filter.refusal(name)) is not None or self._path_filter.include:
            return refusal
        if is_partial(name):
            return PARTIAL
        left_out = any(
            name.startswith(folder) and choice.refusal(f"/{name.removeprefix(folder)}") == NOT_CHOSEN
            for folder, choice in excluded.items()
        )
        return EXCLUDED_BY_SPHINX if left_out else None

    def _sphinx_excludes(self, files: Mapping[str, tuple[int, int]]) -> dict[str, PathFilter]:
        """Return the files that each `conf.py` excludes, by the path of its folder with the slash."""
        known, self._excluded = self._excluded, {}
        for name, stamps in files.items():
            if name.rpartition("/")[2] == "conf.py":
                with suppress(OSError, OutsideFolder):  # an unreadable one leaves nothing out
                    before = known.get(name)
                    same = before if before is not None and before[0] == stamps else None
                    self._excluded[name] = same or (stamps, self._read_excludes(name))
        found = self._excluded.items()
        return {name.removesuffix("conf.py"): choice for name, (_, choice) in found if choice.exclude}

    def _read_excludes(self, name: str) -> PathFilter:
        conf = self._read(name)
        globs = [glob.strip("/") for glob in sphinx_excludes(conf.text) if glob.strip("/")]
        return PathFilter(exclude=[each for glob in globs for each in (f"/{glob}", f"/{glob}/**")])

    def _read_partial(self, name: str) -> str | None:
        """Return the text of a partial; None if the file is a page, is excluded or cannot be read."""
        refusal = self._path_filter.refusal(name)
        if not is_partial(name) and (refusal in {None, PRIVATE, CREDENTIALS} or self._path_filter.excludes(name)):
            return None
        try:
            part = self._read(name)
        except (OSError, OutsideFolder):
            return None
        return None if text_flaw(part, self._max_bytes) else part.text

    def _read(self, name: str) -> Text:
        if self._parts and not name.startswith(tuple(self._parts)):
            raise OutsideFolder("it lies outside of kb.source_folders")
        return read_inside(self._folder, confined.locate(self._folder, name), self._max_bytes)

    def _examine(self, name: str, record: FileRecord | None, at: str) -> Sequence[FileRecord | LeftOut | Trouble]:
        try:
            found = self.read(name)
        except FileNotFoundError:
            return [LeftOut(name, "it is gone")]  # the next listing shows if only the file is gone or the whole folder
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
                return [known.with_content(hash_text(found.text))]
        if name in self._stamps:
            self._refused[name] = self._stamps[name], flaw
        return leave_out(name, flaw, record, at)


def page_of(text: Text, name: str, max_bytes: int, read_partial: Callable[[str], str | None]) -> Text:
    """Return a file as a page: with its includes inserted, and its flaw. `read_partial`: as in `expand_includes`."""
    flaw = text_flaw(text, max_bytes) or (DRAFT if is_unpublished(text.text) else "")
    whole, has_includes = expand_includes(name, text.text.removeprefix("\ufeff"), read_partial)
    return replace(text, text=whole, flaw=flaw, has_includes=has_includes)


def text_flaw(text: Text, max_bytes: int) -> str:
    """Return why the text of a file cannot be a source (too large, binary, empty); empty if it can."""
    if text.is_cut:
        return too_large(max_bytes)
    if "\0" in text.text:
        return "it is binary"
    if text.text.count("\ufffd") * _LETTERS_PER_UNDECODABLE > len(text.text):
        return "it is binary, or not UTF-8"
    return "" if text.text.strip() else "it is empty"


@dataclass(slots=True)
class FolderListing:
    """The files found below a folder, by their names in it, with `/` between folders: possible sources with their size
    in bytes and time of change in nanoseconds; others, and why they are no sources; and files and folders that could
    not be read, and why; the name of the folder itself is empty.
    """

    files: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])

    def may_exist(self, name: str) -> bool:
        """Return True if `name` may exist although it is not listed, because a folder above it could not be read."""
        return any(not above or name == above or name.startswith(f"{above}/") for above in self.unreadable)


def list_files(folder: Path, max_bytes: int, parts: Sequence[str] = ()) -> FolderListing:
    """List the files below `folder`, without reading them. `parts`: only those below these folders in it, each with a
    slash at its end. Blocking; never raises.
    """
    listing = FolderListing()
    root = os.path.realpath(folder)
    for part in parts or [""]:
        _walk(root, f"{root}/{part}".rstrip("/"), part, max_bytes, listing, (root,))
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
        # The only printable white space is a blank.
        if own[0] == "." or own[-1] == " " or "\\" in own or not own.isprintable():
            listing.left_out[name] = HIDDEN if own[0] == "." else "its name cannot stand in an index; rename it"
            continue
        try:
            if entry.is_file(follow_symlinks=False):  # a short cut for nearly all entries
                status = entry.stat(follow_symlinks=False)
                if 0 < status.st_size <= max_bytes:
                    files[name] = status.st_size, status.st_mtime_ns
                    continue
            _list_entry(root, entry, name, max_bytes, listing, above)
        except FileNotFoundError:
            continue  # deleted meanwhile, or a symlink to nothing
        except OSError as error:
            listing.unreadable[name] = error.strerror or str(error)
        except OutsideFolder as error:
            listing.left_out[name] = str(error)


def _list_entry(
    root: str, entry: os.DirEntry[str], name: str, max_bytes: int, listing: FolderListing, above: tuple[str, ...]
) -> None:
    """Add one entry of a folder to the listing. Raises OutsideFolder: it is a symlink that leads out."""
    path = confined.resolve(root, entry.path) if entry.is_symlink() else entry.path
    if entry.is_dir():
        if path in above:
            listing.left_out[name] = "it leads back into a folder above it"
        elif len(above) > _MAX_DEPTH:
            listing.left_out[name] = f"it lies below more than {_MAX_DEPTH} folders"
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
