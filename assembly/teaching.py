"""Stores what a team member teaches, has it filed, and says what has become of it."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, replace

from assembly.graph_parts import GraphParts
from clock import now, run_blocking
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind, snowflake_at
from services.discord import LookupFailed, render
from services.redaction import Redactor
from services.storage import in_thread
from services.team import (
    Action,
    Decision,
    LessonForm,
    LessonRefused,
    Pair,
    TeachingResult,
    TeamLibrary,
    archive_files,
    lesson_of,
)
from services.telemetry import PartOutcome, recorded_question

FILING_SECONDS, LOOK_SECONDS = 45.0, 0.1
"""How long a teacher waits for the topic, which a model may choose; and how often is looked for it."""

_CHANNEL = re.compile(r"<#([0-9]{1,20})>")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LessonStore:
    """Stores lessons in the archive of their server, in this process or through the one that keeps it."""

    parts: GraphParts
    redactor: Redactor

    async def teach(self, form: LessonForm, operator: str = "") -> TeachingResult:
        """Note who teaches, store it, and say what has become of it. `operator`: their name at the dashboard; empty:
        the author teaches. Raises LessonRefused: nothing is stored.
        """
        captures = self.parts.servers[form.guild_id].captures
        if captures.teach is None:
            raise LessonRefused("This run keeps nothing that the team teaches.")
        if self.parts.state.is_opted_out(form.author_id, f"{form.question}\n{form.answer}"):
            raise LessonRefused("Its author has opted out, or the text has the mark that says so: it is not kept.")
        if form.asker_id is not None and self.parts.state.is_opted_out(form.asker_id, form.question):
            raise LessonRefused("Whoever asked this has opted out since: write the question in your own words.")
        rendered = replace(form, question=self._render(form.question), answer=self._render(form.answer))
        lesson, lesson_id = lesson_of(rendered, self.redactor.redact_and_count), form.lesson_id or snowflake_at(now())
        capture, by = lesson.capture(lesson_id, part=part_of_lesson(form, lesson_id)), operator or str(form.author_id)
        try:
            await run_blocking(self.parts.state.audit.note, now(), by, "teach", capture.conversation_id)
            pair = await captures.teach(capture)
        except (archive_files.ArchiveUnwritable, OSError) as error:
            log.error("what the team taught was not stored: %s", error)  # noqa: TRY400 (a line for the operator)
            raise LessonRefused("It could not be stored: the bot's disk is full or broken. Try again later.") from error
        said, is_filed = [lesson.note] if lesson.hidden else [], False
        if captures.curation is None:
            assert captures.ask_filing is not None, "another process files it"  # noqa: S101 (for the type checker)
            told, is_filed = await captures.ask_filing(form.guild_id, lesson_id)
            said.append(told)
        elif pair is None:
            said.append("It was stored already.")
        else:
            decision = await decision_about(pair, captures.curation.library)
            is_filed = decision is not None and decision.action is Action.ADDED
            said += describe_filing(pair, decision)
        return TeachingResult(" ".join(said), is_filed)

    async def may_quote(self, asked: PartOutcome) -> bool:
        """Return True if a question may be told to everybody as it was asked: it stands on Discord as it did, its place
        is one whose conversations are captured, and its author has not opted out. If Discord cannot be asked: False.
        """
        services = self.parts.services
        allowed = services.router.rules[asked.guild_id].capture_channels
        try:
            found = await services.context.quotable(asked.channel_id, asked.place_id, asked.message_ids, allowed)
        except LookupFailed:
            return False
        texts = [each.text for each in found or ()]
        return found is not None and recorded_question(texts, self.redactor.text) == asked.question

    def _render(self, text: str) -> str:
        """Write mentions as names, as in captured messages; channels that anybody can see as well."""
        history = self.parts.services.history
        mentioned = {int(each) for each in _CHANNEL.findall(text)}
        channels = {
            each: history.name_of(each) for each in mentioned if history.knows(each) and history.place(each).public
        }
        return render(Message(0, 0, Author(0, ""), text, 0.0), {**history.names, **channels})


def describe_filing(pair: Pair, decision: Decision | None) -> list[str]:
    """Say what was decided about a taught pair; None: nothing yet."""
    stored = f"Stored as `{pair.id}`"
    if decision is None:
        return [f"{stored}, and filed as soon as the model that chooses the topic answers."]
    replaced = ", ".join(f"`{each}`" for each in dict.fromkeys((*decision.replaces, *decision.remove_ids)))
    said = [f"It replaces {replaced}."] if replaced else []
    match decision.action:
        case Action.ADDED:
            return [f"{stored} and filed under `{decision.topic}`: who asks this next gets the answer.", *said]
        case Action.FAILED:
            return [f"{stored}, but it could not be filed; `--regen` tries again."]
        case _:
            return [f"{stored}, but not filed, so that nobody is answered from it: {decision.reason}.", *said]


async def decision_about(pair: Pair, library: TeamLibrary) -> Decision | None:
    """Wait for the decision about a pair; None: it takes too long."""
    try:
        async with asyncio.timeout(FILING_SECONDS):
            while library.fold.placement.is_undecided(pair):  # noqa: ASYNC110 (decisions are written in threads)
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        return None
    return await in_thread(library.decision_about, pair)


def part_of_lesson(form: LessonForm, lesson_id: int) -> Part:
    """Return the part that takes the capture of a lesson to the process that keeps the archive."""
    place = Place(form.place_id, PlaceKind.CHANNEL, guild_id=form.guild_id)
    message = Message(lesson_id, place.id, Author(form.author_id, ""), "", now(), form.guild_id)
    return Part(0, (message,), AuthorType.TEAM_MEMBER, place, now())
