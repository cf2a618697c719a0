"""The forms of operators: decisions about the answers that wait for approval, with their page, and answers to gaps."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiohttp import web

from dashboard.access import AdmittedRequest
from dashboard.data import DraftList, Teacher
from dashboard.display import DisplayRules, ago, link_to, minute
from model.messages import is_snowflake
from model.source_ids import bare_name
from model.words import without_invisible
from reporting.report import Gap
from services.conversations import Draft, DraftAction
from services.storage import in_thread
from services.team import SAME_WORDING, LessonForm, LessonRefused, asker_among, share_of_wording
from services.telemetry import PartOutcome

log = logging.getLogger(__name__)


class DraftView(NamedTuple):
    """A draft as it is shown. `question`, `answer`: empty if texts are not shown."""

    id: int
    held_at: str
    until: str
    age: str
    who: str
    where: str
    question: str
    answer: str
    sources: tuple[str, ...]
    confidence: str
    version: str
    is_edited: bool
    may_be_kept: bool
    is_posting: bool
    link: str
    review_link: str


def draft_view(draft: Draft, rules: DisplayRules, at: float) -> DraftView:
    post, guild_id = draft.reply.post, draft.reply.guild_id
    reviewed = link_to(guild_id, draft.review_channel_id, draft.review_id) if draft.review_id else ""
    return DraftView(
        id=draft.id,
        held_at=minute(draft.held_at),
        until=minute(draft.until),
        age=ago(draft.held_at, at),
        who=rules.person(post.asker_id),
        where=rules.place(post.asked_in),
        question=rules.question(post.question),
        answer=rules.text(draft.text),
        sources=tuple(without_invisible(bare_name(each)) for each in post.sources),
        confidence=f"{draft.confidence:.2f}",
        version=draft.version,
        is_edited=draft.edited_by is not None,
        may_be_kept=draft.may_be_kept,
        is_posting=draft.end is not None,
        link=link_to(guild_id, post.asked_in, draft.id),
        review_link=reviewed,
    )


_EMPHASIS = re.compile(r"\*(\w+)\*")


def adapt_to_dashboard(told: str, text: str, rules: DisplayRules) -> str:
    """Return the sentence about a decision, which is written for Discord, with pseudonyms and without markup. `text`:
    what the operator has sent; where the sentence ends with it, it stays as it is.
    """
    said = told.removesuffix(text)
    return _EMPHASIS.sub(r"\1", rules.with_pseudonyms(said)) + told[len(said) :]


async def decide(request: web.Request, visit: AdmittedRequest, drafts: DraftList, rules: DisplayRules) -> str:
    """Carry out the form of a draft. Returns one sentence about it."""
    form = await request.post()
    action, draft_id = DraftAction(request.match_info["action"]), int(request.match_info["id"])
    log.info("dashboard: %s: %s the draft %d", visit.operator.name, action, draft_id)
    # A browser sends the line ends of a text area as CR and LF.
    text = str(form.get("text", "")).replace("\r\n", "\n")
    seen = str(form.get("seen", ""))
    told = await drafts.decide(draft_id, action, operator=visit.operator.name, text=text, seen=seen)
    return adapt_to_dashboard(told, text, rules)


MAX_LOOKED_UP = 20
"""The most questions of a gap that Discord is asked for, to fill in one."""


async def question_to_fill_in(gap: Gap, teacher: Teacher) -> str:
    """Return the most typical question of a gap, or else the newest, that may be told to everybody; empty: none may."""
    typical_first = sorted(gap.questions, key=lambda each: each.question != gap.question)
    for each in typical_first[:MAX_LOOKED_UP]:
        if await teacher.may_quote(each):
            return each.question
    return ""


async def refuse_private_wording(question: str, asked: Sequence[PartOutcome], teacher: Teacher) -> None:
    """Raise LessonRefused if a question has the wording of one that was `asked` and may not be told to everybody."""
    containing, contained = await in_thread(_with_same_wording, question, asked)
    for each in containing:
        if await teacher.may_quote(each):
            return
    for each in contained:
        if not await teacher.may_quote(each):
            raise LessonRefused(
                "This is how somebody asked where not everybody can read it, or deleted or changed it since, and the"
                " question is told to everybody: write it in your own words."
            )


def _with_same_wording(question: str, asked: Sequence[PartOutcome]) -> tuple[list[PartOutcome], list[PartOutcome]]:
    """Return two lists of the outcomes in `asked`: those whose questions contain the wording of `question`, and those
    whose wording it contains. Blocks, for a second with long questions.
    """
    containing = [each for each in asked if share_of_wording(question, each.question) == 1]
    return containing, [each for each in asked if share_of_wording(each.question, question) >= SAME_WORDING]


def lesson_form(sent: Mapping[str, object], gap: Gap) -> LessonForm:
    """Make the lesson of a form that was sent, for the server of the gap. If the question is in an asker's wording, the
    asker counts as its author. Blocks, for a second with a large gap. Raises LessonRefused.
    """
    given = {name: str(sent.get(name, "")) for name in ("question", "answer", "author")}
    author = given["author"].strip()
    if author and not is_snowflake(author):
        raise LessonRefused(
            f"{author[:40]} is no id of Discord: write digits, such as 1458745245675032710, or nothing."
        )
    return LessonForm(
        gap.questions[0].guild_id,
        given["question"],
        given["answer"],
        author_id=int(author or 0),
        asker_id=asker_among(given["question"], ((each.author_id, each.question) for each in gap.questions)),
    )
