"""Captured question-answer pairs: their ids and timestamps, the block format of the raw archive, and labels for their
speakers.

A block of the archive:

    --- QA ---
    id: qa_20260201_031057.000000
    timestamp: 2026-02-01T03:10:57.000000Z
    said_at: 2026-02-01T03:09:41.120000Z
    conversation_id: thread_1458745245675032710
    message_ids: 1458745245675032711, 1458745245675032712
    author_ids: 311, 902
    User: My node shows GPU not detected
    Team: Run this:
      nvidia-smi
                        (an empty line ends the block)

The further lines of a message are indented by two spaces. So only structure begins in column 0, and no text can imitate
it. The only empty line of a block is its last, so a block that a crash truncated is recognised.

Blocks of an earlier program have neither `said_at` nor `author_ids`. They may have `msg_` before each message id, and
one turn for several messages of a person. They are read as if the conversation had ended when it was captured, with
`UNKNOWN` authors and empty turns for the other messages. They are written again in the present form.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from string import ascii_uppercase
from typing import NamedTuple

from clock import rfc3339
from model.conversations import READING_SECONDS, ConversationKind, kind_of
from model.messages import snowflake_time
from services.knowledge import INDENT, MARKER, UNREAD, PairTurn, Speaker, render_block

# Ids and timestamps

_TIMESTAMP = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,30}))?Z")
_QA_ID = re.compile(r"qa_([0-9]{4})([0-9]{2})([0-9]{2})_([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{1,30}))?")


class Malformed(ValueError):
    """A block cannot be read, or the fields of a pair do not fit together; the message says why."""


class BadId(Malformed):
    """Not the id of a pair, or not a time stamp: the message shows it and the form expected."""


def qa_id(timestamp: str) -> str:
    """Return the id of the pair captured at `timestamp`, with as many digits of fraction.

    `2026-02-01T03:10:56.228000Z` gives `qa_20260201_031056.228000`. Ids of this program have six digits of fraction;
    others may have any number or none, so ids are compared as instants.
    """
    timestamp_instant(timestamp)
    return "qa_" + timestamp.removesuffix("Z").replace("-", "").replace(":", "").replace("T", "_")


def instant(pair_id: str) -> Decimal:
    """Return when the pair with this id was captured, in exact seconds since 1970."""
    return _instant_in(_QA_ID, pair_id, "qa_20260201_031056.228000")


def timestamp_instant(timestamp: str) -> Decimal:
    """Return a timestamp as exact seconds since 1970."""
    return _instant_in(_TIMESTAMP, timestamp, "2026-02-01T03:10:56.228000Z")


def checked_instant(pair_id: str, timestamp: str) -> Decimal:
    """Return the instant that id and timestamp both name. Raises Malformed: one is invalid, or they differ."""
    key = instant(pair_id)
    if key != timestamp_instant(timestamp):
        raise Malformed(f"id {pair_id} and timestamp {timestamp} differ")
    return key


def next_timestamp(now: float, last: str | None) -> str:
    """Return the timestamp for a capture at `now` (seconds since 1970); `last`: the timestamp of the newest pair.

    Time stamps of one archive strictly increase: the result is a microsecond after `last` unless `now` is later.
    """
    timestamp = rfc3339(now, digits=6)
    if last is None or timestamp_instant(timestamp) > (before := timestamp_instant(last)):
        return timestamp
    micros = int(before * 1_000_000) + 1
    whole = datetime.fromtimestamp(micros // 1_000_000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{micros % 1_000_000:06d}Z"


def week_file(captured: Decimal) -> str:
    """Return the archive file of a capture at this instant, by its ISO year and week, in UTC."""
    year, week, _ = datetime.fromtimestamp(int(captured), UTC).isocalendar()
    return f"{year}-W{week:02d}.txt"


@lru_cache(maxsize=512)  # pairs keep their instant; decisions and texts mostly have new ids
def _instant_in(form: re.Pattern[str], text: str, example: str) -> Decimal:
    found = form.fullmatch(text)
    if found is None:
        raise BadId(f"{text!r} is not of the form {example}")
    *fields, fraction = found.groups()
    year, month, day, hour, minute, second = map(int, fields)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise BadId(f"{text!r} is no time: {error}") from None
    # Made from digits, not by arithmetic, which would round.
    return Decimal(f"{int(moment.timestamp())}.{fraction or 0}")


log = logging.getLogger(__name__)


# Blocks

REMOVED = "[removed]"  # replaces the text of a person who asked to be forgotten; topic files omit such turns

UNKNOWN = 0  # the author of messages that an earlier program has stored; nobody has this id

_MARKER_LINE = re.compile(rf"^\ufeff?{MARKER}\r?$", re.MULTILINE)
_HEADERS = ("id", "timestamp", "said_at", "conversation_id", "message_ids", "author_ids")
_EARLIER_HEADERS = ("id", "timestamp", "conversation_id", "message_ids")
_END_OF_TIME = "9999-"  # time stamps strictly increase, so a block from their last year would end all capture
_SNOWFLAKES = re.compile(r"[0-9]{1,20}(?:, [0-9]{1,20})*")


@dataclass(frozen=True, slots=True)
class Pair:
    """One captured conversation. Raises Malformed if the fields are inconsistent.

    Attributes:
        timestamp: the time of the capture; RFC 3339, UTC, with `Z`, as `said_at`, the time of the last message.
        conversation_id: an id of one of `KINDS`.
        message_ids, author_ids, turns: one each for every message, in the same order.
        key: the instant of the id, which identifies and orders pairs.
    """

    id: str
    timestamp: str
    said_at: str
    conversation_id: str
    message_ids: tuple[int, ...]
    author_ids: tuple[int, ...]
    turns: tuple[PairTurn, ...]
    key: Decimal = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        timestamp_instant(self.said_at)
        object.__setattr__(self, "key", checked_instant(self.id, self.timestamp))
        if self.timestamp.startswith(_END_OF_TIME):
            raise Malformed(f"timestamp {self.timestamp} leaves no room for later ones")
        try:
            kind_of(self.conversation_id)
        except ValueError as error:
            raise Malformed(str(error)) from None
        counts = len(self.message_ids), len(self.author_ids), len(self.turns)
        if not counts[0] or len(set(counts)) > 1:
            raise Malformed("{} message ids, {} author ids and {} turns".format(*counts))

    @property
    def kind(self) -> ConversationKind:
        return kind_of(self.conversation_id)

    @property
    def writer_ids(self) -> frozenset[int]:
        """The authors of its texts, as far as they are known."""
        said = zip(self.author_ids, self.turns, strict=True)
        return frozenset(author for author, turn in said if turn.text != REMOVED) - {UNKNOWN}


def is_exchange(kind: ConversationKind, turns: Iterable[PairTurn]) -> bool:
    """True if both the community and the team have a turn; the team alone is enough if the kind of conversation needs
    no question.
    """
    speakers = {turn.speaker for turn in turns}
    return Speaker.TEAM in speakers and (Speaker.USER in speakers or not kind.needs_question)


def render(pair: Pair) -> str:
    """Return the block of a pair, with the empty line that ends it; blocks directly follow each other."""
    message_ids, author_ids = (", ".join(map(str, ids)) for ids in (pair.message_ids, pair.author_ids))
    values = pair.id, pair.timestamp, pair.said_at, pair.conversation_id, message_ids, author_ids
    return render_block(zip(_HEADERS, values, strict=True), pair.turns)


def parse_block(headers: Sequence[str], lines: Sequence[str]) -> tuple[list[str], tuple[PairTurn, ...]]:
    """Read the lines between marker and empty line: returns the values of `headers`, and the turns. Raises
    Malformed.
    """
    values: list[str] = []
    for name, line in zip(headers, lines, strict=False):
        if not line.startswith(f"{name}: "):
            raise Malformed(f"{line[:40]!r} where {name!r} should be")
        values.append(line[len(name) + 2 :])
    if len(values) < len(headers):
        raise Malformed("headers are missing")
    turns: list[tuple[Speaker, list[str]]] = []
    for line in lines[len(headers) :]:
        name, colon, text = line.partition(": ")
        if line.startswith(INDENT) and turns:
            turns[-1][1].append(line[len(INDENT) :])
        elif colon and name in set(Speaker):
            turns.append((Speaker(name), [text]))
        else:
            raise Malformed(f"{line[:40]!r} is neither a turn nor the rest of one")
    return values, tuple(PairTurn(speaker, "\n".join(texts)) for speaker, texts in turns)


def part_of(pair: Pair, messages: AbstractSet[int] | None) -> Pair | None:
    """Reduce a pair to the given messages; None if it has none of them. `messages=None` keeps all."""
    if messages is None:
        return pair
    kept = [at for at, message_id in enumerate(pair.message_ids) if message_id in messages]
    if not kept:
        return None
    return replace(
        pair,
        message_ids=tuple(pair.message_ids[at] for at in kept),
        author_ids=tuple(pair.author_ids[at] for at in kept),
        turns=tuple(pair.turns[at] for at in kept),
    )


def of_asker_and_team(pair: Pair) -> Pair:
    """Return the pair without the messages of users other than the first."""
    others = set(_askers(pair)[1:])
    messages = {
        message_id
        for message_id, author, turn in zip(pair.message_ids, pair.author_ids, pair.turns, strict=True)
        if turn.speaker is Speaker.TEAM or author not in others
    }
    return part_of(pair, messages) or pair


def remove_texts(pair: Pair, author_id: int) -> Pair:
    """Return the pair with the texts of one person replaced by `REMOVED`."""
    turns = tuple(
        replace(turn, text=REMOVED) if author == author_id else turn
        for author, turn in zip(pair.author_ids, pair.turns, strict=True)
    )
    return replace(pair, turns=turns)


def sound_length(data: bytes) -> int:
    """Return the length in bytes of the complete blocks in an archive file; the rest was truncated by a crash. Never
    splits a character.
    """
    # A line feed ends the last line of a block, and another is its empty line. "\r\n": saved by an editor elsewhere.
    return max((data.rfind(end) + len(end) for end in (b"\n\n", b"\n\r\n") if end in data), default=0)


def parse(
    text: str, file: str = "archive", first_line: int = 1, warn: Callable[[str], object] = log.warning
) -> list[Pair]:
    """Read the pairs in `text`, which begins at `first_line` of `file`. Malformed and truncated blocks are skipped and
    reported to `warn` with their line.
    """
    whole, end, truncated = text.replace("\r\n", "\n").rpartition("\n\n")
    line = first_line
    pairs: list[Pair] = []
    for piece, pair in blocks(whole + end):
        if isinstance(pair, Pair):
            pairs.append(pair)
        elif text_before := piece.lstrip("\ufeff\n"):
            blank = piece[: -len(text_before)].count("\n")
            warn(f"{file}:{line + blank}: {pair}; skipped")
        line += piece.count("\n")
    if truncated:
        warn(f"{file}:{line}: a block without its final empty line, truncated by a crash; skipped")
    return pairs


def blocks(text: str) -> list[tuple[str, Pair | Malformed]]:
    """Split `text` into blocks, each with its pair or the error. Text before the first marker counts as a block."""
    return [(piece, _pair_in(piece)) for piece in _pieces(text)]


def pairs_with(text: str, words: Sequence[str]) -> list[Pair]:
    """Read only those pairs in `text` whose block contains one of the `words`."""
    pieces = (piece for piece in _pieces(text) if any(word in piece for word in words))
    return [pair for pair in map(_pair_in, pieces) if isinstance(pair, Pair)]


def _pieces(text: str) -> list[str]:
    starts = [0, *(found.start() for found in _MARKER_LINE.finditer(text)), len(text)]
    return [text[start:stop] for start, stop in pairwise(starts) if start < stop]


def _pair_in(piece: str) -> Pair | Malformed:
    first, *lines = piece.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n").split("\n")
    blank = next((at for at, line in enumerate(lines) if not line), len(lines))
    if first != MARKER:
        return Malformed(f"text before the first {MARKER!r}")
    if blank == len(lines):
        return Malformed("not ended by an empty line")
    if any(lines[blank:]):
        return Malformed("an empty line within the block")
    try:
        if _is_earlier(lines):
            return _earlier(lines[:blank])
        values, turns = parse_block(_HEADERS, lines[:blank])
        pair_id, timestamp, said_at, conversation_id, *ids = values
        message_ids, author_ids = map(_snowflakes, ids)
        return Pair(pair_id, timestamp, said_at, conversation_id, message_ids, author_ids, turns)
    except Malformed as error:
        return error


def _is_earlier(lines: Sequence[str]) -> bool:
    """True if these lines, which follow the marker, were written by an earlier program."""
    return any(line.startswith("conversation_id: ") for line in lines[2:3])


def _earlier(lines: Sequence[str]) -> Pair:
    (pair_id, timestamp, conversation_id, ids), turns = parse_block(_EARLIER_HEADERS, lines)
    message_ids = _snowflakes(ids.replace("msg_", ""))
    silent = [PairTurn(turn.speaker, "") for turn in turns[-1:]] * (len(message_ids) - len(turns))
    authors = (UNKNOWN,) * len(message_ids)
    return Pair(pair_id, timestamp, timestamp, conversation_id, message_ids, authors, (*turns, *silent))


def _snowflakes(text: str) -> tuple[int, ...]:
    if not _SNOWFLAKES.fullmatch(text):
        raise Malformed(f"{text[:40]!r} is no list of ids")
    ids = tuple(map(int, text.split(", ")))
    if max(ids) >> 64:
        raise Malformed(f"{max(ids)} is no id: it has more than 64 bits")
    return ids


# Labels of speakers

_MENTION = re.compile(r"@([^\s,:;.!?]+)")

_NOTHING = frozenset({"", REMOVED})
"""Texts without words: of people who were forgotten, and of messages that earlier programs stored empty."""


def has_several_askers(pair: Pair) -> bool:
    return len(_askers(pair)) > 1


def labels_of(pair: Pair) -> tuple[str, ...]:
    """Return a label for each turn. If a person's texts are removed, only the "(to …)" of other labels may change.

    With one asker the labels are `User` and `Team`. With several they are `User A`, `User B` and so on, in the order of
    their first words, and `Team (to User A)` if it is known whom the team speaks to: while only one asker has
    written, and later by the name that such a turn mentioned at its beginning.
    """
    askers = _askers(pair)
    if len(askers) <= 1:
        return tuple(turn.speaker.value for turn in pair.turns)
    user_label = {author: f"{Speaker.USER} {_letter(at)}" for at, author in enumerate(askers)}
    so_far: set[str] = set()
    mentioned: dict[str, str] = {}
    labels: list[str] = []
    for author, turn in zip(pair.author_ids, pair.turns, strict=True):
        if turn.speaker is Speaker.USER:
            labels.append(user_label[author])
            so_far.add(user_label[author])
            continue
        mention = _MENTION.match(turn.text)
        name = mention[1].casefold() if mention else ""
        to = mentioned.get(name)
        if to is None and len(so_far) == 1:
            (to,) = so_far
            if name:
                mentioned[name] = to
        labels.append(f"{Speaker.TEAM} (to {to})" if to else Speaker.TEAM.value)
    return tuple(labels)


def labelled_turns(pair: Pair) -> list[tuple[str, PairTurn]]:
    """Return the turns that still have text, each with its label, which ends with `UNREAD` if the turn was not read."""
    unread = _unread(pair)
    labels = (f"{label}{UNREAD}" if at in unread else label for at, label in enumerate(labels_of(pair)))
    return [(label, turn) for label, turn in zip(labels, pair.turns, strict=True) if turn.text not in _NOTHING]


def _unread(pair: Pair) -> set[int]:
    """Return the positions of the turns that a user added to an earlier one less than `READING_SECONDS` before the team
    answered.
    """
    found: set[int] = set()
    waiting: dict[int, int] = {}  # by position of a turn since the team's last one, its author
    for at, (author, turn) in enumerate(zip(pair.author_ids, pair.turns, strict=True)):
        if turn.speaker is Speaker.USER:
            waiting[at] = author
            continue
        answered = snowflake_time(pair.message_ids[at])
        firsts = {author: first for first, author in reversed(waiting.items())}
        found.update(
            each
            for each, author in waiting.items()
            if each != firsts[author] and answered - snowflake_time(pair.message_ids[each]) < READING_SECONDS
        )
        waiting.clear()
    return found


class Utterance(NamedTuple):
    """One or more consecutive messages of one person."""

    label: str
    text: str
    message_ids: tuple[int, ...]


def utterances_of(pair: Pair) -> list[Utterance]:
    """Return the conversation with consecutive messages of one person joined: many people send a sentence in two
    messages.
    """
    rows = zip(labels_of(pair), pair.author_ids, pair.message_ids, pair.turns, strict=True)
    kept = [(label, author, message, turn.text) for label, author, message, turn in rows if turn.text not in _NOTHING]
    turns = ((label, list(own)) for (label, _), own in groupby(kept, key=itemgetter(0, 1)))
    return [
        Utterance(label, "\n".join(text for *_, text in own), tuple(message for _, _, message, _ in own))
        for label, own in turns
    ]


def _askers(pair: Pair) -> list[int]:
    """Return the users, in the order of their first words."""
    turns = zip(pair.author_ids, pair.turns, strict=True)
    return list(dict.fromkeys(author for author, turn in turns if turn.speaker is Speaker.USER))


def _letter(index: int) -> str:
    return ascii_uppercase[index] if index < len(ascii_uppercase) else str(index + 1)
