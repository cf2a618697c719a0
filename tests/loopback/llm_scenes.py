"""What a server can do with a request, well and badly. Each function makes a scene."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from tests.loopback.llm_answers import first_call, plausible, prompt, wanted

Body = dict[str, Any]
Scene = Callable[[web.Request, Body], Awaitable[web.StreamResponse]]


def completion(body: Body, message: Mapping[str, Any], finish: str, *, usage: bool = True) -> web.Response:
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
    }
    if usage:
        words = len(prompt(body).split())
        answer["usage"] = {"prompt_tokens": words, "completion_tokens": 7, "total_tokens": words + 7}
    return web.json_response(answer)


def content(text: str | None, *, finish: str = "stop", usage: bool = True) -> Scene:
    async def play(_: web.Request, body: Body) -> web.StreamResponse:
        return completion(body, {"content": text}, finish, usage=usage)

    return play


def tool_call(arguments: str, *, finish: str = "tool_calls") -> Scene:
    async def play(_: web.Request, body: Body) -> web.StreamResponse:
        call = {"id": "call-1", "type": "function", "function": {"name": wanted(body)[0], "arguments": arguments}}
        return completion(body, {"content": None, "tool_calls": [call]}, finish)

    return play


def saying(text: str, *, finish: str | None = None) -> Scene:
    """`text` the way in which the request wants its answer: as content, or as the arguments of the tool."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        if "tools" in body:
            return await tool_call(text, finish=finish or "tool_calls")(request, body)
        return await content(text, finish=finish or "stop")(request, body)

    return play


def calling(*calls: tuple[str, str], text: str | None = None) -> Scene:
    """Wants these tools called, by name and arguments."""

    async def play(_: web.Request, body: Body) -> web.StreamResponse:
        wants = [
            {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls, 1)
        ]
        return completion(body, {"content": text, "tool_calls": wants}, "tool_calls")

    return play


def good() -> Scene:
    """Calls the first tool that is offered, once; says what is plausible otherwise."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        call = first_call(body)
        if call is not None:
            return await calling((call[0], json.dumps(call[1])))(request, body)
        return await saying(json.dumps(plausible(body)))(request, body)

    return play


def vectors() -> Scene:
    """An embedding of each text: of its length alone."""

    async def play(_: web.Request, body: Body) -> web.StreamResponse:
        rows = [{"object": "embedding", "index": n, "embedding": [1.0, len(t)]} for n, t in enumerate(body["input"])]
        return web.json_response({"object": "list", "model": body["model"], "data": rows})

    return play


def raw(text: str, *, content_type: str = "application/json") -> Scene:
    """200 with any body."""

    async def play(_: web.Request, _body: Body) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return play


def html() -> Scene:
    return raw("<html><body>Welcome to nginx</body></html>", content_type="text/html")


def cut_body() -> Scene:
    return raw('{"id": "chatcmpl-1", "choices": [{"index": 0, "mess')


def no_choices() -> Scene:
    return raw('{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}')


def null_choices() -> Scene:
    return raw('{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": null}')


def error_object() -> Scene:
    return raw('{"error": {"message": "the model fell over", "code": 500}}')


def status(code: int, *, says: str = "no", kind: str = "some_error", headers: Mapping[str, str] | None = None) -> Scene:
    async def play(_: web.Request, _body: Body) -> web.StreamResponse:
        return web.json_response({"error": {"message": says, "code": kind}}, status=code, headers=headers)

    return play


def hang() -> Scene:
    async def play(_: web.Request, _body: Body) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return play


def drip() -> Scene:
    """A byte now and then, so that no single read takes long."""

    async def play(request: web.Request, _body: Body) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    return play


def slow(seconds: float, then: Scene | None = None) -> Scene:
    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await (then or good())(request, body)

    return play


def late(ready: threading.Event) -> Scene:
    """An answer once another thread is ready for it."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        assert await asyncio.to_thread(ready.wait, 5)
        return await good()(request, body)

    return play


def drop() -> Scene:
    """The connection ends without a word."""

    async def play(request: web.Request, _body: Body) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return play


def redirect(to: str, code: int = 307) -> Scene:
    async def play(_: web.Request, _body: Body) -> web.StreamResponse:
        return web.Response(status=code, headers={"Location": to}, text="over there")

    return play


def endless(sent: list[int], first: bytes = b"", piece: bytes = b" " * 65_536, **headers: str) -> Scene:
    """Sends `first`, then `piece` again and again, until nobody reads any more; notes the length of each in `sent`."""

    async def play(request: web.Request, _body: Body) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", **headers})
        await response.prepare(request)
        await response.write(first)
        while True:
            await response.write(piece)
            sent.append(len(piece))

    return play
