"""Tools that a model may call while it answers, and the object that runs or refuses the calls of one answer.

Failures and mistakes are reported to the model in our words, so that it can correct itself; it never sees an exception.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clock import now
from services.llm.endpoint import RequestedCall, Round
from services.llm.prompting import Field, section
from services.storage import json_object

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


@dataclass(frozen=True, slots=True)
class CountedResult:
    """The result of a tool call. `counts`: False for a call that was refused or found nothing, and is free."""

    text: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the model sees it, and the function behind it.

    Attributes:
        description: its purpose, when to use it, sample questions, what it returns, and which tool to use instead.
        parameters: the JSON schema of its arguments, an object. It has no asker or place: these are bound in `run`.
        run: takes arguments that fit the schema, returns text for the model, also when it failed.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], Awaitable[str | CountedResult]]


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits of the tool calls of one answer: their number, that of calls with the same question (ignoring white space,
    case and punctuation), and the seconds for all of them together.
    """

    max_calls: int = 6
    max_repeated_questions: int = 3
    seconds: float = 60.0


class ToolCalls:
    """Runs the calls of one answer within `limits`. `answer`: the name of the call by which the model answers."""

    def __init__(self, tools: Sequence[Tool], limits: ToolLimits, *, answer: str) -> None:
        self.tools = tools
        self.rounds: tuple[Round, ...] = ()
        self._limits = limits
        self._answer = answer
        self._calls = 0
        self._free_calls = 0  # those that do not count
        self._seconds = 0.0
        # The same question counts for all tools together.
        self._asked: Counter[str] = Counter()

    @property
    def is_exhausted(self) -> bool:
        """Return True if no more calls are allowed. Free calls have a limit of their own, of the same size."""
        max_calls = self._limits.max_calls
        return max(self._calls, self._free_calls) >= max_calls or self._seconds >= self._limits.seconds

    async def run(self, calls: Sequence[RequestedCall], text: str) -> None:
        """Run one round of calls concurrently and add it to `rounds`."""
        begun = now()
        results = await asyncio.gather(*(self._result(call) for call in calls))
        self._seconds += now() - begun
        self.rounds = (*self.rounds, Round(tuple(calls), tuple(map(self._render, results)), text))

    def _render(self, result: str | tuple[str, CountedResult]) -> str:
        """Return the text of a result for the model, made after the whole round: only then the calls left are known."""
        if isinstance(result, str):
            return result
        name, found = result
        left = max(self._limits.max_calls - self._calls, 0)
        free = "" if found.counts else "This call did not count. "
        return _as_evidence(name, f"{found.text}\n\n{free}Tool calls left: {left}.")

    async def _result(self, call: RequestedCall) -> str | tuple[str, CountedResult]:
        # Up to the first await, calls are judged in their order in the reply.
        if call.name == self._answer:
            return NOT_YET
        self._calls += 1
        if self._calls > self._limits.max_calls:
            return f"Not run: one answer may make {self._limits.max_calls} tool calls. Answer from what you have."
        checked = self._check(call)
        if isinstance(checked, str):
            self._make_free()
            return f"Not run: {checked}."
        result = await self._run(*checked)
        if not isinstance(result, str) and not result[1].counts:
            self._make_free()
        return result

    def _make_free(self) -> None:
        """Count the present call as free."""
        self._calls -= 1
        self._free_calls += 1

    def _check(self, call: RequestedCall) -> tuple[Tool, Mapping[str, Any]] | str:
        """Return the tool and its arguments, or the reason, for the model, why the call is not run."""
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        if tool is None:
            log.warning("tools: the model called %.60r, which does not exist", call.name)
            return f"there is no such tool. There are: {', '.join(tool.name for tool in self.tools)}"
        arguments = json_object(call.arguments or "{}")
        if arguments is None:
            return "the arguments are not one JSON object. Write them again"
        known: Mapping[str, Any] = tool.parameters.get("properties", {})
        if unknown := sorted(arguments.keys() - known.keys()):
            # The model has no say in whose files are read.
            log.warning("tools: %s was called with unknown arguments %.200r; ignored", tool.name, unknown)
        given = {key: value for key, value in arguments.items() if key in known and value is not None}
        if wrong := argument_error(given, tool.parameters):
            return f"{wrong}. Call it again with other arguments"
        question = _normalise(str(given.get("question", json.dumps(given, sort_keys=True))))
        self._asked[question] += 1
        if self._asked[question] > self._limits.max_repeated_questions:
            return "this was asked before. Ask something else, or answer from what you have"
        return tool, given

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> str | tuple[str, CountedResult]:
        left = self._limits.seconds - self._seconds
        if left <= 0:
            return TOO_LATE
        try:
            async with asyncio.timeout(left):
                result = await tool.run(arguments)
                return (tool.name, result) if isinstance(result, CountedResult) else _as_evidence(tool.name, result)
        except TimeoutError:
            log.warning("tools: %s took longer than the %g s left", tool.name, left)
            return TOO_LATE
        except Exception:
            log.exception("tools: %s failed", tool.name)
            return UNAVAILABLE


def _as_evidence(name: str, text: str) -> str:
    return section("evidence", [Field(f"Result of {name}", text)])


def argument_error(given: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the reason why arguments do not fit the schema, without their values; empty if they fit."""
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


def _normalise(question: str) -> str:
    folded = unicodedata.normalize("NFKC", question).casefold()
    return re.sub(r"[\s.?!,;:]+", " ", folded).strip()
