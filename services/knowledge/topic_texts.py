"""Topic files as search sees them: what the team answered, under what users asked."""

from __future__ import annotations

from collections.abc import Iterator

from services.search.text import Article, Block, BlockKind, Section

_ASKED_CHARS = 300


def read_topic(text: str) -> Article:
    """One section for each pair of a topic file. Only `Team:` turns are its text, as users may be mistaken; what they
    asked is its heading, and the pair's id its anchor.
    """
    sections: list[Section] = []
    for pair_id, asked, answered in answered_in(text):
        heading = " ".join(asked.split())[:_ASKED_CHARS]
        blocks = (Block(BlockKind.PROSE, answered),)
        sections.append(Section((heading,) if heading else (), pair_id, blocks))
    return Article("", tuple(sections))


def answered_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Of each pair that the team answered its id, the lines of users and the lines of the team."""
    for block in text.split("--- QA ---\n"):
        pair_id, asked, answered = _turns(block)
        if answered:
            yield pair_id, "\n".join(asked), "\n".join(answered)


def _turns(block: str) -> tuple[str, list[str], list[str]]:
    pair_id, asked, answered = "", list[str](), list[str]()
    turns: list[str] | None = None
    for line in block.split("\n"):
        said = line[len("User: ") :]
        if line.startswith("User: "):
            turns = asked
        elif line.startswith("Team: "):
            turns = answered
        elif line.startswith("  "):
            said = line.removeprefix("  ")
        else:  # headers and empty lines belong to no turn
            if line.startswith("id: "):
                pair_id = line.removeprefix("id: ")
            continue
        if turns is not None:
            turns.append(said)
    return pair_id, asked, answered
