from __future__ import annotations

import io
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from services.redaction import Redactor
from services.telemetry import logs
from tests.root_logger import logging_restored

__all__ = ["logging_restored"]

SECRET = "correct-horse-battery-staple"
MESSAGE = Message(10, 1, Author(2, "ada"), "How?", 5.0, guild_id=7)
PART = Part(1, (MESSAGE,), AuthorType.COMMUNITY_USER, Place(1, PlaceKind.THREAD, guild_id=7, parent_id=4), 65.0)

log = logging.getLogger("tests.logs")


def configure(*, style: str = "text", file: Path | None = None) -> None:
    logs.configure(level="INFO", style=style, file=file, backup_count=2, redact=Redactor([SECRET]).text)


def test_a_line_about_a_part_carries_its_ids(capsys: pytest.CaptureFixture[str]) -> None:
    configure(style="json")
    token = logs.current_part.set(PART)
    log.info("gate: %s", "yes")
    logs.current_part.reset(token)
    log.info("idle")
    about, idle = map(json.loads, capsys.readouterr().err.splitlines())
    assert (
        about.items()
        >= {
            "level": "INFO",
            "logger": "tests.logs",
            "message": "gate: yes",
            "correlation_id": "a",
            "platform": "discord",
            "guild_id": "7",
            "channel_id": "4",
            "thread_id": "1",
            "message_id": "10",
            "author_id": "2",
        }.items()
    )
    assert set(idle) == {"at", "level", "logger", "message"}


def test_a_line_about_a_question_from_the_command_line_has_no_ids(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    asked = replace(PART, messages=(Message(0, 0, Author(0, ""), "How?", 5.0),), place=Place(0, PlaceKind.CHANNEL))
    token = logs.current_part.set(asked)
    log.info("gate: yes")
    logs.current_part.reset(token)
    assert capsys.readouterr().err.endswith("tests.logs: gate: yes\n")


def test_a_line_about_a_message_that_waits_carries_its_ids(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    log.info("discord.user_batch_wait", extra=logs.about_message(MESSAGE))
    line = capsys.readouterr().err
    assert line.endswith("batch_wait platform=discord guild_id=7 channel_id=1 message_id=10 author_id=2\n")


@pytest.mark.parametrize("style", ["text", "json"])
def test_no_line_and_no_traceback_holds_a_secret(capsys: pytest.CaptureFixture[str], style: str) -> None:
    """Pitfall 22."""
    configure(style=style)
    try:
        int(SECRET)
    except ValueError:
        log.exception("with %s", SECRET)
    log.error("%d", SECRET)  # a slip in the format, which logging itself would report with its arguments
    err = capsys.readouterr().err
    assert "ValueError" in err
    assert err.count("redacted: known secret") == 3
    assert SECRET not in err


def test_a_stream_that_cannot_be_written_is_told_without_the_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 22."""

    class Full(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Full())
        configure()
        log.info(SECRET)  # the report of it cannot be written either
    log.info(SECRET)
    err = capsys.readouterr().err
    assert err == "a log line of tests.logs could not be written: [Errno 28] No space left on device\n"


def test_the_log_goes_to_a_file_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "bot.log"
    configure(file=path)
    log.info("hello %s", SECRET)
    assert path.read_text() == capsys.readouterr().err
    assert "hello [redacted" in path.read_text()


def test_a_log_file_that_cannot_be_opened_is_an_error_line_and_not_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(file=tmp_path)
    log.info("going on")
    first, second = capsys.readouterr().err.splitlines()
    assert "logging.file.path: cannot write" in first
    assert "going on" in second


@pytest.mark.parametrize(
    "library", ["discord.http", "httpx2", "httpcore2.http11", "openai._base_client", "watchfiles.main"]
)
def test_what_a_library_notes_is_not_logged_at_debug_either(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines hold whole requests and answers."""
    logs.configure(level="DEBUG", style="text", file=None, backup_count=2)
    noted = logging.getLogger(library)
    noted.debug("send_request_headers")
    noted.info("POST /v1/chat/completions")
    noted.warning("retrying")
    assert capsys.readouterr().err.count("\n") == 1


def test_a_message_can_neither_forge_a_line_nor_colour_a_terminal() -> None:
    record = logging.LogRecord("bot", logging.INFO, "", 1, "would post: %s", ("a\nb\x1b[31m\u2028ö",), None)
    assert logs.LineFormatter("text", str).format(record).endswith(r"bot: would post: a\nb\x1b[31m\u2028ö")
