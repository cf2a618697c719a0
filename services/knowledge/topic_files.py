"""The team's topic files: their grammar, which this module alone writes and reads and whose blocks the raw archive
shares, their names, the questions and answers in them, and the form in which search and models read them.

A topic that has grown too long is continued in further files: `gpu`, `gpu-2`, `gpu-3`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, count, groupby, takewhile
from operator import itemgetter
from typing import NamedTuple

from model.words import encodable
from services.search import (
    is_answer,
    is_question,
    may_ask,
    says_it_worked,
    statements,
    terms,
    without_greeting,
    words_to_search,
)
from services.search.text import Article, Block, BlockKind, Section

MARKER = "--- QA ---"
INDENT = "  "
"""Before the further lines of a message: only structure begins in column 0, so no text can imitate it."""
_DAY_CHARS = 10
"""So many characters of a time stamp are its day."""


class Speaker(StrEnum):
    USER = "User"
    TEAM = "Team"


_SPEAKERS = frozenset(Speaker)


@dataclass(frozen=True, slots=True)
class PairTurn:
    """One message of a pair. Line ends are normalised to line feeds, and lone surrogates replaced."""

    speaker: Speaker
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", encodable(self.text.replace("\r\n", "\n").replace("\r", "\n")))


def render_block(headers: Iterable[tuple[str, str]], turns: Iterable[PairTurn]) -> str:
    """One block, including the empty line that ends it; blocks directly follow each other."""
    head = (f"{name}: {value}" for name, value in headers)
    said = (f"{turn.speaker}: {turn.text}".replace("\n", "\n" + INDENT) for turn in turns)
    return "\n".join([MARKER, *head, *said]) + "\n\n"


class Correction(NamedTuple):
    """The correction of part of a pair by a later conversation: when that took place, and what no longer holds."""

    said_at: str
    what: str

    @property
    def day(self) -> str:
        return self.said_at[:_DAY_CHARS]


@dataclass(frozen=True, slots=True)
class TopicBlock:
    """A pair in a topic file.

        --- QA ---
        id: qa_20260201_031057.000000
        timestamp: 2026-02-01T03:10:57.000000Z
        said_at: 2026-02-01T03:09:41.120000Z
        superseded: 2026-03-01T12:00:00.000000Z the drivers are part of the image now
        User: My node shows GPU not detected
        Team: Run this:
          nvidia-smi
                            (an empty line ends the block)

    Each correction has a line `superseded`. Where several users wrote, a line before these names a label for each turn:
    `speakers: User A, Team (to User A), User B`. A pair that needs no question has `speakers: Team`, without labels.
    This distinguishes it from an answer whose asker was forgotten. Turns of forgotten people are omitted.

    Attributes:
        timestamp: when the pair was stored, which its id repeats.
        said_at: when the conversation took place; None in a file of the earlier form.
        speakers: a label for each turn; empty where only one user wrote and a question is needed.
        corrections: those in force, oldest first.
    """

    id: str
    timestamp: str
    said_at: str | None
    turns: tuple[PairTurn, ...]
    speakers: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each turn."""
        return self.speakers or tuple(turn.speaker.value for turn in self.turns)

    @property
    def needs_question(self) -> bool:
        """As `ConversationKind.needs_question`."""
        return not self.speakers or any(label not in _SPEAKERS for label in self.speakers)

    @property
    def day(self) -> str:
        """The day on which it was said; empty if the file does not tell."""
        return (self.said_at or "")[:_DAY_CHARS]

    @property
    def text(self) -> str:
        headers = [("id", self.id), ("timestamp", self.timestamp)]
        if self.said_at is not None:
            headers.append(("said_at", self.said_at))
        if self.speakers:
            headers.append(("speakers", ", ".join(self.speakers)))
        headers += [("superseded", " ".join(each)) for each in self.corrections]
        return render_block(headers, self.turns)


def block_texts(text: str) -> list[str]:
    """Return the text of each pair of a topic file, without the line that opens it."""
    return f"\n{text}".split(f"\n{MARKER}\n")


def topic_blocks(text: str) -> Iterator[TopicBlock]:
    """Yield the blocks of a topic file, or of a piece of one. Lines that belong to no turn, and blocks without a turn,
    are left out. So a text is a valid topic file if rendering its blocks gives the same text.
    """
    for block in block_texts(text):
        headers: dict[str, str] = {}
        corrections: list[Correction] = []
        turns: list[tuple[Speaker, list[str]]] = []
        for line in block.split("\n"):
            name, colon, value = line.partition(": ")
            if line.startswith(INDENT):
                if turns:
                    turns[-1][1].append(line[len(INDENT) :])
            elif colon and name in _SPEAKERS:
                turns.append((Speaker(name), [value]))
            elif turns or not colon:
                continue
            elif name == "superseded":
                when, _, what = value.partition(" ")
                corrections.append(Correction(when, what))
            else:
                headers[name] = value
        if turns:
            speakers = tuple(headers["speakers"].split(", ")) if "speakers" in headers else ()
            yield TopicBlock(
                headers.get("id", ""),
                headers.get("timestamp", ""),
                headers.get("said_at"),
                tuple(PairTurn(speaker, "\n".join(lines)) for speaker, lines in turns),
                speakers if len(speakers) == len(turns) else (),
                tuple(corrections),
            )


MOST_BYTES = 64
_MOST_BYTES_OF_A_FIRST = 60
"""So that `-999` still fits behind it."""

_FOLLOWS = re.compile(r"(.+)-([1-9][0-9]{0,2})", re.ASCII)
_LATER = re.compile(r"(.+)-(?:[2-9]|[1-9][0-9]+)", re.ASCII)
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin", "conout", "clock"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
)
"""Devices of Windows, with any ending."""


def topic_name(text: str) -> str:
    """Return a name given by a model or a person in its safe form: lower-case letters and digits of any script, with
    single hyphens between them. Empty if `text` is; `topic-<hash>` if no letter of it is allowed. Idempotent.

    An identifier of the index (`team:gpu.txt`) gives the topic it names.
    """
    if not text.strip():
        return ""
    bare = text.strip().removeprefix("team:").removesuffix(".txt")
    name = _cut("-".join(_words_of_name(bare)), _MOST_BYTES_OF_A_FIRST)
    if not name:
        return f"topic-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return f"topic-{name}" if name in _RESERVED else name


def _words_of_name(text: str) -> list[str]:
    lowered = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    # Combining accents are dropped, everything else separates words.
    kept = "".join(letter if _allowed(letter) else "-" for letter in lowered if unicodedata.category(letter)[0] != "M")
    return list(filter(None, kept.split("-")))


_ASCII_WORDS = re.compile(r"[a-z0-9]+")


def name_words(texts: Iterable[str]) -> set[str]:
    """Return the words that a topic may be called by because of these texts, as `name_word` gives them."""
    found: set[str] = set()
    for text in texts:
        words = _ASCII_WORDS.findall(text.lower()) if text.isascii() else _words_of_name(text)
        found.update(map(name_word, words))
    return found


def name_word(word: str) -> str:
    """Return a word of a topic's name so that it can be compared with others: `straße` and `strasse` are one. A long
    word is cut, as in a name.
    """
    return _cut(word, _MOST_BYTES_OF_A_FIRST).casefold()


def is_topic_name(name: str) -> bool:
    """Return whether `name` is a valid name of a topic file."""
    words = name.split("-")
    return (
        all(words)
        and all(_allowed(letter) for word in words for letter in word)
        and len(name.encode()) <= MOST_BYTES
        and name not in _RESERVED
        and unicodedata.is_normalized("NFKC", name)
    )


def first_of(name: str, there: Container[str]) -> str:
    """Return the topic in `there` that `name` continues, or `name` itself.

    `gpu-3` continues `gpu` only when `gpu` and `gpu-2` are there: `windows-11` stays a topic of its own.
    """
    found = _FOLLOWS.fullmatch(name)
    if found is None or int(found[2]) < 2:  # noqa: PLR2004 (the first continuation)
        return name
    before = [found[1], *(f"{found[1]}-{number}" for number in range(2, int(found[2])))]
    return found[1] if all(each in there for each in before) else name


def belongs_to(name: str, topics: Collection[str]) -> bool:
    """Return whether a topic file is one of `topics`, or by its name a continuation of one.

    Unlike `first_of` it does not ask which files there are: what is hidden must stay so when an earlier file of its
    topic is deleted.
    """
    found = _LATER.fullmatch(name)
    return name in topics or (found is not None and found[1] in topics)


def files_of(first: str, there: Container[str]) -> list[str]:
    """Return the topic `first` and its continuations, up to the first gap."""
    return list(takewhile(there.__contains__, _names(first)))


def next_file(first: str, there: Container[str]) -> str:
    """Return the name of the next continuation of the topic `first`."""
    return next(name for name in _names(first) if name not in there)


def _names(first: str) -> Iterator[str]:
    return chain([first], (f"{first}-{number}" for number in count(2)))


def _allowed(letter: str) -> bool:
    return unicodedata.category(letter) in {"Ll", "Lo", "Lm", "Nd"}


def _cut(name: str, most_bytes: int) -> str:
    data = name.encode("utf-8", "replace")
    return data[:most_bytes].decode("utf-8", "ignore").strip("-") if len(data) > most_bytes else name


MOST_CHARS = 3_000
"""Of an answer: what comes after is another matter."""
_SELF_CONTAINED = 4
"""Different words; a shorter question is about what was said before it."""
_ASKED = 1
_REFERS = re.compile(
    r"^\W*(?:and|but|so|ok(?:ay)?|then|also|what about|how about|or)\b"
    r"|\b(?:that|it|this|they|them|those|these|there)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of a user, and what the team said until the next one.

    Attributes:
        asked: in the asker's words; empty where the team spoke first.
        before: what the question refers to ("and on Windows?"); empty where it stands on its own.
        said: the team's words, as they are.
        answer: what of them answers (`services.search.statements`); empty: nothing does, or nobody asked although a
            question is needed (`ConversationKind.needs_question`). All that is made of answers follows from this: where
            it is empty, the extractive curator neither files the pair nor names a topic after it, and it can be found
            but is not quoted (`read_topic`).
        helped: what the asker said of it afterwards; None: nothing.
        turns: the places of the first one asked and of the last one of the answer.
    """

    asked: str
    before: str
    said: str
    answer: str
    helped: bool | None
    turns: tuple[int, int]


@dataclass(slots=True)
class _Open:
    """An exchange that is still going on. `since`: what users said after the team's last words."""

    asked: list[str] = field(default_factory=list[str])
    before: str = ""
    said: list[str] = field(default_factory=list[str])
    answered: list[str] = field(default_factory=list[str])
    helped: bool | None = None
    first: int = 0
    last: int = 0


def exchanges(
    turns: Iterable[PairTurn], *, needs_question: bool = True, most_chars: int | None = None
) -> Iterator[Exchange]:
    """Yield the exchanges of a conversation. `most_chars`: how much of each message is read; None: all.

    A question of a user opens one, until somebody asks the next. What the team asks back answers nothing: what the user
    says then belongs to the question.
    """
    now = _Open()
    for at, turn in enumerate(turns):
        said = turn.text[:most_chars]
        if turn.speaker is Speaker.TEAM:
            now.said.append(said)
            stated = statements(said)
            if stated and sum(map(len, now.answered)) < MOST_CHARS:
                now.answered.append(stated)
                now.last = at
        elif now.answered and _asks(said):
            yield from _closed(now, needs_question)
            now = _Open([said], before=_whole(now) if _refers(said) else "", first=at)
        elif now.answered:
            told = says_it_worked(said)
            now.helped = now.helped if told is None else told
        elif now.asked or _opens(said):
            now.first = now.first if now.asked else at
            now.asked.append(said)
    yield from _closed(now, needs_question)


def _opens(said: str) -> bool:
    """Return whether a question may begin with it: neither thanks nor a remark in passing."""
    return says_it_worked(said) is None and len(set(terms(words_to_search(said)))) >= _ASKED


def _asks(said: str) -> bool:
    return len(set(terms(words_to_search(said)))) >= _ASKED and (is_question(said) or may_ask(said))


def _refers(said: str) -> bool:
    return len(set(terms(words_to_search(said)))) < _SELF_CONTAINED or bool(_REFERS.search(said[:200]))


def _whole(now: _Open) -> str:
    return " ".join(each for each in (now.before, _question(now.asked)) if each)


def _closed(now: _Open, needs_question: bool) -> Sequence[Exchange]:
    if not now.said:
        return ()
    asked, answer = _question(now.asked), "\n".join(now.answered)
    answered = not needs_question or (len(set(terms(words_to_search(asked)))) >= _ASKED and is_answer(answer))
    whole = "\n".join(now.said)
    return (Exchange(asked, now.before, whole, answer if answered else "", now.helped, (now.first, now.last)),)


def _question(asked: Sequence[str]) -> str:
    return without_greeting("\n".join(asked)).strip()


_ASKED_CHARS = 300
_BEGIN = f"{MARKER}\n"


def read_topic(text: str) -> Article:
    """Parse a topic file into an article with one section for each question that the team answered, so that each answer
    is found by its own question. The text of a section is what the team said, since users may be mistaken; its heading
    is the question, and its anchor the id of the pair. What is no answer can be found, but not quoted.
    """
    sections: list[Section] = []
    for block in topic_blocks(text):
        for each in exchanges(block.turns, needs_question=block.needs_question):
            headings = tuple(_in_a_line(asked) for asked in (each.before, each.asked) if asked)
            blocks = (Block(BlockKind.PROSE, each.answer or each.said),)
            # What refers to something said before cannot be understood by itself.
            quotable = bool(each.answer) and not each.before and each.helped is not False
            sections.append(
                Section(headings, block.id, blocks, day=block.day, quotable=quotable, helped=bool(each.helped))
            )
    return Article("", tuple(sections))


def _in_a_line(asked: str) -> str:
    return " ".join(asked.split())[:_ASKED_CHARS]


def answered_pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield, for each pair that the team answered: its id, the lines of users, and the lines of the team."""
    for block in topic_blocks(text):
        asked, answered = ([turn.text for turn in block.turns if turn.speaker is who] for who in Speaker)
        if answered:
            yield block.id, "\n".join(asked), "\n".join(answered)


def pair_ids(text: str) -> list[str]:
    """Return the ids of the pairs in a topic file; none for other text."""
    return [block.id for block in topic_blocks(text)] if text.startswith(_BEGIN) else []


def topic_for_model(text: str, labels: Mapping[str, str]) -> str:
    """Render a topic file for a model: each pair below its label (`labels`: by pair id) and its day. Consecutive lines
    of one speaker are one turn. Other text stays as it is.
    """
    if not text.startswith(_BEGIN):
        return text
    return "\n\n".join(_shown(block, labels.get(block.id, block.id)) for block in topic_blocks(text))


def pair_for_model(text: str, pair_id: str) -> str:
    """Render one pair of a topic file as `topic_for_model` does, without label and day; empty if it is not there."""
    return next(("\n".join(_lines(block)) for block in topic_blocks(text) if block.id == pair_id), "")


def _shown(block: TopicBlock, name: str) -> str:
    return "\n".join((f"{name}, said on {block.day}" if block.day else name, *_lines(block)))


def _lines(block: TopicBlock) -> Iterator[str]:
    labelled = zip(block.labels, (turn.text for turn in block.turns), strict=True)
    joined = ((label, "\n".join(said for _, said in own)) for label, own in groupby(labelled, key=itemgetter(0)))
    indented = (f"{label}: {said}".replace("\n", "\n  ") for label, said in joined)
    corrected = (f"Superseded in part on {each.day}: {each.what}" for each in block.corrections)
    yield from (*corrected, *indented)
