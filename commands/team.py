"""Team knowledge, where the settings say that it lies."""

from __future__ import annotations

import time

from services.data_folder import DataFolder
from services.team_library import TeamLibrary
from services.team_opening import open_library
from services.team_places import TeamPlaces
from settings import Settings


def team_places(settings: Settings) -> TeamPlaces:
    kb = settings.kb
    return TeamPlaces(
        raw=kb.team_raw_dir,
        decisions=DataFolder(settings.app.data_dir).decisions,
        topics=kb.team_topics_dir,
        index=kb.team_index_path,
        cache=kb.team_index_cache_path,
        state=kb.team_state_path,
    )


def open_team(settings: Settings) -> TeamLibrary:
    """The team library, for a command that describes no topic. To be called by the holder of the data folder's lock.

    Raises:
        LibraryUnusable: it cannot be opened as it lies there.
        OSError: something cannot be read or written.
    """
    return open_library(
        team_places(settings),
        configured_cursor=settings.kb.qa_raw_last_processed_id,
        max_topic_chars=settings.kb.max_topic_chars,
        time=time.time,
    )
