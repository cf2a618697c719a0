"""A question on its way through the answer chain, with what the steps have found so far; and a capture job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from clock import now
from clock.cancellation import CancelToken
from model.conversations import Conversation
from model.messages import Message, Part
from model.outcomes import Outcome, OutcomeKind, Reason
from services.assistant.citations import remove_foreign_links
from services.knowledge import Source
from services.llm import Usage
from services.search import Level

if TYPE_CHECKING:  # the tools for files take a fifth of the time that an answer needs to start
    from services.documents import Toolset

EMPTY = Conversation(())


class Inquiry(NamedTuple):
    """A part that is being answered. Each step returns a copy that knows more (`_replace`), or an `Outcome`.
    It has so many fields, as each step adds what it alone knows, and leaves the others as they are.

    Attributes:
        addressed: it mentions the bot, replies to it, or opens a post in a forum.
        decisions: the path so far, for logs and `--ask`. Only its own steps write to it, one after another.
        messages: those that the conversation was made of.
        reply_place_id: the thread to reply in; None for a new one.
        asked_in_view: whether the asker can view the place; true where they write in it.
        first_draft: as it was before later steps changed it: what the asker has been told is compared by this text.
        level: of the draft: an answer, or one that only points somewhere.
        cited_pairs: conversations of the team that the draft is from: the source and the conversation, by their ids.
        links: addresses that follow the draft.
        guess: what selection and loading made of it while the gate decided (`ai_response.speculate`).
        toolset: for looking things up in files and runbooks; None if none concern this inquiry.
    """

    part: Part
    addressed: bool
    usage: Usage
    decisions: dict[str, Any]
    conversation: Conversation = EMPTY
    messages: tuple[Message, ...] = ()
    reply_place_id: int | None = None
    asked_in_view: bool = True
    toolset: Toolset | None = None
    query: str = ""
    selected: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    draft: str = ""
    first_draft: str = ""
    citations: tuple[str, ...] = ()
    cited_pairs: tuple[tuple[str, str], ...] = ()
    level: Level = Level.ANSWER
    links: tuple[str, ...] = ()
    guess: Inquiry | None = None

    def drafted(self, text: str, trusted: Iterable[str], citations: Iterable[str], **found: Any) -> Inquiry:
        """The inquiry with its first draft: `text` without the addresses that no `trusted` text holds. Words of others
        become a draft by this and by `redrafted` only. `found`: what else is known now.
        """
        draft = remove_foreign_links(text, trusted)
        return self._replace(draft=draft, first_draft=draft, citations=tuple(citations), **found)

    def redrafted(self, text: str) -> Inquiry:
        """The inquiry with a draft that a model made of the present one: `text` without the addresses that are not in
        that one, and with a mark at each quotation and line of a file that nothing supports. All else stays; the
        draft as well, if nothing is left of `text`.
        """
        checked = text if self.toolset is None else self.toolset.checked(text, [self.draft])
        return self._replace(draft=remove_foreign_links(checked, [self.draft]).strip() or self.draft)

    @property
    def token(self) -> CancelToken:
        return self.part.token

    @property
    def case_id(self) -> int:
        """The thread that its files belong to: the one replied in, or the one that the answer opens, whose id is that
        of the message it starts from (API reference, "Start Thread from Message").
        """
        return self.part.last.id if self.reply_place_id is None else self.reply_place_id

    @property
    def request(self) -> str:
        """All that the person wrote in this part."""
        return self.conversation.asked_text or self.conversation.last_user_text

    @property
    def files(self) -> tuple[str, ...]:
        return () if self.toolset is None else self.toolset.files

    @property
    def read_sources(self) -> tuple[Source, ...]:
        """Loaded, or looked up in files and runbooks."""
        return self.sources if self.toolset is None else (*self.sources, *self.toolset.found())

    @property
    def shown_sources(self) -> tuple[str, ...]:
        """Cited, else selected."""
        return self.citations or self.selected


class Unanswered(NamedTuple):
    """An inquiry that somebody asked and no step could answer; `reason`: with which it ends unless the bot points."""

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
    """A team member's part that is being captured."""

    part: Part

    @property
    def token(self) -> CancelToken:
        return self.part.token


def end(
    inquiry: Inquiry,
    result: OutcomeKind,
    reason: str | None = None,
    *,
    reply_place_id: int | None = None,
    reply_text: str | None = None,
) -> Outcome:
    """The outcome of an inquiry, now."""
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


def skipped(inquiry: Inquiry, reason: Reason) -> Outcome:
    return end(inquiry, OutcomeKind.SKIPPED, reason)


def replied(inquiry: Inquiry, place_id: int, text: str) -> Outcome:
    return end(inquiry, OutcomeKind.REPLIED, reply_place_id=place_id, reply_text=text)
