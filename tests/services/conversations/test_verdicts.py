from __future__ import annotations

import pytest

from services.conversations.verdicts import MOST_CHARS, verdict


@pytest.mark.parametrize(
    "text",
    [
        "thanks!",
        "Thank you so much",
        "ah, that worked",
        "ok it works now",
        "this fixed it for me, ty",
        "Vielen Dank, klappt jetzt",
        "danke",
        "¡gracias!",
        "merci beaucoup",
        "obrigado",
        "спасибо, заработало",
        "谢谢，可以了",
        "ありがとうございます",
    ],
)
def test_thanks_and_success_are_told(text: str) -> None:
    assert verdict(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "thanks, but it still fails",
        "that didn't work",
        "it doesn’t help :(",
        "no luck",
        "same error after a restart",
        "danke, aber das geht leider nicht",
        "klappt immer noch nicht",
        "no funciona",
        "ça ne marche pas",
        "não funcionou",
        "не помогло",
        "还是不行",
        "動きません",
    ],
)
def test_failure_is_told_also_below_thanks(text: str) -> None:
    assert verdict(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "and how do I restart it?",
        "thanks in advance",
        "the login does not work, what can I do?",
        "party at five",
        "",
        "I tried what you said. " * 20 + "thanks",
    ],
)
def test_everything_else_says_neither(text: str) -> None:
    assert verdict(text) is None


def test_the_limit_is_that_of_a_short_message() -> None:
    assert verdict("thanks " + "x" * (MOST_CHARS - 7)) is True
    assert verdict("thanks " + "x" * (MOST_CHARS - 6)) is None
