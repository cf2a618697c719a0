"""The form in which the team answers a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from model.messages import is_snowflake
from reporting.report import Gap
from services.storage import in_thread
from services.team import SAME_WORDING, LessonForm, LessonRefused, Taught, asker_among, share_of_wording
from services.telemetry import PartOutcome

MOST_LOOKED_UP = 20
"""The most questions of a gap that Discord is asked for, to fill in one."""


class Teacher(Protocol):
    """Stores what the team teaches."""

    async def teach(self, form: LessonForm, operator: str) -> Taught:
        """Note who teaches, and store a question and its answer. Raises LessonRefused: nothing is stored."""
        ...

    async def may_quote(self, asked: PartOutcome) -> bool:
        """Return True if a question may be told to everybody as it was asked."""
        ...


async def question_to_fill_in(gap: Gap, teacher: Teacher) -> str:
    """Return the most typical question of a gap, or else the newest, that may be told to everybody; empty: none may."""
    typical_first = sorted(gap.asked, key=lambda each: each.question != gap.question)
    for each in typical_first[:MOST_LOOKED_UP]:
        if await teacher.may_quote(each):
            return each.question
    return ""


async def refuse_private_wording(question: str, gap: Gap, teacher: Teacher) -> None:
    """Raise LessonRefused if a question is one of a gap that may not be told to everybody."""
    holding, repeated = await in_thread(_alike, question, gap.asked)
    for each in holding:
        if await teacher.may_quote(each):
            return
    for each in repeated:
        if not await teacher.may_quote(each):
            raise LessonRefused(
                "This is how somebody asked where not everybody can read it, or deleted or changed it since, and the"
                " question is told to everybody: write it in your own words."
            )


def _alike(question: str, asked: Sequence[PartOutcome]) -> tuple[list[PartOutcome], list[PartOutcome]]:
    """Return two lists of the outcomes in `asked`: those whose questions have all of a question's wording, and those
    whose wording it has. Blocks, for a second with long ones.
    """
    holding = [each for each in asked if share_of_wording(question, each.question) == 1]
    return holding, [each for each in asked if share_of_wording(each.question, question) >= SAME_WORDING]


def lesson_form(sent: Mapping[str, object], gap: Gap | None) -> LessonForm:
    """Make the lesson of a form that was sent, for the server of the gap. If the question is in an asker's wording, the
    asker counts as its author. Blocks, for a second with a large gap. Raises LessonRefused.
    """
    given = {name: str(sent.get(name, "")) for name in ("question", "answer", "author", "guild")}
    author, guild = given["author"].strip(), given["guild"]
    if author and not is_snowflake(author):
        raise LessonRefused(
            f"{author[:40]} is no id of Discord: write digits, such as 1458745245675032710, or nothing."
        )
    asked = () if gap is None else gap.asked
    return LessonForm(
        asked[0].guild_id if asked else int(guild) if is_snowflake(guild) else None,
        given["question"],
        given["answer"],
        author_id=int(author or 0),
        asker_id=asker_among(given["question"], ((each.author_id, each.question) for each in asked)),
    )
