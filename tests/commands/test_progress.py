from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from commands import progress
from commands.progress import Count, counted


def test_a_count_reads_as_a_line() -> None:
    assert str(Count(3, 10, "pair", "2 added")) == "3 of 10 pairs, 2 added"
    assert str(Count(3, None, "message")) == "3 messages"


@pytest.mark.parametrize("terminal", [False, True])
def test_the_count_is_shown_again_and_again_while_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.001)
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.001)
    out = io.StringIO()
    asked, often = 0, threading.Event()

    def count() -> Count:
        nonlocal asked
        asked += 1
        if asked == 3:
            often.set()
        return Count(asked, 3, "pair")

    with counted(Console(file=out, force_terminal=terminal, width=80), count):
        assert often.wait(20)
    assert " of 3 pairs" in out.getvalue()
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]
