"""The document tools for one answer: bound to who asks and where, and remembering what they found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from services.documents.results import Citation, ConversationContext, QAResult, Status, ToolContext
from services.documents.tools import schemas
from services.documents.tools.factory import Toolbox
from services.documents.tools.wrappers import Tool as DocumentTool
from services.library import Source
from services.tools import Tool

_EARLIER = 3
"""Questions and answers that a follow-up may be understood from."""
_PLACED = re.compile(r"(?P<name>.+?):(?P<line>\d{1,7})\b")
_QUOTED = re.compile(r"\"(?P<title>[^\"]+)\"")


class Toolset:
    """The tools that are offered for one answer. Whoever calls one is told text; what was found stays here."""

    def __init__(
        self,
        toolbox: Toolbox,
        offered: Mapping[str, DocumentTool],
        context: ToolContext,
        files: Iterable[str] = (),
    ) -> None:
        """`files`: the files and runbooks that there are, each in a few words."""
        self.files = tuple(files)
        self._context = context
        self._offered = dict(offered)
        self._schemas = {name: toolbox.schemas[name] for name in offered}
        self.results: list[QAResult] = []
        """In the order in which they came."""

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(
            Tool(schema.name, schema.description, schema.parameters, self._runner(name))
            for name, schema in self._schemas.items()
        )

    @property
    def calls(self) -> int:
        return len(self.results)

    async def ask(self, name: str, question: str, k: int = 5) -> QAResult:
        """Put a question to one tool. Never raises but for a cancelled call."""
        known = self._context.conversation
        result = await self._offered[name].ask(self._context, question, k, known)
        self.results.append(result)
        turns = (*known.turns, (question, result.answer))[-_EARLIER:]
        cited = result.citations or known.citations
        self._context = replace(self._context, conversation=ConversationContext(turns, cited))
        return result

    def text(self, name: str, result: QAResult) -> str:
        """A result with its sources, as people read it."""
        return self._offered[name].text(result)

    def found(self) -> tuple[Source, ...]:
        """What was found, as sources that an answer can be checked against and cite."""
        return tuple(
            Source(", ".join(result.sources), result.answer)
            for result in self.results
            if result.status is Status.OK and result.sources
        )

    def citations(self, named: Iterable[str]) -> list[str]:
        """Those of the citations that name what was found: `server.log:1045` when that line was, else `server.log`."""
        sources = {source for result in self.results for source in result.sources}
        cited = [citation for result in self.results for citation in result.citations]
        kept = (_kept(one.strip(), sources, cited) for one in named)
        return list(dict.fromkeys(each for each in kept if each is not None))

    def _runner(self, name: str) -> Any:
        async def run(arguments: Mapping[str, Any]) -> str:
            question, k, _ = schemas.arguments(arguments)
            return self.text(name, await self.ask(name, question, k))

        return run


def _kept(named: str, sources: set[str], cited: Iterable[Citation]) -> str | None:
    if named in sources:
        return named
    placed = _PLACED.match(named)
    if placed is not None and placed["name"] in sources:
        line = int(placed["line"])
        there = any(c.source == placed["name"] and c.line_start <= line <= c.line_end for c in cited)
        return f"{placed['name']}:{line}" if there else placed["name"]
    quoted = _QUOTED.search(named)
    return quoted["title"] if quoted is not None and quoted["title"] in sources else None
