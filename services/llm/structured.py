"""A question and a model class in, an instance of that class out, with tools on the way or without."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from model.conversations import Image
from services.llm.endpoint import CallOptions, Endpoint, Function, Method, Part, Reply, Request, Round
from services.llm.errors import BadOutput
from services.llm.finding import NotFound, first_that_fits
from services.llm.images import ImageAdapter, OpenAIImageAdapter
from services.llm.schemas import wire_schema
from services.llm.tool_calls import ToolCalls
from services.llm.tools import Tool, ToolLimits
from services.llm.usage import Usage

M = TypeVar("M", bound=BaseModel)

log = logging.getLogger(__name__)


class StructuredLLM:
    """`observe` is told the step and the real seconds of each call, also of one that fails."""

    def __init__(
        self,
        endpoint: Endpoint,
        method: Method,
        *,
        image_adapter: ImageAdapter | None = None,
        observe: Callable[[str, float], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._method: Method = method
        self._image_adapter = image_adapter or OpenAIImageAdapter()
        self._observe = observe

    async def ask(
        self,
        step: str,
        system: str,
        user: str,
        model: type[M],
        usage: Usage,
        images: Sequence[Image] = (),
        options: CallOptions | None = None,
    ) -> M:
        """One call; and a second, with a changed prompt, when the reply to the first is not usable.

        Endpoints that decode greedily would answer the same prompt in the same way. `usage` counts every call that
        was answered, well or badly.

        Raises:
            LLMError: no call got through; `BadOutput` when the second reply is not usable either.
        """
        request = replace(self._request(step, system, user, model, images), options=options)
        return await self._settle(request, model, usage)

    async def _settle(self, request: Request, model: type[M], usage: Usage) -> M:
        try:
            return _read(await self._call(request, usage), model)
        except NotFound as wrong:
            log.info("LLM, step %s: the reply is not usable: %s; asked again", request.step, wrong)
            # Whatever may still be retried was for the call, not for each of its two requests.
            options = None if request.options is None else replace(request.options, retries=0)
            request = replace(request, user=(*request.user, _repair(wrong, model)), options=options)
        try:
            return _read(await self._call(request, usage), model)
        except NotFound as wrong:
            said = f"LLM, step {request.step}: no usable {model.__name__} in two replies: {wrong}"
            raise BadOutput(f"{said}; try another structured_output_method or model") from None

    async def converse(
        self,
        step: str,
        system: str,
        user: str,
        model: type[M],
        usage: Usage,
        *,
        tools: Sequence[Tool],
        limits: ToolLimits,
        images: Sequence[Image] = (),
    ) -> M:
        """As `ask`, but the model may call `tools` first, as often as `limits` allow; then it has to answer.

        Each request of the conversation counts as a call of the step. What a tool raises, or the model gets wrong in
        calling one, the model is told in words.

        Raises:
            LLMError: as `ask`.
        """
        calls = ToolCalls(tools, limits, answer=model.__name__)
        plain = self._request(step, system, user, model, images)
        offered = tuple(Function(tool.name, tool.description, tool.parameters) for tool in tools)
        rounds: tuple[Round, ...] = ()
        while not calls.used_up:
            reply = await self._call(replace(plain, tools=offered, rounds=rounds), usage)
            if all(call.name == model.__name__ for call in reply.calls):
                try:
                    return _read(reply, model)
                except NotFound as wrong:
                    log.info("LLM, step %s: the answer is not usable: %s; asked for it alone", step, wrong)
                    break
            rounds = (*rounds, await calls.run(reply.calls, reply.content))
        return await self._settle(replace(plain, rounds=rounds), model, usage)

    def _request(self, step: str, system: str, user: str, model: type[BaseModel], images: Sequence[Image]) -> Request:
        text: tuple[Part, ...] = ({"type": "text", "text": user},) if user else ()
        return Request(
            step=step,
            system=system,
            user=(*text, *(self._image_adapter.part(image) for image in images)),
            schema_name=model.__name__,
            schema=wire_schema(model),
            method=self._method,
        )

    async def _call(self, request: Request, usage: Usage) -> Reply:
        # Real time, also on a virtual loop: this is what an operator waits and pays for, and no result depends on it.
        begun = time.perf_counter()
        try:
            reply = await self._endpoint.complete(request)
        finally:
            seconds = time.perf_counter() - begun
            if self._observe is not None:
                self._observe(request.step, seconds)
        usage.add(request.step, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        log.debug(
            "LLM, step %s: %.3f s, %d tokens in, %d out, finish %s: %s",
            request.step,
            seconds,
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.finish_reason,
            reply.text,
        )
        return reply


def _read(reply: Reply, model: type[M]) -> M:
    try:
        return first_that_fits(reply.text, model)
    except NotFound:
        if reply.finish_reason == "length":
            raise NotFound("it was cut off at the length limit; it has to be much shorter") from None
        raise


def _repair(wrong: NotFound, model: type[BaseModel]) -> Part:
    keys = ", ".join(model.model_fields)
    text = (
        f"Your previous reply was not usable because {wrong}. "
        f"Reply with only the arguments of {model.__name__}: one JSON object with the keys {keys}, and nothing else."
    )
    return {"type": "text", "text": text}
