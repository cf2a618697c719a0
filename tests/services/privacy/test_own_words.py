"""Which words count as a person's where others may have written them, and what becomes of records of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.conversations import Conversation, Role
from model.conversations import Turn as Said
from model.messages import AuthorType
from model.outcomes import OutcomeKind
from services.assistant.prompts import Choice, ConfiguredTasks, classify, gate, generate, select
from services.knowledge import Source
from services.llm import Field, Prompt, id_field, section
from services.llm.endpoint import Reply, Request, RequestedCall, Round
from services.llm.recording import render
from services.privacy.forgetting import TeamData, forget_in_all_servers
from services.privacy.recordings import drop_llm_calls, published_in
from services.privacy.text_match import OwnWords
from services.storage import files
from services.storage.data_folder import DataFolder
from services.team import archive
from services.telemetry import PartOutcome, current_people, render_part_outcome
from tests.services.privacy.test_forgetting import ADA, BOB, TEAM, forget, pair

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


def test_a_line_that_others_said_before_in_the_archive_is_not_the_persons(tmp_path: Path) -> None:
    pairs = [
        pair((BOB, "Which door?"), (TEAM, TAUGHT)),
        pair((ADA, f"{OWN}\nand I saw:\n{TAUGHT}"), (TEAM, f"You wrote: {OWN}"), second=58),
        pair((archive.UNKNOWN, "the hinges of the attic window have been oiled"), second=59),
    ]
    files.replace(tmp_path / "2026-W05.txt", "".join(map(archive.render, pairs)).encode())
    words = OwnWords(ADA, [tmp_path])
    assert words.of([f"{OWN}\nand I saw:\n{TAUGHT}"]) == [f"{OWN}\nand I saw:"]
    unknown = "the hinges of the attic window have been oiled"
    assert words.of([unknown]) == [unknown]


def test_documentation_is_compared_once_with_each_text() -> None:
    read = list[str]()

    def published() -> list[str]:
        read.append("once more")
        return [f"…\n{DOCUMENTED}\n…"]

    words = OwnWords(ADA, published=published)
    for _ in range(2):
        assert words.of([DOCUMENTED, f"{OWN} [image: x]"]) == ["", f"{OWN} [image: x]"]
    assert len(read) == 1


def end(author_id: int, question: str) -> bytes:
    return render_part_outcome(
        PartOutcome(
            at=1_790_000_000.0,
            result=OutcomeKind.SKIPPED,
            channel_id=5,
            place_id=5,
            message_ids=(7,),
            author_id=author_id,
            author_type=AuthorType.COMMUNITY_USER,
            question=question,
        )
    )


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
