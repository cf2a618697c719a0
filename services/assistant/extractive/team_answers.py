"""Cuts team knowledge into passages: what the team answered, under what users asked."""

from __future__ import annotations

from services.search import Passage

_BLOCK = "--- QA ---"
_USER = "User: "
_TEAM = "Team: "
_INDENT = "  "


def team_answers(text: str) -> list[Passage]:
    """One passage for each block of a topic file. Only `Team:` turns are quoted: users may be mistaken."""
    found: list[Passage] = []
    for block in text.split(f"{_BLOCK}\n"):
        asked, answered = _turns(block)
        if answered:
            found.append(Passage("\n".join(asked), "\n".join(answered)))
    return found


def _turns(block: str) -> tuple[list[str], list[str]]:
    asked: list[str] = []
    answered: list[str] = []
    turns: list[str] | None = None
    for line in block.split("\n"):
        if line.startswith(_USER):
            turns = asked
            turns.append(line.removeprefix(_USER))
        elif line.startswith(_TEAM):
            turns = answered
            turns.append(line.removeprefix(_TEAM))
        elif line.startswith(_INDENT) and turns is not None:
            turns.append(line.removeprefix(_INDENT))
        # Headers and empty lines belong to no turn.
    return asked, answered
