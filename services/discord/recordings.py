"""Recordings and exports as streams of dispatches, one file or several merged; and the filter for recordings."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from model.bounded import BoundedDict
from model.messages import Message
from model.processes import UserError
from services.discord import wire
from services.discord.dispatches import BadLine, Dispatch, parse_line
from services.discord.wire import USED_TYPES, OddPayload, read_message, read_quoted_message
from services.telemetry import number_of

if TYPE_CHECKING:
    from services.discord.exports import Export

log = logging.getLogger(__name__)

NO_BOT_ID = 0  # the bot's id in an export, which names no bot: nobody has this id, so nothing mentions it

MAX_REMEMBERED_IDS = 100_000
"""The number of message ids that are compared when files are merged: copies of a message have nearly the same time."""

MAX_HIDDEN_IDS = 100_000
"""The number of opted-out messages whose ids are kept, so that their reactions and deletions are left out as well."""

MAX_UNTITLED = 1_000
"""The number of new forum posts whose names wait for their first message."""

KEPT_FIELDS = {
    "READY": ("v", "user", "guilds"),
    "GUILD_CREATE": ("id", "name", "owner_id", "channels", "threads", "roles"),
    "THREAD_LIST_SYNC": ("guild_id", "threads"),
}
"""Left out are the session key of READY, and the members of GUILD_CREATE, with who is online or speaking."""


class BadRecording(UserError):
    """A file cannot be replayed or imported: one readable line that names it and the remedy."""


def read(*paths: Path, on_cut_off: Callable[[], object] = lambda: None) -> Iterator[Dispatch]:
    """Yield the dispatches of recordings and exports, read lazily. `on_cut_off`: called at the end if an export could
    only be read in part.

    One recording keeps its order. Several files are merged by time, without repeated messages. If all are exports,
    which name no bot, a READY with `NO_BOT_ID` comes first, as in a recording.

    A line that is no dispatch is reported with its number and skipped.

    Raises:
        BadRecording: when iterated; a file cannot be read, or holds nothing valid.
    """
    exports = [_export(path) for path in paths]
    streams = [
        _lines(path) if export is None else _dispatches_of(export) for path, export in zip(paths, exports, strict=True)
    ]
    merged = (
        streams[0] if len(streams) == 1 else _without_repeats(heapq.merge(*streams, key=lambda dispatch: dispatch.at))
    )
    first = next(merged, None)
    if first is None:
        raise BadRecording(f"{paths[0]}: no messages in this export; export a channel in which people have written")
    if None not in exports:
        yield Dispatch(first.at, "READY", {"user": {"id": str(NO_BOT_ID), "username": "bot", "bot": True}})
    yield first
    yield from merged
    if any(export is not None and export.ends_early for export in exports):
        on_cut_off()


def _export(path: Path) -> Export | None:
    """Open the file as an export; None: it is none, and may be a recording."""
    # Imported only here: the bot reads no exports, and a parser of large JSON takes long to import.
    from services.discord.exports import Export, NotAnExport, PrivateExport  # noqa: PLC0415

    try:
        return Export(path)
    except NotAnExport as error:
        log.debug("%s is no export: %s", path, error)
        return None
    except PrivateExport as error:
        raise BadRecording(f"{path}: {error}") from None
    except OSError as error:
        raise BadRecording(f"{path}: cannot be read ({error.strerror}); name a recording or an export") from None


def _dispatches_of(export: Export) -> Iterator[Dispatch]:
    empty = True
    for dispatch in export.dispatches():
        empty = False
        yield dispatch
    if empty:
        log.warning("%s: an export without messages", export.path)


NAMED_LINES = 10
"""Lines of one file that were skipped and are named in the log; of the others it tells the number."""


def _lines(path: Path) -> Iterator[Dispatch]:
    empty, named, count = True, list[str](), 0
    with path.open("rb") as file:
        # Bytes, so that a line that is not UTF-8 spoils only itself.
        for number, line in enumerate(file, 1):
            try:
                dispatch = _parsed(line, "utf-8-sig" if number == 1 else "utf-8")
            except BadLine as error:
                count += 1
                if count <= NAMED_LINES:
                    named.append(f"line {number}: skipped, {error}")
                continue
            if dispatch is not None:
                empty = False
                yield dispatch
    if empty:
        raise BadRecording(
            f"{path}: no valid line; a recording holds one dispatch a line (app.py --record FILE writes one), "
            "an export is the JSON that DiscordChatExporter writes"
        )
    for line in named:
        log.warning("%s, %s", path, line)
    if count > len(named):
        log.warning("%s: %s skipped as well", path, number_of(count - len(named), "other line"))


def _parsed(line: bytes, encoding: str) -> Dispatch | None:
    """Return the dispatch of a line; None for an empty one. Raises BadLine."""
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    return parse_line(text) if text.strip() else None


def _without_repeats(dispatches: Iterable[Dispatch]) -> Iterator[Dispatch]:
    seen: dict[str, None] = {}
    for dispatch in dispatches:
        if dispatch.t == "MESSAGE_CREATE":
            message_id = str(dispatch.d.get("id"))
            if message_id in seen:
                continue
            seen[message_id] = None
            if len(seen) > MAX_REMEMBERED_IDS:
                del seen[next(iter(seen))]
        yield dispatch


class RecordingFilter:
    """Filters dispatches for a recording: removes interactions, unused types and what cannot be read; and of people
    who opted out, messages, typing, reactions and the names of threads. `opted_out`: receives the author's id and the
    text of a message or edit, or the name of a thread, else an empty text, and returns True for a person whose
    dispatches are removed. The name of a forum post and its first message are removed together.
    """

    def __init__(self, opted_out: Callable[[int, str], bool]) -> None:
        self._opted_out = opted_out
        self._hidden: dict[int, None] = {}
        self._forums = set[int]()
        self._hidden_by_name = BoundedDict[int, None](MAX_HIDDEN_IDS)  # threads, by id
        self._untitled = BoundedDict[int, Dispatch](MAX_UNTITLED)  # with their names

    def filter_new(self, dispatch: Dispatch) -> Sequence[Dispatch]:
        """Return what may be written of the next dispatch of a live stream, in order. As `filter`, but a new forum post
        has no name until its first message comes, which may have to be left out; then the post is written once more.
        """
        cleared = self.filter(dispatch)
        if cleared is None:
            return ()
        if cleared.t == "MESSAGE_CREATE":
            titled = self._untitled.pop(read_message(cleared.d).id, None)
            return (cleared,) if titled is None else (replace(titled, at=cleared.at, t="THREAD_CREATE"), cleared)
        if cleared.t not in {"THREAD_CREATE", "THREAD_UPDATE"} or "name" not in cleared.d:
            return (cleared,)
        thread = wire.read(wire.Channel, cleared.d)
        is_new = cleared.t == "THREAD_CREATE" and bool(cleared.d.get("newly_created"))
        if thread.id not in self._untitled and not (is_new and thread.parent_id in self._forums):
            return (cleared,)
        self._untitled[thread.id] = cleared
        return (replace(cleared, d=_nameless(cleared.d)),)

    def filter(self, dispatch: Dispatch) -> Dispatch | None:
        """Return the dispatch as it may be written; None: it must not be written."""
        if dispatch.t not in USED_TYPES:
            return None
        try:
            d = self._payload(dispatch.t, dispatch.d)
        except OddPayload:
            return None
        return None if d is None else Dispatch(dispatch.at, dispatch.t, d)

    def _payload(self, t: str, d: Mapping[str, object]) -> Mapping[str, object] | None:
        match t:
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
                return self._message(d)
            case "MESSAGE_DELETE":
                return None if wire.read(wire.MessageDelete, d).id in self._hidden else d
            case "MESSAGE_DELETE_BULK":
                left = [each for each in wire.read(wire.MessageDeleteBulk, d).ids if each not in self._hidden]
                return {**d, "ids": [str(each) for each in left]} if left else None
            case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
                reaction = wire.read(wire.MessageReaction, d)
                hidden = reaction.message_id in self._hidden or self._opted_out(reaction.user_id, "")
                return None if hidden else d
            case "TYPING_START":
                return self._typing(d)
            case _:
                return self._about_place(t, d)

    def _about_place(self, t: str, d: Mapping[str, object]) -> Mapping[str, object]:
        if t in {"THREAD_CREATE", "THREAD_UPDATE"}:
            return self._without_name(d)
        if t in {"GUILD_CREATE", "CHANNEL_CREATE", "CHANNEL_UPDATE"}:
            self._learn_forums(d.get("channels", [d]))
        kept = KEPT_FIELDS.get(t, d)
        return {key: self._without_names(d[key]) if key == "threads" else d[key] for key in kept if key in d}

    def _learn_forums(self, channels: object) -> None:
        for each in cast("list[Mapping[str, object]]", channels) if isinstance(channels, list) else ():
            with suppress(OddPayload):
                channel = wire.read(wire.Channel, each)
                if channel.type in wire.FORUM_TYPES:
                    self._forums.add(channel.id)

    def _without_names(self, threads: object) -> list[Mapping[str, object]]:
        cleared: list[Mapping[str, object]] = []
        for each in cast("list[Mapping[str, object]]", threads) if isinstance(threads, list) else ():
            with suppress(OddPayload):
                cleared.append(self._without_name(each))
        return cleared

    def _without_name(self, thread: Mapping[str, object]) -> Mapping[str, object]:
        """Return the thread, without its name if whoever opened it has opted out, if the name opts it out, or if its
        first message is hidden.
        """
        sent = wire.read(wire.Channel, thread)
        if self._opted_out(sent.owner_id or 0, sent.name or ""):
            self._hidden_by_name[sent.id] = None
            return _nameless(thread)
        self._hidden_by_name.pop(sent.id, None)
        return _nameless(thread) if sent.id in self._hidden else thread

    def _message(self, d: Mapping[str, object]) -> Mapping[str, object] | None:
        sent, target = read_message(d), read_quoted_message(d)
        if self._is_hidden(sent):
            self._hidden[sent.id] = None
            if len(self._hidden) > MAX_HIDDEN_IDS:
                del self._hidden[next(iter(self._hidden))]
            return None
        # A forward copies a message without its author: whether they opted out is unknown.
        cleared = {key: value for key, value in d.items() if key != "message_snapshots"}
        if d.get("referenced_message") is not None and (target is None or self._is_hidden(target)):
            del cleared["referenced_message"]
        return cleared

    def _typing(self, d: Mapping[str, object]) -> Mapping[str, object] | None:
        """Keep the person's id and roles, the place and the time; they may never have sent a message."""
        sent = wire.read(wire.TypingStart, d)
        if self._opted_out(sent.user_id, ""):
            return None
        kept = {key: d[key] for key in ("channel_id", "guild_id", "user_id", "timestamp") if key in d}
        member = sent.member
        if member is None:
            return kept
        roles = None if member.roles is None else [str(role_id) for role_id in member.roles]
        is_bot = member.user is not None and bool(member.user.bot)
        return {**kept, "member": {"roles": roles, "user": {"id": str(sent.user_id), "bot": is_bot}}}

    def _is_hidden(self, sent: Message) -> bool:
        # A forum post has the id of its first message.
        is_below_name = sent.id == sent.channel_id and sent.id in self._hidden_by_name
        return sent.id in self._hidden or is_below_name or self._opted_out(sent.author.id, sent.text)


def _nameless(thread: Mapping[str, object]) -> Mapping[str, object]:
    return {key: value for key, value in thread.items() if key != "name"}
