"""Layout of the data folder, the lock of its one writer, and the last step of a restore, which moves a restored folder
into place.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from clock import rfc3339
from services.storage import files

# The last step of a restore

RESTORING = ".restoring"
RESTORED = ".restored"


def commit_restored(root: Path) -> None:
    """Declare the unpacked files complete and durable: they become the content of the data folder.

        .restoring/    being unpacked and checked; without its process it can be deleted
        .restored/     complete: its content belongs into the data folder

    One rename makes the second of the first. From then on the data counts as restored: whoever takes the folder's lock
    next finishes the move. So after a crash the folder is empty or complete for every writer.
    """
    with contextlib.suppress(PermissionError):  # of a folder that is not ours, `root` was there before
        files.sync_folder(root.parent)
    os.rename(root / RESTORING, root / RESTORED)  # noqa: PTH104 (the crash tests cut at the system calls)
    files.sync_folder(root)


def finish_restore(root: Path) -> None:
    """Finish a restore that was committed, even if a crash cut it off. Only for the holder of the lock. Raises
    OSError.
    """
    arrived = root / RESTORED
    if arrived.is_dir():
        for name in sorted(os.listdir(arrived)):  # noqa: PTH208 (as above)
            os.rename(arrived / name, root / name)  # noqa: PTH104 (as above)
        files.sync_folder(root)
        os.rmdir(arrived)  # noqa: PTH106 (as above)
        files.sync_folder(root)
    drop_unfinished_restore(root)


def drop_unfinished_restore(root: Path) -> None:
    """Delete what was unpacked and not committed, at any depth. Raises OSError."""
    top = root / RESTORING
    if not top.is_dir():
        return
    # Folders come up step by step: a walk down would end at the longest path, or in too many calls.
    while inside := [path for path in top.iterdir() if _is_folder(path)]:
        for folder in inside:
            for path in list(folder.iterdir()):
                if _is_folder(path):
                    os.rename(path, top / f".lifted-{secrets.token_hex(8)}")  # noqa: PTH104 (as above)
                else:
                    os.unlink(path)  # noqa: PTH108 (as above)
            os.rmdir(folder)  # noqa: PTH106 (as above)
    shutil.rmtree(top)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


# The layout


class _Below:
    """A path below the root of a `DataFolder`."""

    def __init__(self, *steps: str) -> None:
        self._steps = steps

    def __get__(self, folder: DataFolder, _owner: type[DataFolder]) -> Path:
        return folder.root.joinpath(*self._steps)


_GUILD = re.compile(r"[1-9][0-9]{0,19}")


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The layout below `root`, which is `app.data_dir`, or a folder of its own in a replay.

    Paths that are set in the configuration win over these; its reader decides that.
    """

    root: Path

    lock_file = _Below(".lock")
    # Per channel and thread, the id below which every message has its outcome.
    seen = _Below("state", "seen.json")
    # What the budgets have counted.
    usage = _Below("state", "usage.json")
    # How each part ended, one JSON object a line, one file a day.
    outcomes = _Below("state", "outcomes")
    # Calls to models and tokens, by day and step.
    token_days = _Below("state", "tokens.json")
    # Until when the last report was posted.
    last_report = _Below("state", "report.json")
    # What the bot has posted, one JSON object a line.
    posts = _Below("state", "posts.jsonl")
    # Replies of several pieces that are being posted, one file each.
    outbox = _Below("state", "outbox")
    feedback = _Below("feedback.jsonl")
    # The key that turns voters into pseudonyms.
    feedback_key = _Below("state", "feedback.key")
    # Whose messages are left alone (`/privacy opt-out`).
    opt_outs = _Below("state", "opt-outs.json")
    llm_recordings = _Below("llm-recordings")

    # Collections of documents: files attached to support threads, and people's own runbooks; and copies of those in a
    # server of Chroma.
    evidence = _Below("evidence")
    runbooks = _Below("runbooks")
    documents = _Below("documents")
    # Whose runbooks may be used for answers in threads.
    shown_runbooks = _Below("state", "shown-runbooks.json")
    # Files of threads that must not be read again.
    tombstones = _Below("state", "gone-files.json")

    # The knowledge base, written by its own branch only.
    knowledge_base = _Below("knowledge-base")
    sources = _Below("knowledge-base", "sources")
    links = _Below("knowledge-base", "links.txt")
    index = _Below("knowledge-base", "index.txt")
    index_cache = _Below("knowledge-base", "index-cache.json")
    web_cache = _Below("knowledge-base", "web-cache")

    # A folder of each server that has knowledge of its own, by its id, with this layout.
    guilds = _Below("guilds")

    def guild_ids(self) -> list[int]:
        """Return the ids of the servers that have a folder here, even without an entry in the configuration. A link to
        a folder is none. Raises OSError.
        """
        there = self.guilds.iterdir() if self.guilds.is_dir() else ()
        return sorted(int(path.name) for path in there if _is_folder(path) and _GUILD.fullmatch(path.name))

    # Team knowledge, written by the team branch only: tier 1 (the raw archive), tier 2 (the topic files), and what
    # belongs to them. `regeneration`: where `--regen` builds, beside the live library. `pending`: captures that wait,
    # with their images, for image summaries.
    team_knowledge = _Below("team-knowledge")
    team_raw = _Below("team-knowledge", "raw")
    team_topics = _Below("team-knowledge", "topics")
    team_index = _Below("team-knowledge", "index-team.txt")
    team_index_cache = _Below("team-knowledge", "index-team-cache.json")
    team_state = _Below("team-knowledge", "state.json")
    decisions = _Below("team-knowledge", "decisions.jsonl")
    # Where in Discord each pair of the archive comes from.
    places = _Below("team-knowledge", "places.jsonl")
    regeneration = _Below("team-knowledge", "regen")
    pending = _Below("team-knowledge", "pending")


def make_private(places: Collection[Path], but: Collection[Path] = ()) -> int:
    """Remove the permissions of group and others from files and folders, recursively.

    What is in or leads to a place of `but` stays as it is; so do symlinks, and what belongs to somebody else. Gives how
    many were open.
    """
    kept = {os.path.realpath(place) for place in but}
    return sum(_make_private(Path(os.path.realpath(place)), kept) for place in places)


def _make_private(path: Path, kept: Collection[str]) -> int:
    if str(path) in kept:
        return 0
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return 0
        leads_there = any(place.startswith(f"{path}/") for place in kept)
        is_open = bool(status.st_mode & 0o077) and not leads_there
        if is_open:
            path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
        inside = sorted(path.iterdir()) if stat.S_ISDIR(status.st_mode) else []
    except OSError:
        return 0  # gone meanwhile, or of another user
    return is_open + sum(_make_private(each, kept) for each in inside)


# The lock


class FolderBusy(Exception):
    """Another process writes this data folder: the message is one line naming it and the remedy."""


@contextlib.contextmanager
def lock(data_dir: Path, purpose: str) -> Generator[None]:
    """Hold the data folder for as long as the block runs; it is made when it is missing.

    The operating system holds the lock, so it ends with the process. The file's content only tells others who holds it:
    `purpose` is the command, such as `app.py --regen`.

    Raises:
        FolderBusy: another process holds it.
        OSError: the folder cannot be made or written.
    """
    path = DataFolder(data_dir).lock_file
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderBusy(_who_holds_it(data_dir, path)) from None
        holder = {"pid": os.getpid(), "command": purpose, "since": rfc3339(time.time())}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode() + b"\n", 0)
        try:
            finish_restore(data_dir)  # a restore that a crash has cut off
            yield
        finally:
            # The file stays: deleting it would let two processes lock two files of one name.
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def lock_refusal(data_dir: Path) -> str | None:
    """Say who holds the lock, so that `lock` would be refused; None if it is free. Writes nothing, but a `lock` at this
    very moment may fail because of it.
    """
    path = DataFolder(data_dir).lock_file
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _who_holds_it(data_dir, path)
    finally:
        os.close(descriptor)
    return None


def _who_holds_it(data_dir: Path, path: Path) -> str:
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None  # it was locked this very moment, or somebody wrote into it
    if not isinstance(content, dict):
        return f"{data_dir}: another process is writing this data folder; stop it, or use another app.data_dir"
    holder = cast("dict[str, object]", content)
    # One line, even if the file holds more.
    who = " ".join(f"{holder.get('command')} (process {holder.get('pid')}, since {holder.get('since')})".split())
    return f"{data_dir}: in use by {who}; stop that process, or use another app.data_dir"
