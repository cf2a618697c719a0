"""The grammar of a recording."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.discord.dispatches import BadLine, Dispatch, parse_line, render_line

texts = st.text(max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
payloads = st.dictionaries(texts, scalars | st.lists(scalars, max_size=2), max_size=3)
dispatches = st.builds(
    Dispatch,
    at=st.integers(1_420_070_400_000_000, 4_000_000_000_000_000).map(lambda micros: micros / 1_000_000),
    t=texts,
    d=payloads,
)


@given(dispatches)
def test_reading_gives_back_what_was_written(dispatch: Dispatch) -> None:
    line = render_line(dispatch)
    assert parse_line(line) == dispatch
    assert line.encode().count(b"\n") == 1
    assert line.endswith("\n")


@given(
    st.text()
    | st.fixed_dictionaries(
        {}, optional={"at": st.datetimes().map(str) | scalars, "t": scalars, "d": scalars | payloads}
    ).map(json.dumps)
)
def test_whatever_a_line_holds_it_is_a_dispatch_or_a_bad_line(line: str) -> None:
    try:
        dispatch = parse_line(line)
    except BadLine as error:
        assert "\n" not in str(error)  # noqa: PT017 (either may happen)
    else:
        assert parse_line(render_line(dispatch)) == dispatch


def test_a_line_looks_like_the_recordings_that_exist() -> None:
    line = '{"at": "2019-09-04T22:44:46.000Z", "t": "MESSAGE_CREATE", "d": {"id": "1", "content": "yes — é"}}\n'
    assert parse_line(line) == Dispatch(1567637086.0, "MESSAGE_CREATE", {"id": "1", "content": "yes — é"})
    assert render_line(parse_line(line)) == line


def test_microseconds_are_kept_where_there_are_some() -> None:
    assert '"2019-09-04T22:44:46.000250Z"' in render_line(Dispatch(1567637086.00025, "READY", {}))


def test_half_a_character_is_written_as_an_escape() -> None:
    """Python reads a lone surrogate from JSON, and cannot write it as UTF-8."""
    line = '{"at": "2019-09-04T22:44:46.000Z", "t": "x", "d": {"a": "\\ud83d"}}\n'
    assert render_line(parse_line(line)) == line


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not valid JSON: Expecting value at column 1"),
        ('{"at": NaN, "t": "x", "d": {}}', "the nesting too deep"),
        ("[" * 100_000, "the nesting too deep"),
        ("9" * 5_000, "the nesting too deep"),
        ('["my secret"]', "not a JSON object"),
        ('{"t": "x", "d": {}}', "not a dispatch"),
        ('{"at": 5, "t": "x", "d": {}}', "not a dispatch"),
        ('{"at": "2019-09-04T22:44:46Z", "t": null, "d": {}}', "not a dispatch"),
        ('{"at": "2019-09-04T22:44:46Z", "t": "x", "d": null}', "not a dispatch"),
        ('{"at": "my secret", "t": "x", "d": {}}', "no RFC 3339 time stamp"),
        ('{"at": "2019-09-04T22:44:46", "t": "x", "d": {}}', "no RFC 3339 time stamp"),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_shows_nothing_of_itself(line: str, reason: str) -> None:
    """Pitfall 22."""
    with pytest.raises(BadLine, match=reason) as caught:
        parse_line(line)
    assert "my secret" not in str(caught.value)


@pytest.mark.parametrize("t", ["INTERACTION_CREATE", "INTERACTION_SUCCESS"])
def test_interactions_are_never_written(t: str) -> None:
    """Pitfall 22: they carry tokens."""
    with pytest.raises(ValueError, match="never recorded"):
        render_line(Dispatch(0.0, t, {"token": "x"}))


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        render_line(Dispatch(0.0, "READY", {"x": float("nan")}))
