"""What a model may return, under both methods, as the table of measured facts has it; with the real ChatCrynux."""

from __future__ import annotations

import pytest

from services.assistant.answering import GatingResult, SelectionResult
from services.llm.endpoint import BadOutput, CallOptions, Method
from services.llm.prompting import Prompt
from services.llm.resilience import ChatEndpoint
from services.llm.structured import StructuredLLM
from services.llm.usage import Usage
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_server import LLMServer
from tests.services.llm.asking import GOOD, Verdict

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize(
    "scene",
    [
        scenes.content("It runs."),
        scenes.content(""),
        scenes.content(None),
        scenes.saying('{"good": "x"}'),
        scenes.saying('{"good": tr', finish="length"),
    ],
    ids=["prose", "nothing", "null", "wrong types", "cut"],
)
async def test_a_bad_reply_is_repaired_or_is_bad_output(
    server: LLMServer, endpoint: ChatEndpoint, method: Method, scene: scenes.Scene
) -> None:
    llm, usage = StructuredLLM(endpoint, method), Usage()
    server.then(scene, scenes.saying(GOOD))
    assert (await llm.ask("judge", Prompt("Judge.", "Runs it?"), Verdict, usage)).good
    assert "Reply with only" in server.seen[-1].body["messages"][1]["content"]
    server.then(scene, scene)
    with pytest.raises(BadOutput):
        await llm.ask("judge", Prompt("Judge.", "Runs it?"), Verdict, usage)
    assert usage.calls["judge"] == 4
    assert usage.tokens["judge", "completion"] == 28
    assert not server.script


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize(
    "scene",
    [
        scenes.saying(GOOD),
        scenes.content(GOOD),
        scenes.tool_call(GOOD),
        scenes.saying(f"```json\n{GOOD}\n```"),
        scenes.content(f"Sure!\n```json\n{GOOD}\n```\nDone."),
    ],
    ids=["as asked", "content", "tool call", "fence", "fence in prose"],
)
async def test_a_good_reply_is_taken_however_it_comes(
    server: LLMServer, endpoint: ChatEndpoint, method: Method, scene: scenes.Scene
) -> None:
    server.then(scene)
    usage = Usage()
    verdict = await StructuredLLM(endpoint, method).ask("judge", Prompt("Judge.", "Runs it?"), Verdict, usage)
    assert verdict == Verdict(good=True, why="it runs")
    assert usage.calls["judge"] == 1


async def test_the_server_answers_plausibly(server: LLMServer, endpoint: ChatEndpoint) -> None:
    llm, usage = StructuredLLM(endpoint, "function_calling"), Usage()
    gated = await llm.ask("gate", Prompt("Gate.", "How do I restore?"), GatingResult, usage)
    assert gated.is_question
    selected = await llm.ask("select", Prompt("Select.", "kb:guides/restore.md\nHow to"), SelectionResult, usage)
    assert selected.selected_source_ids == ["kb:guides/restore.md"]


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
async def test_one_call_may_be_asked_in_a_manner_of_its_own(
    server: LLMServer, endpoint: ChatEndpoint, method: Method
) -> None:
    server.then(scenes.saying(GOOD), scenes.saying(GOOD))
    llm = StructuredLLM(endpoint, method)
    await llm.ask("judge", Prompt("Judge.", "Runs it?"), Verdict, Usage(), options=CallOptions(0.3, 500, 0))
    measured = server.seen[-1].body
    assert (measured["temperature"], measured["max_tokens"]) == (0.3, 500)
    assert measured.get("max_completion_tokens", 500) == 500
    await llm.ask("judge", Prompt("Judge.", "Runs it?"), Verdict, Usage())
    assert server.seen[-1].body["max_tokens"] == 4096
    assert "temperature" not in server.seen[-1].body
