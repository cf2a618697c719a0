"""The seam between the answer chain and the document tools: what may be looked up for one answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from services.documents.results import QAResult
from services.knowledge import Source
from services.llm import Tool


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
