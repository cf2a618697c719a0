"""The file of questions: what may stand in it, and the one line that tells what may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.evaluating.questions import EvalQuestion, QuestionFile, Share, read_questions
from settings import SettingsError
from tests.commands.evaluating.examples import EXAMPLE, ROOT


def read(folder: Path, text: str, *, addressed: bool = False) -> QuestionFile:
    path = folder / "q.yaml"
    path.write_text(text)
    return read_questions(path, addressed=addressed)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_all_that_may_be_said(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
thresholds: {precision: 0.9, silence: 1}
questions:
  - question: " How do I install it? "
    source: [install.md, team:setup.txt]
    words: [8443, yes, 1.10]
    addressed: true
    note: asked every week
  - {question: 'Which pizza?', silence: True}
  - {question: 'And now?', todo: true}
""",
    )
    install, pizza = found.questions
    assert install == EvalQuestion(
        text="How do I install it?",
        addressed=True,
        sources=("kb:install.md", "team:setup.txt"),
        words=("8443", "yes", "1.10"),  # as they are written
        where=f"{tmp_path}/q.yaml:4",
    )
    assert (pizza.silent, pizza.addressed, pizza.where) == (True, False, f"{tmp_path}/q.yaml:9")
    assert [each.text for each in found.todo] == ["And now?"]
    assert found.thresholds == {Share.PRECISION: 0.9, Share.SILENCE: 1.0}


@pytest.mark.parametrize(
    ("first", "own", "given", "is_addressed"),
    [
        ("", "", False, False),
        ("", "", True, True),
        ("addressed: false\n", "", True, False),
        ("addressed: true\n", ", addressed: false", False, False),
    ],
)
def test_the_nearest_word_says_to_whom_a_question_is_put(
    tmp_path: Path, first: str, own: str, given: bool, is_addressed: bool
) -> None:
    text = f"{first}questions:\n  - {{question: 'How?', silence: true{own}}}\n"
    assert [each.addressed for each in read(tmp_path, text, addressed=given).questions] == [is_addressed]


def test_the_same_may_be_asked_in_both_ways(tmp_path: Path) -> None:
    text = (
        "questions:\n  - {question: 'How?', silence: true}\n  - {question: 'How?', source: a.md, addressed: true}\n"
        "  - {question: 'And?', silence: true}\n"
    )
    assert len(read(tmp_path, text).questions) == 3
    again = refused(tmp_path, f"{text}  - {{question: 'And?', source: a.md}}\n")
    assert again == "q.yaml:5: this is asked already in q.yaml:4; keep one of the two"


ONE = "questions:\n  - question: How?\n    silence: true\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "q.yaml: there are no questions in it; write a list below `questions:`"),
        ("questions: []\n", "q.yaml: there are no questions in it; write a list below `questions:`"),
        ("- a\n", "q.yaml: the top level must be a mapping of sections, such as `questions:`"),
        ("questions: How?\n", "q.yaml:1: questions must be a list, each beginning with `- question:`"),
        (f"{ONE}question: x\n", "q.yaml:4: question is not known here; known are questions, thresholds, addressed"),
        (
            f"{ONE}    sources: x\n",
            "q.yaml:4: sources is not known here; known are question, source, words, silence, addressed, todo, note",
        ),
        (
            f"{ONE}  - How?\n",
            "q.yaml:4: this must be a mapping: `question: …`, and below it what is right, such as `source: a.md`",
        ),
        (f"{ONE}  - silence: true\n", "q.yaml:4: question must be what somebody asks, as text"),
        (f"{ONE}  - question: [a]\n", "q.yaml:4: question must be what somebody asks, as text"),
        (f"{ONE}  - question: ''\n    todo: true\n", "q.yaml:4: question must be what somebody asks, as text"),
        (f"{ONE}  - question: Why?\n", "q.yaml:4: it is not said what is right; add source, words or `silence: true`"),
        (f"{ONE}    source: a.md\n", "q.yaml:3: silence goes with neither source nor words; keep one of them"),
        (f"{ONE}    words: [a, '']\n", "q.yaml:4: words must be text, or a list of texts"),
        (f"{ONE}    words: []\n", "q.yaml:4: words must be text, or a list of texts"),
        (f"{ONE}    source:\n      a: b\n", "q.yaml:4: source must be text, or a list of texts"),
        (f"{ONE}    addressed: maybe\n", "q.yaml:4: addressed must be true or false"),
        (f"{ONE}    todo: [true]\n", "q.yaml:4: todo must be true or false"),
        (f"{ONE}    note: {{a: b}}\n", "q.yaml:4: note must be text"),
        (f"{ONE}thresholds: 0.9\n", "q.yaml:4: thresholds must be a mapping, such as {precision: 0.9, recall: 0.6}"),
        (
            f"{ONE}thresholds:\n  recal: 0.9\n",
            "q.yaml:5: recal is not known here; known are precision, recall, shown, silence",
        ),
        *(
            (
                f"{ONE}thresholds:\n  recall: {share}\n",
                "q.yaml:5: thresholds.recall must be a number from 0 to 1, such as 0.9",
            )
            for share in ("90", "-0.1", "nan", "inf", "high", "[1]", "90%")
        ),
        (
            f"{ONE}    silence: true\n",
            "q.yaml:4: questions.0.silence stands here again, after line 3; keep one of the two",
        ),
        (
            "questions:\n  - {question: 'How?', todo: true}\n",
            "q.yaml: each question is still `todo`; say of one at least what is right",
        ),
    ],
)
def test_what_cannot_be_is_one_line_with_file_and_line(tmp_path: Path, text: str, line: str) -> None:
    assert refused(tmp_path, text) == line


def test_what_is_no_yaml_is_told_where(tmp_path: Path) -> None:
    assert refused(tmp_path, "questions:\n  - {question: How?\n").startswith("q.yaml:2:19: not valid YAML")
    with pytest.raises(
        SettingsError, match="there is no such file; create it, go to its folder, or name another with --eval FILE"
    ):
        read_questions(tmp_path / "none.yaml")


def test_half_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    [question] = read(tmp_path, 'questions:\n  - {question: "How \\ud83d?", words: "\\ude00"}\n').questions
    assert (question.text, question.words) == ("How ??", ("?",))


def test_the_example_can_be_read() -> None:
    assert len(read_questions(EXAMPLE).questions) == 12


def test_so_can_what_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    found = read(tmp_path, page.partition("```yaml\n")[2].partition("```")[0])
    assert (len(found.questions), len(found.todo), len(found.thresholds)) == (3, 1, 2)
