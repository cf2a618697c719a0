"""How replies are judged, and how weights are fitted: the arithmetic of `make eval-answers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.evaluation import answers, data, fitting, questions
from benchmarks.evaluation.judging import Counts, judged
from benchmarks.evaluation.questions import Question
from benchmarks.evaluation.signals import About, Row
from model.events import Posted
from services.discord.recordings import read
from services.discord.wire import Decoder

KNOWN = Question("a", ("How do I", "install it?"), ("install.md", "docker.md"), ("apt  install",))
UNKNOWN = Question("b", ("Who are you?",), (), ())
ASKED = {"1": "a", "2": "a", "3": "b"}


def reply(*message_ids: str, sources: list[str], text: str = "", level: str = "answer") -> dict[str, Any]:
    return {
        "outcome": "replied",
        "level": level,
        "message_ids": list(message_ids),
        "sources": sources,
        "reply_text": text,
    }


def test_a_reply_is_right_by_its_page_and_by_its_words() -> None:
    page = reply("1", "2", sources=["kb:other.md", "kb:docker.md"])
    assert judged([KNOWN], ASKED, [page], may_point=False) == Counts(1, 0, 1, 1, 0)
    words = reply("2", sources=["kb:other.md"], text="Use `APT\ninstall`.")
    assert judged([KNOWN], ASKED, [words], may_point=False) == Counts(1, 0, 1, 0, 1)
    assert judged([KNOWN], ASKED, [words, page], may_point=False) == Counts(1, 0, 1, 0, 1), "the first reply counts"


def test_letter_case_counts_in_no_language() -> None:
    street = Question("a", ("Where is it?",), ("way.md",), ("in der Straße",))
    shouted = reply("1", sources=["kb:way.md"], text="IN DER STRASSE")
    assert judged([street], ASKED, [shouted], may_point=False) == Counts(1, 0, 1, 1, 1)


def test_silence_is_right_where_nothing_answers() -> None:
    skipped = {"outcome": "skipped", "message_ids": ["3"]}
    assert judged([UNKNOWN], ASKED, [skipped], may_point=False) == Counts(0, 1)
    pointed = reply("3", sources=["kb:a.md"], level="point")
    assert judged([UNKNOWN], ASKED, [pointed], may_point=True) == Counts(0, 1, 1)
    assert judged([UNKNOWN], ASKED, [pointed], may_point=False) == Counts(0, 1, 1, false_answers=1)
    stated = reply("3", sources=["kb:a.md"])
    assert judged([UNKNOWN], ASKED, [stated], may_point=True) == Counts(0, 1, 1, false_answers=1)


def test_shares_are_of_all_that_could_be_right() -> None:
    counts = Counts(3, 1, 3, 2, 1, 1) + Counts(1, 0)
    assert (counts.page_share, counts.words_share, counts.good_replies) == (2 / 4, 1 / 4, pytest.approx(2 / 3))


@pytest.mark.parametrize("addressed", [True, False])
def test_questions_are_asked_as_a_gateway_would_tell(tmp_path: Path, *, addressed: bool) -> None:
    ids = questions.record([KNOWN, UNKNOWN], tmp_path / "chat.jsonl", addressed=addressed)
    decoder = Decoder()
    events = [event for dispatch in read(tmp_path / "chat.jsonl") for event in decoder.decode(dispatch)]
    said = [event.message for event in events if isinstance(event, Posted)]
    assert [ids[str(message.id)] for message in said] == ["a", "a", "b"]
    assert [message.author.id for message in said[:2]] == [said[0].author.id] * 2 != [said[2].author.id] * 2
    mentioned = [int(questions.BOT) in dict(message.mentions) for message in said]
    assert mentioned == ([True, False, True] if addressed else [False] * 3)


def row(project: str, about: About, cosine: float, *, right: bool) -> Row:
    signals = dict.fromkeys(fitting.NAMES["meaning"], 1.0)
    return Row(project, "meaning", about, "q", right, False, signals | {"best_cosine": cosine, "mean_cosine": None})


def rows() -> list[Row]:
    places = np.linspace(0, 1, 40)
    return [
        row(project, About.OWN if at > 0.5 else About.SILENT, float(at), right=bool(at > 0.5))
        for project in ("one", "two")
        for at in places
    ]


def test_weights_tell_right_from_wrong() -> None:
    weights = fitting.fit(rows(), ("best_cosine", "size"))
    sure = weights.probability(np.array([[0.9, 1.0], [0.1, 1.0]]))
    assert sure[0] > 0.9
    assert sure[1] < 0.1
    assert weights.each[1] == pytest.approx(0), "what is always the same tells nothing"


def test_the_fit_is_printed_with_the_figures_of_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "signals.jsonl"
    file.write_text("".join(json.dumps(each._asdict()) + "\n" for each in rows()))
    assert answers.main(["--fit", str(file)]) == 0
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("by meaning: best_cosine ")
    assert "right page shown 0.9" in second or "right page shown 1.0" in second
    assert last == "by words: no row with a right page"


def test_without_documents_the_suite_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(data.DOCUMENTS, raising=False)
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert answers.main([]) == 0
    assert "no questions with documents" in capsys.readouterr().out
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "questions.jsonl").touch()
    assert answers.main([]) == 0
    assert "tool: no documents" in capsys.readouterr().out
