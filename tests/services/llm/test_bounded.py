"""Endpoints that are broken or hostile, over the wire."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from services.llm.bounded import MAX_REPLY_BYTES
from services.llm.endpoint import BadOutput, Rejected
from services.llm.resilience import ChatEndpoint, vectors_client
from services.search.embedding import EmbeddingEndpoint, EmbeddingFailed, EndpointEmbedder
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_server import LLMServer
from tests.services.llm.asking import GOOD, KEY, request_of

pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="module")]

ROOT = Path(__file__).parents[3]
SOCKETS = 12_000_000
"""More than the buffers between a client that has stopped reading and its server hold."""


def answer(**changes: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": GOOD}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    plain = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return {**plain, **changes}


def zeros(count: int) -> bytes:
    """So many blanks, compressed to a thousandth."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    piece = b" " * 1_000_000
    return b"".join(packer.compress(piece) for _ in range(count // len(piece))) + packer.flush()


async def test_a_reply_that_does_not_end_is_read_to_the_limit_and_no_further(
    server: LLMServer, endpoint: ChatEndpoint
) -> None:
    """Pitfall 64."""
    sent: list[int] = []
    server.then(scenes.endless(sent))
    with pytest.raises(BadOutput, match="sent a reply that is larger than 4 MB"):
        await endpoint.complete(request_of())
    assert sum(sent) < MAX_REPLY_BYTES + SOCKETS


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_nor_is_one_that_unpacks_to_more(server: LLMServer, endpoint: ChatEndpoint, status: int) -> None:
    """Pitfall 64: also as an error."""
    body = zeros(5_000_000)

    async def play(_: Any, _body: Any) -> Any:
        return web.Response(body=body, status=status, headers={"Content-Encoding": "gzip"})

    server.then(play)
    with pytest.raises(BadOutput, match="is larger than 4 MB"):
        await endpoint.complete(request_of())


async def test_a_compressed_reply_is_read(server: LLMServer, endpoint: ChatEndpoint) -> None:
    packed = gzip.compress(json.dumps(answer()).encode())

    async def play(request: Any, _body: Any) -> Any:
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    server.then(play)
    assert (await endpoint.complete(request_of())).text == GOOD


@pytest.mark.parametrize(
    ("body", "coding", "says"),
    [
        (b"no gzip", "gzip", "cannot be decompressed"),
        (gzip.compress(b"{}" * 99, mtime=0)[:-9], "gzip", "ends before it is whole"),
        (b"\x0b\x01\x80{}\x03", "br", "in a way that was not offered"),
    ],
)
async def test_a_reply_that_cannot_be_unpacked_is_no_answer(
    server: LLMServer, endpoint: ChatEndpoint, body: bytes, coding: str, says: str
) -> None:
    async def play(_: Any, _body: Any) -> Any:
        return web.Response(body=body, headers={"Content-Encoding": coding})

    server.then(play)
    with pytest.raises(BadOutput, match=says):
        await endpoint.complete(request_of())


async def test_a_header_of_gzip_that_does_not_end_is_not_read_for_ever(
    server: LLMServer, endpoint: ChatEndpoint
) -> None:
    """Pitfall 64."""
    sent: list[int] = []
    named = b"\x1f\x8b\x08\x08" + b"\0" * 6  # a name follows, which ends with a NUL
    server.then(scenes.endless(sent, named, b"n" * 65_536, **{"Content-Encoding": "gzip"}))
    with pytest.raises(BadOutput, match="is larger than 4 MB"):
        await endpoint.complete(request_of())
    assert sum(sent) < MAX_REPLY_BYTES + SOCKETS


async def test_what_is_nested_too_deeply_is_no_answer(server: LLMServer, endpoint: ChatEndpoint) -> None:
    server.then(scenes.raw("[" * 1_000_000))
    with pytest.raises(BadOutput):
        await endpoint.complete(request_of())


@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_redirect_to_another_origin_takes_neither_prompt_nor_key_along(
    server: LLMServer, endpoint: ChatEndpoint, code: int
) -> None:
    """Pitfall 64."""
    async with LLMServer() as other:
        server.then(scenes.redirect(f"{other.base_url}/chat/completions", code))
        with pytest.raises(Rejected, match=re.escape(f"(HTTP {code}); set base_url")) as caught:
            await endpoint.complete(request_of())
        assert other.seen == []
    assert other.base_url not in str(caught.value)


async def test_a_redirect_within_the_origin_is_followed(server: LLMServer, endpoint: ChatEndpoint) -> None:
    server.then(scenes.redirect("/v1/chat/completions"), scenes.content(GOOD))
    assert (await endpoint.complete(request_of())).text == GOOD
    assert [seen.headers["Authorization"] for seen in server.seen] == [f"Bearer {KEY}"] * 2
    assert server.seen[0].body == server.seen[1].body


async def test_one_that_leads_round_in_circles_ends(server: LLMServer, endpoint: ChatEndpoint) -> None:
    server.then(*[scenes.redirect("/v1/chat/completions")] * 20)
    with pytest.raises(BadOutput, match="redirects more than 5 times"):
        await endpoint.complete(request_of())


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ('{"prompt_tokens": 12, "completion_tokens": 3}', (12, 3)),
        ('{"prompt_tokens": 12.0, "completion_tokens": 3, "total_tokens": "many"}', (12, 3)),
        ('{"prompt_tokens": "12", "completion_tokens": 3}', (0, 3)),
        ('{"prompt_tokens": -5000000, "completion_tokens": -1}', (0, 0)),
        ('{"prompt_tokens": NaN, "completion_tokens": Infinity}', (0, 0)),
        ('{"prompt_tokens": 1e400, "completion_tokens": 1e30}', (0, 0)),
        ('{"prompt_tokens": 9999999999999999999999, "completion_tokens": 1.5}', (0, 0)),
        ('{"prompt_tokens": true, "completion_tokens": null}', (0, 0)),
        ('{"prompt_tokens": [1], "completion_tokens": {"a": 1}, "prompt_tokens_details": "x"}', (0, 0)),
        ('"lots"', (0, 0)),
        ("[1, 2]", (0, 0)),
        ("7", (0, 0)),
        ("{}", (0, 0)),
        ("null", (0, 0)),
    ],
)
async def test_usage_that_is_no_count_is_taken_as_none_and_costs_no_answer(
    server: LLMServer, endpoint: ChatEndpoint, usage: str, counted: tuple[int, int]
) -> None:
    """Pitfall 66."""
    server.then(scenes.raw(json.dumps(answer())[:-1] + f', "usage": {usage}}}'))
    reply = await endpoint.complete(request_of())
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == (GOOD, *counted)


async def test_vectors_are_bounded_as_well() -> None:
    """Pitfall 64."""
    sent: list[int] = []

    async def play(request: Any) -> Any:
        return await scenes.endless(sent)(request, {})

    application = web.Application()
    application.router.add_post("/v1/embeddings", play)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    at = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    embedder = EndpointEmbedder(EmbeddingEndpoint(at, "m", KEY), vectors_client)
    try:
        with pytest.raises(EmbeddingFailed):
            await embedder.embed(["lantern"])
    finally:
        await embedder.close()
        await runner.cleanup()


ASK = """
import asyncio, resource, sys
from services.llm.endpoint import BadOutput, EndpointSettings
from services.llm.resilience import ChatEndpoint, import_client
from tests.services.llm.asking import request_of

async def main():
    import_client()
    endpoint = ChatEndpoint(EndpointSettings(sys.argv[1], "m", max_retries=0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        await endpoint.complete(request_of())
    except BadOutput as error:
        print(error, file=sys.stderr)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    await endpoint.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_reply_that_unpacks_to_a_thousand_times_as_much_takes_no_memory(server: LLMServer) -> None:
    """Pitfall 64."""
    bomb = zeros(400_000_000)

    async def play(_: Any, _body: Any) -> Any:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    server.then(play)
    asking = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASK, server.base_url, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asking.communicate()
    assert "is larger than 4 MB" in err.decode()
    assert int(out) * (1 if sys.platform == "darwin" else 1024) < 60_000_000
