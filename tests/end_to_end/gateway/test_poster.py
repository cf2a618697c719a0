import pytest

from services.discord.live.rest import DiscordPoster
from services.discord.live.session import Client
from services.discord.protocols import PostFailed
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Message, Thread
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time


@pytest.fixture
async def question(discord_server: DiscordServer) -> Message:
    channel = discord_server.add_channel("help")
    return await discord_server.say(channel, discord_server.add_member("ada"), "why?")


@pytest.fixture
async def thread(discord_server: DiscordServer, question: Message) -> Thread:
    return await discord_server.open_thread(question, question.author)


async def test_a_thread_is_opened_on_the_question_and_answered_in(
    discord_server: DiscordServer, poster: DiscordPoster, question: Message
) -> None:
    thread_id = await poster.open_thread(question.place.id, question.id, "why?")
    sent = await poster.send(thread_id, "because", nonce="n1")
    (post,) = discord_server.posts
    assert thread_id == question.id
    assert post.thread is not None
    assert (post.id, post.thread.name, post.content) == (sent, "why?", "because")
    assert not discord_server.unknown


async def test_a_thread_that_is_already_there_is_used(
    discord_server: DiscordServer, poster: DiscordPoster, question: Message, thread: Thread
) -> None:
    assert await poster.open_thread(question.place.id, question.id, "why?") == thread.id


async def test_a_thread_that_was_made_before_the_line_broke_is_used(
    discord_server: DiscordServer, poster: DiscordPoster, question: Message
) -> None:
    discord_server.fail_next("POST", "/threads", drop=True, after_effect=True)
    assert await poster.open_thread(question.place.id, question.id, "why?") == question.id


async def test_without_permission_nothing_is_opened_and_the_reason_is_readable(
    discord_server: DiscordServer, poster: DiscordPoster, question: Message
) -> None:
    """Pitfall 24: what cannot be posted leaves no empty thread."""
    discord_server.deny(discord_server.state.channels()[0], discord_server.bot, Permission.CREATE_PUBLIC_THREADS)
    with pytest.raises(PostFailed, match="lacks a permission"):
        await poster.open_thread(question.place.id, question.id, "why?")


async def test_a_deleted_question_and_a_broken_line_are_told_apart(
    discord_server: DiscordServer, poster: DiscordPoster, question: Message
) -> None:
    await discord_server.delete(question)
    with pytest.raises(PostFailed, match="message no longer exists"):
        await poster.open_thread(question.place.id, question.id, "why?")
    discord_server.fail_next("POST", "/threads", drop=True, times=3)
    with pytest.raises(PostFailed, match="could not be reached"):
        await poster.open_thread(question.place.id, question.id, "why?")


async def test_nobody_is_ever_pinged(discord_server: DiscordServer, poster: DiscordPoster, thread: Thread) -> None:
    await poster.send(thread.id, f"@everyone {thread.owner.mention}", nonce="n1", reply_to=thread.id)
    (post,) = discord_server.posts
    assert post.allowed_mentions == {"parse": []}


async def test_a_reply_names_its_message_and_survives_its_deletion(
    discord_server: DiscordServer, poster: DiscordPoster, thread: Thread
) -> None:
    asked = await discord_server.say(thread, thread.owner, "and now?")
    await poster.send(thread.id, "so", nonce="n1", reply_to=asked.id)
    assert discord_server.posts[0].reference == asked.id
    assert discord_server.posts[0].payload["message_reference"]["fail_if_not_exists"] is False
    await discord_server.delete(asked)
    await poster.send(thread.id, "so", nonce="n2", reply_to=asked.id)
    assert len(discord_server.posts) == 2


@pytest.mark.parametrize("failure", [{"status": 502}, {"status": 503}, {"drop": True}])
async def test_an_answer_that_arrived_before_the_failure_is_posted_once(
    discord_server: DiscordServer, poster: DiscordPoster, thread: Thread, failure: dict[str, int]
) -> None:
    discord_server.fail_next("POST", "/messages", after_effect=True, **failure)  # pyright: ignore[reportArgumentType] (one of three)
    await poster.send(thread.id, "once", nonce="a-stable-nonce")
    sends = [request for request in discord_server.requests if request.method == "POST"]
    assert len(sends) == 2
    assert sends[0].body == sends[1].body
    assert sends[0].body is not None
    assert len(discord_server.posts) == 1
    assert discord_server.posts[0].payload["enforce_nonce"] is True


async def test_what_fails_for_good_says_why(
    discord_server: DiscordServer, poster: DiscordPoster, thread: Thread
) -> None:
    discord_server.fail_next("POST", "/messages", status=400, body={"code": 50083, "message": "Thread is archived"})
    with pytest.raises(PostFailed, match="the thread is archived"):
        await poster.send(thread.id, "late", nonce="n2")
    with pytest.raises(PostFailed, match="the form"):
        await poster.send(thread.id, "x" * 2001, nonce="n3")
    with pytest.raises(PostFailed, match="channel no longer exists"):
        await poster.send(5, "nowhere", nonce="n4")
    await discord_server.change_thread(thread, locked=True, archived=True)
    with pytest.raises(PostFailed, match=f"nothing sent to {thread.id}: the thread is locked"):
        await poster.send(thread.id, "late", nonce="n1")
    assert discord_server.posts == []


async def test_a_nonce_that_discord_would_refuse_is_a_fault_of_the_caller(
    poster: DiscordPoster, thread: Thread
) -> None:
    with pytest.raises(ValueError, match="longer than 25"):
        await poster.send(thread.id, "x", nonce="n" * 26)


async def test_reactions(discord_server: DiscordServer, poster: DiscordPoster, question: Message) -> None:
    await poster.react(question.place.id, question.id, "👍")
    assert question.reactions == {"👍": [discord_server.bot.id]}
    with pytest.raises(PostFailed, match="no reaction to message 5"):
        await poster.react(question.place.id, 5, "👍")


async def test_a_thread_is_deleted_by_who_may_manage_threads(
    discord_server: DiscordServer, poster: DiscordPoster, thread: Thread
) -> None:
    with pytest.raises(PostFailed, match=f"^thread {thread.id} not deleted: the bot lacks Manage Threads there$"):
        await poster.delete_thread(thread.id)
    discord_server.allow(thread.parent, discord_server.bot, Permission.MANAGE_THREADS)
    await poster.delete_thread(thread.id)
    assert thread.id not in discord_server.state.places
    await poster.delete_thread(thread.id)
    discord_server.fail_next("DELETE", "/channels/", status=400)
    with pytest.raises(PostFailed, match="not deleted: Discord answered 400"):
        await poster.delete_thread(thread.id)


async def test_after_the_end_every_post_is_a_failed_one(poster: DiscordPoster, logged_in: Client) -> None:
    await logged_in.close()
    with pytest.raises(PostFailed, match="could not be reached"):
        await poster.send(5, "late", nonce="n1")
