"""What an operator writes and keeps for `--eval`: questions, and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assembly import Unusable
from commands.evaluating.questions import read_questions
from commands.evaluating.runs import measure, read_run, render_result
from settings import SettingsError
from tests.commands.evaluating.examples import EXAMPLE, SILENCE, answer, question
from tests.fuzzing.mutations import THOROUGHLY, damaged, line_files, one_line

ASKED = question("How?", sources=("kb:a",))
LINES = [json.loads(render_result(ASKED, got, "k")) for got in (SILENCE, answer("kb:a", tokens={"gate": (5, 6)}))]


@THOROUGHLY
@given(damaged(EXAMPLE.read_bytes()))
@example(b"questions: &a [*a]")
@example(b"questions: [{question: a, silence: true, <<: {note: b}}]")
def test_a_file_of_questions_is_read_or_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "questions.yaml"
    path.write_bytes(content)
    try:
        found = read_questions(path)
    except SettingsError as error:
        one_line(error)
        return
    assert measure([(each, SILENCE) for each in found.questions]).questions == len(found.questions) > 0
    for each in found.questions:
        render_result(each, SILENCE, "k").encode()


@THOROUGHLY
@given(line_files(*LINES), st.booleans())
def test_a_run_is_read_or_refused_in_one_line(tmp_path: Path, content: bytes, torn: bool) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    try:
        found = read_run(path, "--save", torn=torn)
    except Unusable as error:
        one_line(error)
        return
    for got in found.results.values():
        render_result(ASKED, got, "k").encode()


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_a_run_that_is_cut_off_in_a_line_has_the_lines_before(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run.jsonl"
    first = render_result(ASKED, SILENCE, "k")
    path.write_text(f"{first}\n{render_result(question('And?', silent=True), SILENCE, 'k')[:cut]}")
    assert read_run(path, "--save", torn=True).results == {ASKED.key: SILENCE}
    with pytest.raises(Unusable):
        read_run(path, "--baseline")
