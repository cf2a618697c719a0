"""Which words of the team take an answer back."""

from __future__ import annotations

import pytest

from services.search import takes_back


@pytest.mark.parametrize(
    "said",
    [
        "Let me check that again.",
        "I'll have to verify that first.",
        "Oh wait, that was wrong.",
        "Actually, don't.",
        "Please don't run that yet.",
        "Sorry, ignore that.",
        "Ignore my last message, please.",
        "Scratch that, it deletes all data!",
        "Wait, don't run it yet!",
        "wait",
        "Hold on a sec...",
        "Stop, don't do that.",
        "No, wait: use `demo repair` instead.",
        "Oops, I misread the question.",
        "I meant `demo repair`.",
        "nevermind, that's for version 1",
        "The command above is wrong.",
        "That did not work on my machine.",
        "Edit: that was wrong",
        "ben: scratch that",
        "@ben, on second thought, better not",
        "Nein, das ist falsch.",
        "Kim, that's the old model.",
        "That's for the old model, mind.",
        "It's the other lever.",
    ],
)
def test_the_team_takes_an_answer_back(said: str) -> None:
    assert takes_back(said)


@pytest.mark.parametrize(
    "said",
    [
        "Then restart it.",
        "Don't forget to save.",
        "Don't worry, nothing is lost.",
        "No need to restart it.",
        "Wait until it is green, then press Start.",
        "Wait a minute, and then restart it.",
        "Wait, then restart it.",
        "Stop the service first, then run it.",
        "Stop it, and start it again.",
        "Ignore that warning, it is harmless.",
        "Forget the old password first.",
        "Check the logs after that.",
        "Let me know if that works.",
        "Let me explain why: the cache is stale.",
        "If it does not work, send us the log.",
        "I will add that to the docs.",
        "You're welcome!",
        "Also, don't forget to save.",
        "It's the left lever.",
    ],
)
def test_what_goes_on_with_an_answer_takes_nothing_back(said: str) -> None:
    assert not takes_back(said)
