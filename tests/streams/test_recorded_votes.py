"""Reactions of a recording, which are to replies that a replay does not post again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import app
from clock import rfc3339
from model.events import Event, Posted, Reaction, Ready
from model.messages import Author, Message, Reference, snowflake_at
from services.conversations import Post, Posts
from streams.recording import RecordedVotes

NOON = 1_773_230_400.0
BOT, ADA, THREAD = 9, 311, 50


def at(seconds: float) -> int:
    return snowflake_at(NOON + seconds)


def said(message_id: int, *, by: int = BOT, reply_to: int | None = None) -> Posted:
    quoted = None if reply_to is None else Reference(reply_to, THREAD)
    return Posted(NOON, Message(message_id, THREAD, Author(by, ""), "words", NOON, reply_to=quoted))


async def redirected(*events: Event, message_id: int) -> int:
    """The message that a reaction to this one counts for, where two questions were answered as 1001 and 1002."""
    posts = Posts()
    for reply, asked in ((1001, at(0)), (1002, at(900))):
        await posts.add(Post(NOON, reply, THREAD, 7, ADA, asked, True, "how?", ()))
    votes = RecordedVotes(posts)
    for event in (Ready(NOON, BOT, "millrace"), *events):
        assert votes.redirect(event) is event
    reaction = votes.redirect(Reaction(NOON, THREAD, message_id, ADA, "👍", added=True))
    assert isinstance(reaction, Reaction)
    return reaction.message_id


@pytest.mark.parametrize(
    ("reply", "counts_for"),
    [
        (said(at(10)), 1001),
        (said(at(899)), at(899)),  # too long after: the replay has no answer to what this one is to
        (said(at(910)), 1002),
        (said(at(910), reply_to=at(0)), 1001),
        (said(at(910), reply_to=at(300)), at(910)),
        (said(at(10), by=ADA), at(10)),
        (said(at(-5)), at(-5)),
    ],
)
async def test_a_reaction_counts_for_the_reply_to_the_same_question(reply: Posted, counts_for: int) -> None:
    assert await redirected(reply, message_id=reply.message.id) == counts_for


def test_a_replay_of_a_recording_with_reactions_has_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked, reply = at(0), at(90)
    user = {"id": str(ADA), "username": "ada"}

    def message(message_id: int, channel_id: int, seconds: float, author: dict[str, Any], text: str) -> dict[str, Any]:
        fields = {"id": str(message_id), "channel_id": str(channel_id), "guild_id": "1", "type": 0, "author": author}
        return fields | {"content": text, "timestamp": rfc3339(NOON + seconds), "attachments": [], "mentions": []}

    bot = {"id": str(BOT), "username": "millrace", "bot": True}
    channel = {"id": "7", "type": 0, "name": "help"}
    thread = {"id": str(asked), "type": 11, "name": "install", "parent_id": "7", "guild_id": "1", "owner_id": str(BOT)}
    voted = {"user_id": str(ADA), "channel_id": str(asked), "message_id": str(reply), "guild_id": "1"}
    question = message(asked, 7, 0, user, f"<@{BOT}> How do I install Lanternfish?") | {"mentions": [bot]}
    lines: list[tuple[float, str, dict[str, Any]]] = [
        (-1, "READY", {"user": bot, "guilds": []}),
        (-1, "GUILD_CREATE", {"id": "1", "name": "x", "roles": [], "channels": [channel], "threads": []}),
        (0, "MESSAGE_CREATE", question),
        (89, "THREAD_CREATE", thread),
        (90, "MESSAGE_CREATE", message(reply, asked, 90, bot, "Run `lanternfish setup`.")),
        (200, "MESSAGE_REACTION_ADD", voted | {"emoji": {"name": "👎"}, "member": {"user": user, "roles": []}}),
    ]
    recording, data = tmp_path / "day.jsonl", tmp_path / "rehearsal"
    recording.write_text("".join(json.dumps({"at": rfc3339(NOON + s), "t": t, "d": d}) + "\n" for s, t, d in lines))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "install.md").write_text("# Install Lanternfish\n\nRun `lanternfish setup` to install.\n")
    config = tmp_path / "config.yaml"
    config.write_text("kb: {sources_dir: docs}\ndiscord: {feedback: true}\nsearch: {embeddings: none}\n")
    assert app.main(["--config", str(config), "--init-kb"]) == 0
    assert app.main(["--config", str(config), "--replay", str(recording), "--data", str(data)]) == 0
    [vote] = map(json.loads, (data / "feedback.jsonl").read_text().splitlines())
    assert (vote["vote"], "install Lanternfish" in vote["question"]) == ("down", True)
    capsys.readouterr()
    assert app.main(["--config", str(config), "--report", "--data", str(data), "--since", "7d"]) == 0
    told = capsys.readouterr().out.partition("Answered, and voted down")[2]
    assert "install Lanternfish" in told.partition("\n\n\n")[0]
    assert app.main(["--config", str(config), "--report", "--data", str(data), "--guild", "1"]) == 0
    told = capsys.readouterr().out.partition("Answered, and voted down")[2]
    assert "install Lanternfish" in told.partition("\n\n\n")[0], "the votes of one server"
    assert app.main(["--config", str(config), "--eval", "--from-votes", "--data", str(data)]) == 0
    assert "install Lanternfish" in capsys.readouterr().out
    assert app.main(["--config", str(config), "--replay", str(recording), "--data", str(data)]) == 0
    printed = capsys.readouterr()
    assert "1 replied" in printed.out
    assert f"--data: {data} holds a replay of this time: --report counts both" in printed.err
