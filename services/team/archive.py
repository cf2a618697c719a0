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

A line `addressee_ids` may follow `author_ids`: `addressee_ids: 0, 0, 311` says that the third turn, of the team, is to
the user 311. The id of a turn's own author: it is not certain to whom the turn of the team is; or the turn of a user is
no part of the question that was answered. Without the line, `_addressees_of_earlier` finds them. A line `doubted_ids`
after these has the ids of those messages of the team that somebody has doubted.

The further lines of a message are indented by two spaces. So only structure begins in column 0, and no text can imitate
it. The only empty line of a block is its last, so a block that a crash truncated is recognised.

Blocks of an earlier program have neither `said_at` nor `author_ids`. They may have `msg_` before each message id, and
one turn for several messages of a person. They are read as if the conversation had ended when it was captured, with
`UNKNOWN` authors and empty turns for the other messages. They are written again in the present form.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
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
from model.conversations import ConversationKind, kind_of
from model.messages import snowflake_time
from services.knowledge import DOUBTED, INDENT, MARKER, UNREAD, PairTurn, Speaker, render_block

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

LEFT_OUT = "…"  # replaces words that a user has edited out
REMOVED = "[removed]"  # replaces the text of a person who asked to be forgotten; topic files omit such turns

UNKNOWN = 0  # the author of messages that an earlier program has stored; nobody has this id

_MARKER_LINE = re.compile(rf"^\ufeff?{MARKER}\r?$", re.MULTILINE)
_HEADERS = ("id", "timestamp", "said_at", "conversation_id", "message_ids", "author_ids")
_ADDRESSEES, _DOUBTED = _OPTIONAL_HEADERS = ("addressee_ids", "doubted_ids")
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
        addressee_ids: whom each turn is to, if the other fields do not say so (`with_addressees`); else empty.
        doubted_ids: the messages of the team that somebody has doubted, in order.
        key: the instant of the id, which identifies and orders pairs.
    """

    id: str
    timestamp: str
    said_at: str
    conversation_id: str
    message_ids: tuple[int, ...]
    author_ids: tuple[int, ...]
    turns: tuple[PairTurn, ...]
    addressee_ids: tuple[int, ...] = ()
    doubted_ids: tuple[int, ...] = ()
    key: Decimal = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        timestamp_instant(self.said_at)
        object.__setattr__(self, "key", instant(self.id))
        if self.key != timestamp_instant(self.timestamp):
            raise Malformed(f"id {self.id} and timestamp {self.timestamp} differ")
        if self.timestamp.startswith(_END_OF_TIME):
            raise Malformed(f"timestamp {self.timestamp} leaves no room for later ones")
        try:
            kind_of(self.conversation_id)
        except ValueError as error:
            raise Malformed(str(error)) from None
        counts = len(self.message_ids), len(self.author_ids), len(self.turns)
        if not counts[0] or len(set(counts)) > 1:
            raise Malformed("{} message ids, {} author ids and {} turns".format(*counts))
        if len(self.addressee_ids) not in {0, counts[0]}:
            raise Malformed(f"{len(self.addressee_ids)} addressee ids and {counts[0]} turns")

    @property
    def kind(self) -> ConversationKind:
        return kind_of(self.conversation_id)

    @property
    def writer_ids(self) -> frozenset[int]:
        """The authors of its texts, as far as they are known."""
        said = zip(self.author_ids, self.turns, strict=True)
        return frozenset(author for author, turn in said if turn.text != REMOVED) - {UNKNOWN}


def is_exchange(kind: ConversationKind, turns: Iterable[PairTurn]) -> bool:
    """Return True if both the community and the team have a turn; the team alone is enough if the kind of conversation
    needs no question.
    """
    speakers = {turn.speaker for turn in turns}
    return Speaker.TEAM in speakers and (Speaker.USER in speakers or not kind.needs_question)


def render(pair: Pair) -> str:
    """Return the block of a pair, with the empty line that ends it; blocks directly follow each other."""
    lists = pair.message_ids, pair.author_ids, pair.addressee_ids, pair.doubted_ids
    values = pair.id, pair.timestamp, pair.said_at, pair.conversation_id, *(", ".join(map(str, ids)) for ids in lists)
    headers = zip((*_HEADERS, *_OPTIONAL_HEADERS), values, strict=True)
    return render_block(((name, value) for name, value in headers if value), pair.turns)


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


def piece_of(pair: Pair, messages: AbstractSet[int] | None) -> Pair | None:
    """Reduce a pair to the given messages; None if it has none of them. `messages=None` keeps all. To whom the team's
    turns are can become less certain by that (`without_questions`), never more.
    """
    if messages is None:
        return pair
    kept = [at for at, message_id in enumerate(pair.message_ids) if message_id in messages]
    if not kept:
        return None
    to_ids = without_questions(_rows(pair), set(pair.message_ids).difference(messages))
    piece = replace(
        pair,
        message_ids=tuple(pair.message_ids[at] for at in kept),
        author_ids=tuple(pair.author_ids[at] for at in kept),
        turns=tuple(pair.turns[at] for at in kept),
        addressee_ids=(),
        doubted_ids=tuple(each for each in pair.doubted_ids if each in messages),
    )
    return with_addressees(piece, [to_ids[at] for at in kept])


def of_asker_and_team(pair: Pair) -> Pair | None:
    """Return the pair without the messages of users other than the first, and without those of the team that are not
    certainly to the first; None: no message of the team is left.
    """
    first = next(iter(_askers(pair)), UNKNOWN)
    own = {each for each, author, turn, _ in _rows(pair) if turn.speaker is Speaker.USER and author == first}
    answers = {each for each, _, turn, to in _rows(pair) if turn.speaker is Speaker.TEAM and to == first}
    return piece_of(pair, own | answers) if answers else None


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


def heads(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the id of each block in `text`, that of its conversation, and the block, of which no more is read."""
    for piece in _pieces(text):
        parts = (line.rstrip("\r").partition(": ") for line in piece.split("\n", 5)[:5])
        fields = {name: value for name, _, value in parts}
        yield fields.get("id", ""), fields.get("conversation_id", ""), piece


def pairs_by_id(text: str, pair_ids: Container[str]) -> list[Pair]:
    """Read only the pairs in `text` with these ids."""
    found = (_pair_in(piece) for pair_id, _, piece in heads(text) if pair_id in pair_ids)
    return [pair for pair in found if isinstance(pair, Pair)]


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
        names = {line.partition(": ")[0] for line in lines[len(_HEADERS) : len(_HEADERS) + len(_OPTIONAL_HEADERS)]}
        optional = [name for name in _OPTIONAL_HEADERS if name in names]
        values, turns = parse_block((*_HEADERS, *optional), lines[:blank])
        pair_id, timestamp, said_at, conversation_id, *ids = values
        message_ids, author_ids, *others = map(_snowflakes, ids)
        found = dict(zip(optional, others, strict=True))
        return Pair(
            pair_id,
            timestamp,
            said_at,
            conversation_id,
            message_ids,
            author_ids,
            turns,
            found.get(_ADDRESSEES, ()),
            found.get(_DOUBTED, ()),
        )
    except Malformed as error:
        return error


def _is_earlier(lines: Sequence[str]) -> bool:
    """Return True if these lines, which follow the marker, were written by an earlier program."""
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

_NOTHING = frozenset({"", REMOVED})
"""Texts without words: of people who were forgotten, and of messages that earlier programs stored empty."""


def has_several_askers(pair: Pair) -> bool:
    return len(_askers(pair)) > 1


def addressees_of(pair: Pair) -> tuple[int, ...]:
    """Return the addressee of each turn. A turn of the team has a user; its own author if it is not certain to whom it
    is; or `UNKNOWN` if no user has written before. A turn of a user has `UNKNOWN`, or its own author if it is no part
    of the question.
    """
    return pair.addressee_ids or _addressees_of_earlier(pair)


_UNREAD_SECONDS = 10.0
"""A part of the format: a pair has no line of addressees where it would say the same."""


def _addressees_of_earlier(pair: Pair) -> tuple[int, ...]:
    """Return the addressees in a pair that does not name them: the team speaks to the only user, or to the first while
    no other has written. What a user added less than `_UNREAD_SECONDS` before its next turn is no part of the question.
    """
    askers = _askers(pair)
    found = [UNKNOWN] * len(pair.turns)
    so_far: set[int] = set()
    waiting: list[int] = []
    for at, (author, turn) in enumerate(zip(pair.author_ids, pair.turns, strict=True)):
        if turn.speaker is Speaker.USER:
            so_far.add(author)
            waiting.append(at)
            continue
        answered = snowflake_time(pair.message_ids[at])
        firsts = {pair.author_ids[each]: each for each in reversed(waiting)}
        for each in set(waiting).difference(firsts.values()):
            if answered - snowflake_time(pair.message_ids[each]) < _UNREAD_SECONDS:
                found[each] = pair.author_ids[each]
        waiting.clear()
        if so_far:
            found[at] = askers[0] if len(so_far) == 1 else author
    return tuple(found)


def with_addressees(pair: Pair, to_ids: Sequence[int]) -> Pair:
    """Return a pair with these addressees (`addressees_of`). They are left out if the other fields say the same, or if
    all are `UNKNOWN`. An addressee who has not written in the pair before is replaced by the turn's own author, which
    means that it is not certain.
    """
    users, found = set[int](), list[int]()
    for to, author, turn in zip(to_ids, pair.author_ids, pair.turns, strict=True):
        if turn.speaker is Speaker.USER:
            users.add(author)
        is_none = not to and (turn.speaker is Speaker.USER or not users or not any(to_ids))
        found.append(to if to in users or is_none else author)
    is_needed = any(found) and tuple(found) != _addressees_of_earlier(pair)
    return replace(pair, addressee_ids=tuple(found) if is_needed else ())


_Row = tuple[int, int, PairTurn, int]
"""A message: its id, author, turn and addressee."""


def _rows(pair: Pair) -> Iterator[_Row]:
    return zip(pair.message_ids, pair.author_ids, pair.turns, addressees_of(pair), strict=True)


def without_questions(rows: Iterable[_Row], gone: AbstractSet[int]) -> tuple[int, ...]:
    """Return the addressees when some messages are gone: the team's later turns are no longer certain to be to the
    authors of these, as the question may have been in them.
    """
    lost: set[int] = set()
    found: list[int] = []
    for message_id, author, turn, to in rows:
        if turn.speaker is Speaker.USER and message_id in gone:
            lost.add(author)
        found.append(author if turn.speaker is Speaker.TEAM and to in lost else to)
    return tuple(found)


def may_replace(pair: Pair) -> bool:
    """Return True if a pair may replace others: it is certain to whom each message of the team is, and nobody has
    doubted one.
    """
    if pair.doubted_ids:
        return False
    if not pair.kind.is_on_discord:  # one person may have written both the question and the answer
        return True
    return not any(turn.speaker is Speaker.TEAM and to == author != UNKNOWN for _, author, turn, to in _rows(pair))


def names_users(pair: Pair) -> bool:
    """Return True if several users wrote, or if it is not certain whom the team answers."""
    askers = _askers(pair)
    return len(askers) > 1 or not {UNKNOWN, *askers}.issuperset(addressees_of(pair))


def labels_of(pair: Pair) -> tuple[str, ...]:
    """Return a label for each turn. If a person's texts are removed, only the "(to …)" of other labels may change.

    With one asker, to whom all is certainly said, the labels are `User` and `Team`. Else they are `User A`, `User B`
    and so on, in the order of their first words, and `Team (to User A)` if it is certain whom the team speaks to.
    `UNREAD` ends the label of a user's turn that is no part of the question, and `DOUBTED` that of a turn of the team
    that somebody has doubted.
    """
    askers, is_plain = _askers(pair), not names_users(pair)
    user_label = {author: f"{Speaker.USER} {_letter(at)}" for at, author in enumerate(askers)}
    if is_plain:
        user_label = dict.fromkeys(askers, Speaker.USER.value)
    labels: list[str] = []
    for message_id, author, turn, to in _rows(pair):
        if turn.speaker is Speaker.USER:
            labels.append(f"{user_label[author]}{UNREAD}" if to == author != UNKNOWN else user_label[author])
            continue
        label = Speaker.TEAM.value if is_plain or to not in user_label else f"{Speaker.TEAM} (to {user_label[to]})"
        labels.append(f"{label}{DOUBTED}" if message_id in pair.doubted_ids else label)
    return tuple(labels)


def labelled_turns(pair: Pair) -> list[tuple[str, PairTurn]]:
    """Return the turns that still have text, each with its label."""
    return [(label, turn) for label, turn in zip(labels_of(pair), pair.turns, strict=True) if turn.text not in _NOTHING]


class Utterance(NamedTuple):
    """One or more consecutive messages of one person."""

    label: str
    text: str
    message_ids: tuple[int, ...]


def utterances_of(pair: Pair) -> list[Utterance]:
    """Return the conversation with consecutive messages of one person joined: many people send a sentence in two
    messages.
    """
    labels = (label.removesuffix(UNREAD) for label in labels_of(pair))
    rows = zip(labels, pair.author_ids, pair.message_ids, pair.turns, strict=True)
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
