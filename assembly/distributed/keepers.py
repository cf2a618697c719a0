"""Changes that operators ask for over NATS, at the process that keeps what is changed: the team's knowledge where the
archive is kept, and dismissed gaps at the worker with partition 0.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assembly.distributed.process import EVERYTHING, connected_client
from assembly.graph_parts import ServerParts
from assembly.health import HealthMonitor
from assembly.teaching import FILING_SECONDS, LOOK_SECONDS, decision_about, describe_filing, part_of_lesson
from clock import now, rfc3339, run_blocking
from model.bounded import BoundedDict
from model.health import HealthTopic
from model.outcomes import Outcome, Result
from model.permissions import TERMINAL
from model.servers import Servers
from reporting.reading import DismissedQuestions
from services.team import Action, AuditLog, Capture, LessonForm, TeachingResult, TeamLibrary, removals
from settings import Settings
from streams.alerts import AlertParts
from transport.captures import CaptureSender
from transport.connection import Client, ServerAway, streams_of
from transport.fenced_log import FencedLog
from transport.folder_log import restore
from transport.requests import ALERTS, ANSWER_SECONDS, ARCHIVE, OPERATORS, ask
from transport.streams import TEAM

REMEMBERED_LESSONS = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchiveKeeper:
    """Answers requests where the archive is kept. `servers`: the parts of the servers, with the team's libraries."""

    client: Client
    servers: Servers[ServerParts]
    _stored: BoundedDict[int, str] = field(default_factory=lambda: BoundedDict[int, str](REMEMBERED_LESSONS))
    """The ids of the pairs that were stored here, by the last message of their part."""

    def on_result(self, result: Result) -> None:
        """Remember the pair of a stored lesson. To be called with each result of the graph."""
        if isinstance(result, Outcome) and result.qa_id is not None:
            self._stored[result.part.last.id] = result.qa_id

    async def answer(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry out a request of the functions below. Raises LibraryUnwritable, OSError; KeyError, ValueError."""
        curation = self.servers[asked["guild"]].captures.curation
        if curation is None:
            raise ValueError("no team knowledge is kept here")
        if asked["action"] == "filed":
            return await self._filed(int(asked["number"]), curation.library)
        action, by = asked["action"], asked["by"]
        correct = {"remove": removals.remove, "restore": removals.restore}[action]
        loop = asyncio.get_running_loop()

        def note(pair_id: str) -> None:
            noting = note_decision(self.client, by, f"{action} conversation", pair_id)
            asyncio.run_coroutine_threadsafe(noting, loop).result()

        try:
            return {"told": await run_blocking(correct, curation.library, str(asked["qa_id"]), rfc3339(now()), note)}
        except removals.RemovalRefused as refused:
            return {"refused": str(refused)}

    async def _filed(self, lesson_id: int, library: TeamLibrary) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(FILING_SECONDS):
                while lesson_id not in self._stored:  # noqa: ASYNC110 (it is on its way in a stream)
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            return {"told": ""}
        pair = await run_blocking(library.pair, self._stored[lesson_id])
        if pair is None:
            return {"told": ""}
        decision = await decision_about(pair, library)
        is_filed = decision is not None and decision.action is Action.ADDED
        return {"told": " ".join(describe_filing(pair, decision)), "is_filed": is_filed}


async def correct(client: Client, guild_id: int | None, action: str, qa_id: str, operator: str) -> str:
    """Remove or restore a pair (`action`) where the archive is kept, with a line of the audit log. Returns a line about
    it.

    Raises:
        RemovalRefused: there is nothing to correct.
        ServerAway: it was not done; the message says why.
    """
    asked = {"action": action, "guild": guild_id, "qa_id": qa_id, "by": operator}
    answer = await ask(client, ARCHIVE, asked, 2 * ANSWER_SECONDS)  # it asks another process as well
    if "refused" in answer:
        raise removals.RemovalRefused(str(answer["refused"]))
    return str(answer["told"])


async def ask_filing(client: Client, guild_id: int | None, lesson_id: int) -> TeachingResult:
    """Ask what became of a lesson that was sent to the archive. `lesson_id`: the id of its part's last message."""
    asked = {"action": "filed", "guild": guild_id, "number": lesson_id}
    why = "its topic is not decided yet"
    try:
        answer = await ask(client, ARCHIVE, asked, 2 * FILING_SECONDS + ANSWER_SECONDS)
    except ServerAway as away:
        answer, why = {"told": ""}, str(away)
    if answer["told"]:
        return TeachingResult(str(answer["told"]), bool(answer["is_filed"]))
    return TeachingResult(f"Taken: it is stored and filed as soon as the archive has it ({why}).")


async def note_decision(client: Client, operator: str, action: str, about: str) -> None:
    """Note in the audit log what is about to be done. Raises ServerAway: it must not be done."""
    await ask(client, OPERATORS, {"action": "note", "what": action, "about": about, "by": operator})


async def keep_decision(questions: DismissedQuestions, audit: AuditLog, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Carry out a request to `dismiss` or `restore` questions, or to `note` a decision. Raises OSError."""
    action, by = asked["action"], str(asked["by"])
    if action == "note":
        await run_blocking(audit.note, now(), by, str(asked["what"]), str(asked["about"]))
        return {}
    change = {"dismiss": questions.dismiss, "restore": questions.restore}[action]
    asked_ids = frozenset(map(int, asked["ids"]))
    await run_blocking(audit.note, now(), by, f"{action} gap", max(asked_ids, default=0))
    await run_blocking(change, asked_ids)
    return {}


# Alerts

TELL_SECONDS = 20.0
"""The longest time until people are told; one attempt to post takes 15 s at most (`sinks.alerts`)."""


async def tell_refusal(client: Client, why: str) -> None:
    """Have people told that Discord refuses this process, before it ends. Returns after `TELL_SECONDS` and some more at
    the latest. `why`: one line without secrets.
    """
    try:
        await ask(client, ALERTS, {"refused": why}, TELL_SECONDS + ANSWER_SECONDS)
    except ServerAway as away:
        log.info("alerts: nobody is told that Discord refuses the bot: %s", away)


async def note_refusal(monitor: HealthMonitor, alerts: AlertParts, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Carry out the request of `tell_refusal`, at the worker that tells people. Returns when they are told."""
    monitor.note_refusal(str(asked["refused"]))
    with suppress(TimeoutError):
        async with asyncio.timeout(TELL_SECONDS):
            while not alerts.is_told(HealthTopic.ACCESS):  # noqa: ASYNC110 (messages are posted one after another)
                await asyncio.sleep(LOOK_SECONDS)
    return {}


# For `--kb`


async def copy_archive(settings: Settings, folder: Path) -> None:
    """Write the archive, decisions and topics in NATS to a folder. Raises Unusable, OSError."""
    async with connected_client(settings) as client:
        await restore(FencedLog(streams_of(client), TEAM), folder, EVERYTHING)


async def correct_from_command(settings: Settings, guild_id: int | None, action: str, qa_id: str) -> str:
    """Do what `correct` does, for `--kb`. Raises Unusable as well: the servers cannot be used."""
    async with connected_client(settings) as client:
        return await correct(client, guild_id, action, qa_id, TERMINAL)


async def teach_from_command(
    settings: Settings, form: LessonForm, lesson_id: int, action: str, capture_of: Callable[..., Capture]
) -> str:
    """Note a lesson in the audit log, and send it to the archive. Returns what became of it. `lesson_id`: the id of its
    first message. `action`: the word for the log. `capture_of`: makes its capture for a `part`.

    Raises:
        Unusable: the servers cannot be used.
        ServerAway: it was not noted, and not sent.
    """
    lesson = capture_of(part=part_of_lesson(form, lesson_id))
    async with connected_client(settings) as client:
        await note_decision(client, TERMINAL, action, lesson.conversation_id)
        await CaptureSender(client).send(lesson)
        return (await ask_filing(client, form.guild_id, lesson_id)).text.replace("`", "")  # Discord's markup
