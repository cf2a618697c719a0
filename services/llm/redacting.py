"""Redact secrets in requests to a model and in its replies, and record both without them: a model may repeat the
secrets of its prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from services.llm.endpoint import ContentPart, Endpoint, LLMError, Reply, Request, RequestedCall, Round
from services.llm.recording import Recording

_ESCAPED = re.compile(r"\\\\|\\u00(?P<code>2[013-9a-f]|[3-467][0-9a-f]|5[0-9abd-f])", re.IGNORECASE)
"""A printable ASCII character as a JSON escape, other than the quote and the backslash."""

SYSTEM_PROMPTS = 32
"""The number of redacted system prompts that are cached: more than there are steps."""


class RedactingEndpoint:
    """Calls `inner` with the request redacted, and redacts the reply. `redact` removes secrets from a text. `recording`
    gets each redacted exchange before the caller does.
    """

    def __init__(self, inner: Endpoint, redact: Callable[[str], str], recording: Recording | None = None) -> None:
        self._inner = inner
        self._recording = recording
        self._redact = redact
        # Cached: system prompts are few, and the same in every request of their step.
        self._system = lru_cache(maxsize=SYSTEM_PROMPTS)(redact)

    async def complete(self, request: Request) -> Reply:
        request = replace(
            request,
            system=self._system(request.system),
            user=tuple(map(self._part, request.user)),
            rounds=tuple(map(self._round, request.rounds)),
        )
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            await self._record(request, error)
            raise
        reply = replace(
            reply,
            text=self._redact_output(reply.text),
            calls=tuple(map(self._call, reply.calls)),
            content=self._redact_output(reply.content),
        )
        await self._record(request, reply)
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()
        if self._recording is not None:
            await self._recording.aclose()

    async def _record(self, request: Request, outcome: Reply | LLMError) -> None:
        if self._recording is not None:
            await self._recording.add(request, outcome)

    def _part(self, part: ContentPart) -> ContentPart:
        text = part.get("text")
        return {**part, "text": self._redact(text)} if isinstance(text, str) else part

    def _round(self, tool_round: Round) -> Round:
        # The other fields are from a reply, and redacted.
        return replace(tool_round, results=tuple(map(self._redact, tool_round.results)))

    def _call(self, call: RequestedCall) -> RequestedCall:
        return replace(call, name=self._redact_output(call.name), arguments=self._redact_output(call.arguments))

    def _redact_output(self, text: str) -> str:
        return self._redact(_ESCAPED.sub(_unescape, text))


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found["code"], 16)) if found["code"] else found[0]
