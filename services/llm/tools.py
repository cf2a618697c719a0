"""Tools that a model may call while it answers, as plain values: for whoever makes them, and whoever runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tool:
    """What the model sees of a tool, and what is awaited when it calls it."""

    name: str
    description: str
    """What it is for, when to use it, sample questions, what comes back, and which tool to use instead."""
    parameters: Mapping[str, Any]
    """The JSON schema of its arguments, an object. Who asks, and where, is no part of it: that is bound in `run`."""
    run: Callable[[Mapping[str, Any]], Awaitable[str]]
    """Given the arguments that fit the schema, gives text for the model; failures are text as well."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What one answer may spend on tools (DOCUMENT_QA 8.4, "Loop guards")."""

    max_calls: int = 6
    max_repeated_questions: int = 3
    """Calls with the same question, white space, case and final punctuation aside."""
    seconds: float = 60.0
    """For all tool calls of the answer together."""
