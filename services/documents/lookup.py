"""Lists the files and runbooks for an answer, and binds the tools that search them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from model.messages import Message, Part
from services.conversations import ThreadAccess
from services.documents.askers_files import AskerMessage, AskersFiles, with_distinct_names
from services.documents.asking.rewriting import ConversationContext
from services.documents.limits import display_name, format_size
from services.documents.runbooks import Runbooks
from services.documents.store import protocol
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Document, State, StoreUnavailable
from services.documents.thread_files import Candidate, ThreadFiles
from services.documents.tools import Toolset
from services.documents.tools.core import DocumentQATool, describe_failure
from services.documents.tools.libraries import USER, ToolContext
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
    is_team: Callable[[int, int | None], Awaitable[bool]]  # by the ids of a person and a server
    ready_wait_seconds: float = 10.0  # how long an answer waits for files that are being read
    team_name: str = ""

    def without_runbooks(self) -> Lookup:
        """Return a copy whose tools search no runbooks."""
        tools = {name: tool for name, tool in self.tools.items() if name != USER}
        return replace(self, tools=tools)

    def with_search(self, search: LibrarySearch) -> Lookup:
        """Return a copy whose tools for published text use `search`."""
        tools = {
            name: replace(tool, shelf=PublishedShelf(search)) if tool.config.published else tool
            for name, tool in self.tools.items()
        }
        return replace(self, tools=tools)

    async def toolset(
        self,
        part: Part,
        case_id: int | None,
        *,
        public: bool,
        opened: bool = True,
        in_view: bool = True,
        messages: Sequence[Message] = (),
        earlier: tuple[tuple[str, str], ...] = (),
    ) -> Toolset | None:
        """Return the tools for the answer to a part. None: its author has neither files nor runbooks to search.

        `case_id`: the thread, or the one to be opened if not `opened`; None: no thread. `public`: others can read the
        answer. `in_view`: the asker can view the place of the part. `messages`: the conversation, whoever wrote it.
        `earlier`: questions and answers before this one.
        """
        asker_id, place = part.author.id, part.place
        may_read = self._may_read_runbooks(asker_id, public=public)
        # A thread that is still to be opened has only the files of the question.
        can_view = (
            case_id is not None
            and self.cases.has_files(case_id)
            and (not opened or await self.viewing.can_view(asker_id, case_id, seen_in=place.id if in_view else None))
        )
        readable_case = case_id if can_view else None
        team_ids = () if readable_case is None else await self._team_among_posters(readable_case, place.guild_id)
        said = _messages_of(asker_id, (*messages, *part.messages))
        usable = AskersFiles(frozenset({asker_id, *team_ids}), said)

        async def known() -> list[str]:
            files = [] if readable_case is None else await self._files_of(readable_case, asker_id, usable)
            return [*files, *(self._runbooks_of(asker_id, public=public) if may_read else ())]

        files = await known()
        if not files:
            return None
        context = ToolContext(
            guild_id=place.guild_id,
            thread_id=case_id,
            asker_id=asker_id,
            team_id=self.team_name or None,
            conversation=ConversationContext(earlier),
            thread_is_public=public,
            asker_can_view=can_view,
            files=usable,
            execution_id=part.correlation_id,
        )

        async def wait() -> list[str] | None:
            """Return the files as they are after waiting; None: there was nothing to wait for."""
            unread = case_id is not None and bool(self.cases.unread(case_id))
            if case_id is not None:
                await self.cases.wait(case_id, self.ready_wait_seconds)
            return await known() if unread else None

        return Toolset(self.tools, context, files, wait=wait)

    def _may_read_runbooks(self, asker_id: int, *, public: bool) -> bool:
        has_some = USER in self.tools and self.runbooks.has_any(asker_id)
        return has_some and (not public or self.runbooks.shown_in_threads(asker_id))

    def _runbooks_of(self, asker_id: int, *, public: bool) -> list[str]:
        """Describe each runbook of an asker in a few words. `public`: as in `toolset`."""
        titles = map(display_name, self.runbooks.titles(asker_id))
        if public:
            return [f"runbook of the asker, which nobody else has checked: {title}" for title in titles]
        return [OwnRunbook(f"runbook of the asker: {title}") for title in titles]

    async def _team_among_posters(self, case_id: int, guild_id: int | None) -> list[int]:
        """Return the team members among those who have posted files in a thread."""
        documents = (*await self._documents_of(case_id), *map(_pending, self.cases.unread(case_id)))
        posters = sorted({user_id for doc in documents for user_id in doc.poster_ids})
        return [user_id for user_id in posters if await self.is_team(user_id, guild_id)]

    async def _documents_of(self, case_id: int) -> tuple[Document, ...]:
        try:
            return await self.store.documents(protocol.case_collection(str(case_id)))
        except StoreUnavailable:
            return ()

    async def _files_of(self, case_id: int, asker_id: int, usable: AskersFiles) -> list[str]:
        """Describe each file of a thread that is used for an asker in a few words, by its name for them: first current
        or failed documents of the store, then files that are being read.
        """
        unread = self.cases.unread(case_id)
        known = [doc for doc in await self._documents_of(case_id) if not any(each.is_in(doc) for each in unread)]
        names = {doc.doc_id: doc.filename for doc in known}
        chosen = usable.choose((*with_distinct_names(known, asker_id), *map(_pending, unread)))
        add_people(user_id for doc in chosen for user_id in doc.poster_ids)
        return [
            _described(doc, names.get(doc.doc_id, doc.filename), is_anothers=not usable.is_trusted(doc))
            for doc in chosen
            if doc.current or not doc.state.searchable
        ]


class UnreadableFile(str):
    """A line about a file that could not be read, so that nothing can be looked up in it."""

    __slots__ = ()


class OwnRunbook(str):
    """A line about a runbook of the person who asks, where nobody else reads the answer."""

    __slots__ = ()


def _messages_of(asker_id: int, messages: Iterable[Message]) -> tuple[AskerMessage, ...]:
    """Return the messages that an asker has written, each once."""
    written = {
        each.id: AskerMessage(each.id, each.text, each.reply_to and each.reply_to.message_id)
        for each in messages
        if each.author.id == asker_id
    }
    return tuple(written.values())


def _pending(candidate: Candidate) -> Document:
    """Return a file that is being read as a document."""
    doc_id = f"{candidate.attachment.id} {candidate.filename}"
    return Document(doc_id, candidate.origin, State.PENDING, size=candidate.attachment.size)


def _described(doc: Document, posted_as: str, *, is_anothers: bool) -> str:
    """Describe a file in a few words. `posted_as`: its name when it was posted."""
    if doc.state is State.FAILED:
        return UnreadableFile(describe_failure(doc))
    about = [format_size(doc.size)]
    if doc.state is State.PENDING:
        about.append("being read")
    else:
        about = [doc.kind.value, *about, number_of(doc.n_lines, "line")]
    if posted_as != doc.filename:
        about.append(f"somebody else's {display_name(posted_as)}")
    elif is_anothers:
        about.append("somebody else's")
    return f"{display_name(doc.filename)} ({', '.join(about)})"
