"""Recordings: write them from the live stream, and play them, each dispatch at its time.

at 10:00:00   at 10:00:07   at 10:00:07
────┼─────────────┼┼──────────►  the recording
────D─────────────DD──────────►  what comes out, on the running loop's clock
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import clock
from model.bounded import BoundedDict
from model.events import Event, Posted, Reaction, Ready
from model.messages import Attachment, snowflake_time
from services.conversations import KEPT_POSTS, Posts
from services.discord import BadRecording, Dispatch, RecordingFilter, read_message, recordings, render_line
from services.telemetry import number_of

log = logging.getLogger(__name__)


async def dispatches(
    *paths: Path, delay: float = 0.0, on_cut_off: Callable[[], object] = lambda: None
) -> AsyncGenerator[Dispatch, None]:
    """Play files (see `services.discord.recordings.read`) on the running loop's clock.

    On a `VirtualLoop` that starts at `first_time`, each comes exactly at its `at`; `delay` seconds are added
    (`clock.now() - first_time(path)` plays it as if it began now). Time never goes back: a dispatch with an earlier
    time than now comes now. Raises BadRecording: a file cannot be read, or holds nothing valid.
    """
    for dispatch in recordings.read(*paths, on_cut_off=on_cut_off):
        await _until(dispatch.at + delay)
        yield dispatch


async def _until(due: float) -> None:
    """Wait for `due`, at least for one turn of the loop."""
    loop = asyncio.get_running_loop()
    wait = due - clock.now()
    if wait <= 0:
        await asyncio.sleep(0)
        return
    # Virtual time is UTC itself: set the timer to the very instant, since now + (due - now) may round to another.
    when = due if isinstance(loop, clock.VirtualLoop) else loop.time() + wait
    reached: asyncio.Future[None] = loop.create_future()
    timer = loop.call_at(when, _reach, reached)
    try:
        await reached
    finally:
        timer.cancel()


def _reach(reached: asyncio.Future[None]) -> None:
    if not reached.done():  # cancelled in the same turn
        reached.set_result(None)


def first_time(*paths: Path) -> float:
    """Return when the first dispatch was received: the time at which a virtual clock has to start. Raises BadRecording:
    a file cannot be read, or holds nothing valid.
    """
    return next(recordings.read(*paths)).at


REPLIED_WITHIN_SECONDS = 600.0
"""A recorded reply that names no question is to one that was asked at most so long before."""


class RecordedVotes:
    """Makes reactions to recorded replies count for the replies of a replay to the same questions, as these have other
    ids. A recorded reply names its question, except in a thread that the bot opened.
    """

    def __init__(self, posts: Posts) -> None:
        self._posts = posts
        self._bot_id: int | None = None
        self._replies = BoundedDict[int, int | None](
            KEPT_POSTS
        )  # of the recorded bot, with the question if it is named

    def redirect(self, event: Event) -> Event:
        """Return the event, or the reaction with the id of the replayed reply."""
        if isinstance(event, Ready):
            self._bot_id = event.bot_id
        elif isinstance(event, Posted) and event.message.author.id == self._bot_id:
            quoted = event.message.reply_to
            self._replies[event.message.id] = None if quoted is None else quoted.message_id
        elif isinstance(event, Reaction) and event.message_id in self._replies:
            return replace(event, message_id=self._replayed(event) or event.message_id)
        return event

    def _replayed(self, reaction: Reaction) -> int | None:
        message_id = reaction.message_id
        if (asked := self._replies[message_id]) is not None:
            return self._posts.answer_to(asked)
        post = self._posts.last_in_before(reaction.channel_id, message_id)
        if post is None or snowflake_time(message_id) - snowflake_time(post.last_asked_id) > REPLIED_WITHIN_SECONDS:
            return None
        return post.message_id


DOWNLOADS_AT_ONCE = 4
DOWNLOADS_WAITING = 1_000
"""Attachments that may wait for their download; beyond that they are left out."""

CLOSING_SECONDS = 20.0
"""How long the end of a recording, and so the end of the bot, waits for downloads."""

APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT

Download = Callable[[Attachment], Awaitable[bytes]]


def attachments_folder(recording: Path) -> Path:
    """Return `FILE.attachments`, beside the recording. It holds each attachment in a file named after its id."""
    return recording.with_name(recording.name + ".attachments")


class Recorder:
    """Appends dispatches to a recording, without what must not be kept (`RecordingFilter`).

    `opted_out` judges by an author's id and a text. `download` fetches an attachment, within limits of its own; without
    it, none are saved. A failure to write is logged once, and the next line is tried again. Raises BadRecording: the
    file cannot be written at the start.
    """

    def __init__(self, path: Path, *, opted_out: Callable[[int, str], bool], download: Download | None = None) -> None:
        self._path = path
        self._clearing = RecordingFilter(opted_out)
        self._download = download
        self._saving: dict[asyncio.Task[None], int] = {}  # the attachment's id by task
        self._slots = asyncio.Semaphore(DOWNLOADS_AT_ONCE)
        self._failing = False
        try:
            self._truncated = path.exists() and path.stat().st_size > 0 and _last_byte(path) != b"\n"
            # Unbuffered: a line is in the file once it is written. Only the owner may read what people wrote.
            self._file = os.fdopen(os.open(path, APPEND, mode=0o600), "ab", buffering=0)
        except OSError as error:
            raise BadRecording(
                f"{path}: cannot be written ({error.strerror}); name another file to record to"
            ) from None

    def write(self, dispatch: Dispatch) -> None:
        """Append one dispatch. Its attachments are saved in the background."""
        for cleared in self._clearing.filter_new(dispatch):
            self._append(cleared)
            if self._download is not None and cleared.t == "MESSAGE_CREATE":
                for file in read_message(cleared.d).attachments:
                    self._save_soon(self._download, file)

    async def close(self, within: float = CLOSING_SECONDS) -> None:
        """Wait for downloads, `within` seconds at most or until cancelled; leave out the rest; then close the file."""
        saving = list(self._saving)
        try:
            if saving:
                _, late = await asyncio.wait(saving, timeout=within)
                if late:
                    log.warning("%s not recorded: the downloads took too long", number_of(len(late), "attachment"))
        finally:
            for task in saving:
                task.cancel()
            await asyncio.gather(*saving, return_exceptions=True)
            self._file.close()

    def _append(self, dispatch: Dispatch) -> None:
        try:
            data = (b"\n" if self._truncated else b"") + render_line(dispatch).encode()
            if self._file.write(data) < len(data):
                raise OSError("the disk took only a part of a line")  # noqa: TRY301 (handled like a refusal)
        except (OSError, ValueError) as error:
            self._truncated = True
            if not self._failing:
                log.error("recording to %s fails, the bot goes on: %s", self._path, error)  # noqa: TRY400 (no bug)
            self._failing = True
        else:
            self._truncated = self._failing = False

    def _save_soon(self, download: Download, file: Attachment) -> None:
        if file.id in self._saving.values():
            return  # the same file, posted or delivered again
        if len(self._saving) >= DOWNLOADS_WAITING:
            log.warning("attachment %d is not recorded: too many are waiting", file.id)
            return
        task = asyncio.get_running_loop().create_task(self._save(download, file))
        self._saving[task] = file.id
        task.add_done_callback(self._saving.pop)

    async def _save(self, download: Download, file: Attachment) -> None:
        target = attachments_folder(self._path) / str(file.id)
        async with self._slots:
            try:
                if not target.exists():
                    data = await download(file)
                    await asyncio.to_thread(_store, target, data)
            except Exception as error:  # noqa: BLE001 (the recording goes on after any error)
                log.warning("attachment %d is not recorded: %s", file.id, type(error).__name__)


def _store(target: Path, data: bytes) -> None:
    target.parent.mkdir(mode=0o700, exist_ok=True)
    unfinished = target.with_suffix(".part")
    unfinished.write_bytes(data)
    unfinished.replace(target)


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
