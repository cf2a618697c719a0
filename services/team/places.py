"""Where team knowledge lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.storage import DataFolder


@dataclass(frozen=True, slots=True)
class TeamPlaces:
    raw: Path
    """Tier 1, the archive: read only by the library."""
    decisions: Path
    topics: Path
    index: Path
    cache: Path
    state: Path

    @classmethod
    def below(cls, folder: DataFolder) -> TeamPlaces:
        """As in a data folder whose paths nobody has set otherwise."""
        return cls(
            raw=folder.team_raw,
            decisions=folder.decisions,
            topics=folder.team_topics,
            index=folder.team_index,
            cache=folder.team_index_cache,
            state=folder.team_state,
        )


class LibraryUnusable(Exception):
    """Team knowledge cannot be opened as it lies there: one readable line that names file or key, and the remedy."""


class LibraryUnwritable(Exception):
    """Something was not written: one readable line that names the file and the remedy. What was decided before is
    kept; the library may be called again, and writes what is missing first.
    """
