"""The seam through which everybody asks a model: a prompt and a model class in, an instance of that class out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from pydantic import BaseModel

from services.llm.endpoint import CallOptions, Endpoint, Function, Method, Part, Reply, Request
from services.llm.errors import BadOutput
from services.llm.images import ImageAdapter, openai_image
from services.llm.prompting import Prompt
from services.llm.schemas import NotFound, first_that_fits, wire_schema
from services.llm.tools import Tool, ToolCalls, ToolLimits
from services.llm.usage import Usage

M = TypeVar("M", bound=BaseModel)

log = logging.getLogger(__name__)


class Asker(Protocol):
    async def ask(
        self,
        step: str,
        prompt: Prompt,
        model: type[M],
        usage: Usage,
        *,
        options: CallOptions | None = None,
        tools: Sequence[Tool] = (),
        limits: ToolLimits | None = None,
    ) -> M:
        """Ask a question and return the validated answer.

        `step` names the call in metrics, recordings and errors; the class name of `model` is the schema's on the wire.
        `usage` counts every answered request, usable or not. `options`: None to use the endpoint's settings.

        A reply that cannot be used is followed by one more request, with a changed prompt, since endpoints that decode
        greedily answer the same prompt in the same way. The model may first call `tools`, as often as `limits` allow;
        it reads about failing tools and its own mistakes in words.

        Raises:
            LLMError: there is no usable answer; its kind says why (services.llm.errors).
        """
        ...


@dataclass(frozen=True, slots=True)
class StructuredLLM:
    """An `Asker` over an endpoint.

    Attributes:
        observe: called with the step and the real seconds of each request, failed ones included.
    """

    endpoint: Endpoint
    method: Method
    image_adapter: ImageAdapter = openai_image
    observe: Callable[[str, float], None] | None = None

    async def ask(
        self,
        step: str,
        prompt: Prompt,
        model: type[M],
        usage: Usage,
        *,
        options: CallOptions | None = None,
        tools: Sequence[Tool] = (),
        limits: ToolLimits | None = None,
    ) -> M:
        text: tuple[Part, ...] = ({"type": "text", "text": prompt.user},) if prompt.user else ()
        request = Request(
            step=step,
            system=prompt.system,
            user=(*text, *map(self.image_adapter, prompt.images)),
            schema_name=model.__name__,
            schema=wire_schema(model),
            method=self.method,
            options=options,
        )
        if tools:
            calls = ToolCalls(tools, limits or ToolLimits(), answer=model.__name__)
            answer = await self._converse(request, calls, model, usage)
            if answer is not None:
                return answer
            request = replace(request, rounds=calls.rounds)
        return await self._settle(request, model, usage)

    async def _converse(self, request: Request, calls: ToolCalls, model: type[M], usage: Usage) -> M | None:
        """Run the tools that the model calls. None: it has to be asked for its answer alone."""
        offered = tuple(Function(tool.name, tool.description, tool.parameters) for tool in calls.tools)
        while not calls.used_up:
            reply = await self._complete(replace(request, tools=offered, rounds=calls.rounds), usage)
            if all(call.name == model.__name__ for call in reply.calls):
                try:
                    return _read(reply, model)
                except NotFound as wrong:
                    log.info("LLM, step %s: answer not usable: %s; asked for it alone", request.step, wrong)
                    return None
            await calls.run(reply.calls, reply.content)
        return None

    async def _settle(self, request: Request, model: type[M], usage: Usage) -> M:
        try:
            return _read(await self._complete(request, usage), model)
        except NotFound as wrong:
            log.info("LLM, step %s: reply not usable: %s; asked again", request.step, wrong)
            # Retries are for the whole call, not for each of its two requests.
            options = None if request.options is None else replace(request.options, retries=0)
            request = replace(request, user=(*request.user, _repair(wrong, model)), options=options)
        try:
            return _read(await self._complete(request, usage), model)
        except NotFound as wrong:
            said = f"LLM, step {request.step}: no usable {model.__name__} in two replies: {wrong}"
            raise BadOutput(f"{said}; try another structured_output_method or model") from None

    async def _complete(self, request: Request, usage: Usage) -> Reply:
        # Real time, also on a virtual loop: this is what an operator waits and pays for, and no result depends on it.
        begun = time.perf_counter()
        try:
            reply = await self.endpoint.complete(request)
        finally:
            seconds = time.perf_counter() - begun
            if self.observe is not None:
                self.observe(request.step, seconds)
        usage.add(request.step, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        numbers = (seconds, reply.prompt_tokens, reply.completion_tokens)
        said = f"finish {reply.finish_reason}: {reply.text}"
        log.debug("LLM, step %s: %.3f s, %d tokens in, %d out, %s", request.step, *numbers, said)
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
