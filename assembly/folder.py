"""The data folder, for the one process that writes it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from pathlib import Path

from services.storage import close_to_others, lock
from services.telemetry import number_of
from settings import Settings

log = logging.getLogger(__name__)


@contextlib.contextmanager
def data_folder_locked(settings: Settings, command: str) -> Generator[None]:
    """Lock the data folder for as long as the block runs, and close it to other users. `command` is shown to whoever
    finds it locked, such as `app.py --regen`.

    What an earlier version or a copy has left open is closed as well. The operator's documents, and the folders that
    lead to them, keep their permissions: others may have to write there. Raises as `services.storage.lock`.
    """
    with lock(settings.app.data_dir, command):
        for guild_id, server in settings.servers.items():
            if settings.guilds[guild_id].kb.sources_dir is None:
                server.kb.sources_dir.mkdir(parents=True, exist_ok=True)  # where its documents are put
        kbs = [each.kb for each in (settings, *settings.servers.values())]
        documents = {path for kb in kbs for path in (kb.sources_dir, kb.links_file_path)}
        closed = close_to_others(private_paths(settings), documents)
        if closed:
            what = number_of(closed, "file or folder", "files and folders")
            log.info("%s: %s could be read by other users, and cannot any more", settings.app.data_dir, what)
        yield


def private_paths(settings: Settings) -> set[Path]:
    """Give the paths that must be closed to other users of the machine."""
    kb, log_file = settings.kb, settings.logging.file.path
    places = {settings.app.data_dir, kb.index_path, kb.index_cache_path, kb.web_fetch_cache_dir, kb.team_raw_dir}
    places |= {kb.team_topics_dir, kb.team_index_path, kb.team_index_cache_path, kb.team_state_path}
    if log_file is not None:
        places |= {log_file, *log_file.parent.glob(f"{log_file.name}.*")}
    return places
