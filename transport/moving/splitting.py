"""Divide the state of an installation among partitions, by channel. Blocking."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from services.conversations import Mark, read_marks, read_posts, read_started, render_marks
from services.storage import DataFolder, Record
from transport.mirror.folders import files_below
from transport.partitions import partition_of

NO_CHANNEL_PARTITION = 0
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


@dataclass(frozen=True)
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
            return {self._started.get(path.name, NO_CHANNEL_PARTITION): path.read_bytes()}
        return {NO_CHANNEL_PARTITION: path.read_bytes()}

    def _of(self, *places: int | str | None) -> set[int]:
        return {self._at(int(place)) for place in places if place is not None} or {NO_CHANNEL_PARTITION}

    def _at(self, place_id: int) -> int:
        """The partition of a place, which for a thread is that of its channel."""
        return partition_of(self._channels.get(place_id, place_id), self.partitions)

    @cached_property
    def _channels(self) -> Mapping[int, int]:
        """Of the threads that the bot has opened."""
        return {post.place_id: post.asked_in for post in read_posts(self.folder.posts) if post.opened_thread}

    def _of_post(self, row: Record) -> Collection[int]:
        """Where it was asked for. Nothing tells which channel a thread of somebody else is in: there it is known to all
        partitions.
        """
        place_id = int(row["place_id"])
        known = row["opened_thread"] or place_id in self._channels
        return self._of(place_id) if known else range(self.partitions)

    @property
    def _started(self) -> Mapping[str, int]:
        started = read_started(self.folder.outbox)
        return {f"{reply.id}.json": self._at(reply.post.asked_in) for reply in started}

    def _marks(self) -> Mapping[int, bytes]:
        divided: dict[int, dict[int, Mark]] = defaultdict(dict)
        for place_id, mark in read_marks(self.folder.seen).items():
            partition = self._at(place_id) if place_id > 0 else NO_CHANNEL_PARTITION
            divided[partition][place_id] = mark
        return {partition: render_marks(marks) for partition, marks in divided.items()}

    def _lines(self, path: Path, partitions_of: Callable[[Record], Collection[int]]) -> Mapping[int, bytes]:
        divided: dict[int, bytearray] = defaultdict(bytearray)
        for line in lines_of(path.read_bytes()):
            try:
                partitions = partitions_of(cast("Record", json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                partitions = (NO_CHANNEL_PARTITION,)  # damaged: it is kept, as it was
            for partition in partitions:
                divided[partition] += line
        return {partition: bytes(content) for partition, content in divided.items()}


def lines_of(content: bytes) -> Iterator[bytes]:
    """Each with its end, also the last one."""
    return (
        line if line.endswith(b"\n") else line + b"\n" for line in content.splitlines(keepends=True) if line.strip()
    )
