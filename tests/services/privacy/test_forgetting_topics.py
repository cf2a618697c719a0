"""`--forget` where the team has taught something (Pitfall 49)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from services.conversations.drafts import read_drafts, render_draft
from services.conversations.posts import read_started, render_started
from services.privacy.forgetting import ForgetResult, TeamData, forget_in_all_servers, planned_renames
from services.storage import files
from services.storage.data_folder import DataFolder
from services.team import archive
from services.team.archive import Pair, PairTurn, Speaker
from services.team.decisions import Action, Actor, Decision, DecisionLog, Remark
from services.team.library import TeamLibrary
from services.team.state import read_state
from tests.services.conversations.made_drafts import made_draft
from tests.services.privacy.test_forgetting import forget
from tests.services.storage.power import Machine
from tests.services.team.pairs import (
    added,
    captured,
    corrects,
    decided,
    is_whole,
    opened,
    places_in,
    store,
    topic_files,
)

ADA, BOB, TEAM = 311, 312, 902
TRACES = ("lantern stays dark", "wind it up twice", "Ada's trouble")


def said(number: int, *turns: tuple[int, str]) -> Pair:
    return replace(
        captured(number),
        message_ids=tuple(range(10 * number, 10 * number + len(turns))),
        author_ids=tuple(author for author, _ in turns),
        turns=tuple(PairTurn(Speaker.TEAM if author == TEAM else Speaker.USER, text) for author, text in turns),
    )


PAIRS = (
    said(1, (ADA, "My lantern stays dark\nall night"), (BOB, "Mine too"), (TEAM, "Wait.")),
    said(2, (BOB, "Which oil?"), (TEAM, "Any.")),
    said(3, (ADA, "I wind it up twice"), (TEAM, "Once is enough.")),
)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    store(tmp_path, *PAIRS)
    library = opened(tmp_path)
    for pair, topic in zip(PAIRS[:2], ("light", "oil"), strict=True):
        library.decide(added(pair, topic))
    decision = corrects(PAIRS[2], "light", PAIRS[0], what="not the one whose lantern stays dark")
    library.decide(replace(decision, conflicts=(Remark(PAIRS[0].id, "wind it up twice or once"),)))
    for topic in library.undescribed_topics():
        library.describe(topic, f"About {topic.name}. Ada's trouble." if topic.name == "light" else "About oil.", "key")
    return DataFolder(tmp_path)


def take_out(folder: DataFolder, user_id: int, team: TeamLibrary | None = None) -> ForgetResult:
    return forget(TeamData(folder, folder.team_raw, team or opened(folder.root)), user_id)


def everything(folder: DataFolder) -> str:
    return "".join(path.read_bytes().decode() for path in folder.root.rglob("*") if path.is_file())


def nothing_left(folder: DataFolder) -> bool:
    content = everything(folder)
    return not any(trace in content for trace in TRACES)


def test_their_turns_leave_the_topics_and_the_descriptions_that_may_tell_of_them(folder: DataFolder) -> None:
    """Pitfall 49."""
    done = take_out(folder, ADA)
    assert (done.turns, done.topics, done.left) == (2, 1, [])
    assert nothing_left(folder)
    library = opened(folder.root)
    assert is_whole(folder.root, library)
    light = library.topics["light"].text
    assert [line for line in light.split("\n") if line.startswith(("User", "Team"))] == [
        "User: Mine too",
        "Team: Wait.",
        "Team: Once is enough.",
    ]
    assert [(entry.id, entry.description) for entry in library.index()] == [
        ("team:light.txt", "light: Mine too"),
        ("team:oil.txt", "About oil."),
    ]
    assert [topic.name for topic in library.undescribed_topics()] == ["light"]
    again = take_out(folder, ADA)
    assert not again.found_anything


def test_a_conversation_of_which_the_team_said_nothing_more_leaves_its_topic(folder: DataFolder) -> None:
    """Pitfall 49."""
    done = take_out(folder, TEAM)
    assert done.topics == 2
    assert topic_files(folder.root) == {}
    assert opened(folder.root).oldest_undecided() is None


def test_whoever_has_no_part_in_a_topic_changes_nothing(folder: DataFolder) -> None:
    before = everything(folder)
    assert not take_out(folder, 5).found_anything
    assert everything(folder) == before


CANDLES = said(4, (BOB, "Which candles?"), (TEAM, "None."))


@pytest.mark.parametrize(
    "decision",
    [decided(PAIRS[0], Action.REMOVED, by=Actor.OPERATOR), added(CANDLES, "light", remove_ids=(PAIRS[0].id,))],
    ids=["by the operator", "replaced"],
)
def test_a_description_of_what_has_left_the_topic_goes_as_well(
    folder: DataFolder, decision: Decision, tmp_path: Path
) -> None:
    store(tmp_path, CANDLES)
    library = opened(tmp_path)
    library.decide(decided(PAIRS[2], Action.REMOVED, by=Actor.OPERATOR))
    library.decide(added(CANDLES, "light"))
    library.decide(decision)
    assert "Ada's trouble" in everything(folder)
    take_out(folder, ADA)
    assert nothing_left(folder)
    assert "About oil." in everything(folder)


def test_of_whoever_taught_nothing_descriptions_of_what_has_left_a_topic_stay(folder: DataFolder) -> None:
    opened(folder.root).decide(decided(PAIRS[2], Action.REMOVED, by=Actor.OPERATOR))
    take_out(folder, 999)
    assert "Ada's trouble" in everything(folder)


def test_a_rebuild_from_the_archive_does_not_bring_the_words_back(folder: DataFolder, tmp_path: Path) -> None:
    """Pitfall 49."""
    take_out(folder, ADA)
    rebuilt = opened(tmp_path / "rebuilt")
    store(tmp_path / "rebuilt", *archive.parse((folder.team_raw / "2026-W05.txt").read_text()))
    while (pair := rebuilt.oldest_undecided()) is not None:
        rebuilt.decide(added(pair, "all"))
    assert nothing_left(DataFolder(tmp_path / "rebuilt"))
    assert len(rebuilt.topics["all"].pairs) == 3


def test_a_library_in_use_forgets_as_well(folder: DataFolder) -> None:
    """Pitfall 49: also what waits to be decided about, and while other captures come."""
    library = opened(folder.root)
    waiting = said(4, (ADA, "It says: lantern stays dark"), (TEAM, "Really?"))
    store(folder.root, waiting)
    assert library.oldest_undecided() == waiting
    old = library.topics["light"]
    take_out(folder, ADA, library)
    store(folder.root, captured(5))
    assert library.oldest_undecided() == archive.remove_texts(waiting, ADA)
    # Whoever was thinking about it meanwhile holds the words still.
    library.decide(added(waiting, "light"), waiting)
    library.describe(old, "Ada's trouble.", "key")
    assert library.oldest_undecided() == captured(5)
    library.decide(added(captured(5), "light"))
    assert nothing_left(folder)
    assert is_whole(folder.root, library)


@pytest.mark.slow
@pytest.mark.parametrize("wrote", [ADA, TEAM])
def test_after_a_crash_running_it_again_finishes_the_work(folder: DataFolder, wrote: int, tmp_path: Path) -> None:
    """Pitfall 49: the power is cut at every system call; no copy of a topic is kept as if somebody had changed it."""
    whole = {path.relative_to(folder.root): path.read_bytes() for path in folder.root.rglob("*") if path.is_file()}
    words = TRACES if wrote == ADA else ("Wait.", "Any.", "Once is enough.")

    def cut_at(last: int) -> bool:
        copy = tmp_path / "copies" / str(last)
        for path, data in whole.items():
            files.replace(copy / path, data)
        done = Machine(last).run(lambda: take_out(DataFolder(copy), wrote))
        opened(copy)
        take_out(DataFolder(copy), wrote)
        content = everything(DataFolder(copy))
        assert not any(word in content for word in words)
        assert not list(copy.rglob("*.rejected*"))
        assert is_whole(copy, opened(copy))
        return done

    assert next(last for last in count() if cut_at(last)) > 20


def test_without_the_library_topics_are_named_and_its_next_opening_takes_the_words_out(
    folder: DataFolder, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 49."""
    done = forget(TeamData(folder, folder.team_raw), ADA)
    assert done.left == [f"{folder.team_topics}: not looked through"]
    library = opened(folder.root)
    assert is_whole(folder.root, library)
    assert caplog.messages == []
    assert read_state(places_in(folder.root).state).filed_bytes == folder.decisions.stat().st_size


def test_captures_that_wait_with_their_words_are_dropped(folder: DataFolder) -> None:
    """Pitfall 49."""
    for name, author in (("1-2.capture", ADA), ("3-4.capture", BOB)):
        head = {"since": "2026-02-01T00:00:00Z", "said": [{"author_id": str(author), "text": TRACES[0]}]}
        files.replace(folder.pending / name, json.dumps(head).encode() + b"\n\xff\x00picture")
    files.replace(folder.pending / "5-6.capture.damaged", b"{}")
    (folder.pending / "7-8.capture").mkdir()
    done = take_out(folder, ADA)
    assert done.pending == 1
    assert [path.name for path in sorted(folder.pending.iterdir())] == [
        "3-4.capture",
        "5-6.capture.damaged",
        "7-8.capture",
    ]
    left = ("5-6.capture.damaged", "7-8.capture")
    assert done.left == [f"{folder.pending / name}: cannot tell whose it is" for name in left]


def test_topics_that_somebody_changed_by_hand_are_for_the_operator_to_look_at(folder: DataFolder) -> None:
    path = folder.team_topics / "light.txt"
    path.write_text(path.read_text() + "my note")
    done = take_out(folder, ADA)
    assert done.left == [f"{folder.team_topics / 'light.txt.rejected'}: a topic that somebody changed by hand"]


@pytest.fixture
def called_by_her(folder: DataFolder) -> TeamLibrary:
    """Pitfall 67: the name of a topic stands in the decisions, and is that of a file."""
    library = opened(folder.root)
    theirs = said(4, (ADA, "The blorptang of my lamp is out"), (TEAM, "Change the lamp."), (BOB, "Thanks"))
    store(folder.root, theirs)
    library.decide(added(theirs, "lamp-blorptang"))
    return library


def named_so(folder: DataFolder) -> set[Path]:
    paths = set(folder.root.rglob("*"))
    held = {path for path in paths if path.is_file() and b"blorptang" in path.read_bytes()}
    return {path for path in paths if "blorptang" in path.name} | held


def test_a_topic_that_is_called_by_a_word_of_theirs_gets_another_name(
    folder: DataFolder, called_by_her: TeamLibrary
) -> None:
    assert take_out(folder, ADA, called_by_her).left == []
    assert not named_so(folder)
    assert "Change the lamp." in (folder.team_topics / "lamp.txt").read_text()
    assert opened(folder.root).topics.keys() == called_by_her.topics.keys() == {"lamp", "light", "oil"}
    late = said(5, (BOB, "Another lamp?"), (TEAM, "As before."))
    store(folder.root, late)
    called_by_her.decide(added(late, "lamp-blorptang"))  # it was chosen before
    assert not named_so(folder)
    assert len(called_by_her.topics["lamp"].pairs) == 2


def test_what_others_were_told_from_a_topic_names_it_as_it_is_called_now(
    folder: DataFolder, called_by_her: TeamLibrary
) -> None:
    """Pitfall 67: the records of somebody else's answers, votes and posts hold the topic's id."""
    row = {"author_id": str(BOB), "question": "and mine?", "sources": ["team:lamp-blorptang.txt"]}
    path = folder.outcomes / "2026-02-01.jsonl"
    for each in (path, folder.feedback, folder.posts):
        files.replace(each, json.dumps({**row, "path": {"select": {"team:lamp-blorptang.txt": 1}}}).encode() + b"\n")
    exchange: dict[str, object] = {
        "step": "select",
        "hash": "1",
        "people": [],
        "request": "c1 ¦ team:lamp-blorptang.txt",
        "response": "c1",
    }
    files.replace(folder.llm_recordings / "x.jsonl", json.dumps(exchange).encode() + b"\n")
    draft = made_draft(asker_id=BOB)
    reply = replace(draft.reply, post=replace(draft.reply.post, sources=("team:lamp-blorptang.txt",)))
    files.replace(folder.drafts / "8.json", render_draft(replace(draft, reply=reply)))
    files.replace(folder.outbox / "8.json", render_started(replace(reply, pieces=("One.", "Two."))))
    assert take_out(folder, ADA, called_by_her).left == []
    assert not named_so(folder)
    for each in (path, folder.feedback, folder.posts):
        assert json.loads(each.read_bytes())["sources"] == ["team:lamp.txt"]
    (waiting,), (started,) = read_drafts(folder.drafts), read_started(folder.outbox)
    assert waiting.reply.post.sources == started.post.sources == ("team:lamp.txt",)


SERVER = 77


def test_what_people_of_a_server_were_told_from_its_topic_is_renamed_among_the_shared_records(
    tmp_path: Path, folder: DataFolder, called_by_her: TeamLibrary
) -> None:
    """The outcomes, votes and posts of all servers are in one folder."""
    shared = DataFolder(tmp_path / "shared")
    own = DataFolder(shared.guilds / str(SERVER))
    shutil.copytree(folder.team_knowledge, own.team_knowledge)
    team = TeamData(own, own.team_raw, opened(own.root))
    old, new = (f"team:@{SERVER}/{name}.txt" for name in ("lamp-blorptang", "lamp"))
    row = {"author_id": str(BOB), "sources": [old, "team:lamp-blorptang.txt"], "path": {"select": {old: 1}}}
    files.replace(shared.posts, json.dumps(row).encode() + b"\n")
    nobody = TeamData(shared, shared.team_raw, opened(shared.root))
    assert planned_renames(nobody, [team], ADA) == {old: new}
    done = forget_in_all_servers(nobody, [team], ADA, ["blorptang"], renamed={"team:elsewhere.txt": "team:x.txt"})
    assert done.renamed == {old: new, "team:elsewhere.txt": "team:x.txt", "team:lamp-blorptang.txt": "team:lamp.txt"}
    assert json.loads(shared.posts.read_bytes()) == {
        **row,
        "sources": [new, "team:lamp-blorptang.txt"],  # a shared topic of that name would be another one
        "path": {"select": {new: 1}},
    }
    assert list(opened(own.root).topics) == ["lamp", "light", "oil"]


def test_a_crash_while_a_topic_is_renamed_leaves_it_to_the_next_run(
    folder: DataFolder, called_by_her: TeamLibrary, tmp_path: Path
) -> None:
    """The power is cut at every system call; no file of the old name is kept as if somebody had made it."""
    library = called_by_her.paths.topics.parent
    whole = {path.relative_to(folder.root): path.read_bytes() for path in library.rglob("*") if path.is_file()}

    def cut_at(last: int) -> bool:
        copy = DataFolder(tmp_path / "copies" / str(last))
        for path, data in whole.items():
            files.replace(copy.root / path, data)
        done = Machine(last).run(lambda: take_out(copy, ADA))
        take_out(copy, ADA, opened(copy.root))
        assert not named_so(copy)
        assert "Change the lamp." in (copy.team_topics / "lamp.txt").read_text()
        return done

    assert next(last for last in count() if cut_at(last)) > 20


def test_a_topic_that_the_operator_names_keeps_its_name_and_is_named(
    folder: DataFolder, called_by_her: TeamLibrary
) -> None:
    done = forget(TeamData(folder, folder.team_raw, called_by_her, ["lamp-blorptang"]), ADA)
    (line,) = done.left
    assert "the name of the topic lamp-blorptang has a word of theirs" in line
    assert "lamp-blorptang" in called_by_her.topics


def remarks(folder: DataFolder) -> list[tuple[str, ...]]:
    """What decisions say about pairs."""
    noted: list[Decision] = DecisionLog(folder.decisions).read()
    return [tuple(remark.what for remark in (*each.superseded_parts, *each.conflicts)) for each in noted]


def test_what_models_said_about_their_conversations_goes_from_the_decisions(folder: DataFolder) -> None:
    """Pitfalls 49 and 67: it may repeat them. That something was corrected stays."""
    library = opened(folder.root)
    take_out(folder, ADA, library)
    assert remarks(folder) == [(), (), (archive.REMOVED, archive.REMOVED)]
    assert f"superseded: {PAIRS[2].said_at} {archive.REMOVED}\n" in library.topics["light"].text
    assert is_whole(folder.root, library)
    before = folder.decisions.read_bytes()
    take_out(folder, ADA)
    assert folder.decisions.read_bytes() == before


def test_what_was_said_about_others_stays(folder: DataFolder) -> None:
    before = folder.decisions.read_bytes()
    damaged = b'{"what" \n{"what": 1}\n'
    folder.decisions.write_bytes(before + damaged)
    take_out(folder, 999)
    assert folder.decisions.read_bytes() == before + damaged


def test_without_a_library_it_goes_as_well(folder: DataFolder) -> None:
    forget(TeamData(folder, folder.team_raw), ADA)
    assert remarks(folder) == [(), (), (archive.REMOVED, archive.REMOVED)]
    assert is_whole(folder.root, opened(folder.root))


@pytest.mark.parametrize(
    ("word", "topic", "renamed"),
    [
        ("blorp_tang", "lamp-blorp-tang", "lamp"),
        ("Blorpstraße", "lamp-blorpstraße", "lamp"),
        ("BLORPSTRASSE", "lamp-blorpstraße", "lamp"),
        ("\u0130blorptang", "lamp-iblorptang", "lamp"),
        ("blorp\uff17\uff17", "lamp-blorp77", "lamp"),
        ("b" * 70, "b" * 60, "topic"),
    ],
)
def test_a_topic_is_renamed_however_its_name_spells_their_word(
    tmp_path: Path, word: str, topic: str, renamed: str
) -> None:
    pair = said(1, (ADA, f"What is {word} for?"), (TEAM, "The lamp."))
    store(tmp_path, pair)
    opened(tmp_path).decide(added(pair, topic))
    folder = DataFolder(tmp_path)
    assert take_out(folder, ADA).left == []
    assert list(opened(tmp_path).topics) == [renamed]


@pytest.mark.parametrize(("word", "is_named"), [("blorptang", True), ("blor", False)])
def test_a_topic_whose_name_holds_their_word_within_another_is_named(tmp_path: Path, word: str, is_named: bool) -> None:
    pair = said(1, (ADA, f"What is {word} for?"), (TEAM, "The lamp."))
    store(tmp_path, pair)
    opened(tmp_path).decide(added(pair, "lamp-myblorptangs"))
    left = take_out(DataFolder(tmp_path), ADA).left
    assert ["lamp-myblorptangs holds a word of theirs within another" in line for line in left] == [True] * is_named
