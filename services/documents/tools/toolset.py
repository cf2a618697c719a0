"""The document tools for a model, with `query_file`, bound to one thread and asker."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from services.documents.asking import line_query, query_lines
from services.documents.asking.line_query import GROUPS, MAX_AROUND, MAX_LINES, MAX_TOP, MODES, ORDERS, QueryRefused
from services.documents.asking.passages import Citation, CitedPassage
from services.documents.asking.rewriting import KEPT_TURNS, ConversationContext
from services.documents.asking.synthesis import ExtractiveSynthesiser, check_answer
from services.documents.condensing import ModelRewriter, ModelSynthesiser, ToolModel
from services.documents.limits import display_name
from services.documents.store.document_store import DocumentStore
from services.documents.tools.core import STORE_SECONDS, AnswerCache, Breaker, DocumentQATool, with_posters
from services.documents.tools.libraries import (
    CASE,
    DEFAULT_K,
    GLOBAL,
    LIBRARIES,
    PARAMETERS,
    TEAM,
    USER,
    KBConfig,
    QAResult,
    Status,
    ToolContext,
)
from services.documents.tools.scopes import FileScope, FileShelf, PublishedShelf
from services.knowledge import LibrarySearch, Source
from services.llm import CountedResult, Tool
from services.search.embedding import Embedder

QUERY_FILE = "query_file"

RUNBOOK_NOTICE = "From the own runbooks of <@{}>, which nobody else has checked:"
FILE_NOTICE = "`{}` was posted by <@{}>, and nobody else has checked it."

QUERY_USE = """\
Counts, lists and groups lines of the files posted in this thread, exactly and over whole files; no model reads them.
Use it for how many, which most often, the first, the last, all of, what stands around it, when you know the words:
failed logins by address, errors by day, the warning that shows up most (group_by message: numbers do not count),
everything of one component between two times, line 1045 with its neighbours."""
QUERY_RULES = """\
Rules: all conditions hold together; any_of is "or". all_of, any_of and none_of are literal texts, letter case aside,
matched as whole words (10.0.0.1 is not in 10.0.0.12, Exception is not in IOException); regex finds parts of words.
level, since and until need logs whose lines have levels (notice is INFO) and times; times are compared as the log
writes them, and a minute or day includes all of it. first and last go by time unless order is file. A line that says
"message repeated 5 times" counts five times. Gives totals, groups, and lines as they are, as file:line; it says how
many are not shown."""
QUERY_ALTERNATIVE = """\
Not for questions of meaning ("why did it fail?"): use answer_from_case_evidence when you do not know the words."""
QUERY_DESCRIPTION = f"""\
{QUERY_USE} One call often answers; there are few.
{QUERY_RULES}
A call that is refused or finds nothing does not count.
{QUERY_ALTERNATIVE}"""


def _texts(description: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"type": "string"},
        "maxItems": line_query.MAX_LITERALS,
        "description": description,
    }


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _number(least: int, most: int, description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


QUERY_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "file": _text("Name of one file; all files when left out."),
        "all_of": _texts("Texts that a line has to hold, all of them."),
        "any_of": _texts("Texts of which a line has to hold one at least."),
        "none_of": _texts("Texts that a line must not hold."),
        "regex": _text(
            "Regular expression as RE2 knows it (no look-around, no back references; \\b beside ASCII letters only), "
            f"letter case aside, found anywhere in a line; at most {line_query.LONGEST_PATTERN} characters."
        ),
        "level": _texts("Levels, such as ERROR or WARN; one of them is enough."),
        "component": _text("The logger, class, process or service that wrote the line."),
        "since": _text("From this time on: 2024-05-01, 14:32, Jun 14 15:16, 2024-05-01 14:32:15."),
        "until": _text("Up to this time, included; written in the same way."),
        "line": _number(1, 10**9, "One line by its number."),
        "before": _number(0, MAX_AROUND, "How many lines before each hit, in mode context."),
        "after": _number(0, MAX_AROUND, "How many lines after each hit, in mode context."),
        "mode": _text("What is wanted; list when left out, count with group_by, context with line.", enum=list(MODES)),
        "order": _text("time when left out.", enum=list(ORDERS)),
        "group_by": _text(
            "What to count by; message: what lines say, numbers aside; key needs key, capture a regex.",
            enum=list(GROUPS),
        ),
        "key": _text("With group_by key: the name whose values are counted, such as user of user=root."),
        "top": _number(1, MAX_TOP, "How many groups are shown."),
        "offset": _number(0, line_query.MAX_OFFSET, "How many hits to skip."),
        "limit": _number(1, MAX_LINES, "How many hits are shown."),
    },
    "additionalProperties": False,
}


async def query_file(evidence: DocumentQATool, ctx: ToolContext, arguments: Mapping[str, Any]) -> QAResult:
    """Answer a line query over the files of the case evidence tool, with the same access rules. Raises only if the call
    is cancelled. `INVALID`: an argument is wrong, and the answer says how.
    """
    opened = await evidence.scope_for(ctx)
    if isinstance(opened, QAResult):
        return opened
    assert isinstance(opened, FileScope), "files are evidence"  # noqa: S101 (tells the type checker)
    scope = opened.scope
    try:
        query = line_query.read(arguments, scope.documents)
        found = await evidence.with_retries(lambda: query_lines.answer(scope, query))
    except QueryRefused as wrong:
        return QAResult(str(wrong), Status.INVALID)
    if isinstance(found, QAResult):
        return found
    result = QAResult(
        answer=found.text,
        status=Status.OK if found.total else Status.NOT_FOUND,
        sources=tuple(doc.filename for doc in query.documents),
        chunk_count=len(found.citations),
        confidence=1.0 if found.total else 0.0,
        citations=found.citations,
        plan={"count": found.total},
    )
    return with_posters(result, opened)


log = logging.getLogger(__name__)

_ANOTHERS = "was posted by somebody else than the person who asks and the team"
_PLACED = re.compile(r"(?P<name>.+?):(?P<line>\d{1,7})\b")
_MAX_PLACES = 3
_QUOTED = re.compile(r"\"(?P<title>[^\"]+)\"")


def build(
    *,
    store: DocumentStore,
    search: LibrarySearch | None = None,
    embedder: Embedder | None = None,
    model: ToolModel | None = None,
    cache: AnswerCache | None = None,
    configs: Iterable[KBConfig] = LIBRARIES,
    shares: Callable[[int], bool] | None = None,
    store_seconds: float = STORE_SECONDS,
    reply_language: str = "question",
) -> dict[str, DocumentQATool]:
    """Build the tools by name, with one shared cache: for the `store` of files and runbooks, and for the `search` of
    published text (None: without such tools).

    `embedder`: of the store. `model` None: quote passages. `configs`: of the libraries. `shares`: returns True if a
    person shows their runbooks in public threads; None: there are no runbooks.
    """
    libraries = {config.name: config for config in configs}
    if search is None:
        del libraries[TEAM], libraries[GLOBAL]
    if shares is None:
        del libraries[USER]
    else:

        def admits(ctx: ToolContext) -> bool:
            return not ctx.is_read_by_others or shares(ctx.asker_id)

        libraries[USER] = replace(libraries[USER], admits=admits)
    cache = AnswerCache() if cache is None else cache
    # Published text is updated before it is read: if that takes long, the tools for files must still work.
    breakers = {published: Breaker() for published in (True, False)}
    if model is None:
        synthesiser, rewriter = ExtractiveSynthesiser(), None
    else:
        synthesiser = ModelSynthesiser(model)
        rewriter = ModelRewriter(model)
    tools = {
        name: DocumentQATool(
            config=config,
            shelf=PublishedShelf(search) if search is not None and config.published else FileShelf(store),
            cache=cache,
            breaker=breakers[config.published is not None],
            embedder=search.embedder if search is not None and config.published else embedder,
            synthesiser=synthesiser,
            rewriter=rewriter,
            store_seconds=store_seconds,
            reply_language=reply_language,
        )
        for name, config in libraries.items()
    }
    searched = "keyword search only" if embedder is None else f"embeddings by {embedder.id}"
    log.info("Document tools: %s; %s; condensed by %s", ", ".join(tools), searched, synthesiser.id)
    return tools


class Toolset:
    """The tools for one answer, bound to its place and its asker. Remembers their results.

    Attributes:
        files: the files and runbooks, each in a few words.
    """

    def __init__(
        self,
        tools: Mapping[str, DocumentQATool],
        context: ToolContext,
        files: Iterable[str] = (),
        *,
        wait: Callable[[], Awaitable[Iterable[str] | None]] | None = None,
    ) -> None:
        """`wait`: waits for files that are being read, for a limited time, and returns the list of files then."""
        self.files = tuple(files)
        self._found: list[tuple[str, QAResult]] = []
        self._matched: list[str] = []
        self._given: set[str] = set()  # the sources of results that a model was given
        self._tools = tools
        self._context = context
        self._wait = wait
        self._offered: dict[str, DocumentQATool] = {}

    async def prepare(self) -> None:
        """Wait for files that are being read, then find the tools that can be offered."""
        if self._wait is not None:
            files = await self._wait()
            self.files = self.files if files is None else tuple(files)
        self._offered = {name: tool for name, tool in self._tools.items() if await tool.is_available(self._context)}

    @property
    def tools(self) -> tuple[Tool, ...]:
        configs = [tool.config for tool in self._offered.values()]
        tools = [Tool(each.name, each.description, PARAMETERS, self._runner(each.name)) for each in configs]
        if CASE in self._offered:
            tools.append(Tool(QUERY_FILE, QUERY_DESCRIPTION, QUERY_PARAMETERS, self._run_query))
        return tuple(tools)

    async def ask(self, name: str, question: str, k: int = DEFAULT_K) -> QAResult:
        """Ask one tool. Raises only if the call is cancelled."""
        known = self._context.conversation
        result = await self._offered[name].ask(self._context, question, k)
        self._found.append((name, result))
        if result.status is Status.OK:
            turns = (*known.turns, (question, result.answer))[-KEPT_TURNS:]
            self._context = replace(self._context, conversation=ConversationContext(turns, result.citations))
        return result

    async def query(self, arguments: Mapping[str, Any]) -> QAResult:
        """Run a line query on the files of the thread (`query_file`). Raises only if the call is cancelled."""
        result = await query_file(self._tools[CASE], self._context, arguments)
        self._found.append((QUERY_FILE, result))
        if result.status is Status.OK:
            # Matching lines contain these texts, also lines that were only counted.
            self._matched += [str(each) for each in arguments.get("all_of") or ()]
            self._context = replace(
                self._context, conversation=replace(self._context.conversation, citations=result.citations)
            )
        return result

    def render_for_model(self, name: str, result: QAResult) -> str:
        """Return a result with its sources for a model; each source in the form of a citation."""
        answer = result.answer if name == QUERY_FILE else self._offered[name].response(result)
        return "\n".join([_with_places(answer, result), *(f"{each} {_ANOTHERS}." for each in result.posters)])

    def render(self, name: str, result: QAResult) -> str:
        """Return a result with its sources for people, without statistics of the search."""
        if name == QUERY_FILE:
            return result.answer
        posters = result.posters
        named = [f"{each} (<@{posters[each]}>)" if each in posters else each for each in result.sources]
        return self._offered[name].config.with_sources(result.answer, named)

    def found_sources(self) -> tuple[Source, ...]:
        """Return the results as sources, by which an answer can be checked."""
        return tuple(
            Source(", ".join(result.sources), self.render_for_model(name, result))
            for name, result in self._found
            if result.status is Status.OK and result.sources
        )

    def found_documents(self) -> frozenset[tuple[str, str]]:
        """Return the files and runbooks that may stand in the answer: the collection of each, and its id there."""
        found = set[tuple[str, str]]()
        for name, result in self._found:
            config = self._config_of(name)
            if config.published is None and result.citations:
                collection = config.get_collection_name(config.scope_of(self._context))
                found.update((collection, each.doc_id) for each in result.citations)
        return frozenset(found)

    @property
    def may_be_shown(self) -> bool:
        """False if the owner of a runbook that was found has made it private since, and others read the answer."""
        return all(self._config_of(name).admits(self._context) for name, _ in self._found)

    def _config_of(self, name: str) -> KBConfig:
        """Return the library that a tool searches."""
        return self._tools[CASE if name == QUERY_FILE else name].config

    @property
    def has_found(self) -> bool:
        """True if a tool has found anything, which may stand in the answer."""
        return any(result.sources for _, result in self._found)

    @property
    def is_read_by_others(self) -> bool:
        """True if people other than the asker can read the answer."""
        return self._context.is_read_by_others

    def notice(self, citations: Collection[str]) -> str:
        """Return the lines that precede an answer from what the team has not checked; empty for other answers: from a
        runbook where others read it, as anybody can write any runbook under any title, and from somebody else's files,
        as anybody can post any file in a public thread.

        `citations`: of the answer; without any, each runbook and file that was found counts. A file that a model was
        given counts in any case.
        """

        def is_cited(source: str) -> bool:
            return not citations or any(each.startswith(source) for each in citations)

        runbooks = [each for name, result in self._found if name == USER for each in result.sources]
        needs_notice = self.is_read_by_others and any(map(is_cited, runbooks))
        lines = [RUNBOOK_NOTICE.format(self._context.asker_id)] if needs_notice else []
        posters = {name: user_id for _, result in self._found for name, user_id in result.posters.items()}
        lines += [
            FILE_NOTICE.format(display_name(name).replace("`", "'"), user_id)
            for name, user_id in posters.items()
            if name in self._given or is_cited(name)
        ]
        return "\n".join(lines)

    def mark_unsupported(self, text: str, known: Iterable[str]) -> str:
        """Mark each line of a file and each quotation in `text` that is neither in a result nor in `known`."""
        places = [
            CitedPassage(each.doc_id, each.source, "", each.line_start, each.line_end, (), each.chunk_id)
            for each in self._cited
        ]
        given = [self.render_for_model(name, result) for name, result in self._found]
        checked = check_answer(text, places, [*given, *self.files, *self._matched, *known])
        if checked.unverified:
            log.info("answer: citations or quotes that are in nothing that was given: %d", checked.unverified)
        return checked.answer

    def valid_citations(self, named: Iterable[str]) -> list[str]:
        """Return the citations in `named` that results confirm: `a.log:1045`, or `a.log` if only the file is."""
        sources = {source for _, result in self._found for source in result.sources}
        kept = (_known_citation(one.strip(), sources, self._cited) for one in named)
        return list(dict.fromkeys(each for each in kept if each is not None))

    @property
    def _cited(self) -> list[Citation]:
        return [citation for _, result in self._found for citation in result.citations]

    async def _run_query(self, arguments: Mapping[str, Any]) -> CountedResult:
        result = await self.query(arguments)
        self._given.update(result.sources)
        return CountedResult(self.render_for_model(QUERY_FILE, result), counts=result.status is Status.OK)

    def _runner(self, name: str) -> Callable[[Mapping[str, Any]], Awaitable[str]]:
        async def run(arguments: Mapping[str, Any]) -> str:
            # They fit the schema (services.llm.tool_calls).
            question, k = str(arguments["question"]), int(arguments.get("k", DEFAULT_K))
            result = await self.ask(name, question, k)
            self._given.update(result.sources)
            return self.render_for_model(name, result)

        return run


def _with_places(text: str, result: QAResult) -> str:
    """Append a line `Source: server.log:1045` for each of the first places, and one for each source that has none."""
    if result.status is not Status.OK:
        return text
    places = dict.fromkeys(
        f"{each.source}:{each.line_start}"
        for each in result.citations
        if each.line_start and each.source in result.sources
    )
    placed = list(places)[:_MAX_PLACES]
    others = [name for name in result.sources if not any(place.startswith(f"{name}:") for place in placed)]
    return "\n".join([text, *(f"Source: {each}" for each in [*placed, *others[:_MAX_PLACES]])])


def _known_citation(named: str, sources: set[str], cited: Iterable[Citation]) -> str | None:
    if named in sources:
        return named
    placed = _PLACED.match(named)
    if placed is not None and placed["name"] in sources:
        line = int(placed["line"])
        there = any(c.source == placed["name"] and c.line_start <= line <= c.line_end for c in cited)
        return f"{placed['name']}:{line}" if there else placed["name"]
    quoted = _QUOTED.search(named)
    return quoted["title"] if quoted is not None and quoted["title"] in sources else None
