from __future__ import annotations

from dataclasses import replace

import pytest

from services.team import archive
from services.team.archive import Pair
from services.team.filing import allowed_removals, replaced_by
from tests.services.team.test_archive import a_pair


def captured(second: int, conversation: int) -> Pair:
    timestamp = f"2026-02-01T03:10:{second:02}.000000Z"
    return replace(a_pair(), id=archive.qa_id(timestamp), timestamp=timestamp, conversation_id=f"thread_{conversation}")


HELD = [captured(second, second) for second in range(10)]
NEW = captured(30, 30)


def ids(*numbers: int) -> tuple[str, ...]:
    return tuple(HELD[number].id for number in numbers)


def test_what_the_topic_holds_and_is_older_may_go() -> None:
    assert allowed_removals(NEW, HELD, ids(3, 1)) == ids(3, 1)
    assert allowed_removals(NEW, HELD, ()) == ()


def test_what_a_model_may_not_remove_stays_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 10."""
    elsewhere, later = captured(20, 20).id, replace(captured(9, 9), said_at="2027-01-01T00:00:00Z")
    held = [*HELD[:9], later]
    assert allowed_removals(NEW, held, (elsewhere, "everything", later.id, NEW.id, HELD[0].id)) == ids(0)
    assert [message.partition("does not remove ")[2] for message in caplog.messages] == [
        "'qa_20260201_031020.000000': it is not in the topic",
        "'everything': it is not in the topic",
        "'qa_20260201_031009.000000': it is not older",
        "'qa_20260201_031030.000000': it is not in the topic",
    ]


def test_at_most_three_go_at_once_and_never_more_than_half(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfalls 10 and 52: half of the topic with the new pair counted."""
    assert allowed_removals(NEW, HELD, ids(5, 4, 5, 3, 2, 1)) == ids(5, 4, 3)
    most = [len(allowed_removals(NEW, HELD[:count], ids(*range(count)))) for count in range(1, 6)]
    assert most == [1, 1, 2, 2, 3]
    assert "of 4 pairs at most 2 may go at once" in caplog.text


def test_ids_are_compared_as_instants() -> None:
    """Pitfall 4."""
    assert allowed_removals(NEW, HELD, ("qa_20260201_031003", " qa_20260201_031004.0 ")) == ids(3, 4)


def test_earlier_captures_of_the_conversation_are_replaced_and_no_business_of_the_models() -> None:
    """Pitfalls 13 and 15."""
    held = [captured(1, 7), captured(2, 8), captured(3, 7), captured(40, 7), captured(4, 9), captured(5, 9)]
    new = captured(30, 7)
    assert replaced_by(new, held) == (held[0].id, held[2].id)
    assert allowed_removals(new, held, (held[0].id, held[1].id)) == (held[1].id,)
    assert allowed_removals(new, held[:3], (held[0].id, held[1].id)) == (held[1].id,)
