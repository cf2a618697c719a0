"""Tools that a model may call while it answers, as plain values: for whoever makes them, and whoever runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.documents.results import QAResult
from services.knowledge.library import Source


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


class Toolset(Protocol):
    """What may be looked up for one answer, where it is asked and in the asker's name; it remembers what it found."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files and runbooks that there are, each in a few words."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    @property
    def results(self) -> Sequence[QAResult]:
        """What was found so far."""
        ...

    async def ready(self) -> None:
        """Wait for files that are being read, as long as that is worth it, and see which tools there are then."""
        ...

    async def ask(self, name: str, question: str, k: int = 5) -> QAResult:
        """Put a question to one tool. Never raises but for a cancelled call."""
        ...

    def text(self, name: str, result: QAResult) -> str:
        """A result with its sources, as people read it."""
        ...

    def found(self) -> tuple[Source, ...]:
        """What was found, as sources that an answer can be checked against."""
        ...

    def checked(self, text: str, known: Iterable[str]) -> str:
        """`text`, with a mark at each line of a file and each quotation that stands neither in what was found nor in
        what is `known` otherwise.
        """
        ...

    def citations(self, named: Iterable[str]) -> list[str]:
        """Those of the citations that name what was found."""
        ...


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What one answer may spend on tools (DOCUMENT_QA 8.4, "Loop guards")."""

    max_calls: int = 6
    max_repeated_questions: int = 3
    """Calls with the same question, white space, case and final punctuation aside."""
    seconds: float = 60.0
    """For all tool calls of the answer together."""
