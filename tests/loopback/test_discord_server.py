"""A guild, as an unmodified discord.py client meets it."""

from __future__ import annotations

from collections.abc import Awaitable

import aiohttp
import discord
import pytest

from tests.loopback.clients import Listening, logged_in, support_intents
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Thread
from tests.loopback.permissions import READ, Permission

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("hurried_discord")]


async def test_a_hidden_channel_is_silent_until_the_bot_is_let_in(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("staff", hidden=True)
    author = discord_server.add_member("author")
    async with logged_in(discord_server) as client:
        await discord_server.say(channel, author, "secret")
        discord_server.allow(channel, discord_server.bot, READ)
        await discord_server.say(channel, author, "public")
        await discord_server.until(lambda: client.heard)
    assert client.texts == ["public"]


async def test_without_the_content_intent_only_mentions_have_content(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    intents = support_intents()
    intents.message_content = False
    async with logged_in(discord_server, intents) as client:
        await discord_server.say(channel, asker, "anybody?", attachments=[("a.txt", b"a", "text/plain")])
        mention = f"{discord_server.bot.mention} are you there?"
        await discord_server.say(channel, asker, mention)
        await discord_server.until(lambda: len(client.heard) == 2)
    assert client.texts == ["", mention]
    assert client.heard[0].attachments == []


async def test_events_without_their_intent_are_not_sent(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server, discord.Intents(guilds=True, guild_reactions=True)) as client:
        message = await discord_server.say(channel, asker, "hello")
        await discord_server.react(message, asker, "👍")
        await discord_server.until(lambda: f"{asker.id} added 👍" in client.events)
    assert client.heard == []


async def test_attachments_are_downloaded_until_their_address_expires(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        await discord_server.say(channel, asker, attachments=[("log.txt", b"boom", "text/plain")])
        await discord_server.until(lambda: client.heard)
        (attachment,) = client.heard[0].attachments
        assert (attachment.filename, attachment.size, attachment.content_type) == ("log.txt", 4, "text/plain")
        assert await attachment.read() == b"boom"
        discord_server.expire_attachments()
        with pytest.raises(discord.NotFound):
            await attachment.read()
        again = await client.heard[0].channel.fetch_message(client.heard[0].id)
        assert await again.attachments[0].read() == b"boom"
    assert len(discord_server.downloads) == 3


async def test_unknown_routes_are_noted(discord_server: DiscordServer) -> None:
    async with logged_in(discord_server) as client:
        with pytest.raises(discord.NotFound):
            await client.guilds[0].invites()
    assert [request.path for request in discord_server.unknown] == [f"/guilds/{discord_server.guild.id}/invites"]


async def test_a_second_resume_replays_no_more_than_was_missed(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        for text in ("one", "two"):
            client.events.clear()
            await discord_server.disconnect()
            await discord_server.say(channel, asker, text)
            await discord_server.until(lambda: "resumed" in client.events)
        await discord_server.say(channel, asker, "three")
        await discord_server.until(lambda: "three" in client.texts)
        assert client.texts == ["one", "two", "three"]
        assert client.events == ["resumed"]


async def test_a_session_that_ended_while_disconnected_cannot_be_resumed(discord_server: DiscordServer) -> None:
    async with logged_in(discord_server) as client:
        client.events.clear()
        discord_server.fail_next("GET", "^/$", status=503)
        await discord_server.disconnect()
        await discord_server.invalidate_session()
        await discord_server.until(lambda: "ready" in client.events)
        assert "resumed" not in client.events
    assert discord_server.failures_to_come == 0


async def test_what_the_server_does_not_understand_fails_the_test() -> None:
    async def misuse() -> None:
        async with DiscordServer() as server, aiohttp.ClientSession() as session:
            channel = server.add_channel("help")
            headers = {"Authorization": f"Bot {server.token}"}
            form = {"content": "hi", "allowed_mentions": ["odd"]}
            await session.post(f"{server.origin}/api/v10/channels/{channel.id}/messages", json=form, headers=headers)

    with pytest.raises(ExceptionGroup) as failed:
        await misuse()
    assert failed.group_contains(AttributeError)


async def refusal(sending: Awaitable[object]) -> tuple[int, int]:
    """HTTP status and error code with which `sending` is refused."""
    with pytest.raises(discord.HTTPException) as refused:
        await sending
    return refused.value.status, refused.value.code


def thread_of(client: Listening, thread: Thread) -> discord.Thread:
    found = client.guilds[0].get_thread(thread.id)
    assert found is not None
    return found


async def test_two_thousand_characters_pass_and_one_more_does_not(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    async with logged_in(discord_server) as client:
        to = client.text_channel(channel.id)
        await to.send("x" * 2000)
        assert await refusal(to.send("x" * 2001)) == (400, 50035)
        assert await refusal(to.send(" \n")) == (400, 50006)
    assert [len(post.content) for post in discord_server.posts] == [2000]


async def test_one_nonce_posts_once_per_channel(discord_server: DiscordServer) -> None:
    channels = [discord_server.add_channel(name) for name in ("help", "chat")]
    async with logged_in(discord_server) as client:
        ids = [
            (await client.text_channel(channel.id).send("hi", nonce="same")).id for channel in channels for _ in "ab"
        ]
        assert await refusal(client.text_channel(channels[0].id).send("hi", nonce="x" * 26)) == (400, 50035)
    assert ids == [discord_server.posts[0].id] * 2 + [discord_server.posts[1].id] * 2
    assert len(discord_server.posts) == 2


async def test_pings_are_what_allowed_mentions_leaves(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    question = await discord_server.say(channel, asker, "Why?")
    text = f"@everyone {asker.mention} <@&{discord_server.guild.id}>"
    async with logged_in(discord_server) as client:
        to = client.text_channel(channel.id)
        await to.send(text)
        await to.send(text, allowed_mentions=discord.AllowedMentions.none())
        asked = to.get_partial_message(question.id)
        await asked.reply("So.")
        await asked.reply("So.", allowed_mentions=discord.AllowedMentions.none())
        await asked.reply("So.", mention_author=False)
    loud, quiet, reply, quiet_reply, polite = (post.pings for post in discord_server.posts)
    assert loud.everyone
    assert (loud.users, loud.roles) == ({asker.id}, {discord_server.guild.id})
    assert not quiet
    assert reply.users == {asker.id}
    assert not quiet_reply
    assert not polite
    assert discord_server.posts[2].reference == question.id


async def test_a_reply_needs_a_message_that_is_there(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    question = await discord_server.say(channel, asker, "Why?")
    await discord_server.delete(question)
    async with logged_in(discord_server) as client:
        asked = client.text_channel(channel.id).get_partial_message(question.id)
        assert await refusal(asked.reply("So.")) == (400, 50035)
        assert await refusal(asked.fetch()) == (404, 10008)


async def test_a_message_has_one_thread(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    question = await discord_server.say(channel, asker, "Why?")
    async with logged_in(discord_server) as client:
        asked = client.text_channel(channel.id).get_partial_message(question.id)
        assert await refusal(asked.create_thread(name="x" * 101)) == (400, 50035)
        thread = await asked.create_thread(name="x" * 100)
        assert thread.id == question.id
        assert await refusal(asked.create_thread(name="again")) == (400, 160004)
        assert (await client.fetch_channel(question.id)).id == question.id
        assert [each.id for each in await client.guilds[0].active_threads()] == [question.id]


async def test_a_locked_thread_is_closed_and_an_archived_one_opens_again(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    thread = await discord_server.open_thread(await discord_server.say(channel, asker, "Why?"), asker)
    async with logged_in(discord_server) as client:
        to = thread_of(client, thread)
        await discord_server.change_thread(thread, archived=True)
        await to.send("opens")
        assert not thread.archived
        await discord_server.change_thread(thread, locked=True)
        assert await refusal(to.send("closed")) == (403, 160005)
        discord_server.allow(channel, discord_server.bot, Permission.MANAGE_THREADS)
        await to.send("all the same")
    assert [post.content for post in discord_server.posts] == ["opens", "all the same"]


async def test_an_archived_thread_takes_no_reactions(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    thread = await discord_server.open_thread(await discord_server.say(channel, asker, "Why?"), asker)
    said = await discord_server.say(thread, asker, "Hm.")
    async with logged_in(discord_server) as client:
        to = thread_of(client, thread)
        await discord_server.change_thread(thread, archived=True)
        assert await refusal(to.get_partial_message(said.id).add_reaction("👍")) == (400, 50083)


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (Permission.VIEW_CHANNEL, (403, 50001)),
        (Permission.SEND_MESSAGES, (403, 50013)),
    ],
)
async def test_posting_needs_its_permissions(
    discord_server: DiscordServer, denied: Permission, expected: tuple[int, int]
) -> None:
    channel = discord_server.add_channel("help")
    async with logged_in(discord_server) as client:
        discord_server.deny(channel, discord_server.bot, denied)
        assert await refusal(client.text_channel(channel.id).send("hi")) == expected
    assert discord_server.posts == []


async def test_threads_have_permissions_of_their_own(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    question = await discord_server.say(channel, asker, "Why?")
    async with logged_in(discord_server) as client:
        asked = client.text_channel(channel.id).get_partial_message(question.id)
        discord_server.deny(channel, discord_server.bot, Permission.SEND_MESSAGES)
        thread = await asked.create_thread(name="here")
        await thread.send("works")
        discord_server.deny(channel, discord_server.bot, Permission.SEND_MESSAGES_IN_THREADS)
        assert await refusal(thread.send("does not")) == (403, 50013)
        discord_server.deny(channel, discord_server.bot, Permission.CREATE_PUBLIC_THREADS)
        other = await discord_server.say(channel, asker, "And why?")
        asked = client.text_channel(channel.id).get_partial_message(other.id)
        assert await refusal(asked.create_thread(name="there")) == (403, 50013)


async def test_nothing_is_posted_in_a_forum_itself(discord_server: DiscordServer) -> None:
    forum = discord_server.add_forum("questions")
    async with logged_in(discord_server) as client:
        assert await refusal(client.get_partial_messageable(forum.id).send("hi")) == (400, 50008)
