"""The record of how parts ended: what it holds, and that damage costs one line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind, Reason
from services.telemetry import PartOutcome, parse_part_outcome, part_outcome_of, render_part_outcome

ASKER = Author(311, "ada")


def outcome(result: OutcomeKind = OutcomeKind.REPLIED, reason: str | None = None, **fields: object) -> Outcome:
    messages = tuple(Message(number, 7, ASKER, text, 90.0, 1) for number, text in ((41, "How do I"), (42, "install?")))
    part = Part(3, messages, AuthorType.COMMUNITY_USER, Place(7, PlaceKind.CHANNEL, "help", 1), 100.0)
    asked: dict[str, object] = {"gate": {"question": True, "answerable": True, "reason": "asks how"}}
    return replace(Outcome(part, 104.5, result, reason, decisions=asked), **fields)


def plain(text: str) -> str:
    return text


def test_of_a_very_long_question_the_beginning_is_recorded_without_its_secrets() -> None:
    asked = outcome()
    long = replace(asked.part.last, text="word " * 2_000 + "the end")
    entry = part_outcome_of(
        replace(asked, part=replace(asked.part, messages=(long,))), lambda text: text.replace("word", "*")
    )
    assert entry.question == ("* " * 2_000).strip()


def test_an_outcome_is_read_as_it_was_written() -> None:
    entry = part_outcome_of(
        outcome(
            level="answer",
            sources=("kb:setup.md",),
            reply_place_id=42,
            llm_calls=2,
            tokens={("gate", "prompt"): 400, ("gate", "completion"): 30, ("select", "prompt"): 5},
        ),
        plain,
    )
    assert entry.tokens == {"gate": (400, 30), "select": (5, 0)}
    assert (entry.question, entry.seconds) == ("How do I\ninstall?", 4.5)
    kept = replace(entry, path={"gate": {"question": True, "answerable": True}})
    assert parse_part_outcome(render_part_outcome(entry)) == kept


def test_a_reply_stays_in_memory() -> None:
    """It may quote a file that is deleted with its thread."""
    entry = part_outcome_of(outcome(reply_text="line 3 of secret.log says so"), plain)
    assert entry.reply == "line 3 of secret.log says so"
    assert b"secret.log" not in render_part_outcome(entry)


def test_a_file_is_not_named() -> None:
    """It is deleted with its thread, and its name may be of somebody who is forgotten."""
    cited = ("kb:setup.md", "diary-of-berta.log:2", "kb:diary-of-berta.log:3-4", "notes.yaml:port")
    entry = part_outcome_of(
        outcome(sources=cited, decisions={"generate": {"answer": True, "citations": list(cited)}}), plain
    )
    assert entry.sources == cited
    line = render_part_outcome(entry)
    assert b"berta" not in line
    assert b"notes" not in line
    assert json.loads(line)["sources"] == ["kb:setup.md", "file"]
    assert json.loads(line)["path"]["generate"]["citations"] == ["kb:setup.md", "file"]


def test_the_words_of_a_model_are_not_written() -> None:
    path = {
        "gate": {"question": True, "reason": "Ada says so"},
        "files": ["salaries.csv"],
        "tools": ["query_file"],
        "verify": {"good_enough": False, "issues": ["line 3"]},
    }
    line = json.loads(render_part_outcome(part_outcome_of(outcome(decisions=path), plain)))
    assert line["path"] == {"gate": {"question": True}, "verify": {"good_enough": False, "issues": 1}}


def test_secrets_are_taken_out_of_a_question() -> None:
    assert (
        part_outcome_of(outcome(), lambda text: text.replace("install", "[secret]")).question == "How do I\n[secret]?"
    )


@pytest.mark.parametrize(
    ("result", "reason", "question", "kept"),
    [
        (OutcomeKind.SKIPPED, Reason.NOT_ANSWERABLE, False, False),
        (OutcomeKind.SKIPPED, Reason.NOT_ANSWERABLE, True, True),
        (OutcomeKind.SKIPPED, Reason.NO_SOURCES, True, True),
        (OutcomeKind.SKIPPED, Reason.BUDGET, None, True),
        (OutcomeKind.SKIPPED, Reason.TEAM_IS_ANSWERING, None, False),
        (OutcomeKind.FAILED, "Unavailable at gate", None, False),
        (OutcomeKind.REPLIED, None, None, True),
    ],
)
def test_only_what_was_asked_is_kept_in_words(
    result: OutcomeKind, reason: str | None, *, question: bool | None, kept: bool
) -> None:
    gate = {} if question is None else {"gate": {"question": question}}
    assert bool(part_outcome_of(outcome(result, reason, decisions=gate), plain).question) is kept


def test_what_the_team_says_is_not_kept_in_words() -> None:
    said = outcome(OutcomeKind.CAPTURED, qa_id="2026-W48-1")
    entry = part_outcome_of(replace(said, part=replace(said.part, author_type=AuthorType.TEAM_MEMBER)), plain)
    assert (entry.question, entry.qa_id) == ("", "2026-W48-1")


def test_a_line_of_a_later_program_is_read() -> None:
    line = json.loads(render_part_outcome(part_outcome_of(outcome(), plain)))
    read = parse_part_outcome(json.dumps({**line, "mood": "good"}).encode())
    assert read == parse_part_outcome(json.dumps(line).encode()) is not None


DAMAGED = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
LINE = json.loads(
    render_part_outcome(part_outcome_of(outcome(tokens={("gate", "prompt"): 4}, sources=("kb:a",)), plain))
)


@given(name=st.sampled_from(sorted(LINE)), value=DAMAGED)
def test_a_damaged_line_is_none_or_an_entry(name: str, value: object) -> None:
    read = parse_part_outcome(json.dumps({**LINE, name: value}).encode("utf-8", "surrogatepass"))
    assert read is None or isinstance(read, PartOutcome)


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b"nonsense", b"\xff", b'{"at": 1e999}', b"[" * 100_000])
def test_what_is_no_line_of_the_record_is_none(line: bytes) -> None:
    assert parse_part_outcome(line) is None
