"""Files of threads that must not be read again though their messages are there: kept as ids, without content."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from pathlib import Path

from clock import run_blocking
from services.documents.candidates import Candidate
from services.documents.store.protocol import Origin
from services.storage import files, json_state

MOST_MESSAGES = 20_000
MOST_THREADS = 5_000  # of both the oldest are forgotten first

log = logging.getLogger(__name__)


class Tombstones:
    """Files that people had forgotten, and those deleted when their thread was closed.

    `{"files": {"<message>": ["<attachment>", …]}, "closed": {"<thread>": [<when>, <whether people were told>]}}`. A
    code block, which is no attachment, goes by its name, made of its message and number.

    Every method that changes something raises OSError if that could not be written: it is then known to this process
    only.
    """

    def __init__(self, path: Path | None = None) -> None:
        """`path` None: nothing outlives the process."""
        self._path = path
        self._files: dict[int, list[str]] = {}
        self._closed: dict[int, tuple[float, bool]] = {}
        self._turn = asyncio.Lock()
        if path is not None:
            self._read(path)

    def holds(self, candidate: Candidate) -> bool:
        """Whether a file must not be read: somebody had it forgotten, or its thread was closed after it came."""
        mark = _mark(candidate.attachment.id, candidate.message_id, candidate.filename)
        if mark in self._files.get(candidate.message_id, ()):
            return True
        closed = self._closed.get(candidate.case_id)
        return closed is not None and candidate.at <= closed[0]

    async def add(self, origins: Iterable[Origin]) -> None:
        """Somebody had the files forgotten that came from there."""
        for origin in origins:
            if origin.message_id is not None and origin.attachment_id is not None:
                marks = self._files.setdefault(origin.message_id, [])
                mark = _mark(origin.attachment_id, origin.message_id, origin.filename)
                if mark not in marks:
                    marks.append(mark)
        await self._save()

    async def forget_messages(self, message_ids: Iterable[int]) -> None:
        """These messages are gone themselves."""
        known = [message_id for message_id in message_ids if self._files.pop(message_id, None)]
        if known:
            await self._save()

    async def close(self, case_id: int, at: float) -> None:
        """The files of a thread were deleted as it was closed."""
        self._closed.pop(case_id, None)
        self._closed[case_id] = at, False
        await self._save()

    def is_unannounced(self, case_id: int) -> bool:
        """Whether a thread's files were deleted when it was closed, and its people have not been told."""
        return not self._closed.get(case_id, (0.0, True))[1]

    async def announced(self, case_id: int) -> None:
        """The people of a thread have been told."""
        if self.is_unannounced(case_id):
            self._closed[case_id] = self._closed[case_id][0], True
            await self._save()

    async def _save(self) -> None:
        for held, most in ((self._files, MOST_MESSAGES), (self._closed, MOST_THREADS)):
            for oldest in list(held)[: max(0, len(held) - most)]:
                held.pop(oldest)
        if self._path is None:
            return
        async with self._turn:
            content = {
                "files": {str(message): marks for message, marks in self._files.items()},
                "closed": {str(case_id): closed for case_id, closed in self._closed.items()},
            }
            await run_blocking(files.replace, self._path, json.dumps(content, indent=0).encode() + b"\n")

    def _read(self, path: Path) -> None:
        kept = json_state.read_object(path)
        try:
            self._files = {int(message): [str(mark) for mark in marks] for message, marks in kept["files"].items()}
            self._closed = {int(case_id): (float(at), bool(told)) for case_id, (at, told) in kept["closed"].items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            if kept:
                log.error("%s is damaged: files that were removed may be read again", path)  # noqa: TRY400 (for the operator)


def _mark(attachment_id: int, message_id: int, filename: str) -> str:
    return str(attachment_id) if attachment_id != message_id else filename
