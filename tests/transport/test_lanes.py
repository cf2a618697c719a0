"""The lanes on a clock that jumps, with a server that answers as the test says."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.leaks import crashes
from transport.ordered_publisher import COMPLAIN_SECONDS, OrderedPublisher, OutgoingMessage
from transport.streams import DUPLICATE_BEING_STORED, STREAM_FULL

__all__ = ["crashes"]

STORED: dict[str, object] = {"stream": "S", "seq": 1}


class Server:
    """Stands for a client and the server behind it. `answers`: to the next messages; then each is stored.

    None: no answer comes.
    """

    def __init__(self) -> None:
        self.is_connected, self.is_closed = True, False
        self.max_payload = 1000
        self.stats = {"reconnects": 0}
        self.sent: list[tuple[str, bytes]] = []
        self.answers: list[dict[str, object] | bytes | Exception | None] = []
        self._hear: Callable[[Msg], Awaitable[None]] | None = None
        self._answering: set[asyncio.Task[None]] = set()

    def new_inbox(self) -> str:
        return "_INBOX.x"

    async def subscribe(self, _subject: str, cb: Callable[[Msg], Awaitable[None]]) -> Server:
        self._hear = cb
        return self

    async def unsubscribe(self) -> None:
        self._hear = None

    async def publish(self, subject: str, data: bytes, *, reply: str, headers: dict[str, str]) -> None:
        assert headers["Nats-Msg-Id"]
        answer = self.answers.pop(0) if self.answers else STORED
        if isinstance(answer, Exception):
            raise answer
        self.sent.append((subject, data))
        if answer is not None:
            answering = asyncio.create_task(self._answer(reply, answer))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)

    async def _answer(self, reply: str, answer: dict[str, object] | bytes) -> None:
        await asyncio.sleep(0.01)
        if self._hear is not None:
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            await self._hear(Msg(cast("Client", self), reply, "", data))


def error(number: int, code: int = 503) -> dict[str, object]:
    return {"error": {"code": code, "err_code": number, "description": "no"}}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def few(server: Server) -> AsyncIterator[OrderedPublisher]:
    """OrderedPublisher with room for three messages or a hundred bytes, two subjects at once."""
    async with OrderedPublisher(cast("Client", server), at_once=2, most=3, most_bytes=100).running() as made:
        yield made


def outgoing(subject: str, text: str = "x", on_settled: Callable[[], object] | None = None) -> OutgoingMessage:
    return OutgoingMessage(subject, text.encode(), {"Nats-Msg-Id": text}, on_settled)


async def test_one_at_a_time_goes_within_a_subject_and_others_overtake(server: Server, few: OrderedPublisher) -> None:
    for each in (outgoing("a", "1"), outgoing("a", "2"), outgoing("b", "3")):
        await few.put(each)
    await asyncio.sleep(0.005)
    assert server.sent == [("a", b"1"), ("b", b"3")]
    await few.drain()
    assert server.sent[2:] == [("a", b"2")]


async def test_only_so_many_subjects_are_under_way_at_once(server: Server, few: OrderedPublisher) -> None:
    for subject in "abc":
        await few.put(outgoing(subject))
    await asyncio.sleep(0.005)
    assert len(server.sent) == 2
    await few.drain()
    assert len(server.sent) == 3


async def test_a_lost_answer_is_asked_for_again_and_nothing_behind_it_goes_first(
    server: Server, few: OrderedPublisher
) -> None:
    server.answers = [None]
    began = asyncio.get_running_loop().time()
    await few.put(outgoing("a", "1"))
    await few.put(outgoing("a", "2"))
    await few.drain()
    assert server.sent == [("a", b"1"), ("a", b"1"), ("a", b"2")]
    assert 2.0 <= asyncio.get_running_loop().time() - began < 2.6
    assert few.stored == 2


async def test_after_a_reconnection_nobody_waits_for_answers_of_the_old_one(
    server: Server, few: OrderedPublisher
) -> None:
    server.answers = [None]
    began = asyncio.get_running_loop().time()
    await few.put(outgoing("a"))
    await asyncio.sleep(0.1)
    server.stats["reconnects"] = 1
    await few.drain()
    assert asyncio.get_running_loop().time() - began < 0.5


async def test_two_answers_to_one_message_count_once(server: Server, few: OrderedPublisher) -> None:
    server.answers = [None, STORED | {"duplicate": True}]
    await few.put(outgoing("a"))
    await few.drain()
    await few._on_answer(Msg(cast("Client", server), "_INBOX.x.0", "", json.dumps(STORED).encode()))  # pyright: ignore[reportPrivateUsage]
    assert (few.stored, few.repeats) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(error(STREAM_FULL), "no (error 10077)"), (b"", "no stream takes messages.*"), (error(10008), "no (error 10008)")],
)
async def test_what_may_pass_is_tried_until_it_does_with_one_line_a_minute(
    server: Server,
    few: OrderedPublisher,
    caplog: pytest.LogCaptureFixture,
    answer: dict[str, object] | bytes,
    words: str,
) -> None:
    server.answers = [answer] * 130
    await few.put(outgoing("messages.1"))
    await few.drain()
    assert len(server.sent) == 131
    minutes = asyncio.get_running_loop().time() // COMPLAIN_SECONDS
    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(lines) == minutes + 1
    assert lines[0] == f"NATS does not take messages: {words}; trying until it does"


async def test_a_message_that_is_being_stored_is_asked_for_again_without_a_word(
    server: Server, few: OrderedPublisher, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [error(DUPLICATE_BEING_STORED, 409)] * 3
    await few.put(outgoing("a"))
    await few.drain()
    assert len(server.sent) == 4
    assert not caplog.records


@pytest.mark.parametrize("size", [4, 980])
async def test_what_the_server_never_takes_holds_nothing_up(
    server: Server, few: OrderedPublisher, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    """With its headers the second is too large: a server ends the connection at that."""
    ended: list[str] = []
    server.answers = [error(10054, 400)] if size == 4 else []
    few._most_bytes = 10_000  # pyright: ignore[reportPrivateUsage]
    await few.put(OutgoingMessage("a", b"h" * size, {"Nats-Msg-Id": "1"}, lambda: ended.append("huge")))
    await few.put(outgoing("a", "next", lambda: ended.append("next")))
    await few.drain()
    assert ended == ["huge", "next"]
    assert (few.stored, few.refused) == (1, 1)
    assert len(server.sent) == (2 if size == 4 else 1)
    assert "NATS refuses one message for a, which is left out" in caplog.text
    assert "hhhh" not in caplog.text


@pytest.mark.parametrize("text", ["x", "x" * 60])
async def test_beyond_its_bounds_whoever_puts_waits(
    server: Server, few: OrderedPublisher, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    server.is_connected = False
    putting = asyncio.create_task(put_all(few, 5 * [outgoing("a", text)]))
    await asyncio.sleep(100)
    assert few.waiting == (3 if text == "x" else 2)
    assert not putting.done()
    assert "messages wait, and no more are taken from Discord" in caplog.text
    server.is_connected = True
    await putting
    await few.drain()
    assert (few.waiting, few.waiting_bytes, few.stored) == (0, 0, 5)


async def test_nothing_is_sent_into_a_connection_that_is_away(server: Server, few: OrderedPublisher) -> None:
    server.is_connected = False
    await few.put(outgoing("a"))
    await asyncio.sleep(10)
    assert not server.sent
    server.is_connected = True
    await few.drain()
    assert len(server.sent) == 1


async def test_a_buffer_that_is_full_is_no_loss(server: Server, few: OrderedPublisher) -> None:
    server.answers = [nats.errors.OutboundBufferLimitError()]
    await few.put(outgoing("a"))
    await few.drain()
    assert len(server.sent) == 1


async def test_a_connection_that_is_closed_for_good_ends_the_waiting(server: Server, few: OrderedPublisher) -> None:
    server.is_connected, server.is_closed = False, True
    await few.put(outgoing("a"))
    with pytest.raises(nats.errors.ConnectionClosedError):
        await few.drain()
    with pytest.raises(nats.errors.ConnectionClosedError):
        await few.put(outgoing("a"))


async def test_a_connection_that_is_closed_while_sending_too(server: Server, few: OrderedPublisher) -> None:
    server.answers = [nats.errors.ConnectionClosedError()]
    await few.put(outgoing("a"))
    with pytest.raises(nats.errors.ConnectionClosedError):
        await few.drain()


async def test_what_is_put_off_at_the_end_leaves_no_timer(server: Server) -> None:
    server.answers = [error(STREAM_FULL)]
    async with OrderedPublisher(cast("Client", server)).running() as made:
        await made.put(outgoing("a"))
        await asyncio.sleep(0.1)
        assert made.waiting == 1


async def put_all(into: OrderedPublisher, messages: list[OutgoingMessage]) -> None:
    for each in messages:
        await into.put(each)
