"""What stands in a line letter by letter, and what only seems to."""

from __future__ import annotations

import pytest

from services.documents.store.searching import literally


@pytest.mark.parametrize(
    "line", ['"GET / HTTP/1.1" 503 157', "10.0.0.1:503", "status=503,", "[503]", "ended with 503."]
)
def test_a_number_is_found_by_itself(line: str) -> None:
    assert literally("503").search(line)


@pytest.mark.parametrize("line", ["10:15:02.503 ok", "0,503 s", "1503", "503.25 ms", "v503"])
def test_a_number_is_no_part_of_another(line: str) -> None:
    assert not literally("503").search(line)
