"""When files are deleted: with their thread, with their message, or when no answer opens a thread for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from model.events import Deleted, Edited, Event, GuildGone, PlaceGone, PlaceSeen
from model.outcomes import Outcome, OutcomeKind
from operators import delay_unless_replaced, only, spread
from operators.discard import Closing, Discarding, Dropping
from services.conversations import History
from services.documents import Cases, is_closed
from streams.wiring import EvidenceParts, EvidenceRules


def discardings(
    events: Observable[Event], outcomes: Observable[Outcome], parts: EvidenceParts, rules: EvidenceRules
) -> Observable[Discarding]:
    """What is to be deleted. Work on it is called off at once, before its turn comes.

    places    --a--b--c------------|      a was archived, b locked, c reopened a
    outcomes  -----------o---------|      o: no answer, so that its thread never comes to be
    deleted   --------------m------|
    discarded -----b-----o--m------|
    """
    cases, history = parts.cases, parts.history
    ended = events.pipe(
        only(PlaceSeen, PlaceGone, GuildGone),
        spread(closings(cases, history, rules)),
        delay_unless_replaced(lambda closing: closing.case_id, lambda closing: closing.in_seconds),
    )
    gone: Observable[Discarding] = rx.merge(
        ended,
        events.pipe(only(Deleted, Edited), spread(droppings(cases))),
        outcomes.pipe(spread(unanswered(cases, history))),
    )
    return gone.pipe(ops.do_action(lambda item: item.call_off(cases)))


def closings(
    cases: Cases, history: History, rules: EvidenceRules
) -> Callable[[PlaceSeen | PlaceGone | GuildGone], Iterator[Closing]]:
    """The threads with files that an event closes, at once or after a while, or opens again."""

    def of(event: PlaceSeen | PlaceGone | GuildGone) -> Iterator[Closing]:
        match event:
            case PlaceSeen(at=at, place=place):
                if not cases.has_files(place.id):
                    return
                if is_closed(place, rules.solved_tags):
                    yield Closing(place.id, may_reopen=True)
                elif place.archived:
                    since = at if place.archived_at is None else place.archived_at
                    yield Closing(place.id, max(0.0, since + rules.grace_seconds - at), may_reopen=True)
                else:
                    yield Closing(place.id, None)
            case PlaceGone(place_id=gone):
                yield from (Closing(each) for each in cases if gone in {each, history.place(each).parent_id})
            case GuildGone(guild_id=guild_id):
                yield from (Closing(each, guild_id=guild_id) for each in cases)

    return of


def reopenings(events: Observable[Event], cases: Cases, rules: EvidenceRules) -> Observable[int]:
    """The threads that are open again after their files were deleted, until their people have been told.

    places    --a--b----c--d-------|      b was locked, with files; c and d are b again, no longer locked
    reopened  ----------b----------|
    """

    def of(event: PlaceSeen) -> Iterator[int]:
        place = event.place
        if cases.gone.is_unannounced(place.id) and not place.archived and not is_closed(place, rules.solved_tags):
            yield place.id

    return events.pipe(only(PlaceSeen), spread(of))


def droppings(cases: Cases) -> Callable[[Deleted | Edited], Iterator[Dropping]]:
    """Deleted messages that files came from, and edited ones that lost attachments."""

    def of(event: Deleted | Edited) -> Iterator[Dropping]:
        kept: frozenset[int] = frozenset()
        if isinstance(event, Deleted):
            ids = frozenset(event.message_ids)
        elif event.attachments is not None:
            ids, kept = frozenset({event.message_id}), frozenset(file.id for file in event.attachments)
        else:
            return
        meant = {event.channel_id, *ids, *cases.with_files_of(ids)}
        yield from (Dropping(each, ids, kept) for each in sorted(meant) if cases.has_files(each))

    return of


def unanswered(cases: Cases, history: History) -> Callable[[Outcome], Iterator[Closing]]:
    """The threads that were to be opened for an answer, and never will be."""

    def of(outcome: Outcome) -> Iterator[Closing]:
        part = outcome.part
        if part.place.is_thread or outcome.result is OutcomeKind.REPLIED:
            return
        if cases.has_files(part.last.id) and not history.knows(part.last.id):
            yield Closing(part.last.id)

    return of
