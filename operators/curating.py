"""The steps of curating team knowledge: classify a captured conversation and integrate it into its topic (`curate`),
and describe a topic (`describe_topics`). They touch no Observable.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from clock import now, rfc3339
from dataflow.metering import Gauge, measure_item
from model.source_ids import topic_id
from operators.step import is_expected
from services.assistant import Curator, Describer, IntegrationResult, NotDescribed
from services.conversations import PersonalWork, Withdrawn
from services.knowledge import make_harmless, topic_name
from services.llm import LLMError, PromptRefused, TimedOut, Unavailable, UnknownRequest, Usage
from services.team import (
    Action,
    Decision,
    LibraryUnwritable,
    Pair,
    TeamLibrary,
    Topic,
    allowed_remarks,
    allowed_removals,
    may_replace,
    merge_decisions,
    of_asker_and_team,
    pieces_by_topic,
    replaced_by,
)
from services.telemetry import current_people

MAX_TRIES = 3  # of one pair; then its decision is `failed`
REASON_CHARS = 300
TRANSIENT_ERRORS = (Unavailable, TimedOut, UnknownRequest, OSError, LibraryUnwritable, Withdrawn)
"""Errors for which no pair is to blame: the endpoint or the disk failed, a replayed file lacks the request, or
somebody is being forgotten. The pair stays undecided, and work on pairs stops until later.
"""

FIRST_IN_TOPIC = IntegrationResult(skip=False, remove_ids=[])  # there is nothing to compare with

log = logging.getLogger(__name__)

R = TypeVar("R")


@contextmanager
def showing(pairs: Iterable[Pair], personal_work: PersonalWork | None) -> Generator[None]:
    """Note during the block that a model is shown the texts of `pairs`: in the log context, and in `personal_work`.

    `personal_work` stops the block when one of the writers withdraws their texts. Raises Withdrawn: that has happened,
    or one of them is being forgotten.
    """
    people = {user_id for pair in pairs for user_id in pair.writer_ids}
    token = current_people.set(people)
    try:
        if personal_work is None:
            yield
        else:
            with personal_work.handling(people, archived=True):
                yield
    finally:
        current_people.reset(token)


class _NothingLeft(Exception):
    """The model refuses a pair, and nothing is left to ask again with."""


def curate(
    library: TeamLibrary,
    curator: Curator,
    usage: Usage,
    gauge: Gauge | None = None,
    time: Callable[[], str] = lambda: rfc3339(now()),
    personal_work: PersonalWork | None = None,
) -> Callable[[Pair], Coroutine[Any, Any, Decision]]:
    """Classify a pair and integrate it into its topic. `library` is only read: the caller writes the decision before
    the next pair comes. `time`: returns the time of a decision, RFC 3339, UTC. `personal_work`: as for `showing`.

    A prompt that the model refuses is tried once more, with the turns of the first asker and the team's turns that are
    certainly to that user. If that works, only these turns are filed. If there are none, the pair is skipped. An
    unusable answer, or a request refused for another reason, costs the pair a try; tries add up over several calls.
    After three, the decision is `failed`. Pairs may come in any order. Raises the errors of `TRANSIENT_ERRORS`, which
    cost no try.

        pair ── classify ── topic ── integrate ── added, or skipped
                     └──── skipped
    """
    return _PairCurator(library, curator, usage, gauge, time, personal_work).curate_pair


class _PairCurator:
    """Curates pairs, as `curate` says."""

    def __init__(
        self,
        library: TeamLibrary,
        curator: Curator,
        usage: Usage,
        gauge: Gauge | None,
        time: Callable[[], str],
        personal_work: PersonalWork | None,
    ) -> None:
        self._library = library
        self._curator = curator
        self._usage = usage
        self._gauge = gauge
        self._time = time
        self._personal_work = personal_work
        self._tries = Counter[str]()

    async def curate_pair(self, pair: Pair) -> Decision:
        while True:
            try:
                found = await self._classify_pair(pair)
                if isinstance(found, Decision):
                    decision = found
                else:
                    decided = [await self._integrate_pair(part, topic) for topic, part in found.items()]
                    decision = merge_decisions(pair, found, decided)
            except TRANSIENT_ERRORS:
                raise
            except _NothingLeft:
                reason = "the model refuses it, and nothing of the team is certainly to the first user"
                decision = Decision(pair.id, self._time(), Action.SKIPPED, self._curator.actor, reason=reason)
            except Exception as error:
                self._tries[pair.id] += 1
                if not is_expected(error):  # a bug of ours must not hold up the other pairs
                    log.exception("%s could not be curated", pair.id)
                if self._tries[pair.id] < MAX_TRIES:
                    continue
                reason = _reason(error)[:REASON_CHARS]
                log.error("%s failed %d times and is left for --regen: %s", pair.id, MAX_TRIES, reason)  # noqa: TRY400 (for the operator)
                decision = Decision(pair.id, self._time(), Action.FAILED, self._curator.actor, reason=reason)
            del self._tries[pair.id]
            return decision

    async def _classify_pair(self, pair: Pair) -> dict[str, Pair] | Decision:
        """Return the pair, or its pieces, by the name of the topic, old or new; or the decision to skip the pair."""
        index = self._library.index()
        try:
            result, [shown] = await self._ask_model(
                "classify", [pair], lambda pairs: self._curator.classify(pairs[0], index, self._usage)
            )
        except LLMError as error:
            log.warning("llm_classification_failed %s: %s: %s", pair.id, type(error).__name__, error)
            raise
        topic = "" if result.skip else topic_name(result.topic_name)
        pieces = () if result.skip else result.pieces or ()
        by_topic = pieces_by_topic(pair, [(each.message_ids, topic_name(each.topic_name)) for each in pieces])
        if topic and not by_topic:
            by_topic = {topic: shown}
        log.info("topic_classified %s: %s", pair.id, ", ".join(by_topic) or "skipped")
        if not result.skip and not by_topic:
            log.warning("%s: neither a topic nor a reason to skip was given; it is left out", pair.id)
        reason = "classified as not worth keeping" if result.skip else "no topic was named"
        return by_topic or Decision(pair.id, self._time(), Action.SKIPPED, self._curator.actor, reason=reason)

    async def _integrate_pair(self, pair: Pair, topic: str) -> Decision:
        """Return whether the pair is added to its topic, and which pairs there it makes obsolete."""
        # Earlier captures of the conversation are not compared: the pair replaces them once it is added.
        existing = self._library.pairs_of_topic(topic)
        others = [each for each in existing if each.conversation_id != pair.conversation_id]
        result = FIRST_IN_TOPIC
        try:
            if others:
                result, _ = await self._ask_model(
                    "integrate",
                    [pair, *others],
                    lambda pairs: self._curator.integrate(pairs[0], topic, pairs[1:], self._usage),
                )
        except LLMError as error:
            log.warning("llm_integration_failed %s: %s: %s", pair.id, type(error).__name__, error)
            raise
        replaces = bool(result.remove_ids or result.superseded_parts)
        may_replace_others = may_replace(pair)
        if replaces and not may_replace_others:
            log.info("%s replaces nothing: it is doubted, or it is not certain whom the team answers", pair.id)
        removed = allowed_removals(pair, existing, result.remove_ids if may_replace_others else ())
        at = self._time()
        if result.skip:
            reason = "the topic says the same"
            return Decision(pair.id, at, Action.SKIPPED, self._curator.actor, topic, remove_ids=removed, reason=reason)
        return Decision(
            pair.id,
            at,
            Action.ADDED,
            self._curator.actor,
            topic,
            remove_ids=removed,
            replaces=replaced_by(pair, existing),
            superseded_parts=allowed_remarks(
                pair, existing, removed, result.superseded_parts if may_replace_others else ()
            ),
            conflicts=allowed_remarks(pair, existing, removed, result.conflicts),
        )

    async def _ask_model(
        self, step: str, pairs: Sequence[Pair], ask: Callable[[Sequence[Pair]], Awaitable[R]]
    ) -> tuple[R, Sequence[Pair]]:
        """Return the model's answer, and the pairs as they were shown to it."""
        try:
            with measure_item(self._gauge, step), showing(pairs, self._personal_work):
                return await ask(pairs), pairs
        except PromptRefused as error:
            first, *others = map(of_asker_and_team, pairs)
            if first is None:
                raise _NothingLeft from error
            left = [first, *filter(None, others)]
            if left == list(pairs):
                raise
            log.info("%s: asked again without what others have said: %s", pairs[0].id, error)
        with measure_item(self._gauge, step), showing(left, self._personal_work):
            return await ask(left), left


def _reason(error: Exception) -> str:
    """Return the reason for a decision, from the error. It quotes nobody, since decisions are kept when people are
    forgotten (Pitfall 49).
    """
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, LLMError) else kind


def describe_topics(
    describer: Describer, seconds: float, gauge: Gauge | None = None, personal_work: PersonalWork | None = None
) -> Callable[[Topic], Coroutine[Any, Any, str | None]]:
    """Describe a topic; None if there is no description.

    topic --1--2--3--|
    text  ---s--x--s-|      x: the answer cannot be used, which is logged

    `seconds`: for one description, retries included. A topic is tried three times, and then no more until it changes.
    `personal_work`: as for `showing`. Raises the errors of `TRANSIENT_ERRORS`, which do not count.
    """
    tries: Counter[tuple[str, int]] = Counter()  # by topic and content

    async def describe_topic(topic: Topic) -> str | None:
        version = topic.name, hash(topic.text)
        if tries[version] >= MAX_TRIES:
            return None
        try:
            with measure_item(gauge, "describe"), showing(topic.pairs, personal_work):
                written = await describer.summarize_for_kb_index(topic_id(topic.name), topic.text, seconds)
            if not (summary := make_harmless(written)):
                raise NotDescribed("the description is empty")  # noqa: TRY301 (logged and counted below)
        except TRANSIENT_ERRORS:
            raise
        except Exception as error:
            tries[version] += 1
            bug = None if is_expected(error) else error
            log.warning("topic %s is not described: %s: %s", topic.name, type(error).__name__, error, exc_info=bug)
            return None
        return summary

    return describe_topic
