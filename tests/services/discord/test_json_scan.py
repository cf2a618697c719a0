"""Reading JSON piece by piece."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.discord import json_scan
from services.discord.json_scan import Scanner

scalars = st.none() | st.integers() | st.text(max_size=6)
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=3), scalars, max_size=2)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_scan, "CHUNK", 3)


@given(st.lists(values, max_size=4), st.sampled_from([None, 1]))
def test_elements_are_those_that_json_reads(elements: list[object], indent: int | None) -> None:
    text = json.dumps(elements, indent=indent)
    assert list(Scanner(io.StringIO(text)).elements()) == elements


@given(st.dictionaries(st.text(max_size=6), values, max_size=4))
def test_members_are_those_that_json_reads(members: dict[str, object]) -> None:
    scanner = Scanner(io.StringIO(json.dumps(members)))
    assert _whole(scanner) == members


def _whole(scanner: Scanner) -> dict[str, object]:
    return {key: scanner.value() for key in scanner.members()}


@pytest.mark.parametrize("text", ["", "{", "[", "[1", "[1,", "[1 2]", "[1}", "[?]", "[" * 90_000])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|malformed|deeply"):
        list(Scanner(io.StringIO(text)).elements())


@pytest.mark.parametrize("text", ["", "[1]", "{1: 2}", '{"a" 2}', '{"a": 2'])
def test_what_is_no_object_is_refused(text: str) -> None:
    scanner = Scanner(io.StringIO(text))
    with pytest.raises(ValueError, match=r"expected|malformed|no text"):
        _whole(scanner)


def test_a_value_without_an_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_scan, "LARGEST_VALUE", 100)
    file = io.StringIO('["' + "x" * 10_000)
    with pytest.raises(ValueError, match="too large"):
        list(Scanner(file).elements())
    assert file.tell() < 1_000
