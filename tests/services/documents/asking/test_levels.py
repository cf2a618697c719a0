"""Levels as sets: by their names, in lists, left out, and as other programs write them."""

from __future__ import annotations

import pytest

from tests.services.documents.asking.planning import planned

FATAL = {"FATAL", "CRITICAL"}
WORSE = FATAL | {"ERROR"}


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("how many ERROR or FATAL entries?", WORSE),
        ("ERROR and WARN", {"ERROR", "WARN"}),
        ("ERROR/WARN lines", {"ERROR", "WARN"}),
        ("ERROR, WARN and FATAL?", WORSE | {"WARN"}),
        ("error and fatal entries", WORSE),
        ("errors and warnings", WORSE | {"WARN"}),
        ("info or debug messages", {"INFO", "DEBUG"}),
        ("entries that are not INFO", WORSE | {"WARN", "DEBUG", "TRACE"}),
        ("lines that are neither INFO nor DEBUG", WORSE | {"WARN", "TRACE"}),
        ("all but INFO", WORSE | {"WARN", "DEBUG", "TRACE"}),
        ("non-INFO lines", WORSE | {"WARN", "DEBUG", "TRACE"}),
        ("everything except DEBUG and INFO", WORSE | {"WARN", "TRACE"}),
        ("ERROR but not FATAL", {"ERROR"}),
        ("WARN or above", WORSE | {"WARN"}),
        ("at least WARN", WORSE | {"WARN"}),
        ("above WARN", WORSE),
        ("INFO or below", {"INFO", "DEBUG", "TRACE"}),
        ('entries at level "ERROR"', {"ERROR"}),
        ("[ERROR] entries", {"ERROR"}),
    ],
)
def test_levels_are_a_set(question: str, wanted: set[str]) -> None:
    found = planned(question).severity
    assert found is not None
    assert set(found.levels) == wanted


@pytest.mark.parametrize(
    ("question", "levels"),
    [
        ("the only emerg entry", ("FATAL", "CRITICAL")),
        ("How many events of type Error?", ("ERROR",)),
        ("the first E line", ("ERROR",)),
        ("last W entry?", ("WARN",)),
        ("any PANIC?", ("FATAL", "CRITICAL")),
    ],
)
def test_levels_are_named_as_other_programs_write_them(question: str, levels: tuple[str, ...]) -> None:
    severity = planned(question).severity
    assert severity is not None
    assert (severity.levels, severity.explicit) == (levels, True)


@pytest.mark.parametrize("question", ['lines with "ERROR: disk is full"', "what happened?", "see `FATAL flaw` there"])
def test_what_is_quoted_is_no_level(question: str) -> None:
    assert planned(question).severity is None


def test_the_name_of_a_file_is_no_level() -> None:
    assert planned("What is the first entry of error.log?").severity is None
