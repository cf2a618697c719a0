"""Recording calls, and answering from the recording."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from services.llm.endpoint import BadOutput, LLMError, Rejected, Reply, Request, TimedOut, Unavailable, UnknownRequest
from services.llm.recording import ReplayEndpoint, UnreadableExchanges
from services.llm.redacting import RedactingEndpoint
from services.llm.resilience import ResilientEndpoint
from tests.services.llm.asking import ScriptedEndpoint, recorded_in, reply_of, request_of, settings_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "llm.jsonl"


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


async def record(file: Path, *exchanges: tuple[Request, Reply | LLMError]) -> None:
    inner = ScriptedEndpoint()
    endpoint = recorded_in(inner, file)
    for request, outcome in exchanges:
        inner.then(outcome)
        with contextlib.suppress(LLMError):
            assert await endpoint.complete(request) == outcome
    await endpoint.aclose()
    assert inner.closed == 1


async def test_what_was_recorded_is_answered_again(file: Path) -> None:
    reply, odd = reply_of("ünï \u2028", "length"), request_of("half a pair: \ud83d")
    await record(file, (request_of("one"), reply), (odd, reply_of("2", None)))
    replay = ReplayEndpoint(file)
    assert await replay.complete(odd) == reply_of("2", None)
    assert await replay.complete(request_of("one")) == reply
    await replay.aclose()


async def test_a_line_says_step_hash_request_response_and_usage(file: Path) -> None:
    await record(file, (request_of("one"), reply_of("1")))
    (line,) = map(json.loads, lines_of(file))
    assert set(line) == {"step", "hash", "format", "people", "request", "response", "usage"}
    assert line["step"] == "judge"
    assert line["request"]["user"] == [{"type": "text", "text": "one"}]
    assert line["response"] == {"text": "1", "finish_reason": "stop"}
    assert line["usage"] == {"prompt_tokens": 11, "completion_tokens": 7}


async def test_repeated_requests_get_the_recorded_answers_in_order_and_then_the_last(file: Path) -> None:
    await record(file, *[(request_of("same"), reply_of(text)) for text in ("first", "second")])
    replay = ReplayEndpoint(file)
    said = [(await replay.complete(request_of("same"))).text for _ in range(4)]
    assert said == ["first", "second", "second", "second"]


@pytest.mark.parametrize("kind", [Unavailable, TimedOut, Rejected, BadOutput, LLMError])
async def test_a_recorded_failure_fails_again(file: Path, kind: type[LLMError]) -> None:
    await record(file, (request_of(), kind("LLM m: went wrong")))
    with pytest.raises(kind, match="LLM m: went wrong") as caught:
        await ReplayEndpoint(file).complete(request_of())
    assert type(caught.value) is kind


async def test_a_cancelled_call_is_not_recorded(file: Path) -> None:
    class Hanging(ScriptedEndpoint):
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(60)
            return reply_of()

    endpoint = recorded_in(Hanging(), file)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(endpoint.complete(request_of()), 1)
    await endpoint.aclose()
    assert lines_of(file) == []


async def test_the_method_does_not_matter_but_step_and_schema_do(file: Path) -> None:
    await record(file, (request_of(method="json_schema"), reply_of("1")))
    replay = ReplayEndpoint(file)
    assert (await replay.complete(request_of(method="function_calling"))).text == "1"
    for other in (request_of(step="o"), request_of(schema={}), request_of(schema_name="O"), request_of(system="O")):
        with pytest.raises(UnknownRequest):
            await replay.complete(other)


async def test_pictures_are_kept_as_their_hash(file: Path) -> None:
    def shown(data: str) -> Request:
        return request_of(user=({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},))

    await record(file, (shown("QUJD" * 1000), reply_of("1")))
    assert "QUJD" not in lines_of(file)[0]
    assert "data:image/png;base64,sha256:" in lines_of(file)[0]
    replay = ReplayEndpoint(file)
    assert (await replay.complete(shown("QUJD" * 1000))).text == "1"
    with pytest.raises(UnknownRequest):
        await replay.complete(shown("QUJE"))


async def test_an_unknown_request_names_the_step_and_shows_what_differs(file: Path) -> None:
    prompt = "line {}\n" * 3
    await record(
        file,
        (request_of("something else altogether"), reply_of()),
        (request_of(prompt.format(1, 2, 3)), reply_of()),
        (request_of(prompt.format(1, 2, 3), step="other"), reply_of()),
    )
    with pytest.raises(UnknownRequest) as caught:
        await ReplayEndpoint(file).complete(request_of(prompt.format(1, 2, "x" * 500)))
    message = str(caught.value)
    assert "step judge" in message
    assert str(file) in message
    assert "line 3" in message
    assert "line xxx" in message
    assert "line 1" not in message
    assert "something else" not in message
    assert "\n" not in message
    assert len(message) < 700


async def test_many_differences_are_cut_short(file: Path) -> None:
    await record(file, (request_of("a"), reply_of()))
    with pytest.raises(UnknownRequest, match=r"and \d+ more lines"):
        await ReplayEndpoint(file).complete(request_of("\n".join(map(str, range(20)))))
    await record(file, (request_of("a\nb\nc", step="longer"), reply_of()))
    with pytest.raises(UnknownRequest, match="this one says nothing there"):
        await ReplayEndpoint(file).complete(request_of("a\nc", step="longer"))


async def test_an_unknown_step_is_told_which_steps_there_are(file: Path) -> None:
    await record(file, (request_of(step="gate"), reply_of()), (request_of(step="select"), reply_of()))
    with pytest.raises(UnknownRequest, match="only of gate, select"):
        await ReplayEndpoint(file).complete(request_of())


async def test_a_malformed_line_is_reported_with_its_number_and_left_out(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await record(file, (request_of(), reply_of("1")))
    with file.open("a") as appended:
        appended.write('\nnonsense\n{"step": "gate", "hash": "0"}\n{"step": 3')
    with caplog.at_level(logging.WARNING):
        assert (await ReplayEndpoint(file).complete(request_of())).text == "1"
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(" is no exchange")[0] for line in said] == [f"{file} line {n}" for n in (3, 4, 5)]


async def test_recording_goes_on_behind_a_line_that_a_crash_cut_off(file: Path) -> None:
    with file.open("w") as cut:
        cut.write('{"step": "ga')
    await record(file, (request_of(), reply_of("1")))
    await record(file, (request_of("two"), reply_of("2")))
    assert len(lines_of(file)) == 3
    assert (await ReplayEndpoint(file).complete(request_of())).text == "1"


@pytest.mark.parametrize("content", [None, "", "nonsense\n"])
def test_a_file_without_any_exchange_is_an_error(file: Path, content: str | None) -> None:
    if content is not None:
        file.write_text(content)
    with pytest.raises(UnreadableExchanges, match="--llm-record"):
        ReplayEndpoint(file)


class Uneven:
    """Answers the third call before the first two."""

    def __init__(self) -> None:
        self._calls = 0
        self._third = asyncio.Event()

    async def complete(self, request: Request) -> Reply:
        self._calls += 1
        if self._calls < 3:
            await self._third.wait()
        self._third.set()
        return reply_of(str(request.user[0]["text"]))

    async def aclose(self) -> None:
        return


async def chains(endpoint: RedactingEndpoint | ReplayEndpoint) -> list[str]:
    """Chains of different length side by side; gives the order in which things happened."""
    happened: list[str] = []

    async def chain(name: str, steps: int) -> None:
        for step in range(steps):
            reply = await endpoint.complete(request_of(f"{name}{step}"))
            happened.append(reply.text)

    parts: list[Coroutine[Any, Any, None]] = [chain("a", 4), chain("b", 2), chain("c", 3)]
    await asyncio.gather(*parts)
    await endpoint.aclose()
    return happened


async def test_on_a_virtual_loop_recording_and_replay_go_in_one_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    recorded = await chains(recorded_in(ResilientEndpoint(Uneven(), settings_of("")), one))
    assert await chains(recorded_in(ResilientEndpoint(Uneven(), settings_of("")), two)) == recorded
    assert one.read_bytes() == two.read_bytes()
    assert await chains(ReplayEndpoint(one)) == recorded
    assert recorded[:3] == ["a0", "b0", "c0"]


@pytest.mark.real_time
async def test_on_an_ordinary_loop_lines_stay_whole(file: Path) -> None:
    await chains(recorded_in(Uneven(), file))
    assert len([json.loads(line) for line in lines_of(file)]) == 9
