"""Files in a chain: what there is before the gate decides, what can be looked up once it has."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from model.conversations import Conversation, Role
from model.messages import AuthorType
from model.outcomes import Outcome, Reason
from services.assistant import Inquiry, Unanswered

if TYPE_CHECKING:  # the tools for files take a fifth of the time that an answer needs to start
    from services.documents import Lookup

EARLIER = 3
"""Questions and answers that a follow-up may be understood from."""


def announce(lookup: Lookup, *, public: bool) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Tell the gate which files and runbooks can be searched, without waiting for any that are still being read.

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


async def retrieve(inquiry: Inquiry) -> Inquiry | Unanswered:
    """Wait for files that are still being read; then only tools with something in them are offered."""
    toolset = inquiry.toolset
    if toolset is None:
        return inquiry
    await toolset.ready()
    inquiry.decisions["tools"] = [tool.name for tool in toolset.tools]
    if not toolset.tools:
        inquiry = inquiry._replace(toolset=None)
        if not inquiry.selected and not inquiry.conversation.images:
            return Unanswered(inquiry, Reason.NO_SOURCES)
    return inquiry


def earlier_in(conversation: Conversation) -> tuple[tuple[str, str], ...]:
    """The pairs of question and answer before the part that is being answered, oldest first; the last question may have
    no answer.
    """
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
