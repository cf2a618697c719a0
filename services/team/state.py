"""The files of a team library, its state file, and the start cursor: up to where pairs need no decision."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import DAY
from model.processes import UserError
from services.team import archive, archive_files
from services.team.decisions import DecisionLog

CURSOR_AHEAD_SECONDS = DAY  # seconds that a cursor may be newer than the newest pair


class LibraryUnusable(UserError):
    """The library cannot be opened: one readable line that names file or key, and the remedy."""


@dataclass(frozen=True, slots=True)
class TeamPaths:
    """The files and folders of a library. `raw` is the archive, tier 1, which the library only reads."""

    raw: Path
    decisions: Path
    topics: Path
    index: Path
    cache: Path
    state: Path


@dataclass(frozen=True, slots=True)
class TeamState:
    """The content of `state.json`, in the order of its fields.

        {"last_processed_qa_id": "qa_20260201_031057.000000", "start_qa_id": "", "filed_bytes": 1234}

    While a rebuilt library is swapped in, `announced` is set. Once that decisions file is in place, all topic files
    are overwritten, also those changed by hand.

    Attributes:
        last_processed_qa_id: the newest id with a decision.
        start_qa_id: the start cursor: pairs up to it need no decision.
        filed_bytes: the length of the decisions file that the topic files are known to contain.
        announced: the SHA-256 of the decisions file of a rebuilt library that is being swapped in; empty otherwise.
    """

    last_processed_qa_id: str = ""
    start_qa_id: str = ""
    filed_bytes: int = 0
    announced: str = ""

    def is_swapping_in(self, decisions: bytes) -> bool:
        """Return True if a rebuilt library with this decisions file is being swapped in."""
        return self.announced == digest_of_decisions(decisions)

    def start_id(self, *, has_decisions: bool) -> str:
        """Return the start cursor. `has_decisions`: there is a file of decisions; until then
        `last_processed_qa_id` is the start cursor.
        """
        return self.start_qa_id if has_decisions else self.last_processed_qa_id


_STATE = TypeAdapter(TeamState)


def digest_of_decisions(decisions: bytes) -> str:
    return hashlib.sha256(decisions).hexdigest()


def read_state(path: Path) -> TeamState:
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
        _cursor_instant(pair_id, f"{path}: last_processed_qa_id")
    return state


def render_state(state: TeamState) -> bytes:
    content = {name: value for name, value in asdict(state).items() if name != "announced" or value}
    return json.dumps(content).encode() + b"\n"


def start_cursor(paths: TeamPaths, state: TeamState, configured: str, now: float) -> Decimal | None:
    """Return the start cursor: the newer of the `configured` id and that of the state file. Pairs up to it need no
    decision; None: all pairs do. `now`: seconds since 1970. Raises OSError, and LibraryUnusable: a cursor is no id
    or is more than a day newer than the newest pair, or decisions have been lost.
    """
    if state.filed_bytes > 0 and not DecisionLog(paths.decisions).length and not state.is_swapping_in(b""):
        raise LibraryUnusable(
            f"{paths.decisions} is missing or empty, and {paths.state} says that there were decisions; "
            "put it back, or delete the state file and have all captured conversations filed again"
        )
    newest = archive_files.last_timestamp(paths.raw)
    limit = CURSOR_AHEAD_SECONDS + (Decimal(now) if newest is None else archive.timestamp_instant(newest))
    found = state.start_id(has_decisions=paths.decisions.exists())
    cursors = {"kb.qa_raw_last_processed_id": configured, f"{paths.state}: last_processed_qa_id": found}
    keys = {where: key for where, pair_id in cursors.items() if (key := _cursor_instant(pair_id, where)) is not None}
    for where, key in keys.items():
        if key > limit:
            raise LibraryUnusable(
                f"{where}: {cursors[where]} is more than a day newer than the newest captured conversation, "
                "so that nothing would be learned; correct it, or empty it"
            )
    return max(keys.values(), default=None)


def _cursor_instant(pair_id: str, where: str) -> Decimal | None:
    try:
        return archive.instant(pair_id) if pair_id else None
    except archive.BadId as error:
        raise LibraryUnusable(f"{where}: {error}; correct it, or empty it") from None
