"""Carries out requests to be forgotten in all processes: each deletes in the scopes that it owns (`ForgetHandler`). And
slash commands and opt-outs in a worker, for what belongs to no partition (`PeopleServices`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from assembly.distributed.process import Process, connected_client, drop_copies_of_ended_processes, layout_of, make_name
from assembly.documents import Documents
from assembly.forgetting import TeamKnowledgeFiles, newest_by_now, not_forgotten, summary
from assembly.graph_parts import GraphParts
from clock import BackgroundTasks, run_blocking
from clock.timeouts import Backoff
from model.events import Event
from services.conversations import phrases
from services.discord import Dispatch
from services.discord.slash import Call, CommandRegistry
from services.documents.store import StoreUnavailable
from services.documents.tools import TEAM as TEAM_TOOL
from services.privacy import ForgetResult, has_archived_text, new_pseudonym_key
from services.storage import DataFolder, files, in_thread
from services.team import LibraryUnusable, LibraryUnwritable
from settings import Settings
from transport.connection import streams_of
from transport.fenced_log import Fenced
from transport.locks import claim_once
from transport.members import Member, Members
from transport.people import ForgetReport, ForgetRequest, ForgetRequests, SharedPeople, open_people
from transport.rebalancing import WORKER
from transport.streams import TEAM, Layout, scope_of

DOCUMENTS = "documents"
"""The scope of data that any worker can delete (files in threads, runbooks), and of data in each worker's memory."""
OTHERS_SECONDS = 5.0
"""How long the role team waits for other scopes: they search the archive for the person's words, so it comes last."""
CALLER_SECONDS = 20.0
"""How long a slash command waits."""
RETRY_SECONDS, LONGEST_SECONDS = 1.0, 60.0

Forget = Callable[[int, Mapping[str, str]], Awaitable[ForgetResult]]
"""Removes a person, by their id, and renames sources: their new ids by the old. Raises OSError, StoreUnavailable,
LibraryUnwritable, Fenced.
"""
PlanRenames = Callable[[int], Awaitable[Mapping[str, str]]]
"""Gives the new ids, by the old, of the sources that the removal of a person will rename. Raises OSError."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ForgetHandler:
    """Carries out each request in the scopes that this role owns, with retries. To be closed before their stores."""

    forget_requests: ForgetRequests
    process: str
    _owned: dict[str, Forget] = field(default_factory=dict[str, Forget], init=False)
    _plans: dict[str, PlanRenames] = field(default_factory=dict[str, PlanRenames], init=False)
    _begun: dict[int, tuple[str, frozenset[str]]] = field(
        default_factory=dict[int, tuple[str, frozenset[str]]], init=False
    )  # the newest request of each person, and the sources that it renames
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def own(self, name: str, forget: Forget, plan_renames: PlanRenames | None = None) -> None:
        """Register a scope that this process owns now. Returns when open requests have been carried out in it, or have
        failed and are tried again in the background. `plan_renames`: for the archive; called before `forget`.
        """
        self._owned[name] = forget
        if plan_renames is not None:
            self._plans[name] = plan_renames
        for request in [each for each in self.forget_requests.by_user.values() if name in each.left]:
            if not await self._forget_in_scopes(request, [name]):
                self._tasks.start(self._carry_out(request))

    def disown(self, name: str) -> None:
        self._owned.pop(name, None)
        self._plans.pop(name, None)

    def begin(self) -> None:
        """Carry out the open requests; `on_request` is to be called with later ones."""
        for request in self.forget_requests.by_user.values():
            self.on_request(request)

    def on_request(self, request: ForgetRequest) -> None:
        """Take a new request, or one that other processes have worked on."""
        self._changed.set()
        begun = (request.id, frozenset(request.renamed))
        if self._begun.get(request.user_id) != begun:
            self._begun[request.user_id] = begun
            self._tasks.start(self._carry_out(request, everywhere=[DOCUMENTS]))

    async def aclose(self) -> None:
        """Stop; requests that are still open are left for the next owner."""
        await self._tasks.close()

    async def _carry_out(self, request: ForgetRequest, everywhere: Sequence[str] = ()) -> None:
        """Try until the request is carried out in all scopes here, and in `everywhere` even if others have done so."""
        backoff, done = Backoff(RETRY_SECONDS, LONGEST_SECONDS), set[str]()
        while True:
            due = {*self.forget_requests.scopes_left(request), *everywhere} - done
            mine = [name for name in self._owned if name in due]
            if not mine:
                return
            first = [name for name in mine if name != TEAM]
            now_done = await self._forget_in_scopes(request, first) if first else set[str]()
            if TEAM in mine:
                await self._wait_for_others(request)
                now_done |= await self._forget_in_scopes(request, [TEAM])
            done |= now_done
            if not done.issuperset(mine):
                await asyncio.sleep(backoff.pause())

    async def _wait_for_others(self, request: ForgetRequest) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(OTHERS_SECONDS):
                while set(self.forget_requests.scopes_left(request)) - {TEAM}:
                    self._changed.clear()
                    await self._changed.wait()

    async def _forget_in_scopes(self, request: ForgetRequest, names: Sequence[str]) -> set[str]:
        """Forget in these scopes and report it; returns the scopes that are done."""
        try:
            for plan in [self._plans[name] for name in names if name in self._plans]:
                if renamed := await plan(request.user_id):
                    request = await self.forget_requests.announce_renames(request, renamed)
        except OSError as error:
            log.error("forget: topics cannot be renamed: %s; tried again", error)  # noqa: TRY400 (a line for the operator)
            return set()
        results = await asyncio.gather(*(self._forget_in(name, request) for name in names))
        found, done = ForgetResult(), set[str]()
        for name, result in zip(names, results, strict=True):
            if result is not None:
                found.add(result)
                done.add(name)
        if done:
            for line in found.left:
                log.warning("forget: %s", line)
            try:
                await self.forget_requests.complete(
                    request, ForgetReport(self.process, tuple(sorted(done)), asdict(found))
                )
            except OSError as error:
                log.error("forget: it is done, but nobody knows: %s", error)  # noqa: TRY400 (a line for the operator)
                return set()
        return done

    async def _forget_in(self, name: str, request: ForgetRequest) -> ForgetResult | None:
        forget = self._owned.get(name)
        if forget is None:
            return None
        try:
            return await forget(request.user_id, request.renamed)
        except Fenced:
            self.disown(name)  # its next owner carries it out first
        except (OSError, StoreUnavailable, LibraryUnusable, LibraryUnwritable) as error:
            log.error("forget: %s: %s; tried again", name, error)  # noqa: TRY400 (a line for the operator)
        return None


@dataclass(frozen=True, slots=True)
class ForgottenEverywhere:
    """The state of a request.

    Attributes:
        done: the sum of the reports.
        left: for each kind of open scope, a line that says when it follows.
    """

    done: ForgetResult
    left: tuple[str, ...]


def scopes_of(layout: Layout) -> list[str]:
    """Return all scopes that may contain data of a person."""
    return [*(scope_of(number) for number in range(layout.partitions)), TEAM, DOCUMENTS]


async def forget_everywhere(
    people: SharedPeople, layout: Layout, members: Members, user_id: int, seconds: float
) -> ForgottenEverywhere:
    """Have all processes forget a person; scopes without an owner follow. Raises OSError: the request is not stored."""
    alive = await members.list_alive()
    processes = {name for name, member in alive.items() if WORKER in member.roles}
    scopes = scopes_of(layout)
    teams = any(TEAM in member.roles for member in alive.values())
    owned = [name for name in scopes if (teams if name == TEAM else processes)]
    answered = await people.forget_requests.request_and_wait(user_id, scopes, seconds, owned=owned, processes=processes)
    done = ForgetResult()
    for part in answered.parts:
        done.add(parse_forgotten(part.found))
    return ForgottenEverywhere(done, tuple(describe_scopes(answered.left)))


async def forget_from_command(settings: Settings, user_id: int, seconds: float) -> ForgottenEverywhere:
    """Do what `forget_everywhere` does, for `--forget`. Raises Unusable, as `connected_client`."""
    async with connected_client(settings) as client, open_people(client) as people:
        members = Members(streams_of(client), Member(make_name(), ()))
        return await forget_everywhere(people, layout_of(settings.nats), members, user_id, seconds)


def parse_forgotten(values: Mapping[str, Any]) -> ForgetResult:
    """Make the result whose fields `asdict` has written. Fields of another version of the program are left out."""
    known = {each.name for each in fields(ForgetResult)}
    return ForgetResult(**{name: value for name, value in values.items() if name in known})


def describe_scopes(left: Collection[str]) -> list[str]:
    """Return lines for people that say when the scopes which are left follow."""
    partitions = [name for name in left if name not in {TEAM, DOCUMENTS}]
    lines: list[str] = []
    if partitions:
        lines.append(f"partitions {', '.join(sorted(partitions))}: as soon as a worker has them")
    if TEAM in left:
        lines.append("archive and topics: as soon as a process with the role team runs")
    if DOCUMENTS in left:
        lines.append("files in threads and runbooks: as soon as a worker runs")
    return lines


REGISTERED_SECONDS = 60
"""How long other workers leave registering the commands of a server to the first one."""
LOOK_SECONDS, FOLLOW_SECONDS = 0.25, 30.0
SETTLE_SECONDS = 1.0
"""So much later than the archive its topics may arrive."""


@dataclass(slots=True, kw_only=True)
class PeopleServices:
    """Serves commands, opt-outs and requests to be forgotten for everything that belongs to no partition.

    Attributes:
        parts: the parts for commands, which know all places, and store nothing.
        team_files: copies of the team's knowledge, which the role team keeps, and their search indexes.
        commands: None in a rehearsal: nobody can call any.
    """

    process: Process
    people: SharedPeople
    parts: GraphParts
    team_files: Sequence[TeamKnowledgeFiles]
    documents: Documents | None
    commands: CommandRegistry | None = None
    _stale: dict[int, list[TeamKnowledgeFiles]] = field(default_factory=dict[int, list[TeamKnowledgeFiles]], init=False)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)

    def on_dispatch(self, dispatch: Dispatch, events: Sequence[Event]) -> None:
        """Take a dispatch about a server, channel, role or thread, with its events."""
        for event in events:
            self.parts.services.history.observe(event)
        if dispatch.t == "GUILD_CREATE" and not dispatch.d.get("unavailable") and self.commands is not None:
            self._tasks.start(self._register(int(str(dispatch.d["id"])), self.commands))

    def on_opt_out(self, user_id: int) -> None:
        self.parts.services.in_flight.withdraw(user_id)
        if self.documents is not None:
            self._tasks.start(self.documents.stop_reading_of(user_id))

    async def forget(self, user_id: int, renamed: Mapping[str, str]) -> ForgetResult:
        """Forget a person in the scope DOCUMENTS, for `ForgetHandler`."""
        self.parts.services.in_flight.withdraw(user_id)
        done = ForgetResult()
        await in_thread(drop_copies_of_ended_processes, self.process.folder.parent)
        known = self._stale.get(user_id, ())  # of a call before the archive was cleaned
        stale = [
            each
            for each in self.team_files
            if each in known or await in_thread(has_archived_text, each.data.raw, user_id)
        ]
        self._stale[user_id] = stale
        if (request := self.people.forget_requests.by_user.get(user_id)) is not None:
            self.on_progress(request)
        for server in self.parts.servers.values():
            server.captures.recent_captures.forget(user_id)
        await self.parts.state.record.forget(user_id, newest_by_now(self.parts.services.history))
        await self.parts.state.record.rename_sources(renamed)
        if self.documents is not None:
            done.files, done.runbooks = await self.documents.forget(user_id)
        recorded = self.parts.state.folder.llm_recordings
        if await in_thread(recorded.is_dir):
            done.left.append(f"{recorded}: not looked into; it is from a time without NATS")
        return done

    def on_progress(self, request: ForgetRequest) -> None:
        """Once the role team has carried a request out, rebuild this process's search indexes of the archive."""
        if TEAM not in request.left and (stale := self._stale.pop(request.user_id, None)):
            self._tasks.start(self._rebuild_search(request.user_id, stale))

    async def answer_forget_command(self, call: Call) -> str:
        """Carry out `/privacy forget`, and return the reply."""
        process = self.process
        try:
            found = await forget_everywhere(self.people, process.layout, process.members, call.user_id, CALLER_SECONDS)
        except OSError as error:
            raise not_forgotten(call, error) from error
        for line in found.left:
            log.warning("/privacy forget: still to come: %s", line)
        return summary(found.done, phrases(call.language), is_complete=not found.left)

    async def aclose(self) -> None:
        await self._tasks.close()

    async def _register(self, guild_id: int, commands: CommandRegistry) -> None:
        """Register commands, unless another process does: Discord limits registrations."""
        if await claim_once(self.process.client, f"commands-{guild_id}", self.process.name, REGISTERED_SECONDS):
            commands.register_in(guild_id)

    async def _rebuild_search(self, user_id: int, stale: Sequence[TeamKnowledgeFiles]) -> None:
        for _ in range(int(FOLLOW_SECONDS / LOOK_SECONDS)):
            if not [each for each in stale if await in_thread(has_archived_text, each.data.raw, user_id)]:
                break
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(SETTLE_SECONDS)
        try:
            async with AsyncExitStack() as stack:
                for each in stale:
                    if each.search is not None:
                        await stack.enter_async_context(each.search.team_passages_dropped())
                if self.documents is not None:
                    self.documents.answers.purge(TEAM_TOOL)
        except OSError as error:
            log.error("forget: copies of topics for searching may hold words: %s", error)  # noqa: TRY400 (a line for the operator)


async def use_shared_feedback_key(people: SharedPeople, folder: DataFolder) -> bytes:
    """Write the key that all processes share to a folder, and return it. Raises OSError."""
    own = await run_blocking(_content, folder.feedback_key)
    key = await people.feedback_key(own or new_pseudonym_key())
    if key != own:
        await run_blocking(files.replace, folder.feedback_key, key)
    return key


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
