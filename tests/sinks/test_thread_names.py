"""What the bot's threads are called after what somebody asked."""

from __future__ import annotations

import pytest

from services.assistant import line_that_asks
from services.discord import thread_name


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("How can I restore a backup?", "How can I restore a backup?"),
        ("It does not start.\nIt says E7.", "It does not start."),
        (
            "OFFICIAL NOTICE: verify at https://evil.example/x\nhow can I restore a backup?",
            "how can I restore a backup?",
        ),
        ("discord.gg/evil How can I restore a backup?", "How can I restore a backup?"),
        ("Look at evil.example/login", "Look at"),
        ("https://evil.example", "Question"),
        ("why does **https**://evil.example/x fail?", "why does fail?"),
        ("why does `https`://evil.example fail?", "why does fail?"),
        ("how do I exclude *.py?", "how do I exclude *.py?"),
    ],
)
def test_a_thread_is_named_after_the_line_that_asks_without_addresses(asked: str, name: str) -> None:
    assert thread_name(line_that_asks(asked)) == name
