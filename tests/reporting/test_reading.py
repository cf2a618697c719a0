from __future__ import annotations

import json
from pathlib import Path

from clock import rfc3339
from reporting.reading import TimeSpan, VotedQuestion, read_downvoted, read_newest, read_outcomes, read_voted
from services.telemetry import render_part_outcome
from tests.reporting.asked import DAY, MONDAY, asked

PERIOD = TimeSpan(MONDAY, MONDAY + DAY)


def test_entries_of_the_period_are_read_in_order(tmp_path: Path) -> None:
    kept = [asked(str(at), at=MONDAY + at) for at in (-1, 0, DAY - 1, DAY, 3 * DAY)]
    for entry in reversed(kept):
        with (tmp_path / f"{entry.day}.jsonl").open("ab") as file:
            file.write(render_part_outcome(entry) + b"{damaged\n")
    assert read_outcomes(tmp_path, PERIOD) == kept[1:3]
    assert read_newest(tmp_path, 9) == kept
    assert read_newest(tmp_path, 4) == kept[1:]


def test_without_a_record_there_are_none(tmp_path: Path) -> None:
    assert (read_outcomes(tmp_path / "none", PERIOD), read_newest(tmp_path / "none", 9)) == ([], [])


def vote(message_id: int, voter: str, vote: str, at: float = MONDAY, *, inferred: bool = False) -> str:
    row = {"at": rfc3339(at), "message_id": str(message_id), "voter": voter, "question": "q", "sources": ["kb:a"]}
    return json.dumps({**row, "vote": vote} | ({"inferred": True} if inferred else {})) + "\n"


def test_the_last_vote_of_a_voter_counts(tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    path.write_text(
        vote(1, "ada", "up")
        + vote(1, "ada", "down", MONDAY + 5)
        + vote(1, "bob", "up")
        + vote(1, "bob", "down", inferred=True)  # counts only where there is no other
        + vote(2, "ada", "down")
        + vote(2, "ada", "withdrawn")
        + vote(3, "ada", "down", inferred=True)
        + vote(4, "ada", "down", MONDAY + 2 * DAY)
        + "{damaged\n[]\n"
    )
    assert read_downvoted(path, PERIOD) == [
        VotedQuestion(1, MONDAY + 5, "q", ("kb:a",), 1, 1),
        VotedQuestion(3, MONDAY, "q", ("kb:a",), 0, 1),
    ]


def test_votes_for_an_answer_are_read_as_well_oldest_answer_first(tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    path.write_text(
        vote(7, "ada", "up", MONDAY + 9)
        + vote(2, "ada", "down", MONDAY + 1)
        + vote(2, "bob", "up", MONDAY + 3)
        + vote(4, "ada", "withdrawn")
        + vote(5, "ada", "up", MONDAY + 2 * DAY)
    )
    assert read_voted(path, PERIOD) == [
        VotedQuestion(2, MONDAY + 3, "q", ("kb:a",), 1, 1),
        VotedQuestion(7, MONDAY + 9, "q", ("kb:a",), 1, 0),
    ]


def test_without_votes_nothing_is_voted_down(tmp_path: Path) -> None:
    assert read_downvoted(tmp_path / "feedback.jsonl", PERIOD) == []
