"""Describe one topic (SPEC 6, "Team index")."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from operators.step import Gauge, expected, in_flight
from operators.study import NOT_NOW, TRIES
from services.assistant import Describer, NotDescribed
from services.knowledge import harmless
from services.team import Topic

log = logging.getLogger(__name__)


def describing(
    describer: Describer, seconds: float, gauge: Gauge | None = None
) -> Callable[[Topic], Coroutine[Any, Any, str | None]]:
    """Describe a topic; None if there is no description.

    topic --1--2--3--|
    text  ---s--x--s-|      x: the answer cannot be used, and is told in the log

    `seconds`: for one description, retries included. What cannot be described is asked for up to three times, and then
    no more until the topic changes. Raises those of `NOT_NOW`, which do not count.
    """
    tries: Counter[tuple[str, int]] = Counter()  # by topic and content

    async def described(topic: Topic) -> str | None:
        known = topic.name, hash(topic.text)
        if tries[known] >= TRIES:
            return None
        try:
            with in_flight(gauge, "describe"):
                written = await describer.summarize_for_kb_index(f"team:{topic.file}", topic.text, seconds)
            if not (summary := harmless(written)):
                raise NotDescribed("the description is empty")  # noqa: TRY301 (logged and counted below)
        except NOT_NOW:
            raise
        except Exception as error:
            tries[known] += 1
            bug = None if expected(error) else error
            log.warning("topic %s is not described: %s: %s", topic.name, type(error).__name__, error, exc_info=bug)
            return None
        return summary

    return described
