"""The real ChatCrynux against a server on loopback."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import FrameType

import pytest

from services.llm.chat import Chat
from services.llm.endpoint import (
    BadOutput,
    EndpointSettings,
    LLMError,
    Method,
    PromptRefused,
    Rejected,
    RequestedCall,
    Round,
    TimedOut,
    Unavailable,
)
from services.llm.resilience import ChatEndpoint
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_server import LLMServer
from tests.services.llm.asking import GOOD, KEY, request_of, settings_of

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="module")]


async def test_json_schema_names_the_class_and_carries_the_limits(server: LLMServer, endpoint: ChatEndpoint) -> None:
    server.then(scenes.content(GOOD))
    reply = await endpoint.complete(request_of(method="json_schema"))
    body = server.seen[0].body
    assert body["response_format"]["json_schema"]["name"] == "Verdict"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (body["vram_limit"], body["max_tokens"], body["max_completion_tokens"]) == (24, 4096, 4096)
    assert "tools" not in body
    assert not body.get("stream")
    assert body["messages"] == [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "Does it run?"},
    ]
    assert server.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert (reply.text, reply.completion_tokens, reply.finish_reason) == (GOOD, 7, "stop")
    assert reply.prompt_tokens > 0


async def test_function_calling_names_the_class_and_requires_the_call(
    server: LLMServer, endpoint: ChatEndpoint
) -> None:
    server.then(scenes.tool_call(GOOD))
    reply = await endpoint.complete(request_of(method="function_calling"))
    body = server.seen[0].body
    assert body["tools"][0]["function"]["name"] == "Verdict"
    assert body["tool_choice"] == {"type": "function", "function": {"name": "Verdict"}}
    assert body["vram_limit"] == 24
    assert "response_format" not in body
    assert (reply.text, reply.finish_reason) == (GOOD, "tool_calls")


@pytest.mark.parametrize("model", ["o1-mini", "gpt-5", "gpt-5-pro", "gpt-6"])
async def test_no_model_name_leads_to_another_api(server: LLMServer, model: str) -> None:
    endpoint = ChatEndpoint(settings_of(server.base_url, model=model))
    assert (await endpoint.complete(request_of())).text
    await endpoint.aclose()


async def test_arguments_that_are_no_json_come_through_as_written(server: LLMServer, endpoint: ChatEndpoint) -> None:
    server.then(scenes.tool_call('{"good": tr', finish="length"))
    reply = await endpoint.complete(request_of(method="function_calling"))
    assert (reply.text, reply.finish_reason) == ('{"good": tr', "length")


async def test_a_reply_without_usage_counts_nothing(server: LLMServer, endpoint: ChatEndpoint) -> None:
    server.then(scenes.content(GOOD, usage=False))
    reply = await endpoint.complete(request_of())
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


async def test_images_go_along_in_their_order_and_empty_text_does_not(
    server: LLMServer, endpoint: ChatEndpoint
) -> None:
    pictures = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{n}"}} for n in "AB"]
    await endpoint.complete(request_of(user=({"type": "text", "text": ""}, *pictures)))
    assert server.seen[0].body["messages"][1]["content"] == pictures


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
@pytest.mark.parametrize(
    ("scene", "kind", "says"),
    [
        (scenes.html(), BadOutput, "check base_url"),
        (scenes.cut_body(), BadOutput, "no chat completion"),
        (scenes.no_choices(), BadOutput, "no chat completion"),
        (scenes.null_choices(), BadOutput, "no chat completion"),
        (scenes.error_object(), BadOutput, "no chat completion"),
        (scenes.raw("{}"), BadOutput, "no chat completion"),
        (scenes.raw("[]"), BadOutput, "no chat completion"),
        (scenes.raw('{"choices": [{"message": null}]}'), BadOutput, "no chat completion"),
        (scenes.raw('{"choices": [{"message": {"role": "user", "content": "{}"}}]}'), BadOutput, "no chat completion"),
        (scenes.status(400), PromptRefused, "check model"),
        (scenes.status(401), Rejected, "check api_key"),
        (scenes.status(402), Rejected, "credits"),
        (scenes.status(403), Rejected, "api_key"),
        (scenes.status(404, kind="model_not_found"), Rejected, "(HTTP 404, model_not_found)"),
        (scenes.status(413), Rejected, "lower max_index_entries or max_source_chars, or send fewer images"),
        (scenes.status(418), Rejected, "refuses the request"),
        (scenes.status(408), Unavailable, "HTTP 408"),
        (scenes.status(409), Unavailable, "HTTP 409"),
        (scenes.status(429), Unavailable, "HTTP 429"),
        (scenes.status(500), Unavailable, "HTTP 500"),
        (scenes.status(502), Unavailable, "HTTP 502"),
        (scenes.status(503), Unavailable, "HTTP 503"),
        (scenes.status(504), TimedOut, "HTTP 504"),
        (scenes.drop(), Unavailable, "cannot be reached"),
    ],
)
async def test_each_failure_has_its_kind_and_a_remedy(
    server: LLMServer, endpoint: ChatEndpoint, method: Method, scene: scenes.Scene, kind: type[LLMError], says: str
) -> None:
    server.then(scene)
    with pytest.raises(LLMError) as caught:
        await endpoint.complete(request_of(method=method))
    assert type(caught.value) is kind
    assert says in str(caught.value)
    assert "LLM m at 127.0.0.1" in str(caught.value)
    assert "step judge" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.seen) == 1, "the SDK itself retries nothing"


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    endpoint = ChatEndpoint(settings_of("http://127.0.0.1:9/v1"))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await endpoint.complete(request_of())
    await endpoint.aclose()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("soon", None),
        ("-3", None),
        ("Wed, 04 Sep 2019 22:44:46 GMT", 0.0),
    ],
)
async def test_retry_after_is_read(
    server: LLMServer, endpoint: ChatEndpoint, header: str, seconds: float | None
) -> None:
    server.then(scenes.status(429, headers={"Retry-After": header}))
    with pytest.raises(Unavailable) as caught:
        await endpoint.complete(request_of())
    assert caught.value.retry_after == seconds


async def test_retry_after_may_be_a_date(server: LLMServer, endpoint: ChatEndpoint) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    server.then(scenes.status(503, headers={"Retry-After": date}))
    with pytest.raises(Unavailable) as caught:
        await endpoint.complete(request_of())
    assert caught.value.retry_after == pytest.approx(100, abs=5)


@pytest.mark.parametrize("scene", [scenes.hang(), scenes.drip()], ids=["hang", "drip"])
async def test_a_call_ends_at_its_time_limit(server: LLMServer, scene: scenes.Scene) -> None:
    endpoint = ChatEndpoint(settings_of(server.base_url, timeout_seconds=0.2))
    server.then(scene)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(TimedOut, match=r"no answer within 0\.2 s"):
        await endpoint.complete(request_of())
    assert asyncio.get_running_loop().time() - begun < 5
    await endpoint.aclose()


async def test_the_clients_own_time_limit_is_a_time_out_too(server: LLMServer) -> None:
    chat = Chat(settings_of(server.base_url, timeout_seconds=0.1))
    server.then(scenes.hang())
    with pytest.raises(TimedOut, match=r"no answer within 0\.1 s"):
        await chat.ask(request_of())
    await chat.aclose()


async def test_closing_one_client_leaves_the_other_usable(server: LLMServer) -> None:
    one, other = (ChatEndpoint(settings_of(server.base_url)) for _ in range(2))
    await one.complete(request_of())
    await other.complete(request_of())
    await one.aclose()
    await one.aclose()
    assert (await other.complete(request_of())).text
    await other.aclose()


async def test_a_closed_endpoint_asks_nothing(server: LLMServer) -> None:
    endpoint = ChatEndpoint(settings_of(server.base_url))
    await endpoint.aclose()
    with pytest.raises(Unavailable, match="closed"):
        await endpoint.complete(request_of())
    assert server.seen == []


@pytest.mark.parametrize("code", [400, 401, 500])
async def test_pitfall_22_no_key_and_no_prompt_in_errors(
    server: LLMServer, endpoint: ChatEndpoint, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """22: a server that echoes the key and the prompt puts neither of them into an error, nor the key into a log."""
    caplog.set_level(logging.DEBUG)
    server.then(scenes.status(code, says=f"bad key {KEY} for 'Does it run?'", kind=KEY))
    with pytest.raises(LLMError) as caught:
        await endpoint.complete(request_of())
    assert KEY not in str(caught.value)
    assert "Does it run?" not in str(caught.value)
    assert caught.value.__suppress_context__, "a traceback must not print the original either"
    assert KEY not in "\n".join(record.getMessage() for record in caplog.records), "not at DEBUG, and not by the SDK"
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG and "run?" in record.getMessage()]


async def test_pitfall_22_settings_do_not_print_their_key() -> None:
    """22: nor the password that an address may carry."""
    settings = EndpointSettings(base_url="http://me:hunter2@host:1/v1", model="m", api_key=KEY)
    assert KEY not in repr(settings)
    assert settings.name == "LLM m at host:1"


async def test_no_key_is_fine_where_none_is_wanted(server: LLMServer) -> None:
    endpoint = ChatEndpoint(settings_of(server.base_url, api_key=""))
    server.then(scenes.status(401))
    with pytest.raises(Rejected):
        await endpoint.complete(request_of())
    await endpoint.aclose()


@pytest.mark.parametrize("switch", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING"])
async def test_no_variable_turns_tracing_on(
    server: LLMServer, monkeypatch: pytest.MonkeyPatch, switch: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with LLMServer() as spy:
        monkeypatch.setenv(switch, "true")
        monkeypatch.setenv("LANGSMITH_API_KEY", "invented")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", spy.base_url)
        endpoint = ChatEndpoint(settings_of(server.base_url))
        assert (await endpoint.complete(request_of())).text
        await endpoint.aclose()
        assert spy.seen == []
    assert "langsmith" not in {record.name.partition(".")[0] for record in caplog.records}


async def test_importing_the_package_imports_no_langchain() -> None:
    code = (
        "import sys, services.llm.resilience, services.llm.structured, services.llm.recording, services.llm.recording;"
        "print([m for m in ('langchain_core', 'openai', 'langsmith') if m in sys.modules])"
    )
    running = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await running.communicate()
    assert printed.strip() == b"[]"


async def test_what_the_sdk_does_does_not_grow_with_the_messages(server: LLMServer, endpoint: ChatEndpoint) -> None:
    """It would hold each against every kind that it knows: a seventh of a call, and more with each round."""
    calls: Counter[bool] = Counter()

    def noted(frame: FrameType, event: str, _: object) -> None:
        calls[event == "call" and frame.f_code.co_filename.endswith("openai/_utils/_transform.py")] += 1

    async def transforming(rounds: int) -> int:
        calls.clear()
        one = Round((RequestedCall("1", "look", '{"question": "Where?"}'),), ("Here.",), "I look.")
        before = sys.getprofile()
        sys.setprofile(noted)
        try:
            await endpoint.complete(request_of(rounds=(one,) * rounds))
        finally:
            sys.setprofile(before)
        return calls[True]

    first = await transforming(0)
    assert await transforming(8) == first > 0
    assert [message["role"] for message in server.seen[1].body["messages"]] == [
        "system",
        "user",
        *["assistant", "tool"] * 8,
    ]
