"""The tools that `--mcp` offers: their description, arguments and results; search, read_source and ask; and files of
threads that the operator has opened.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from clock import now
from model.conversations import Conversation
from model.outcomes import OutcomeKind, PrivateReply, traits_of
from model.steps import DECISIONS
from services.assistant import Addresses, prompts
from services.conversations import read_posts
from services.documents import QAResult, Status, ToolContext, format_size, with_distinct_names
from services.documents.store import DocumentStore, StoreUnavailable, protocol
from services.documents.tools import (
    CASE,
    QUERY_ALTERNATIVE,
    QUERY_FILE,
    QUERY_PARAMETERS,
    QUERY_RULES,
    QUERY_USE,
    DocumentQATool,
    Toolset,
)
from services.knowledge import Library, Search, SourceUnavailable, pair_ids, part_for_model
from services.llm import Limiter, argument_error
from services.search import Hit, Level
from services.storage import Signature, confined, in_thread
from services.telemetry import number_of
from sinks.terminal import printable_line
from streams.answerer import AIResult, Answerer

QUESTION_CHARS = 1_000
_KEPT_INVISIBLE = "\n\t\u200c\u200d"
"""Invisible characters that texts need: two of them join letters, and emoji."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result as text for a model, and as data."""

    text: str
    data: BaseModel


class CallRefused(Exception):
    """A call without a result. The message is for the model: the problem and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool, and the function behind it.

    Attributes:
        parameters: the JSON schema of its arguments, an object.
        result: the model of its results.
        run: takes arguments that fit the schema, numbers with a default among them. Raises CallRefused.
    """

    name: str
    title: str
    description: str
    parameters: Mapping[str, Any]
    result: type[BaseModel]
    run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]

    async def __call__(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Run the tool. Raises CallRefused, also for arguments that do not fit the schema."""
        known: Mapping[str, Any] = self.parameters["properties"]
        if unknown := sorted(arguments.keys() - known.keys()):
            raise CallRefused(f"There is no argument {unknown[0][:40]!r}; there are: {', '.join(known)}.")
        given = {name: value for name, value in arguments.items() if value is not None}
        if wrong := argument_error(given, self.parameters):
            raise CallRefused(f"Not done: {wrong}.")
        numbers = {name: each for name, each in known.items() if "default" in each}
        return await self.run(given | {name: _number_of(given, name, each) for name, each in numbers.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBudget:
    """Limits on questions that assistants put to a model.

    Attributes:
        daily: counts answers and tokens.
        hourly: counts the questions of all assistants.
    """

    daily: Limiter
    hourly: Limiter

    async def spend(self) -> None:
        """Count a question. Raises CallRefused: a limit is reached."""
        user_id = 0  # an assistant is no user of Discord
        limit = await self.daily.begin_chain(user_id, now()) or await self.hourly.begin_chain(user_id, now())
        if limit is not None:
            named = "mcp.questions_per_hour" if limit.endswith("per_hour") else limit
            raise used_up(named)


def used_up(limit: str) -> CallRefused:
    return CallRefused(f"{limit} is used up. Use search and read_source, which cost nothing.")


def schema(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of arguments."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text_schema(description: str, max_chars: int = QUESTION_CHARS) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": max_chars, "description": description}


def number_schema(description: str, minimum: int, maximum: int, *, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "default": default, "description": description}


def _number_of(given: Mapping[str, Any], name: str, of: Mapping[str, Any]) -> int:
    """Return an argument whose schema is that of `number_schema`: the nearest number within its bounds."""
    return min(max(given.get(name, of["default"]), of["minimum"]), of["maximum"])


def strip_invisible(words: str) -> str:
    """Remove characters that a model reads and people do not see: control characters, marks of direction."""
    if words.isascii() and words.isprintable():
        return words
    return "".join(each for each in words if each in _KEPT_INVISIBLE or unicodedata.category(each)[0] != "C")


EXCERPT_CHARS = 900
ID_CHARS = 2_000
NO_INDEX = "There is no index yet, so nothing can be found. Whoever runs this server makes it: python app.py --init-kb"

_MODEL = "It is slower than search and costs tokens of this server's own model: look around with search."
_NO_MODEL = "This server has no model of its own: what it gives are passages, quoted."
_LIKELY = {
    Level.ANSWER: "the first of them probably answer it",
    Level.POINT: "they are related, and may not answer it",
    Level.SILENCE: "probably none of them answers it",
}


class FoundPassage(BaseModel):
    source_id: str = Field(description="Give it to read_source, letter by letter.")
    title: str
    section: str = Field(description="The headings above the passage, outermost first.")
    excerpt: str
    score: float = Field(description="0 to 1; comparable within one search only.")
    url: str | None = Field(description="Where people read it; null: not known.")


class FoundPassages(BaseModel):
    confidence: float = Field(description="How likely one of the first three sources answers the query, 0 to 1.")
    level: Literal["answer", "point", "silence"] = Field(
        description="What that means: it probably answers; it is related; probably nothing here answers."
    )
    passages: list[FoundPassage] = Field(description="Best first.")
    more: int = Field(description="How many more passages were found.")


class SourceText(BaseModel):
    source_id: str
    url: str | None = Field(description="Where people read it; null: not known.")
    text: str = Field(description="`Team (goes on):` in front of it: it begins within what the team said.")
    offset: int = Field(description="Where `text` begins, in characters.")
    total_chars: int
    next_offset: int | None = Field(description="Where to read on; null: that was all.")


class GivenAnswer(BaseModel):
    outcome: Literal["answered", "pointed", "nothing found", "no answer"] = Field(
        description="answered: from the sources; pointed: it only says where to look; nothing found: it says so; "
        "no answer: see reason."
    )
    answer: str | None
    sources: list[str] = Field(description="Ids of the sources of the answer; read_source takes them.")
    reason: str | None = Field(description="Why there is no answer.")
    path: dict[str, Any] = Field(description="What each step decided.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeTools:
    """The tools about the sources that may be used to answer anybody.

    Attributes:
        conversation: makes the conversation of a question.
        budget: limits on questions; None: they cost nothing.
    """

    library: Library
    search: Search
    answerer: Answerer
    addresses: Addresses
    conversation: Callable[[str], Conversation]
    budget: QuestionBudget | None

    def tools(self) -> Sequence[ServedTool]:
        return (
            ServedTool(
                name="search",
                title="Search documentation and team answers",
                description="Finds passages of the documentation and of what the team told users, by words and by "
                "meaning. Use it to look things up: behaviour, settings, errors, how something was solved before. "
                "Gives short excerpts with the ids of their sources, best first, and how likely they answer. "
                "Costs nothing: search again in other words, and read the whole source with read_source.",
                parameters=schema(
                    ("query",),
                    query=text_schema("A question or a few words, in the language of the documentation if you can."),
                    limit=number_schema("How many passages.", 1, 20, default=5),
                ),
                result=FoundPassages,
                run=self._search,
            ),
            ServedTool(
                name="read_source",
                title="Read a source",
                description="Gives the text of one source: a document, a web page, or a topic of the team's answers "
                "(ids that begin with team:, where only what stands behind Team: is the team's word). Needs an id from "
                "search or ask. Long sources come in pieces: go on at next_offset.",
                parameters=schema(
                    ("source_id",),
                    source_id=text_schema("As search gave it, such as kb:guides/setup.md.", ID_CHARS),
                    offset=number_schema("Where to begin, in characters.", 0, 10**9, default=0),
                    max_chars=number_schema("How much to read.", 1, 50_000, default=20_000),
                ),
                result=SourceText,
                run=self._read,
            ),
            ServedTool(
                name="ask",
                title="Ask for a finished answer",
                description="Answers one question as the bot answers users: checked, from the sources alone, with the "
                "sources named; or says that there is no answer, and why. "
                f"{_MODEL if self.budget is not None else _NO_MODEL} "
                "Each question stands alone, so put everything that matters into it.",
                parameters=schema(
                    ("question",), question=text_schema("One complete question, as a person would ask it.")
                ),
                result=GivenAnswer,
                run=self._ask,
            ),
        )

    async def _search(self, arguments: Mapping[str, Any]) -> ToolResult:
        await self._check_index()
        limit: int = arguments["limit"]
        found = await self.search.find(arguments["query"])
        passages = [self._passage(hit) for hit in found.hits[:limit]]
        data = FoundPassages(
            confidence=round(found.confidence, 2),
            level=found.level.value,
            passages=passages,
            more=len(found.hits) - len(passages),
        )
        if not passages:
            return ToolResult("Nothing was found. Try other words: those that the documentation would use.", data)
        lines = [f"Best first; {_LIKELY[found.level]} (confidence {found.confidence:.0%})."]
        for position, each in enumerate(passages, 1):
            lines += ["", *_passage_lines(position, each)]
        return ToolResult("\n".join(lines), data)

    def _passage(self, hit: Hit) -> FoundPassage:
        passage = hit.passage
        is_short = len(passage.text) <= EXCERPT_CHARS
        return FoundPassage(
            source_id=hit.source_id,
            title=printable_line(passage.title),
            section=" › ".join(printable_line(head) for head in passage.headings if head),
            excerpt=passage.text if is_short else f"{passage.text[:EXCERPT_CHARS]}…",
            score=round(hit.score, 2),
            url=self.addresses.section_address(passage),
        )

    async def _read(self, arguments: Mapping[str, Any]) -> ToolResult:
        await self._check_index()
        source_id = arguments["source_id"].strip().strip("`")
        try:
            source = await self.library.load(source_id)
        except SourceUnavailable as why:
            raise CallRefused(f"{printable_line(str(why))}. Take an id that search gave.") from None
        is_topic = bool(pair_ids(source.text))
        whole = prompts.topic_to_read(source.text) if is_topic else source.text
        offset = min(arguments["offset"], len(whole))
        end = min(offset + arguments["max_chars"], len(whole))
        piece = part_for_model(whole, offset, end) if offset < end and is_topic else whole[offset:end]
        data = SourceText(
            source_id=source_id,
            url=self.addresses.address_of(source_id),
            text=piece,
            offset=offset,
            total_chars=len(whole),
            next_offset=end if end < len(whole) else None,
        )
        rest = "" if end == len(whole) else f"; go on with offset {end}"
        where = f"\n{data.url}" if data.url else ""
        return ToolResult(
            f"{printable_line(source_id)}, characters {offset} to {end} of {len(whole)}{rest}{where}\n\n{piece}",
            data,
        )

    async def _ask(self, arguments: Mapping[str, Any]) -> ToolResult:
        await self._check_index()
        if self.budget is not None:
            await self.budget.spend()
        result = await self.answerer.generate_reply(self.conversation(arguments["question"]))
        reason, path = result.debug["reason"], _path(result)
        if result.debug["result"] == OutcomeKind.FAILED:
            raise CallRefused(
                f"No answer could be made: {reason}. Try search, which needs no model, or ask again later."
            )
        if traits_of(reason).private_reply is PrivateReply.USED_UP:  # answers without a model may be counted as well
            raise used_up("limits.answers_per_day")
        if not result.should_reply or result.reply_text is None:
            data = GivenAnswer(outcome="no answer", answer=None, sources=[], reason=reason, path=path)
            return ToolResult(f"There is no answer: {reason}.{_why(path)}", data)
        outcome = _outcome(path)
        # If nothing was found, what the model was shown is no source of the answer.
        sources = [] if outcome == "nothing found" else list(result.citations)
        data = GivenAnswer(outcome=outcome, answer=result.reply_text, sources=sources, reason=None, path=path)
        cited = f"\n\nSources: {', '.join(map(printable_line, sources))}" if sources else ""
        warning = "This is no answer, only where to look:\n\n" if data.outcome == "pointed" else ""
        return ToolResult(f"{warning}{result.reply_text}{cited}", data)

    async def _check_index(self) -> None:
        if not await self.library.index():
            raise CallRefused(NO_INDEX)


def _passage_lines(position: int, each: FoundPassage) -> Iterator[str]:
    section = f" › {each.section}" if each.section else ""
    yield f"{position}. {printable_line(each.source_id)}{section} ({each.score})"
    if each.url:
        yield f"   {each.url}"
    yield from (f"   {line}".rstrip() for line in each.excerpt.split("\n"))


def _path(result: AIResult) -> dict[str, Any]:
    """Return the decisions of the steps. A list under the name of a step is no decision: it holds names of files."""
    decided = result.debug.items()
    return {name: notes for name, notes in decided if name in DECISIONS and isinstance(notes, Mapping)}


def _outcome(path: Mapping[str, Any]) -> Literal["answered", "pointed", "nothing found"]:
    pointed = path.get("point")
    if pointed is None:
        return "answered"
    return "nothing found" if pointed["level"] == Level.SILENCE else "pointed"


def _why(path: Mapping[str, Any]) -> str:
    """Return the first reason in a model's words: the gate's."""
    reasons = (decided.get(DECISIONS[name].reason_field) for name, decided in path.items())
    reason = next((each for each in reasons if isinstance(each, str)), "")
    return f" {printable_line(reason)}" if reason else ""


@dataclass(slots=True)
class ReadableThreads:
    """The threads that the operator has opened to assistants.

    docs/mcp.md says why the operator decides. A channel in the list opens the threads that the bot opened there,
    according to its record of posts: these are public. Threads of people may be private, so each has to be listed.

    Attributes:
        channels: the listed channels and threads.
        posts: the bot's record of its posts.
    """

    channels: frozenset[int]
    posts: Path
    _known: tuple[Signature | None, Mapping[int, int]] = field(default=(None, {}))

    async def allows(self, thread_id: int) -> bool:
        """Return True if assistants may read the files of a thread."""
        return thread_id in self.channels or await self.channel_of(thread_id) in self.channels

    async def channel_of(self, thread_id: int) -> int | None:
        """Return the channel in which the bot opened a thread; None: it did not, or no longer knows."""
        signature = confined.read_signature(self.posts)
        if signature is None:
            return None
        if self._known[0] != signature:
            self._known = signature, await in_thread(_read_threads, self.posts)
        return self._known[1].get(thread_id)


def _read_threads(posts: Path) -> dict[int, int]:
    """Return the channel of each thread that the bot opened."""
    return {post.place_id: post.asked_in for post in read_posts(posts) if post.opened_thread}


MAX_THREADS = 200
_NO_FILES = "There are no files here. list_files shows the threads that have some."
_UNAVAILABLE = "The files cannot be read just now; try again later."
_THREAD = text_schema("The id of the thread, as list_files gives it.", 20)
_WHICH = "Needs `thread_id` from list_files. `This thread` below means that one."
_GIVEN_TO_MODEL = frozenset(
    {Status.OK, Status.NOT_FOUND, Status.REFUSED_IRRELEVANT, Status.SYNTHESIS_ERROR, Status.INDEXING}
)
"""The statuses of results that are given to the model; others refuse the call."""


class ListedFile(BaseModel):
    name: str
    kind: str
    size: int = Field(description="In bytes.")
    lines: int
    uploaded_at: str = Field(description="RFC 3339, UTC.")
    state: str = Field(description="ready, lexical (searchable by words only), pending, or failed.")


class ListedThread(BaseModel):
    thread_id: str
    channel_id: str | None = Field(description="Where the bot opened the thread; null: it did not.")
    files: list[ListedFile]


class ListedThreads(BaseModel):
    threads: list[ListedThread] = Field(description="The newest first.")
    more: int = Field(description="How many more threads have files.")


class CitedLines(BaseModel):
    file: str
    line_start: int
    line_end: int
    timestamp: str | None


class FileAnswer(BaseModel):
    status: str = Field(description="ok, not_found, indexing, refused_irrelevant or synthesis_error.")
    answer: str
    citations: list[CitedLines]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTools:
    """The tools about the files of threads.

    Attributes:
        by_name: the document tools.
        budget: limits on questions; None: they cost nothing.
    """

    store: DocumentStore
    by_name: Mapping[str, DocumentQATool]
    threads: ReadableThreads
    budget: QuestionBudget | None

    def tools(self) -> Sequence[ServedTool]:
        query_description = f"{QUERY_USE}\n{QUERY_RULES}\n{QUERY_ALTERNATIVE}"
        case_description, _, _ = self.by_name[CASE].config.description.partition("Not for")
        return (
            ServedTool(
                name="list_files",
                title="List files posted in threads",
                description="Lists the files (logs, configurations, code, notes) that users posted in support threads "
                "which are open to you, by thread. Use it first: the other two tools about files need a thread_id "
                "from here. Files are gone when their thread is closed.",
                parameters=schema(),
                result=ListedThreads,
                run=self._list,
            ),
            ServedTool(
                name=QUERY_FILE,
                title="Query lines of posted files",
                description=f"{_WHICH}\n{query_description}",
                parameters={
                    **QUERY_PARAMETERS,
                    "properties": {"thread_id": _THREAD, **QUERY_PARAMETERS["properties"]},
                    "required": ["thread_id"],
                },
                result=FileAnswer,
                run=self._query,
            ),
            ServedTool(
                name=CASE,
                title="Ask about posted files",
                description=f"{_WHICH}\n{case_description}"
                f"When you know the words, {QUERY_FILE} counts, groups and lists lines in one call. "
                "Not for general knowledge: use search or ask.",
                parameters=schema(
                    ("thread_id", "question"),
                    thread_id=_THREAD,
                    question=text_schema("One complete question, with every name, number and time that matters in it."),
                    k=number_schema("How many passages to read; 3 to 10 is useful.", 1, 20, default=5),
                ),
                result=FileAnswer,
                run=self._answer,
            ),
        )

    async def _list(self, _arguments: Mapping[str, Any]) -> ToolResult:
        try:
            names = await self.store.list_collections(protocol.CASE_PREFIX)
            ids = [int(name.removeprefix(protocol.CASE_PREFIX)) for name in names]
            allowed = sorted([each for each in ids if await self.threads.allows(each)], reverse=True)
            listed = [await self._thread(each) for each in allowed[:MAX_THREADS]]
        except StoreUnavailable:
            raise CallRefused(_UNAVAILABLE) from None
        threads = [each for each in listed if each.files]
        data = ListedThreads(threads=threads, more=len(allowed) - len(listed))
        if not threads:
            return ToolResult("No files have been posted in the threads that are open to you.", data)
        lines = [line for thread in threads for line in _thread_lines(thread)]
        return ToolResult("\n".join([*lines, *([f"{data.more} more threads"] if data.more else [])]), data)

    async def _thread(self, thread_id: int) -> ListedThread:
        described = await self.store.describe(protocol.case_collection(str(thread_id)))
        channel = await self.threads.channel_of(thread_id)
        files = [
            ListedFile(
                name=printable_line(doc.filename),
                kind=doc.kind,
                size=doc.size,
                lines=doc.n_lines,
                uploaded_at=doc.origin.uploaded_at,
                state=doc.state.value,
            )
            for doc in (() if described is None else with_distinct_names(described.documents))
            if doc.current or not doc.state.searchable
        ]
        return ListedThread(thread_id=str(thread_id), channel_id=None if channel is None else str(channel), files=files)

    async def _query(self, arguments: Mapping[str, Any]) -> ToolResult:
        toolset = await self._toolset(arguments["thread_id"])
        asked = {name: value for name, value in arguments.items() if name != "thread_id"}
        return _file_result(QUERY_FILE, await toolset.query(asked), toolset)

    async def _answer(self, arguments: Mapping[str, Any]) -> ToolResult:
        toolset = await self._toolset(arguments["thread_id"])
        await toolset.prepare()
        if CASE not in {tool.name for tool in toolset.tools}:
            raise CallRefused(_NO_FILES)
        if self.budget is not None:
            await self.budget.spend()
        found = await toolset.ask(CASE, arguments["question"], arguments["k"])
        return _file_result(CASE, found, toolset)

    async def _toolset(self, thread: str) -> Toolset:
        """Return the tools of a thread. Raises CallRefused, with the same message whether or not the thread exists."""
        if not (thread.isascii() and thread.isdigit()) or not await self.threads.allows(int(thread)):
            raise CallRefused(_NO_FILES)
        try:
            described = await self.store.describe(protocol.case_collection(thread))
        except StoreUnavailable:
            raise CallRefused(_UNAVAILABLE) from None
        if described is None:
            raise CallRefused(_NO_FILES)
        context = ToolContext(
            guild_id=described.collection.guild_id, thread_id=int(thread), asker_id=0, asker_can_view=True
        )
        return Toolset({CASE: self.by_name[CASE]}, context)


def _thread_lines(thread: ListedThread) -> list[str]:
    where = f" of channel {thread.channel_id}" if thread.channel_id else ""
    files = [
        f"  {file.name} ({file.kind}, {format_size(file.size)}, {number_of(file.lines, 'line')}, {file.state})"
        for file in thread.files
    ]
    return [f"Thread {thread.thread_id}{where}:", *files]


def _file_result(name: str, result: QAResult, toolset: Toolset) -> ToolResult:
    """Make the result of a tool. Raises CallRefused: nothing was looked up."""
    if result.status not in _GIVEN_TO_MODEL:
        raise CallRefused(result.answer)
    citations = [
        CitedLines(
            file=printable_line(each.source),
            line_start=each.line_start,
            line_end=each.line_end,
            timestamp=each.timestamp,
        )
        for each in result.citations
    ]
    data = FileAnswer(status=result.status.value, answer=result.answer, citations=citations)
    return ToolResult(toolset.render_for_model(name, result), data)
