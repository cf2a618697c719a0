"""The document tools over one store, and the set of them that is bound to one answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from services.documents.asking.checking import check
from services.documents.asking.passages import CitedPassage
from services.documents.asking.rewriting import KEPT_TURNS, ModelRewriter
from services.documents.asking.synthesis import ExtractiveSynthesiser, ModelSynthesiser
from services.documents.results import Citation, ConversationContext, QAResult, Status, ToolContext
from services.documents.store import naming
from services.documents.store.protocol import DocumentStore, Weights
from services.documents.tools import query_file
from services.documents.tools.cache import AnswerCache
from services.documents.tools.core import STORE_SECONDS, Breaker, DocumentQATool
from services.documents.tools.libraries import (
    CASE,
    DEFAULT_K,
    GLOBAL,
    GLOBAL_KB,
    LIBRARIES,
    PARAMETERS,
    TEAM,
    TEAM_KB,
    USER,
    USER_KB,
)
from services.documents.tools.query_file import QueryFile
from services.knowledge import Source
from services.llm import Asker, CountedResult, Tool, Usage
from services.search.embedding import Embedder

log = logging.getLogger(__name__)

_PLACED = re.compile(r"(?P<name>.+?):(?P<line>\d{1,7})\b")
_MOST_PLACES = 3
_QUOTED = re.compile(r"\"(?P<title>[^\"]+)\"")


def build(
    *,
    store: DocumentStore,
    embedder: Embedder | None = None,
    asker: Asker | None = None,
    model: str = "",
    usage: Usage | None = None,
    cache: AnswerCache | None = None,
    weights: Weights | None = None,
    lifetimes: Mapping[str, int] | None = None,
    shares: Callable[[int], bool] | None = None,
    internal_topics: Collection[str] = (),
    store_seconds: float = STORE_SECONDS,
    reply_language: str = "question",
    server: int | None = None,
) -> dict[str, DocumentQATool]:
    """The tools by name, over one store and with one cache between them.

    `asker`: condenses passages and rewrites follow-ups; None: passages are quoted. `model`: its name. `lifetimes`: how
    long answers are kept, in seconds, by the tool's name. `shares`: whether a person shows their runbooks in public
    threads; None: there are no runbooks. `internal_topics`: of the team's notes, those for its members only.
    `server`: one with documents of its own.
    """

    def documentation(_scope_id: str) -> str:
        return naming.documentation(server)

    usage = Usage() if usage is None else usage
    libraries = {config.name: config for config in LIBRARIES}
    libraries[TEAM] = replace(TEAM_KB, internal_topics=internal_topics)
    libraries[GLOBAL] = replace(GLOBAL_KB, collection=documentation)
    if shares is None:
        del libraries[USER]
    else:

        def admits(ctx: ToolContext) -> bool:
            return not ctx.read_by_others or shares(ctx.asker_id)

        libraries[USER] = replace(USER_KB, admits=admits)
    breaker, cache = Breaker(), AnswerCache() if cache is None else cache
    synthesiser = ExtractiveSynthesiser() if asker is None else ModelSynthesiser(asker, usage, model)
    tools = {
        name: DocumentQATool(
            config=replace(
                config, weights=weights or config.weights, cache_ttl=(lifetimes or {}).get(name, config.cache_ttl)
            ),
            store=store,
            cache=cache,
            breaker=breaker,
            embedder=embedder,
            synthesiser=synthesiser,
            rewriter=None if asker is None else ModelRewriter(asker, usage),
            store_seconds=store_seconds,
            reply_language=reply_language,
        )
        for name, config in libraries.items()
    }
    searched = "keyword search only" if embedder is None else f"embeddings by {embedder.id}"
    log.info("Document tools: %s; %s; condensed by %s", ", ".join(tools), searched, synthesiser.id)
    return tools


class Toolset:
    """What may be looked up for one answer, where it is asked and in the asker's name; it remembers what it found.

    Attributes:
        files: the files and runbooks that there are, each in a few words.
    """

    def __init__(
        self,
        tools: Mapping[str, DocumentQATool],
        context: ToolContext,
        files: Iterable[str] = (),
        *,
        wait: Callable[[], Awaitable[Iterable[str] | None]] | None = None,
    ) -> None:
        """`wait` ends when the files that are being read can be searched, or are not worth waiting for; it gives the
        files as they are then.
        """
        self.files = tuple(files)
        self._found: list[tuple[str, QAResult]] = []
        self._matched: list[str] = []
        self._tools = tools
        self._context = context
        self._wait = wait
        self._offered: dict[str, DocumentQATool] = {}

    async def ready(self) -> None:
        """Wait for files that are being read, then see which tools there are."""
        if self._wait is not None:
            files = await self._wait()
            self.files = self.files if files is None else tuple(files)
        self._offered = {name: tool for name, tool in self._tools.items() if await tool.offered(self._context)}

    @property
    def tools(self) -> tuple[Tool, ...]:
        configs = [tool.config for tool in self._offered.values()]
        tools = [Tool(each.name, each.description, PARAMETERS, self._runner(each.name)) for each in configs]
        if CASE in self._offered:
            tools.append(Tool(query_file.NAME, query_file.DESCRIPTION, query_file.PARAMETERS, self._queried))
        return tuple(tools)

    async def ask(self, name: str, question: str, k: int = DEFAULT_K) -> QAResult:
        """Put a question to one tool. Never raises but for a cancelled call."""
        known = self._context.conversation
        result = await self._offered[name].ask(self._context, question, k)
        self._found.append((name, result))
        if result.status is Status.OK:
            turns = (*known.turns, (question, result.answer))[-KEPT_TURNS:]
            self._context = replace(self._context, conversation=ConversationContext(turns, result.citations))
        return result

    async def query(self, arguments: Mapping[str, Any]) -> QAResult:
        """Put a form to the files of the thread (`query_file`). Never raises but for a cancelled call."""
        result = await QueryFile(self._tools[CASE]).ask(self._context, arguments)
        self._found.append((query_file.NAME, result))
        if result.status is Status.OK:
            # Lines hold what was asked for literally, also those that were only counted.
            self._matched += [str(each) for each in arguments.get("all_of") or ()]
            self._context = replace(
                self._context, conversation=replace(self._context.conversation, citations=result.citations)
            )
        return result

    def text(self, name: str, result: QAResult) -> str:
        """A result with its sources, as a model reads it; each source in the form in which it may be cited."""
        if name == query_file.NAME:
            return _with_places(result.answer, result)
        return _with_places(self._offered[name].response(result), result)

    def shown(self, name: str, result: QAResult) -> str:
        """A result with its sources, as people read it: without figures about the search."""
        return (
            result.answer
            if name == query_file.NAME
            else self._offered[name].config.shown(result.answer, result.sources)
        )

    def found(self) -> tuple[Source, ...]:
        """What was found, as sources that an answer can be checked against."""
        return tuple(
            Source(", ".join(result.sources), self.text(name, result))
            for name, result in self._found
            if result.status is Status.OK and result.sources
        )

    def checked(self, text: str, known: Iterable[str]) -> str:
        """`text`, with a mark at each line of a file and each quotation that is neither in what was found nor in
        what is `known` otherwise.
        """
        places = [
            CitedPassage(each.doc_id, each.source, "", each.line_start, each.line_end, (), each.chunk_id)
            for each in self._cited
        ]
        given = [self.text(name, result) for name, result in self._found]
        checked = check(text, places, [*given, *self.files, *self._matched, *known])
        if checked.unverified:
            log.info("answer: citations or quotes that are in nothing that was given: %d", checked.unverified)
        return checked.answer

    def citations(self, named: Iterable[str]) -> list[str]:
        """Those that name what was found: `server.log:1045`, or `server.log` where only the file was."""
        sources = {source for _, result in self._found for source in result.sources}
        kept = (_kept(one.strip(), sources, self._cited) for one in named)
        return list(dict.fromkeys(each for each in kept if each is not None))

    @property
    def _cited(self) -> list[Citation]:
        return [citation for _, result in self._found for citation in result.citations]

    async def _queried(self, arguments: Mapping[str, Any]) -> CountedResult:
        result = await self.query(arguments)
        return CountedResult(self.text(query_file.NAME, result), counts=result.status is Status.OK)

    def _runner(self, name: str) -> Callable[[Mapping[str, Any]], Awaitable[str]]:
        async def run(arguments: Mapping[str, Any]) -> str:
            # They fit the schema (services.llm.tool_calls).
            question, k = str(arguments["question"]), int(arguments.get("k", DEFAULT_K))
            return self.text(name, await self.ask(name, question, k))

        return run


def _with_places(text: str, result: QAResult) -> str:
    """With a line `Source: server.log:1045` for the first places, and one for each source that has none."""
    if result.status is not Status.OK:
        return text
    places = dict.fromkeys(
        f"{each.source}:{each.line_start}" for each in result.citations if each.source in result.sources
    )
    placed = list(places)[:_MOST_PLACES]
    others = [name for name in result.sources if not any(place.startswith(f"{name}:") for place in placed)]
    return "\n".join([text, *(f"Source: {each}" for each in [*placed, *others[:_MOST_PLACES]])])


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
