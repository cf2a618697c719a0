"""Parses topic files and renders them for search and for models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from services.knowledge.exchanges import exchanges
from services.search.text import Article, Block, BlockKind, Section

_ASKED_CHARS = 300
_BEGIN = "--- QA ---\n"
_DAY = 10
"""Characters of a time stamp."""


def read_topic(text: str) -> Article:
    """Parse a topic file into an article with one section for each question that the team answered, so that each answer
    is found by its own question. The text of a section is what the team said, since users may be mistaken; its heading
    is the question, and its anchor the id of the pair. What is no answer can be found, but not quoted.
    """
    sections: list[Section] = []
    for pair in _pairs_in(text):
        for each in exchanges(pair.turns):
            headings = tuple(_in_a_line(asked) for asked in (each.before, each.asked) if asked)
            blocks = (Block(BlockKind.PROSE, each.answer or each.said),)
            # What refers to something said before cannot be understood by itself.
            quotable = bool(each.answer) and not each.before and each.helped is not False
            sections.append(
                Section(headings, pair.id, blocks, day=pair.day, quotable=quotable, helped=bool(each.helped))
            )
    return Article("", tuple(sections))


def _in_a_line(asked: str) -> str:
    return " ".join(asked.split())[:_ASKED_CHARS]


def answered_pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield, for each pair that the team answered: its id, the lines of users, and the lines of the team."""
    for pair in _pairs_in(text):
        asked, answered = ([said for name, said in pair.turns if name == who] for who in ("User", "Team"))
        if answered:
            yield pair.id, "\n".join(asked), "\n".join(answered)


def pair_ids(text: str) -> list[str]:
    """Return the ids of the pairs in a topic file; none for other text."""
    return [pair.id for pair in _pairs_in(text)] if text.startswith(_BEGIN) else []


def topic_for_model(text: str, labels: Mapping[str, str]) -> str:
    """Render a topic file for a model: each pair below its label (`labels`: by pair id) and its day. Consecutive lines
    of one speaker are one turn. Other text stays as it is.
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
