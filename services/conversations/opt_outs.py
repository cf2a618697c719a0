"""Who wants to be left alone (`/privacy opt-out`): asked for every message, and kept durably."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from clock import run_blocking
from services.storage import files, json_state

log = logging.getLogger(__name__)


class OptOuts:
    """A change is in force before it is written, so that what is under way heeds it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ids = json_state.read_ids(path)
        self._turn = asyncio.Lock()

    def __contains__(self, user_id: object) -> bool:
        return user_id in self._ids

    async def add(self, user_id: int) -> None:
        """Leave somebody alone from now on.

        Raises:
            OSError: it was not written down, and will not outlive this process.
        """
        self._ids.add(user_id)
        await self._save()

    async def discard(self, user_id: int) -> None:
        """Count somebody in again.

        Raises:
            OSError: as `add`.
        """
        self._ids.discard(user_id)
        await self._save()

    async def _save(self) -> None:
        async with self._turn:
            await run_blocking(_replace, self._path, json_state.render_ids(self._ids))


def _replace(path: Path, content: bytes) -> None:
    if json_state.ids_are_damaged(path):
        # Whoever stands in there may still be told by a person who looks at it.
        aside = path.with_name(f"{path.name}.damaged")
        files.replace(aside, path.read_bytes())
        log.error("%s is damaged: kept as %s; mend it by hand", path, aside.name)
    files.replace(path, content)
