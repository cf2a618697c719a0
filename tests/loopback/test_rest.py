"""What Discord's REST interface grants and refuses a support bot."""

from __future__ import annotations

import io
from collections.abc import Awaitable

import discord
import pytest

from tests.loopback.clients import Listening, logged_in
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Channel, Thread
from tests.loopback.permissions import Permission

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("hurried_discord")]


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


async def test_files_are_posted(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    async with logged_in(discord_server) as client:
        pair = [discord.File(io.BytesIO(content), name) for name, content in (("a.txt", b"1"), ("b.txt", b"2"))]
        sent = await client.text_channel(channel.id).send("both", files=pair)
        assert [await attachment.read() for attachment in sent.attachments] == [b"1", b"2"]
    (post,) = discord_server.posts
    assert (post.content, [file.filename for file in post.message.files]) == ("both", ["a.txt", "b.txt"])


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


async def written(server: DiscordServer, channel: Channel, count: int) -> list[int]:
    author = server.add_member("author")
    return [(await server.say(channel, author, str(number))).id for number in range(count)]


async def test_history_comes_in_pages(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    ids = await written(discord_server, channel, 230)
    async with logged_in(discord_server) as client:
        to = client.text_channel(channel.id)

        async def page(**where: object) -> list[int]:
            return [message.id async for message in to.history(**where)]  # pyright: ignore[reportArgumentType] (any of its arguments)

        assert await page(limit=None) == ids[::-1]
        middle = discord.Object(ids[100])
        assert await page(limit=3, before=middle) == ids[97:100][::-1]
        assert await page(limit=3, after=middle) == ids[101:104]
        assert sorted(await page(limit=5, around=middle)) == ids[98:103]
        raw = await client.http.logs_from(channel.id, 3, after=ids[100])
        assert [int(message["id"]) for message in raw] == ids[101:104][::-1]
        discord_server.deny(channel, discord_server.bot, Permission.READ_MESSAGE_HISTORY)
        assert await page(limit=3) == []
    assert discord_server.count("GET", rf"^/channels/{channel.id}/messages$") == 8


async def test_typing_is_noted(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    async with logged_in(discord_server) as client, client.text_channel(channel.id).typing():
        pass
    assert discord_server.count("POST", "/typing$") == 1


async def test_the_bot_reacts_edits_and_deletes(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        sent = await client.text_channel(channel.id).send("one")
        await sent.add_reaction("👍")
        (stored,) = discord_server.history(channel)
        assert stored.reactions == {"👍": [discord_server.bot.id]}
        assert (await sent.fetch()).reactions[0].me
        await discord_server.until(lambda: f"{discord_server.bot.id} added 👍" in client.events)
        await sent.remove_reaction("👍", discord.Object(discord_server.bot.id))
        assert stored.reactions == {}
        await sent.edit(content="two")
        assert stored.content == "two"
        foreign = await discord_server.say(channel, asker, "mine")
        other = client.text_channel(channel.id).get_partial_message(foreign.id)
        assert await refusal(other.delete()) == (403, 50013)
        await sent.delete()
    assert [message.id for message in discord_server.history(channel)] == [foreign.id]
    assert discord_server.unknown == []
