"""The document tools for one answer: bound to who asks and where, and remembering what they found."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from services.documents.asking import checking
from services.documents.asking.passages import CitedPassage
from services.documents.asking.rewriting import KEPT_TURNS
from services.documents.results import Citation, ConversationContext, QAResult, Status, ToolContext
from services.documents.tools.core import DEFAULT_K
from services.documents.tools.factory import Toolbox
from services.documents.tools.wrappers import DocumentTool
from services.knowledge import Source
from services.llm import Tool

log = logging.getLogger(__name__)

_PLACED = re.compile(r"(?P<name>.+?):(?P<line>\d{1,7})\b")
_QUOTED = re.compile(r"\"(?P<title>[^\"]+)\"")


async def _at_once() -> None:
    """Nothing is under way."""


class BoundTools:
    """Implements `services.llm.tools.Toolset`. Whoever calls a tool is told text; what was found stays here."""

    def __init__(
        self,
        toolbox: Toolbox,
        context: ToolContext,
        files: Iterable[str] = (),
        *,
        wait: Callable[[], Awaitable[object]] = _at_once,
    ) -> None:
        """`wait` ends when the files under way can be searched, or are not worth waiting for."""
        self.files = tuple(files)
        self._found: list[tuple[str, QAResult]] = []
        self._toolbox = toolbox
        self._context = context
        self._wait = wait
        self._offered: dict[str, DocumentTool] = {}

    async def ready(self) -> None:
        await self._wait()
        self._offered = await self._toolbox.offered(self._context)

    @property
    def tools(self) -> tuple[Tool, ...]:
        wanted = ((name, self._toolbox.schemas[name]) for name in self._offered)
        return tuple(
            Tool(schema.name, schema.description, schema.parameters, self._runner(name)) for name, schema in wanted
        )

    async def ask(self, name: str, question: str, k: int = 5) -> QAResult:
        known = self._context.conversation
        result = await self._offered[name].ask(self._context, question, k, known)
        self._found.append((name, result))
        if result.status is Status.OK:
            turns = (*known.turns, (question, result.answer))[-KEPT_TURNS:]
            self._context = replace(self._context, conversation=ConversationContext(turns, result.citations))
        return result

    def text(self, name: str, result: QAResult) -> str:
        return self._offered[name].response(result)

    @property
    def results(self) -> tuple[QAResult, ...]:
        return tuple(result for _, result in self._found)

    def found(self) -> tuple[Source, ...]:
        return tuple(
            Source(", ".join(result.sources), self.text(name, result))
            for name, result in self._found
            if result.status is Status.OK and result.sources
        )

    def checked(self, text: str, known: Iterable[str]) -> str:
        cited = (citation for result in self.results for citation in result.citations)
        places = [
            CitedPassage(each.doc_id, each.source, "", each.line_start, each.line_end, (), each.chunk_id)
            for each in cited
        ]
        given = [self.text(name, result) for name, result in self._found]
        checked = checking.check(text, places, [*given, *self.files, *known])
        if checked.unverified:
            log.info("answer: citations or quotes that are in nothing that was given: %d", checked.unverified)
        return checked.answer

    def citations(self, named: Iterable[str]) -> list[str]:
        """`server.log:1045` when that line was found, else `server.log`; nothing where no such file was found."""
        sources = {source for result in self.results for source in result.sources}
        cited = [citation for result in self.results for citation in result.citations]
        kept = (_kept(one.strip(), sources, cited) for one in named)
        return list(dict.fromkeys(each for each in kept if each is not None))

    def _runner(self, name: str) -> Callable[[Mapping[str, Any]], Awaitable[str]]:
        async def run(arguments: Mapping[str, Any]) -> str:
            # They fit the schema: whoever runs tools has seen to that (services.llm.tools).
            question, k = str(arguments["question"]), int(arguments.get("k", DEFAULT_K))
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
