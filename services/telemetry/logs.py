"""Logging: the ids in every line, and the format of lines."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path

from clock import rfc3339
from model.messages import Message, Part

current_part: ContextVar[Part | None] = ContextVar("current_part", default=None)
"""The part that the running code works on, which gives log lines their ids."""

current_people: ContextVar[set[int] | None] = ContextVar("current_people", default=None)
"""The ids of the people whose texts the running code works with, by which recorded exchanges are found."""

log = logging.getLogger(__name__)


def add_people(user_ids: Iterable[int]) -> None:
    """Note further people whose texts the running code works with. The set is shared with the task that started the
    running one, and with those that it starts.
    """
    people = current_people.get()
    if people is not None:
        people.update(user_ids)


def log_ids() -> dict[str, str]:
    """Return the ids of the part that the running code works on; none for a question from the command line."""
    part = current_part.get()
    if part is None or not part.last.id:
        return {}
    last = part.last
    return {
        "correlation_id": part.correlation_id,
        "platform": "discord",
        "guild_id": str(last.guild_id or ""),
        "channel_id": str(part.place.channel_id),
        "thread_id": str(part.place.id) if part.place.is_thread else "",
        "message_id": str(last.id),
        "author_id": str(part.author.id),
    }


def about_message(message: Message) -> dict[str, dict[str, str]]:
    """Return `extra` for a log line about a message that belongs to no part yet."""
    ids = {
        "platform": "discord",
        "guild_id": str(message.guild_id or ""),
        "channel_id": str(message.channel_id),
        "message_id": str(message.id),
        "author_id": str(message.author.id),
    }
    return {"ids": ids}


class LineFormatter(logging.Formatter):
    """Formats a record as one line for people, with a traceback if there is one, or as a JSON object."""

    def __init__(self, style: str, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._json = style == "json"
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        ids: dict[str, str] = getattr(record, "ids", None) or log_ids()
        # Only the message and the traceback can hold secrets; to redact the ids as well would take longer.
        text = self._redact(_text(record))
        trace = self._redact(self.formatException(record.exc_info)) if record.exc_info else ""
        if self._json:
            entry = {
                "at": rfc3339(record.created),
                "level": record.levelname,
                "logger": record.name,
                "message": text,
                **ids,
            }
            if trace:
                entry["traceback"] = trace
            return json.dumps(entry, ensure_ascii=False)
        tail = "".join([f" {name}={value}" for name, value in ids.items() if value])
        line = f"{rfc3339(record.created)} {record.levelname:<7} {record.name}: {_printable(text)}{tail}"
        return "\n".join([line, *map(_printable, trace.split("\n"))]) if trace else line


def _printable(text: str) -> str:
    """Escape characters that would begin a line or colour a terminal: the text may be from a stranger."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A wrong format string. Logging itself would print it past the redactor.
        return f"{record.msg} {record.args!r}"


class LastError(logging.Handler):
    """Keeps the last record of level ERROR or above. `redact`: removes secrets from its text.

    Attributes:
        at: when it was logged, in seconds since 1970; 0: there was none.
        text: the name of the logger and the message, on one line.
    """

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        super().__init__(logging.ERROR)
        self.at, self.text = 0.0, ""
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        self.at, self.text = record.created, f"{record.name}: {_printable(self._redact(_text(record)))}"


def _unwritten(record: logging.LogRecord) -> None:
    """Report a line that could not be written, unlike logging's own report without its unredacted text."""
    with contextlib.suppress(OSError, ValueError):
        print(f"a log line of {record.name} could not be written: {sys.exc_info()[1]}", file=sys.stderr)  # noqa: T201 (logging fails)


def _leave_out_what_no_line_shows() -> None:
    """Stop logging from looking up the source line, thread and process of each record, which no line shows."""
    # "Optimization" in the logging HOWTO of Python.
    logging._srcfile = None  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]  # noqa: SLF001
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    if sys.version_info >= (3, 12):
        logging.logAsyncioTasks = False


def configure(
    *, level: str, style: str, file: Path | None, backup_count: int, redact: Callable[[str], str] = str
) -> None:
    """Log to stderr, and to a file with daily rotation where a path is set. If that cannot be opened, it is logged."""
    _leave_out_what_no_line_shows()
    lines = LineFormatter(style, redact)
    console = logging.StreamHandler(sys.stderr)
    console.setFormatter(lines)
    console.handleError = _unwritten
    logging.basicConfig(level=level, handlers=[console], force=True)
    console_level = logging.getLogger().level
    for chatty in ("discord", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "aiohttp.access", "watchfiles"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, console_level))
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        rotating = logging.handlers.TimedRotatingFileHandler(
            file, when="midnight", utc=True, backupCount=backup_count, encoding="utf-8"
        )
    except OSError as error:
        log.error("logging.file.path: cannot write %s (%s); logging to the console only", file, error.strerror)  # noqa: TRY400 (a readable line, no traceback)
        return
    rotating.setFormatter(lines)
    rotating.handleError = _unwritten
    logging.getLogger().addHandler(rotating)
