"""The layout of the data folder, the lock of its one writer, and the last step of a restore, which moves restored files
into place; and temporary folders for copies of what is in it.
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
import tempfile
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

    The first folder is renamed to the second. From then on the data counts as restored: the next holder of the folder's
    lock finishes the move. So after a crash the data folder is empty or complete for every writer.
    """
    with contextlib.suppress(PermissionError):  # if its parent is not ours, `root` was there before
        files.sync_folder(root.parent)
    os.rename(root / RESTORING, root / RESTORED)  # noqa: PTH104 (the crash tests cut at the system calls)
    files.sync_folder(root)


def finish_restore(root: Path) -> None:
    """Finish a committed restore, even after a crash. Only for the holder of the lock. Raises OSError."""
    restored = root / RESTORED
    if restored.is_dir():
        for name in sorted(os.listdir(restored)):  # noqa: PTH208 (as above)
            os.rename(restored / name, root / name)  # noqa: PTH104 (as above)
        files.sync_folder(root)
        os.rmdir(restored)  # noqa: PTH106 (as above)
        files.sync_folder(root)
    drop_unfinished_restore(root)


def drop_unfinished_restore(root: Path) -> None:
    """Delete unpacked files that were not committed, at any depth. Raises OSError."""
    top = root / RESTORING
    if not top.is_dir():
        return
    # Folders are moved up one level at a time: walking down would fail at the length limit of paths or the recursion
    # limit.
    while folders := [path for path in top.iterdir() if _is_folder(path)]:
        for folder in folders:
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


class _PathBelow:
    """A path below the root of a `DataFolder`, as an attribute."""

    def __init__(self, *steps: str) -> None:
        self._steps = steps
        self.first = steps[0]

    def __get__(self, folder: DataFolder, _owner: type[DataFolder]) -> Path:
        return folder.root.joinpath(*self._steps)


_GUILD = re.compile(r"[1-9][0-9]{0,19}")


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The layout below `root`: `app.data_dir`, or the folder of a replay. Settings may name other paths."""

    root: Path

    lock_file = _PathBelow(".lock")
    # For each channel and thread, the id up to which every message has its result.
    watermarks = _PathBelow("state", "seen.json")
    # What people, servers and the day have used of the budgets.
    usage = _PathBelow("state", "usage.json")
    # The outcome of each part, one JSON object per line, one file per day.
    outcomes = _PathBelow("state", "outcomes")
    # Calls to models and tokens, by day and step.
    token_days = _PathBelow("state", "tokens.json")
    # The end of the time that the last posted report covers.
    last_report = _PathBelow("state", "report.json")
    # The incidents that are open, and the alerts about them that could not be posted yet.
    alerts = _PathBelow("state", "alerts.json")
    # The questions without an answer that an operator has dismissed.
    dismissed = _PathBelow("state", "dismissed.json")
    # What was decided by whom, one JSON object per line.
    audit = _PathBelow("state", "audit.jsonl")
    # The posts of the bot, one JSON object per line.
    posts = _PathBelow("state", "posts.jsonl")
    # Replies of several pieces that are being posted, one file each.
    outbox = _PathBelow("state", "outbox")
    # Answers that wait for a person's approval, one file each.
    drafts = _PathBelow("state", "drafts")
    feedback = _PathBelow("feedback.jsonl")
    # The key that turns voters into pseudonyms.
    feedback_key = _PathBelow("state", "feedback.key")
    # The people whose messages are not read (`/privacy opt-out`).
    opt_outs = _PathBelow("state", "opt-outs.json")
    llm_recordings = _PathBelow("llm-recordings")

    # The collections of files attached to threads.
    evidence = _PathBelow("evidence")
    # The collections of people's own runbooks.
    runbooks = _PathBelow("runbooks")
    # Copies of the collections that are kept in a Chroma server.
    chroma_copies = _PathBelow("documents")
    # The people whose runbooks may be used for answers in threads.
    shown_runbooks = _PathBelow("state", "shown-runbooks.json")
    # Files of threads that must not be read again.
    tombstones = _PathBelow("state", "gone-files.json")

    # The knowledge base, written by the branch `knowledge` only.
    knowledge_base = _PathBelow("knowledge-base")
    sources = _PathBelow("knowledge-base", "sources")
    links = _PathBelow("knowledge-base", "links.txt")
    index = _PathBelow("knowledge-base", "index.txt")
    index_cache = _PathBelow("knowledge-base", "index-cache.json")
    web_cache = _PathBelow("knowledge-base", "web-cache")

    # A folder with this layout for each server that has its own knowledge, by the id of the server.
    guilds = _PathBelow("guilds")

    def guild_ids(self) -> list[int]:
        """Return the ids of the servers that have a folder here, not a link, configured or not. Raises OSError."""
        paths = self.guilds.iterdir() if self.guilds.is_dir() else ()
        return sorted(int(path.name) for path in paths if _is_folder(path) and _GUILD.fullmatch(path.name))

    # Team knowledge, written by the team branch only: tier 1 (the raw archive), tier 2 (the topic files), and their
    # state. `regeneration`: where `--regen` builds, beside the live library. `pending`: captures and their images,
    # which wait for image summaries.
    team_knowledge = _PathBelow("team-knowledge")
    team_raw = _PathBelow("team-knowledge", "raw")
    team_topics = _PathBelow("team-knowledge", "topics")
    team_index = _PathBelow("team-knowledge", "index-team.txt")
    team_index_cache = _PathBelow("team-knowledge", "index-team-cache.json")
    team_state = _PathBelow("team-knowledge", "state.json")
    decisions = _PathBelow("team-knowledge", "decisions.jsonl")
    # The place in Discord from which each pair of the archive comes.
    places = _PathBelow("team-knowledge", "places.jsonl")
    regeneration = _PathBelow("team-knowledge", "regen")
    pending = _PathBelow("team-knowledge", "pending")

    def is_own(self, path: Path) -> bool:
        """Return True if a name in the folder is of this layout, or of a copy of a part of it, such as `state.old`."""
        return path.name.startswith(files.LEFTOVER_PREFIX) or _OWN.match(path.name) is not None


_NAMES = {each.first for each in vars(DataFolder).values() if isinstance(each, _PathBelow)} | {RESTORING, RESTORED}
_OWN = re.compile(f"(?:{'|'.join(map(re.escape, sorted(_NAMES)))})(?:[^a-z0-9].*)?$", re.DOTALL | re.IGNORECASE)


def make_private(paths: Collection[Path], excluded: Collection[Path] = ()) -> int:
    """Remove the permissions of group and others from files and folders, recursively, but for excluded paths, the
    folders above and below them, symlinks, and files of other users. Returns how many were open to others.
    """
    excluded_paths = {os.path.realpath(path) for path in excluded}
    return sum(_make_private(Path(os.path.realpath(path)), excluded_paths) for path in paths)


def _make_private(path: Path, excluded_paths: Collection[str]) -> int:
    if str(path) in excluded_paths:
        return 0
    try:
        status = path.lstat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return 0
        is_above = any(each.startswith(f"{path}/") for each in excluded_paths)
        is_open = bool(status.st_mode & 0o077) and not is_above
        if is_open:
            path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
        inside = sorted(path.iterdir()) if stat.S_ISDIR(status.st_mode) else []
    except OSError:
        return 0  # gone meanwhile, or of another user
    return is_open + sum(_make_private(each, excluded_paths) for each in inside)


# The lock


class FolderBusy(Exception):
    """Another process writes this data folder. The message is one line with its name and the remedy."""


@contextlib.contextmanager
def lock(data_dir: Path, purpose: str) -> Generator[None]:
    """Lock the data folder while the block runs; a missing folder is made.

    The operating system holds the lock, so it ends with the process. The content of the lock file only names the
    holder for others: `purpose` is the command, such as `app.py --regen`.

    Raises:
        FolderBusy: another process holds the lock.
        OSError: the folder cannot be made or written.
    """
    path = DataFolder(data_dir).lock_file
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderBusy(_describe_holder(data_dir, path)) from None
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
    """Return the lock's holder and the remedy; None: it is free. Writes nothing; a simultaneous `lock` may fail."""
    path = DataFolder(data_dir).lock_file
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _describe_holder(data_dir, path)
    finally:
        os.close(descriptor)
    return None


def _describe_holder(data_dir: Path, path: Path) -> str:
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None  # it was locked at this very moment, or somebody has edited it
    if not isinstance(content, dict):
        return f"{data_dir}: another process is writing this data folder; stop it, or use another app.data_dir"
    holder = cast("dict[str, object]", content)
    # One line, even if the file has several.
    who = " ".join(f"{holder.get('command')} (process {holder.get('pid')}, since {holder.get('since')})".split())
    return f"{data_dir}: in use by {who}; stop that process, or use another app.data_dir"


# Temporary folders

_TEMPORARY_PREFIX = "millrace-copies-"


@contextlib.contextmanager
def temporary_folder() -> Generator[Path]:
    """Make a folder below the system's temporary one, and delete it at the end of the block. Raises OSError.

    The process holds its lock meanwhile, and the system ends that with the process. Before, what others have left is
    deleted, as by `drop_left_folders`.
    """
    drop_left_folders()
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY_PREFIX) as folder, _opened(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # it waits only for who looks whether the folder is empty
        yield Path(folder)


def drop_left_folders() -> None:
    """Delete the temporary folders of killed processes of this user. Blocking. Raises OSError."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # it is over, or another process is at work there
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            with _opened(folder) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if any(folder.iterdir()):  # else it may be new, and about to be locked
                    shutil.rmtree(folder)


@contextlib.contextmanager
def _opened(folder: Path | str) -> Generator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
