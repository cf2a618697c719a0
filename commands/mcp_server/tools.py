"""What a tool is for an assistant: words about it, the form of its arguments, and what comes back."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from clock import now
from services.llm import Limiter, misfit

QUESTION_CHARS = 1_000
_KEPT = "\n\t\u200c\u200d"
"""Signs without a shape that texts need: two of them join letters, and emoji."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result: as text for a model to read, and the same as data."""

    text: str
    content: BaseModel


class CallRefused(Exception):
    """A call without a result. The message is for the model: what is wrong, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool, and the function behind it.

    Attributes:
        parameters: the JSON schema of its arguments, an object.
        result: the model of its results.
        run: takes arguments that fit the schema. Raises CallRefused.
    """

    name: str
    title: str
    description: str
    parameters: Mapping[str, Any]
    result: type[BaseModel]
    run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]

    async def __call__(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Raises CallRefused, also for arguments that do not fit."""
        known: Mapping[str, Any] = self.parameters["properties"]
        if unknown := sorted(arguments.keys() - known.keys()):
            raise CallRefused(f"There is no argument {unknown[0][:40]!r}; there are: {', '.join(known)}.")
        given = {name: value for name, value in arguments.items() if value is not None}
        if wrong := misfit(given, self.parameters):
            raise CallRefused(f"Not done: {wrong}.")
        return await self.run(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBudget:
    """Limits on questions that assistants put to a model.

    Attributes:
        daily: counts answers and tokens. `hourly`: counts questions of all who ask.
    """

    daily: Limiter
    hourly: Limiter

    async def spend(self) -> None:
        """Count a question. Raises CallRefused: there is no room for another one."""
        limit = await self.daily.begin_chain(0, now()) or await self.hourly.begin_chain(0, now())
        if limit is not None:
            named = "mcp.questions_per_hour" if limit.endswith("per_hour") else limit
            raise used_up(named)


def used_up(limit: str) -> CallRefused:
    return CallRefused(f"{limit} is used up. Use search and read_source, which cost nothing.")


def form(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of arguments."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text(description: str, most: int = QUESTION_CHARS) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def number(description: str, least: int, most: int, usual: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": usual, "description": description}


def visible(words: str) -> str:
    """Remove characters that people cannot see and a model reads: control characters, marks of writing direction,
    letters without a shape.
    """
    if words.isascii() and words.isprintable():
        return words
    return "".join(each for each in words if each in _KEPT or unicodedata.category(each)[0] != "C")
