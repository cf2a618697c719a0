"""Recordings and exports as streams of dispatches: one file, or several merged."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from services.discord.dispatches import BadLine, Dispatch, parse_line
from services.discord.exports import Export, NotAnExport, PrivateExport

log = logging.getLogger(__name__)

NO_BOT_ID = 0
"""The bot's id in an export, which has none: nobody has it, so nothing mentions it."""

REMEMBERED = 100_000
"""Message ids kept when files are merged. Copies of a message have nearly the same time."""


class BadRecording(Exception):
    """A file cannot be replayed or imported: one readable line that names it and the remedy."""


def read(*paths: Path) -> Iterator[Dispatch]:
    """The dispatches of recordings and exports, read lazily.

    One recording keeps its order. Several files are merged by time, and a message that is in several of them comes
    once. Where there are only exports, which know no bot, a READY with `NO_BOT_ID` comes first, as in a recording.

    A line that is no dispatch is reported with its number and skipped.

    Raises:
        BadRecording: when iterated; a file cannot be read, or holds nothing valid.
    """
    exports = [_export(path) for path in paths]
    streams = [
        _lines(path) if export is None else _exported(export) for path, export in zip(paths, exports, strict=True)
    ]
    merged = streams[0] if len(streams) == 1 else _once(heapq.merge(*streams, key=lambda dispatch: dispatch.at))
    first = next(merged, None)
    if first is None:
        raise BadRecording(f"{paths[0]}: no messages in this export; export a channel in which people have written")
    if None not in exports:
        yield Dispatch(first.at, "READY", {"user": {"id": str(NO_BOT_ID), "username": "bot", "bot": True}})
    yield first
    yield from merged


def _export(path: Path) -> Export | None:
    """The file as an export, or None: then it is a recording, or nothing."""
    try:
        return Export(path)
    except NotAnExport as error:
        log.debug("%s is no export: %s", path, error)
        return None
    except PrivateExport as error:
        raise BadRecording(f"{path}: {error}") from None
    except OSError as error:
        raise BadRecording(f"{path}: cannot be read ({error.strerror}); name a recording or an export") from None


def _exported(export: Export) -> Iterator[Dispatch]:
    empty = True
    for dispatch in export.dispatches():
        empty = False
        yield dispatch
    if empty:
        log.warning("%s: an export without messages", export.path)


def _lines(path: Path) -> Iterator[Dispatch]:
    empty = True
    with path.open("rb") as file:
        # Bytes, so that a line that is not UTF-8 spoils only itself.
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if not text.strip():
                    continue
                dispatch = parse_line(text)
            except UnicodeDecodeError:
                log.warning("%s, line %d: skipped, not UTF-8", path, number)
            except BadLine as error:
                log.warning("%s, line %d: skipped, %s", path, number, error)
            else:
                empty = False
                yield dispatch
    if empty:
        raise BadRecording(
            f"{path}: no valid line; a recording holds one dispatch a line (app.py --record FILE writes one), "
            "an export is the JSON that DiscordChatExporter writes"
        )


def _once(dispatches: Iterable[Dispatch]) -> Iterator[Dispatch]:
    seen: dict[str, None] = {}
    for dispatch in dispatches:
        if dispatch.t == "MESSAGE_CREATE":
            message_id = str(dispatch.d.get("id"))
            if message_id in seen:
                continue
            seen[message_id] = None
            if len(seen) > REMEMBERED:
                del seen[next(iter(seen))]
        yield dispatch
