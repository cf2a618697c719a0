"""The index of topics, and the cache of their descriptions, as they lie on disk (SPEC 6, "Team index"; 7).

Blocking; for the one writer. Both files are functions of the topics and the descriptions, so that a crash between the
two is mended by the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from clock import rfc3339
from services.knowledge import FileFacts, FileRecord, IndexEntry, Record, cache, hash_text, index_file
from services.storage import files
from services.team.archive import REMOVED, Speaker
from services.team.topics import Topic

_QUESTION_CHARS = 200


class TeamIndex:
    def __init__(self, index: Path, cache: Path, key: str) -> None:
        """`key`: which prompt and model descriptions are to come from."""
        self._index, self._cache, self._key = index, cache, key
        self.entries: tuple[IndexEntry, ...] = ()
        """Of every topic, by name."""
        self._by_name: dict[str, IndexEntry] = {}
        self._records: dict[str, Record] = {}
        self._lines: dict[str, str] = {}
        self._known: dict[tuple[str, str], str] = {}
        """Content and key → description, of topics that are gone or were rebuilt, too."""
        self._hashes: dict[str, tuple[Topic, str]] = {}
        self._suspects: dict[str, Topic] = {}
        """Topics whose content is not known to be described."""
        self._index_written = self._cache_written = False

    def load(self, topics: Mapping[str, Topic]) -> None:
        """Start from the cache file; a missing one is an empty cache. Raises OSError."""
        try:
            found = cache.parse(self._cache.read_bytes(), [FileRecord], str(self._cache))
        except FileNotFoundError:
            found = {}
        for record in found.values():
            if record.described:
                self._known[record.content_hash, record.summary_key] = record.summary_text
        names = {topic.file for topic in topics.values()}
        self._records = {name: record for name, record in found.items() if name in names}
        self._cache_written = self._records == found
        self.follow(topics, topics)

    def follow(self, names: Iterable[str], topics: Mapping[str, Topic]) -> None:
        """Take note that the topics of these names have changed, come or gone."""
        changed = False
        for name in names:
            topic = topics.get(name)
            if topic is None:
                changed = self._drop(name) or changed
                continue
            self._suspects[name] = topic
            changed = self._enter(topic) or changed
        if changed:
            self._sort()

    def describe(self, topic: Topic, summary: str, key: str, at: float) -> None:
        """Note a description of the content that `topic` has, made at `at` (seconds since 1970)."""
        # Not the time of the file, which a replay could not give twice alike.
        facts = FileFacts(topic.file, len(topic.text.encode()), round(at * 1_000_000) * 1000)
        record = FileRecord(
            content_hash=self._hash(topic),
            summary_text=index_file.harmless(summary),
            summary_key=key,
            last_indexed_at=rfc3339(at),
            summary_pending=False,
            file=facts,
        )
        self._put(topic, record)
        if self._enter(topic):
            self._sort()

    def forget(self, names: Iterable[str]) -> None:
        """Drop the descriptions of these topics, and what is known of topics that are gone."""
        for name in names:
            self._lines.pop(f"{name}.txt", None)
            if self._records.pop(f"{name}.txt", None) is not None:
                self._cache_written = False
        self._known = {
            (record.content_hash, record.summary_key): record.summary_text for record in self._records.values()
        }

    def undescribed(self, at: float) -> list[Topic]:
        """The topics without a description of what they hold now, by name. Content that was described before, under
        another name perhaps, gets that description again.
        """
        for name, topic in list(self._suspects.items()):
            content = self._hash(topic)
            record = self._records.get(topic.file)
            if record is not None and (record.content_hash, record.summary_key) == (content, self._key):
                del self._suspects[name]
            elif (known := self._known.get((content, self._key))) is not None:
                self.describe(topic, known, self._key, at)
                del self._suspects[name]
        return [self._suspects[name] for name in sorted(self._suspects)]

    @property
    def written(self) -> bool:
        """Whether both files are as they should be."""
        return self._cache_written and self._index_written

    def write(self, at: float) -> None:
        """Bring both files up to date, the cache first. What is so already is not written. Raises OSError."""
        if not self._cache_written:
            lines = (self._lines.get(name) or self._line(name) for name in sorted(self._records))
            files.renew(self._cache, cache.render(lines, rfc3339(at)))
            self._cache_written = True
        if not self._index_written:
            data = index_file.render(self.entries).encode()
            if _content(self._index) != data:
                files.renew(self._index, data)
            self._index_written = True

    def _put(self, topic: Topic, record: Record) -> None:
        self._records[topic.file] = record
        self._known[record.content_hash, record.summary_key] = record.summary_text
        self._lines[topic.file] = cache.line(record)
        self._cache_written = False

    def _drop(self, name: str) -> bool:
        self._suspects.pop(name, None)
        self._hashes.pop(name, None)
        self._lines.pop(f"{name}.txt", None)
        if self._records.pop(f"{name}.txt", None) is not None:
            self._cache_written = False
        return self._by_name.pop(name, None) is not None

    def _enter(self, topic: Topic) -> bool:
        record = self._records.get(topic.file)
        description = record.summary_text if record is not None else ""
        entry = IndexEntry(f"team:{topic.file}", description.strip() or _stand_in(topic))
        changed = self._by_name.get(topic.name) != entry
        self._by_name[topic.name] = entry
        return changed

    def _sort(self) -> None:
        self.entries = tuple(self._by_name[name] for name in sorted(self._by_name))
        self._index_written = False

    def _line(self, name: str) -> str:
        self._lines[name] = line = cache.line(self._records[name])
        return line

    def _hash(self, topic: Topic) -> str:
        kept = self._hashes.get(topic.name)
        if kept is None or kept[0] is not topic:
            kept = self._hashes[topic.name] = topic, hash_text(topic.text)
        return kept[1]


def _stand_in(topic: Topic) -> str:
    """For as long as there is no description: the topic's name and its first question."""
    turns = [turn for turn in topic.pairs[0].turns if turn.text != REMOVED]
    asked = next((turn for turn in turns if turn.speaker is Speaker.USER), turns[0])
    question = " ".join(asked.text.split())
    if len(question) > _QUESTION_CHARS:
        question = f"{question[:_QUESTION_CHARS].rstrip()} …"
    name = topic.name.replace("-", " ")
    return index_file.harmless(f"{name}: {question}" if question else name)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
