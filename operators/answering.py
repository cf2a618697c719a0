"""The steps of an answer: the gate, the sources, the draft, and a second look at it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from clock import now
from model.outcomes import Outcome, Reason
from operators.speculating import guess_of, under_way
from operators.step import TookTooLong
from services.assistant import (
    Addresses,
    AnswerResult,
    Assistant,
    Inquiry,
    Offered,
    Unanswered,
    cited_in,
    linkable_texts,
    remove_foreign_links,
    resolve_ids,
    skipped,
    trusted_text,
)
from services.knowledge import IndexEntry, Library, Search, Source, SourceUnavailable, excerpts
from services.llm import Limiter
from services.search import Found, Kept, Level
from services.telemetry import number_of

RANKED = 5
"""So many pages that the search found are noted, best first, for whoever asks why."""

log = logging.getLogger(__name__)


def gate(
    assistant: Assistant,
    budget: Limiter,
    chain_seconds: float,
    guess: Callable[[Inquiry], Coroutine[Any, Any, Inquiry | None]] | None = None,
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered | Outcome]]:
    """Pass answerable questions, with the query to search for.

    Here the chain's `chain_seconds` begin, and it is counted against the budget, which may be kept elsewhere: what that
    takes is part of them. `guess`: is made while the gate decides.
    """

    async def gated(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        user_id, at = inquiry.part.author.id, now()
        inquiry.token.expire_in(chain_seconds, TookTooLong(f"the answer took longer than {chain_seconds:g} s"))
        exhausted = await budget.begin_chain(user_id, at)
        if exhausted is not None:
            inquiry.token.close()
            if budget.first_time(exhausted, user_id, at):
                log.warning("%s is used up: nothing is answered until there is room again", exhausted)
            return skipped(inquiry, Reason.BUDGET)
        if guess is None:
            return await decided(inquiry)
        async with under_way(guess(inquiry)) as guessing:
            item = await decided(inquiry)
            return item._replace(guess=await guess_of(guessing)) if isinstance(item, Inquiry) else item

    async def decided(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        result = await assistant.gate(
            inquiry.conversation, inquiry.usage, files=inquiry.files, addressed=inquiry.addressed
        )
        answerable = result.is_question and result.is_answerable
        inquiry.decisions["gate"] = {
            "question": result.is_question,
            "answerable": answerable,
            "reason": result.reason,
        }
        log.info("gate: answerable=%s reason=%r", answerable, result.reason)
        if not result.is_question:
            return skipped(inquiry, Reason.NOT_ANSWERABLE)
        asked = inquiry._replace(query=(result.rewrite_query or "").strip() or inquiry.request)
        return asked if answerable else Unanswered(asked, Reason.NOT_ANSWERABLE)

    return gated


def select(
    assistant: Assistant, library: Library, search: Search, max_sources: int, max_entries: int
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered | Outcome]]:
    """Choose at most `max_sources` sources from the index, of which the `max_entries` that rank best are offered.

    Ids that are not in the index are logged and dropped: only what is indexed can ever be loaded.
    """

    async def selected(inquiry: Inquiry) -> Inquiry | Unanswered:
        index = await library.index()
        found = await search.find(inquiry.query)
        offered = offered_of(index, found, max_entries)
        named: list[str] = []
        if offered:
            result = await assistant.select(
                inquiry.query, inquiry.request, offered, max_sources, inquiry.usage, files=inquiry.files
            )
            named = result.selected_source_ids
        known, invented = resolve_ids(named, [entry.id for entry in index])
        if invented:
            dropped = number_of(len(invented), "id that is in no index was", "ids that are in no index were")
            log.warning("select: %s dropped: %.200r", dropped, invented)
        chosen = _with_the_first(known[:max_sources], found) if inquiry.usage.calls else tuple(known[:max_sources])
        ranked = [(hit.source_id, round(hit.score, 2)) for hit in found.pages[:RANKED]]
        inquiry.decisions["select"] = {"offered": len(offered), "ranked": ranked, "selected": list(chosen)}
        log.info("select: %d of %d entries", len(chosen), len(offered))
        if not chosen and not inquiry.conversation.images and inquiry.toolset is None:
            return Unanswered(inquiry, Reason.NO_SOURCES)
        return inquiry._replace(selected=chosen)

    return selected


def _with_the_first(chosen: Sequence[str], found: Found) -> tuple[str, ...]:
    """What a model chose by descriptions, and the page that search ranks first by its text: a description does not say
    everything. Where the model chose nothing, only what is surely an answer.
    """
    wanted = found.level is Level.ANSWER or (bool(chosen) and found.level is Level.POINT)
    first = [found.hits[0].source_id] if found.hits and wanted else []
    return tuple(dict.fromkeys([*chosen, *first]))


def offered_of(index: Sequence[IndexEntry], found: Found, most: int) -> list[Offered]:
    """The entries that rank best, with the heading that fits, in the order of the index; all of a small index."""
    pages = {hit.source_id: hit.kept for hit in found.pages}
    kept = index
    if len(index) > most:
        ranks = {source_id: rank for rank, source_id in enumerate(pages)}
        best = sorted(index, key=lambda entry: ranks.get(entry.id, len(ranks)))[:most]
        chosen = {entry.id for entry in best}
        kept = [entry for entry in index if entry.id in chosen]
    return [Offered(entry.id, entry.description, _heading(pages.get(entry.id))) for entry in kept]


def _heading(kept: Kept | None) -> str:
    return "" if kept is None else " › ".join(head for head in kept.headings[-2:] if head)


def load(
    library: Library, search: Search, max_chars: int
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Read what was selected, at most `max_chars` characters together: short sources whole, of longer ones the outline
    and the passages that fit the query (`services.knowledge.excerpts`).

    A source that cannot be read is left out; when none can be, the inquiry ends.
    """

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
        return inquiry._replace(sources=tuple(await excerpts.within(sources, inquiry.query, search, max_chars)))

    return loaded


def generate(
    assistant: Assistant,
    max_chars: int,
    require_citations: bool,
    addresses: Addresses | None = None,
    finished: Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered]] | None = None,
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered | Outcome]]:
    """Draft an answer and check its length, then its citations, then its links.

    An answer over `max_chars` is requested once more. Citations of what was not loaded are dropped. With file tools,
    quotations and line references that nothing supports are marked. Links that neither a source, nor the team, nor the
    asker has given are removed. `addresses`: where the relative links of sources lead. `finished`: the last look at it.
    """
    published = addresses or Addresses()

    async def generated(inquiry: Inquiry) -> Inquiry | Unanswered | Outcome:
        answer = text_of(await ask(inquiry, shorten=False))
        if answer is not None and len(answer[0]) > max_chars:
            log.info("generate: %d characters, asking for %d", len(answer[0]), max_chars)
            answer = text_of(await ask(inquiry, shorten=True))
        if answer is None:
            inquiry.decisions["generate"] = {"answer": False}
            return Unanswered(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        text, named = answer
        if len(text) > max_chars:
            inquiry.decisions["generate"] = {"answer": True, "characters": len(text)}
            return skipped(inquiry, Reason.TOO_LONG)
        cited = cited_in(named, inquiry.sources)
        citations, unknown = cited.sources, cited.unknown
        if inquiry.toolset is not None:
            toolset = inquiry.toolset
            citations += tuple(toolset.citations(unknown))
            unknown = tuple(each for each in unknown if not toolset.citations([each]))
            quotable = [source.text for source in inquiry.sources] + [turn.text for turn in inquiry.conversation.turns]
            text = inquiry.toolset.checked(text, quotable)
        if unknown:
            log.warning("generate: citations of nothing that was given were dropped: %.200r", unknown)
        inquiry.decisions["generate"] = {"answer": True, "characters": len(text), "citations": list(citations)}
        if require_citations and inquiry.read_sources and not citations:
            return skipped(inquiry, Reason.NO_CITATION)
        led_to = (
            [published.absolute(trusted_text(source), source.id) for source in inquiry.sources] if "](" in text else []
        )
        draft = remove_foreign_links(text, [*linkable_texts(inquiry.sources, inquiry.conversation), *led_to])
        if not draft.strip():
            return Unanswered(inquiry, Reason.NO_ANSWER_IN_SOURCES)
        drafted = inquiry._replace(draft=draft, citations=citations, cited_pairs=cited.pairs)
        return drafted if finished is None else await finished(drafted)

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
        if inquiry.level is Level.POINT:
            return inquiry  # it states nothing
        result = await assistant.verify(inquiry.conversation, inquiry.draft, inquiry.read_sources, inquiry.usage)
        inquiry.decisions["verify"] = {"good_enough": result.is_good_enough, "issues": result.issues}
        log.info("verify: good_enough=%s issues=%d", result.is_good_enough, len(result.issues))
        return inquiry if result.is_good_enough else skipped(inquiry, Reason.REJECTED)

    return verified
