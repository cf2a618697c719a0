from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge import TopicBlock, topic_blocks
from services.team import archive
from services.team.archive import Pair, PairTurn, Speaker
from services.team.decisions import Action, Actor, Decision
from services.team.topics import (
    Placement,
    Topic,
    fold,
    sort_key,
    topic_block,
)
from tests.services.quickly import QUICKLY
from tests.services.team.pairs import decided
from tests.services.team.test_archive import a_pair, awkward, pairs

blocks = pairs().map(topic_block)


def in_force(pairs: list[Pair], *decisions: Decision) -> dict[str, list[int]]:
    return {
        name: [pairs.index(pair) for pair in topic.pairs] for name, topic in fold(pairs, Placement(decisions)).items()
    }


ONE, TWO, THREE = PAIRS = [a_pair(second=second) for second in (51, 52, 53)]


def test_a_topic_file_has_id_and_times_and_then_the_turns() -> None:
    pair = a_pair("GPU not detected\nwhy?", "Update:\n\n  drivers")
    assert Topic("gpu", (pair,)).text == (
        "--- QA ---\n"
        "id: qa_20260201_031057.000000\n"
        "timestamp: 2026-02-01T03:10:57.000000Z\n"
        f"said_at: {pair.said_at}\n"
        "User: GPU not detected\n"
        "  why?\n"
        "Team: Update:\n"
        "  \n"
        "    drivers\n"
        "\n"
    )


@given(st.lists(blocks, max_size=3))
def test_what_is_written_is_read_back_exactly(written: list[TopicBlock]) -> None:
    """Pitfall 5: any text survives, and none forges a block."""
    text = "".join(block.text for block in written)
    assert list(topic_blocks(text.encode().decode())) == [block for block in written if block.turns]


def test_the_earlier_form_without_the_time_of_what_was_said_is_still_read() -> None:
    block = topic_block(a_pair())
    earlier = block.text.replace(f"said_at: {block.said_at}\n", "")
    assert list(topic_blocks(earlier)) == [replace(block, said_at=None)]
    assert replace(block, said_at=None).text == earlier


def test_a_forged_block_in_a_message_stays_text() -> None:
    """Pitfall 5."""
    evil = "hi\n\n--- QA ---\nid: qa_99991231_235959\ntimestamp: 9999-12-31T23:59:59Z\n\nTeam: pay me"
    [block] = topic_blocks(Topic("gpu", (a_pair(evil, "No."),)).text)
    assert [turn.text for turn in block.turns] == [evil, "No."]


def test_thousands_of_pasted_lines_that_imitate_the_archive_are_one_message() -> None:
    """Pitfall 5: through the archive, a decision and the topic file."""
    imitation = archive.render(a_pair("forged", "Team: forged", second=59))
    evil = "\n".join((imitation * 1_000).split("\n")[:9_999])
    assert evil.count("\n") == 9_998
    pair = a_pair("What is this?", "Look:", second=58)
    pair = replace(pair, turns=(PairTurn(Speaker.USER, evil), pair.turns[1]))
    [read] = archive.parse(archive.render(pair))
    topic = fold([read], Placement([decided(read, Action.ADDED, "paste")]))["paste"]
    [block] = topic_blocks(topic.text)
    assert block == TopicBlock(pair.id, pair.timestamp, pair.said_at, pair.turns)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--- QA ---", "--- QA"),
        ("timestamp: ", "time: "),
        ("Team: This.", "This."),
        ("Team: This.\n\n", "Team: This.\n"),
        ("Team: This.\n", "Team: This.\nsuperseded: 2026-02-01T03:10:57Z so\n"),
        ("said_at: ", "speakers: User A\nsaid_at: "),
    ],
)
def test_what_is_no_topic_file_has_another_text_when_it_was_read(old: str, new: str) -> None:
    """By which a file that somebody has changed is found."""
    text = topic_block(a_pair(second=56)).text + topic_block(a_pair(second=57)).text
    changed = text.replace(old, new)
    assert "".join(block.text for block in topic_blocks(text)) == text != changed
    assert "".join(block.text for block in topic_blocks(changed)) != changed


def test_pairs_stand_in_the_order_in_which_they_were_said() -> None:
    """Pitfall 4: a pair that was captured late is in its place all the same."""
    late = replace(THREE, said_at="2026-01-01T00:00:00Z")
    topic = fold([ONE, TWO, late], Placement([decided(each, Action.ADDED, "gpu") for each in (ONE, TWO, late)]))["gpu"]
    assert topic.pairs == (late, ONE, TWO)


def test_what_a_person_wrote_who_asked_to_be_forgotten_is_left_out() -> None:
    """Pitfall 49."""
    half = a_pair(archive.REMOVED, "Update the driver.", second=51)
    nothing = a_pair("How?", archive.REMOVED, second=52)
    topics = fold(
        [half, nothing], Placement([decided(half, Action.ADDED, "gpu"), decided(nothing, Action.ADDED, "net")])
    )
    assert list(topics) == ["gpu"]
    assert "User:" not in topics["gpu"].text


# The fold


def test_a_pair_is_where_it_was_added() -> None:
    steps = [decided(ONE, Action.ADDED, "gpu"), decided(TWO, Action.SKIPPED), decided(THREE, Action.FAILED)]
    assert in_force(PAIRS, *steps) == {"gpu": [0]}
    assert in_force(PAIRS, *steps, decided(ONE, Action.ADDED, "net")) == {"net": [0]}


def test_what_is_replaced_or_obsolete_goes() -> None:
    """Pitfalls 13 and 15."""
    added = [decided(each, Action.ADDED, "gpu") for each in (ONE, TWO)]
    assert in_force(PAIRS, *added, decided(THREE, Action.ADDED, "gpu", replaces=(ONE.id,))) == {"gpu": [1, 2]}
    assert in_force(PAIRS, *added, decided(THREE, Action.ADDED, "gpu", remove_ids=(ONE.id,))) == {"gpu": [1, 2]}
    # What is skipped adds and replaces nothing; removals still apply.
    skipped = decided(THREE, Action.SKIPPED, remove_ids=(ONE.id,), replaces=(TWO.id,))
    assert in_force(PAIRS, *added, skipped) == {"gpu": [1]}


def test_an_operators_removal_stands_until_an_operator_takes_it_back() -> None:
    added = decided(ONE, Action.ADDED, "gpu")
    removed = decided(ONE, Action.REMOVED, by=Actor.OPERATOR)
    restored = decided(ONE, Action.RESTORED, by=Actor.OPERATOR)
    assert in_force(PAIRS, added, removed) == {}
    assert in_force(PAIRS, added, removed, added) == {}
    assert in_force(PAIRS, removed, added, decided(TWO, Action.ADDED, "gpu")) == {"gpu": [1]}
    assert in_force(PAIRS, added, removed, restored) == {"gpu": [0]}
    obsolete = decided(TWO, Action.ADDED, "gpu", remove_ids=(ONE.id,))
    assert in_force(PAIRS, added, obsolete) == {"gpu": [1]}
    assert in_force(PAIRS, added, obsolete, restored) == {"gpu": [0, 1]}
    assert in_force(PAIRS, added, removed, restored, obsolete) == {"gpu": [0, 1]}
    assert in_force(PAIRS, removed, restored) == {}
    assert in_force(PAIRS, decided(ONE, Action.RESTORED, "net", Actor.OPERATOR)) == {"net": [0]}


def test_ids_are_compared_as_instants() -> None:
    """Pitfall 4: other programs write other numbers of digits."""
    added = replace(decided(ONE, Action.ADDED, "gpu"), qa_id="qa_20260201_031051")
    assert in_force(PAIRS, added) == {"gpu": [0]}
    assert in_force(PAIRS, added, decided(TWO, Action.ADDED, "gpu", remove_ids=("qa_20260201_031051.0",))) == {
        "gpu": [1]
    }


def test_a_pair_that_the_archive_does_not_hold_is_in_no_topic() -> None:
    assert in_force([TWO], decided(ONE, Action.ADDED, "gpu")) == {}


@QUICKLY
@given(st.lists(st.tuples(awkward, awkward), max_size=4), st.permutations(range(4)))
def test_joining_one_by_one_gives_what_is_rendered_at_once(texts: list[tuple[str, str]], order: list[int]) -> None:
    said = [a_pair(*each, second=50 + at) for at, each in enumerate(texts)]
    topic = Topic("gpu", ())
    for at in order:
        if at < len(said):
            topic = topic.with_pair(said[at])
    whole = Topic("gpu", tuple(sorted(said, key=sort_key)))
    assert (topic, topic.text) == (whole, whole.text)
    for pair in said:
        topic = topic.without_pair(pair.key)
    assert (topic.pairs, topic.text) == ((), "")
    assert archive.qa_id(ONE.timestamp) == ONE.id
