"""The log of decisions about captured pairs. Together with the archive it determines the topic files.

    {"qa_id": "qa_20260201_031057.000000", "at": "2026-02-01T03:12:00.000Z", "action": "added", "topic": "gpu",
     "remove_ids": [], "replaces": [], "by": "llm", "reason": ""}

The file is append-only and has one such object a line. A line counts once its line feed is written. If not
empty, it also has `"superseded_parts"` and `"conflicts"`, lists of `{"id", "what"}`, and `"pieces"`, a list of
`{"message_ids", "topic"}`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import from_rfc3339
from model.words import replace_surrogates
from services.knowledge import is_topic_name
from services.storage import files
from services.team import archive
from services.team.archive import REMOVED

log = logging.getLogger(__name__)

REMARK_CHARS = 300


class Action(StrEnum):
    ADDED = "added"
    SKIPPED = "skipped"
    FAILED = "failed"
    REMOVED = "removed"
    RESTORED = "restored"


class Actor(StrEnum):
    LLM = "llm"
    OPERATOR = "operator"
    EXTRACTIVE = "extractive"
    DISCORD = "discord"
    """Deleted or edited by the author, or no longer public."""

    @property
    def is_curator(self) -> bool:
        """True if a rebuild replaces the decision."""
        return self in {Actor.LLM, Actor.EXTRACTIVE}


@dataclass(frozen=True, slots=True)
class Remark:
    """A model's remark about a pair, in one short line."""

    id: str
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.id[:REMARK_CHARS])
        object.__setattr__(self, "what", replace_surrogates(" ".join(self.what.split()))[:REMARK_CHARS])


@dataclass(frozen=True, slots=True)
class FiledPiece:
    """Messages of a pair that go into a topic without the others. The ids are strings: they are too long for numbers in
    JSON.
    """

    message_ids: tuple[str, ...]
    topic: str

    @property
    def messages(self) -> frozenset[int]:
        return frozenset(map(int, self.message_ids))


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a pair.

    Attributes:
        at: RFC 3339, UTC.
        topic: the safe name of the topic that the pair enters or leaves, if any.
        remove_ids: pairs of the topic that this one makes obsolete.
        replaces: earlier captures of the same conversation.
        superseded_parts: pairs of the topic that this one corrects in part, and which part.
        conflicts: pairs of the topic that contradict this one; nobody knows which is right.
        pieces: the pieces of a pair about several matters, with their topics; `topic` is that of the first. Empty: the
            whole pair goes into `topic`.
    """

    qa_id: str
    at: str
    action: Action
    by: Actor
    topic: str | None = None
    remove_ids: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    reason: str = ""
    superseded_parts: tuple[Remark, ...] = ()
    conflicts: tuple[Remark, ...] = ()
    pieces: tuple[FiledPiece, ...] = ()

    @property
    def key(self) -> Decimal:
        """The instant of the pair's id; equal to `Pair.key`."""
        return archive.instant(self.qa_id)

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that the decision names."""
        return tuple(dict.fromkeys(filter(None, (self.topic, *(piece.topic for piece in self.pieces)))))

    def without_words_about(self, keys: AbstractSet[Decimal]) -> Decision:
        """Return the decision without the words of remarks about the pairs with these keys, or made by these pairs."""

        def redact(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
            return tuple(
                replace(each, what=REMOVED) if {self.key, archive.instant(each.id)} & keys else each for each in remarks
            )

        return replace(self, superseded_parts=redact(self.superseded_parts), conflicts=redact(self.conflicts))

    def with_topics(self, names: Mapping[str, str]) -> Decision:
        """Return the decision with new names of topics. `names`: new by old."""
        topic = None if self.topic is None else names.get(self.topic, self.topic)
        pieces = tuple(replace(piece, topic=names.get(piece.topic, piece.topic)) for piece in self.pieces)
        return replace(self, topic=topic, pieces=pieces)


_DECISION = TypeAdapter(Decision)
_FIELDS = ("qa_id", "at", "action", "topic", "remove_ids", "replaces", "by", "reason")
_MESSAGE_ID = re.compile(r"[0-9]{1,20}")
_OPTIONAL = ("superseded_parts", "conflicts", "pieces")


def render(decision: Decision) -> str:
    """Return the line of a decision, with its line feed."""
    values = asdict(decision)
    fields = (*_FIELDS, *(name for name in _OPTIONAL if values[name]))
    text = json.dumps({name: values[name] for name in fields}, ensure_ascii=False)
    return replace_surrogates(text) + "\n"


def parse(data: bytes, file: str = "decisions", first_line: int = 1) -> list[Decision]:
    """Read the decisions in `data`, which begins at `first_line` of `file`. Logs and skips damaged lines."""
    found: list[Decision] = []
    *lines, rest = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        try:
            found.append(_decision_in(line))
        except ValueError as error:
            log.warning("%s:%d: %s; line skipped", file, number, why_invalid(error))
    if rest.strip():
        log.warning("%s:%d: a line without its end, truncated by a crash; skipped", file, first_line + len(lines))
    return found


def sound_length(data: bytes) -> int:
    """Return the length in bytes of the complete lines of a decisions file; the rest was truncated by a crash."""
    return data.rfind(b"\n") + 1


def kept_by_rebuild(decisions: Iterable[Decision]) -> list[Decision]:
    """Return for each pair the last decision that no curator made, in order. A rebuild keeps these."""
    last: dict[Decimal, Decision] = {}
    for each in decisions:
        if not each.by.is_curator:
            last.pop(each.key, None)
            last[each.key] = each
    return list(last.values())


@dataclass(slots=True)
class DecisionLog:
    """The file of decisions, for its one writer. Blocking. Raises OSError, as the system reported it."""

    path: Path
    _is_whole: bool = field(default=False, init=False)  # the file is known to end with a complete line

    @property
    def length(self) -> int:
        """The length of the file in bytes; 0 if there is none."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def content(self) -> bytes:
        """Return the content of the file; empty if there is none."""
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""

    def read(self) -> list[Decision]:
        return parse(self.content(), str(self.path))

    def count_damaged(self) -> int:
        """Count the lines that hold no decision."""
        content = self.content()
        return sum(1 for line in content.split(b"\n") if line.strip()) - len(parse(content, str(self.path)))

    def repair_tail(self) -> None:
        """Move a truncated last line aside."""
        files.repair_tail(self.path, sound_length, "line")
        self._is_whole = True

    def forget(self, keys: AbstractSet[Decimal]) -> bool:
        """Remove the words of remarks about the pairs with these keys, or made by these pairs. Returns True if there
        were any.
        """
        return self._rewrite(lambda decision: decision.without_words_about(keys))

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename topics in all decisions."""
        self._rewrite(lambda decision: decision.with_topics(names))

    def _rewrite(self, change: Callable[[Decision], Decision]) -> bool:
        """Change decisions in place. Damaged lines stay as they are: no reader uses them. Returns True if any decision
        has changed.
        """
        content = self.content()
        new = b"\n".join(_change_line(line, change) for line in content.split(b"\n"))
        if new == content:
            return False
        files.replace(self.path, new)
        return True

    def append(self, *decisions: Decision) -> None:
        """Append decisions with one flush. They are on the disk when this returns."""
        if not self._is_whole:
            self.repair_tail()
        self._is_whole = False  # until the write has succeeded
        files.append(self.path, "".join(map(render, decisions)).encode())
        self._is_whole = True


def _decision_in(line: bytes) -> Decision:
    """Read a line of the file. Raises ValueError: it holds no valid decision."""
    decision = _DECISION.validate_json(line, strict=True)
    remarks = (each.id for each in (*decision.superseded_parts, *decision.conflicts))
    for pair_id in (decision.qa_id, *decision.remove_ids, *decision.replaces, *remarks):
        archive.instant(pair_id)
    from_rfc3339(decision.at)
    for topic in (decision.topic, *(piece.topic for piece in decision.pieces)):
        if topic is not None and not is_topic_name(topic):
            raise ValueError(f"{topic[:80]!r} is no safe name of a topic")
    if not all(_MESSAGE_ID.fullmatch(each) for piece in decision.pieces for each in piece.message_ids):
        raise ValueError("a piece has an id that is none of a message")
    return decision


def _change_line(line: bytes, change: Callable[[Decision], Decision]) -> bytes:
    try:
        decision = _decision_in(line)
    except ValueError:
        return line
    changed = change(decision)
    return render(changed).encode().removesuffix(b"\n") if changed != decision else line


def why_invalid(error: ValueError) -> str:
    """Describe a validation error in one line, without quoting the file."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
