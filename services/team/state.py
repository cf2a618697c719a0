"""`state.json`: how far the archive has been filed, and where filing began (SPEC 6, step 1; Pitfall 46).

    {"last_processed_qa_id": "qa_20260201_031057.000000", "start_qa_id": "", "filed_bytes": 1234}

`last_processed_qa_id` is the newest id with a decision. `start_qa_id` is what stood there before there were decisions:
pairs up to it are done. `filed_bytes` is how much of the decisions the topic files are known to contain.

While a rebuilt library is swapped in, `announced` is there as well: the SHA-256 of the decisions that come next. Once
they are there, topics are written anew, whatever stands in them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from services.team import qa_ids, week_files
from services.team.decisions import DecisionLog
from services.team.places import LibraryUnusable, TeamPlaces

MOST_AHEAD = 86_400
"""Seconds that a cursor may be newer than the newest pair."""

KEY = "kb.qa_raw_last_processed_id"


@dataclass(frozen=True, slots=True)
class TeamState:
    last_processed_qa_id: str = ""
    start_qa_id: str | None = None
    """None in a file of another program, or where there is none."""
    filed_bytes: int | None = None
    announced: str = ""

    def arrived(self, decisions: bytes) -> bool:
        """Whether these are the decisions that were announced."""
        return self.announced == digest(decisions)


_STATE = TypeAdapter(TeamState)


def digest(decisions: bytes) -> str:
    return hashlib.sha256(decisions).hexdigest()


def read(path: Path) -> TeamState:
    """A missing file is a state without anything.

    Raises:
        LibraryUnusable: it is damaged, or holds something else than ids.
        OSError: it cannot be read.
    """
    try:
        state = _STATE.validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return TeamState()
    except ValidationError:
        raise LibraryUnusable(f'{path}: no {{"last_processed_qa_id": "…"}}; mend it, or delete it') from None
    for pair_id in (state.last_processed_qa_id, state.start_qa_id or ""):
        _instant(pair_id, f"{path}: last_processed_qa_id")
    return state


def found_at_first(state: TeamState, *, begun: bool) -> str:
    """The cursor of the state file as it was when there were no decisions yet; `begun`: now there are."""
    return (state.start_qa_id or "") if begun else state.last_processed_qa_id


def render(state: TeamState) -> bytes:
    content: dict[str, object] = {
        "last_processed_qa_id": state.last_processed_qa_id,
        "start_qa_id": state.start_qa_id or "",
        "filed_bytes": state.filed_bytes or 0,
    }
    if state.announced:
        content["announced"] = state.announced
    return json.dumps(content).encode() + b"\n"


def begins_after(places: TeamPlaces, state: TeamState, configured: str, now: float) -> Decimal | None:
    """The instant behind which pairs are to be filed; None: all are. `now`: seconds since 1970.

    Raises:
        LibraryUnusable: as `start_cursor`, or decisions have been lost.
        OSError: something cannot be read.
    """
    lost = not DecisionLog(places.decisions).length and (state.filed_bytes or 0) > 0
    if lost and not state.arrived(b""):
        raise LibraryUnusable(
            f"{places.decisions} is missing or empty, and {places.state} says that there were decisions; "
            "put it back, or delete the state file and have all captured conversations filed anew"
        )
    newest = week_files.last_timestamp(places.raw)
    ahead_of = Decimal(now) if newest is None else qa_ids.timestamp_instant(newest)
    found = found_at_first(state, begun=places.decisions.exists())
    return start_cursor(configured, found, places.state, ahead_of)


def start_cursor(configured: str, found: str, path: Path, newest: Decimal) -> Decimal | None:
    """The newer of the configured id and the `found` one of the state file at `path`; None: everything is to be filed.

    `newest` is the instant of the newest pair.

    Raises:
        LibraryUnusable: one is no id, or more than a day newer than the newest pair.
    """
    cursors: list[Decimal] = []
    for pair_id, where in ((configured, KEY), (found, f"{path}: last_processed_qa_id")):
        cursor = _instant(pair_id, where)
        if cursor is None:
            continue
        if cursor > newest + MOST_AHEAD:
            raise LibraryUnusable(
                f"{where}: {pair_id} is more than a day newer than the newest captured conversation, "
                "so that nothing would be learned; correct it, or empty it"
            )
        cursors.append(cursor)
    return max(cursors, default=None)


def _instant(pair_id: str, where: str) -> Decimal | None:
    try:
        return qa_ids.instant(pair_id) if pair_id else None
    except qa_ids.BadId as error:
        raise LibraryUnusable(f"{where}: {error}; correct it, or empty it") from None
