"""The interface through which everybody asks a model: a prompt and a class in, an instance of that class out; over an
endpoint, and with calls that are made before it is certain that their answers are needed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Protocol, TypedDict, TypeVar, Unpack, cast

from pydantic import BaseModel, BeforeValidator, ValidationError

from services.llm.endpoint import (
    BadOutput,
    CallOptions,
    ContentPart,
    Endpoint,
    Function,
    Method,
    Reply,
    Request,
    TimedOut,
    Unavailable,
)
from services.llm.images import ImageAdapter, openai_image
from services.llm.prompting import Prompt
from services.llm.tools import Tool, ToolCalls, ToolLimits
from services.llm.usage import Usage
from services.storage import in_thread

M = TypeVar("M", bound=BaseModel)

MAX_TRIES = 100
"""JSON is tried at so many opening braces: a reply with thousands of nested ones must not take minutes."""

_MAX_ERRORS = 3
_SURROGATE = re.compile("[\ud800-\udfff]")


def at_most(length: int) -> BeforeValidator:
    """Cut a text or a list of a reply at `length` before it is validated: a model may fill it with megabytes."""

    def cut(found: object) -> object:
        return cast("str | list[object]", found)[:length] if isinstance(found, str | list) else found

    return BeforeValidator(cut)


ShortText = Annotated[str, at_most(1_000)]
LongText = Annotated[str, at_most(100_000)]
ShortTexts = Annotated[list[ShortText], at_most(1_000)]


class NotFound(ValueError):
    """No object fits. The message completes "was not usable because" and quotes no values."""


@lru_cache(maxsize=64)
def wire_schema(model: type[BaseModel]) -> Mapping[str, object]:
    """Pydantic's schema of `model`, made strict: every key required, no others.

    OpenAI's strict mode requires this (guide "Structured model outputs", supported schemas), and servers that build a
    grammar from the schema then cannot leave a key out. Titles and defaults are dropped, as they only cost tokens.
    Cached, as Pydantic takes a third of a millisecond: do not change the result.
    """
    return _strict(cast("Mapping[str, object]", model.model_json_schema()))


def first_valid_object(text: str, model: type[M]) -> M:
    """Find the first JSON object in `text` that validates as `model`: bare, fenced, between sentences or within another
    object. Raises NotFound: there is none; the message says what is wrong with the first object, if there is one.
    """
    decoder = json.JSONDecoder()
    wrong = ""
    start = -1
    for _ in range(MAX_TRIES):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            found, _end = decoder.raw_decode(text, start)
            return model.model_validate(_encodable(found))
        except ValidationError as error:
            wrong = wrong or _summary(error)
        except (ValueError, RecursionError):
            continue
    raise NotFound(wrong or ("it holds no complete JSON object" if text.strip() else "it was empty"))


def _encodable(found: object) -> object:
    """Replace lone surrogates by U+FFFD: JSON allows them, but a text with one cannot be stored as UTF-8."""
    written = json.dumps(found, ensure_ascii=False)
    if written.isascii() or not _SURROGATE.search(written):
        return found
    return json.loads(_SURROGATE.sub("\ufffd", written))


def _strict(schema: Mapping[str, object]) -> dict[str, object]:
    kept = {key: _inside(key, value) for key, value in schema.items() if key not in {"title", "default"}}
    if "properties" in kept:
        kept["required"] = list(cast("Mapping[str, object]", kept["properties"]))
        kept["additionalProperties"] = False
    return kept


def _inside(key: str, value: object) -> object:
    if key in {"properties", "$defs"}:
        # Keys in here are names, one of which may be "title".
        named = cast("Mapping[str, Mapping[str, object]]", value)
        return {name: _strict(schema) for name, schema in named.items()}
    if isinstance(value, Mapping):
        return _strict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        return [_strict(cast("Mapping[str, object]", item)) if isinstance(item, Mapping) else item for item in items]
    return value


def _summary(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(map(str, each['loc'])) or 'the object'}: {each['msg']}" for each in errors[:_MAX_ERRORS]]
    return "its JSON object does not fit (" + "; ".join(said) + ")"


log = logging.getLogger(__name__)


class AskOptions(TypedDict, total=False):
    """The optional arguments of a question to a model. `options`: in place of the endpoint's settings. `tools`: the
    model may call these before it answers, as often as `limits` allow; failures of tools and its own mistakes are
    reported to it.
    """

    options: CallOptions
    tools: Sequence[Tool]
    limits: ToolLimits | None


class Asker(Protocol):
    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **more: Unpack[AskOptions]) -> M:
        """Ask a question and return the validated answer.

        `step` names the call in metrics, recordings and errors; the class name of `model` is the schema's on the wire.
        `usage` counts every answered request, usable or not.

        After an unusable reply, one more request is made, with a changed prompt, since endpoints that decode greedily
        answer the same prompt in the same way.

        Raises:
            LLMError: there is no usable answer; its kind says why (services.llm.endpoint).
        """
        ...


@dataclass(frozen=True, slots=True)
class StructuredLLM:
    """An `Asker` over an endpoint. `on_duration`: called with step and real seconds of each request, failed or not."""

    endpoint: Endpoint
    method: Method
    image_adapter: ImageAdapter = openai_image
    on_duration: Callable[[str, float], None] | None = None

    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **more: Unpack[AskOptions]) -> M:
        text: tuple[ContentPart, ...] = ({"type": "text", "text": prompt.user},) if prompt.user else ()
        images = await in_thread(lambda: [*map(self.image_adapter, prompt.images)]) if prompt.images else ()
        request = Request(
            step=step,
            system=prompt.system,
            user=(*text, *images),
            schema_name=model.__name__,
            schema=wire_schema(model),
            method=self.method,
            options=more.get("options"),
        )
        if tools := more.get("tools"):
            calls = ToolCalls(tools, more.get("limits") or ToolLimits(), answer=model.__name__)
            answer = await self._converse(request, calls, model, usage)
            if answer is not None:
                return answer
            request = replace(request, rounds=calls.rounds)
        return await self._ask_twice(request, model, usage)

    async def _converse(self, request: Request, calls: ToolCalls, model: type[M], usage: Usage) -> M | None:
        """Run the tools that the model calls, until it answers. None: it has to be asked again, without tools."""
        functions = tuple(Function(tool.name, tool.description, tool.parameters) for tool in calls.tools)
        while not calls.is_exhausted:
            reply = await self._complete(replace(request, tools=functions, rounds=calls.rounds), usage)
            if all(call.name == model.__name__ for call in reply.calls):
                try:
                    return _read(reply, model)
                except NotFound as wrong:
                    log.info("LLM, step %s: answer not usable: %s; asked for it alone", request.step, wrong)
                    return None
            await calls.run(reply.calls, reply.content)
        return None

    async def _ask_twice(self, request: Request, model: type[M], usage: Usage) -> M:
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
        # Real time, also on a virtual loop: it is measured for the operator, and no result depends on it.
        begun = time.perf_counter()
        try:
            reply = await self.endpoint.complete(request)
        finally:
            seconds = time.perf_counter() - begun
            if self.on_duration is not None:
                self.on_duration(request.step, seconds)
        usage.add(request.step, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        numbers = (seconds, reply.prompt_tokens, reply.completion_tokens)
        said = f"finish {reply.finish_reason}: {reply.text}"
        log.debug("LLM, step %s: %.3f s, %d tokens in, %d out, %s", request.step, *numbers, said)
        return reply


def _read(reply: Reply, model: type[M]) -> M:
    try:
        return first_valid_object(reply.text, model)
    except NotFound:
        if reply.finish_reason == "length":
            raise NotFound("it was cut off at the length limit; it has to be much shorter") from None
        raise


def _repair(wrong: NotFound, model: type[BaseModel]) -> ContentPart:
    keys = ", ".join(model.model_fields)
    text = (
        f"Your previous reply was not usable because {wrong}. "
        f"Reply with only the arguments of {model.__name__}: one JSON object with the keys {keys}, and nothing else."
    )
    return {"type": "text", "text": text}


KEPT = 64
"""The prefetched answers that nobody has asked for yet. Of more, the oldest are dropped."""


class _Prefetcher:
    """An `Asker` for answers that may turn out not to be needed; see `PrefetchingAsker`."""

    def __init__(self, asker: Asker, room: asyncio.Semaphore) -> None:
        self._asker = asker
        self._room = room
        self.tasks: dict[tuple[str, type[BaseModel], Prompt], asyncio.Task[BaseModel]] = {}

    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **more: Unpack[AskOptions]) -> M:
        """Ask in advance. If this is cancelled before the answer is taken, the call is cancelled too."""
        assert not more, "what is asked ahead has the endpoint's settings, and no tools"  # noqa: S101 (a bug of ours)
        key = step, model, prompt
        task = self.tasks.get(key)
        if task is None:
            task = self.tasks[key] = asyncio.create_task(self._call(step, prompt, model, usage))
            task.add_done_callback(_retrieve_error)
            for old in [each for each, task in self.tasks.items() if task.done()][:-KEPT]:
                del self.tasks[old]
        try:
            return cast("M", await asyncio.shield(task))
        except asyncio.CancelledError:
            if self.tasks.get(key) is task:
                del self.tasks[key]
                task.cancel()
            raise

    async def _call(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> BaseModel:
        async with self._room:
            return await self._asker.ask(step, prompt, model, usage)


class PrefetchingAsker:
    """An `Asker` that makes calls in advance. A question that was asked of the `prefetcher` before, word for word, gets
    that answer, once: asking again calls the model again. `asked`, `used`: the numbers of questions, and of such
    answers.
    """

    def __init__(self, asker: Asker, max_concurrent: int) -> None:
        """`max_concurrent`: calls under way at one time."""
        self._asker = asker
        self._room = asyncio.Semaphore(max_concurrent)
        self._prefetcher = _Prefetcher(asker, self._room)
        self.asked = self.used = 0

    @property
    def prefetcher(self) -> Asker:
        return self._prefetcher

    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **more: Unpack[AskOptions]) -> M:
        """See `Asker.ask`. If the prefetched call did not reach the endpoint, it is made again at once."""
        self.asked += 1
        if (task := self._prefetcher.tasks.pop((step, model, prompt), None)) is not None:
            self.used += 1
            try:
                return cast("M", await task)
            except (Unavailable, TimedOut):
                pass
        async with self._room:
            return await self._asker.ask(step, prompt, model, usage, **more)


def _retrieve_error(task: asyncio.Task[BaseModel]) -> None:
    """Retrieve the error of a task, or asyncio would report it: a prefetched call may fail."""
    if not task.cancelled():
        task.exception()
