"""What one process does for wishes to be forgotten: the server is real, folders are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import pytest
from nats.aio.client import Client

from assembly.distributed import forgetting
from assembly.distributed.forgetting import (
    DOCUMENTS,
    ForgetHandler,
    describe_scopes,
    forget_everywhere,
    parse_forgotten,
)
from services.privacy import ForgetResult
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client, until
from transport.connection import Address, connect, streams_of
from transport.fenced_log import Fenced
from transport.members import Member, Members
from transport.people import ForgetReport, SharedPeople, open_people
from transport.streams import TEAM, Layout

__all__ = ["client"]

pytestmark = pytest.mark.real_time

ADA = 42
LAYOUT = Layout(partitions=2)


class Folder:
    """Something with two posts of everybody. `errors`: what goes wrong first."""

    def __init__(self, *errors: Exception, order: list[str] | None = None, name: str = "") -> None:
        self.errors = list(errors)
        self.forgotten: list[int] = []
        self.order, self.name = [] if order is None else order, name
        self.renamed: list[Mapping[str, str]] = []

    async def forget(self, user_id: int, renamed: Mapping[str, str]) -> ForgetResult:
        if self.errors:
            raise self.errors.pop(0)
        self.forgotten.append(user_id)
        self.order.append(self.name)
        self.renamed.append(renamed)
        return ForgetResult(posts=2)


@pytest.fixture
async def people(client: Client) -> AsyncGenerator[SharedPeople]:
    async with open_people(client) as opened:
        yield opened


@pytest.fixture
async def forget_handler(nats_server: NatsServer, people: SharedPeople) -> AsyncGenerator[ForgetHandler]:
    """Of a worker that also keeps the archive, in another process."""
    assert people
    connected = await connect(Address((nats_server.url,)), "worker")
    async with open_people(connected) as its, aclosing(ForgetHandler(its.forget_requests, "worker")) as made:
        its.forget_requests.on_change = made.on_request
        yield made
    await connected.close()


@pytest.fixture
async def members(client: Client) -> Members:
    seen = Members(streams_of(client), Member("worker", ("worker", "team")))
    await seen.send_heartbeat()
    return seen


async def test_what_all_have_found_is_one_sum(
    people: SharedPeople, forget_handler: ForgetHandler, members: Members
) -> None:
    for name in ("p00", "p01", TEAM, DOCUMENTS):
        await forget_handler.own(name, Folder().forget)
    result = await forget_everywhere(people, LAYOUT, members, ADA, 30)
    assert (result.done, result.left) == (ForgetResult(posts=8), ())


async def test_the_archive_is_changed_when_all_others_have_looked_into_it(
    people: SharedPeople, forget_handler: ForgetHandler, members: Members
) -> None:
    """What somebody wrote is found by it elsewhere."""
    order: list[str] = []
    for name in (TEAM, "p00", DOCUMENTS):
        await forget_handler.own(name, Folder(order=order, name=name).forget)
    asking = asyncio.create_task(forget_everywhere(people, LAYOUT, members, ADA, 30))
    await until(lambda: len(order) == 2)
    assert TEAM not in order
    await forget_handler.own("p01", Folder(order=order, name="p01").forget)
    await asking
    assert order[2:] == ["p01", TEAM]


async def test_what_nobody_has_is_done_by_its_next_owner_before_anything_else(
    people: SharedPeople, forget_handler: ForgetHandler, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "OTHERS_SECONDS", 0.1)
    for name in ("p00", TEAM, DOCUMENTS):
        await forget_handler.own(name, Folder().forget)
    result = await forget_everywhere(people, LAYOUT, members, ADA, 1.0)
    assert (result.done.posts, result.left) == (6, ("partitions p01: as soon as a worker has them",))
    later = Folder()
    await forget_handler.own("p01", later.forget)
    assert later.forgotten == [ADA]
    await until(lambda: not people.forget_requests.by_user[ADA].left)


async def test_what_goes_wrong_is_tried_again_and_named(
    people: SharedPeople,
    forget_handler: ForgetHandler,
    members: Members,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(forgetting, "RETRY_SECONDS", 0.01)
    for name in ("p01", TEAM, DOCUMENTS):
        await forget_handler.own(name, Folder().forget)
    await forget_handler.own("p00", Folder(OSError(28, "No space left on device")).forget)
    result = await forget_everywhere(people, LAYOUT, members, ADA, 30)
    assert (result.done.posts, result.left) == (8, ())
    assert "forget: p00: [Errno 28] No space left on device; tried again" in caplog.text


async def test_what_belongs_to_another_now_is_left_to_it(people: SharedPeople, forget_handler: ForgetHandler) -> None:
    lost = Folder(Fenced("p00"))
    await forget_handler.own("p00", lost.forget)
    await people.forget_requests.make(ADA, ["p00"])
    await until(lambda: not lost.errors and ADA in people.forget_requests.by_user)  # each has its own connection
    assert people.forget_requests.by_user[ADA].left == ("p00",)
    assert lost.forgotten == []


async def test_each_worker_forgets_what_it_has_in_memory_although_another_was_faster(
    people: SharedPeople, forget_handler: ForgetHandler
) -> None:
    mine = Folder()
    await forget_handler.own(DOCUMENTS, mine.forget)
    await people.forget_requests.make(ADA, [])
    await until(lambda: mine.forgotten == [ADA])


async def test_who_begins_takes_up_what_is_wished_already(client: Client, people: SharedPeople) -> None:
    request = await people.forget_requests.make(ADA, ["p00"])
    mine = Folder()
    async with open_people(client) as later, aclosing(ForgetHandler(later.forget_requests, "worker")) as forget_handler:
        later.forget_requests.on_change = forget_handler.on_request
        await forget_handler.own(DOCUMENTS, mine.forget)
        forget_handler.begin()
        await until(lambda: mine.forgotten == [ADA])
    assert people.forget_requests.scopes_left(request) == ("p00",)


def test_counts_of_another_version_are_left_out() -> None:
    assert parse_forgotten({"posts": 1, "moods": 3}) == ForgetResult(posts=1)


def test_what_is_left_is_said_in_words() -> None:
    assert describe_scopes(["p03", "p01", TEAM, DOCUMENTS]) == [
        "partitions p01, p03: as soon as a worker has them",
        "archive and topics: as soon as a process with the role team runs",
        "files in threads and runbooks: as soon as a worker runs",
    ]
    assert describe_scopes([]) == []


RENAMED = {"team:adas-lamp.txt": "team:lamp.txt"}


async def test_topics_that_are_renamed_are_renamed_in_what_each_partition_keeps(
    people: SharedPeople, forget_handler: ForgetHandler, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "OTHERS_SECONDS", 0.1)
    order: list[str] = []
    folders = {name: Folder(order=order, name=name) for name in ("p00", "p01", TEAM, DOCUMENTS)}

    async def plan(user_id: int) -> Mapping[str, str]:
        assert user_id == ADA
        order.append("plan")
        return RENAMED

    for name in ("p00", DOCUMENTS):
        await forget_handler.own(name, folders[name].forget)
    await forget_handler.own(TEAM, folders[TEAM].forget, plan)
    result = await forget_everywhere(people, LAYOUT, members, ADA, 1.0)
    assert result.left == ("partitions p01: as soon as a worker has them",)
    # Announced before it is done, so that a process that is killed in between leaves nothing behind.
    assert order.index("plan") < order.index(TEAM)
    assert folders["p00"].renamed == [{}, RENAMED]
    await forget_handler.own("p01", folders["p01"].forget)
    assert folders["p01"].renamed == [RENAMED]
    await until(lambda: not people.forget_requests.by_user[ADA].left)


async def test_a_report_that_knows_nothing_of_renames_leaves_its_scope_open(people: SharedPeople) -> None:
    requests = people.forget_requests
    before = await requests.make(ADA, ["p00", "p01", TEAM])
    await requests.complete(before, ForgetReport("worker", ("p00",), {}))
    announced = await requests.announce_renames(before, RENAMED)
    assert (announced.left, announced.renamed) == (("p01", TEAM, "p00"), RENAMED)
    for name in ("p00", "p01"):
        await requests.complete(before, ForgetReport("worker", (name,), {}))
    await until(lambda: len(requests.by_user[ADA].parts) == 3)
    assert requests.scopes_left(before) == ("p01", TEAM, "p00")
    assert await requests.announce_renames(announced, RENAMED) == requests.by_user[ADA]
    await requests.complete(announced, ForgetReport("worker", ("p00", "p01"), {}))
    await until(lambda: requests.scopes_left(before) == (TEAM,))


async def test_without_a_plan_for_topics_the_archive_is_left_for_another_try(
    people: SharedPeople,
    forget_handler: ForgetHandler,
    members: Members,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(forgetting, "RETRY_SECONDS", 0.01)
    plans: list[Mapping[str, str] | OSError] = [OSError(5, "Input/output error"), {}]

    async def plan(_user_id: int) -> Mapping[str, str]:
        match plans.pop(0):
            case OSError() as error:
                raise error
            case planned:
                return planned

    archive = Folder()
    for name in ("p00", "p01", DOCUMENTS):
        await forget_handler.own(name, Folder().forget)
    await forget_handler.own(TEAM, archive.forget, plan)
    result = await forget_everywhere(people, LAYOUT, members, ADA, 30)
    assert (result.left, archive.forgotten, archive.renamed) == ((), [ADA], [{}])
    assert "forget: topics cannot be renamed: [Errno 5] Input/output error; tried again" in caplog.text
