"""The tools over files that people posted in threads, where the operator has opened these to assistants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from commands.mcp_server.access import ReadableThreads
from commands.mcp_server.tools import CallRefused, QuestionBudget, ServedTool, ToolResult, form, number, text
from services.documents import QAResult, Status, ToolContext, amount
from services.documents.store import DocumentStore, StoreUnavailable, naming
from services.documents.tools import CASE, DocumentQATool, Toolset, query_file
from services.telemetry import number_of
from sinks.terminal import one_line

MOST_THREADS = 200
MOST_PASSAGES, USUAL_PASSAGES = 20, 5
_NO_FILES = "There are no files here. list_files shows the threads that have some."
_UNAVAILABLE = "The files cannot be read just now; try again later."
_THREAD = text("The id of the thread, as list_files gives it.", 20)
_WHICH = "Needs `thread_id` from list_files: that one is meant by this thread."
_DONE = frozenset({Status.OK, Status.NOT_FOUND, Status.REFUSED_IRRELEVANT, Status.SYNTHESIS_ERROR, Status.INDEXING})
"""What was looked up, whatever came of it."""


class PostedFile(BaseModel):
    name: str
    kind: str
    size: int = Field(description="In bytes.")
    lines: int
    uploaded_at: str = Field(description="RFC 3339, UTC.")
    state: str = Field(description="ready, lexical (searchable by words only), pending, or failed.")


class PostedThread(BaseModel):
    thread_id: str
    channel_id: str | None = Field(description="Where the bot opened the thread; null: it did not.")
    files: list[PostedFile]


class PostedThreads(BaseModel):
    threads: list[PostedThread] = Field(description="The newest first.")
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
    """Over the files of threads.

    Attributes:
        by_name: the document tools.
        allowance: for questions that cost something; None: they cost nothing.
    """

    store: DocumentStore
    by_name: Mapping[str, DocumentQATool]
    threads: ReadableThreads
    allowance: QuestionBudget | None

    def tools(self) -> Sequence[ServedTool]:
        described = f"{query_file.USE}\n{query_file.RULES}\n{query_file.OTHERWISE}"
        meaning, _, _ = self.by_name[CASE].config.description.partition("Not for")
        return (
            ServedTool(
                name="list_files",
                title="List files posted in threads",
                description="Lists the files (logs, configurations, code, notes) that users posted in support threads "
                "which are open to you, by thread. Use it first: the other two tools about files need a thread_id "
                "from here. Files are gone when their thread is closed.",
                parameters=form(),
                result=PostedThreads,
                run=self._list,
            ),
            ServedTool(
                name=query_file.NAME,
                title="Query lines of posted files",
                description=f"{_WHICH}\n{described}",
                parameters={
                    **query_file.PARAMETERS,
                    "properties": {"thread_id": _THREAD, **query_file.PARAMETERS["properties"]},
                    "required": ["thread_id"],
                },
                result=FileAnswer,
                run=self._query,
            ),
            ServedTool(
                name=CASE,
                title="Ask about posted files",
                description=f"{_WHICH}\n{meaning}"
                f"When you know the words, {query_file.NAME} counts, groups and lists lines in one call. "
                "Not for general knowledge: use search or ask.",
                parameters=form(
                    ("thread_id", "question"),
                    thread_id=_THREAD,
                    question=text("One complete question, with every name, number and time that matters in it."),
                    k=number("How many passages to read; 3 to 10 is useful.", 1, MOST_PASSAGES, USUAL_PASSAGES),
                ),
                result=FileAnswer,
                run=self._answer,
            ),
        )

    async def _list(self, _arguments: Mapping[str, Any]) -> ToolResult:
        try:
            names = await self.store.list_collections(naming.CASE_PREFIX)
            ids = [int(name.removeprefix(naming.CASE_PREFIX)) for name in names]
            mine = sorted([each for each in ids if await self.threads.admits(each)], reverse=True)
            listed = [await self._thread(each) for each in mine[:MOST_THREADS]]
        except StoreUnavailable:
            raise CallRefused(_UNAVAILABLE) from None
        threads = [each for each in listed if each.files]
        content = PostedThreads(threads=threads, more=len(mine) - len(listed))
        if not threads:
            return ToolResult("No files have been posted in the threads that are open to you.", content)
        lines = [line for thread in threads for line in _listed(thread)]
        return ToolResult("\n".join([*lines, *([f"{content.more} more threads"] if content.more else [])]), content)

    async def _thread(self, thread_id: int) -> PostedThread:
        described = await self.store.describe(naming.case(str(thread_id)))
        channel = await self.threads.channel_of(thread_id)
        files = [
            PostedFile(
                name=one_line(doc.filename),
                kind=doc.kind,
                size=doc.size,
                lines=doc.n_lines,
                uploaded_at=doc.origin.uploaded_at,
                state=doc.state.value,
            )
            for doc in (() if described is None else described.documents)
            if doc.current or not doc.state.searchable
        ]
        return PostedThread(thread_id=str(thread_id), channel_id=None if channel is None else str(channel), files=files)

    async def _query(self, arguments: Mapping[str, Any]) -> ToolResult:
        toolset = await self._toolset(arguments["thread_id"])
        asked = {name: value for name, value in arguments.items() if name != "thread_id"}
        return _given(query_file.NAME, await toolset.query(asked), toolset)

    async def _answer(self, arguments: Mapping[str, Any]) -> ToolResult:
        toolset = await self._toolset(arguments["thread_id"])
        await toolset.ready()
        if CASE not in {tool.name for tool in toolset.tools}:
            raise CallRefused(_NO_FILES)
        if self.allowance is not None:
            await self.allowance.spend()
        k = min(max(arguments.get("k", USUAL_PASSAGES), 1), MOST_PASSAGES)
        return _given(CASE, await toolset.ask(CASE, arguments["question"], k), toolset)

    async def _toolset(self, thread: str) -> Toolset:
        """What may be looked up in a thread. Raises CallRefused, with the same words whether or not there is one."""
        if not (thread.isascii() and thread.isdigit()) or not await self.threads.admits(int(thread)):
            raise CallRefused(_NO_FILES)
        try:
            described = await self.store.describe(naming.case(thread))
        except StoreUnavailable:
            raise CallRefused(_UNAVAILABLE) from None
        if described is None:
            raise CallRefused(_NO_FILES)
        context = ToolContext(
            guild_id=described.collection.guild_id, thread_id=int(thread), asker_id=0, asker_can_view=True
        )
        return Toolset({CASE: self.by_name[CASE]}, context)


def _listed(thread: PostedThread) -> list[str]:
    where = f" of channel {thread.channel_id}" if thread.channel_id else ""
    files = [
        f"  {file.name} ({file.kind}, {amount(file.size)}, {number_of(file.lines, 'line')}, {file.state})"
        for file in thread.files
    ]
    return [f"Thread {thread.thread_id}{where}:", *files]


def _given(name: str, result: QAResult, toolset: Toolset) -> ToolResult:
    """Raises CallRefused: nothing was looked up."""
    if result.status not in _DONE:
        raise CallRefused(result.answer)
    citations = [
        CitedLines(
            file=one_line(each.source), line_start=each.line_start, line_end=each.line_end, timestamp=each.timestamp
        )
        for each in result.citations
    ]
    content = FileAnswer(status=result.status.value, answer=result.answer, citations=citations)
    return ToolResult(toolset.text(name, result), content)
