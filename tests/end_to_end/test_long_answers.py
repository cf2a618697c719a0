"""Answers of several pieces: whole in the end, each piece once, or none of it. In virtual time."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.outcomes import Outcome, OutcomeKind
from services.storage.data_folder import DataFolder
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, Message, User

pytestmark = pytest.mark.virtual_sockets

QUESTION = "how can I restore a backup?"
PIECES = tuple(f"{letter} " + "word " * 380 + "end." for letter in "ABC")
SEND = "/messages$"
FORBIDDEN: dict[str, Any] = {"message": "Missing Permissions", "code": 50013}


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("help")


@pytest.fixture
def sections(llm_server: LLMServer, help_: Channel) -> dict[str, dict[str, Any]]:
    """A bot whose answers have three pieces."""
    _ = help_
    llm_server.otherwise = answering(AnswerResult={"answer": "\n\n".join(PIECES)})
    return {"ai_response": {"llm": llm(llm_server), "max_answer_chars": 9000}}


def shown(server: DiscordServer, question: Message) -> list[str]:
    """The bot's messages in the thread on a question, as they are now."""
    thread = server.state.places.get(question.id)
    there = [] if thread is None else server.history(thread)
    return [message.content.strip() for message in there if message.author is server.bot and message.content]


async def until(condition: Callable[[], object]) -> None:
    """Wait for at most an hour, a second at a time: looking costs real time, waiting does not."""
    async with asyncio.timeout(3600):
        while not condition():  # noqa: ASYNC110 (any condition will do)
            await asyncio.sleep(1)


async def ended(bot: RunningBot, *messages: Message) -> None:
    await until(lambda: all(bot.end_of(message) for message in messages))


def third_then(server: DiscordServer, **failure: Any) -> None:
    """The first two pieces are posted, and what follows fails."""
    server.fail_next("POST", SEND, times=2)
    server.fail_next("POST", SEND, **failure)


@pytest.mark.parametrize(
    "failure",
    [
        {"status": 503, "times": 3},
        {"status": 502, "times": 15},
        {"drop": True, "times": 3},
        {"drop": True, "times": 3, "after_effect": True},
        {"status": 500, "times": 5, "after_effect": True},
        {"status": 200, "times": 1, "after_effect": True, "body": {"odd": True}},
    ],
)
async def test_a_passing_refusal_of_a_piece_delays_the_rest(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel, failure: dict[str, Any]
) -> None:
    """Pitfall 75."""
    bot = await start(**sections)
    third_then(discord_server, **failure)
    question = await discord_server.say(help_, ada, QUESTION)
    await ended(bot, question)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert shown(discord_server, question) == list(PIECES)
    assert discord_server.failures_to_come == 0


async def test_a_piece_that_was_taken_is_not_sent_again_when_its_nonce_is_forgotten(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel
) -> None:
    """Pitfall 75: Discord remembers a nonce for a few minutes only."""
    bot = await start(**sections)
    third_then(discord_server, drop=True, after_effect=True, times=3)
    discord_server.fail_next("GET", SEND, status=503, times=15)
    question = await discord_server.say(help_, ada, QUESTION)
    await until(lambda: discord_server.count("POST", SEND) == 5)
    sent = discord_server.count("POST", SEND)
    discord_server.state.nonces.clear()
    await ended(bot, question)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert shown(discord_server, question) == list(PIECES)
    assert discord_server.count("POST", SEND) == sent


async def test_a_rate_limit_of_a_minute_is_waited_out(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel
) -> None:
    """Pitfall 75: also one that is longer than discord.py waits."""
    bot = await start(**sections)
    discord_server.fail_next("POST", SEND)
    discord_server.rate_limit_next("POST", SEND, retry_after=59)
    discord_server.rate_limit_next("POST", SEND, retry_after=90)
    began = discord_server.clock()
    question = await discord_server.say(help_, ada, QUESTION)
    await ended(bot, question)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert shown(discord_server, question) == list(PIECES)
    assert discord_server.clock() - began > 90
    assert discord_server.count("POST", SEND) == 5


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_a_permanent_refusal_leaves_nothing_of_the_answer(
    start: Start,
    discord_server: DiscordServer,
    ada: User,
    sections: Any,
    help_: Channel,
    data: Path,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    """Pitfall 75."""
    bot = await start(**sections)
    if number:
        discord_server.fail_next("POST", SEND, times=number)
    discord_server.fail_next("POST", SEND, status=403, body=FORBIDDEN)
    question = await discord_server.say(help_, ada, QUESTION)
    await ended(bot, question)
    assert shown(discord_server, question) == []
    assert not list(DataFolder(data).outbox.glob("*"))
    if number:
        assert bot.results == [(OutcomeKind.FAILED, "TakenBack at reply")]
        assert f"piece {number + 1} of 3: nothing sent to" in caplog.text
        assert "what was posted is taken back" in caplog.text
    else:
        assert bot.results == [(OutcomeKind.FAILED, "PostFailed at reply")]


async def test_what_cannot_be_taken_back_is_taken_back_by_the_next_start(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel, data: Path
) -> None:
    """Pitfall 75."""
    bot = await start(**sections)
    third_then(discord_server, status=403, body=FORBIDDEN, times=2)
    discord_server.fail_next("DELETE", "/messages/", status=503, times=3)
    question = await discord_server.say(help_, ada, QUESTION)
    await ended(bot, question)
    assert bot.results == [(OutcomeKind.FAILED, "Undelivered at reply")]
    assert len(shown(discord_server, question)) == 2
    await bot.stop()
    bot = await start(**sections)
    await until(lambda: bot.outcomes)
    assert bot.results == [(OutcomeKind.FAILED, "TakenBack at reply")]
    assert shown(discord_server, question) == []
    assert not list(DataFolder(data).outbox.glob("*"))


async def test_an_outage_that_lasts_is_given_up_and_the_next_start_finishes_the_answer(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel, data: Path
) -> None:
    """Pitfall 75."""
    bot = await start(**sections)
    third_then(discord_server, status=503, times=10_000)
    question = await discord_server.say(help_, ada, QUESTION)
    began = discord_server.clock()
    await ended(bot, question)
    assert 500 < discord_server.clock() - began < 800
    assert bot.results == [(OutcomeKind.FAILED, "Undelivered at reply")]
    await bot.stop()
    discord_server.forget_failures()
    asked = len(discord_server.posts)
    bot = await start(**sections)
    await until(lambda: bot.outcomes)
    (outcome,) = bot.outcomes
    assert (outcome.result, outcome.reply_place_id, outcome.part.message_ids) == (
        OutcomeKind.REPLIED,
        question.id,
        (question.id,),
    )
    assert shown(discord_server, question) == list(PIECES)
    assert len(discord_server.posts) == asked + 1
    assert not list(DataFolder(data).outbox.glob("*"))


async def cut_off(start: Start, server: DiscordServer, sections: Any, **failure: Any) -> RunningBot:
    bot = await start(**sections)
    server.fail_next("POST", SEND)
    server.fail_next("POST", SEND, delay=math.inf, **failure)
    return bot


@pytest.mark.parametrize("after_effect", [False, True])
async def test_half_an_answer_is_finished_by_the_next_life_and_counted_once(
    start: Start,
    discord_server: DiscordServer,
    llm_server: LLMServer,
    ada: User,
    sections: Any,
    help_: Channel,
    data: Path,
    after_effect: bool,
) -> None:
    """Pitfall 75: without another call of the model, and before what was asked meanwhile is answered."""
    bot = await cut_off(start, discord_server, sections, after_effect=after_effect)
    question = await discord_server.say(help_, ada, QUESTION)
    await until(lambda: discord_server.count("POST", SEND) == 2 and len(discord_server.posts) >= 1)
    await until(lambda: len(shown(discord_server, question)) == 1 + after_effect)
    assert await bot.stop() == 1
    discord_server.state.nonces.clear()
    llm_server.otherwise = answering(AnswerResult={"answer": "Something else."})
    meanwhile = await discord_server.say(help_, ada, "how do I turn off face recognition?")
    bot = await start(**sections)
    await ended(bot, question, meanwhile)
    results = [each for each in bot.outcomes if each.result is OutcomeKind.REPLIED]
    assert [each.part.message_ids for each in results] == [(question.id,), (meanwhile.id,)]
    assert results[0].llm_calls == 0
    assert shown(discord_server, question)[:3] == list(PIECES)
    said = [
        message.content.strip() for place in discord_server.state.threads() for message in discord_server.history(place)
    ]
    assert [said.count(piece) for piece in PIECES] == [1, 1, 1]
    assert sum("Something else." in each for each in said) == 1
    assert not list(DataFolder(data).outbox.glob("*"))


async def test_an_answer_of_which_nothing_was_posted_is_made_anew(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel, data: Path
) -> None:
    """Pitfall 75."""
    bot = await start(**sections)
    discord_server.fail_next("POST", SEND, delay=math.inf)
    question = await discord_server.say(help_, ada, QUESTION)
    await until(lambda: discord_server.count("POST", SEND))
    assert len(list(DataFolder(data).outbox.glob("*.json"))) == 1
    assert await bot.stop() == 1
    bot = await start(**sections)
    await ended(bot, question)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert shown(discord_server, question) == list(PIECES)
    assert not list(DataFolder(data).outbox.glob("*"))


async def test_a_damaged_note_of_an_unfinished_answer_is_reported_and_left(
    start: Start, sections: Any, data: Path, caplog: pytest.LogCaptureFixture, help_: Channel
) -> None:
    folder = DataFolder(data).outbox
    folder.mkdir(parents=True)
    (folder / "5.json").write_text(json.dumps({"pieces": 5}))
    bot = await start(**sections)
    assert f"{folder / '5.json'}: damaged" in caplog.text
    assert not [end for end in bot.ends if isinstance(end, Outcome)]


async def test_an_answer_that_cannot_be_noted_is_posted_all_the_same(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel, data: Path
) -> None:
    bot = await start(**sections)
    DataFolder(data).outbox.parent.mkdir(exist_ok=True)
    DataFolder(data).outbox.write_text("in the way")
    question = await discord_server.say(help_, ada, QUESTION)
    await ended(bot, question)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert shown(discord_server, question) == list(PIECES)
