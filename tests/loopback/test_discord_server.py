"""A guild, as an unmodified discord.py client meets it."""

from __future__ import annotations

import discord
import pytest

from model.messages import snowflake_time
from tests.loopback.clients import Listening, logged_in, support_intents
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import MessageKind
from tests.loopback.permissions import READ

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("hurried_discord")]


async def test_a_client_logs_in_and_knows_the_guild(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    forum = discord_server.add_forum("questions")
    async with logged_in(discord_server) as client:
        assert client.user is not None
        assert client.user.id == discord_server.bot.id
        seen = client.text_channel(channel.id)
        granted = seen.permissions_for(seen.guild.me)
        assert granted.create_public_threads
        assert not granted.manage_messages
        assert isinstance(client.get_channel(forum.id), discord.ForumChannel)
    assert discord_server.unknown == []


async def test_a_message_is_heard_and_answered_in_a_thread(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        question = await discord_server.say(channel, asker, "How do I install it?")
        await discord_server.until(lambda: client.heard)
        thread = await client.heard[0].create_thread(name="How do I install it?")
        await thread.send("Like this.", nonce="n1", allowed_mentions=discord.AllowedMentions.none())
        await discord_server.until(lambda: "Like this." in client.texts)
        assert "thread How do I install it?" in client.events
        starter = client.heard[1]
        assert starter.type is discord.MessageType.thread_starter_message
        assert starter.reference is not None
        assert starter.reference.message_id == question.id
    (post,) = discord_server.posts
    assert (post.content, post.nonce, post.allowed_mentions) == ("Like this.", "n1", {"parse": []})
    assert post.thread is not None
    assert post.thread is question.thread
    assert (post.thread.id, post.thread.name) == (question.id, "How do I install it?")
    assert not post.pings


async def test_a_reply_carries_what_it_replies_to_or_that_it_is_gone(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker, helper = discord_server.add_member("asker"), discord_server.add_member("helper")
    question = await discord_server.say(channel, asker, "Why?")
    async with logged_in(discord_server) as client:
        await discord_server.say(channel, helper, "Because.", reply_to=question)
        await discord_server.delete(question)
        await discord_server.say(channel, helper, "See above.", reply_to=question)
        await discord_server.until(lambda: len(client.heard) == 2)
    first, second = (message.reference for message in client.heard)
    assert first is not None
    assert isinstance(first.resolved, discord.Message)
    assert first.resolved.content == "Why?"
    assert second is not None
    assert isinstance(second.resolved, discord.DeletedReferencedMessage)
    assert [user.id for user in client.heard[0].mentions] == [asker.id]


async def test_edits_deletions_reactions_and_threads_are_told(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        client.events.clear()
        message = await discord_server.say(channel, asker, "one")
        await discord_server.edit(message, "two")
        await discord_server.react(message, asker, "👍")
        await discord_server.unreact(message, asker, "👍")
        thread = await discord_server.open_thread(message, asker, "more")
        await discord_server.change_thread(thread, archived=True, locked=True)
        await discord_server.delete_place(thread)
        await discord_server.delete(message)
        more = [await discord_server.say(channel, asker, text) for text in "ab"]
        await discord_server.delete(*more)
        await discord_server.until(lambda: "deleted 2 messages" in client.events)
    assert client.events == [
        "edited two",
        f"{asker.id} added 👍",
        f"{asker.id} removed 👍",
        "thread more",
        "edited two",
        "thread archived=True locked=True",
        f"thread {thread.id} deleted",
        f"deleted {message.id}",
        "deleted 2 messages",
    ]


async def test_a_forum_post_starts_with_a_message_of_its_own_id(discord_server: DiscordServer) -> None:
    forum = discord_server.add_forum("questions")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        post = await discord_server.forum_post(forum, asker, "Crash", "It crashes.")
        await discord_server.until(lambda: client.texts == ["It crashes."])
        assert client.heard[0].id == client.heard[0].channel.id == post.id
        assert "thread Crash" in client.events


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


async def test_messages_written_while_nobody_listened_are_in_the_history(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    written = await discord_server.say(channel, asker, "early", ago=600)
    assert written.at == pytest.approx(discord_server.clock() - 600, abs=5)
    assert snowflake_time(written.id) == pytest.approx(written.at, abs=0.002)
    async with logged_in(discord_server) as client:
        found = [message async for message in client.text_channel(channel.id).history(limit=5)]
    assert [message.id for message in found] == [written.id]
    assert client.heard == []


async def test_webhooks_bots_and_system_messages_are_told_apart(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    async with logged_in(discord_server) as client:
        await discord_server.say(channel, discord_server.add_webhook("ci"), "built")
        await discord_server.say(channel, discord_server.add_member("other", bot=True), "beep")
        await discord_server.say(channel, discord_server.add_member("new"), kind=MessageKind.JOIN)
        await discord_server.until(lambda: len(client.heard) == 3)
    webhook, other, join = client.heard
    assert webhook.webhook_id == webhook.author.id
    assert (other.author.bot, other.webhook_id) == (True, None)
    assert join.is_system()


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


async def test_a_member_is_looked_up(discord_server: DiscordServer) -> None:
    team = discord_server.add_role("team")
    helper = discord_server.add_member("helper", team)
    async with logged_in(discord_server) as client:
        member = await client.guilds[0].fetch_member(helper.id)
        assert [role.id for role in member.roles] == [discord_server.guild.id, team.id]
        discord_server.remove_member(helper)
        with pytest.raises(discord.NotFound):
            await client.guilds[0].fetch_member(helper.id)


async def test_unknown_routes_are_noted(discord_server: DiscordServer) -> None:
    async with logged_in(discord_server) as client:
        with pytest.raises(discord.NotFound):
            await client.guilds[0].invites()
    assert [request.path for request in discord_server.unknown] == [f"/guilds/{discord_server.guild.id}/invites"]


async def test_commands_are_registered(discord_server: DiscordServer) -> None:
    client = Listening(support_intents())
    tree = discord.app_commands.CommandTree(client)

    @tree.command(description="Says hello.")
    async def hello(interaction: discord.Interaction) -> None:
        raise NotImplementedError

    async with client:
        await client.login(discord_server.token)
        (synced,) = await tree.sync()
    assert synced.name == "hello"
