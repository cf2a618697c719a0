from __future__ import annotations

import json

import pytest

from services.llm.endpoint import ContentPart, Reply, Request, RequestedCall, Round
from services.llm.redacting import SYSTEM_PROMPTS, RedactingEndpoint
from services.redaction import Redactor

KEY = "sesame-open-up"
HIDDEN = "[redacted: known secret]"


class Listening:
    """Keeps what it is asked, and replies as told."""

    def __init__(self, reply: Reply) -> None:
        self.asked: list[Request] = []
        self.closed = False
        self._reply = reply

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return self._reply

    async def aclose(self) -> None:
        self.closed = True


def request(
    *, system: str = f"Task: {KEY}", user: tuple[ContentPart, ...] = (), rounds: tuple[Round, ...] = ()
) -> Request:
    return Request("generate", system, user, "Wanted", {}, "json_schema", rounds=rounds)


async def asked(inner: Listening, given: Request) -> Reply:
    return await RedactingEndpoint(inner, Redactor([KEY]).documentation_text).complete(given)


async def test_a_model_is_asked_without_secrets_wherever_they_stand() -> None:
    """Pitfall 22."""
    inner = Listening(Reply("{}"))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = {"type": "text", "text": f"Say {KEY}."}
    rounds = (Round((RequestedCall("1", "look", "{}"),), (f"Found {KEY}.",), "I look."),)
    await asked(inner, request(user=(text, picture), rounds=rounds))
    [one] = inner.asked
    assert one.system == f"Task: {HIDDEN}"
    assert one.user == ({"type": "text", "text": f"Say {HIDDEN}."}, picture)
    assert one.rounds == (Round(rounds[0].calls, (f"Found {HIDDEN}.",), "I look."),)


async def test_a_request_without_secrets_stays_as_it_is() -> None:
    """What was recorded before still answers."""
    inner = Listening(Reply("{}"))
    given = request(system="Task", user=({"type": "text", "text": "password: hunter2 is what the guide says"},))
    await asked(inner, given)
    assert inner.asked == [given]


@pytest.mark.parametrize(
    "written", [KEY, KEY.replace("-", "\\u002d"), KEY.replace("s", "\\u0073"), "\\u0073esame-open-up"]
)
async def test_a_model_that_repeats_a_secret_has_said_nothing_of_it(written: str) -> None:
    """Pitfall 22: nor in JSON's notation of characters."""
    said = f'{{"answer": "It is {written}."}}'
    call = RequestedCall("1", f"look {KEY}", f'{{"question": "{written}"}}')
    reply = await asked(Listening(Reply(said, 3, 4, "stop", (call,), said)), request())
    assert json.loads(reply.text) == json.loads(reply.content) == {"answer": f"It is {HIDDEN}."}
    assert reply.calls == (RequestedCall("1", f"look {HIDDEN}", f'{{"question": "{HIDDEN}"}}'),)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.finish_reason) == (3, 4, "stop")


@pytest.mark.parametrize("text", ["\\u0022", "\\u005c", "\\\\u0041", "\\u00e9", "\\u0009", "\\u2028"])
async def test_other_notations_mean_what_they_meant(text: str) -> None:
    said = f'{{"answer": "{text}"}}'
    reply = await asked(Listening(Reply(said)), request())
    assert json.loads(reply.text) == json.loads(said)


async def test_closing_closes_what_is_asked() -> None:
    inner = Listening(Reply(""))
    await RedactingEndpoint(inner, str).aclose()
    assert inner.closed


async def test_a_system_prompt_is_searched_for_secrets_once() -> None:
    """It is the same in every request of its step, and as long as the rest of it."""
    searched: list[str] = []

    def redact(text: str) -> str:
        searched.append(text)
        return text.replace(KEY, HIDDEN)

    inner = Listening(Reply("{}"))
    endpoint = RedactingEndpoint(inner, redact)
    for number in range(3):
        await endpoint.complete(request(user=({"type": "text", "text": f"{number}: {KEY}"},)))
    assert searched.count(f"Task: {KEY}") == 1
    assert [each.system for each in inner.asked] == [f"Task: {HIDDEN}"] * 3
    assert [each.user[0]["text"] for each in inner.asked] == [f"{number}: {HIDDEN}" for number in range(3)]


async def test_no_more_system_prompts_are_kept_than_there_can_be_steps() -> None:
    searched: list[str] = []
    endpoint = RedactingEndpoint(Listening(Reply("{}")), lambda text: searched.append(text) or text)
    for number in [*range(SYSTEM_PROMPTS + 1), 0]:
        await endpoint.complete(request(system=f"Task {number}"))
    assert searched.count("Task 0") == 2
