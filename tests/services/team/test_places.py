"""Where in Discord pairs come from."""

from __future__ import annotations

import json
import logging
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from model.outcomes import OutcomeKind
from services.team.archive import PairTurn, Speaker
from services.team.captures import Capture, CapturedMessage, RecentCaptures
from services.team.pair_links import PairLinks, pair_link_line
from sinks.team import RawArchive
from tests.services.storage.power import Machine
from tests.talk import ANN, STAFF, Talk

GUILD, PLACE = 7, 11
TALK = Talk()


def capture(guild_id: int | None = GUILD) -> Capture:
    """A question, two answers of the team, and thanks."""
    part = TALK.part(TALK.says(STAFF))
    said = (
        CapturedMessage(21, ANN.id, PairTurn(Speaker.USER, "Which lever?")),
        CapturedMessage(22, STAFF.id, PairTurn(Speaker.TEAM, "The left one.")),
        CapturedMessage(23, STAFF.id, PairTurn(Speaker.TEAM, "No, the right one.")),
        CapturedMessage(24, ANN.id, PairTurn(Speaker.USER, "Thanks.")),
    )
    return Capture(replace(part, place=replace(part.place, id=PLACE, guild_id=guild_id)), "reply_21", said)


def line(qa_id: str, **ids: str) -> str:
    found = pair_link_line(qa_id, capture())
    assert found is not None
    for old, new in ids.items():
        found = found.replace(f'"{old}"', new)
    return found


async def test_a_stored_pair_leads_to_the_last_message_of_the_team_in_it(tmp_path: Path) -> None:
    """Pitfall 62: what the team said is quoted with a link."""
    places = tmp_path / "places.jsonl"
    outcome = await RawArchive(tmp_path / "raw", RecentCaptures([]), places=places).keep(capture())
    assert outcome.qa_id is not None
    assert PairLinks(places).address(outcome.qa_id) == "https://discord.com/channels/7/11/23"
    assert set(json.loads(places.read_text())) == {"qa_id", "guild_id", "channel_id", "message_id"}


def test_where_the_server_is_unknown_there_is_no_link() -> None:
    assert pair_link_line("qa_1", capture(guild_id=None)) is None
    assert pair_link_line("qa_1", replace(capture(), part=None)) is None


def test_a_line_that_cannot_be_read_costs_its_own_link_and_a_new_one_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "places.jsonl"
    places = PairLinks(path)
    assert places.address("qa_1") is None
    path.write_text(line("qa_1") + line("qa_2")[:30] + "\n" + line("qa_3", channel_id="other") + line("qa_4"))
    assert [places.address(f"qa_{n}") is None for n in range(1, 5)] == [False, True, True, False]
    path.write_text(line("qa_5"))
    assert [places.address(f"qa_{n}") is None for n in (1, 5)] == [True, False]


def test_of_several_lines_about_a_pair_the_last_sound_one_counts_and_no_other_pair_is_taken_for_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "places.jsonl"
    later = line("qa_1").replace('"23"', '"29"')
    path.write_text(line("qa_1") + later + line("qa_10") + later.replace('"29"', '"none"') + later.rstrip()[:-1])
    assert PairLinks(path).address("qa_1") == "https://discord.com/channels/7/11/29"


def test_no_addresses_are_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "places.jsonl"
    path.write_text("".join(line(f"qa_{number}") for number in range(2_000)))
    places = PairLinks(path)
    tracemalloc.start()
    assert places.address("qa_1999") is not None
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 100_000


async def test_a_line_that_a_crash_cut_off_costs_its_own_link_alone(tmp_path: Path) -> None:
    places = tmp_path / "places.jsonl"
    places.write_text(line("qa_1")[:30])
    outcome = await RawArchive(tmp_path / "raw", RecentCaptures([]), places=places).keep(capture())
    assert outcome.qa_id is not None
    assert PairLinks(places).address(outcome.qa_id) == "https://discord.com/channels/7/11/23"


async def test_a_place_that_the_disk_takes_in_part_is_not_kept_in_part(tmp_path: Path) -> None:
    places = tmp_path / "places.jsonl"
    raw = RawArchive(tmp_path / "raw", RecentCaptures([]), places=places)
    (pair,) = raw.write([capture()], 1_767_225_600.0)
    machine = Machine()
    assert machine.run(lambda: raw.write([capture()], 1_767_225_601.0))
    assert machine.calls.count("fsync") == 2  # the block, and its place
    before = places.read_bytes()
    last = len(machine.calls) - machine.calls[::-1].index("write") - 1
    assert not Machine(last, 10).run(lambda: raw.write([capture()], 1_767_225_602.0))
    outcome = await RawArchive(tmp_path / "raw", RecentCaptures([]), places=places).keep(capture())
    assert outcome.qa_id is not None
    assert places.read_bytes().startswith(before)
    assert {PairLinks(places).address(each) for each in (pair.id, outcome.qa_id)} == {
        "https://discord.com/channels/7/11/23"
    }


async def test_a_pair_whose_place_cannot_be_noted_is_stored_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    outcome = await RawArchive(tmp_path / "raw", RecentCaptures([]), places=tmp_path).keep(capture())
    assert outcome.result is OutcomeKind.CAPTURED
    assert f"answers from {outcome.qa_id} will have no link" in caplog.text
