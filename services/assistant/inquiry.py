"""A question on its way through the answer chain, with what the steps have found so far; and a capture job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from clock import now
from model.conversations import Conversation, ShownPair
from model.outcomes import Outcome, OutcomeKind
from services.assistant.citations import remove_foreign_links
from services.search import Level

if TYPE_CHECKING:  # the tools for files take a fifth of the time that an answer needs to start
    from clock.cancellation import CancelToken
    from model.messages import Message, Part
    from model.outcomes import Reason
    from services.documents import Toolset
    from services.knowledge import Source
    from services.llm import Usage

EMPTY = Conversation(())


class Inquiry(NamedTuple):
    """A part that is being answered. Each step returns a copy with more fields set (`_replace`), or an `Outcome`.

    Attributes:
        addressed: it mentions the bot, replies to it, or opens a post in a forum.
        decisions: what each step decided, for logs and `--ask`. Only the steps of this inquiry write to it, in turn.
        messages: the messages that the conversation was made of.
        reply_place_id: the thread to reply in; None for a new one.
        asker_can_view: True if the asker can view the place, as where they wrote in it.
        first_draft: the draft before later steps changed it; a repeated reply is recognised by this text.
        level: of the draft: an answer, or one that only points somewhere.
        cited_pairs: the conversations of the team that the draft is from: ids of the source and of the conversation.
        shown_pairs: those that the draft quotes or points to, also where it is from a topic as a whole.
        links: addresses that follow the draft.
        speculation: this inquiry with sources selected and loaded while the gate decided (`ai_response.speculate`).
        people: the ids of those with whose words the steps have worked: who wrote in the conversation, or in a topic
            that was read, or posted a file that could be read.
        toolset: the tools for files and runbooks; None if the inquiry has neither.
        is_counted: it counts against the limits of the asker already, and begins again.
        left_out: the ids of people whose messages it is made without.
    """

    part: Part
    addressed: bool
    usage: Usage
    decisions: dict[str, Any]
    conversation: Conversation = EMPTY
    messages: tuple[Message, ...] = ()
    reply_place_id: int | None = None
    asker_can_view: bool = True
    people: frozenset[int] = frozenset()
    toolset: Toolset | None = None
    query: str = ""
    selected: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    draft: str = ""
    first_draft: str = ""
    citations: tuple[str, ...] = ()
    cited_pairs: tuple[tuple[str, str], ...] = ()
    level: Level = Level.ANSWER
    shown_pairs: tuple[ShownPair, ...] = ()
    links: tuple[str, ...] = ()
    speculation: Inquiry | None = None
    is_counted: bool = False
    left_out: frozenset[int] = frozenset()

    def with_draft(self, text: str, trusted: Iterable[str], citations: Iterable[str], **found: Any) -> Inquiry:
        """Return the inquiry with its first draft: `text` without the addresses that no `trusted` text contains. What
        a model wrote becomes a draft by this method and `with_redraft` alone. `found`: other fields to set.
        """
        draft = remove_foreign_links(text, trusted)
        return self._replace(draft=draft, first_draft=draft, citations=tuple(citations), **found)

    def with_redraft(self, text: str) -> Inquiry:
        """Return the inquiry with a draft that a model made of the present one: `text` without new addresses, and with
        a mark at each quotation and line of a file that has no support. The draft stays if nothing is left of `text`.
        """
        checked = text if self.toolset is None else self.toolset.mark_unsupported(text, [self.draft])
        notice = "" if self.toolset is None else self.toolset.notice(self.citations)
        if notice and notice not in checked and checked.strip():
            checked = f"{notice}\n{checked}"
        return self._replace(draft=remove_foreign_links(checked, [self.draft]).strip() or self.draft)

    @property
    def token(self) -> CancelToken:
        return self.part.token

    @property
    def case_id(self) -> int:
        """The thread that the files belong to: the thread to reply in, or the one that the answer opens. A new thread
        has the id of the message it starts from (API reference, "Start Thread from Message").
        """
        return self.part.last.id if self.reply_place_id is None else self.reply_place_id

    @property
    def request(self) -> str:
        """The full text of this part."""
        return self.conversation.asked_text or self.conversation.last_user_text

    @property
    def files(self) -> tuple[str, ...]:
        return () if self.toolset is None else self.toolset.files

    @property
    def read_sources(self) -> tuple[Source, ...]:
        """The sources that were loaded, or looked up in files and runbooks."""
        return self.sources if self.toolset is None else (*self.sources, *self.toolset.found_sources())

    @property
    def shown_sources(self) -> tuple[str, ...]:
        """The ids of the cited sources, or of the selected ones if none is cited."""
        return self.citations or self.selected


class Unanswered(NamedTuple):
    """An inquiry that no step could answer. `reason`: the reason of its outcome, unless the bot posts a pointer."""

    inquiry: Inquiry
    reason: Reason

    @property
    def token(self) -> CancelToken:
        return self.inquiry.token

    @property
    def part(self) -> Part:
        return self.inquiry.part


@dataclass(frozen=True, slots=True)
class CaptureJob:
    part: Part

    @property
    def token(self) -> CancelToken:
        return self.part.token


def outcome_of(
    inquiry: Inquiry,
    result: OutcomeKind,
    reason: str | None = None,
    *,
    reply_place_id: int | None = None,
    reply_text: str | None = None,
) -> Outcome:
    return Outcome(
        part=inquiry.part,
        at=now(),
        result=result,
        reason=reason,
        reply_text=reply_text,
        level=inquiry.level if result is OutcomeKind.REPLIED else None,
        sources=inquiry.shown_sources,
        reply_place_id=reply_place_id,
        llm_calls=inquiry.usage.calls.total(),
        tokens=inquiry.usage.tokens,
        decisions=inquiry.decisions,
    )


def skip_outcome(inquiry: Inquiry, reason: Reason) -> Outcome:
    return outcome_of(inquiry, OutcomeKind.SKIPPED, reason)


def reply_outcome(inquiry: Inquiry, place_id: int, text: str) -> Outcome:
    return outcome_of(inquiry, OutcomeKind.REPLIED, reply_place_id=place_id, reply_text=text)
