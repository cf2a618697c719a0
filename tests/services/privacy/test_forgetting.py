from __future__ import annotations

import dataclasses
import json
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.conversations import Conversation, Role
from model.conversations import Turn as Said
from model.messages import AuthorType
from model.outcomes import OutcomeKind
from services.assistant.prompts import ConfiguredTasks, gate, select
from services.conversations.drafts import FORGOTTEN, DraftEnd, DraftState, read_drafts, render_draft
from services.conversations.posts import Post, StartedReply, read_posts, render_post, render_started
from services.llm.endpoint import Reply, Request
from services.llm.recording import read, render
from services.llm.usage import Spent, read_spent, render_spent
from services.privacy.forgetting import (
    ForgetResult,
    TeamData,
    forget_in_all_servers,
    has_archived_text,
    limits_pseudonym,
    outcomes_without,
    pseudonym,
)
from services.privacy.recordings import drop_llm_calls
from services.privacy.text_match import LONG_CHARS, TextMatch
from services.privacy.unknown_files import ConfiguredFiles
from services.storage import files
from services.storage.data_folder import DataFolder
from services.team import AuditLog, archive, read_audit
from services.team.archive import Pair, PairTurn, Speaker
from services.telemetry import PartOutcome, current_people, parse_part_outcome, render_part_outcome
from tests.services.conversations.made_drafts import made_draft
from tests.services.quickly import QUICKLY
from tests.services.team.test_archive import a_pair

ADA, BOB, TEAM = 311, 312, 902
QUESTION = "My lantern does not light up\nsince I updated it yesterday"
REWRITTEN = "Why does a lantern stay dark after an update?"
BOBS = "Which oil does the lantern burn best?"
KEY = b"0" * 64
SPENT = Spent(
    day=20_000, answers=3, tokens=70, chains={limits_pseudonym(KEY, each): deque([1.0]) for each in (ADA, BOB)}
)


def pair(*said: tuple[int, str], second: int = 57) -> Pair:
    timestamp = f"2026-02-01T03:10:{second}.000000Z"
    return Pair(
        f"qa_20260201_0310{second}.000000",
        timestamp,
        timestamp,
        "thread_17",
        tuple(range(1, len(said) + 1)),
        tuple(author for author, _ in said),
        tuple(PairTurn(Speaker.TEAM if author == TEAM else Speaker.USER, text) for author, text in said),
    )


def exchange(step: str, user: str, reply: str = "{}") -> str:
    request = Request(step, "You judge.", ({"type": "text", "text": user},), "GatingResult", {}, "json_schema")
    return render(request, Reply(reply, 1, 1, finish_reason="stop"))


def asked(text: str) -> str:
    return gate(ConfiguredTasks(), Conversation((Said(Role.USER, text, asked_now=True),))).user


def post(message_id: int, asker_id: int, question: str) -> Post:
    return Post(1.0, message_id, 5, 4, asker_id, message_id - 1, True, question, ("kb:a.md",))


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """What a bot has kept of Ada and Bob."""
    folder = DataFolder(tmp_path)
    pairs = [
        pair((ADA, QUESTION), (BOB, "Same here"), (TEAM, "Wind it up.\n\nThen wait.")),
        pair((BOB, BOBS), (TEAM, "Any."), second=58),
    ]
    files.append(folder.team_raw / "2026-W05.txt", "".join(map(archive.render, pairs)).encode())
    for each in (post(100, ADA, QUESTION), post(200, BOB, BOBS)):
        files.append(folder.posts, render_post(each))
    files.replace(folder.feedback_key, KEY)
    for voter, message_id, question in ((ADA, 200, BOBS), (BOB, 100, QUESTION), (BOB, 200, BOBS)):
        row = {"message_id": str(message_id), "voter": pseudonym(KEY, voter), "question": question, "vote": "up"}
        row |= {"inferred": True} if voter == ADA else {}
        files.append(folder.feedback, json.dumps(row, ensure_ascii=False).encode() + b"\n")
    files.replace(folder.usage, render_spent(SPENT))
    gating = {"is_question": True, "is_answerable": True, "rewrite_query": REWRITTEN, "reason": "r"}
    lines = [
        exchange("gate", asked(QUESTION), f"Here it is: {json.dumps(gating)}"),
        exchange("select", select(ConfiguredTasks(), REWRITTEN, QUESTION, (), 3).user),
        exchange("gate", asked(BOBS), json.dumps({**gating, "rewrite_query": None})),
        exchange("select", select(ConfiguredTasks(), BOBS, BOBS, (), 3).user),
    ]
    files.append(folder.llm_recordings / "today.jsonl", "".join(lines).encode())
    return folder


def forget(data: TeamData, user_id: int, configured: ConfiguredFiles | None = None) -> ForgetResult:
    """Forget a person where there is one server."""
    return forget_in_all_servers(data, [], user_id, [], configured)


def kept(folder: DataFolder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.root.rglob("*") if path.is_file()}


def test_nothing_that_a_person_wrote_is_left_and_everything_else_is(folder: DataFolder) -> None:
    """Pitfall 49."""
    assert forget(TeamData(folder, folder.team_raw), ADA) == ForgetResult(1, 1, 1, 1, 2)
    everything = b"".join(kept(folder).values()).decode()
    for trace in ("does not light up", "updated it yesterday", REWRITTEN, pseudonym(KEY, ADA)):
        assert trace not in everything
    first, second = archive.parse((folder.team_raw / "2026-W05.txt").read_text())
    assert [turn.text for turn in first.turns] == ["[removed]", "Same here", "Wind it up.\n\nThen wait."]
    assert first.author_ids == (ADA, BOB, TEAM)
    assert second == pair((BOB, BOBS), (TEAM, "Any."), second=58)
    assert [each.asker_id for each in read_posts(folder.posts)] == [BOB]
    rows = [json.loads(line) for line in folder.feedback.read_text().splitlines()]
    assert [(row["message_id"], row["question"]) for row in rows] == [("100", "[removed]"), ("200", BOBS)]
    assert read_spent(folder.usage) == SPENT
    assert [each.step for each in read(folder.llm_recordings / "today.jsonl")] == ["gate", "select"]


def test_counts_that_an_earlier_program_kept_by_the_ids_of_people_go(folder: DataFolder) -> None:
    """Pitfall 49."""
    files.replace(folder.usage, json.dumps({"day": 20_000, "answers": 3, "chains": {str(ADA): [1.0]}}).encode())
    forget(TeamData(folder, folder.team_raw), ADA)
    assert str(ADA) not in folder.usage.read_text()
    assert read_spent(folder.usage) == Spent(20_000, 3)


def test_a_reply_that_is_half_posted_is_dropped_and_others_stay(folder: DataFolder) -> None:
    """Pitfall 67: and so is one of which nobody can tell whose it is."""
    folder.outbox.mkdir()
    for number, asker in ((11, ADA), (12, BOB)):
        started = StartedReply(post(number, asker, QUESTION), ("First.", "Second."), (number - 1,), 7)
        (folder.outbox / f"{started.id}.json").write_bytes(render_started(started))
    seen = dataclasses.replace(started, post=post(13, BOB, "How?"), people=(ADA, BOB))
    (folder.outbox / f"{seen.id}.json").write_bytes(render_started(seen))
    (folder.outbox / "9.json").write_text("{")
    done = forget(TeamData(folder, folder.team_raw), ADA)
    assert done.posts == 3
    assert [line for line in done.left if line.startswith(f"{folder.outbox}/{seen.id}.json: a reply to somebody else")]
    files.remove(folder.outbox / f"{seen.id}.json")
    assert [path.name for path in folder.outbox.iterdir()] == ["11.json"]


def test_drafts_for_somebody_and_those_with_their_words_end(folder: DataFolder) -> None:
    """Pitfall 67: and one of which nobody can tell whose it is goes."""
    files.append(folder.posts, render_post(post(40, ADA, QUESTION)))
    quoted = made_draft(13, asker_id=BOB, text=f"Somebody asked:\n> {QUESTION}\nSo do this.")
    edited, decided = made_draft(14, asker_id=BOB, edited_by=ADA), made_draft(15, asker_id=BOB, decided_by=ADA)
    asked = made_draft(16, asker_id=BOB, asked_texts=("Somebody asked:", QUESTION))
    edited_twice = made_draft(17, asker_id=BOB).with_text("Words of Ada.", ADA).with_text("Words of Ada!", BOB)
    seen = made_draft(18, asker_id=BOB)
    seen = dataclasses.replace(seen, reply=dataclasses.replace(seen.reply, people=(ADA, BOB)))
    others = (quoted, edited, decided, asked, edited_twice, seen)
    for draft in (made_draft(11, asker_id=ADA), made_draft(12, asker_id=BOB), *others):
        files.replace(folder.drafts / f"{draft.id}.json", render_draft(draft))
    files.replace(folder.drafts / "9.json", b"{")
    forget(TeamData(folder, folder.team_raw), ADA)
    left = {draft.id: draft for draft in read_drafts(folder.drafts)}
    assert {number: draft.decided_by for number, draft in left.items() if not draft.end} == {12: 0, 15: FORGOTTEN}
    over = [draft for draft in left.values() if draft.end]
    assert [draft.id for draft in over] == [11, 13, 14, 16, 17, 18]
    for draft in over:
        assert (draft.state, draft.end, draft.is_shown) == (DraftState.ENDED, DraftEnd.WITHDRAWN, False)
        assert (draft.text, draft.reply.post.question, draft.asked_texts, draft.reply.people) == ("", "", (), ())
    assert not any(str(ADA) in path.read_text() for path in folder.drafts.iterdir())
    assert len([*folder.drafts.iterdir()]) == len(left)


def test_who_decided_is_nobody_any_more_and_what_was_decided_stays(folder: DataFolder) -> None:
    for by in (ADA, BOB, "ana"):
        AuditLog(folder.audit).note(1.0, str(by), "post draft", ADA)
    done = forget(TeamData(folder, folder.team_raw), ADA, configured=ConfiguredFiles(ours=[folder.team_raw]))
    assert not any("audit" in line for line in done.left)
    assert [(each.by, each.about) for each in read_audit(folder.audit)] == [
        ("", str(ADA)),
        (str(BOB), str(ADA)),
        ("ana", str(ADA)),
    ]


def test_the_archive_tells_who_has_written_until_they_are_forgotten(folder: DataFolder) -> None:
    assert has_archived_text(folder.team_raw, ADA)
    assert not has_archived_text(folder.team_raw, 999)
    forget(TeamData(folder, folder.team_raw), ADA)
    assert not has_archived_text(folder.team_raw, ADA)
    assert has_archived_text(folder.team_raw, BOB)


def test_a_second_run_finds_nothing_and_writes_nothing(folder: DataFolder) -> None:
    forget(TeamData(folder, folder.team_raw), ADA)
    before = kept(folder)
    done = forget(TeamData(folder, folder.team_raw), ADA)
    assert not done.found_anything
    assert kept(folder) == before


def test_whoever_is_not_known_changes_nothing(folder: DataFolder) -> None:
    before = kept(folder)
    assert not forget(TeamData(folder, folder.team_raw), 999).found_anything
    assert kept(folder) == before


def test_a_folder_that_holds_nothing_is_left_without_anything(tmp_path: Path) -> None:
    assert forget(TeamData(DataFolder(tmp_path), tmp_path / "raw"), ADA) == ForgetResult()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writes", range(5))
def test_after_a_crash_running_it_again_finishes_the_work(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Cut before each of the files is written."""
    replace = files.replace
    left = writes

    def cut(path: Path, data: bytes) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        replace(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace", cut)
        if writes < 4:
            with pytest.raises(KeyboardInterrupt):
                forget(TeamData(folder, folder.team_raw), ADA)
        else:
            forget(TeamData(folder, folder.team_raw), ADA)
    forget(TeamData(folder, folder.team_raw), ADA)
    everything = b"".join(kept(folder).values()).decode()
    for trace in ("does not light up", "updated it yesterday", REWRITTEN, pseudonym(KEY, ADA)):
        assert trace not in everything


def test_copies_that_a_crash_left_behind_go_as_well(folder: DataFolder) -> None:
    leftover = folder.team_raw / f"{files.LEFTOVER_PREFIX}1-1"
    leftover.write_text(QUESTION)
    forget(TeamData(folder, folder.team_raw), ADA)
    assert not leftover.exists()


def test_what_is_damaged_stays_and_is_reported(folder: DataFolder) -> None:
    raw = folder.team_raw / "2026-W05.txt"
    damage = b"--- QA ---\nid: nonsense\nUser: \xff\xfe\n\n"
    truncated = b"--- QA ---\nid: qa_"
    raw.write_bytes(damage + raw.read_bytes() + truncated)
    (folder.team_raw / "2026-W04.txt.torn").write_text("User: half a")
    folder.team_topics.mkdir(parents=True)
    (folder.team_topics / "light.txt").write_text("x")
    for path in (folder.feedback, folder.posts, folder.llm_recordings / "today.jsonl", folder.decisions):
        files.append(path, b"[1]\n{half")
    done = forget(TeamData(folder, folder.team_raw), ADA)
    assert raw.read_bytes().startswith(damage)
    assert raw.read_bytes().endswith(truncated)
    assert [line.removeprefix(f"{folder.root}/") for line in done.left] == [
        "llm-recordings/today.jsonl: 2 damaged lines",
        "feedback.jsonl: 2 damaged lines",
        "team-knowledge/raw/2026-W05.txt: 2 malformed or truncated blocks",
        "state/posts.jsonl: 2 damaged lines",
        "team-knowledge/decisions.jsonl: 2 damaged lines",
        "team-knowledge/raw/2026-W04.txt.torn: a block truncated by a crash",
        "team-knowledge/topics: not looked through",
    ]


def test_texts_too_short_to_tell_whose_they_are_drop_no_exchange_and_are_reported(folder: DataFolder) -> None:
    files.append(folder.team_raw / "2026-W06.txt", archive.render(pair((77, "yes"), (TEAM, "Fine."))).encode())
    done = forget(TeamData(folder, folder.team_raw), 77)
    assert (done.turns, done.exchanges) == (1, 0)
    [line] = done.left
    assert "1 text of theirs not searched for" in line


def test_without_a_key_for_pseudonyms_votes_stay_as_nobody_can_tell_whose_they_are(folder: DataFolder) -> None:
    folder.feedback_key.unlink()
    done = forget(TeamData(folder, folder.team_raw), ADA)
    assert (done.votes, done.questions) == (0, 1)
    assert not folder.feedback_key.exists()


def test_a_vote_about_an_answer_that_is_noted_no_more_is_found_by_its_question(folder: DataFolder) -> None:
    """Pitfall 67."""
    files.replace(folder.posts, render_post(post(200, BOB, BOBS)))
    assert forget(TeamData(folder, folder.team_raw), ADA).questions == 1
    assert "does not light up" not in folder.feedback.read_text()


def test_exchanges_that_say_whose_words_they_hold_are_found_without_them(folder: DataFolder) -> None:
    """Pitfall 67: a question without a reply is kept nowhere else."""
    path = folder.llm_recordings / "today.jsonl"
    current_people.set({ADA, BOB})
    path.write_text(exchange("gate", "Wie?") + path.read_text())
    current_people.set(None)
    assert forget(TeamData(folder, folder.team_raw), 999).exchanges == 0
    assert forget(TeamData(folder, folder.team_raw), ADA).exchanges == 3
    assert "Wie?" not in path.read_text()


def test_what_others_ask_in_a_few_common_words_stays_theirs(tmp_path: Path) -> None:
    path = tmp_path / "today.jsonl"
    common, own = "how do i install the", "how do i install the lantern without waking the whole house"
    lines: list[str] = []
    for who, said in ((None, common), (BOB, f"{common} lamp"), (BOB, f"Ada asked: {own}")):
        current_people.set({who} if who else None)
        lines.append(exchange("gate", asked(said)))
    current_people.set(None)
    path.write_text("".join(lines))
    left = drop_llm_calls([path], ADA, [common, own])
    assert (left.calls, left.redacted) == (1, 1)
    second, third = path.read_text().splitlines(keepends=True)
    assert second == lines[1]
    assert json.loads(third)["request"]["user"][0]["text"] == asked(f"Ada asked: {own}").replace(
        f"User: Ada asked: {own}", "[removed]"
    )
    rows = [{"author_id": str(BOB), "question": each} for each in (f"{common} lamp", own)]
    assert [outcomes_without(ADA, TextMatch([common, own], LONG_CHARS))(row) for row in rows] == [
        rows[0],
        {**rows[1], "question": "[removed]"},
    ]


def test_a_long_line_is_enough_to_tell_a_text() -> None:
    """Pitfall 67: prompts show parts of texts."""
    line = "the lantern went out at ten in the evening"
    assert TextMatch([f"{line}\nand so on"]).found_in(f"User: {line}")
    assert not TextMatch(["it went out again\nand so on"]).found_in("User: it went out again")


@pytest.mark.parametrize(
    "text",
    [
        "how do I?\n" * 6,
        "how?\n" * 40,
        "how do I\ndo I wash\nhow do I wash\nI wash a\nwash a\nhow\ndo",
        "how do I\n[image: x]\nhow do I wash\n[image: y]\nwash a hat",
    ],
)
def test_short_and_repeated_lines_identify_nobody(text: str) -> None:
    match = TextMatch([text], LONG_CHARS)
    assert not match.found_in("how do I wash a hat at forty degrees?")
    assert match.too_short == 1 or match.found_in(f"User: {text}")


def test_a_gate_that_answered_with_nothing_usable_is_dropped_all_the_same(folder: DataFolder) -> None:
    path = folder.llm_recordings / "today.jsonl"
    path.write_text(exchange("gate", asked(QUESTION), "I would rather not.") + exchange("gate", asked(BOBS)))
    assert forget(TeamData(folder, folder.team_raw), ADA).exchanges == 1


@QUICKLY
@given(st.lists(st.sampled_from(["\n", "User: x", "--- QA ---", "", "\r\n", "text"]), max_size=8), st.booleans())
def test_blocks_put_together_again_are_the_text_they_were_cut_from(around: list[str], bom: bool) -> None:
    text = ("\ufeff" if bom else "") + archive.render(a_pair()) + "\n".join(around) + archive.render(a_pair("a", "b"))
    pieces = archive.blocks(text)
    assert "".join(piece for piece, _ in pieces) == text
    assert pieces[0][1] == a_pair() or around
    assert [each for _, each in pieces if isinstance(each, Pair)] == archive.parse(text)


@pytest.mark.parametrize(
    ("said", "prompt"),
    [
        ("The lantern stays dark", "User: THE lantern, stays dark!"),
        ("You: do as I say now\nand be quick", "  ¦ You: do as I say now\n  and be quick"),
        ("my lamp went out again\n[image: lamp.png]", "my lamp went out again [image: a dark lamp]"),
        ("Der Zähler läuft rück\u200bwärts", "der zähler läuft rückwärts"),
        ("one whole question\nand the rest of it", "User: one whole question\nUser: and the rest of it"),
    ],
)
def test_a_text_is_found_in_prompts_however_it_was_written_down_there(said: str, prompt: str) -> None:
    assert TextMatch([said]).found_in(f"<<<conversation>>>\n{prompt}\n<<<end of conversation>>>")


@pytest.mark.parametrize("prompt", ["The lantern stays darker", "A lantern stays dark", "", "dark stays lantern the"])
def test_a_text_is_not_found_in_what_merely_resembles_it(prompt: str) -> None:
    assert not TextMatch(["The lantern stays dark"]).found_in(prompt)


def test_a_rebuild_that_was_cut_off_keeps_no_copy(folder: DataFolder) -> None:
    """Pitfall 49."""
    topic = folder.regeneration / "topics" / "lamps.txt"
    topic.parent.mkdir(parents=True)
    topic.write_text(QUESTION)
    forget(TeamData(folder, folder.team_raw), ADA)
    assert not folder.regeneration.exists()


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        (set[str](), []),
        ({"format"}, ["1 exchange of an earlier program, which did not note whose files they hold passages of"]),
        ({"format", "people"}, ["1 exchange of an earlier program, which did not note whose words they hold"]),
    ],
)
def test_exchanges_that_do_not_say_whose_words_and_files_they_hold_are_named(
    tmp_path: Path, lacks: set[str], said: list[str]
) -> None:
    """Pitfall 67: whether or not the person has any files now."""
    path = tmp_path / "today.jsonl"
    row = json.loads(exchange("gate", asked(BOBS)))
    path.write_text(json.dumps({key: value for key, value in row.items() if key not in lacks}) + "\n")
    left = drop_llm_calls([path], ADA, [QUESTION]).left
    assert [line.removeprefix(f"{path}: ").partition(":")[0] for line in left] == said


def test_what_an_earlier_program_has_stored_cannot_be_told_apart_and_is_named(tmp_path: Path) -> None:
    """Pitfall 67."""
    raw = tmp_path / "raw"
    raw.mkdir()
    earlier = "--- QA ---\nid: qa_20260201_031056\ntimestamp: 2026-02-01T03:10:56Z\nconversation_id: thread_17\n"
    earlier += "message_ids: msg_1, msg_2\nUser: Why?\nTeam: So.\n\n"
    ours = archive.render(pair((ADA, QUESTION), (TEAM, "Turn it round.")))
    path = raw / "2026-W05.txt"
    path.write_text(earlier + ours)
    done = forget(TeamData(DataFolder(tmp_path / "data"), raw), ADA)
    assert done.turns == 1
    said = "1 conversation stored by an earlier program, which did not note who wrote what"
    assert done.left == [f"{path}: {said}"]
    assert path.read_text().startswith(earlier)


def test_how_their_questions_ended_goes_and_what_got_no_reply_is_found_in_recordings(folder: DataFolder) -> None:
    """Pitfall 67."""
    unanswered = "Which way round does the chimney of a lantern go?"

    def end(author_id: int, question: str) -> bytes:
        return render_part_outcome(
            PartOutcome(
                at=1_790_000_000.0,
                result=OutcomeKind.SKIPPED,
                reason="no sources",
                channel_id=5,
                place_id=5,
                message_ids=(7,),
                author_id=author_id,
                author_type=AuthorType.COMMUNITY_USER,
                question=question,
            )
        )

    day = folder.outcomes / "2026-09-21.jsonl"
    files.append(day, end(ADA, unanswered) + end(BOB, BOBS) + b"{damaged\n")
    files.append(folder.llm_recordings / "today.jsonl", exchange("gate", asked(unanswered)).encode())
    done = forget(TeamData(folder, folder.team_raw), ADA)
    assert (done.ends, done.exchanges) == (1, 3)
    assert f"{day}: 1 damaged line" in done.left
    assert unanswered not in b"".join(kept(folder).values()).decode()
    assert [entry.author_id for line in day.read_bytes().splitlines() if (entry := parse_part_outcome(line))] == [BOB]
