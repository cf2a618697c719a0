"""The step `approve`: keeps an answer for a person to decide about, where the operator wants that."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clock import DAY, now
from model.outcomes import Approval, OutcomeKind, Reason, recordable_sources
from model.source_ids import is_topic
from services.assistant import line_that_asks, links_block, outcome_of
from services.knowledge import SourceUnavailable, pair_ids

if TYPE_CHECKING:
    from model.outcomes import Outcome
    from services.assistant import Inquiry
    from services.conversations import Draft, Drafts, InFlight
    from services.knowledge import Library, Search
    from services.search import SearchResult

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRules:
    """Which answers wait for a person.

    Attributes:
        approval: of a server; `by_channel`: exceptions by channel id.
        min_confidence: with `unsure`, answers wait if the search is less confident, or not `is_sure` of all of them.
        seconds: how long an answer waits.
        review_channel_id: where people decide; 0: nowhere, as nothing waits.
        is_public: returns True if what is said in a place may become knowledge of the team.
    """

    approval: Approval = "off"
    by_channel: Mapping[int, Approval] = field(default_factory=dict[int, Approval])
    min_confidence: float = 0.8
    seconds: float = DAY
    review_channel_id: int = 0
    is_public: Callable[[int], bool] = lambda _place_id: True

    @property
    def is_on(self) -> bool:
        return {self.approval, *self.by_channel.values()} != {"off"}


def is_from_team(sources: Iterable[str]) -> bool:
    """Return True if one of the sources is a topic of the team."""
    return any(map(is_topic, sources))


def is_sure(inquiry: Inquiry, found: SearchResult) -> bool:
    """Return True if the confidence of the search is about all that the answer may be made of: it cites pages that rank
    first, and nothing else; no topic of the team, file or runbook was read for it.
    """
    looked_up = inquiry.toolset is not None and inquiry.toolset.has_found
    cites_pages = bool(inquiry.citations) and found.judged_pages.issuperset(inquiry.citations)
    return cites_pages and not looked_up and not is_from_team(source.id for source in inquiry.sources)


def shown_in(inquiry: Inquiry) -> tuple[tuple[int, int, str], ...]:
    """Return the messages that an answer was made with, but those of the asker and of bots, as in `Draft.shown`."""
    places = {
        each.id: each.channel_id
        for each in inquiry.messages
        if each.author.id != inquiry.part.author.id and not each.author.is_bot
    }
    turns = (turn for turn in inquiry.conversation.turns if turn.message_id in places)
    return tuple((places[turn.message_id], turn.message_id, digest_of(turn.text)) for turn in turns)


def digest_of(text: str) -> str:
    """Return a hash of a text, which tells whether it has changed and not what it says."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


async def pairs_in(library: Library, source_ids: Iterable[str]) -> set[tuple[str, str]]:
    """Return the conversations that topics of the team hold now, as in `Inquiry.cited_pairs`."""
    found = set[tuple[str, str]]()
    for source_id in source_ids:
        with suppress(SourceUnavailable):
            found.update((source_id, each) for each in pair_ids((await library.load(source_id)).text))
    return found


def require_approval(
    search: Search, drafts: Drafts, in_flight: InFlight, rules: ApprovalRules, library: Library | None = None
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Pass an answer that needs nobody's approval. Store any other as a draft, and end its inquiry as held.

        --q1----q2-----|      q2 is answered from a topic of the team
        [ approve      ]
        --q1----h2-----|      h2: the draft is on the disk

    What makes the answer unnecessary ends the draft from now on, and no longer the inquiry. `library`: in which the
    topics of the team are that it is from. Raises OSError: the draft cannot be stored; WorkCancelled: somebody whose
    words may stand in it was forgotten meanwhile.
    """

    async def hold_or_pass(inquiry: Inquiry) -> Inquiry | Outcome:
        part = inquiry.part
        approval = rules.by_channel.get(part.place.channel_id, rules.approval)
        if approval == "off":
            return inquiry
        found = await search.find(inquiry.query or inquiry.request)
        confidence = round(found.confidence if is_from_team(inquiry.shown_sources) else found.documents_confidence, 2)
        is_held = approval == "all" or confidence < rules.min_confidence or not is_sure(inquiry, found)
        inquiry.decisions["approve"] = {"held": is_held, "confidence": confidence}
        if not is_held:
            return inquiry
        if inquiry.token.error is not None:
            raise inquiry.token.error
        inquiry.token.commit()
        text = inquiry.draft + links_block(inquiry.links)
        if drafts.folder is not None:
            pairs = await pairs_behind(inquiry, library)
            await drafts.hold(make_draft(inquiry, text, confidence, pairs, rules), part, in_flight)
        log.info("approve: held, confidence %.2f", confidence)
        return outcome_of(inquiry, OutcomeKind.HELD, Reason.HELD_FOR_APPROVAL, reply_text=text)

    return hold_or_pass


async def pairs_behind(inquiry: Inquiry, library: Library | None) -> set[tuple[str, str]]:
    """Return the conversations of the team that an answer is from: those that it cites, or all that its topics hold."""
    topics = [each for each in inquiry.shown_sources if is_topic(each)]
    pairs = set[tuple[str, str]]() if library is None else await pairs_in(library, topics)
    return pairs.intersection(inquiry.cited_pairs) or pairs


def make_draft(
    inquiry: Inquiry, text: str, confidence: float, pairs: Iterable[tuple[str, str]], rules: ApprovalRules
) -> Draft:
    # Some 40 ms that answers without approval do without.
    from services.conversations import Draft, StartedReply  # noqa: PLC0415
    from services.discord import thread_name  # noqa: PLC0415
    from services.telemetry import QUESTION_CHARS  # noqa: PLC0415

    part, asked, at = inquiry.part, inquiry.conversation.asked_text, now()
    texts = {turn.message_id: turn.text for turn in inquiry.conversation.turns if turn.asked_now}
    opens_thread = inquiry.reply_place_id is None
    return Draft(
        reply=StartedReply.to(
            part,
            inquiry.case_id,
            question=asked[:QUESTION_CHARS],
            sources=recordable_sources(inquiry.shown_sources),
            people=inquiry.people,
            shown_pairs=inquiry.shown_pairs,
        ),
        channel_id=part.place.channel_id,
        thread_name=thread_name(line_that_asks(asked)) if opens_thread else "",
        text=text,
        level=str(inquiry.level),
        confidence=confidence,
        held_at=at,
        until=at + rules.seconds,
        is_public=rules.is_public(part.place.id),
        review_channel_id=rules.review_channel_id,
        asked_texts=tuple(texts.get(each, "") for each in part.message_ids),
        pairs=tuple(sorted(pairs)),
        shown=shown_in(inquiry),
        documents=() if inquiry.toolset is None else tuple(sorted(inquiry.toolset.found_documents())),
    )
