"""Point to pages where there is no answer, and add links to an answer. Nobody is sent the same text twice in a day."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clock import DAY, now
from model.conversations import ShownPair
from model.outcomes import OutcomeKind, Reason
from model.source_ids import owner_of
from services.assistant import (
    Unanswered,
    is_team_answer,
    is_worth_showing,
    linkable_hit_texts,
    nothing_found,
    pointers,
    skip_outcome,
)
from services.conversations import in_language, phrases
from services.search import Level, best_passage, language_of

if TYPE_CHECKING:
    from model.outcomes import Outcome
    from services.assistant import (
        Addresses,
        Inquiry,
    )
    from services.knowledge import Search
    from services.search import Hit, StoredPassage

log = logging.getLogger(__name__)


_REMEMBERED = 10_000


class RecentReplies:
    """Remembers which texts were sent to which person, as hashes, for a day and in bounded memory."""

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[int, bytes], float] = OrderedDict()

    def remember(self, person_id: int, text: str, at: float) -> None:
        """Remember that a person was sent `text`."""
        key = _key(person_id, text)
        self._sent.pop(key, None)
        self._sent[key] = at
        while len(self._sent) > _REMEMBERED or at - next(iter(self._sent.values())) >= DAY:
            self._sent.popitem(last=False)

    def was_sent(self, person_id: int, text: str, at: float) -> bool:
        """Return True if a person was sent `text` within the last day."""
        last = self._sent.get(_key(person_id, text))
        return last is not None and at - last < DAY


def _key(person_id: int, text: str) -> tuple[int, bytes]:
    return person_id, hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRules:
    """When the bot says where to look although it has no answer.

    Attributes:
        when_unsure: whether it points if nobody has addressed it; `by_channel`: exceptions by channel id.
        reply_language: of its own sentences: `question`, or the code of a fixed language.
        out_of_scope_hint: where to ask about other things, in the operator's words.
    """

    when_unsure: bool = False
    by_channel: Mapping[int, bool] = field(default_factory=dict[int, bool])
    reply_language: str = "question"
    out_of_scope_hint: str = ""


def point(
    search: Search, recent_replies: RecentReplies, addresses: Addresses, rules: PointRules
) -> Callable[[Unanswered], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Give an unanswered inquiry a draft that names the best pages: always if the bot was addressed, else if the
    operator wants that and a page resembles the question. If none does, say so to an asker who addressed the bot.
    Nobody is sent the same text twice within a day.
    """

    async def pointed(item: Unanswered) -> Inquiry | Outcome:
        inquiry, query = item.inquiry, item.inquiry.query or item.inquiry.request
        found = await search.find(query)
        wanted = rules.by_channel.get(inquiry.part.place.channel_id, rules.when_unsure)
        may_help = found.level is not Level.SILENCE
        inquiry.decisions["point"] = {"confidence": round(found.confidence, 2), "level": str(found.level)}
        if not inquiry.addressed and not (wanted and may_help):
            unsure = found.level is Level.POINT or item.reason is Reason.UNSURE
            return skip_outcome(inquiry, Reason.UNSURE if unsure and not inquiry.usage.calls else item.reason)
        say = phrases(in_language(rules.reply_language, language_of(query)))
        if is_worth_showing(found):
            text, named = pointers(found, query, say, addresses)
        else:
            text, named = nothing_found(found, say, addresses, rules.out_of_scope_hint)
        trusted = [rules.out_of_scope_hint, *linkable_hit_texts(found, addresses)]
        named_ids, pairs = [each.source_id for each in named], pairs_of(named)
        drafted = inquiry.with_draft(text, trusted, named_ids, level=Level.POINT, shown_pairs=pairs)
        if recent_replies.was_sent(inquiry.part.author.id, drafted.draft, now()):
            return skip_outcome(inquiry, Reason.UNSURE)
        log.info("point: to %d pages", len(named))
        return drafted

    return pointed


def add_links(
    search: Search, recent_replies: RecentReplies, addresses: Addresses
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Unanswered]]:
    """Add links to the sections that an answer is from. A quote that the person was sent within a day is no answer."""

    async def with_links(inquiry: Inquiry) -> Inquiry | Unanswered:
        # A model words each answer anew; quotes are the same each time.
        if not inquiry.usage.calls and recent_replies.was_sent(inquiry.part.author.id, inquiry.draft, now()):
            log.info("generate: the same answer was given to the same person before")
            return Unanswered(inquiry._replace(draft="", citations=()), Reason.UNSURE)
        hits = (await search.find(inquiry.query)).hits
        if not inquiry.usage.calls:  # the quotes were chosen in this order
            hits = await search.rerank([hit for hit in hits if hit.passage.quotable], inquiry.query)
        return with_shown(inquiry, hits)

    def with_shown(inquiry: Inquiry, hits: Sequence[Hit]) -> Inquiry:
        """Add the addresses of cited conversations, or else of fitting sections, for the sources that are shown; and
        which conversations these are.
        """
        quoted = [
            (source_id, addresses.address_of(source_id, anchor=pair_id)) for source_id, pair_id in inquiry.cited_pairs
        ]
        links, pairs = list[str | None](), [ShownPair(owner_of(each), pair_id) for each, pair_id in inquiry.cited_pairs]
        for source_id in inquiry.shown_sources:
            own = [address for cited_id, address in quoted if cited_id == source_id and address]
            if own:
                links += own
            else:
                best = best_passage(source_id, hits)
                links.append(addresses.section_address(best))
                pairs += pairs_of([best])
        return inquiry._replace(
            links=tuple(dict.fromkeys(filter(None, links))), shown_pairs=tuple(dict.fromkeys(pairs))
        )

    return with_links


def pairs_of(passages: Iterable[StoredPassage]) -> tuple[ShownPair, ...]:
    """Return the conversations of the team that some passages are from."""
    of_team = (each for each in passages if is_team_answer(each) and each.anchor)
    return tuple(ShownPair(owner_of(each.source_id), each.anchor) for each in of_team)


def remember_replies(
    reply: Callable[[Inquiry], Coroutine[Any, Any, Outcome]], recent_replies: RecentReplies
) -> Callable[[Inquiry], Coroutine[Any, Any, Outcome]]:
    """Wrap the step `reply`, so that `recent_replies` remembers each posted draft as it was before later steps changed
    it: `point` and `add_links` compare such drafts.
    """

    async def replied(inquiry: Inquiry) -> Outcome:
        outcome = await reply(inquiry)
        if outcome.result is OutcomeKind.REPLIED:
            recent_replies.remember(inquiry.part.author.id, inquiry.first_draft, now())
        return outcome

    return replied
