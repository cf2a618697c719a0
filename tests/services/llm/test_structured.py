"""A question and a class in, an instance out: against a script, and over the wire."""

from __future__ import annotations

import logging

import pytest
from pydantic import BaseModel

from model.conversations import Image
from services.llm.endpoint import BadOutput, Rejected
from services.llm.prompting import Prompt
from services.llm.structured import StructuredLLM, wire_schema
from services.llm.usage import Usage
from tests.services.llm.asking import GOOD, ScriptedEndpoint, Verdict, reply_of

ASKED = Prompt("Judge.", "Runs it?")


async def ask(endpoint: ScriptedEndpoint, usage: Usage | None = None) -> Verdict:
    return await StructuredLLM(endpoint, "json_schema").ask("judge", ASKED, Verdict, usage or Usage())


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here you are:\n\n{GOOD}\n\nAnything else?",
        f'<think>{{maybe}} {{}} I would say {{"good": 3}}</think>{GOOD}',
        f'{{"name": "Verdict", "arguments": {GOOD}}}',
        f'{GOOD}\n{{"good": false, "why": "a second thought"}}',
    ],
)
async def test_the_first_object_that_fits_is_found(text: str) -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(reply_of(text))
    assert await ask(endpoint) == Verdict(good=True, why="it runs")
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("text", "finish", "because"),
    [
        ("It runs.", "stop", "no complete JSON object"),
        ("", "stop", "it was empty"),
        ('{"good": "perhaps", "why": 3}', "stop", "good: Input should be a valid boolean"),
        ("[1, 2]", "stop", "no complete JSON object"),
        ('{"good": true, "wh', "length", "cut off at the length limit"),
        ('{"good": true, "wh', "stop", "no complete JSON object"),
        ("{" * 5000, "stop", "no complete JSON object"),
        ('{"a":' * 5000, "stop", "no complete JSON object"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "stop", "no"),
    ],
    ids=lambda value: value[:12],
)
async def test_a_bad_reply_gets_one_more_call_with_another_prompt(text: str, finish: str, because: str) -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(reply_of(text, finish))
    assert (await ask(endpoint)).good
    first, second = endpoint.asked
    assert second.user[:-1] == first.user
    repair = str(second.user[-1]["text"])
    assert because in repair
    assert "Reply with only" in repair
    assert "good, why" in repair


async def test_two_bad_replies_end_it_and_all_tokens_count() -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(reply_of("Runs it? Hm."), reply_of('{"good": "Runs it?"}'))
    run = Usage()
    usage = Usage(parent=run)
    with pytest.raises(BadOutput) as caught:
        await ask(endpoint, usage)
    assert "step judge" in str(caught.value)
    assert "Runs it" not in str(caught.value), "neither the prompt nor the reply is quoted"
    assert usage.calls["judge"] == run.calls["judge"] == 2
    assert usage.tokens == {("judge", "prompt"): 22, ("judge", "completion"): 14}


async def test_other_failures_pass_and_are_measured() -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(Rejected("no credits"))
    observed: list[tuple[str, float]] = []
    llm = StructuredLLM(endpoint, "json_schema", on_duration=lambda step, seconds: observed.append((step, seconds)))
    usage = Usage()
    with pytest.raises(Rejected):
        await llm.ask("judge", ASKED, Verdict, usage)
    await llm.ask("again", ASKED, Verdict, usage)
    assert [step for step, _ in observed] == ["judge", "again"]
    assert all(seconds >= 0 for _, seconds in observed)
    assert usage.calls == {"again": 1}


async def test_each_call_is_one_line_at_debug_and_nothing_quotes_above(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint = ScriptedEndpoint()
    endpoint.then(reply_of("No JSON from me."))
    await ask(endpoint)
    lines = [record for record in caplog.records if record.name == "services.llm.structured"]
    assert [record.levelno for record in lines] == [logging.DEBUG, logging.INFO, logging.DEBUG]
    assert "No JSON from me." not in lines[1].getMessage()


async def test_images_follow_the_text() -> None:
    endpoint = ScriptedEndpoint()
    picture = Image("a.png", "image/png", b"abc")
    llm = StructuredLLM(endpoint, "json_schema")
    await llm.ask("judge", Prompt("Judge.", "Runs it?", (picture,)), Verdict, Usage())
    await llm.ask("judge", Prompt("Judge.", "", (picture,)), Verdict, Usage())
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}}
    assert endpoint.asked[0].user == ({"type": "text", "text": "Runs it?"}, shown)
    assert endpoint.asked[1].user == (shown,)


class Nested(BaseModel):
    """Has what schemas can have."""

    class Inner(BaseModel):
        title: str = "none"
        properties: list[int] = []

    inner: Inner
    others: dict[str, int | None]


async def test_the_schema_of_a_class_is_made_once() -> None:
    assert wire_schema(Verdict) is wire_schema(Verdict)


async def test_a_schema_is_strict_and_keeps_names_that_look_like_keywords() -> None:
    endpoint = ScriptedEndpoint()
    endpoint.then(reply_of('{"inner": {"title": "x", "properties": []}, "others": {}}'))
    await StructuredLLM(endpoint, "json_schema").ask("judge", Prompt("s", "u"), Nested, Usage())
    inner = endpoint.asked[0].schema["$defs"]["Inner"]  # pyright: ignore[reportIndexIssue, reportUnknownVariableType] (JSON)
    assert inner == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "properties": {"items": {"type": "integer"}, "type": "array"}},
        "required": ["title", "properties"],
        "additionalProperties": False,
    }
    assert endpoint.asked[0].schema_name == "Nested"
