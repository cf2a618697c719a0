"""Blocks of captured pairs: what the raw archive and topic files have in common, and the grammar of topic files, which
this module alone writes and reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from model.words import encodable

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
