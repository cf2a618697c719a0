"""What the gate lets through, measured on invented messages."""

from __future__ import annotations

import pytest

from model.conversations import Conversation, Role, Turn
from services.assistant.answering import GatingResult
from services.llm.usage import Usage
from tests.services.assistant.extractive.lanternfish import (
    ANSWERABLE,
    INDEX,
    NOT_ANSWERABLE,
    UNANSWERED,
    Bookcase,
    assistant_over,
)


async def gate(*turns: Turn, addressed: bool = False) -> GatingResult:
    return await assistant_over(Bookcase()).gate(Conversation(turns), Usage(), addressed=addressed)


def asks(text: str) -> Turn:
    return Turn(Role.USER, text, asked_now=True)


def passed(result: GatingResult) -> bool:
    return result.is_question and result.is_answerable


async def test_it_finds_all_12_questions_and_lets_none_of_12_other_messages_through() -> None:
    found = [message for message in ANSWERABLE if passed(await gate(asks(message)))]
    false = [message for message in NOT_ANSWERABLE if passed(await gate(asks(message)))]
    assert (len(found), len(false)) == (12, 0)


async def test_a_question_about_something_else_is_a_question_but_not_answerable() -> None:
    for message in UNANSWERED[1:]:
        result = await gate(asks(message))
        assert (result.is_question, result.is_answerable) == (True, False)
        assert result.reason.startswith("No passage of the sources resembles it (0.")


async def test_a_question_that_stands_on_its_own_is_not_rewritten() -> None:
    assert (await gate(asks("how do I install this on windows?"))).rewrite_query is None


async def test_what_is_asked_in_several_messages_is_one_query() -> None:
    result = await gate(asks("hi"), asks("is there a way to turn off face recognition?"), asks("it is slow"))
    assert passed(result)
    assert result.rewrite_query == "hi\nis there a way to turn off face recognition?\nit is slow"


@pytest.mark.parametrize("follow_up", ["and on Windows?", "what about Windows", "thanks! and for Windows?"])
async def test_a_follow_up_is_read_together_with_what_was_asked_before(follow_up: str) -> None:
    earlier = Turn(Role.USER, "how do I install Lanternfish on Linux?")
    answer = Turn(Role.ASSISTANT, "Download the compose file.")
    result = await gate(earlier, answer, asks(follow_up))
    assert passed(result)
    assert result.rewrite_query == f"{follow_up}\nBefore: how do I install Lanternfish on Linux?"


async def test_thanks_after_an_answer_are_no_follow_up() -> None:
    result = await gate(
        Turn(Role.USER, "how do I install it?"), Turn(Role.ASSISTANT, "Like so."), asks("great, thanks!")
    )
    assert not result.is_question


async def test_a_question_that_is_answered_by_itself_is_not_read_together_with_another_one_before_it() -> None:
    """Who goes on in a channel may be at the next thing."""
    earlier = Turn(Role.USER, "how do I turn off face recognition?")
    result = await gate(earlier, asks("how can I restore a backup?"))
    assert passed(result)
    assert result.rewrite_query is None
    assert "kb:guides/backup.md" in result.reason


async def test_without_marked_turns_the_last_user_text_is_what_is_asked() -> None:
    turns = [Turn(Role.USER, "how do I install Lanternfish?"), Turn(Role.USER, "what about Windows")]
    result = await gate(*turns)
    assert passed(result)
    assert result.rewrite_query == "what about Windows\nBefore: how do I install Lanternfish?"


async def test_an_empty_index_answers_nothing() -> None:
    conversation = Conversation((asks("how do I install it?"),))
    assert not passed(await assistant_over(Bookcase((), ())).gate(conversation, Usage()))


async def test_in_an_index_of_one_entry_a_fitting_question_passes_and_another_does_not() -> None:
    assistant = assistant_over(Bookcase(INDEX[:1]))
    for message, expected in (("does transcoding use the GPU or NVIDIA card?", True), ("which pizza is best?", False)):
        assert passed(await assistant.gate(Conversation((asks(message),)), Usage())) is expected


async def test_to_the_bot_keywords_are_a_question() -> None:
    """Pitfall 61: whoever addresses it is not told to ask clearly."""
    assert not (await gate(asks("backup restore new machine"))).is_question
    assert passed(await gate(asks("backup restore new machine"), addressed=True))
    for thanks in ("thanks, that fixed it!", "hello there"):
        assert not (await gate(asks(thanks), addressed=True)).is_question


async def test_a_report_is_a_question_if_a_passage_answers_it() -> None:
    result = await gate(asks("E-1042 database is locked for my import of the SMB share with originals"))
    assert passed(result)
    assert "answer" in result.reason
    other = await gate(asks("my neighbour repaints his garden fence in a rather dull green every summer"))
    assert not other.is_question


async def test_what_is_in_no_source_may_be_in_a_file() -> None:
    conversation = Conversation((asks("how many timeouts were there at noon?"),))
    result = await assistant_over(Bookcase()).gate(conversation, Usage(), files=["app.log"])
    assert passed(result)
    assert result.reason == "Files to look in: 1."
