"""A run as lines: written and read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembly import Unusable
from commands.evaluating.questions import EvalQuestion
from commands.evaluating.runs import (
    EvalRun,
    QuestionResult,
    SavedRun,
    expected_text,
    read_run,
    read_unfinished,
    render_result,
    result_text,
)
from model.outcomes import OutcomeKind
from reporting.cost import Price
from tests.commands.evaluating.examples import FAILURE, SILENCE, answer, question
from tests.services.quickly import QUICKLY

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNT = st.integers(0, 10**9)
GOT = st.builds(
    QuestionResult,
    outcome=st.sampled_from(OutcomeKind),
    level=st.none() | st.sampled_from(["answer", "point"]),
    reason=st.none() | TEXT,
    step=st.none() | TEXT,
    why=TEXT,
    sources=st.lists(TEXT, max_size=3).map(tuple),
    reply=TEXT,
    llm_calls=COUNT,
    tokens=st.dictionaries(TEXT, st.tuples(COUNT, COUNT), max_size=3),
)


@QUICKLY
@given(st.lists(st.tuples(TEXT, st.booleans(), GOT), max_size=4, unique_by=lambda each: each[:2]))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, run: list[tuple[str, bool, QuestionResult]]
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    asked = [(EvalQuestion(text=text, addressed=addressed, silent=True), got) for text, addressed, got in run]
    lines = [render_result(each, got, "k") for each, got in asked]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    got_by_key = {each.key: got for each, got in asked}
    assert read_run(path, "--baseline") == SavedRun(got_by_key, dict.fromkeys(got_by_key, "k"))
    path.write_text(path.read_text(encoding="utf-8") + '{"summary": {}}', encoding="utf-8")
    assert read_run(path, "--baseline").finished


def test_half_a_surrogate_pair_of_a_model_can_be_written() -> None:
    assert "So ?" in render_result(question(silent=True), answer(reply="So \ud83d"), "k")


@pytest.mark.parametrize("line", ["{", "[]", "3", '{"question": "How?"}', '{"a": "b"}', "[" * 100_000, '{"at": 1e400}'])
def test_what_is_no_run_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(f"{render_result(question(silent=True), SILENCE, 'k')}\n{line}\n")
    with pytest.raises(Unusable) as caught:
        read_run(path, "--baseline")
    assert str(caught.value) == f"--baseline: {path}:2: this is no line of a run; name a file of --save"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"--save: .* cannot be read"):
        read_run(tmp_path, "--save")
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(Unusable, match=r"--save: .*x is no run"):
        read_run(tmp_path / "x", "--save")


def test_a_run_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    """Also in the midst of a line. What failed is asked again, and so is what the knowledge has changed for."""
    path, price = tmp_path / "run.jsonl", Price(1.0, 0.0)
    one, other, third, fourth = (question(text, sources=("kb:a",)) for text in ("one", "other", "third", "fourth"))
    first = EvalRun([one, other, third, fourth], price, path, key="k")
    first.resume(read_unfinished(path))
    first.add(other, answer("kb:a", llm_calls=2, tokens={"gate": (1_000_000, 5)}))
    first.add(one, SILENCE)
    first.add(third, FAILURE)
    with path.open("a") as file:
        file.write('{"question": "fou')
    again = EvalRun([one, other, third, fourth], price, path, key="k")
    again.resume(read_unfinished(path))
    assert ([each.text for each in again.left], again.resumed) == (["third", "fourth"], 2)
    assert str(again.count) == "2 of 4 questions, 1,000,005 tokens, cost 1.0000"
    again.add(fourth, SILENCE)
    again.add(third, SILENCE)
    again.finish('{"summary": {}}')
    assert [json.loads(line).get("question") for line in path.read_text().splitlines()] == [
        "one",
        "other",
        "third",
        "fourth",
        None,
    ]
    with pytest.raises(Unusable, match="holds a finished run"):
        read_unfinished(path)
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    changed = EvalRun([one], price, path, key="other knowledge")
    changed.resume(read_unfinished(path))
    assert changed.left == [one]


def test_a_run_in_which_something_failed_is_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run = EvalRun([question(silent=True)], None, path, key="k")
    run.add(question(silent=True), FAILURE)
    run.finish('{"summary": {}}')
    assert not read_unfinished(path).finished
    assert read_unfinished(tmp_path / "none") == read_unfinished(None) == SavedRun()


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (answer("kb:a", "kb:b"), "kb:a, kb:b"),
        (answer(), "no source"),
        (answer("kb:a", level="point"), "pointed to kb:a"),
        (QuestionResult(outcome=OutcomeKind.REPLIED, sources=("kb:a",), why="sign: signed"), "kb:a; sign: signed"),
        (SILENCE, "select: no sources"),
        (FAILURE, "Unavailable at gate"),
        (
            QuestionResult(outcome=OutcomeKind.SKIPPED, step="gate", reason="not answerable", why="No."),
            "gate: not answerable: No.",
        ),
        (QuestionResult(outcome=OutcomeKind.CANCELLED), "cancelled"),
    ],
)
def test_it_is_told_what_became_of_a_question(got: QuestionResult, said: str) -> None:
    assert result_text(got) == said


def test_it_is_told_what_is_expected() -> None:
    assert expected_text(question(silent=True)) == "silence"
    assert expected_text(question(sources=("kb:a", "kb:b"), words=("x", "y"))) == "kb:a or kb:b with “x” or “y”"
    assert expected_text(question(words=("x",))) == "“x”"
