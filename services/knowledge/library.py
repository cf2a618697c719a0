"""The library that answers are made from: the index and the texts of sources, and what one server sees of them."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from model.source_ids import bare_name, is_topic, owner_of, topic_in, with_owner, without_owner
from services.knowledge import index_file
from services.knowledge.index_file import IndexEntry
from services.knowledge.kinds import web_address
from services.knowledge.source_kinds import AnyKind, Text, kind_of, read_inside
from services.knowledge.topic_files import belongs_to
from services.storage import OutsideFolder, Signature, confined, in_thread


def address_in(source_id: str) -> str | None:
    """Return the web address that an id consists of or ends with; None if it does neither."""
    name = bare_name(source_id)
    url = web_address(name)
    return url if url is not None and name.endswith(url) else None


@dataclass(frozen=True, slots=True)
class Source:
    """A document with its text, or with the excerpt that a model reads.

    Attributes:
        stamp: shows without reading the file whether the text has changed (`is_unchanged`); empty if nothing does.
        title: empty if unknown.
    """

    id: str
    text: str
    stamp: str = field(default="", compare=False)
    title: str = ""
    is_excerpt: bool = False

    @property
    def url(self) -> str | None:
        """The address of the source on the web; None if its id does not tell."""
        return web_address(bare_name(self.id))


def stamp_of(text: Text) -> str:
    """Return the stamp that `is_unchanged` checks. Empty if the text includes other files: it is read each time."""
    return "" if text.has_includes else json.dumps([os.fspath(text.path), *text.signature])


def is_unchanged(stamp: str) -> bool:
    """Return True if the file that this stamp was made from is unchanged. Blocking, for a microsecond or two."""
    if not stamp:
        return False
    path, *signature = json.loads(stamp)
    return confined.read_signature(path) == tuple(signature)


class SourceUnavailable(Exception):
    """A source cannot be loaded. The message names it and the reason."""


class Library(Protocol):
    async def index(self) -> Sequence[IndexEntry]:
        """Return the combined index: team entries first, then the knowledge base's."""
        ...

    async def load(self, source_id: str) -> Source:
        """Return the whole text of one source, from disk or the web cache, never from the network.

        Raises:
            SourceUnavailable: the id is in no index, or its text cannot be read.
        """
        ...


log = logging.getLogger(__name__)

_REMEDY = "; app.py --init-kb makes it, and so does the running bot"

MAX_CACHED_CHARS = 20_000_000
"""The most text of loaded sources that is kept in memory: ten of the largest that the default limit allows."""


class _Index:
    """One index file, read again only when it has changed."""

    def __init__(self, path: Path, namespace: str, *, expected: bool = True) -> None:
        self.entries: tuple[IndexEntry, ...] = ()
        self._path = os.fspath(path)
        self._namespace = namespace
        self._expected = expected
        self._read_signature: Signature | None = confined.NO_SIGNATURE
        """The file's signature when it was read; None if there was no file."""
        self._reading = threading.Lock()
        """Two threads may read: the one that began earlier must not replace what the other one has read since."""
        self._reported = ""

    def is_stale(self) -> bool:
        """Return True if the file has changed. On the event loop: a thread would cost a hundred times the `stat`."""
        return confined.read_signature(self._path) != self._read_signature

    def read(self) -> None:
        """Read the file, unless another thread just did. Blocking.

        A missing file gives no entries; an unreadable one leaves the earlier entries.
        """
        with self._reading:
            if self.is_stale():
                self._read()

    def _read(self) -> None:
        seen: Signature | None = None
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 (kept as text for `stat`)
                seen = confined.signature_of(os.fstat(file.fileno()))
                text = file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            self.entries = ()
            # A team that has not taught anything yet has no index: nothing is amiss.
            level, remedy = (logging.WARNING, _REMEDY) if self._expected else (logging.INFO, "")
            self._report(f"there is no index yet, so nothing can be selected from it{remedy}", level)
        except OSError as error:
            self._report(f"the index cannot be read ({error.strerror}); its earlier entries stay")
            return
        else:
            self.entries = tuple(index_file.parse(text, self._path, self._namespace))
            self._reported = ""
        self._read_signature = seen  # last, as the event loop may look meanwhile

    def _report(self, problem: str, level: int = logging.WARNING) -> None:
        """Log a problem once, not at every question."""
        if problem != self._reported:
            log.log(level, "%s: %s", self._path, problem)
            self._reported = problem


class DiskLibrary:
    """A `Library` over the index files and texts that updates of the knowledge base and of the team's topics write.

    It caches texts until the time, size or inode of their file changes. A call that finds all files unchanged does not
    leave the event loop.
    """

    def __init__(
        self,
        *,
        index_path: Path,
        kinds: Sequence[AnyKind],
        team_index_path: Path,
        team_topics_dir: Path,
        max_source_bytes: int = 2_000_000,
        most_cached_chars: int = MAX_CACHED_CHARS,
        hidden_topics: Collection[str] = (),
        redact: Callable[[str], str] = str,
        expects_documents: bool = True,
    ) -> None:
        """`kinds`: read the sources behind `kb:`. `hidden_topics`: topics that are neither listed nor loaded, including
        their continuations. `redact`: removes from a text what nobody may read. `expects_documents`: warn if the index
        of documents is missing.
        """
        self._indices = (
            _Index(team_index_path, "team", expected=False),
            _Index(index_path, "kb", expected=expects_documents),
        )
        self._kinds = kinds
        self._topics_dir = team_topics_dir
        self._hidden_topics = hidden_topics
        self._redact = redact
        self._max_source_bytes = max_source_bytes
        self._team: tuple[IndexEntry, ...] = ()
        self._kb: tuple[IndexEntry, ...] = ()
        self._entries: tuple[IndexEntry, ...] = ()
        self._ids: frozenset[str] = frozenset()
        self._cached: OrderedDict[str, tuple[str, Signature, Source]] = OrderedDict()
        self._cached_chars = 0
        self._max_cached_chars = most_cached_chars

    async def index(self) -> Sequence[IndexEntry]:
        """Return the entries, those of the team first. Returns the same tuple until something changes."""
        stale = [index for index in self._indices if index.is_stale()]
        if stale:
            await in_thread(lambda: [index.read() for index in stale])
        team, kb = self._indices[0].entries, self._indices[1].entries
        # Not only after reading: a caller that began to read may have been cancelled while the thread went on.
        if team is not self._team or kb is not self._kb:
            self._team, self._kb = team, kb
            listed = (entry for entry in team if not belongs_to(topic_in(entry.id), self._hidden_topics))
            self._entries = (*listed, *kb)
            self._ids = frozenset(entry.id for entry in self._entries)
        return self._entries

    async def load(self, source_id: str) -> Source:
        """Return the text of a source that the index lists now, up to the size limit.

        Raises:
            SourceUnavailable: the id is not in the index, its name leads out of its folder, or the text is missing
                (a page is not in the cache), empty or unreadable.
        """
        await self.index()
        if source_id not in self._ids:
            raise SourceUnavailable(f"{source_id!r} is not in the index")
        cached = self._cached.get(source_id)
        if cached is not None and confined.read_signature(cached[0]) == cached[1]:
            self._cached.move_to_end(source_id)
            return cached[2]
        try:
            found = await in_thread(self._read, source_id)
        except OutsideFolder as error:
            raise SourceUnavailable(f"{source_id!r} is not read: {error}") from error
        except (OSError, ValueError) as error:  # a kind may parse what it reads
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise SourceUnavailable(f"{source_id!r} cannot be read: {reason}") from error
        if not found.text.strip():
            raise SourceUnavailable(f"{source_id!r} is empty")
        if found.is_cut:
            log.warning("%s is longer than %d bytes; the rest is left out", source_id, self._max_source_bytes)
        source = Source(source_id, found.text, stamp_of(found))
        if not found.has_includes:
            self._remember(os.fspath(found.path), found.signature, source)
        return source

    def _read(self, source_id: str) -> Text:
        namespace, _, name = source_id.partition(":")
        if namespace == "team":
            found = read_inside(self._topics_dir, confined.locate(self._topics_dir, name), self._max_source_bytes)
        elif (kind := kind_of(self._kinds, name)) is not None:
            found = kind.read(name)
        else:
            raise OutsideFolder("no kind of source has such ids")
        return replace(found, text=self._redact(found.text))

    def _remember(self, path: str, seen: Signature, source: Source) -> None:
        """Cache a text, and drop the least recently used ones beyond the limit."""
        old = self._cached.pop(source.id, None)
        if old is not None:
            self._cached_chars -= len(old[2].text)
        self._cached[source.id] = (path, seen, source)
        self._cached_chars += len(source.text)
        while self._cached_chars > self._max_cached_chars:
            _, (_, _, dropped) = self._cached.popitem(last=False)
            self._cached_chars -= len(dropped.text)


class OwnLibrary:
    """A library whose sources all belong to one server: adds the server to their ids."""

    def __init__(self, library: Library, owner: int) -> None:
        self._library = library
        self._owner = owner
        self._seen: Sequence[IndexEntry] = ()
        self._entries: tuple[IndexEntry, ...] = ()

    async def index(self) -> Sequence[IndexEntry]:
        """Return the entries; the same tuple until something changes."""
        seen = await self._library.index()
        if seen is not self._seen:
            self._entries = tuple(replace(entry, id=with_owner(entry.id, self._owner)) for entry in seen)
            self._seen = seen
        return self._entries

    async def load(self, source_id: str) -> Source:
        if owner_of(source_id) != self._owner:
            raise SourceUnavailable(f"{source_id!r} is not of server {self._owner}")
        return replace(await self._library.load(without_owner(source_id)), id=source_id)


class JoinedLibrary:
    """The library for the answers of one server: its own sources and the shared ones, and no others.

    Only this class decides what a server sees. All code that answers the server gets this library and no other, so it
    cannot name, search, load or cite any other source.
    """

    def __init__(self, own: OwnLibrary, shared: Library) -> None:
        self._own = own
        self._shared = shared
        self._seen: tuple[Sequence[IndexEntry], Sequence[IndexEntry]] = (), ()
        self._entries: tuple[IndexEntry, ...] = ()

    async def index(self) -> Sequence[IndexEntry]:
        """Return team entries first, own ones before shared ones; the same tuple until something changes."""
        own, shared = await self._own.index(), await self._shared.index()
        if own is not self._seen[0] or shared is not self._seen[1]:
            # A shared folder may have the name `@<server>`; its files belong to no server.
            both = [*own, *(entry for entry in shared if owner_of(entry.id) is None)]
            self._entries = tuple(sorted(both, key=lambda entry: not is_topic(entry.id)))
            self._seen = own, shared
        return self._entries

    async def load(self, source_id: str) -> Source:
        return await (self._shared if owner_of(source_id) is None else self._own).load(source_id)
