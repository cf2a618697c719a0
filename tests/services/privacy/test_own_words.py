"""Which words count as a person's where others may have written them, and what becomes of records of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.conversations import Conversation, Role
from model.conversations import Turn as Said
from model.messages import AuthorType, snowflake_at
from model.outcomes import OutcomeKind
from services.assistant.prompts import Choice, ConfiguredTasks, classify, gate, generate, select
from services.conversations.drafts import DraftState, read_drafts, render_draft
from services.conversations.posts import render_post
from services.discord import Dispatch, render_line
from services.knowledge import Source
from services.llm import Field, Prompt, id_field, section
from services.llm.endpoint import Reply, Request, RequestedCall, Round
from services.llm.recording import render
from services.privacy.forgetting import TeamData, forget_in_all_servers
from services.privacy.recordings import drop_llm_calls, published_in, said_in_recording
from services.privacy.text_match import OwnWords, said_in_archive
from services.privacy.unknown_files import ConfiguredFiles
from services.storage import files, read_records
from services.storage.data_folder import DataFolder
from services.team import archive
from services.team.archive import Pair
from services.telemetry import PartOutcome, current_people, render_part_outcome
from tests.services.conversations.made_drafts import made_draft
from tests.services.privacy.test_forgetting import ADA, BOB, TEAM, forget, pair, post

DOCUMENTED = "A backup is restored by the command restore --all in the folder of the backup."
TAUGHT = "Open the cellar door first and count slowly up to nineteen."
OWN = "my grandmother keeps the second lantern in a crate below the stairs"
ASKED = "how can I restore a backup of my pictures?"


def conversation(*said: str) -> Conversation:
    return Conversation(tuple(Said(Role.USER, text, asked_now=True) for text in said))


def recorded(step: str, prompt: Prompt, reply: str, *people: int, rounds: tuple[Round, ...] = ()) -> str:
    request = Request(
        step, prompt.system, ({"type": "text", "text": prompt.user},), "R", {"title": "R"}, "json_schema", rounds=rounds
    )
    current_people.set({*people})
    try:
        return render(request, Reply(reply, 1, 1, finish_reason="stop"))
    finally:
        current_people.set(None)


def answered(person: int, question: str, *sources: Source, reply: str = "{}") -> str:
    prompt = generate(ConfiguredTasks(), conversation(question), question, sources, max_chars=1000)
    return recorded("generate", prompt, reply, person)


def of_team(*said: tuple[int, str]) -> Source:
    return Source("team:doors.txt", archive.render(pair(*said)))


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(folder: DataFolder, lines: Sequence[str]) -> Path:
    path = folder.llm_recordings / "day.jsonl"
    files.replace(path, "".join(lines).encode())
    return path


def test_what_is_published_is_told_from_what_people_say(tmp_path: Path) -> None:
    entries = [Choice("kb:a.md", DOCUMENTED), Choice("team:doors.txt", TAUGHT)]
    chosen = select(ConfiguredTasks(), ASKED, OWN, entries, 3)
    path = tmp_path / "day.jsonl"
    lines = [
        recorded("select", chosen, "{}", BOB),
        answered(BOB, OWN, Source("kb:b.md", "Elsewhere it is documented otherwise."), of_team((TEAM, TAUGHT))),
    ]
    path.write_text("".join(lines) + '{"step": "gate", "request": "odd"}\n')
    published = "\n".join(published_in(path))
    for text in (DOCUMENTED, "Elsewhere it is documented", chosen.system, "Choose the sources."):
        assert text in published
    for text in (TAUGHT, OWN, ASKED):
        assert text not in published
    earlier = json.loads(lines[0])
    del earlier["format"]
    path.write_text(json.dumps(earlier))
    assert "Choose the sources." not in "\n".join(published_in(path))


def archived(folder: Path, *pairs: Pair) -> OwnWords:
    """Store pairs, and compare Ada's words with them."""
    files.replace(folder / "2026-W05.txt", "".join(map(archive.render, pairs)).encode())
    return OwnWords(ADA, [lambda: said_in_archive(folder)])


def test_a_line_that_others_said_before_in_the_archive_is_not_the_persons(tmp_path: Path) -> None:
    later = pair((ADA, f"{OWN}\nand I saw:\n{TAUGHT}"), (TEAM, f"You wrote: {OWN}"), second=58)
    unknown = "the hinges of the attic window have been oiled"
    words = archived(
        tmp_path,
        pair((BOB, "Which door?"), (TEAM, TAUGHT)),
        replace(later, message_ids=(11, 12)),
        pair((archive.UNKNOWN, unknown), second=59),
    )
    assert words.of([f"{OWN}\nand I saw:\n{TAUGHT}"]) == [f"{OWN}\nand I saw:"]
    assert words.of([unknown]) == [unknown]


def test_who_was_first_is_told_by_messages_not_by_when_they_were_captured(tmp_path: Path) -> None:
    quoted, own = pair((BOB, f"Ada says: {OWN}"), (TEAM, "So it is.")), pair((ADA, OWN), (TEAM, "Well."), second=58)
    words = archived(tmp_path, replace(quoted, message_ids=(21, 22)), replace(own, message_ids=(11, 23)))
    assert words.of([OWN]) == [OWN]


def test_words_of_others_that_are_edited_into_an_older_message_are_not_the_persons(tmp_path: Path) -> None:
    earlier, bobs = pair((ADA, "Hello there"), (TEAM, "Hello.")), pair((BOB, OWN), (TEAM, "Well."), second=58)
    edited = pair((ADA, OWN), (TEAM, "Hello."), second=59)
    words = archived(tmp_path, earlier, replace(bobs, message_ids=(11, 12)), edited)
    assert words.of([OWN]) == [""]


def test_documentation_is_compared_once_with_each_text() -> None:
    read = list[str]()

    def published() -> list[str]:
        read.append("once more")
        return [f"…\n{DOCUMENTED}\n…"]

    words = OwnWords(ADA, published=published)
    for _ in range(2):
        assert words.of([DOCUMENTED, f"{OWN} [image: x]"]) == ["", f"{OWN} [image: x]"]
    assert len(read) == 1


def end(author_id: int, question: str, message_id: int = 7) -> bytes:
    return render_part_outcome(
        PartOutcome(
            at=1_790_000_000.0,
            result=OutcomeKind.SKIPPED,
            channel_id=5,
            place_id=5,
            message_ids=(message_id,),
            author_id=author_id,
            author_type=AuthorType.COMMUNITY_USER,
            question=question,
        )
    )


def keep_end(folder: DataFolder, author_id: int, question: str, message_id: int) -> None:
    files.append(folder.outcomes / "2026-09-21.jsonl", end(author_id, question, message_id))


def keep_post(folder: DataFolder, author_id: int, question: str, message_id: int) -> None:
    files.append(folder.posts, render_post(post(message_id + 1, author_id, question)))


def keep_vote(folder: DataFolder, _: int, question: str, message_id: int) -> None:
    row = {"message_id": str(message_id), "voter": "somebody", "question": question, "vote": "up"}
    files.append(folder.feedback, json.dumps(row).encode() + b"\n")


def keep_draft(folder: DataFolder, author_id: int, question: str, message_id: int) -> None:
    draft = made_draft(message_id, asker_id=author_id, question=question)
    files.replace(folder.drafts / f"{message_id}.json", render_draft(draft))


def keep_recording(folder: DataFolder, author_id: int, question: str, message_id: int) -> None:
    message = {"id": str(message_id), "channel_id": "5", "author": {"id": str(author_id)}, "content": question}
    line = render_line(Dispatch(1_790_000_000.0, "MESSAGE_CREATE", message))
    files.append(folder.root / "recording.jsonl", line.encode())


def questions_in(folder: DataFolder) -> set[str]:
    rows = [row for path in (*folder.outcomes.glob("*.jsonl"), folder.feedback) for row in read_records(path)]
    return {str(row["question"]) for row in rows}


KEPT = [keep_end, keep_post, keep_vote, keep_draft, keep_recording]


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("in_another_server", [False, True])
@pytest.mark.parametrize("bobs_id", [10, 30])
def test_a_line_is_theirs_who_wrote_it_first(
    tmp_path: Path, keep: Callable[[DataFolder, int, str, int], None], bobs_id: int, *, in_another_server: bool
) -> None:
    """Else whoever copies a question and asks to be forgotten would take it from all who asked it before."""
    folder = DataFolder(tmp_path)
    server = DataFolder(tmp_path / "guilds" / "9")
    home = server if in_another_server and keep is not keep_recording else folder  # a recording is of all servers
    keep(home, BOB, OWN, bobs_id)
    keep_end(folder, BOB, f"Is that so?\n{OWN}", 40)
    keep_end(folder, ADA, OWN, 20)
    shared, servers = TeamData(folder, folder.team_raw), [TeamData(server, server.team_raw)]
    forget_in_all_servers(shared, servers, ADA, [OWN], ConfiguredFiles([], [], None, is_running=False))
    told = questions_in(folder) | questions_in(server)
    draft = next(read_drafts(home.drafts), None)
    if bobs_id < 20:
        assert not any("[removed]" in each for each in told)
        assert draft is None or draft.state is DraftState.WAITING
    else:
        assert not any(OWN in each for each in told)
        assert draft is None or draft.state is DraftState.ENDED
    if keep is keep_recording:
        assert (OWN in (folder.root / "recording.jsonl").read_text()) == (bobs_id < 20)


def test_a_vote_keeps_the_question_of_the_asker_whoever_repeated_it(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    keep_post(folder, BOB, "Hello\nit does not work", 9)
    keep_vote(folder, BOB, "Hello\nit does not work", 10)
    keep_end(folder, ADA, "Hello\nit does not work", 20)
    forget(TeamData(folder, folder.team_raw), ADA)
    assert questions_in(folder) == {"Hello\nit does not work"}


@pytest.mark.parametrize(("third", "stays"), [(OWN, True), (f"> {OWN}\nIs that so?", False)])
def test_a_line_that_several_others_wrote_is_nobodys(tmp_path: Path, third: str, *, stays: bool) -> None:
    folder = DataFolder(tmp_path)
    for message_id, author_id, text in ((20, ADA, OWN), (30, BOB, OWN), (40, 313, third)):
        keep_end(folder, author_id, text, message_id)
    forget(TeamData(folder, folder.team_raw), ADA)
    assert any(OWN in each for each in questions_in(folder)) == stays


def test_bots_and_threads_in_a_recording_are_no_second_writer(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    author = {"id": "77", "bot": True}
    for kind, payload in (
        ("MESSAGE_CREATE", {"id": "30", "author": author, "content": OWN}),
        ("THREAD_CREATE", {"id": "31", "type": 11, "owner_id": "77", "name": OWN}),
        ("THREAD_UPDATE", {"id": "19", "type": 11, "owner_id": str(ADA), "name": OWN}),
        ("MESSAGE_UPDATE", {"id": "18", "author": {"id": str(ADA)}, "content": OWN, "edited_timestamp": "2026"}),
        ("MESSAGE_CREATE", {"id": "x", "author": author, "content": OWN}),
    ):
        files.append(path, render_line(Dispatch(1_790_000_000.0, kind, payload)).encode())
    edited = snowflake_at(1_790_000_000.0)
    assert [*said_in_recording(path, ADA)] == [
        (30, archive.UNKNOWN, OWN),
        (31, archive.UNKNOWN, OWN),
        (edited, ADA, OWN),
        (edited, ADA, OWN),
    ]


def test_who_quotes_what_is_published_or_taught_takes_nothing_from_others(tmp_path: Path) -> None:
    """Else anybody could have all recorded exchanges dropped, and everybody's questions removed."""
    folder = DataFolder(tmp_path)
    taught = pair((BOB, "Which door is the one to open?"), (TEAM, TAUGHT))
    files.append(folder.team_raw / "2026-W05.txt", archive.render(taught).encode())
    asked = gate(ConfiguredTasks(), conversation(ASKED))
    described = Prompt(asked.system, section("source", [id_field("kb:a.md"), Field("Text", DOCUMENTED)]))
    sources = Source("kb:a.md", DOCUMENTED), of_team((BOB, "Which door?"), (TEAM, TAUGHT))
    bobs = [
        recorded("gate", asked, json.dumps({"rewrite_query": f"For Bob: {ASKED}"}), BOB),
        answered(BOB, ASKED, *sources, reply=json.dumps({"answer": f"{DOCUMENTED}\n{TAUGHT}"})),
        recorded("summarise", described, "{}"),
        recorded("classify", classify(ConfiguredTasks(), taught, []), "{}"),
    ]
    labelled = [f"Team: {TAUGHT}", f"User: Which door is the one to open? Team: {TAUGHT}"]
    pasted = "\n".join([asked.system, "Decide about the newest messages.", DOCUMENTED, TAUGHT, *labelled])
    adas = recorded("gate", gate(ConfiguredTasks(), conversation(f"Hello!\n{pasted}")), "{}", ADA)
    path, day = written(folder, [*bobs, adas]), folder.outcomes / "2026-09-21.jsonl"
    bobs_end = end(BOB, f"what does this mean?\n{DOCUMENTED}")
    files.append(day, bobs_end + end(ADA, pasted))
    done = forget_in_all_servers(TeamData(folder, folder.team_raw), [], ADA, [], published=lambda: [DOCUMENTED])
    assert path.read_text() == "".join(bobs)
    assert day.read_bytes() == bobs_end
    assert (done.exchanges, done.ends, done.left) == (1, 1, [])


def test_what_others_repeated_of_a_person_goes_line_by_line_and_is_counted(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    reply = json.dumps({"answer": f"As you say:\n{OWN}\nLook there."})
    lines = [
        answered(BOB, f"I was told:\n{OWN}\nIs that so?", reply=reply),
        answered(BOB, ASKED, reply=f"not JSON: {OWN}"),
        answered(BOB, ASKED),
    ]
    path, day = written(folder, lines), folder.outcomes / "2026-09-21.jsonl"
    files.append(day, end(BOB, f"Is that so?\n{OWN}") + end(ADA, OWN))
    done = forget(TeamData(folder, folder.team_raw), ADA)
    first, second, third = kept(path)
    assert OWN not in path.read_text() + day.read_text()
    assert json.loads(first["response"]["text"]) == {"answer": "As you say:\n[removed]\nLook there."}
    assert "User: I was told:\n  [removed]\n  Is that so?\n" in first["request"]["user"][0]["text"]
    assert first["hash"] == json.loads(lines[0])["hash"]
    assert second["response"]["text"] == "[removed]"
    assert third == json.loads(lines[2])
    assert json.loads(day.read_text())["question"] == "Is that so?\n[removed]"
    assert (done.exchanges, done.ends) == (0, 1)
    changed = "2 exchanges with a model and 1 question"
    assert done.left == [f"of others, {changed} repeated lines of theirs, which are [removed] now"]


def test_an_answer_that_was_made_from_a_persons_words_goes_whole(tmp_path: Path) -> None:
    """It may have taken them up in other words."""
    evidence = section("evidence", [Field("Result of answer_from_team_kb", OWN)])
    called = Round((RequestedCall("1", "answer_from_team_kb", "{}"),), (evidence,))
    prompt = gate(ConfiguredTasks(), conversation(ASKED))
    path = tmp_path / "day.jsonl"
    looked_up = recorded("generate", prompt, "{}", BOB, rounds=(called,))
    path.write_text(answered(BOB, ASKED, of_team((ADA, OWN), (TEAM, TAUGHT))) + looked_up)
    assert drop_llm_calls([path], ADA, [OWN]).calls == 2


def test_a_source_that_was_called_by_a_word_of_theirs_has_its_new_name_in_records_of_others(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    reply = json.dumps({"citations": ["team:doors.txt"]})
    path.write_text(answered(BOB, ASKED, of_team((TEAM, TAUGHT)), reply=reply))
    dropped = drop_llm_calls([path], ADA, [OWN], {"team:doors.txt": "team:things.txt"})
    assert (dropped.calls, dropped.redacted) == (0, 1)
    assert "team:doors" not in path.read_text()
    assert json.loads(kept(path)[0]["response"]["text"]) == {"citations": ["team:things.txt"]}
