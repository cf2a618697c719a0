"""The tool calls of one answer: what is run, what is refused, and what the model reads about either.

Whatever goes wrong here is told to the model in words of ours: it may correct itself, and never sees an exception.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from clock import now
from services.llm.endpoint import RequestedCall, Round
from services.llm.tools import Tool, ToolLimits
from services.llm.untrusted import Field, section

log = logging.getLogger(__name__)

UNAVAILABLE = "This tool is temporarily unavailable. Answer without it, or say that it could not be looked up."
TOO_LATE = "There is no time left for tools. Answer from what you have."
NOT_YET = "Not taken: your other calls had no results yet. Read them, and answer then."

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


class _NotRun(Exception):
    """A call is refused; the text says why, to the model."""

    def __str__(self) -> str:
        return f"Not run: {self.args[0]}."


class ToolCalls:
    """Runs what the model asks for, within limits. `answer` is the name of the call that ends the conversation."""

    def __init__(self, tools: Sequence[Tool], limits: ToolLimits, *, answer: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._answer = answer
        self._calls = 0
        self._seconds = 0.0
        self._asked: Counter[str] = Counter()
        """Of each question, how often it was asked, whichever tool it was put to."""

    @property
    def used_up(self) -> bool:
        """Whether nothing more may be called."""
        return self._calls >= self._limits.max_calls or self._seconds >= self._limits.seconds

    async def run(self, calls: Sequence[RequestedCall], text: str) -> Round:
        """One round of calls, side by side, with one result for each."""
        begun = now()
        results = await asyncio.gather(*(self._result(call) for call in calls))
        self._seconds += now() - begun
        return Round(tuple(calls), tuple(results), text)

    async def _result(self, call: RequestedCall) -> str:
        # Up to its first await, each call is judged in the order in which they stand.
        if call.name == self._answer:
            return NOT_YET
        self._calls += 1
        if self._calls > self._limits.max_calls:
            return f"Not run: one answer may make {self._limits.max_calls} tool calls. Answer from what you have."
        try:
            tool, arguments = self._understood(call)
        except _NotRun as refusal:
            return str(refusal)
        return await self._run(tool, arguments)

    def _understood(self, call: RequestedCall) -> tuple[Tool, Mapping[str, Any]]:
        """The tool that is called, with those of the arguments that it takes.

        Raises:
            _NotRun: there is no such tool, the arguments do not fit, or this was asked often enough.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            log.warning("tools: the model called %.60r, which there is not", call.name)
            raise _NotRun(f"there is no such tool. There are: {', '.join(self._tools)}")
        arguments = _object(call.arguments)
        if arguments is None:
            raise _NotRun("the arguments are not one JSON object. Write them again")
        known: Mapping[str, Any] = tool.parameters.get("properties", {})
        if unknown := sorted(arguments.keys() - known.keys()):
            # The model has no say in whose files are read.
            log.warning("tools: %s was given %.200r, which it does not take; left out", tool.name, unknown)
        given = {key: value for key, value in arguments.items() if key in known and value is not None}
        wrong = _wrong(given, tool.parameters)
        if wrong:
            raise _NotRun(f"{wrong}. Call it again with other arguments")
        question = _normalised(str(given.get("question", json.dumps(given, sort_keys=True))))
        self._asked[question] += 1
        if self._asked[question] > self._limits.max_repeated_questions:
            raise _NotRun("this was asked before. Ask something else, or answer from what you have")
        return tool, given

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        left = self._limits.seconds - self._seconds
        if left <= 0:
            return TOO_LATE
        try:
            async with asyncio.timeout(left):
                return section("evidence", [Field(f"Result of {tool.name}", await tool.run(arguments))])
        except TimeoutError:
            log.warning("tools: %s took longer than the %g s left", tool.name, left)
            return TOO_LATE
        except Exception:
            log.exception("tools: %s failed", tool.name)
            return UNAVAILABLE


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        read: object = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", read) if isinstance(read, dict) else None


def _wrong(given: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What keeps the arguments from fitting, in words; empty when they fit. Quotes no values."""
    missing = [name for name in schema.get("required", ()) if name not in given]
    if missing:
        return f"{', '.join(missing)} is missing"
    for name, value in given.items():
        wanted: Mapping[str, Any] = schema["properties"][name]
        kind = str(wanted.get("type", ""))
        # In Python a boolean is a number.
        if kind in _TYPES and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
            return f"{name} has to be of type {kind}"
        if isinstance(value, str) and len(value) > wanted.get("maxLength", len(value)):
            return f"{name} may have {wanted['maxLength']} characters"
        if isinstance(value, str) and len(value.strip()) < wanted.get("minLength", 0):
            return f"{name} is empty"
    return ""


def _normalised(question: str) -> str:
    folded = unicodedata.normalize("NFKC", question).casefold()
    return re.sub(r"[\s.?!,;:]+", " ", folded).strip()
