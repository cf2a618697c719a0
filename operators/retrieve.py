"""What can be looked up for an answer: the files of its thread, and the asker's own runbooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from model.conversations import Conversation, Role
from model.messages import AuthorType, Place
from model.outcomes import Outcome, Reason
from operators.chunk import is_of
from services.assistant import Inquiry, skipped
from services.conversations import Viewing
from services.documents import (
    BoundTools,
    Candidate,
    Cases,
    ConversationContext,
    Runbooks,
    ToolContext,
    Toolset,
    amount,
    shown,
    unreadable,
)
from services.documents.store import Document, DocumentStore, State, StoreUnavailable, naming
from services.documents.tools import Toolbox
from services.telemetry import number_of

EARLIER = 3
"""Questions and answers that a follow-up may be understood from."""


BeforeAsking = Callable[[int | None], Awaitable[None]]
"""Told the server in which something is about to be looked up."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Who knows which files there are, and who finds things in them."""

    store: DocumentStore
    toolbox: Toolbox
    cases: Cases
    runbooks: Runbooks
    viewing: Viewing
    ready_wait_seconds: float = 10.0
    team_name: str = ""
    before_asking: BeforeAsking | None = None

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
        """What may be looked up for somebody there; None: neither files nor runbooks concern them.

        `case_id`: the thread, or the one to come if it is not `opened` yet; None: none. `public`: others read the
        answer. `in_view`: the asker can view `place`. `earlier`: questions and answers before this one.
        `execution_id`: names the answer in the log.
        """
        has_files = case_id is not None and self.cases.has_files(case_id)
        may_read = self.runbooks.has_any(asker_id) and (not public or self.runbooks.shown_in_threads(asker_id))
        if not has_files and not may_read:
            return None
        can_view = case_id is not None and await self._can_view(asker_id, case_id, place, opened, in_view)
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
        files = await self._files_of(case_id) if case_id is not None and can_view and has_files else []
        titles = (
            [f"runbook of the asker: {shown(title)}" for title in self.runbooks.titles(asker_id)] if may_read else []
        )

        async def wait() -> None:
            if case_id is not None:
                await self.cases.wait(case_id, self.ready_wait_seconds)
            if self.before_asking is not None:
                await self.before_asking(place.guild_id)

        return BoundTools(self.toolbox, context, [*files, *titles], wait=wait)

    async def _can_view(self, asker_id: int, case_id: int, place: Place, opened: bool, in_view: bool) -> bool:
        if not opened:
            return True  # of a thread to come, nobody has anything but what is asked with
        return await self.viewing.can_view(asker_id, case_id, seen_in=place.id if in_view else None)

    async def _files_of(self, case_id: int) -> list[str]:
        under_way = self.cases.unread(case_id)
        try:
            described = await self.store.describe(naming.case(str(case_id)))
        except StoreUnavailable:
            described = None
        known = () if described is None else described.documents
        return [*map(_known, _newest(known, under_way)), *map(_offered, under_way)]


def announce(lookup: Lookup, *, public: bool) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Say which files there are, before anything is decided. Waits for none of them.

    `public`: others than the asker read the answer.
    """

    async def announced(inquiry: Inquiry) -> Inquiry | Outcome:
        part = inquiry.part
        toolset = await lookup.toolset(
            part.author.id,
            part.place,
            inquiry.case_id,
            public=public,
            opened=inquiry.reply_place_id is not None,
            in_view=inquiry.asked_in_view,
            earlier=earlier_in(inquiry.conversation),
            asker_is_team=part.author_type is AuthorType.TEAM_MEMBER,
            execution_id=part.correlation_id,
        )
        if toolset is None:
            return inquiry
        inquiry.decisions["files"] = list(toolset.files)
        return inquiry._replace(toolset=toolset)

    return announced


async def retrieve(inquiry: Inquiry) -> Inquiry | Outcome:
    """Wait for files that are still being read; then the tools are those with something in them."""
    toolset = inquiry.toolset
    if toolset is None:
        return inquiry
    await toolset.ready()
    inquiry.decisions["tools"] = [tool.name for tool in toolset.tools]
    if not toolset.tools:
        inquiry = inquiry._replace(toolset=None)
        if not inquiry.selected and not inquiry.conversation.images:
            return skipped(inquiry, Reason.NO_SOURCES)
    return inquiry


def earlier_in(conversation: Conversation) -> tuple[tuple[str, str], ...]:
    """What was asked and answered before, oldest first; the last question may have no answer."""
    pairs: list[tuple[str, str]] = []
    asked = ""
    for turn in conversation.turns:
        if turn.asked_now:
            continue
        if turn.role is Role.USER:
            asked = turn.text
        elif asked:
            pairs.append((asked, turn.text))
            asked = ""
    if asked:
        pairs.append((asked, ""))
    return tuple(pairs[-EARLIER:])


def _newest(documents: Sequence[Document], under_way: Sequence[Candidate]) -> list[Document]:
    """Those that are not told of by their offers, each name once."""
    settled = [doc for doc in documents if not any(is_of(doc, candidate) for candidate in under_way)]
    return [doc for doc in settled if doc.current or not doc.state.searchable]


def _known(doc: Document) -> str:
    if doc.state is State.FAILED:
        return unreadable(doc)
    return f"{shown(doc.filename)} ({doc.kind}, {amount(doc.size)}, {number_of(doc.n_lines, 'line')})"


def _offered(candidate: Candidate) -> str:
    return f"{shown(candidate.filename)} ({amount(candidate.attachment.size)}, being read)"
