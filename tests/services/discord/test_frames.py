import json

import pytest

from services.discord.dispatches import read_frame


@pytest.mark.parametrize("text", ["{", "[]", '{"op": 11, "d": null}', '{"op": 0, "t": null, "d": {}}'])
def test_frames_that_are_no_events_are_passed_over(text: str) -> None:
    assert read_frame(text, 1.0) is None


def test_an_event_without_an_object_as_payload_has_an_empty_one() -> None:
    dispatch = read_frame(json.dumps({"op": 0, "t": "RESUMED", "d": None}), 1.0)
    assert dispatch is not None
    assert dispatch.d == {}


def test_an_event_carries_the_time_it_was_received() -> None:
    dispatch = read_frame('{"op": 0, "s": 3, "t": "MESSAGE_CREATE", "d": {"id": "5"}}', 7.5)
    assert dispatch is not None
    assert (dispatch.at, dispatch.t, dispatch.d) == (7.5, "MESSAGE_CREATE", {"id": "5"})
