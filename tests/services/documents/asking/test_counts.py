"""What is counted, and by what."""

from __future__ import annotations

import pytest

from services.documents.asking.plan import Aggregate
from tests.services.documents.asking.planning import planned


@pytest.mark.parametrize(
    "question",
    [
        "How many ERROR entries are in server.log?",
        "count the ERROR lines of server.log",
        "What is the number of ERROR messages?",
        "how often does ERROR occur",
        "Total number of ERROR records?",
        "How many times was ERROR logged?",
        "Number of entries at level ERROR in server.log, please",
        "how many ERRORs are there altogether?",
    ],
)
def test_a_count_is_asked_for_in_many_ways(question: str) -> None:
    understood = planned(question)
    assert understood.aggregate is Aggregate.COUNT
    assert understood.severity is not None
    assert understood.severity.levels == ("ERROR",)
    assert understood.words == ()


@pytest.mark.parametrize(
    "question",
    ["the amount of DEBUG messages?", "hw many warnings", "no. of errors", "quantity of INFO lines", "# of warnings?"],
)
def test_a_number_is_asked_for_by_other_names(question: str) -> None:
    assert planned(question).aggregate is Aggregate.COUNT


@pytest.mark.parametrize(
    ("question", "counts"),
    [
        ("how often does backupd show up?", True),
        ("count the lines with backupd", True),
        ("How many entries mention backupd?", True),
        ("How many users are there?", False),
        ("On which host did it fail, and how often?", False),
    ],
)
def test_lines_are_counted_only_where_lines_are_asked_for(question: str, counts: bool) -> None:
    assert planned(question).counts_lines is counts


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("breakdown by level", ("severity",)),
        ("how many entries per component and per hour?", ("component", "hour")),
        ("severity distribution", ("severity",)),
        ("number of distinct components", ("component",)),
        ("What is the most frequent log level?", ("severity",)),
        ("Which hour has the most errors?", ("hour",)),
        ("which service has the fewest warnings?", ("component",)),
        ("the noisiest module?", ("component",)),
        ("number of lines for each day", ("day",)),
        ("how many entries come by process 4711", ()),
        ("which component could not reach the database?", ()),
    ],
)
def test_what_lines_are_counted_by_is_told(question: str, columns: tuple[str, ...]) -> None:
    assert planned(question).grouped_by == columns


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How many entries did backupd write?", "backupd"),
        ("how many lines has shop.db.Pool logged", "shop.db.Pool"),
        ("the first WARN from Pool", "Pool"),
        ("how many entries come from component shop.db.Pool", "shop.db.Pool"),
        ("How many entries did su(auth) write?", "su(auth)"),
    ],
)
def test_who_wrote_something_is_named_in_many_ways(question: str, name: str) -> None:
    assert name in planned(question).writer_names
