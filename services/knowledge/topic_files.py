"""The team's topic files: their format, their names, the exchanges in them, and their forms for search and for models.
The archive of pairs has the same blocks.

A topic that has grown too long is continued in further files: `gpu`, `gpu-2`, `gpu-3`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, count, groupby, takewhile
from operator import itemgetter
from typing import NamedTuple

from model.source_ids import topic_in
from model.words import clean, one_line, replace_surrogates
from services.search import (
    asks_for_all,
    has_file,
    holds_for_all,
    is_answer,
    is_formality,
    is_question,
    may_ask,
    normalised,
    says_it_worked,
    statements,
    takes_back,
    terms,
    without_greeting,
    words_to_search,
)
from services.search.text import Article, Block, BlockKind, Section

MARKER = "--- QA ---"
INDENT = "  "
"""The prefix of the further lines of a message: only structure begins in column 0, so no text can imitate it."""
_DAY_CHARS = 10
"""The characters at the start of a time stamp that are its day."""


class Speaker(StrEnum):
    USER = "User"
    TEAM = "Team"


_SPEAKERS = frozenset(Speaker)
_TO = " (to "
UNREAD = " (unread)"
"""Follows the label of a turn that the team had no time to read before it answered."""
DOUBTED = " (doubted)"
"""Follows the label of a turn of the team that somebody has doubted."""


@dataclass(frozen=True, slots=True)
class PairTurn:
    """One message of a pair. Line ends are normalised to line feeds, and lone surrogates replaced."""

    speaker: Speaker
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", replace_surrogates(self.text.replace("\r\n", "\n").replace("\r", "\n")))


def render_block(headers: Iterable[tuple[str, str]], turns: Iterable[PairTurn]) -> str:
    """Render one block, including the empty line that ends it."""
    head = (f"{name}: {value}" for name, value in headers)
    said = (f"{turn.speaker}: {turn.text}".replace("\n", "\n" + INDENT) for turn in turns)
    return "\n".join([MARKER, *head, *said]) + "\n\n"


class Correction(NamedTuple):
    """The correction of part of a pair by a later conversation, at `said_at`; `text`: what no longer holds."""

    said_at: str
    text: str

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

    Each correction has a line `superseded`. If several users wrote, a line before these has a label for each turn:
    `speakers: User A, Team (to User A), User B`. So has a pair with a turn that was `UNREAD`: `speakers: User, User
    (unread), Team`, and one with a turn that is `DOUBTED`. A pair that needs no question has `speakers: Team`, without
    labels. This distinguishes it from an answer whose asker was forgotten. Turns of forgotten people are omitted.

    Attributes:
        timestamp: the time when the pair was stored, as in its id.
        said_at: the time of the conversation; None in a file of the earlier form.
        speakers: a label for each turn; empty if only one user wrote and a question is needed.
        corrections: the corrections in force, oldest first.
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
        """The day of the conversation; empty if the file does not have it."""
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
    """Return the text of each pair of a topic file, without its first line."""
    return f"\n{text}".split(f"\n{MARKER}\n")


def topic_blocks(text: str) -> Iterator[TopicBlock]:
    """Yield the blocks of a topic file, or of a piece of one. Lines that belong to no turn, and blocks without a turn,
    are skipped. So a text is a valid topic file if rendering its blocks gives the same text.
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


MAX_NAME_BYTES = 64
_MAX_FIRST_NAME_BYTES = 60
"""The limit of the first file's name, which leaves room for `-999`."""

_CONTINUATION = re.compile(r"(.+)-([1-9][0-9]{0,2})", re.ASCII)
_NUMBERED = re.compile(r"(.+)-(?:[2-9]|[1-9][0-9]+)", re.ASCII)
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin", "conout", "clock"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
)
"""Device names of Windows."""


def topic_name(text: str) -> str:
    """Make a safe name of one that a model or a person gave: lower-case letters and digits of any script, with single
    hyphens between words. Empty if `text` is; `topic-<hash>` if `text` has no allowed letter. Idempotent.

    An identifier of the index (`team:gpu.txt`) gives the name of its topic.
    """
    if not text.strip():
        return ""
    bare = topic_in(text.strip())
    name = _truncate("-".join(_words_of_name(bare)), _MAX_FIRST_NAME_BYTES)
    if not name:
        return f"topic-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return f"topic-{name}" if name in _RESERVED else name


def _words_of_name(text: str) -> list[str]:
    lowered = normalised("NFKC", normalised("NFKC", text).lower())
    # Combining accents are removed; all other signs separate words.
    kept = "".join(
        letter if _is_allowed(letter) else "-" for letter in lowered if unicodedata.category(letter)[0] != "M"
    )
    return list(filter(None, kept.split("-")))


_ASCII_WORDS = re.compile(r"[a-z0-9]+")


def name_words(texts: Iterable[str]) -> set[str]:
    """Return the words of these texts that may be part of a topic's name, each as `fold_name_word` returns it."""
    found: set[str] = set()
    for text in texts:
        words = _ASCII_WORDS.findall(text.lower()) if text.isascii() else _words_of_name(text)
        found.update(map(fold_name_word, words))
    return found


def fold_name_word(word: str) -> str:
    """Fold a word of a topic's name for comparison: `straße` is `strasse`, and a long word is cut as in names."""
    return _truncate(word, _MAX_FIRST_NAME_BYTES).casefold()


def is_topic_name(name: str) -> bool:
    words = name.split("-")
    return (
        all(words)
        and all(_is_allowed(letter) for word in words for letter in word)
        and len(name.encode()) <= MAX_NAME_BYTES
        and name not in _RESERVED
        and unicodedata.is_normalized("NFKC", name)
    )


def first_file_of(name: str, existing: Container[str]) -> str:
    """Return the topic in `existing` that `name` continues, or `name` itself.

    `gpu-3` continues `gpu` only if `gpu` and `gpu-2` exist: `windows-11` stays a topic of its own.
    """
    found = _CONTINUATION.fullmatch(name)
    if found is None or int(found[2]) < 2:  # noqa: PLR2004 (the first continuation)
        return name
    before = [found[1], *(f"{found[1]}-{number}" for number in range(2, int(found[2])))]
    return found[1] if all(each in existing for each in before) else name


def belongs_to(name: str, topics: Collection[str]) -> bool:
    """Return True if a topic file is one of `topics`, or by its name a continuation of one.

    Unlike `first_file_of`, it does not depend on the existing files: a hidden file must stay hidden if an earlier file
    of its topic is deleted.
    """
    found = _NUMBERED.fullmatch(name)
    return name in topics or (found is not None and found[1] in topics)


def files_of(first: str, existing: Container[str]) -> list[str]:
    """Return the topic `first` and its continuations, up to the first gap."""
    return list(takewhile(existing.__contains__, _file_names(first)))


def next_file(first: str, existing: Container[str]) -> str:
    """Return the name of the next continuation of the topic `first`."""
    return next(name for name in _file_names(first) if name not in existing)


def _file_names(first: str) -> Iterator[str]:
    return chain([first], (f"{first}-{number}" for number in count(2)))


def _is_allowed(letter: str) -> bool:
    return unicodedata.category(letter) in {"Ll", "Lo", "Lm", "Nd"}


def _truncate(name: str, most_bytes: int) -> str:
    data = name.encode("utf-8", "replace")
    return data[:most_bytes].decode("utf-8", "ignore").strip("-") if len(data) > most_bytes else name


MAX_QUOTED_CHARS = 2_000
"""The length of the longest answer that is quoted: whole, or not at all. A message of Discord holds no more."""
MAX_ANSWER_CHARS = 3_000
"""The length of an answer; later messages are about another matter."""
_SELF_CONTAINED_TERMS = 4
"""The number of different words of a question that can be understood without its context."""
_FEWEST_TERMS = 1
_THANKS_WORDS, _MAX_THANKS_WORDS = 2, 5
"""The words of a message that is thanks alone, whatever they are, and if none of them has a meaning in a search."""
_REFERENCE = re.compile(
    r"^\W*(?:and|but|so|ok(?:ay)?|then|also|what about|how about|or)\b"
    r"|\b(?:that|it|this|they|them|those|these|there)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of a user, and what the team said until the next one.

    Attributes:
        question: in the words of the asker alone, or of all users if `asker_known` is False; empty if nobody asked.
        context: the earlier question to which this one refers ("and on Windows?"); empty if it stands on its own.
        statement: all of the team's words.
        answer: the team's messages to the asker, whole, but for formalities; empty if none of them answers
            (`services.search.statements`), if one does not hold for everybody (`services.search.holds_for_all`),
            or if a needed question is missing (`ConversationKind.needs_question`). With an empty answer, the extractive
            curator neither files the pair nor names a topic after it, and search finds it but does not quote it
            (`read_topic`).
        asker_known: False if it is not certain whom the team answered, or that it could have read the question. Such
            an exchange is found, but never quoted, and replaces no other.
        is_clear: False if it is not certain what the answer is to, what belongs to it, or that others who ask the same
            want the same (`services.search.asks_for_all`). It is not quoted either.
        helped: whether the answer helped, as the asker said afterwards; None if the asker did not say.
        is_doubted: True if somebody has doubted what the team said.
        turns: the positions of the first turn of the question and of the last turn of the answer.
    """

    question: str
    context: str
    statement: str
    answer: str
    asker_known: bool
    is_clear: bool
    helped: bool | None
    is_doubted: bool
    turns: tuple[int, int]

    @property
    def quotable(self) -> bool:
        """True if the answer can be quoted below the question: it is certain, and needs no context."""
        return (
            bool(self.answer)
            and self.asker_known
            and self.is_clear
            and not self.context
            and self.helped is not False
            and not self.is_doubted
        )


class _Asked(NamedTuple):
    """A turn of a user, by the user's label, with its position. `is_read`: False if it is `UNREAD`."""

    user: str
    text: str
    at: int
    is_read: bool


@dataclass(slots=True)
class _OpenExchange:
    """An exchange that is not finished.

    Attributes:
        to: the label of the user whom the team answers.
        said: what the team says, and to whom.
        stated: what of that answers; empty while nothing does.
        remarks: what users have said since the answer, but for thanks.
        is_thanked: whether the user has given thanks for it.
        is_clear: False if it is not certain what belongs to the answer.
        is_doubted: as in `Exchange`.
        last: as in `Exchange.turns`.
    """

    questions: list[_Asked]
    context: str = ""
    to: str = ""
    statements: list[str] = field(default_factory=list[str])
    said: list[_Asked] = field(default_factory=list[_Asked])
    stated: list[str] = field(default_factory=list[str])
    remarks: list[_Asked] = field(default_factory=list[_Asked])
    is_thanked: bool = False
    is_clear: bool = True
    helped: bool | None = None
    is_doubted: bool = False
    last: int = 0

    def may_doubt(self, user: str, text: str) -> bool:
        """Return True if what a user says after an answer may doubt it: of the asker, before thanks, a question that
        refers to it, and all else but thanks; of another user, what refers to it or shares a word with it or its
        question.
        """
        refers = bool(_REFERENCE.search(text[:200]))
        if user == self.to:
            is_fine = not refers if _is_next_question(text) else _is_courtesy(text) or says_it_worked(text)
            return not (self.is_thanked or is_fine)
        about = [*(each.text for each in self.questions), *self.stated]
        return refers or not set(terms(text)).isdisjoint(terms("\n".join(about)))

    def makes_unclear(self, text: str, to: str, remarks: Sequence[str]) -> bool:
        """Return True if a message of the team after an answer may be about that answer, or takes it back. `remarks`:
        what the user whom it is to has said since the answer, other than thanks.
        """
        if not self.stated or to not in {self.to, Speaker.USER.value}:
            return False
        if takes_back(text):
            return True
        if to != self.to:
            return False
        stated = bool(statements(text))
        if remarks:
            return not stated or not any(map(_says_enough, remarks))  # else it answers them
        return stated if self.is_thanked else is_formality(text)  # "let me check that"

    def unanswered(self) -> list[_Asked]:
        """Return what users have said that no answer was to: an answer is quoted below all that it is to."""
        return [*(each for each in self.questions if each.user != self.to), *self.remarks]

    def context_for(self, said: str) -> str:
        """Return the question with its context, if what is said next refers to it; else an empty text."""
        if not _needs_context(said):
            return ""
        return " ".join(filter(None, (self.context, _join_questions(self._own_questions()))))

    def add_statement(self, text: str, to: str, at: int) -> None:
        """Add a message of the team to the answer, unless that is long enough."""
        if sum(len(each.text) for each in self.said) >= MAX_ANSWER_CHARS:
            return
        self.said.append(_Asked(to, text, at, is_read=True))
        if stated := statements(text):
            self.stated.append(stated)
            self.to, self.last = to, at
            self.remarks = [each for each in self.remarks if each.user != to]

    def add_remark(self, remark: _Asked) -> None:
        """Add what a user says after the answer, which is no next question."""
        is_courtesy = _is_courtesy(remark.text)
        if not is_courtesy:
            self.remarks.append(remark)
        if remark.user == self.to:
            helped = says_it_worked(remark.text)
            self.helped = self.helped if helped is None else helped
            self.is_thanked = self.is_thanked or is_courtesy

    def _own_questions(self) -> list[_Asked]:
        """Return the turns of the user whom the team answers (unknown: of all); unread ones only if there are no
        others.
        """
        own = [each for each in self.questions if each.user == self.to] or self.questions
        return [each for each in own if each.is_read] or own

    def close(self, *, needs_question: bool) -> Sequence[Exchange]:
        """Return the finished exchange; nothing if the team has said nothing."""
        if not self.statements:
            return ()
        questions = self._own_questions()
        asked = _join_questions(questions)
        answers = [each.text for each in self.said if each.user == self.to and not is_formality(each.text)]
        answered = not needs_question or (_says_enough(asked) and is_answer("\n".join(self.stated)))
        answer = "\n".join(answers) if answered and all(map(holds_for_all, answers)) else ""
        # In between, the team has asked back, or said something else.
        asked_back = any(
            each.user in {self.to, Speaker.USER.value} and questions[0].at < each.at < questions[-1].at
            for each in self.said
            if questions
        )
        return (
            Exchange(
                asked,
                self.context,
                "\n".join(self.statements),
                answer,
                asker_known=all(each.user == self.to and each.is_read for each in questions),
                is_clear=self.is_clear
                and not (asked_back or any(map(has_file, answers)) or len(answer) > MAX_QUOTED_CHARS)
                and asks_for_all(asked),
                helped=self.helped,
                is_doubted=self.is_doubted,
                turns=(questions[0].at if questions else self.last, self.last),
            ),
        )


def exchanges(
    turns: Iterable[tuple[str, PairTurn]], *, needs_question: bool = True, most_chars: int | None = None
) -> Iterator[Exchange]:
    """Yield the exchanges of a conversation. `turns`: each with its label, as in `TopicBlock.labels`; `most_chars`: the
    length of each message that is read; None: all.

    A question of a user opens an exchange, which ends with the next question, or when the team answers another user or
    another matter: what the user has said since the answer, other than thanks. A question by the team is no answer, and
    what the user says to that belongs to the user's question; the answer may then be to either, and is not quoted.
    Neither is one if the team states something after thanks, or says something after words that are no question by
    themselves; nor if somebody doubts it (`_OpenExchange.may_doubt`), or if the team states something later that the
    asker has not asked for, or that is to nobody in particular: any of these may correct it. Nor is an answer that the
    team takes back before the next question ("scratch that").
    """
    said = list(turns)
    additions = _last_additions(said)
    for each in _split(said, needs_question, most_chars):
        last = each.turns[1]
        to = _addressee(said[last][0])
        yield replace(each, is_clear=each.is_clear and last >= max(additions[to], additions[_NOBODY]))


_NOBODY = ""


def _last_additions(turns: Iterable[tuple[str, PairTurn]]) -> Counter[str]:
    """Return, by user, the position of the last statement of the team that the user has not asked for since the one
    before; the same for `_NOBODY`: the last one to none of several users.
    """
    found, waiting, users = Counter[str](), set[str](), set[str]()
    for at, (label, turn) in enumerate(turns):
        if turn.speaker is Speaker.USER:
            users.add(label.removesuffix(UNREAD))
            if not label.endswith(UNREAD) and not _is_courtesy(turn.text):
                waiting.add(label)
        elif statements(turn.text):
            to = _addressee(label)
            if to not in waiting:
                found[to if to in users else _NOBODY] = at
            waiting.discard(to)
    return found


def _split(turns: Iterable[tuple[str, PairTurn]], needs_question: bool, most_chars: int | None) -> Iterator[Exchange]:
    current = _OpenExchange([])
    for at, (label, turn) in enumerate(turns):
        text = turn.text[:most_chars]
        if turn.speaker is Speaker.TEAM:
            stated, to = statements(text), _addressee(label)
            remarks = [each.text for each in current.remarks if each.user == to] if current.stated else []
            current.is_clear = current.is_clear and not current.makes_unclear(text, to, remarks)
            if stated and current.stated and (remarks or to != current.to):
                yield from current.close(needs_question=needs_question)
                context = current.context_for("\n".join(remarks)) if to == current.to else ""
                current = _OpenExchange(current.unanswered(), context)
            current.is_doubted = current.is_doubted or label.endswith(DOUBTED)
            current.statements.append(text)
            if stated or not remarks:  # else it asks back about what comes next
                current.add_statement(text, to, at)
            continue
        asked = _Asked(label.removesuffix(UNREAD), text, at, is_read=not label.endswith(UNREAD))
        if not current.stated:
            if not _is_courtesy(text):
                current.questions.append(asked)
            continue
        # What the team says then may take the answer back.
        current.is_clear = current.is_clear and not current.may_doubt(asked.user, text)
        if asked.is_read and _is_next_question(text):
            yield from current.close(needs_question=needs_question)
            current = _OpenExchange([*current.unanswered(), asked], current.context_for(text))
        else:
            current.add_remark(asked)
    yield from current.close(needs_question=needs_question)


def _addressee(label: str) -> str:
    """Return the label of the user whom the team speaks to. `User` is the only user, or nobody if there are several."""
    return label.removesuffix(DOUBTED).partition(_TO)[2].removesuffix(")") or Speaker.USER.value


def _is_courtesy(said: str) -> bool:
    """Return True for thanks alone, which are no part of what the user asks next."""
    count, worked = len(said.split()), says_it_worked(said)
    if count <= _THANKS_WORDS:
        return worked is not None
    return bool(worked) and count <= _MAX_THANKS_WORDS and not _says_enough(said)


def _is_next_question(said: str) -> bool:
    return _says_enough(said) and (is_question(said) or may_ask(said))


def _says_enough(said: str) -> bool:
    return len(set(terms(words_to_search(said)))) >= _FEWEST_TERMS


def _needs_context(said: str) -> bool:
    return len(set(terms(words_to_search(said)))) < _SELF_CONTAINED_TERMS or bool(_REFERENCE.search(said[:200]))


def _join_questions(asked: Iterable[_Asked]) -> str:
    return without_greeting("\n".join(each.text for each in asked)).strip()


_HEADING_CHARS = 300
"""The length of the longest question that is shown above its answer. The answer to a longer one is not quoted."""
_UNFINISHED_LINE = re.compile(r"(?<=[^\s.!?:,;…。！？])[^\S\n]*\n\s*")


def read_topic(text: str) -> Article:
    """Parse a topic file into an article with one section for each question that the team answered, so that each answer
    is found by its own question. The text of a section is what the team said, since users may be mistaken; its heading
    is the question, and its anchor the id of the pair. Statements that answer nothing can be found, but not quoted;
    neither is an answer to a question that is too long for a heading.
    """
    sections: list[Section] = []
    for block in topic_blocks(text):
        labelled = zip(block.labels, block.turns, strict=True)
        for each in exchanges(labelled, needs_question=block.needs_question):
            asked = [_in_one_line(text) for text in (each.context, each.question) if text]
            headings = tuple(text[:_HEADING_CHARS] for text in asked)
            quotable = each.quotable and headings == tuple(asked)
            blocks = (Block(BlockKind.PROSE, each.answer or each.statement),)
            facts = (block.day, quotable, bool(each.helped), each.is_doubted)
            sections.append(Section(headings, block.id, blocks, *facts))
    return Article("", tuple(sections))


def _in_one_line(text: str) -> str:
    """Return the lines of a question in one, with a dash where one sentence would run into another."""
    return " ".join(_UNFINISHED_LINE.sub(" – ", text.strip()).split())


def whole_answer(text: str, pair_id: str, question: str) -> str:
    """Return the team's answer to a question of a pair, whole: search cuts long ones. Empty: it is not in the topic."""
    sections = (each for each in read_topic(text).sections if each.anchor == pair_id and each.quotable)
    return next((each.text for each in sections if each.headings[-1:] == (question,)), "")


_OWN_LINE = re.compile(r"^[^\s¦]", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n")
_BEGIN = f"{MARKER}\n"


def answered_pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the users' lines and the team's lines of each pair that the team answered."""
    for block in topic_blocks(text):
        asked, answered = ([turn.text for turn in block.turns if turn.speaker is who] for who in Speaker)
        if answered:
            yield block.id, "\n".join(asked), "\n".join(answered)


def pair_ids(text: str) -> list[str]:
    """Return the ids of the pairs in a topic file; an empty list for other text."""
    return [block.id for block in topic_blocks(text)] if text.startswith(_BEGIN) else []


def topic_for_model(text: str, labels: Mapping[str, str]) -> str:
    """Render a topic file for a model: each pair below its label (`labels`: by pair id) and its day. Consecutive lines
    of one speaker are one turn. Only names, days and labels begin in column 0, whatever line breaks a text has. Other
    text stays as it is.
    """
    if not text.startswith(_BEGIN):
        return text
    return "\n\n".join(_render_pair(block, labels.get(block.id, block.id)) for block in topic_blocks(text))


def part_for_model(rendered: str, first: int, last: int) -> str:
    """Return the characters `first` to `last` of what `topic_for_model` rendered, also if lines in it are marked. Text
    from within a turn gets the turn's label in front, so that it does not seem to be somebody else's.
    """
    begin = max((line.start() for line in _OWN_LINE.finditer(rendered[: first + 1])), default=0)
    if begin == first:
        return rendered[first:last]
    label = rendered[begin:].partition("\n")[0].partition(": ")[0]
    return f"{label} (goes on): {rendered[first:last]}"


def pair_for_model(text: str, pair_id: str) -> str:
    """Render one pair of a topic file as `topic_for_model` does, without label and day; empty if it is not there. It is
    one paragraph, so that no excerpt begins within a turn.
    """
    found = (block for block in topic_blocks(text) if block.id == pair_id)
    return next((_BLANK_LINES.sub("\n", "\n".join(_render_turns(block))) for block in found), "")


def _render_pair(block: TopicBlock, name: str) -> str:
    return "\n".join((f"{name}, said on {block.day}" if block.day else name, *_render_turns(block)))


def _render_turns(block: TopicBlock) -> Iterator[str]:
    labels = (label.removesuffix(UNREAD) for label in block.labels)
    labelled = zip(labels, (turn.text for turn in block.turns), strict=True)
    joined = ((label, "\n".join(said for _, said in own)) for label, own in groupby(labelled, key=itemgetter(0)))
    # Archives hold line breaks of all kinds; `clean` makes each a line feed, so each further line is indented.
    indented = (f"{label}: {clean(said)}".replace("\n", "\n" + INDENT) for label, said in joined)
    corrected = (f"Superseded in part on {each.day}: {one_line(each.text)}" for each in block.corrections)
    yield from (*corrected, *indented)
