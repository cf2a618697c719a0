"""The team index and the cache of topic descriptions, on disk, and the schedule of their descriptions.

The formats of the index and the cache are those of `services.knowledge`: `index_file` and `cache`. Both files follow
from the topics and their descriptions, so the next start repairs what a crash leaves undone. Blocking; for the one
writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path

from clock import rfc3339
from model.bounded import BoundedDict
from model.source_ids import topic_id
from services.knowledge import FileFacts, FileRecord, IndexEntry, Record, cache, hash_text, index_file
from services.storage import files
from services.team.archive import REMOVED, Speaker
from services.team.topics import Topic


class DescriptionSchedule:
    """Schedules the descriptions of topics, one decision after another.

        pairs of a topic    1  2  3  4  5  6  7  8  9 …
        described           x  x     x           x

    Pairs are classified with an index that shows descriptions. So the index must not depend on when a model answered:
    the schedule follows from the decisions alone.

    Attributes:
        described: by name, each topic as it was when its last description became due.
    """

    def __init__(self, every: int = 1, topics: Mapping[str, Topic] | None = None) -> None:
        """`every`: the number of decisions after which topics that have doubled are described; new ones are at once.
        `topics`: the existing ones, which count as described.
        """
        self._every = every
        self._decisions = 0
        self._grown: dict[str, Topic] = {}  # topics that have changed since the last look
        self._due: dict[str, Topic] = {}
        self.described = dict(topics or {})

    def note(self, topics: Mapping[str, Topic], changed: Iterable[str]) -> None:
        """Note a decision: the `topics` after it, and the names of the `changed` ones."""
        self._decisions += 1
        for name in changed:
            topic = topics.get(name)
            if topic is None:
                for each in (self.described, self._grown, self._due):
                    each.pop(name, None)
            elif name in self.described:
                self._grown[name] = topic
            else:
                self._make_due(topic)
        if self._decisions % self._every == 0:
            for topic in self._grown.values():
                if self._has_doubled(topic.name, len(topic.pairs)):
                    self._make_due(topic)
            self._grown.clear()

    def would_be_due(self, topics: Mapping[str, Topic], more: Mapping[str, int]) -> bool:
        """Return True if one of these `topics` would be due for a new description after the given number of pairs were
        added to each, by name.
        """
        names = [name for name in {*self._grown, *more} if name in topics and name in self.described]
        return any(self._has_doubled(name, len(topics[name].pairs) + more.get(name, 0)) for name in names)

    def due(self) -> list[Topic]:
        """Return the topics that are to be described before the next decision, by name, each once."""
        found = [self._due[name] for name in sorted(self._due)]
        self._due.clear()
        return found

    def _has_doubled(self, name: str, pairs: int) -> bool:
        return pairs >= 2 * len(self.described[name].pairs)

    def _make_due(self, topic: Topic) -> None:
        self.described[topic.name] = self._due[topic.name] = topic


_QUESTION_CHARS = 200
_KEPT_EARLIER = 100
"""Descriptions of earlier content of topics. A topic has it again if its newest pair is removed."""


class TeamIndex:
    """The entries of the team index, in order of name: each topic with its description, or until then with its name and
    first question.
    """

    def __init__(self, index: Path, cache: Path, key: str) -> None:
        """`key`: the prompt and model that descriptions must come from."""
        self._index, self._cache, self._key = index, cache, key
        self.entries: tuple[IndexEntry, ...] = ()
        self._by_name: dict[str, IndexEntry] = {}
        self._records: dict[str, Record] = {}
        # Descriptions by content and key: those at the start, and those that records have lost since.
        self._known: dict[tuple[str, str], str] = {}
        self._earlier = BoundedDict[tuple[str, str], str](_KEPT_EARLIER)
        # Likewise by words, as a topic has new ids when messages in it are doubted; with the key.
        self._by_words = BoundedDict[tuple[str, str], str](_KEPT_EARLIER)
        self._hashes: dict[str, tuple[Topic, str]] = {}
        self._suspects: dict[str, Topic] = {}  # topics whose content may have no description
        self._index_written = self._cache_written = False

    def load(self, topics: Mapping[str, Topic], earlier: Path | None = None) -> None:
        """Start from the cache file; a missing one is an empty cache. Descriptions in the cache file `earlier` are used
        too. Raises OSError.
        """
        found = _records_in(self._cache)
        for record in (*found.values(), *(_records_in(earlier).values() if earlier is not None else ())):
            if record.is_described:
                self._known.setdefault((record.content_hash, record.summary_key), record.summary_text)
        current = {topic.file for topic in topics.values()}
        self._records = {name: record for name, record in found.items() if name in current}
        self._cache_written = self._records == found
        self.follow(topics, topics)

    def follow(self, names: Iterable[str], topics: Mapping[str, Topic]) -> None:
        """Update the entries of these topics, which have changed, appeared or gone."""
        for name in names:
            self._keep_by_words(name)
            if name in topics:
                self._suspects[name] = topics[name]
                self._enter(topics[name])
            else:
                for known in (self._suspects, self._hashes, self._by_name):
                    known.pop(name, None)
                self._drop_record(name)
        self._sort()

    def describe(self, topic: Topic, summary: str, key: str, at: float) -> None:
        """Add a description of the content of `topic`, made at `at` (seconds since 1970)."""
        # Not the time of the file, which differs from replay to replay.
        facts = FileFacts(topic.file, len(topic.text.encode()), round(at * 1_000_000) * 1000)
        record = FileRecord(
            content_hash=self._hash(topic),
            summary_text=index_file.make_harmless(summary),
            summary_key=key,
            last_indexed_at=rfc3339(at),
            summary_pending=False,
            file=facts,
        )
        self._keep_earlier(topic.file)
        self._records[topic.file] = record
        self._cache_written = False
        self._enter(topic)
        self._sort()

    @property
    def described(self) -> list[str]:
        """The names of the topics that have a description."""
        return sorted(name.removesuffix(".txt") for name in self._records)

    def outdated_descriptions(self, topics: Iterable[Topic]) -> list[str]:
        """Return the names of those topics whose description is of earlier content."""
        records = ((topic, self._records.get(topic.file)) for topic in topics)
        return [topic.name for topic, record in records if record and record.content_hash != self._hash(topic)]

    def forget(self, names: Iterable[str]) -> None:
        """Drop the descriptions of these topics, and of all topics that are gone."""
        for name in names:
            self._drop_record(name)
        self._known = {(each.content_hash, each.summary_key): each.summary_text for each in self._records.values()}
        self._earlier.clear()
        self._by_words.clear()

    def undescribed_topics(self, at: float) -> list[Topic]:
        """Return the topics without a description of their present content, by name."""
        found = self.find_undescribed(self._suspects.values(), at)
        self._suspects = {topic.name: topic for topic in found}
        return sorted(found, key=attrgetter("name"))

    def find_undescribed(self, topics: Iterable[Topic], at: float) -> list[Topic]:
        """Return those topics whose description is not of their present content. Content or words that were described
        before, perhaps under another name, get their old description again.
        """
        found: list[Topic] = []
        for topic in list(topics):
            content = self._hash(topic)
            record = self._records.get(topic.file)
            if record is not None and (record.content_hash, record.summary_key) == (content, self._key):
                continue
            wanted = content, self._key
            known = self._known.get(wanted, self._earlier.get(wanted))
            if known is None and self._by_words:
                known = self._by_words.get((_hash_words(topic), self._key))
            if known is None:
                found.append(topic)
            else:
                self.describe(topic, known, self._key, at)
        return found

    @property
    def is_written(self) -> bool:
        """True if both files are up to date."""
        return self._cache_written and self._index_written

    def write(self, at: float) -> None:
        """Bring both files up to date, the cache first. Raises OSError."""
        if not self._cache_written:
            lines = (cache.render_line(self._records[name]) for name in sorted(self._records))
            files.replace_derived(self._cache, cache.render(lines, rfc3339(at)))
            self._cache_written = True
        if not self._index_written:
            data = index_file.render(self.entries).encode()
            if (self._index.read_bytes() if self._index.exists() else b"") != data:
                files.replace_derived(self._index, data)
            self._index_written = True

    def _drop_record(self, name: str) -> None:
        self._keep_earlier(f"{name}.txt")
        if self._records.pop(f"{name}.txt", None) is not None:
            self._cache_written = False

    def _keep_earlier(self, file: str) -> None:
        """Keep the description that a topic is about to lose."""
        record = self._records.get(file)
        if record is not None and record.is_described:
            self._earlier[record.content_hash, record.summary_key] = record.summary_text

    def _keep_by_words(self, name: str) -> None:
        """Keep the description of a topic that is about to change."""
        record, (topic, content) = self._records.get(f"{name}.txt"), self._hashes.get(name, (None, ""))
        if topic is not None and record is not None and record.is_described and record.content_hash == content:
            self._by_words[_hash_words(topic), record.summary_key] = record.summary_text

    def _enter(self, topic: Topic) -> None:
        record = self._records.get(topic.file)
        description = record.summary_text.strip() if record is not None else ""
        self._by_name[topic.name] = IndexEntry(topic_id(topic.name), description or _stand_in(topic))

    def _sort(self) -> None:
        entries = tuple(self._by_name[name] for name in sorted(self._by_name))
        if entries != self.entries:
            self.entries = entries
            self._index_written = False

    def _hash(self, topic: Topic) -> str:
        known = self._hashes.get(topic.name)
        if known is None or known[0] is not topic:
            known = self._hashes[topic.name] = topic, hash_text(topic.text)
        return known[1]


def _hash_words(topic: Topic) -> str:
    """Hash what is said in a topic, and what corrects it, without the ids of captures and marks of doubt."""
    return hash_text(repr([(each.message_ids, each.turns, topic.corrections.get(each.key)) for each in topic.pairs]))


def _records_in(path: Path) -> dict[str, Record]:
    try:
        return cache.parse(path.read_bytes(), [FileRecord], str(path))
    except FileNotFoundError:
        return {}


def _stand_in(topic: Topic) -> str:
    """Return the topic's name and first question."""
    turns = [turn for turn in topic.pairs[0].turns if turn.text != REMOVED]
    asked = next((turn for turn in turns if turn.speaker is Speaker.USER), turns[0])
    question = " ".join(asked.text.split())
    if len(question) > _QUESTION_CHARS:
        question = f"{question[:_QUESTION_CHARS].rstrip()} …"
    name = topic.name.replace("-", " ")
    return index_file.make_harmless(f"{name}: {question}" if question else name)
