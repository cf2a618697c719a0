"""Which pairs may make room for a new one (SPEC 6, step 3 of "Classify and integrate")."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from services.team import qa_ids
from services.team.archive import Pair
from services.team.topics import place

log = logging.getLogger(__name__)

MOST_REMOVED = 3


def allowed_removals(pair: Pair, held: Sequence[Pair], remove_ids: Sequence[str]) -> tuple[str, ...]:
    """Those of `remove_ids`, what a model says is obsolete, that may go when `pair` joins `held` (Pitfall 10).

    Only pairs of the topic that are older than `pair`; at most 3, and never more than half of the topic. Earlier
    captures of the same conversation do not count: the model has not seen them. The others are logged.
    """
    if not remove_ids:
        return ()
    others = {qa_ids.instant(each.id): each for each in held if each.conversation_id != pair.conversation_id}
    most = min(MOST_REMOVED, len(others) // 2)
    allowed: dict[str, None] = {}
    for pair_id in remove_ids:
        try:
            found = others.get(qa_ids.instant(pair_id.strip()))
        except qa_ids.BadId:
            found = None
        if found is None:
            why = "it is not in the topic"
        elif place(found) >= place(pair):
            why = "it is not older"
        elif found.id not in allowed and len(allowed) >= most:
            why = f"of {len(others)} pairs at most {most} may go at once"
        else:
            allowed[found.id] = None
            continue
        log.warning("%s does not remove %.80r: %s", pair.id, pair_id, why)
    return tuple(allowed)


def replaced_by(pair: Pair, held: Sequence[Pair]) -> tuple[str, ...]:
    """The ids of the earlier captures of the same conversation, which `pair` contains (Pitfalls 13 and 15)."""
    captured = qa_ids.instant(pair.id)
    return tuple(
        each.id for each in held if each.conversation_id == pair.conversation_id and qa_ids.instant(each.id) < captured
    )
