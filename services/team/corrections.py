"""What operators correct by hand, and what keeps them from it (SPEC 6, `--kb remove` and `--kb restore`).

Blocking. Raises LibraryUnwritable and OSError as the library does.
"""

from __future__ import annotations

from services.team import qa_ids
from services.team.archive import Pair
from services.team.decisions import Action, By, Decision
from services.team.library import TeamLibrary


class CorrectionRefused(Exception):
    """There is nothing to correct: one readable line that says why, and what to do instead."""


def remove(library: TeamLibrary, pair_id: str, at: str) -> str:
    """Take a pair out of its topic, and keep it out. Gives what was done, in a line.

    Raises:
        Refused: there is no such pair, or it is out already.
    """
    pair = _pair(library, pair_id)
    standing = library.standing(pair)
    if standing.withdrawn:
        raise CorrectionRefused(f"{pair.id} was removed already; --kb restore {pair.id} takes that back")
    library.decide(Decision(pair.id, at, Action.REMOVED, By.OPERATOR, standing.topic))
    if standing.topic is None:
        return f"{pair.id} was in no topic, and stays out of all."
    left = library.topics.get(standing.topic)
    rest = "held nothing else and is gone" if left is None else f"holds {len(left.pairs)} still"
    return f"{pair.id} is removed from {standing.topic}, which {rest}."


def restore(library: TeamLibrary, pair_id: str, at: str) -> str:
    """Bring a pair in again where it was last. Gives what was done, in a line.

    Raises:
        Refused: there is no such pair, it is in force, was never in a topic, or a later capture of the same
            conversation stands for it.
    """
    pair = _pair(library, pair_id)
    standing = library.standing(pair)
    if standing.topic is not None:
        raise CorrectionRefused(f"{pair.id} is in {standing.topic} already")
    if not standing.withdrawn and standing.last_topic is None:
        raise CorrectionRefused(f"{pair.id} is in no topic to go back to; --regen decides about all conversations anew")
    if standing.later is not None:
        raise CorrectionRefused(
            f"{standing.later.id}, a later capture of the same conversation, stands for {pair.id}; "
            f"remove that first: --kb remove {standing.later.id}"
        )
    library.decide(Decision(pair.id, at, Action.RESTORED, By.OPERATOR, standing.last_topic))
    back = library.standing(pair).topic
    return f"{pair.id} is in {back} again." if back is not None else f"{pair.id} will be filed at the next start."


def _pair(library: TeamLibrary, pair_id: str) -> Pair:
    try:
        pair = library.pair(pair_id)
    except qa_ids.BadId as error:
        raise CorrectionRefused(str(error)) from None
    if pair is None:
        raise CorrectionRefused(f"{library.places.raw} holds no conversation {pair_id}; --kb show TOPIC tells the ids")
    return pair
