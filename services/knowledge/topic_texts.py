"""Topic files as search and models see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from services.search import is_question, terms
from services.search.text import Article, Block, BlockKind, Section

_ASKED_CHARS = 300
_SELF_CONTAINED = 3
"""Terms: a shorter question is about what was said before it."""
_BEGIN = "--- QA ---\n"
_DAY = 10
"""Characters of a time stamp."""


def read_topic(text: str) -> Article:
    """One section for each question of a topic file that the team answered, so that an answer is found by its own
    question, and not by another one of the same thread. Only `Team:` turns are its text, as users may be mistaken; what
    they asked is its heading, and the pair's id its anchor.
    """
    sections: list[Section] = []
    for pair in _pairs_in(text):
        for asked, answered in _rounds(pair.turns):
            heading = " ".join(" ".join(asked).split())[:_ASKED_CHARS]
            blocks = (Block(BlockKind.PROSE, "\n".join(answered)),)
            sections.append(Section((heading,) if heading else (), pair.id, blocks))
    return Article("", tuple(sections))


def _rounds(turns: Sequence[tuple[str, str]]) -> Iterator[tuple[list[str], list[str]]]:
    """What users asked, and what the team answered. A new question begins a round; "and on Windows?" does not.
    What users say after the last answer is left out.
    """
    asked, answered, since = list[str](), list[str](), list[str]()
    for name, said in turns:
        if name == "Team":
            asked += since
            since.clear()
            answered.append(said)
            continue
        if answered and is_question(said) and len(set(terms(said))) >= _SELF_CONTAINED:
            yield asked, answered
            asked, answered, since = [], [], []
        since.append(said)
    if answered:
        yield asked, answered


def answered_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Of each pair that the team answered its id, the lines of users and the lines of the team."""
    for pair in _pairs_in(text):
        asked, answered = ([said for name, said in pair.turns if name == who] for who in ("User", "Team"))
        if answered:
            yield pair.id, "\n".join(asked), "\n".join(answered)


def pair_ids(text: str) -> list[str]:
    """The ids of the conversations in a topic file; none in other text."""
    return [pair.id for pair in _pairs_in(text)] if text.startswith(_BEGIN) else []


def as_shown(text: str, labels: Mapping[str, str]) -> str:
    """A topic file as a model reads it: each conversation with its label, given by its id, and the day on which it was
    said. What one speaker wrote without a break is one turn. Other text stays as it is.
    """
    if not text.startswith(_BEGIN):
        return text
    return "\n\n".join(_shown(pair, labels.get(pair.id, pair.id)) for pair in _pairs_in(text))


class _Pair(NamedTuple):
    """`day`: on which it was said, as far as the file tells. `turns`: who spoke, and what; `speakers`: in more detail,
    where several users wrote; `superseded`: when and what later conversations corrected.
    """

    id: str
    day: str
    turns: tuple[tuple[str, str], ...]
    speakers: tuple[str, ...]
    superseded: tuple[str, ...]


def _shown(pair: _Pair, name: str) -> str:
    labels = pair.speakers if len(pair.speakers) == len(pair.turns) else [name for name, _ in pair.turns]
    labelled = zip(labels, (said for _, said in pair.turns), strict=True)
    joined = ((label, "\n".join(said for _, said in own)) for label, own in groupby(labelled, key=itemgetter(0)))
    indented = (f"{label}: {said}".replace("\n", "\n  ") for label, said in joined)
    corrected = (f"Superseded in part on {when[:_DAY]}: {what}" for when, _, what in map(_parted, pair.superseded))
    return "\n".join((f"{name}, said on {pair.day}" if pair.day else name, *corrected, *indented))


def _parted(superseded: str) -> tuple[str, str, str]:
    return superseded.partition(" ")


def _pairs_in(text: str) -> Iterator[_Pair]:
    """Lines that belong to no turn are left out."""
    for block in text.split(_BEGIN):
        headers: dict[str, str] = {}
        superseded: list[str] = []
        turns: list[tuple[str, str]] = []
        for line in block.split("\n"):
            name, colon, value = line.partition(": ")
            if line.startswith("  "):
                if turns:
                    turns[-1] = turns[-1][0], f"{turns[-1][1]}\n{line.removeprefix('  ')}"
            elif colon and name in {"User", "Team"}:
                turns.append((name, value))
            elif line.startswith("superseded: ") and not turns:
                superseded.append(value)
            elif colon and not turns:
                headers[name] = value
        if turns:
            speakers = tuple(headers["speakers"].split(", ")) if "speakers" in headers else ()
            day = headers.get("said_at", "")[:_DAY]
            yield _Pair(headers.get("id", ""), day, tuple(turns), speakers, tuple(superseded))
