"""Lists the files and runbooks for an answer, and binds the tools that search them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from model.messages import Place
from services.conversations import ThreadAccess
from services.documents.limits import display_name, format_size
from services.documents.results import ConversationContext, ToolContext
from services.documents.runbooks import Runbooks
from services.documents.store import protocol
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Document, State, StoreUnavailable
from services.documents.thread_files import Candidate, ThreadFiles
from services.documents.tools import Toolset
from services.documents.tools.core import DocumentQATool, describe_failure
from services.documents.tools.scopes import PublishedShelf
from services.knowledge import LibrarySearch
from services.telemetry import add_people, number_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Makes the set of document tools for each answer."""

    store: DocumentStore
    tools: Mapping[str, DocumentQATool]
    cases: ThreadFiles
    runbooks: Runbooks
    viewing: ThreadAccess
    ready_wait_seconds: float = 10.0  # how long an answer waits for files that are being read
    team_name: str = ""

    def with_search(self, search: LibrarySearch) -> Lookup:
        """Return a copy whose tools for published text use `search`."""
        tools = {
            name: replace(tool, shelf=PublishedShelf(search)) if tool.config.published else tool
            for name, tool in self.tools.items()
        }
        return replace(self, tools=tools)

    async def toolset(
        self,
        asker_id: int,
        place: Place,
        case_id: int | None,
        *,
        public: bool,
        opened: bool = True,
        in_view: bool = True,
        earlier: tuple[tuple[str, str], ...] = (),
        asker_is_team: bool = False,
        execution_id: str = "",
    ) -> Toolset | None:
        """Return the tools for one answer. None: the asker has neither files nor runbooks to search.

        `case_id`: the thread, or the one to be opened if not `opened`; None: no thread. `public`: others can read the
        answer. `in_view`: the asker can view `place`. `earlier`: questions and answers before this one. `execution_id`:
        names the answer in the log.
        """
        has_files = case_id is not None and self.cases.has_files(case_id)
        may_read = self.runbooks.has_any(asker_id) and (not public or self.runbooks.shown_in_threads(asker_id))
        if not has_files and not may_read:
            return None
        # A thread that is still to be opened has only the files of the question.
        can_view = case_id is not None and (
            not opened or await self.viewing.can_view(asker_id, case_id, seen_in=place.id if in_view else None)
        )
        if not can_view and not may_read:
            return None
        context = ToolContext(
            guild_id=place.guild_id,
            thread_id=case_id,
            asker_id=asker_id,
            team_id=self.team_name or None,
            conversation=ConversationContext(earlier),
            thread_is_public=public,
            asker_can_view=can_view,
            asker_is_team=asker_is_team,
            execution_id=execution_id,
        )

        async def known() -> list[str]:
            files = await self._files_of(case_id) if case_id is not None and can_view and has_files else []
            titles = self.runbooks.titles(asker_id) if may_read else ()
            return [*files, *(OwnRunbook(f"runbook of the asker: {display_name(title)}") for title in titles)]

        async def wait() -> list[str] | None:
            """The files as they are after waiting; None: there was nothing to wait for."""
            unread = case_id is not None and bool(self.cases.unread(case_id))
            if case_id is not None:
                await self.cases.wait(case_id, self.ready_wait_seconds)
            return await known() if unread else None

        return Toolset(self.tools, context, await known(), wait=wait)

    async def _files_of(self, case_id: int) -> list[str]:
        """Describe each file of a thread in a few words: first current or failed documents of the store, then files
        that are being read.
        """
        unread = self.cases.unread(case_id)
        try:
            known = await self.store.documents(protocol.case_collection(str(case_id)))
        except StoreUnavailable:
            known = ()
        settled = [
            doc
            for doc in known
            if (doc.current or not doc.state.searchable) and not any(candidate.is_in(doc) for candidate in unread)
        ]
        add_people(user_id for doc in known for user_id in doc.poster_ids)
        add_people(candidate.uploader_id for candidate in unread)
        return [*map(_settled, settled), *map(_unread, unread)]


class UnreadableFile(str):
    """A line about a file that could not be read, so that nothing can be looked up in it."""

    __slots__ = ()


class OwnRunbook(str):
    """A line about a runbook of the person who asks."""

    __slots__ = ()


def _settled(doc: Document) -> str:
    if doc.state is State.FAILED:
        return UnreadableFile(describe_failure(doc))
    return f"{display_name(doc.filename)} ({doc.kind}, {format_size(doc.size)}, {number_of(doc.n_lines, 'line')})"


def _unread(candidate: Candidate) -> str:
    return f"{display_name(candidate.filename)} ({format_size(candidate.attachment.size)}, being read)"
