"""A conversation about several matters, filed in pieces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from services.team import removals
from services.team.archive import REMOVED, Pair, PairTurn, Speaker, is_exchange, piece_of
from services.team.archive import render as archived
from services.team.decisions import Action, Actor, Decision, FiledPiece, Remark, parse, render
from services.team.filing import has_inner_word, merge_decisions, pieces_by_topic
from services.team.library import TeamLibrary
from services.team.topics import Placement, Topic, fold, topic_block
from tests.services.team.pairs import (
    added,
    captured,
    corrects,
    decided,
    in_pieces,
    is_whole,
    noted,
    opened,
    places_in,
    store,
    topic_files,
)

ANN, BEN, KIM = 311, 312, 902


def mixed() -> Pair:
    """Ann asks about the GPU, Ben about the network; the team answers both."""
    said = ((ANN, "No GPU?"), (BEN, "No network?"), (KIM, "New driver."), (KIM, "Open the port."), (ANN, "thanks"))
    turns = tuple(PairTurn(Speaker.TEAM if who == KIM else Speaker.USER, text) for who, text in said)
    authors = tuple(who for who, _ in said)
    return replace(captured(1), message_ids=(11, 12, 13, 14, 15), author_ids=authors, turns=turns)


MIXED, OTHER, LATER = mixed(), captured(2), captured(3)
SPLIT = in_pieces(MIXED, ("gpu", (11, 13)), ("net", (12, 14)))


def texts(topics: dict[str, Topic] | TeamLibrary) -> dict[str, list[list[str]]]:
    held = topics.topics if isinstance(topics, TeamLibrary) else topics
    return {name: [[turn.text for turn in pair.turns] for pair in topic.pairs] for name, topic in held.items()}


APART = {"gpu": [["No GPU?", "New driver."]], "net": [["No network?", "Open the port."]]}


def folded(*steps: Decision) -> dict[str, list[list[str]]]:
    return texts(fold([MIXED, OTHER, LATER], Placement(steps)))


def test_each_piece_is_in_its_topic_under_the_id_of_the_pair() -> None:
    topics = fold([MIXED], Placement([SPLIT]))
    assert texts(topics) == APART
    assert [pair.id for topic in topics.values() for pair in topic.pairs] == [MIXED.id] * 2
    assert "\nspeakers: User A, Team\n" in topics["gpu"].text


def test_removed_it_is_out_of_all_topics_and_restored_in_all() -> None:
    out = decided(MIXED, Action.REMOVED, by=Actor.OPERATOR)
    assert folded(SPLIT, out) == {}
    assert folded(SPLIT, out, decided(MIXED, Action.RESTORED, by=Actor.OPERATOR)) == APART
    assert folded(SPLIT, decided(MIXED, Action.RESTORED, "gpu", Actor.OPERATOR)) == APART
    elsewhere = decided(MIXED, Action.RESTORED, "other", Actor.OPERATOR)
    assert folded(SPLIT, out, elsewhere) == {"other": [[turn.text for turn in MIXED.turns]]}
    assert list(folded(SPLIT, added(OTHER, "net", remove_ids=(MIXED.id,)))) == ["net"]
    assert folded(SPLIT, decided(OTHER, Action.SKIPPED, remove_ids=(MIXED.id,))) == {}


def test_a_later_decision_takes_the_place_of_the_pieces() -> None:
    whole = [[turn.text for turn in MIXED.turns]]
    assert folded(SPLIT, added(MIXED, "gpu")) == {"gpu": whole}
    assert folded(added(MIXED, "gpu"), SPLIT) == APART
    assert folded(SPLIT, in_pieces(MIXED, ("net", (12, 14)))) == {"net": APART["net"]}


def test_a_piece_in_which_the_team_says_nothing_is_nowhere() -> None:
    assert folded(in_pieces(MIXED, ("gpu", (11, 13)), ("net", (12,)), ("none", (99,)))) == {"gpu": APART["gpu"]}


def test_what_corrects_it_in_a_part_is_shown_in_every_topic() -> None:
    topics = fold([MIXED, OTHER], Placement([SPLIT, corrects(OTHER, "gpu", MIXED)]))
    assert [topic.text.count("superseded: ") for topic in topics.values()] == [1, 1]


def test_the_decision_says_what_went_where() -> None:
    line = render(SPLIT)
    assert json.loads(line)["pieces"] == [
        {"message_ids": ["11", "13"], "topic": "gpu"},
        {"message_ids": ["12", "14"], "topic": "net"},
    ]
    assert parse(line.encode()) == [SPLIT]
    assert parse(b"\xef\xbb\xbf" + line.encode()) == [SPLIT], "as some editors begin a file"
    for damaged in (line.replace('"13"', '"x"'), line.replace('"net"', '"../net"')):
        assert parse(damaged.encode()) == []


def test_the_library_keeps_it_over_starts_and_crashes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 14."""
    store(tmp_path, MIXED, OTHER)
    library = opened(tmp_path)
    assert library.decide(SPLIT) == {"gpu", "net"}
    assert texts(library) == APART
    assert library.pair(MIXED.id) == MIXED
    assert is_whole(tmp_path, opened(tmp_path))
    library = opened(tmp_path)
    assert library.decide(corrects(OTHER, "net", MIXED)) == {"gpu", "net"}
    assert [each.text for each in library.corrections(MIXED)] == ["Not so."]
    (places_in(tmp_path).topics / "gpu.txt").write_text(fold([MIXED], Placement([SPLIT]))["gpu"].text)
    places_in(tmp_path).state.unlink()
    assert is_whole(tmp_path, opened(tmp_path))
    assert caplog.messages == []
    (places_in(tmp_path).topics / "gpu.txt").write_text(Topic("gpu", (MIXED,)).text)
    opened(tmp_path)
    assert "changed by hand" in caplog.text


def test_pieces_go_into_the_first_files_with_room(tmp_path: Path) -> None:
    store(tmp_path, OTHER, MIXED)
    library = opened(tmp_path, chars=200)
    library.decide(added(OTHER, "gpu"))
    library.decide(SPLIT)
    assert noted(tmp_path)[-1].pieces == (FiledPiece(("11", "13"), "gpu-2"), FiledPiece(("12", "14"), "net"))
    assert noted(tmp_path)[-1].topic == "gpu-2"
    library.decide(decided(MIXED, Action.REMOVED, by=Actor.OPERATOR))
    removals.restore(library, MIXED.id, "2026-03-01T00:00:00.000Z")
    assert list(texts(library)) == ["gpu", "gpu-2", "net"]
    said = removals.remove(library, MIXED.id, "2026-03-01T00:00:00.000Z")
    assert said == f"{MIXED.id} is removed from gpu-2 and net."
    assert is_whole(tmp_path, library)


def test_a_piece_needs_its_own_room_alone(tmp_path: Path) -> None:
    store(tmp_path, OTHER, MIXED)
    piece = piece_of(MIXED, {12, 14})
    assert piece is not None
    library = opened(tmp_path, chars=sum(len(topic_block(each).text) for each in (OTHER, piece)))
    library.decide(added(OTHER, "net"))
    library.decide(SPLIT)
    assert library.topics.keys() == {"gpu", "net"}


def test_what_somebody_wrote_is_forgotten_in_every_piece(tmp_path: Path) -> None:
    """Pitfall 49."""
    store(tmp_path, MIXED)
    library = opened(tmp_path)
    library.decide(SPLIT)
    [path] = places_in(tmp_path).raw.iterdir()
    path.write_text(
        archived(
            replace(
                MIXED,
                turns=tuple(
                    PairTurn(turn.speaker, "[removed]") if author == BEN else turn
                    for author, turn in zip(MIXED.author_ids, MIXED.turns, strict=True)
                ),
            )
        )
    )
    assert library.forget(BEN) == {"net"}
    assert texts(library)["gpu"] == APART["gpu"]
    assert "No network?" not in topic_files(tmp_path)["net.txt"] + str(library.pair(MIXED.id))
    assert is_whole(tmp_path, library)


def test_they_follow_their_topics_to_new_names(tmp_path: Path) -> None:
    store(tmp_path, MIXED)
    library = opened(tmp_path)
    library.decide(SPLIT)
    library.rename({"net": "ports"})
    assert texts(library) == {"gpu": APART["gpu"], "ports": APART["net"]}
    assert is_whole(tmp_path, library)
    assert library.decide(decided(MIXED, Action.REMOVED, by=Actor.OPERATOR)) == {"gpu", "ports"}
    removals.restore(library, MIXED.id, SPLIT.at)
    assert list(texts(library)) == ["gpu", "ports"]
    assert is_whole(tmp_path, library)


def again(texts: dict[int, str] | None = None, *, doubted: tuple[int, ...] = ()) -> Pair:
    """A later capture of the conversation, with these texts of some messages."""
    turns = zip(MIXED.message_ids, MIXED.turns, strict=True)
    new = tuple(replace(turn, text=(texts or {}).get(message_id, turn.text)) for message_id, turn in turns)
    return replace(MIXED, id=LATER.id, timestamp=LATER.timestamp, turns=new, doubted_ids=doubted)


GPU, NET = SPLIT.pieces


@pytest.mark.parametrize(
    ("topic", "later", "pieces"),
    [
        ("net", again(doubted=(13,)), (GPU, NET)),
        ("net", again({12: "No … network?"}), (GPU, NET)),
        ("net", again({12: REMOVED, 14: REMOVED}), (GPU,)),
        ("net", again({11: REMOVED, 13: REMOVED}), (NET,)),
        ("net", again({11: REMOVED, 12: REMOVED, 13: REMOVED, 14: REMOVED}), None),
        ("port-network", again({12: "No …"}), (GPU, replace(NET, topic="port"))),
    ],
)
def test_what_users_doubt_or_take_out_leaves_the_other_pieces_where_they_are(
    topic: str, later: Pair, pieces: tuple[FiledPiece, ...] | None, tmp_path: Path
) -> None:
    store(tmp_path, MIXED, later)
    library = opened(tmp_path)
    library.decide(in_pieces(MIXED, ("gpu", (11, 13)), (topic, (12, 14))))
    found = library.repeated(later, SPLIT.at)
    assert (found is None) is (pieces is None)
    if found is not None and pieces is not None:
        library.decide(found)
        wanted = replace(SPLIT, qa_id=later.id, topic=pieces[0].topic, replaces=(MIXED.id,), pieces=pieces)
        assert noted(tmp_path)[-1] == wanted
        assert is_whole(tmp_path, library)


def test_a_topic_that_others_share_keeps_the_words_that_are_gone_so_that_the_pair_is_filed_anew(tmp_path: Path) -> None:
    later = again({12: "No …"})
    store(tmp_path, MIXED, OTHER, later)
    library = opened(tmp_path)
    library.decide(added(OTHER, "port-network"))
    library.decide(in_pieces(MIXED, ("gpu", (11, 13)), ("port-network", (12, 14))))
    assert library.repeated(later, SPLIT.at) is None


@pytest.mark.parametrize(("later", "corrected"), [(again({11: "No …"}), [OTHER.id]), (again(doubted=(13,)), [])])
def test_what_is_doubted_corrects_nothing_any_more(later: Pair, corrected: list[str], tmp_path: Path) -> None:
    store(tmp_path, MIXED, OTHER, later)
    library = opened(tmp_path)
    library.decide(added(OTHER, "port"))
    library.decide(corrects(MIXED, "port", OTHER))
    found = library.repeated(later, SPLIT.at)
    assert found is not None
    assert [each.id for each in found.superseded_parts] == corrected


@pytest.mark.parametrize(
    ("topic", "words", "has"),
    [
        ("big-lanterns", {"lantern"}, True),
        ("big-lantern", {"lantern"}, False),
        ("unlantern", {"tern"}, False),
        ("unlantern", {"anter"}, True),
        ("lan-tern", {"lantern", "n-ter"}, False),
        ("big", {"ig"}, False),
    ],
)
def test_a_word_within_another_is_found_from_five_letters_on(topic: str, words: set[str], has: bool) -> None:
    assert has_inner_word(topic, words, 5) is has


def test_what_an_operator_moved_stays_there_when_it_is_doubted(tmp_path: Path) -> None:
    later = again(doubted=(13,))
    store(tmp_path, MIXED, later)
    library = opened(tmp_path)
    library.decide(added(MIXED, "gpu"))
    library.decide(decided(MIXED, Action.RESTORED, "net", Actor.OPERATOR))
    found = library.repeated(later, SPLIT.at)
    assert found is not None
    library.decide(found)
    assert texts(library) == {"net": [[turn.text for turn in MIXED.turns]]}
    assert is_whole(tmp_path, library)


# From what a model says to the decision


def test_the_messages_of_each_topic_are_filed_apart(caplog: pytest.LogCaptureFixture) -> None:
    said = ((["11", "13"], "gpu"), (["12", "t9"], "net"), (["14"], "net"), (["15"], "thanks"), (["11", "13"], ""))
    parts = pieces_by_topic(MIXED, said)
    assert {topic: part.message_ids for topic, part in parts.items()} == {"gpu": (11, 13), "net": (12, 14)}
    assert "not messages of it: ['t9']" in caplog.text
    assert "as a whole" not in caplog.text
    assert pieces_by_topic(MIXED, [(["11"], "gpu"), (["99"], "net")]) == {}
    assert "it is filed as a whole" in caplog.text
    assert pieces_by_topic(MIXED, []) == {}


def test_one_decision_holds_what_was_decided_about_the_parts() -> None:
    parts = pieces_by_topic(MIXED, [(["11", "13"], "gpu"), (["12", "14"], "net")])
    gpu = replace(decided(MIXED, Action.ADDED, "gpu", remove_ids=(OTHER.id,)), conflicts=(Remark(LATER.id, "x"),))
    net = decided(MIXED, Action.ADDED, "net", remove_ids=(LATER.id, OTHER.id))
    both = merge_decisions(MIXED, parts, [gpu, net])
    assert both == replace(SPLIT, remove_ids=(OTHER.id, LATER.id), conflicts=gpu.conflicts)
    said_already = replace(net, action=Action.SKIPPED)
    one = merge_decisions(MIXED, parts, [said_already, gpu])
    assert (one.action, one.topic, one.pieces) == (Action.ADDED, "gpu", (FiledPiece(("12", "14"), "gpu"),))
    none = merge_decisions(MIXED, parts, [said_already, said_already])
    assert (none.action, none.remove_ids, none.pieces) == (Action.SKIPPED, (LATER.id, OTHER.id), ())
    assert merge_decisions(MIXED, {"gpu": MIXED}, [gpu]) == gpu


def test_a_part_has_its_messages_only() -> None:
    part = piece_of(MIXED, {12, 14})
    assert part is not None
    assert (part.id, part.author_ids) == (MIXED.id, (BEN, KIM))
    assert is_exchange(part.kind, part.turns)
    assert piece_of(MIXED, {99}) is None
    assert piece_of(MIXED, None) is MIXED
