"""`--eval --from-votes`: what people voted becomes a file of questions."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import main
from clock import rfc3339
from commands.evaluating.questions import read_questions
from services.conversations.posts import Post, render_post
from services.telemetry import render_part_outcome
from tests.reporting.asked import asked

AT = 1_700_000_000.0
ADA, SHY, GONE = 311, 312, 313


class Bot:
    """A data folder in which questions were answered, and the answers voted on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.config.write_text("discord: {feedback: true}\n")
        (folder / "data" / "state" / "outcomes").mkdir(parents=True)
        self._posts = 0

    def answered(self, question: str, *votes: str, sources: tuple[str, ...] = ("kb:a.md",), **fields: Any) -> None:
        """`votes`: such as `up`, or `inferred down`, each of another person."""
        self._posts += 1
        number, data = self._posts, self.folder / "data"
        post = Post(
            at=AT,
            message_id=number,
            place_id=5,
            asked_in=fields.get("place_id", 7),
            asker_id=fields.get("asker_id", ADA),
            last_asked_id=100 + number,
            opened_thread=True,
            question=question,
            sources=sources,
        )
        if fields.get("known", True):
            with (data / "state" / "posts.jsonl").open("ab") as file:
                file.write(render_post(post))
        where = {name: fields[name] for name in ("place_id", "guild_id") if name in fields}
        level = fields.get("level", "answer")
        entry = asked(question, at=AT, reason=None, message_ids=(100 + number,), level=level, **where)
        with (data / "state" / "outcomes" / f"{entry.day}.jsonl").open("ab") as file:
            file.write(render_part_outcome(entry))
        with (data / "feedback.jsonl").open("a") as file:
            for voter, vote in enumerate(votes):
                row = {
                    "at": rfc3339(fields.get("voted_at", AT)),
                    "message_id": str(number),
                    "voter": f"v{voter}",
                    "question": question,
                    "sources": list(sources),
                    "vote": vote.split()[-1],
                    **({"inferred": True} if vote.startswith("inferred") else {}),
                }
                file.write(json.dumps(row) + "\n")

    def run(self, *arguments: object) -> int:
        return main(["--config", str(self.config), "--eval", "--from-votes", *map(str, arguments)])


@pytest.fixture
def bot(tmp_path: Path) -> Bot:
    return Bot(tmp_path)


def entries(text: str) -> list[dict[str, Any]]:
    return yaml.safe_load(text)["questions"]


def test_votes_become_questions(bot: Bot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bot.answered("How do I install it?", "up", "inferred up", "down", sources=("kb:install.md", "team:setup.txt"))
    bot.answered("Does it run: on Solaris?\n# really", "inferred down", sources=("kb:os.md",))
    bot.answered("Where is the log?", "up", "down")
    bot.answered("how do I  INSTALL it?", "up", sources=("kb:docker.md", "nas.log:12"))
    bot.answered("Withdrawn?", "withdrawn")
    out = tmp_path / "votes.yaml"
    assert bot.run(out) == 0
    assert capsys.readouterr().err == f"app.py: 3 questions, 2 of them to be decided: {out}\n"
    assert entries(out.read_text()) == [
        {
            "question": "How do I install it?",
            "source": ["kb:install.md", "team:setup.txt", "kb:docker.md"],
            "note": "3 for, 1 against",
        },
        {
            "question": "Does it run: on Solaris?\n# really",
            "todo": True,
            "note": "0 for, 1 against; answered from kb:os.md",
        },
        {"question": "Where is the log?", "todo": True, "note": "1 for, 1 against; answered from kb:a.md"},
    ]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    read = read_questions(out)
    assert (len(read.questions), len(read.todo)) == (1, 2)


def test_without_a_file_they_are_printed(bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    bot.answered("How do I install it? 🎉\u2028\x1b[2J", "up")
    assert bot.run() == 0
    out, err = capsys.readouterr()
    assert entries(out) == [
        {"question": "How do I install it? 🎉 [2J", "source": ["kb:a.md"], "note": "1 for, 0 against"}
    ]
    assert err == "app.py: 1 question, 0 of them to be decided\n"


def test_what_a_vote_does_not_decide_is_left_to_the_operator(bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    bot.answered("What is wrong? [file: a.log, 12 kB]", "up")
    bot.answered("Where to look?", "up", level="point")
    bot.answered("What says line 12?", "up", sources=("a.log:12",))
    assert bot.run() == 0
    assert [each["note"] for each in entries(capsys.readouterr().out) if each["todo"]] == [
        "1 for, 0 against; asked with a file; answered from kb:a.md",
        "1 for, 0 against; a reply only said where to look; answered from kb:a.md",
        "1 for, 0 against",
    ]


def test_nobody_is_named_and_who_wants_to_be_left_alone_is(bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 49: whoever has opted out since, was forgotten, or is not known any more."""
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    bot.answered(f"Why does {key} not work?", "up")
    bot.answered("I have opted out since", "up", asker_id=SHY)
    bot.answered("Forgotten", "up", known=False)
    bot.answered("[removed]", "up", asker_id=GONE)
    bot.answered("Leave me !NoBot", "up")
    bot.answered(" ", "up")
    (bot.folder / "data" / "state" / "opt-outs.json").write_text(json.dumps([str(SHY)]))
    assert bot.run() == 0
    out, _ = capsys.readouterr()
    assert [each["question"] for each in entries(out)] == ["Why does [redacted: api key] not work?"]
    assert str(ADA) not in out
    assert "v0" not in out


def test_while_it_cannot_be_told_who_has_opted_out_nothing_is_written(
    bot: Bot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 49."""
    bot.answered("How?", "up")
    (bot.folder / "data" / "state" / "opt-outs.json").write_text("[1e400")
    assert bot.run(tmp_path / "x.yaml") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "opt-outs.json is damaged" in err) == ("", 1, True)
    assert not (tmp_path / "x.yaml").exists()


def test_since_goes_by_the_vote(bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    bot.answered("Long ago?", "up", voted_at=AT)
    bot.answered("Lately?", "up", voted_at=4_000_000_000.0)
    assert bot.run("--since", "7d") == 2, "a vote of the future is not yet there"
    assert "--from-votes: " in capsys.readouterr().err
    assert bot.run() == 0
    assert [each["question"] for each in entries(capsys.readouterr().out)] == ["Long ago?"]


def test_of_one_server_its_own_votes_are_taken(bot: Bot, capsys: pytest.CaptureFixture[str]) -> None:
    bot.config.write_text("discord: {feedback: true}\nguilds: {31: {}, 32: {}, 33: {}}\n")
    bot.answered("Here?", "up", place_id=7, guild_id=31)
    bot.answered("There?", "up", place_id=8, guild_id=32)
    for guild_id, question in ((31, "Here?"), (32, "There?")):
        assert bot.run("--guild", guild_id) == 0
        assert [each["question"] for each in entries(capsys.readouterr().out)] == [question]
    assert bot.run("--guild", 33) == 2
    assert "whose asker is known, from the server 33; discord.feedback keeps votes" in capsys.readouterr().err


def test_nothing_is_overwritten(bot: Bot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bot.answered("How?", "up")
    out = tmp_path / "mine.yaml"
    out.write_text("questions: []\n")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    for path in (out, tmp_path / "link.yaml", tmp_path):
        assert bot.run(path) == 2
        assert capsys.readouterr().err == (
            f"app.py: --from-votes: {path} is there already; name another file, or remove it\n"
        )
    assert out.read_text() == "questions: []\n"
    assert not (tmp_path / "elsewhere.yaml").exists()


def test_a_file_that_cannot_be_written_is_named(bot: Bot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bot.answered("How?", "up")
    assert bot.run(tmp_path / "nowhere" / "x.yaml") == 2
    assert f"app.py: --from-votes: {tmp_path}/nowhere/x.yaml: No such file or directory" in capsys.readouterr().err


def test_without_votes_there_is_nothing_to_write(bot: Bot, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bot.run(tmp_path / "x.yaml") == 2
    assert "feedback.jsonl holds no vote" in capsys.readouterr().err
    assert not (tmp_path / "x.yaml").exists()
    (tmp_path / "config.yaml").write_text("app: {data_dir: nowhere}\n")
    assert bot.run() == 2
    assert "app.data_dir: " in capsys.readouterr().err
