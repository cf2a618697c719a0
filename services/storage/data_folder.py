"""The data root: where everything is kept (SPEC, sections 3 to 7 and 10), and the lock that one writer holds."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from clock import rfc3339


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The layout below `root`, which is `app.data_dir`, or a folder of its own in a replay.

    Paths of the configuration that are set win over these; whoever reads the configuration decides that.
    """

    root: Path

    @property
    def lock_file(self) -> Path:
        return self.root / ".lock"

    @property
    def seen(self) -> Path:
        """Per channel and thread, the id below which every message has its outcome."""
        return self.root / "state" / "seen.json"

    @property
    def usage(self) -> Path:
        """What the budgets have counted."""
        return self.root / "state" / "usage.json"

    @property
    def posts(self) -> Path:
        """What the bot has posted, one JSON object a line."""
        return self.root / "state" / "posts.jsonl"

    @property
    def feedback_key(self) -> Path:
        """The key that turns voters into pseudonyms."""
        return self.root / "state" / "feedback.key"

    @property
    def feedback(self) -> Path:
        return self.root / "feedback.jsonl"

    @property
    def opt_outs(self) -> Path:
        """Whose messages are left alone (`/privacy opt-out`)."""
        return self.root / "state" / "opt-outs.json"

    @property
    def evidence(self) -> Path:
        """The collections of files attached to support threads."""
        return self.root / "evidence"

    @property
    def runbooks(self) -> Path:
        """The collections of people's own runbooks."""
        return self.root / "runbooks"

    @property
    def documents(self) -> Path:
        """The collections that all share: the team's knowledge and the documentation, cut up for searching."""
        return self.root / "documents"

    @property
    def shown_runbooks(self) -> Path:
        """Who lets answers in threads be taken from their runbooks."""
        return self.root / "state" / "shown-runbooks.json"

    @property
    def tombstones(self) -> Path:
        """Which files of threads are not to be read again."""
        return self.root / "state" / "gone-files.json"

    @property
    def llm_recordings(self) -> Path:
        return self.root / "llm-recordings"

    # The knowledge base, written by its own branch only.

    @property
    def knowledge_base(self) -> Path:
        return self.root / "knowledge-base"

    @property
    def sources(self) -> Path:
        return self.knowledge_base / "sources"

    @property
    def links(self) -> Path:
        return self.knowledge_base / "links.txt"

    @property
    def index(self) -> Path:
        return self.knowledge_base / "index.txt"

    @property
    def index_cache(self) -> Path:
        return self.knowledge_base / "index-cache.json"

    @property
    def web_cache(self) -> Path:
        return self.knowledge_base / "web-cache"

    # Team knowledge, written by the team branch only.

    @property
    def team_knowledge(self) -> Path:
        return self.root / "team-knowledge"

    @property
    def team_raw(self) -> Path:
        """Tier 1, the raw archive."""
        return self.team_knowledge / "raw"

    @property
    def team_topics(self) -> Path:
        """Tier 2, the topic files."""
        return self.team_knowledge / "topics"

    @property
    def team_index(self) -> Path:
        return self.team_knowledge / "index-team.txt"

    @property
    def team_index_cache(self) -> Path:
        return self.team_knowledge / "index-team-cache.json"

    @property
    def team_state(self) -> Path:
        return self.team_knowledge / "state.json"

    @property
    def decisions(self) -> Path:
        return self.team_knowledge / "decisions.jsonl"

    @property
    def regeneration(self) -> Path:
        """Where `--regen` builds, beside the live library."""
        return self.team_knowledge / "regen"

    @property
    def pending(self) -> Path:
        """Captures that wait, with their images, for image summaries."""
        return self.team_knowledge / "pending"


class FolderBusy(Exception):
    """Another process writes this data folder: the message is one line naming it and the remedy."""


@contextlib.contextmanager
def lock(data_dir: Path, purpose: str) -> Generator[None]:
    """Hold the data folder for as long as the block runs; the folder is made when it is missing.

    The operating system holds the lock, so it ends with its process, however that ends; the file's content only
    tells others who that is. `purpose` is what they read there: the command, such as `app.py --regen`.

    Raises:
        FolderBusy: somebody else holds it.
        OSError: the folder cannot be made or written.
    """
    path = DataFolder(data_dir).lock_file
    data_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderBusy(_busy(data_dir, path)) from None
        holder = {"pid": os.getpid(), "command": purpose, "since": rfc3339(time.time())}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode() + b"\n", 0)
        try:
            yield
        finally:
            # The file stays: deleting it would let two processes lock two files of one name.
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _busy(data_dir: Path, path: Path) -> str:
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None  # it has only just been locked, or somebody wrote into it
    if not isinstance(content, dict):
        return f"{data_dir}: another process is writing this data folder; stop it, or use another app.data_dir"
    holder = cast("dict[str, object]", content)
    # One line, whatever the file says.
    who = " ".join(f"{holder.get('command')} (process {holder.get('pid')}, since {holder.get('since')})".split())
    return f"{data_dir}: in use by {who}; stop that process, or use another app.data_dir"
