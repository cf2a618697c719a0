"""An answer that waits for a person ends when somebody is forgotten whose words may stand in it, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assembly.forgetting import Privacy, team_files
from model.conversations import Conversation
from model.messages import Author, Message
from services.assistant.answering import AnswerResult
from services.conversations import DraftAction
from services.discord.protocols import PostFailed
from services.knowledge import Source
from services.llm import Usage
from services.privacy import ForgetResult, TeamData, forget_in_all_servers
from services.storage import DataFolder
from sinks.drafts import CHANGED_SINCE
from tests.contract.test_approval import ReviewChannel, begin, decide, drafts_of, held
from tests.contract.test_evidence import Stage
from tests.world import ANNA, BEN, BOOKS, BOT, CARA, HELP, TESS, Script, Shelf, Uploads, World, answer, thread

BENS = "my blorptang machine at the office always ends with code seventeen"
LOG = "\n".join(f"2026-02-16T00:00:{n:02} INFO web: request {n}" for n in range(30)) + f"\nERROR db: {BENS}\n"


@dataclass
class Parrot(Script):
    """Repeats what is in view: the thread, or what a file says."""

    async def generate(
        self, conversation: Conversation, query: str, sources: Sequence[Source], usage: Usage, **more: Any
    ) -> AnswerResult:
        toolset, said = more.get("toolset"), "\n".join(turn.text for turn in conversation.turns)
        if toolset is not None and toolset.tools:
            given = await toolset.tools[0].run({"question": query})
            said = given if isinstance(given, str) else given.text
        self.answers.append(answer(f"Said was:\n{said[:900]}", *(source.id for source in sources[:1])))
        return await super().generate(conversation, query, sources, usage, **more)


@pytest.fixture
def channel() -> ReviewChannel:
    return ReviewChannel()


async def forgotten(world: World, user: Author) -> ForgetResult:
    parts = world.parts
    settings = parts.servers[None].settings
    team = team_files(parts.servers).map(lambda each: each._replace(search=None))  # a scripted one has no copies
    privacy = Privacy(parts, team, world.documents, settings=settings)
    return await privacy.remove(user.id)


async def in_a_thread(world: World) -> int:
    """A thread in which Anna was answered. Returns its id."""
    await decide(world, await held(world), "post")
    await world.wait(30)
    return world.board.sent[-1].place_id


async def quoted(world: World) -> Message:
    """Ben says something to Cara, and what Anna asks there is answered with it."""
    place_id = await in_a_thread(world)
    cara = world.says(CARA, "I have that as well", where=place_id)
    world.says(BEN, BENS, where=place_id, to=cara)
    await world.wait(100)
    question = world.says(ANNA, "so what is it that he has?", where=place_id)
    await world.wait(100)
    return question


def ends_of(world: World) -> list[tuple[int, str]]:
    return [(end.part.last.id, str(end.reason)) for end in world.outcomes if end.ends_draft]


def holding(folder: Path, words: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words in path.read_text(errors="replace")]


TOPIC = "team:install.txt"
NAMED = "How do I install the lanternfish plugin? I am Ben Olsen, customer 4711-22"


class LiveShelf(Shelf):
    """Has the topic that the world's team library has now."""

    world: World | None = None

    async def load(self, source_id: str) -> Source:
        topics = "" if self.world is None else "".join(self.world.topics.values())
        return Source(source_id, topics) if source_id == TOPIC else await super().load(source_id)


@dataclass
class Reader(Script):
    """Tells who asked, as the topic says, and else repeats it."""

    async def generate(
        self, conversation: Conversation, query: str, sources: Sequence[Source], usage: Usage, **more: Any
    ) -> AnswerResult:
        read = "\n".join(source.text for source in sources)
        said = "Ben Olsen (customer 4711-22) was told to use setup." if "4711" in read else "Use setup."
        self.answers.append(answer(said, TOPIC))
        return await super().generate(conversation, query, sources, usage, **more)


async def taught(
    folder: Path, channel: ReviewChannel, approval: str, **seconds: float
) -> tuple[World, Message, Message]:
    """Ben was answered by the team, and that is a topic. Returns his message and the team's as well."""
    shelf = LiveShelf({**BOOKS, TOPIC: ""})
    world = await begin(folder, channel, approval, script=Reader(seconds=seconds), team=True, shelf=shelf)
    shelf.world = world
    asked = world.says(BEN, NAMED)
    await world.wait(20)
    said = world.says(TESS, "Download it from the release page, and run `setup --all` as an administrator.", to=asked)
    await world.wait(3000)
    world.script.picks = (TOPIC,)
    return world, asked, said


async def test_whoever_wrote_in_a_topic_that_was_read(tmp_path: Path, channel: ReviewChannel) -> None:
    world, _, _ = await taught(tmp_path, channel, "all")
    draft_id = await held(world, "Which way of setting it up works on a Mac?")
    assert "4711" in channel.last.answer
    await forgotten(world, BEN)
    await world.wait(5)
    assert ends_of(world) == [(draft_id, "deleted")]
    assert "4711" not in channel.last.answer
    assert holding(tmp_path / "data", "4711") == []
    assert await world.close()


@pytest.mark.parametrize("how", ["deleted by the asker", "deleted by the team", "edited by the team"])
async def test_what_was_taken_back_since_is_not_posted_but_as_edited(
    tmp_path: Path, channel: ReviewChannel, how: str
) -> None:
    world, asked, said = await taught(tmp_path, channel, "all")
    draft_id = await held(world, "Which way of setting it up works on a Mac?")
    if how.startswith("deleted"):
        world.deletes(asked if how.endswith("asker") else said)
    else:
        world.edits(said, "Download it from the release page and run `setup` as an administrator.")
    await world.wait(1200)
    assert await decide(world, draft_id, "post") == CHANGED_SINCE
    assert world.replies == []
    await decide(world, draft_id, "edit", "Use setup.")
    assert await decide(world, draft_id, "post") == "It is posted as edited."
    assert await world.close()


async def test_an_answer_that_is_being_written_from_their_topic_begins_again(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    world, _, _ = await taught(tmp_path, channel, "off", generate=30)
    world.says(ANNA, "Which way of setting it up works on a Mac?")
    await world.wait(75)
    await forgotten(world, BEN)
    await world.wait(200)
    assert world.replies[-1].startswith("Use setup.")
    assert await world.close()


async def test_whoever_wrote_in_the_thread(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel, script=Parrot())
    question = await quoted(world)
    assert BENS in channel.last.answer
    assert (await forgotten(world, BEN)).posts
    await world.wait(5)
    assert (question.id, "deleted") in ends_of(world)
    assert "is forgotten" in channel.last.heading
    assert "is forgotten" in await decide(world, question.id, "post")
    assert BENS not in f"{channel.cards}{world.replies}"
    assert not holding(tmp_path / "data", BENS)
    assert await world.close()


async def test_whoever_posted_a_file_that_was_read(tmp_path: Path, channel: ReviewChannel) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, channel, script=Parrot(), uploads=uploads)
    place_id = await in_a_thread(world)
    file = Stage(world, uploads).posts(BEN, "ben.log", LOG, where=place_id, text="here is mine")
    await world.wait(200)
    world.says(ANNA, "which line of ben.log says ERROR? see the log", where=place_id, to=file)
    await world.wait(200)
    assert BENS in channel.last.answer
    await forgotten(world, BEN)
    await world.wait(5)
    assert (drafts_of(world).waiting, BENS in f"{channel.cards}{world.replies}") == ([], False)
    assert not holding(DataFolder(tmp_path / "data").drafts, BENS)
    assert await world.close()


@pytest.mark.parametrize("who", [TESS.id, 999], ids=["first", "last"])
async def test_whoever_edited_it_even_if_somebody_else_has_since(
    tmp_path: Path, channel: ReviewChannel, who: int
) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    await decide(world, draft_id, "edit", BENS)
    await drafts_of(world).decide(draft_id, DraftAction.EDIT, 999, f"{BENS}!")
    await drafts_of(world).decide(draft_id, DraftAction.EDIT, 0, f"{BENS}!!", operator="ana")
    await forgotten(world, Author(who, ""))
    await world.wait(5)
    assert (drafts_of(world).waiting, world.story[1:]) == ([], ["cancelled: deleted"])
    assert not holding(DataFolder(tmp_path / "data").drafts, BENS)
    assert await world.close()


async def test_who_is_forgotten_while_the_bot_is_away(tmp_path: Path, channel: ReviewChannel) -> None:
    """The next start says so in the review channel, and the question has its end."""
    world = await begin(tmp_path, channel, script=Parrot())
    question = await quoted(world)
    await world.close()
    folder = DataFolder(tmp_path / "data")
    forget_in_all_servers(TeamData(folder, folder.team_raw), [], BEN.id, [])
    assert not holding(folder.drafts, BENS)
    world = await begin(tmp_path, channel)
    await world.wait(5)
    assert (question.id, "deleted") in ends_of(world)
    assert "is forgotten" in channel.last.heading
    assert BENS not in str(channel.cards)
    assert "is forgotten" in await decide(world, question.id, "post")
    assert world.replies == []
    assert await world.close()


async def test_whoever_was_not_in_view_ends_nothing(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    world.says(BEN, BENS, where=HELP)
    await world.wait(100)
    draft_id = await held(world)
    await forgotten(world, CARA)
    await world.wait(5)
    assert draft_id in [draft.id for draft in drafts_of(world).waiting]
    assert await world.close()


async def test_a_topic_that_gets_another_name_is_called_so_where_the_team_decides(
    tmp_path: Path, channel: ReviewChannel
) -> None:
    world = await begin(tmp_path, channel)
    draft_id = await held(world)
    (draft,) = drafts_of(world).waiting
    (old,) = draft.reply.post.sources
    drafts_of(world).rename_sources({old: "team:lamp.txt"})
    await world.wait(1)
    assert "Sources: team:lamp.txt" in channel.last.heading.replace("\\", "")
    await decide(world, draft_id, "edit", "Run it.")
    assert [each.reply.post.sources for each in drafts_of(world).waiting] == [("team:lamp.txt",)]
    assert await world.close()


async def test_a_card_that_discord_does_not_take_loses_its_texts_later(tmp_path: Path, channel: ReviewChannel) -> None:
    world = await begin(tmp_path, channel)
    await held(world)
    channel.refusal = PostFailed("Discord answered 500", is_passing=True)
    await forgotten(world, ANNA)
    await world.wait(5)
    assert "install" in str(channel.cards)
    await world.wait(8 * 86_400)
    await held(world, "How do I remove it?")  # which drops what has ended a week ago
    channel.refusal = None
    await world.wait(601)
    assert "How do I install" not in str(channel.cards)
    assert world.story == ["held: held for approval", "cancelled: deleted", "held: held for approval"]
    assert await world.close()


@pytest.mark.parametrize("how", ["delete", "edit"])
@pytest.mark.parametrize("approval", ["all", "off"])
async def test_what_others_take_back_is_not_posted_by_an_answer_that_waits_or_is_written(
    tmp_path: Path, channel: ReviewChannel, approval: str, how: str
) -> None:
    script = Parrot(seconds={"generate": 40.0})
    world = await begin(tmp_path, channel, script=script, approval=approval)
    world.opens(thread(555, owner=ANNA))
    theirs = world.says(BEN, f"I send it home, {BENS}.", where=555)
    await world.wait(200)
    asked = world.says(
        ANNA, "where do I send the device, where Ben does?", where=555, to=theirs, mentions=((BOT.id, "Millrace"),)
    )
    await world.wait(200 if approval == "all" else 80)
    assert "blorptang" in str(script.asked)
    if how == "delete":
        world.deletes(theirs)
    else:
        world.edits(theirs, "I send it home.")
    await world.wait(600)
    if approval == "all":
        assert await decide(world, asked.id, "post") == CHANGED_SINCE
        assert world.replies == []
    else:
        assert len(world.replies) == 1
        assert "blorptang" not in world.replies[0]
    assert await world.close()


@pytest.mark.parametrize("approval", ["all", "off"])
async def test_the_marker_in_an_edit_ends_an_answer_that_waits_or_is_written(
    tmp_path: Path, channel: ReviewChannel, approval: str
) -> None:
    world = await begin(tmp_path, channel, script=Parrot(seconds={"generate": 40.0}), approval=approval)
    asked = world.says(ANNA, "How do I install it?")
    await world.wait(200 if approval == "all" else 80)
    world.edits(asked, "How do I install it? !nobot")
    await world.wait(600)
    assert (world.replies, world.story[-1]) == ([], "cancelled: deleted")
    assert await world.close()
