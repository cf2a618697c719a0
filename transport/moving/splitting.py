"""The state of an installation, divided among the partitions of its channels. Blocking."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from services.conversations import Mark, read_marks, read_posts, read_started, render_marks
from services.storage import DataFolder, Record
from transport.mirror.folders import files_below
from transport.moving.partitions import partition_of

NOWHERE = 0
"""The partition of what belongs to no channel."""
STATE = ("state", "feedback.jsonl")
SHARED = (
    "state/usage.json",
    "state/opt-outs.json",
    "state/shown-runbooks.json",
    "state/feedback.key",
    "state/gone-files.json",
)
"""What all processes share: it is in buckets, not in the log."""


@dataclass(frozen=True, slots=True)
class Splitter:
    """Divides the state of `folder` among so many partitions."""

    folder: DataFolder
    partitions: int

    def split(self) -> Mapping[int, Mapping[str, bytes]]:
        """By partition, the files that it gets and their contents.

        Raises:
            OSError: a file cannot be read.
        """
        found: dict[int, dict[str, bytes]] = defaultdict(dict)
        for path in files_below(self.folder.root, STATE):
            if path not in SHARED:
                for partition, content in self._divided(path).items():
                    found[partition][path] = content
        return found

    def _divided(self, name: str) -> Mapping[int, bytes]:
        folder, path = self.folder, self.folder.root / name
        if path == folder.posts:
            return self._lines(path, self._of_post)
        if path == folder.feedback:
            places = {post.message_id: post.place_id for post in read_posts(folder.posts)}
            return self._lines(path, lambda row: self._of(places.get(int(row["message_id"]))))
        if path.parent == folder.outcomes and path.suffix == ".jsonl":
            return self._lines(path, lambda row: self._of(row.get("place_id")))
        if path == folder.seen:
            return self._marks()
        if path.parent == folder.outbox:
            return {self._started.get(path.name, NOWHERE): path.read_bytes()}
        return {NOWHERE: path.read_bytes()}

    def _of(self, *places: int | str | None) -> set[int]:
        return {partition_of(int(place), self.partitions) for place in places if place is not None} or {NOWHERE}

    def _of_post(self, row: Record) -> set[int]:
        """A post is known where it was asked for, and where one may go on asking."""
        return self._of(row["asked_in"], row["place_id"])

    @property
    def _started(self) -> Mapping[str, int]:
        started = read_started(self.folder.outbox)
        return {f"{reply.id}.json": partition_of(reply.post.asked_in, self.partitions) for reply in started}

    def _marks(self) -> Mapping[int, bytes]:
        divided: dict[int, dict[int, Mark]] = defaultdict(dict)
        for place_id, mark in read_marks(self.folder.seen).items():
            partition = partition_of(place_id, self.partitions) if place_id > 0 else NOWHERE
            divided[partition][place_id] = mark
        return {partition: render_marks(marks) for partition, marks in divided.items()}

    def _lines(self, path: Path, partitions_of: Callable[[Record], Collection[int]]) -> Mapping[int, bytes]:
        divided: dict[int, bytearray] = defaultdict(bytearray)
        for line in lines_of(path.read_bytes()):
            try:
                partitions = partitions_of(cast("Record", json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                partitions = (NOWHERE,)  # damaged: it is kept, as it was
            for partition in partitions:
                divided[partition] += line
        return {partition: bytes(content) for partition, content in divided.items()}


def lines_of(content: bytes) -> Iterator[bytes]:
    """Each with its end, also the last one."""
    return (
        line if line.endswith(b"\n") else line + b"\n" for line in content.splitlines(keepends=True) if line.strip()
    )
