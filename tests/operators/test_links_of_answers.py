"""Which links of a draft stay."""

from __future__ import annotations

from typing import Any

import pytest

from model.conversations import Conversation, Role, Turn
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from operators.answering import generate
from services.assistant import Addresses, AnswerResult, Inquiry
from services.knowledge import Source
from services.llm import Usage

SAID = "See [the keys](<https://docs.example/guide/keys/#f9>) and [others](<https://docs.example/made-up/>)."


class Quoting:
    async def generate(self, *_: Any, **__: Any) -> AnswerResult:
        return AnswerResult(answer=SAID, citations=["kb:guide/cache.md"])


def asked_with(source: Source) -> Inquiry:
    message = Message(10, 11, Author(1, "ada"), "Which keys?", 1.0)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)
    inquiry = Inquiry(part, True, Usage(), {}, query=message.text, sources=(source,))
    return inquiry._replace(conversation=Conversation((Turn(Role.USER, message.text, asked_now=True),)))


async def test_relative_links_of_sources_stay_as_addresses_and_made_up_ones_do_not() -> None:
    inquiry = asked_with(Source("kb:guide/cache.md", "As [the keys](keys.md#f9) say."))
    assistant: Any = Quoting()
    drafted = await generate(assistant, 1_900, False, Addresses({"": "https://docs.example"}))(inquiry)
    assert isinstance(drafted, Inquiry)
    assert drafted.draft == "See [the keys](<https://docs.example/guide/keys/#f9>) and others."
    unpublished = await generate(assistant, 1_900, False)(inquiry)
    assert isinstance(unpublished, Inquiry)
    assert unpublished.draft == "See the keys and others."


async def test_citations_of_nothing_that_was_given_are_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 51."""

    class Inventing:
        async def generate(self, *_: Any, **__: Any) -> AnswerResult:
            return AnswerResult(answer="So.", citations=["`qa_1`", "kb:made-up.md", "c7"])

    assistant: Any = Inventing()
    topic = Source("team:keys.txt", "--- QA ---\nid: qa_1\nUser: Which keys?\nTeam: F9.\n\n")
    drafted = await generate(assistant, 1_900, True)(asked_with(topic))
    assert isinstance(drafted, Inquiry)
    assert drafted.citations == ("team:keys.txt",)
    assert drafted.cited_pairs == (("team:keys.txt", "qa_1"),)
    assert "dropped: ('kb:made-up.md', 'c7')" in caplog.text
