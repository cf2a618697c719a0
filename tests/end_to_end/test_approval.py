"""Answers that wait for a person, over the real discord.py: what the team sees, presses and enters. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.outcomes import OutcomeKind
from services.conversations import DraftAction
from services.storage import DataFolder
from services.team import REMOVED, archive, archive_files, read_audit
from tests.end_to_end.bots import RunningBot, answers_to
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.interactions import Interaction
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, Message, User
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.virtual_sockets

QUESTION = "how can I restore a backup?"
SEND = "/messages$"
FORBIDDEN: dict[str, Any] = {"message": "Missing Permissions", "code": 50013}
FIRST = "My pictures are gone since the illness came back; how can I restore a backup?"
LAST = "Thanks in advance, is there a way?"
PIECES = [f"{letter} " + "word " * 380 + "end." for letter in "AB"]
EDITED = "Run `restore --all`, @everyone."


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


@pytest.fixture
async def tess(discord_server: DiscordServer) -> User:
    """Of the team, by her role."""
    return discord_server.add_member("tess", discord_server.add_role("team"))


@pytest.fixture
async def review(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("review")


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("help")


@pytest.fixture
def sections(
    llm_server: LLMServer, discord_server: DiscordServer, help_: Channel, review: Channel, tess: User
) -> dict[str, dict[str, Any]]:
    _ = help_
    llm_server.otherwise = answering(AnswerResult={"answer": "Stop it, then copy the folder back."})
    roles = [str(role.id) for role in discord_server.guild.members[tess.id].roles]
    return {
        "ai_response": {"llm": llm(llm_server), "approval": "all"},
        "discord": {
            "team_role_ids": roles,
            "review_channel_id": str(review.id),
            "message_batch_wait_seconds": 0.15,
            "team_active_seconds": 1,
        },
    }


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(7200):
        while not condition():  # noqa: ASYNC110 (any condition will do)
            await asyncio.sleep(0.5)


def text_of(message: Message) -> str:
    """The texts that a message of components shows."""
    shown: list[Any] = message.components
    return "\n".join(each["content"] for each in shown if each["type"] == 10)


def labels_of(message: Message) -> list[str]:
    shown: list[Any] = message.components
    return [button["label"] for each in shown if each["type"] == 1 for button in each["components"]]


def cards(server: DiscordServer, review: Channel) -> list[Message]:
    return server.history(review)


async def told(server: DiscordServer, one: Interaction) -> str:
    await until(lambda: one.said)
    (said,) = one.said
    assert said.ephemeral
    assert said.allowed_mentions == {"parse": []}
    return said.content


async def press(server: DiscordServer, card: Message, user: User, label: str) -> str:
    return await told(server, await server.press(card, user, label))


async def held(server: DiscordServer, help_: Channel, review: Channel, ada: User) -> tuple[Message, Message]:
    """Gives a question, and the message about its draft."""
    before = len(cards(server, review))
    question = await server.say(help_, ada, QUESTION)
    await until(lambda: len(cards(server, review)) > before)
    return question, cards(server, review)[-1]


def ends_of(bot: RunningBot) -> list[tuple[OutcomeKind, str | None]]:
    return [(end.result, end.reason) for end in bot.outcomes if end.ends_draft]


async def test_the_team_reads_a_draft_and_posts_it(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    assert labels_of(card) == ["Post", "Edit", "Discard"]
    assert "Stop it, then copy the folder back." in text_of(card)
    assert QUESTION in text_of(card)
    assert f"channels/{discord_server.guild.id}/{help_.id}/{question.id}" in text_of(card)
    assert "confidence" in text_of(card)
    assert answers_to(discord_server, question) == []
    assert await press(discord_server, card, tess, "Post") == "It is posted."
    (answer,) = answers_to(discord_server, question)
    assert answer.content.startswith("Stop it, then copy the folder back.")
    assert labels_of(card) == []
    assert text_of(card).startswith(f"**Posted by <@{tess.id}>**")
    assert card.pings.users == frozenset() or not card.pings.users
    assert bot.results == [(OutcomeKind.HELD, "held for approval"), (OutcomeKind.REPLIED, None)]
    assert discord_server.unknown == []
    audited = read_audit(DataFolder(bot.settings.app.data_dir).audit)
    assert [(each.by, each.action, each.about) for each in audited] == [(str(tess.id), "post draft", str(question.id))]


async def test_a_stranger_decides_nothing(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    for label in ("Post", "Edit", "Discard"):
        assert await press(discord_server, card, ada, label) == "Only the team decides about answers."
    assert answers_to(discord_server, question) == []
    assert ends_of(bot) == []
    assert labels_of(card) == ["Post", "Edit", "Discard"]


async def test_what_is_edited_pings_nobody_and_is_posted_as_edited(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    """Pitfall 19."""
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    form = await discord_server.press(card, tess, "Edit")
    await until(lambda: form.form)
    assert form.form is not None
    assert form.form["components"][0]["component"]["value"].startswith("Stop it")
    assert "posts it as it is now" in await told(discord_server, await discord_server.submit(form, EDITED))
    # The form again, as a client may send it twice.
    assert "posts it as it is now" in await told(discord_server, await discord_server.submit(form, EDITED))
    assert EDITED in text_of(card)
    assert f"Edited by <@{tess.id}>" in text_of(card)
    kept = "Post, and keep as the team's answer"
    assert labels_of(card) == ["Post", "Edit", "Discard", kept]
    assert "kept as something that the team taught" in await press(discord_server, card, tess, kept)
    (answer,) = answers_to(discord_server, question)
    assert answer.content == EDITED
    assert answer.allowed_mentions == {"parse": []}
    assert not answer.pings.everyone
    archive = [path.read_text() for path in DataFolder(bot.settings.app.data_dir).team_raw.glob("*.txt")]
    assert f"User: {QUESTION}\nTeam: {EDITED}\n" in archive[0]
    assert "has ended" in await told(discord_server, await discord_server.submit(form, "Too late."))


@pytest.mark.parametrize(
    ("deleted", "left"),
    [
        ("", [FIRST, LAST, *PIECES]),
        ("first of the question", [REMOVED, LAST, *PIECES]),
        ("last of the question", [FIRST, REMOVED, *PIECES]),
        ("first of the answer", [FIRST, LAST, REMOVED, PIECES[1]]),
        ("last of the answer", [FIRST, LAST, PIECES[0], REMOVED]),
    ],
)
async def test_what_was_kept_is_withdrawn_with_any_of_its_messages(
    start: Start,
    discord_server: DiscordServer,
    ada: User,
    tess: User,
    sections: Any,
    help_: Channel,
    review: Channel,
    deleted: str,
    left: list[str],
) -> None:
    server = discord_server
    bot = await start(**sections)
    first, last = [await server.say(help_, ada, text) for text in (FIRST, LAST)]
    await until(lambda: cards(server, review))
    (card,) = cards(server, review)
    form = await server.press(card, tess, "Edit")
    await until(lambda: form.form)
    await told(server, await server.submit(form, "\n\n".join(PIECES)))
    assert "kept as something that the team taught" in await press(
        server, card, tess, "Post, and keep as the team's answer"
    )
    answers = [post.message for post in answers_to(server, last)]
    messages = {"question": [first, last], "answer": answers}
    if deleted:
        which, _, of = deleted.partition(" of the ")
        await server.delete(messages[of][which == "last"])
    await asyncio.sleep(100)
    kept = list(archive_files.last_captures(DataFolder(bot.settings.app.data_dir).team_raw, {first.id, last.id}))
    assert [[turn.text for turn in pair.turns] for pair in kept] == [left]
    assert [pair.message_ids for pair in kept] == [tuple(each.id for each in (first, last, *answers))]
    # What is left of a question is not quoted with its answer.
    assert archive.may_replace(kept[0]) is (not deleted.endswith("question"))


async def test_an_edited_question_is_shown_before_its_answer_is_posted(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    server = discord_server
    await start(**sections)
    question, card = await held(server, help_, review, ada)
    await server.edit(question, "how can I?")
    assert "was edited since" in await press(server, card, tess, "Post")
    assert "how can I?" in text_of(card)
    assert not answers_to(server, question)
    assert await press(server, card, tess, "Post") == "It is posted."


async def test_what_may_not_be_kept_by_then_is_refused(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    server = discord_server
    bot = await start(**sections)
    question, card = await held(server, help_, review, ada)
    form = await server.press(card, tess, "Edit")
    await until(lambda: form.form)
    await told(server, await server.submit(form, EDITED))
    seen = Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES | Permission.READ_MESSAGE_HISTORY
    server.allow(help_, server.bot, seen)
    server.deny(help_, server.guild.everyone, Permission.VIEW_CHANNEL)
    await asyncio.sleep(5)
    assert "cannot be kept" in await press(server, card, tess, "Post, and keep as the team's answer")
    assert not answers_to(server, question)
    assert await press(server, card, tess, "Post") == "It is posted as edited."
    assert "kept" not in text_of(card)
    assert not [*DataFolder(bot.settings.app.data_dir).team_raw.glob("*.txt")]


async def test_an_answer_that_the_form_does_not_take_is_posted_whole(
    start: Start,
    discord_server: DiscordServer,
    llm_server: LLMServer,
    ada: User,
    tess: User,
    sections: Any,
    help_: Channel,
    review: Channel,
) -> None:
    long = "\n\n".join(f"{letter} " + "word " * 380 + "end." for letter in "ABC")
    sections["ai_response"]["max_answer_chars"] = 9000
    await start(**sections)
    llm_server.otherwise = answering(AnswerResult={"answer": long})
    question, card = await held(discord_server, help_, review, ada)
    assert len(text_of(card)) <= 4001
    assert "characters:" in text_of(card)
    assert "edit it at the dashboard" in await press(discord_server, card, tess, "Edit")
    assert await press(discord_server, card, tess, "Post") == "It is posted."
    assert len(answers_to(discord_server, question)) == 3


async def test_presses_after_a_restart_and_after_the_end(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    form = await discord_server.press(card, tess, "Edit")
    await until(lambda: form.form)
    assert await bot.stop() == 0
    bot = await start(**sections)
    assert "posts it as it is now" in await told(discord_server, await discord_server.submit(form, EDITED))
    custom_id = str(form.form and form.form["custom_id"]).replace(":edit", ":post")
    assert await press(discord_server, card, tess, "Post") == "It is posted as edited."
    again = await told(discord_server, await discord_server.press_id(card, tess, custom_id))
    assert again == f"Nothing was done, as this draft has ended. Posted as edited by <@{tess.id}>."
    assert [post.content for post in answers_to(discord_server, question)] == [EDITED]
    assert len(cards(discord_server, review)) == 1
    unknown = custom_id.replace(str(question.id), "5")
    assert "not known any more" in await told(discord_server, await discord_server.press_id(card, tess, unknown))


async def test_a_press_is_about_the_text_beside_the_button(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    older = await discord_server.press(card, tess, "Edit")
    await until(lambda: older.form)
    shown: list[Any] = card.components
    post_id = shown[-1]["components"][0]["custom_id"]
    newer = await discord_server.press(card, tess, "Edit")
    await until(lambda: newer.form)
    await told(discord_server, await discord_server.submit(newer, EDITED))
    again = "has edited the answer meanwhile, and nothing was done: look at it again."
    assert again in await told(discord_server, await discord_server.press_id(card, tess, post_id))
    long = "\n\n".join(PIECES)
    refused = await discord_server.submit(older, long)
    await until(lambda: len(refused.said) == 3)
    given_back = "".join(said.content for said in refused.said)
    assert again in given_back
    assert all(piece in given_back for piece in PIECES)
    assert all(said.ephemeral for said in refused.said)
    assert await press(discord_server, card, tess, "Post") == "It is posted as edited."
    assert [post.content for post in answers_to(discord_server, question)] == [EDITED]


async def test_two_people_press_at_once(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    first = await discord_server.press(card, tess, "Discard")
    second = await discord_server.press_id(card, tess, f"draft:{help_.id}:{question.id}:post")
    assert await told(discord_server, first) == "It is discarded."
    assert "has ended. Discarded by" in await told(discord_server, second)
    assert ends_of(bot) == [(OutcomeKind.SKIPPED, "discarded by a person")]
    assert answers_to(discord_server, question) == []


async def test_presses_after_the_deadline_post_nothing(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    sections["ai_response"]["approval_minutes"] = 1
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    form = await discord_server.press(card, tess, "Edit")
    await until(lambda: form.form)
    post_id = str(form.form and form.form["custom_id"]).replace(":edit", ":post")
    await until(lambda: ends_of(bot))
    assert ends_of(bot) == [(OutcomeKind.SKIPPED, "nobody decided")]
    await until(lambda: not labels_of(card))
    says = "Nothing was done, as this draft has ended. Not posted: nobody decided in time."
    assert await told(discord_server, await discord_server.submit(form, EDITED)) == says
    assert await told(discord_server, await discord_server.press_id(card, tess, post_id)) == says
    assert answers_to(discord_server, question) == []


async def test_the_question_is_deleted(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    """Pitfall 29."""
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    await discord_server.delete(question)
    await until(lambda: ends_of(bot))
    await until(lambda: not labels_of(card))
    assert "the question is gone" in text_of(card)
    assert QUESTION not in text_of(card)
    # While the bot is away.
    question, card = await held(discord_server, help_, review, ada)
    await bot.stop()
    await discord_server.delete(question)
    bot = await start(**sections)
    assert "The question is gone" in await press(discord_server, card, tess, "Post")
    assert ends_of(bot) == [(OutcomeKind.CANCELLED, "deleted")]


async def test_a_review_channel_without_permission_is_one_line_and_the_draft_waits(
    start: Start,
    discord_server: DiscordServer,
    ada: User,
    sections: Any,
    help_: Channel,
    review: Channel,
    caplog: pytest.LogCaptureFixture,
) -> None:
    discord_server.fail_next("POST", f"/channels/{review.id}{SEND}", status=403, body=FORBIDDEN)
    bot = await start(**sections)
    await discord_server.say(help_, ada, QUESTION)
    await until(lambda: bot.outcomes)
    assert bot.parts is not None
    drafts = bot.parts.state.drafts
    await asyncio.sleep(500)
    assert (len(drafts.waiting), cards(discord_server, review)) == (1, [])
    await asyncio.sleep(200)
    assert labels_of(cards(discord_server, review)[0]) == ["Post", "Edit", "Discard"]
    assert len([each for each in caplog.records if "drafts wait that the team is not shown" in each.message]) == 1


def other_bots_button(server: DiscordServer, review: Channel, help_: Channel, draft_id: int) -> None:
    """Another bot of the server posts what looks like the message about a draft."""
    button = {"type": 2, "style": 3, "label": "Post", "custom_id": f"draft:{help_.id}:{draft_id}:post"}
    other = server.add_member("other", bot=True)
    server.state.write(review, other, "", components=[{"type": 1, "components": [button]}])


@pytest.mark.parametrize("hidden_by", ["a question that names it", "a button of another bot"])
async def test_nobody_hides_a_draft_from_the_team(
    start: Start,
    discord_server: DiscordServer,
    ada: User,
    tess: User,
    sections: Any,
    help_: Channel,
    review: Channel,
    hidden_by: str,
) -> None:
    discord_server.fail_next("POST", f"/channels/{review.id}{SEND}", status=403, body=FORBIDDEN)
    bot = await start(**sections)
    question = await discord_server.say(help_, ada, QUESTION)
    await until(lambda: bot.outcomes)  # it is shown later
    if hidden_by == "a question that names it":
        await discord_server.say(help_, discord_server.add_member("eve"), f":{question.id}: {QUESTION}")
        await until(lambda: cards(discord_server, review))
    else:
        other_bots_button(discord_server, review, help_, question.id)
    await asyncio.sleep(700)
    card = cards(discord_server, review)[-1]
    assert (len(cards(discord_server, review)), f"<@{ada.id}>" in text_of(card)) == (2, True)
    assert await press(discord_server, card, tess, "Post") == "It is posted."
    assert len(answers_to(discord_server, question)) == 1


async def test_a_draft_that_was_shown_before_a_crash_is_not_shown_twice(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    bot = await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    other_bots_button(discord_server, review, help_, question.id)
    assert await bot.stop() == 0
    (path,) = DataFolder(bot.settings.app.data_dir).drafts.glob("*")
    path.write_text(path.read_text().replace(f'"review_id": {card.id}', '"review_id": 0'))
    bot = await start(**sections)
    assert bot.parts is not None
    drafts = bot.parts.state.drafts
    await until(lambda: [each.review_id for each in drafts.waiting] == [card.id])
    assert len(cards(discord_server, review)) == 2


async def test_a_review_channel_that_is_gone_loses_nothing(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    bot = await start(**sections)
    question, _ = await held(discord_server, help_, review, ada)
    await discord_server.delete_place(review)
    await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await until(lambda: len(bot.outcomes) == 2)
    assert bot.parts is not None
    drafts = bot.parts.state.drafts
    assert len(drafts.waiting) == 2
    assert answers_to(discord_server, question) == []


async def test_what_is_said_in_the_review_channel_is_not_read(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, review: Channel
) -> None:
    bot = await start(**sections)
    message = await discord_server.say(review, ada, QUESTION)
    await bot.until_ended(message)
    assert bot.outcomes == []


async def test_a_place_without_permission_is_told_and_the_draft_waits(
    start: Start, discord_server: DiscordServer, ada: User, tess: User, sections: Any, help_: Channel, review: Channel
) -> None:
    await start(**sections)
    question, card = await held(discord_server, help_, review, ada)
    discord_server.fail_next("POST", "/threads$", status=403, body=FORBIDDEN)
    assert "cannot be posted" in await press(discord_server, card, tess, "Post")
    assert answers_to(discord_server, question) == []
    assert labels_of(card) == ["Post", "Edit", "Discard"]


async def test_forgetting_whoever_edited_or_decided_leaves_nothing_of_theirs(
    start: Start,
    discord_server: DiscordServer,
    ada: User,
    tess: User,
    sections: Any,
    help_: Channel,
    review: Channel,
    data: Path,
) -> None:
    """Pitfall 67."""
    bot = await start(**sections)
    await until(lambda: discord_server.state.commands)
    _, decided = await held(discord_server, help_, review, discord_server.add_member("bob"))
    assert await press(discord_server, decided, tess, "Post") == "It is posted."
    question, card = await held(discord_server, help_, review, ada)
    form = await discord_server.press(card, tess, "Edit")
    await until(lambda: form.form)
    await told(discord_server, await discord_server.submit(form, EDITED))
    await discord_server.call(help_, tess, "privacy forget")
    await until(lambda: not labels_of(card))
    assert "is forgotten" in text_of(card)
    assert EDITED not in text_of(card)
    assert ends_of(bot) == [(OutcomeKind.REPLIED, None), (OutcomeKind.CANCELLED, "deleted")]
    assert answers_to(discord_server, question) == []
    assert bot.parts is not None
    drafts = bot.parts.state.drafts
    bobs = next(path for path in DataFolder(data).drafts.glob("*") if int(path.stem) != question.id)
    assert "Posted by Somebody who is forgotten" in await drafts.decide(int(bobs.stem), DraftAction.POST)
    kept = [path.read_text() for path in DataFolder(data).drafts.glob("*")]
    assert not any(str(tess.id) in text or "restore --all" in text for text in kept)


async def test_forgetting_removes_a_draft_everywhere(
    start: Start, discord_server: DiscordServer, ada: User, sections: Any, help_: Channel, review: Channel, data: Path
) -> None:
    """Pitfall 67."""
    bot = await start(**sections)
    await until(lambda: discord_server.state.commands)
    _, card = await held(discord_server, help_, review, ada)
    await discord_server.call(help_, ada, "privacy forget")
    await until(lambda: not labels_of(card))
    await until(lambda: ends_of(bot))
    assert QUESTION not in text_of(card)
    kept = [path.read_text() for path in DataFolder(data).drafts.glob("*")]
    assert not any(str(ada.id) in text or QUESTION in text for text in kept)
