"""`--eval` as its user types it, without a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from app import main
from benchmarks.evaluation.questions import Question, record
from services.storage.data_folder import lock
from tests.commands.evaluating.conftest import Operator
from tests.commands.evaluating.examples import EXAMPLE, ROOT


def test_the_table_tells_each_question_and_the_figures(operator: Operator) -> None:
    operator.asks("thresholds: {precision: 0.9, recall: 1, silence: 1}\n")
    code, out, err = operator.evaluates()
    assert (code, err) == (0, "")
    assert "| right | How do I install Lanternfish? | kb:install.md | kb:install.md |" in out
    assert "| right | Which port does Lanternfish listen on? | “port 7480” | kb:ports.md |" in out
    assert "| right | Which wine goes with fish? | silence | gate: not answerable: " in out
    assert "3 questions: 3 right." in out
    assert "| precision | answers that are right | 2 of 2 | 1.000 | 0.900 |" in out
    assert "| silence | silent where silence is right | 1 of 1 | 1.000 | 1.000 |" in out
    assert "No model was asked." in out


def test_what_is_wrong_is_told_with_what_was_said_instead(operator: Operator) -> None:
    text = operator.questions.read_text()
    operator.questions.write_text(text.replace("source: install.md", "source: [setup.md, team:setup.txt]"))
    code, out, _ = operator.evaluates()
    assert code == 0, "there are no thresholds"
    assert (
        "| How do I install Lanternfish? | kb:setup.md or team:setup.txt | kb:install.md | Install Lanternfish" in out
    )
    assert "## Expected, and in no index\n\n| source |\n| --- |\n| kb:setup.md |\n| team:setup.txt |" in out
    assert "3 questions: 2 right, 1 wrong." in out


def test_below_a_threshold_is_exit_code_1(operator: Operator) -> None:
    text = operator.questions.read_text()
    operator.questions.write_text(f"thresholds: {{recall: 0.6, precision: 0.5}}{text.replace('port 7480', 'port 80')}")
    for more in ((), ("--json",)):
        code, out, err = operator.evaluates(*more)
        assert code == 1
        assert err == f"app.py: below the thresholds of {operator.questions}: recall 0.500\n"
        assert out
    assert operator.rows()[1]["below"] == ["recall"]


@pytest.mark.parametrize(("mode", "grade"), [("all", "missed"), ("mention", "pointed")])
def test_it_is_asked_as_people_ask_this_bot(operator: Operator, mode: str, grade: str) -> None:
    """In a channel, where nobody has mentioned it; unless it answers only who does."""
    operator.configure(discord={"reply_mode": mode})
    operator.questions.write_text("questions:\n  - question: can setup be undone?\n    source: install.md\n")
    [row], _ = operator.rows()
    assert (row["addressed"], row["grade"]) == (mode == "mention", grade)


def test_json_is_a_line_a_question_and_a_summary(operator: Operator) -> None:
    rows, summary = operator.rows()
    assert [row["question"] for row in rows] == [
        "How do I install Lanternfish?",
        "Which port does Lanternfish listen on?",
        "Which wine goes with fish?",
    ]
    assert [(row["grade"], row["outcome"], row["level"], row["step"]) for row in rows] == [
        ("right", "replied", "answer", None),
        ("right", "replied", "answer", None),
        ("right", "skipped", None, "gate"),
    ]
    assert [row["expected"] for row in rows] == [
        {"source": ["kb:install.md"]},
        {"words": ["port 7480"]},
        {"silence": True},
    ]
    assert "lanternfish setup" in rows[0]["reply_text"]
    assert summary == {
        "questions": 3,
        "right": 3,
        "pointed": 0,
        "missed": 0,
        "wrong": 0,
        "failed": 0,
        "answerable": 2,
        "answered": 2,
        "right_answers": 2,
        "silence_kept": 1,
        "precision": 1.0,
        "recall": 1.0,
        "shown": 1.0,
        "silence": 1.0,
        "below": [],
        "llm_calls": 0,
        "tokens": [0, 0],
        "cost": None,
        "todo": 0,
        "not_indexed": [],
    }


def test_two_runs_are_the_same_bytes_and_write_nothing_to_the_data_folder(operator: Operator) -> None:
    """Pitfall 50. Also while the bot runs, and whatever the hashes are."""
    before = operator.files()
    with lock(operator.folder / "data", "app.py"):
        first = operator.evaluates("--json")
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    command = [sys.executable, "app.py", *operator.arguments("--json")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == first
    assert {name: data for name, data in operator.files().items() if name != ".lock"} == before


def test_a_saved_run_is_a_baseline(operator: Operator) -> None:
    saved = operator.folder / "runs" / "one.jsonl"
    code, out, _ = operator.evaluates("--save", saved)
    assert (code, "3 questions: 3 right." in out) == (0, True)
    assert saved.read_text() == operator.evaluates("--json")[1]
    index = operator.folder / "data" / "knowledge-base" / "index.txt"
    index.write_text(index.read_text().partition("\n\n")[0])
    text = operator.questions.read_text()
    operator.questions.write_text(f"{text}  - question: Is it new?\n    silence: true\n")
    _, out, _ = operator.evaluates("--baseline", saved)
    assert "0 better, 1 worse, 1 new; of 3 questions that both runs asked:" in out
    assert "| recall | 1.000 | 0.500 |" in out
    assert "### Worse" in out
    assert "| Which port does Lanternfish listen on? | right | missed |" in out
    _, summary = operator.rows("--baseline", saved)
    change = {"question": "Which port does Lanternfish listen on?", "addressed": False}
    assert summary["baseline"] == {
        "better": [],
        "worse": [{**change, "baseline": "right", "now": "missed"}],
        "new": 1,
        "gone": 0,
    }


def test_a_run_that_was_killed_at_its_very_end_is_finished(operator: Operator) -> None:
    saved = operator.folder / "one.jsonl"
    assert operator.evaluates("--save", saved)[0] == 0
    whole = saved.read_text()
    saved.write_text("".join(saved.read_text().splitlines(keepends=True)[2::-1]))
    assert "3 questions had been asked by an earlier run." in operator.evaluates("--save", saved)[1]
    assert saved.read_text() == whole


def test_on_a_terminal_there_are_tables(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _, out, _ = operator.evaluates()
    assert "|" not in out
    assert "3 questions: 3 right." in out


def test_a_run_that_is_kept_is_never_overwritten(operator: Operator) -> None:
    saved = operator.folder / "one.jsonl"
    assert operator.evaluates("--save", saved)[0] == 0
    kept = saved.read_bytes()
    code, out, err = operator.evaluates("--save", saved)
    assert (code, out) == (2, "")
    assert err == f"app.py: --save: {saved} holds a finished run; name another file, or remove it\n"
    assert operator.evaluates("--save", operator.config)[0] == 2
    assert saved.read_bytes() == kept


def test_a_run_that_cannot_be_kept_is_told_before_anything_is_asked(operator: Operator) -> None:
    (operator.folder / "file").touch()
    code, out, err = operator.evaluates("--save", operator.folder / "file" / "one.jsonl")
    assert (code, out) == (2, "")
    assert err.startswith(f"app.py: --save: {operator.folder}/file/one.jsonl: File exists")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--eval"], "--eval needs a file of questions: --eval questions.yaml; --eval --from-votes makes one"),
        (["--eval", "q", "--from-votes"], "--eval: with --from-votes no file is read; write --eval --from-votes FILE"),
        (["--eval", "q", "--since", "7d"], "--since: with --eval works only together with --from-votes; leave it out"),
        (["--eval", "--from-votes", "--json"], "--json works only with --eval FILE; leave it out"),
        (["--check", "--save", "x"], "--save works only with --eval; leave it out"),
        (["--check", "--baseline", "x"], "--baseline works only with --eval; leave it out"),
        (["--from-votes"], "--from-votes works only with --eval; leave it out"),
        (
            ["--eval", "nowhere.yaml"],
            "nowhere.yaml: there is no such file; create it, go to its folder, or name another with --eval FILE",
        ),
        (["--eval", "q", "--llm-record", "x"], "--llm-record: there is no LLM to record; set ai_response.llm"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    operator: Operator, arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(operator.config), *arguments]) == 2
    assert capsys.readouterr() == ("", f"app.py: {line}\n")


def test_a_baseline_that_is_none_is_named(operator: Operator) -> None:
    code, _, err = operator.evaluates("--baseline", operator.folder / "none.jsonl")
    assert (code, "--baseline: " in err, "cannot be read" in err) == (2, True, True)


def test_without_an_index_there_is_nothing_to_ask(operator: Operator) -> None:
    index = operator.folder / "data" / "knowledge-base" / "index.txt"
    index.write_text("")
    code, out, err = operator.evaluates()
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        f"app.py: kb.index_path: {index} holds nothing to answer from; app.py --init-kb builds it"
    )


def test_questions_that_are_not_decided_are_counted(operator: Operator) -> None:
    text = operator.questions.read_text()
    operator.questions.write_text(f"{text}  - question: And now?\n    todo: true\n")
    assert "3 questions: 3 right. 1 more to be decided." in operator.evaluates()[1]
    assert operator.rows()[1]["todo"] == 1


def test_what_is_asked_and_answered_cannot_move_the_terminal(operator: Operator) -> None:
    """Neither escapes nor markup take effect."""
    operator.questions.write_text('questions:\n  - question: "a \\e[2J|[b](http://x) How?"\n    silence: true\n')
    _, out, _ = operator.evaluates()
    assert "\x1b" not in out
    assert r"a \[2J\|\[b\](http://x) How?" in out


@pytest.mark.slow
def test_the_example_meets_its_thresholds() -> None:
    command = [sys.executable, "app.py", "--config", "examples/demo.yaml", "--eval", str(EXAMPLE), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["below"] == []


@pytest.mark.parametrize("addressed", [False, True])
def test_it_is_answered_as_the_bot_answers_in_a_channel(
    operator: Operator, capsys: pytest.CaptureFixture[str], *, addressed: bool
) -> None:
    texts = [
        "How do I install Lanternfish?",
        "can setup be undone?",
        "lanternfish port",
        "Which wine goes with fish?",
        "anyone up?",
        "Which port does Lanternfish listen on?",
    ]
    operator.questions.write_text(
        yaml.safe_dump({"questions": [{"question": text, "addressed": addressed, "silence": True} for text in texts]})
    )
    rows, _ = operator.rows()
    recording = operator.folder / "chat.jsonl"
    asked = [Question(text, (text,), (), ()) for text in texts]
    ids = record(asked, recording, addressed=addressed)
    assert main(["--config", str(operator.config), "--replay", str(recording), "--json"]) == 0
    *lines, _ = map(json.loads, capsys.readouterr().out.splitlines())
    fields = ("outcome", "reason", "level", "reply_text", "sources")
    in_channel = {ids[line["message_ids"][0]]: [line[field] for field in fields] for line in lines}
    assert {row["question"]: [row[field] for field in fields] for row in rows} == in_channel
    assert {row["level"] for row in rows} == ({"answer", "point", None} if addressed else {"answer", None})
