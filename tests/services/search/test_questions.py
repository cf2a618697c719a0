from __future__ import annotations

import pytest

from services.search.questions import continues, is_question


@pytest.mark.parametrize(
    "text",
    [
        "How do I rotate the key",
        "hey all, what does E-17 mean?",
        "wondering whether this runs on ARM",
        "it keeps restarting",
        "I get an error when I log in",
        "Error: cannot open the socket",
        "The import won't start",
        "anyone know where the logs are",
        "could you explain the second step",
        "thanks! one more thing: can I change the port?",
        "Maria: which of the two is it?",
        "stuck at 3 %\n```\nlog\n```",
    ],
)
def test_requests_and_reports_are_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hi",
        "thank you so much!",
        "ok",
        "really?",
        "https://example.org/?a=b",
        "see https://example.org/search?q=how+do+i",
        "> how do I do that?\nlike Ana said",
        "```\nwhat is this?\n```",
        "you should check the port, it fails when it is taken",
        "Tom: that fails because the disk is full",
        "Tom: have you restarted it?",
        "what version are you on?",
        "it works now, the error was mine",
        "are you serious?",
        "[image: how.png]",
        "hey, what's up?",
    ],
)
def test_chatter_links_quotes_and_advice_are_not(text: str) -> None:
    assert not is_question(text)


def test_asking_on_is_told_from_thanking() -> None:
    assert continues("and on Windows?")
    assert continues("ok thanks, what about the app")
    assert not continues("and that was it")
    assert not continues("thanks, works")
