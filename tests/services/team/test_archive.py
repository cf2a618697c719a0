from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.team import archive
from services.team.archive import Malformed, Pair, PairTurn, Speaker, parse, render

# Text that tries: structure, line ends of every kind, halves of surrogate pairs.
awkward = st.lists(
    st.one_of(
        st.text(st.characters(), max_size=5),
        st.sampled_from(
            [
                "\n",
                "\r\n",
                "\r",
                "\u2028",
                "\x85",
                "  ",
                "",
                "--- QA ---",
                "id: qa_99991231_000000",
                "User: ",
                "Team: x",
            ]
        ),
    ),
    max_size=8,
).map("".join)
turns = st.builds(PairTurn, st.sampled_from(Speaker), awkward)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    said = draw(st.lists(turns, min_size=1, max_size=4))
    ids = st.lists(st.integers(0, 2**63), min_size=len(said), max_size=len(said))
    digits = draw(st.sampled_from(["", ".5", ".228000", ".123456789012"]))
    timestamp = f"2026-02-0{draw(st.integers(1, 9))}T03:10:56{digits}Z"
    conversation = f"{draw(st.sampled_from(['thread', 'reply']))}_{draw(st.integers(0, 2**63))}"
    pair_id = archive.qa_id(timestamp)
    return Pair(
        pair_id, timestamp, "2026-02-01T03:09:41Z", conversation, tuple(draw(ids)), tuple(draw(ids)), tuple(said)
    )


def a_pair(*texts: str, second: int = 57) -> Pair:
    said = texts or ("What is it?", "This.")
    turns = tuple(PairTurn(Speaker.TEAM if at % 2 else Speaker.USER, text) for at, text in enumerate(said))
    timestamp = f"2026-02-01T03:10:{second}.000000Z"
    numbers = tuple(range(len(said)))
    return Pair(
        archive.qa_id(timestamp), timestamp, "2026-02-01T03:09:41.120000Z", "thread_17", numbers, numbers, turns
    )


SPEC_EXAMPLE = """\
--- QA ---
id: qa_20260201_031057.000000
timestamp: 2026-02-01T03:10:57.000000Z
said_at: 2026-02-01T03:09:41.120000Z
conversation_id: thread_1458745245675032710
message_ids: 1458745245675032711, 1458745245675032712, 1458745245675032713
author_ids: 311, 311, 902
User: My node shows GPU not detected, what should I do?
User: I'm using an RTX 3080
Team: First, make sure your NVIDIA drivers are up to date.
  Then run this:
  \n      nvidia-smi

"""


def test_the_example_of_the_specification_is_read_and_written_alike() -> None:
    [pair] = parse(SPEC_EXAMPLE)
    assert pair.message_ids == (1458745245675032711, 1458745245675032712, 1458745245675032713)
    assert pair.author_ids == (311, 311, 902)
    assert pair.conversation_id == "thread_1458745245675032710"
    assert pair.said_at == "2026-02-01T03:09:41.120000Z"
    last = "First, make sure your NVIDIA drivers are up to date.\nThen run this:\n\n    nvidia-smi"
    assert pair.turns[2] == PairTurn(Speaker.TEAM, last)
    assert render(pair) == SPEC_EXAMPLE


@given(st.lists(pairs(), max_size=3))
def test_what_is_written_is_read_back_exactly(written: list[Pair]) -> None:
    """Pitfall 5: no text can forge structure, or there would be more or other pairs."""
    text = "".join(map(render, written))
    assert parse(text.encode().decode()) == written
    assert archive.sound_length(text.encode()) == len(text.encode())


@given(st.lists(pairs(), min_size=1, max_size=3), st.data())
def test_a_file_cut_anywhere_gives_the_whole_blocks_before_the_cut(written: list[Pair], data: st.DataObject) -> None:
    """Pitfall 48: not even a cut at a line end makes a shortened block pass for a whole one."""
    blocks = [render(pair).encode() for pair in written]
    whole = b"".join(blocks)
    cut = data.draw(st.integers(0, len(whole) - 1))
    sound = archive.sound_length(whole[:cut])
    ends = [sum(map(len, blocks[:count])) for count in range(len(blocks) + 1)]
    assert sound == max(end for end in ends if end <= cut)
    expected = written[: ends.index(sound)]
    assert parse(whole[:sound].decode()) == expected
    assert parse(whole[:cut].decode(errors="replace")) == expected


def test_a_torn_last_block_is_reported_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 48."""
    truncated = render(a_pair()) + render(a_pair("one", "two\nthree", second=58)).removesuffix("  three\n\n")
    assert parse(truncated, "2026-W05.txt") == [a_pair()]
    assert caplog.messages == [
        "2026-W05.txt:11: a block without its final empty line, truncated by a crash; skipped",
    ]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("id: qa_20260201_031057.000000", "id: qa_1", "not of the form"),
        ("id: qa_20260201_031057.000000", "id: qa_20260231_031057", "no time"),
        ("id: qa_20260201_031057.000000", "id: qa_20260201_031058", "differ"),
        ("said_at: 2026-02-01T03:09:41.120000Z", "said_at: yesterday", "not of the form"),
        ("conversation_id: thread_17", "conversation_id: ../17", "neither thread_<id> nor reply_<id>"),
        ("message_ids: 0, 1", "message_ids: 0", "1 message ids, 2 author ids and 2 turns"),
        ("message_ids: 0, 1", "message_ids: 0; 1", "no list of ids"),
        ("author_ids: 0, 1\n", "", "where 'author_ids' should be"),
        ("User: What is it?\n", "User: What is it?\n\n", "an empty line within the block"),
        ("User: What is it?", "  What is it?", "neither a turn nor the rest of one"),
        ("User: What is it?", "Bot: What is it?", "neither a turn nor the rest of one"),
        ("Team: This.\n\n", "Team: This.\n", "not ended by an empty line"),
    ],
)
def test_a_malformed_block_is_reported_with_file_and_line_and_skipped(
    old: str, new: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    blocks = [a_pair(second=second) for second in (56, 57, 58)]
    texts = list(map(render, blocks))
    assert old in texts[1]
    texts[1] = texts[1].replace(old, new)
    assert parse("".join(texts), "2026-W05.txt", first_line=100) == [blocks[0], blocks[2]]
    [message] = caplog.messages
    assert message.startswith("2026-W05.txt:110: ")
    assert why in message
    assert message.endswith("; skipped")


@pytest.mark.parametrize(
    ("ids", "why"), [("0", "1 addressee ids and 2 turns"), ("", "no list of ids"), ("User A", "no list of ids")]
)
def test_a_block_whose_addressees_do_not_fit_is_reported_and_skipped(
    ids: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    authors = "author_ids: 0, 1\n"
    told = render(a_pair()).replace(authors, f"{authors}addressee_ids: {ids}\n")
    assert parse(told + render(a_pair(second=58))) == [a_pair(second=58)]
    assert why in caplog.text


@pytest.mark.parametrize("to_ids", [(), (0, 1)])
def test_a_block_names_what_is_doubted_with_and_without_addressees(to_ids: tuple[int, ...]) -> None:
    first = a_pair()
    pair = replace(first, addressee_ids=to_ids, doubted_ids=first.message_ids[-1:])
    assert parse(render(pair)) == [pair]
    assert f"\ndoubted_ids: {pair.message_ids[-1]}\n{first.turns[0].speaker}: " in render(pair)


def test_headers_alone_are_no_block(caplog: pytest.LogCaptureFixture) -> None:
    assert parse("--- QA ---\nid: qa_20260201_031057\n\n") == []
    assert "headers are missing" in caplog.text


def test_text_before_the_first_block_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert parse("\nhello\n\n" + render(a_pair()), "w") == [a_pair()]
    assert caplog.messages == ["w:2: text before the first '--- QA ---'; skipped"]
    assert parse("hello\n\n", "w") == []


def test_an_empty_file_and_empty_lines_are_no_problem(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert parse("") == []
    assert archive.sound_length(b"") == 0
    assert parse(render(a_pair()) + "\n\n" + render(a_pair(second=58))) == [a_pair(), a_pair(second=58)]
    assert caplog.messages == []


def test_a_file_that_an_editor_saved_with_other_line_ends_is_still_whole() -> None:
    saved = ("\ufeff" + render(a_pair("a\n\nb", "c"))).replace("\n", "\r\n")
    assert archive.sound_length(saved.encode()) == len(saved.encode())
    assert parse(saved) == [a_pair("a\n\nb", "c")]


def test_line_ends_become_line_feeds_and_other_separators_stay() -> None:
    assert PairTurn(Speaker.USER, "a\r\nb\rc\nd\u2028e\x0bf").text == "a\nb\nc\nd\u2028e\x0bf"


def test_half_of_a_surrogate_pair_cannot_make_a_capture_unwritable() -> None:
    assert PairTurn(Speaker.USER, "a\ud800b").text == "a\ufffdb"
    assert PairTurn(Speaker.USER, "\ud83d\ude00").text == "\U0001f600"


def test_a_pair_needs_a_turn() -> None:
    with pytest.raises(Malformed, match="0 message ids"):
        Pair("qa_20260201_031057", "2026-02-01T03:10:57Z", "2026-02-01T03:10:57Z", "reply_1", (), (), ())


def test_ids_are_made_from_time_stamps() -> None:
    assert archive.qa_id("2026-02-01T03:10:56.228000Z") == "qa_20260201_031056.228000"
    with pytest.raises(archive.BadId, match="not of the form 2026-02"):
        archive.qa_id("2026-02-01 03:10:56")


@pytest.mark.parametrize("bad", ["", "qa_", "qa_20260201_031056.", "qa_20260201_031056.1Z", "qa_٢٠260201_031056"])
def test_an_id_of_the_wrong_form_is_an_error_that_shows_it(bad: str) -> None:
    with pytest.raises(archive.BadId, match=r"not of the form qa_20260201_031056\.228000"):
        archive.instant(bad)


def test_ids_with_any_number_of_digits_compare_as_instants() -> None:
    """Pitfall 4."""
    ids = [
        "qa_20260201_031056",
        "qa_20260201_031056.0000000001",
        "qa_20260201_031056.228",
        "qa_20260201_031056.228000000000000000000001",
        "qa_20260201_031056.3",
        "qa_20260201_031057.000000",
    ]
    instants = list(map(archive.instant, ids))
    assert instants == sorted(set(instants))
    assert archive.instant("qa_20260201_031056.228") == archive.instant("qa_20260201_031056.228000")
    assert archive.instant("qa_19700101_000001.5") == Decimal("1.5")


@pytest.mark.parametrize(
    ("timestamp", "name"),
    [
        ("2026-02-01T03:10:57Z", "2026-W05.txt"),
        ("2024-12-30T00:00:00Z", "2025-W01.txt"),
        ("2021-01-03T23:59:59.999999Z", "2020-W53.txt"),
    ],
)
def test_a_week_file_is_named_after_the_iso_year_and_week(timestamp: str, name: str) -> None:
    assert archive.week_file(archive.timestamp_instant(timestamp)) == name


def test_time_stamps_strictly_increase_within_an_archive() -> None:
    """Pitfall 4: two pairs of one instant get two ids."""
    stamps: Sequence[str] = [archive.next_timestamp(1769915456.228, None)]
    for now in (1769915456.228, 1769915456.228, 1769915400.0, 1769915457.0):
        stamps = [*stamps, archive.next_timestamp(now, stamps[-1])]
    assert [stamp.removeprefix("2026-02-01T03:10:") for stamp in stamps] == [
        "56.228000Z",
        "56.228001Z",
        "56.228002Z",
        "56.228003Z",
        "57.000000Z",
    ]
    assert archive.next_timestamp(0.0, "2026-12-31T23:59:59.9999999Z") == "2027-01-01T00:00:00.000000Z"


# What an earlier program has written

EARLIER = (
    "--- QA ---\n"
    "id: qa_20260201_031056.228000\n"
    "timestamp: 2026-02-01T03:10:56.228000Z\n"
    "conversation_id: thread_1458745245675032709\n"
    "message_ids: msg_123, msg_124, msg_125\n"
    "User: How do I start a node?\n"
    "Team: Run the container.\n\n"
)


def test_blocks_without_said_at_and_author_ids_are_read_and_written_in_the_present_form() -> None:
    [pair] = parse(EARLIER)
    assert (pair.said_at, pair.message_ids, pair.author_ids) == (pair.timestamp, (123, 124, 125), (0, 0, 0))
    assert [turn.text for turn in pair.turns] == ["How do I start a node?", "Run the container.", ""]
    assert parse(render(pair)) == [pair]


def test_they_may_stand_among_blocks_of_the_present_form() -> None:
    ours = a_pair("Why?", "So.")
    assert [pair.id for pair in parse(render(ours) + EARLIER + render(ours))][0::2] == [ours.id, ours.id]
    assert len(parse(EARLIER + render(ours))) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("msg_124", "msg_x"),
        ("msg_124", f"msg_{2**64}"),
        ("Team: Run", "Run"),
        ("message_ids", "messages"),
        (", msg_124, msg_125", ""),
    ],
)
def test_what_is_wrong_with_one_of_them_is_reported(before: str, after: str, caplog: pytest.LogCaptureFixture) -> None:
    assert parse(EARLIER.replace(before, after)) == []
    assert "archive:1: " in caplog.text


def test_a_pair_knows_its_key_and_few_time_stamps_are_remembered_beside() -> None:
    said = (PairTurn(Speaker.USER, "What is it?"),)
    timestamps = [f"2026-03-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}.000000Z" for n in range(5_000)]
    tracemalloc.start()
    pairs = [Pair(archive.qa_id(each), each, each, "thread_17", (1,), (1,), said) for each in timestamps]
    ours, _ = tracemalloc.get_traced_memory()
    keys = [pair.key for pair in pairs]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert keys == sorted(set(keys))
    assert held - ours < 100_000
    assert ours / len(pairs) < 500
