"""Team knowledge, where the settings say that it lies."""

from __future__ import annotations

from services.data_folder import DataFolder
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
