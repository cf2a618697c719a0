"""What teams have taught, as `/privacy forget` needs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.knowledge import LibrarySearch
from services.privacy import Learned
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

    @property
    def learned(self) -> Learned:
        return Learned(self.folder, self.raw, None if self.curation is None else self.curation.library)


def taught(settings: Settings, curation: CurationParts | None, search: LibrarySearch | None) -> Teachings:
    """`settings`: as they hold there."""
    return Teachings(DataFolder(settings.app.data_dir), settings.kb.team_raw_dir, curation, search)
