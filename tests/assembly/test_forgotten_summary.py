"""What a person is told who was forgotten."""

from __future__ import annotations

from assembly.slash_commands import summary
from services.conversations import phrases
from services.privacy import ForgetResult

SAID = phrases("en")


def test_what_follows_later_is_not_concealed() -> None:
    told = summary(ForgetResult(posts=2, usage=True), SAID, complete=False)
    assert told.splitlines()[:3] == [
        "Removed:",
        "- 2 answers that I remembered giving you",
        "- 1 count of your questions",
    ]
    assert SAID.rest_follows in told


def test_nobody_says_that_nothing_was_kept_before_all_have_looked() -> None:
    assert SAID.nothing_kept in summary(ForgetResult(), SAID)
    assert SAID.nothing_kept not in summary(ForgetResult(), SAID, complete=False)
    assert summary(ForgetResult(), SAID, complete=False).startswith(SAID.rest_follows)
