from __future__ import annotations

import logging

import pytest

from operators.curating import describe_topics
from services.assistant.describing import NotDescribed
from services.conversations import PersonalWork, Withdrawn
from services.llm.endpoint import Unavailable
from services.team.topics import Topic
from tests.team import pair

THINGS = Topic("things", (pair(1),))


class Saying:
    """Implements `Describer`: says one thing after another; an exception is raised."""

    key = "key"

    def __init__(self, *said: str | Exception) -> None:
        self.said = list(said)
        self.asked: list[str] = []

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = text, timeout_seconds
        self.asked.append(source_id)
        said = self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


async def test_a_description_cannot_pass_for_entries_of_an_index() -> None:
    """Pitfall 20."""
    described = describe_topics(Saying("Fine.\n\nkb:secret.md\nAll of it."), 60)
    text = await described(THINGS)
    assert text is not None
    assert not any(line.startswith("kb:") or not line for line in text.splitlines())


async def test_what_cannot_be_used_is_told_and_asked_for_three_times(caplog: pytest.LogCaptureFixture) -> None:
    describer = Saying(NotDescribed("it is empty"), " \n", NotDescribed("it is empty"), "About others.")
    described = describe_topics(describer, 60)
    assert [await described(THINGS) for _ in range(5)] == [None] * 5
    assert describer.asked == ["team:things.txt"] * 3
    told = [message.removeprefix("topic things is not described: NotDescribed: ") for message in caplog.messages]
    assert told == ["it is empty", "the description is empty", "it is empty"]
    assert await described(THINGS.with_pair(pair(2))) == "About others."


async def test_an_endpoint_that_is_down_costs_no_try() -> None:
    described = describe_topics(Saying(*[Unavailable("down")] * 4, "About things."), 60)
    for _ in range(4):
        with pytest.raises(Unavailable):
            await described(THINGS)
    assert await described(THINGS) == "About things."


async def test_a_bug_is_told_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    assert await describe_topics(Saying(ZeroDivisionError("oh")), 60)(THINGS) is None
    assert "Traceback" in caplog.text


async def test_it_can_be_seen_that_a_topic_is_being_described(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[tuple[str, int]] = []
    await describe_topics(Saying("About things."), 60, lambda name, count: seen.append((name, count)))(THINGS)
    assert seen == [("describe", 1), ("describe", 0)]


async def test_a_topic_with_words_of_somebody_who_is_being_forgotten_waits() -> None:
    personal_work, describer = PersonalWork(), Saying("About things.")
    described = describe_topics(describer, 60, personal_work=personal_work)
    with personal_work.forgetting(THINGS.pairs[0].author_ids[0]), pytest.raises(Withdrawn):
        await described(THINGS)
    assert describer.asked == []
    assert await described(THINGS) == "About things."
