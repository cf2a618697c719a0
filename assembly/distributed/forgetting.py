"""Carry out requests to be forgotten in all processes: each deletes in the scopes that it owns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from assembly import Unusable
from assembly.distributed.process import Process, address_of, layout_of, named
from clock import BackgroundTasks
from clock.timeouts import Backoff
from services.documents.store import StoreUnavailable
from services.privacy import ForgetResult
from services.team import LibraryUnusable, LibraryUnwritable
from settings import Settings
from transport.address import ServersUnusable
from transport.connection import connect, streams_of
from transport.fenced_log import Fenced
from transport.members import Member, Members
from transport.people import ForgetReport, ForgetRequest, ForgetRequests, SharedPeople, has_people_bucket, open_people
from transport.rebalancing import WORKER
from transport.streams import TEAM, Layout, scope_of

DOCUMENTS = "documents"
"""The scope of data that any worker can delete (files in threads, runbooks) and of what each worker has in memory."""
OTHERS_SECONDS = 5.0
"""How long the role team waits for the others: they look the person's words up in the archive, so it is changed last.
"""
CALLER_SECONDS = 20.0
"""How long somebody waits who has called a command."""
RETRY_SECONDS, LONGEST_SECONDS = 1.0, 60.0

Forget = Callable[[int], Awaitable[ForgetResult]]
"""Removes a person, by their id. Raises OSError, StoreUnavailable, LibraryUnwritable, Fenced."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ForgetHandler:
    """Carries out each request in the scopes that this role owns, with retries. Close it before the stores that it
    deletes from.
    """

    forget_requests: ForgetRequests
    process: str
    _owned: dict[str, Forget] = field(default_factory=dict[str, Forget], init=False)
    _begun: dict[int, str] = field(default_factory=dict[int, str], init=False)  # the request that was received last
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def own(self, name: str, forget: Forget) -> None:
        """A scope is this process's from now on. Returns when the requests that were made without its owner are carried
        out in it, or cannot be now and are tried again.
        """
        self._owned[name] = forget
        for request in [each for each in self.forget_requests.by_user.values() if name in each.left]:
            if not await self._do(request, [name]):
                self._tasks.start(self._carry_out(request))

    def disown(self, name: str) -> None:
        self._owned.pop(name, None)

    def begin(self) -> None:
        """Take up the requests that there are; from now on `on_request` is called with each that comes."""
        for request in self.forget_requests.by_user.values():
            self.on_request(request)

    def on_request(self, request: ForgetRequest) -> None:
        """Somebody asks to be forgotten, or other processes have done their part."""
        self._changed.set()
        if self._begun.get(request.user_id) != request.id:
            self._begun[request.user_id] = request.id
            self._tasks.start(self._carry_out(request, everywhere=[DOCUMENTS]))

    async def close(self) -> None:
        """What is not done by now is somebody else's."""
        await self._tasks.close()

    async def _carry_out(self, request: ForgetRequest, everywhere: Sequence[str] = ()) -> None:
        """Until nothing of it is left here. `everywhere`: scopes to be dealt with although others already have."""
        backoff, done = Backoff(RETRY_SECONDS, LONGEST_SECONDS), set[str]()
        while True:
            due = {*self.forget_requests.scopes_left(request), *everywhere} - done
            mine = [name for name in self._owned if name in due]
            if not mine:
                return
            first = [name for name in mine if name != TEAM]
            now_done = await self._do(request, first) if first else set[str]()
            if TEAM in mine:
                await self._until_others_have(request)
                now_done |= await self._do(request, [TEAM])
            done |= now_done
            if not done.issuperset(mine):
                await asyncio.sleep(backoff.pause())

    async def _until_others_have(self, request: ForgetRequest) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(OTHERS_SECONDS):
                while set(self.forget_requests.scopes_left(request)) - {TEAM}:
                    self._changed.clear()
                    await self._changed.wait()

    async def _do(self, request: ForgetRequest, names: Sequence[str]) -> set[str]:
        """Gives the scopes that are dealt with."""
        results = await asyncio.gather(*(self._forget_in(name, request.user_id) for name in names))
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

    async def _forget_in(self, name: str, user_id: int) -> ForgetResult | None:
        forget = self._owned.get(name)
        if forget is None:
            return None
        try:
            return await forget(user_id)
        except Fenced:
            self.disown(name)  # its next owner looks for the request first
        except (OSError, StoreUnavailable, LibraryUnusable, LibraryUnwritable) as error:
            log.error("forget: %s: %s; tried again", name, error)  # noqa: TRY400 (a line for the operator)
        return None


@asynccontextmanager
async def open_forget_handler(forget_requests: ForgetRequests, process: str) -> AsyncGenerator[ForgetHandler]:
    forget_handler = ForgetHandler(forget_requests, process)
    try:
        yield forget_handler
    finally:
        await forget_handler.close()


@dataclass(frozen=True, slots=True)
class ForgottenEverywhere:
    """What has come of a request.

    Attributes:
        done: the sum of what was found.
        left: what is still to be done, in words.
    """

    done: ForgetResult
    left: tuple[str, ...]


def scopes_of(layout: Layout) -> list[str]:
    """All that may hold something of a person."""
    return [*(scope_of(number) for number in range(layout.partitions)), TEAM, DOCUMENTS]


async def forget_everywhere(
    people: SharedPeople, layout: Layout, members: Members, user_id: int, seconds: float
) -> ForgottenEverywhere:
    """Have a person forgotten by all processes; what cannot be reached now follows by itself. Raises OSError: the
    request could not be kept.
    """
    alive = await members.list_alive()
    processes = {name for name, member in alive.items() if WORKER in member.roles}
    scopes = scopes_of(layout)
    teams = any(TEAM in member.roles for member in alive.values())
    owned = [name for name in scopes if (teams if name == TEAM else processes)]
    answered = await people.forget_requests.request_and_wait(user_id, scopes, seconds, owned=owned, processes=processes)
    done = ForgetResult()
    for part in answered.parts:
        done.add(parse_forgotten(part.found))
    done.usage = bool(done.usage)  # all partitions count together
    return ForgottenEverywhere(done, tuple(describe_scopes(answered.left)))


async def forget_from_command(settings: Settings, user_id: int, seconds: float) -> ForgottenEverywhere:
    """As `forget_everywhere`, for a command. Raises Unusable: the servers cannot be used, or hold nothing."""
    layout, address = layout_of(settings.nats), address_of(settings)
    try:
        client = await connect(address, name := named())
    except ServersUnusable as error:
        raise Unusable(str(error)) from None
    try:
        if not await has_people_bucket(client):
            where = ", ".join(address.servers)
            raise Unusable(f"transport: {where}: nothing is kept there; is this the right --config?")
        async with open_people(client) as people:
            return await forget_everywhere(
                people, layout, Members(streams_of(client), Member(name, ())), user_id, seconds
            )
    finally:
        await client.close()


def parse_forgotten(told: Mapping[str, Any]) -> ForgetResult:
    """The inverse of `asdict`; what another version of the program counts besides is left out."""
    known = {each.name for each in fields(ForgetResult)}
    return ForgetResult(**{name: value for name, value in told.items() if name in known})


def describe_scopes(left: Collection[str]) -> list[str]:
    """Scopes, for people."""
    partitions = [name for name in left if name not in {TEAM, DOCUMENTS}]
    said: list[str] = []
    if partitions:
        said.append(f"partitions {', '.join(sorted(partitions))}: as soon as a worker has them")
    if TEAM in left:
        said.append("archive and topics: as soon as a process with the role team runs")
    if DOCUMENTS in left:
        said.append("files in threads and runbooks: as soon as a worker runs")
    return said


async def forgotten_across(process: Process, people: SharedPeople, user_id: int) -> tuple[ForgetResult, bool]:
    """For a command: what was removed, and whether that is all. Raises OSError."""
    result = await forget_everywhere(people, process.layout, process.members, user_id, CALLER_SECONDS)
    for line in result.left:
        log.warning("/privacy forget: still to come: %s", line)
    return result.done, not result.left
