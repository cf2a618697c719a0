"""What teams have taught, and what else the data folder holds, as forgetting a person needs it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from assembly.searching import KB_FILE, TEAM_FILE, drop_team_passages
from assembly.team import open_team
from services.knowledge import LibrarySearch
from services.privacy import Learned, Surroundings, has_written
from services.storage import DataFolder
from settings import Settings
from streams.curation_parts import CurationParts


@dataclass(frozen=True, slots=True)
class Teachings:
    """What teams have taught, and what is made of it for searching: in a server of its own, or in all others."""

    folder: DataFolder
    raw: Path
    """The raw archive."""
    curation: CurationParts | None = None
    search: LibrarySearch | None = None
    internal_topics: Collection[str] = ()

    @property
    def learned(self) -> Learned:
        library = None if self.curation is None else self.curation.library
        return Learned(self.folder, self.raw, library, self.internal_topics)


def taught(settings: Settings, curation: CurationParts | None, search: LibrarySearch | None) -> Teachings:
    """`settings`: as they hold there."""
    folder, kb = DataFolder(settings.app.data_dir), settings.kb
    return Teachings(folder, kb.team_raw_dir, curation, search, kb.internal_topics)


def everywhere(settings: Settings) -> list[Settings]:
    """The settings as they hold in what all share, in each server of `guilds`, and in each that has only a folder left.
    Blocking. Raises OSError.
    """
    return [settings, *settings.servers.values(), *departed(settings)]


def departed(settings: Settings) -> list[Settings]:
    """As they hold in servers whose entry has gone from `guilds`, but not their folder. Blocking. Raises OSError."""
    there = DataFolder(settings.app.data_dir).guild_ids()
    return [settings.in_departed(guild_id) for guild_id in there if guild_id not in settings.servers]


def learned_in(settings: Settings) -> Learned:
    """What was taught where these settings hold, opened by nobody else. Blocking. Raises as `open_team`."""
    folder, raw = DataFolder(settings.app.data_dir), settings.kb.team_raw_dir
    return Learned(folder, raw, open_team(settings), settings.kb.internal_topics)


def forgotten_by_search(settings: Sequence[Settings], user_id: int) -> bool:
    """Delete what search keeps of topics with words of a person, where no search is open. Whether there may have been
    such words. Blocking. Raises OSError.
    """
    written = [each for each in settings if has_written(each.kb.team_raw_dir, user_id)]
    for each in written:
        drop_team_passages(each)
    return bool(written)


def surroundings(settings: Settings, *, running: bool = False) -> Surroundings:
    """What else may be in the data folder. `running`: a bot writes to it. Blocking. Raises OSError."""
    documents, learned = list[Path](), list[Path]()
    for each in everywhere(settings):
        kb = each.kb
        documents += [kb.sources_dir, kb.links_file_path, kb.index_path, kb.index_cache_path, kb.web_fetch_cache_dir]
        documents.append(kb.index_path.with_name(KB_FILE))
        learned += [kb.team_raw_dir, kb.team_topics_dir, kb.team_index_path, kb.team_index_cache_path]
        learned += [kb.team_state_path, kb.team_index_path.with_name(TEAM_FILE)]
    return Surroundings([*documents, *learned], documents, settings.logging.file.path, running)
