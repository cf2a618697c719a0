"""Carries out what is asked about drafts: shows them to the team, posts them, and notes how they ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from clock import now, run_blocking
from model.conversations import REPLY
from model.messages import discord_address
from model.outcomes import Outcome, OutcomeKind, Reason
from services.assistant import line_that_asks
from services.conversations import (
    FORGOTTEN,
    MAX_REVIEW_QUESTION_CHARS,
    UNKNOWN_DRAFT,
    Draft,
    DraftAction,
    DraftEnd,
    DraftRequest,
    Drafts,
    DraftState,
    Posts,
    WorkCancelled,
)
from services.discord import (
    Access,
    LookupFailed,
    PostFailed,
    ReviewCard,
    Reviews,
    Undelivered,
    escape_markup,
    thread_name,
)
from services.storage import describe_error
from services.team import MAX_ANSWER_CHARS, AuditLog, Capture, CapturedMessage, PairTurn, Speaker, archive_files
from sinks.replies import Replies

AGAIN_SECONDS = 600.0
"""The pause after which a call about a draft that Discord has refused is tried again."""
SOURCES_CHARS = 500
"""The most of the sources that the message about a draft shows."""

log = logging.getLogger(__name__)


class EndTraits(NamedTuple):
    """An end of a draft. `shown`: what the review channel says; `told`: what the person who decided is told."""

    kind: OutcomeKind
    reason: Reason | None
    shown: str
    told: str = ""


ENDS = {
    DraftEnd.POSTED: EndTraits(OutcomeKind.REPLIED, None, "Posted", "It is posted."),
    DraftEnd.EDITED: EndTraits(OutcomeKind.REPLIED, None, "Posted as edited", "It is posted as edited."),
    DraftEnd.DISCARDED: EndTraits(OutcomeKind.SKIPPED, Reason.DISCARDED, "Discarded", "It is discarded."),
    DraftEnd.EXPIRED: EndTraits(OutcomeKind.SKIPPED, Reason.EXPIRED, "Not posted: nobody decided in time"),
    DraftEnd.DELETED: EndTraits(OutcomeKind.CANCELLED, Reason.DELETED, "Not posted: the question is gone"),
    DraftEnd.WITHDRAWN: EndTraits(
        OutcomeKind.CANCELLED, Reason.DELETED, "Not posted: somebody who wrote in it has opted out or is forgotten"
    ),
    DraftEnd.TEAM_ANSWERED: EndTraits(OutcomeKind.CANCELLED, Reason.TEAM_ANSWERED, "Not posted: the team answered"),
}
CANCELLED_BY = {Reason.TEAM_ANSWERED: DraftEnd.TEAM_ANSWERED, Reason.OPTED_OUT: DraftEnd.WITHDRAWN}
KEPT = "It is kept as something that the team taught."
NOT_KEPT = "It is not kept: the question was changed, or somebody whose words it holds has opted out or marked them."
NOT_AS_ASKED = (
    "It cannot be kept: not everybody can read the question as it was asked, or Discord could not be asked. Use *Post*."
)
QUESTION_EDITED = "The question was edited since, and nothing was done. It is shown as it reads now: look at it again."
CHANGED_SINCE = (
    "Something that this answer is made of was changed, removed or continued since. *Edit* it, which makes "
    "it yours, and *Post* that; or discard it."
)


class DecisionRefused(Exception):
    """A decision is not carried out; the message is one sentence for whoever made it."""


@dataclass(frozen=True, slots=True)
class DraftSink:
    """Handles the requests about the drafts of one data folder, those about one draft one after another.

    Every step is on the disk before the next begins, so that a start goes on from wherever a crash has cut it off:

        waiting ── decided ──► approved ── posted, recorded ──► ended ── shown in the review channel
           └────── discarded, expired, cancelled ─────────────────┘

    A person's decision depends on much, hence so many fields: what the sink posts, stores and notes with, and what it
    has to look at again before it does. Only the last three are its own state.

    Attributes:
        reviews: None: drafts are shown at the dashboard only.
        archive: stores a capture, as in `Sinks`.
        everyone_sees: returns True if everybody can view a channel. Such a review channel does not show what was asked
            in a place that is not public.
        is_public: returns True if what is said in a place is public. A place that everybody can view need not be.
        question_now: returns the text of each message of a question, as Discord has it now; None: one of them is gone,
            or a file that the answer is from. Raises LookupFailed: it is unknown.
        may_quote: returns True if the question of a draft may be told to everybody as it was asked, by what Discord
            says now. It is asked before the question is kept.
        is_current: returns True if all that a draft is made of is as it was: what the team taught, and messages.
        opted_out: the ids of people who have opted out. It is looked at again before a draft is posted: those
            who opted out while the bot was away are known only by then.
        redact: removes secrets from what a person enters.
        audit: where people's decisions are noted before they are carried out.
        has_outcome: returns True if the outcome that says how a draft ended is on the disk.
    """

    drafts: Drafts
    replies: Replies
    posts: Posts
    reviews: Reviews | None
    access: Access | None
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]]
    everyone_sees: Callable[[int], bool]
    is_public: Callable[[int], bool]
    question_now: Callable[[Draft], Coroutine[Any, Any, Sequence[str] | None]]
    may_quote: Callable[[Draft], Coroutine[Any, Any, bool]]
    is_current: Callable[[Draft], Coroutine[Any, Any, bool]]
    opted_out: Container[int]
    redact: Callable[[str], str]
    audit: AuditLog
    has_outcome: Callable[[Draft], Coroutine[Any, Any, bool]]
    _warned: set[int] = field(default_factory=set[int], init=False)  # review channels
    # The review channels of which the log says that everybody can view them.
    _told_viewable: set[int] = field(default_factory=set[int], init=False)
    _ended: set[int] = field(default_factory=set[int], init=False)  # the drafts whose outcome this run has given

    async def handle(self, request: DraftRequest) -> Outcome | None:
        """Carry out one request. Returns the outcome of a draft that has ended by it."""
        draft = self.drafts.find(request.draft_id)
        if draft is None:
            request.tell(UNKNOWN_DRAFT)
            return None
        try:
            return await self._handle(draft, request)
        except DecisionRefused as refused:
            request.tell(str(refused))
            return None
        except OSError as error:
            log.error("a draft cannot be stored: %s", describe_error(error))  # noqa: TRY400 (a line for the operator)
            request.tell("The bot cannot write to its disk. Look at the draft again in some minutes.")
            # A request that no person made is repeated; after a person's, the draft is only resumed.
            again = request if request.told is None else DraftRequest(draft.id, DraftAction.RESUME)
            self.drafts.schedule(AGAIN_SECONDS, again)
            return None
        except WorkCancelled:  # another process has taken the draft over
            request.tell("Another process decides about it now: look again in a moment.")
            return None
        finally:
            request.tell("That failed; the bot's log says why.")  # if nothing was told yet

    async def _handle(self, draft: Draft, request: DraftRequest) -> Outcome | None:
        if draft.state is DraftState.WAITING and draft.reply.post.asker_id in self.opted_out:
            request.tell("Whoever asked has opted out, so nothing is posted.")
            return await self._end(draft, DraftEnd.WITHDRAWN)
        match request.action:
            case DraftAction.RESUME:
                return await self._resume(draft)
            case DraftAction.CANCEL if draft.state is DraftState.WAITING:
                return await self._end(draft, CANCELLED_BY.get(request.reason, DraftEnd.DELETED))
            case DraftAction.EXPIRE if draft.state is DraftState.WAITING:
                return await self._end(draft, DraftEnd.EXPIRED)
            case DraftAction.SHOW:
                await self._refresh(draft)
            case DraftAction.CANCEL | DraftAction.EXPIRE:
                pass
            case _:
                return await self._decide(draft, request)
        return None

    async def _decide(self, draft: Draft, request: DraftRequest) -> Outcome | None:
        late = why_too_late(draft)
        if late is not None:
            raise DecisionRefused(late)
        # An edit that is sent twice has been made.
        is_made = request.action is DraftAction.EDIT and request.text == draft.text
        if request.seen not in {"", draft.version} and not is_made:
            await self._show(draft, card_of(draft))  # it may have failed after the edit
            raise DecisionRefused(edited_meanwhile(draft, request))
        if request.action is DraftAction.EDIT:
            await self._edit(draft, request)
            return None
        if request.action is not DraftAction.DISCARD:
            return await self._approve(draft, request)
        await self._note(request)
        outcome = await self._end(draft, DraftEnd.DISCARDED, request.by)
        request.tell(ENDS[DraftEnd.DISCARDED].told)
        return outcome

    async def _note(self, request: DraftRequest) -> None:
        by = request.operator or (str(request.by) if request.by else "")
        await run_blocking(self.audit.note, now(), by, f"{request.action} draft", request.draft_id)

    async def _resume(self, draft: Draft) -> Outcome | None:
        if draft.state is DraftState.ENDED:
            return await self._finish(draft)
        # The draft may be from a backup that is older than the record of posts.
        if draft.state is DraftState.WAITING and self.posts.has_answered(draft.id):
            return await self._end(draft, DraftEnd.POSTED)
        if draft.state is DraftState.APPROVED:
            if self.drafts.is_ended_by_forgetting(draft.id):
                return await self._end(draft, DraftEnd.WITHDRAWN)
            return await self._post(draft)
        await self._offer(draft)
        return None

    async def _finish(self, draft: Draft) -> Outcome | None:
        """Do what a crash has left undone of an end: show it, and give its outcome, unless that is recorded."""
        if not draft.is_shown:
            await self._show_end(draft)
        if draft.is_recorded or draft.end is None or draft.id in self._ended:
            return None
        if await self.has_outcome(draft):
            await self.drafts.note_recorded([draft.id])
            return None
        self._ended.add(draft.id)
        return outcome_of(draft, draft.end)

    async def _offer(self, draft: Draft) -> None:
        """Show a draft in the review channel, unless it is there; if that fails, try again later."""
        if self.reviews is None or draft.review_id:
            return
        channel_id = draft.review_channel_id
        self._note_visibility(channel_id)
        if self._is_secret_there(draft):
            self.drafts.schedule(AGAIN_SECONDS, DraftRequest(draft.id, DraftAction.RESUME))
            return
        try:
            review_id = await self.reviews.find(channel_id, draft.id)  # posted before a crash, and not noted
            if review_id is None:
                review_id = await self.reviews.offer(channel_id, card_of(draft), nonce=f"{draft.id:x}-draft")
        except (PostFailed, LookupFailed) as failure:
            if channel_id not in self._warned:
                self._warned.add(channel_id)
                log.error(  # noqa: TRY400 (a line for the operator)
                    "discord.review_channel_id: drafts wait that the team is not shown there: %s; tried again", failure
                )
            self.drafts.schedule(AGAIN_SECONDS, DraftRequest(draft.id, DraftAction.RESUME))
            return
        self._warned.discard(channel_id)
        await self.drafts.put(replace(draft, review_id=review_id))

    def _note_visibility(self, channel_id: int) -> None:
        """Log when everybody can view a review channel. The drafts there are shown again whenever this changes."""
        if self.everyone_sees(channel_id) == (channel_id in self._told_viewable):
            return
        self._told_viewable.symmetric_difference_update({channel_id})
        if channel_id in self._told_viewable:
            log.warning(
                "discord.review_channel_id: everybody can view %d and reads what waits there; choose a channel "
                "that only the team sees. What was asked in hidden channels waits at the dashboard until then",
                channel_id,
            )
        for each in self.drafts.waiting:
            if each.review_id and each.review_channel_id == channel_id:
                self.drafts.schedule(0, DraftRequest(each.id, DraftAction.SHOW))

    def _is_secret_there(self, draft: Draft) -> bool:
        """Return True if everybody can view the review channel of a draft, and not everybody read what was asked."""
        asked_in_public = draft.is_public and self.is_public(draft.reply.post.asked_in)
        return self.everyone_sees(draft.review_channel_id) and not asked_in_public

    async def _edit(self, draft: Draft, request: DraftRequest) -> None:
        text = self.redact(request.text.strip())
        if not text:
            raise DecisionRefused("An answer cannot be empty. Discard it instead.")
        most = max(MAX_ANSWER_CHARS, len(draft.text))  # a model may have been allowed longer ones
        if len(text) > most:
            raise DecisionRefused(f"An answer has at most {most:,} characters, and this {len(text):,}: shorten it.")
        await self._note(request)
        draft = draft.with_text(text, request.by)
        await self.drafts.put(draft)
        self.drafts.cancel_if_forgotten(draft, request.at)  # forgetting did not search the new text
        await self._show(draft, card_of(draft))
        request.tell("It is changed. *Post* posts it as it is now.")

    async def _approve(self, draft: Draft, request: DraftRequest) -> Outcome | None:
        keeps = request.action is DraftAction.KEEP
        if keeps and not draft.may_be_kept:
            raise DecisionRefused(
                "Only an answer that was edited, in a public channel, can be kept, to a question of at most "
                f"{MAX_REVIEW_QUESTION_CHARS} characters that has not been edited since. Use *Post*."
            )
        try:
            asked = await self.question_now(draft)
        except LookupFailed as error:
            raise DecisionRefused(f"The question could not be looked up ({error}). Try again.") from error
        if asked is None:
            outcome = await self._end(draft, DraftEnd.DELETED)
            request.tell("The question is gone, or a file that the answer is from, so nothing is posted.")
            return outcome
        if not draft.is_asked_by(asked):
            await self._show_question(draft, asked)
            raise DecisionRefused(QUESTION_EDITED)
        if keeps and not await self.may_quote(draft):
            raise DecisionRefused(NOT_AS_ASKED)
        if not await self._is_current(draft):
            raise DecisionRefused(CHANGED_SINCE)
        thread_id = None if draft.thread_name else draft.reply.place_id
        obstacle = None if self.access is None else self.access.why_not_allowed(draft.channel_id, thread_id)
        if obstacle is not None:
            raise DecisionRefused(f"It cannot be posted: {obstacle}. The draft waits on.")
        await self._note(request)
        if self.drafts.is_unneeded(draft.id):  # meanwhile; the request that ends it comes next
            raise DecisionRefused("It is not needed any more, so nothing is posted.")
        end = DraftEnd.POSTED if draft.edited_by is None else DraftEnd.EDITED
        draft = replace(draft, state=DraftState.APPROVED, decided_by=request.by, end=end, keeps=keeps)
        await self.drafts.put(draft)
        outcome = await self._post(draft)
        decision = cast("dict[str, Any]", outcome.decisions["approve"])
        kept = f" {KEPT if 'kept' in decision else NOT_KEPT}" if keeps else ""
        request.tell(f"{ENDS[end].told}{kept}")
        return outcome

    async def _is_current(self, draft: Draft) -> bool:
        try:
            return await self.is_current(draft)
        except LookupFailed as error:
            raise DecisionRefused(f"What it is made of could not be looked up ({error}). Try again.") from error

    async def _show_question(self, draft: Draft, texts: Sequence[str]) -> None:
        """Keep the question as it reads now, and show it. Raises OSError: it is as before."""
        question = "\n".join(filter(None, texts))
        draft = draft.with_question(texts, thread_name(line_that_asks(question)))
        await self.drafts.put(draft)
        await self._show(draft, card_of(draft))

    async def _post(self, draft: Draft) -> Outcome:
        """Post an approved draft, or the rest of it. Raises DecisionRefused: it waits again, or is posted later."""
        try:
            piece_ids = await self.replies.post_approved(draft.started_reply, draft.thread_name)
        except (Undelivered, LookupFailed) as failure:
            log.warning("an approved answer is posted later: %s", failure)
            self.drafts.schedule(AGAIN_SECONDS, DraftRequest(draft.id, DraftAction.RESUME))
            raise DecisionRefused("Discord does not take it now; it is posted as soon as it does.") from failure
        except PostFailed as failure:
            log.warning("an approved answer was refused, and waits again: %s", failure)
            waiting = replace(draft, state=DraftState.WAITING, decided_by=0, end=None, keeps=False)
            await self.drafts.put(waiting)
            raise DecisionRefused(f"It cannot be posted: {failure}. The draft waits on.") from failure
        may_keep = draft.keeps and await self.may_quote(draft)  # the question may have changed meanwhile
        stored = self.drafts.find(draft.id) or draft
        # Who edited it or decided may have been forgotten meanwhile.
        draft = replace(draft, edited_by=stored.edited_by, decided_by=stored.decided_by)
        qa_id = await self._keep(draft, piece_ids) if may_keep else None
        assert draft.end is not None  # noqa: S101 (for the type checker)
        outcome = await self._end(replace(draft, keeps=qa_id is not None), draft.end, draft.decided_by)
        return replace(outcome, qa_id=qa_id)

    async def _keep(self, draft: Draft, piece_ids: Iterable[int]) -> str | None:
        """Keep a posted answer as what the team taught. `piece_ids`: its messages. Returns the id of the pair; None: it
        is not kept. Raises DecisionRefused: it is kept later.
        """
        # Somebody whose words it holds may have been forgotten.
        if not self.posts.has_answered(draft.id) or self.drafts.is_ended_by_forgetting(draft.id):
            return None
        try:
            kept = await self.archive(capture_of(draft, piece_ids))
        except archive_files.ArchiveUnwritable as error:
            log.error("an answer of the team is kept later: %s", error)  # noqa: TRY400 (a line for the operator)
            self.drafts.schedule(AGAIN_SECONDS, DraftRequest(draft.id, DraftAction.RESUME))
            raise DecisionRefused("It is posted; it is kept as soon as the disk can be written.") from error
        return kept.qa_id if kept.result is OutcomeKind.CAPTURED else None

    async def _end(self, draft: Draft, end: DraftEnd, by: int = 0) -> Outcome:
        ended = draft.as_ended(end, by, now())
        await self.drafts.put(ended)
        if end is DraftEnd.WITHDRAWN:  # the question may quote whoever is forgotten
            draft = replace(draft, reply=replace(draft.reply, post=replace(draft.reply.post, question="")))
        self._ended.add(draft.id)
        outcome = outcome_of(draft, end)
        await self._show_end(ended)
        return outcome

    async def _show_end(self, draft: Draft) -> None:
        """Show how a draft has ended; if that fails, try again later, as the message still has its texts."""
        if await self._show(draft, end_card(draft)):
            with suppress(OSError):  # else the next start shows it again
                await self.drafts.put(replace(draft, is_shown=True))
        else:
            self.drafts.schedule(AGAIN_SECONDS, DraftRequest(draft.id, DraftAction.SHOW))

    async def _refresh(self, draft: Draft) -> None:
        """Show what is so now."""
        if draft.state is DraftState.WAITING:
            asked = None
            with suppress(LookupFailed):
                asked = await self.question_now(draft)
            if asked is None or draft.is_asked_by(asked):
                await self._show(draft, card_of(draft))
            else:
                await self._show_question(draft, asked)
        elif draft.state is DraftState.ENDED and not draft.is_shown:
            await self._show_end(draft)

    async def _show(self, draft: Draft, card: ReviewCard) -> bool:
        """Change the message in the review channel. Returns False if a retry may help."""
        if self.reviews is None or not draft.review_id:
            return True
        if card.actions and self._is_secret_there(draft):
            card = ReviewCard(draft.id, draft.channel_id, f"**An answer waits at the dashboard**: {address_of(draft)}")
        try:
            await self.reviews.show(draft.review_channel_id, draft.review_id, card)
        except PostFailed as failure:
            log.warning("a message of the review channel is out of date: %s", failure)
            return not failure.is_passing
        return True


def why_too_late(draft: Draft) -> str | None:
    """Return a sentence for somebody who decides about a draft that waits no longer; None: it waits."""
    if draft.state is DraftState.APPROVED:
        return f"{decider_name(draft.decided_by)} has approved it; it is being posted."
    if draft.state is DraftState.ENDED and draft.end is not None:
        return f"Nothing was done, as this draft has ended. {_verdict(draft, draft.end)}."
    return None


def edited_meanwhile(draft: Draft, request: DraftRequest) -> str:
    """Say why a decision about other texts is not carried out, and give back what the person has written."""
    if draft.is_reworded:
        why = QUESTION_EDITED
    else:
        by = "Somebody" if draft.edited_by is None else decider_name(draft.edited_by)
        why = f"{by} has edited the answer meanwhile, and nothing was done: look at it again."
    return f"{why} You wrote:\n{request.text}" if request.text else why


def decider_name(user_id: int) -> str:
    """Return a person who has edited or decided, as the review channel shows them."""
    if user_id == FORGOTTEN:
        return "Somebody who is forgotten"
    return f"<@{user_id}>" if user_id else "Somebody at the dashboard"


def address_of(draft: Draft) -> str:
    return discord_address(draft.reply.guild_id or 0, draft.reply.post.asked_in, draft.id)


def card_of(draft: Draft) -> ReviewCard:
    """Make the message about a draft that waits."""
    post = draft.reply.post
    question = escape_markup(post.question[:MAX_REVIEW_QUESTION_CHARS])
    if len(post.question) > MAX_REVIEW_QUESTION_CHARS:
        question += f"… ({len(post.question):,} characters)"
    sources = ", ".join(map(escape_markup, post.sources)) or "none"
    if len(sources) > SOURCES_CHARS:
        sources = f"{sources[:SOURCES_CHARS]}…"
    reworded = " (edited since)" if draft.is_reworded else ""
    edited = "" if draft.edited_by is None else f"\nEdited by {decider_name(draft.edited_by)}."
    heading = (
        f"**An answer waits for approval** until <t:{round(draft.until)}:f>\n"
        f"<@{post.asker_id}> [asked](<{address_of(draft)}>){reworded}:\n> {question or '(a file)'}\n"
        f"-# Sources: {sources} · confidence {draft.confidence:.2f}{edited}\n**The answer:**"
    )
    actions = (*_ACTIONS, DraftAction.KEEP) if draft.may_be_kept else _ACTIONS
    return ReviewCard(draft.id, draft.channel_id, heading, draft.text, tuple(map(str, actions)), draft.version)


_ACTIONS = (DraftAction.POST, DraftAction.EDIT, DraftAction.DISCARD)


def end_card(draft: Draft) -> ReviewCard:
    """Make the message about a draft that has ended, without what anybody wrote."""
    assert draft.end is not None  # noqa: S101 (for the type checker)
    return ReviewCard(draft.id, draft.channel_id, f"**{_verdict(draft, draft.end)}**: {address_of(draft)}")


def _verdict(draft: Draft, end: DraftEnd) -> str:
    decided = end in {DraftEnd.POSTED, DraftEnd.EDITED, DraftEnd.DISCARDED}
    by = f" by {decider_name(draft.decided_by)}" if decided else ""
    if end is DraftEnd.EDITED and draft.edited_by is not None and draft.edited_by != draft.decided_by:
        by = f" by {decider_name(draft.edited_by)}, approved by {decider_name(draft.decided_by)}"
    return f"{ENDS[end].shown}{by}{', and kept as what the team taught' if draft.keeps else ''}"


def outcome_of(draft: Draft, end: DraftEnd) -> Outcome:
    """Make the outcome of a draft. An ended draft has lost its texts, so pass it as it was before if there is a way."""
    replied = ENDS[end].kind is OutcomeKind.REPLIED
    notes: dict[str, object] = {"end": str(end), "seconds": round(now() - draft.held_at)}
    return Outcome(
        draft.part,
        now(),
        ENDS[end].kind,
        ENDS[end].reason,
        reply_text=draft.text if replied else None,
        level=draft.level if replied else None,
        sources=draft.reply.post.sources,
        reply_place_id=draft.reply.place_id if replied else None,
        decisions={"gate": {"question": True}, "approve": notes | ({"kept": True} if draft.keeps else {})},
        ends_draft=True,
    )


def capture_of(draft: Draft, piece_ids: Iterable[int]) -> Capture:
    """Make a capture of the question and the edited answer, each message a turn of its own, as any of them may be
    deleted later. `piece_ids`: the messages of the answer.
    """
    reply, asker_id = draft.reply, draft.reply.post.asker_id
    asked = {draft.id: reply.post.question}
    if draft.asked_texts:
        asked = dict(zip(reply.asked_ids, draft.asked_texts, strict=False))
    question = [CapturedMessage(each, asker_id, PairTurn(Speaker.USER, text)) for each, text in asked.items() if text]
    answer = [
        CapturedMessage(each, draft.edited_by or 0, PairTurn(Speaker.TEAM, piece), asker_id)
        for each, piece in zip(piece_ids, draft.started_reply.pieces, strict=False)
    ]
    return Capture(draft.part, REPLY.make_id(reply.asked_ids[0]), (*question, *answer))
