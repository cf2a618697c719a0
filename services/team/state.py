"""The paths of a team library, and its `state.json`: how far the archive has been filed, and where filing began (SPEC
6, step 1).

    {"last_processed_qa_id": "qa_20260201_031057.000000", "start_qa_id": "", "filed_bytes": 1234}

`last_processed_qa_id` is the newest id with a decision; `start_qa_id` is what it was before there were decisions: pairs
up to it need none. `filed_bytes` is how much of the decisions file the topic files are known to contain.

While a rebuilt library is swapped in there is also `announced`, the SHA-256 of the decisions file that comes next. Once
that is in place, topic files are overwritten, whatever they contain.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from services.team import archive_files, qa_ids
from services.team.decisions import DecisionLog

MOST_AHEAD = 86_400  # seconds that a cursor may be newer than the newest pair


class LibraryUnusable(Exception):
    """The library cannot be opened: one readable line that names file or key, and the remedy."""


class LibraryUnwritable(Exception):
    """Something was not written, and may be later: one readable line that names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class TeamPlaces:
    """The files and folders of a library. `raw` is the archive, tier 1, which the library only reads."""

    raw: Path
    decisions: Path
    topics: Path
    index: Path
    cache: Path
    state: Path


@dataclass(frozen=True, slots=True)
class TeamState:
    """The content of `state.json`, in the order of its fields."""

    last_processed_qa_id: str = ""
    start_qa_id: str = ""
    filed_bytes: int = 0
    announced: str = ""

    def announces(self, decisions: bytes) -> bool:
        return self.announced == digest(decisions)

    def start(self, *, begun: bool) -> str:
        """Return the cursor from before there were any decisions; `begun`: there are some now."""
        return self.start_qa_id if begun else self.last_processed_qa_id


_STATE = TypeAdapter(TeamState)


def digest(decisions: bytes) -> str:
    return hashlib.sha256(decisions).hexdigest()


def read(path: Path) -> TeamState:
    """Read the state file; an empty state if there is none. Raises OSError, and LibraryUnusable: it is damaged, or
    holds invalid ids.
    """
    try:
        state = _STATE.validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return TeamState()
    except ValidationError:
        raise LibraryUnusable(f'{path}: no {{"last_processed_qa_id": "…"}}; correct it, or delete it') from None
    for pair_id in (state.last_processed_qa_id, state.start_qa_id):
        _instant(pair_id, f"{path}: last_processed_qa_id")
    return state


def render(state: TeamState) -> bytes:
    content = {name: value for name, value in asdict(state).items() if name != "announced" or value}
    return json.dumps(content).encode() + b"\n"


def begins_after(places: TeamPlaces, state: TeamState, configured: str, now: float) -> Decimal | None:
    """Return the start cursor: the newer of the `configured` id and that of the state file. Pairs up to it need no
    decision; None: all pairs do. `now`: seconds since 1970. Raises OSError, and LibraryUnusable: a cursor is no id
    or is more than a day newer than the newest pair, or decisions have been lost.
    """
    if state.filed_bytes > 0 and not DecisionLog(places.decisions).length and not state.announces(b""):
        raise LibraryUnusable(
            f"{places.decisions} is missing or empty, and {places.state} says that there were decisions; "
            "put it back, or delete the state file and have all captured conversations filed again"
        )
    newest = archive_files.last_timestamp(places.raw)
    limit = MOST_AHEAD + (Decimal(now) if newest is None else qa_ids.timestamp_instant(newest))
    found = state.start(begun=places.decisions.exists())
    cursors = {"kb.qa_raw_last_processed_id": configured, f"{places.state}: last_processed_qa_id": found}
    keys = {where: key for where, pair_id in cursors.items() if (key := _instant(pair_id, where)) is not None}
    for where, key in keys.items():
        if key > limit:
            raise LibraryUnusable(
                f"{where}: {cursors[where]} is more than a day newer than the newest captured conversation, "
                "so that nothing would be learned; correct it, or empty it"
            )
    return max(keys.values(), default=None)


def _instant(pair_id: str, where: str) -> Decimal | None:
    try:
        return qa_ids.instant(pair_id) if pair_id else None
    except qa_ids.BadId as error:
        raise LibraryUnusable(f"{where}: {error}; correct it, or empty it") from None
