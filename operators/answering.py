"""The steps of an answer: the conversation, the gate, the sources, the draft, and a second look at it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from clock import now
from model.conversations import Conversation, Image, Role
from model.messages import AuthorType, Message
from model.outcomes import Outcome, Reason
from operators.step import TookTooLong
from services.assistant import (
    AnswerResult,
    Assistant,
    Inquiry,
    keep_citations,
    linkable_texts,
    remove_foreign_links,
    skipped,
)
from services.conversations import Context, History, InFlight, Posts
from services.documents import Lookup
from services.knowledge import Library, Source, SourceUnavailable, narrowed
from services.llm import Budget, ImageSource, load_images
from services.telemetry import number_of

log = logging.getLogger(__name__)


def gather(
    context: Context,
    history: History,
    posts: Posts,
    in_flight: InFlight,
    images: ImageSource | None,
    thread_reuse_seconds: float,
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Give an inquiry its conversation: a thread's history, or the chain of replies; with `images`, their bytes.

    A question in a channel is answered in the thread that the bot opened for the same asker a moment ago, if there is
    one that no team member has joined.

    Raises:
        LookupFailed: Discord could not be asked.
        ImageFailed: an image of the conversation is not available.
    """

    async def gathered(inquiry: Inquiry) -> Inquiry:
        part = inquiry.part
        if part.place.is_thread:
            around = await context.thread(part.place)
            reply_place_id = part.place.id
        else:
            around, reply_place_id = await reusable_thread(inquiry)
            if reply_place_id is not None:
                in_flight.reply_in(part, reply_place_id)
        messages = {message.id: message for message in around}
        messages |= {message.id: message for message in await context.replies(part.messages)}
        # What the person wrote after this part belongs to the next part.
        asked = frozenset(part.message_ids)
        ordered = [
            message
            for i, message in sorted(messages.items())
            if i in asked or i < part.last.id or message.author.id != part.author.id
        ]
        pictures = {} if images is None else await loaded_images(images, await askers(ordered))
        conversation = await context.conversation(ordered, asked, pictures)
        return inquiry._replace(conversation=conversation, messages=tuple(ordered), reply_place_id=reply_place_id)

    async def reusable_thread(inquiry: Inquiry) -> tuple[Sequence[Message], int | None]:
        part = inquiry.part
        since = part.messages[0].at - thread_reuse_seconds
        thread_id = posts.reusable_thread(part.place.id, part.author.id, since)
        place = None if thread_id is None else await history.find_place(thread_id)
        if place is None or place.locked:
            return (), None
        messages = await context.thread(place)
        for message in messages:
            if message.channel_id == place.id and await context.author_type(message) is AuthorType.TEAM_MEMBER:
                return (), None
        return messages, place.id

    async def askers(messages: Iterable[Message]) -> list[Message]:
        return [m for m in messages if m.attachments and await context.author_type(m) is AuthorType.COMMUNITY_USER]

    async def loaded_images(source: ImageSource, messages: Iterable[Message]) -> dict[int, tuple[Image, ...]]:
        return {message.id: await load_images(source, message.attachments) for message in messages}

    return gathered


def gate(
    assistant: Assistant, budget: Budget, chain_seconds: float
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Pass answerable questions, with the query to search for.

    Here the chain is counted against the budget, and its `chain_seconds` begin.
    """

    async def gated(inquiry: Inquiry) -> Inquiry | Outcome:
        user_id, at = inquiry.part.author.id, now()
        exhausted = budget.begin_chain(user_id, at)
        if exhausted is not None:
            if budget.first_time(exhausted, user_id, at):
                log.warning("%s is used up: nothing is answered until there is room again", exhausted)
            return skipped(inquiry, Reason.BUDGET)
        inquiry.token.expire_in(chain_seconds, TookTooLong(f"the answer took longer than {chain_seconds:g} s"))
        result = await assistant.gate(inquiry.conversation, inquiry.usage, files=inquiry.files)
        answerable = result.is_question and result.is_answerable
        inquiry.decisions["gate"] = {"answerable": answerable, "reason": result.reason}
        log.info("gate: answerable=%s reason=%r", answerable, result.reason)
        if not answerable:
            return skipped(inquiry, Reason.NOT_ANSWERABLE)
        query = (result.rewrite_query or "").strip() or inquiry.conversation.last_user_text
        return inquiry._replace(query=query)

    return gated


def select(
    assistant: Assistant, library: Library, max_sources: int, max_index_chars: int
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Choose at most `max_sources` sources from the index, which is first narrowed to `max_index_chars`.

    Ids that are not in the index are logged and dropped: only what is indexed can ever be loaded.
    """

    async def selected(inquiry: Inquiry) -> Inquiry | Outcome:
        index = await library.index()
        offered = await narrowed(index, inquiry.query, max_index_chars)
        ids: list[str] = []
        if offered:
            result = await assistant.select(inquiry.query, offered, max_sources, inquiry.usage, files=inquiry.files)
            ids = list(dict.fromkeys(result.selected_source_ids))
        named = frozenset(ids)
        known = {entry.id for entry in index if entry.id in named}
        invented = [source_id for source_id in ids if source_id not in known]
        if invented:
            dropped = number_of(len(invented), "id that is in no index was", "ids that are in no index were")
            log.warning("select: %s dropped: %.200r", dropped, invented)
        chosen = tuple(source_id for source_id in ids if source_id in known)[:max_sources]
        inquiry.decisions["select"] = {"offered": len(offered), "selected": list(chosen)}
        log.info("select: %d of %d entries", len(chosen), len(offered))
        if not chosen and not inquiry.conversation.images and inquiry.toolset is None:
            return skipped(inquiry, Reason.NO_SOURCES)
        return inquiry._replace(selected=chosen)

    return selected


def load(library: Library) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Read what was selected. A source that cannot be read is left out; when none can be, the inquiry ends."""

    async def loaded(inquiry: Inquiry) -> Inquiry | Outcome:
        sources: list[Source] = []
        for source_id in inquiry.selected:
            try:
                sources.append(await library.load(source_id))
            except SourceUnavailable as error:
                log.warning("load: left out: %s", error)
        inquiry.decisions["load"] = {"loaded": [source.id for source in sources]}
        log.info("load: %d of %d sources", len(sources), len(inquiry.selected))
        if inquiry.selected and not sources:
            return skipped(inquiry, Reason.SOURCES_UNAVAILABLE)
        return inquiry._replace(sources=tuple(sources))

    return loaded


EARLIER = 3
"""Questions and answers that a follow-up may be understood from."""


def announce(lookup: Lookup, *, public: bool) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Say which files there are before anything is decided. Waits for none of them.

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
    """Wait for files that are still being read; then only tools with something in them are offered."""
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


def generate(
    assistant: Assistant, max_chars: int, require_citations: bool
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Draft an answer and check its length, then its citations, then its links.

    An answer over `max_chars` is requested once more. Citations of what was not loaded are dropped. With file tools,
    quotations and line references that nothing supports are marked. Links that neither a source, nor the team, nor the
    asker has given are removed.
    """

    async def generated(inquiry: Inquiry) -> Inquiry | Outcome:
        answer = text_of(await ask(inquiry, shorten=False))
        if answer is not None and len(answer[0]) > max_chars:
            log.info("generate: %d characters, asking for %d", len(answer[0]), max_chars)
            answer = text_of(await ask(inquiry, shorten=True))
        if answer is None:
            inquiry.decisions["generate"] = {"answer": False}
            return skipped(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        text, named = answer
        if len(text) > max_chars:
            inquiry.decisions["generate"] = {"answer": True, "characters": len(text)}
            return skipped(inquiry, Reason.TOO_LONG)
        citations = tuple(keep_citations(named, [source.id for source in inquiry.sources]))
        if inquiry.toolset is not None:
            citations += tuple(inquiry.toolset.citations(each for each in named if each.strip() not in citations))
            quotable = [source.text for source in inquiry.sources] + [turn.text for turn in inquiry.conversation.turns]
            text = inquiry.toolset.checked(text, quotable)
        inquiry.decisions["generate"] = {"answer": True, "characters": len(text), "citations": list(citations)}
        if require_citations and inquiry.read_sources and not citations:
            return skipped(inquiry, Reason.NO_CITATION)
        draft = remove_foreign_links(text, linkable_texts(inquiry.sources, inquiry.conversation))
        if not draft.strip():
            return skipped(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        return inquiry._replace(draft=draft, citations=citations)

    async def ask(inquiry: Inquiry, *, shorten: bool) -> AnswerResult:
        return await assistant.generate(
            inquiry.conversation,
            inquiry.query,
            inquiry.sources,
            inquiry.usage,
            max_chars=max_chars,
            shorten=shorten,
            toolset=inquiry.toolset,
        )

    return generated


def text_of(result: AnswerResult) -> tuple[str, list[str]] | None:
    """The answer and its citations; None for one that is null, blank, or says "null"."""
    text = (result.answer or "").strip()
    return None if not text or text.lower() == "null" else (text, result.citations)


def verify(assistant: Assistant) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Reject a draft that is not good enough to post."""

    async def verified(inquiry: Inquiry) -> Inquiry | Outcome:
        result = await assistant.verify(inquiry.conversation, inquiry.draft, inquiry.read_sources, inquiry.usage)
        inquiry.decisions["verify"] = {"good_enough": result.is_good_enough, "issues": result.issues}
        log.info("verify: good_enough=%s issues=%d", result.is_good_enough, len(result.issues))
        return inquiry if result.is_good_enough else skipped(inquiry, Reason.REJECTED)

    return verified
