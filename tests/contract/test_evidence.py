"""Files in conversations: read, looked things up in, and gone with their thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from assembly.forgetting import Privacy, TeamKnowledgeFiles
from assembly.slash_commands import EvidenceCommands, RunbookCommands
from clock import now
from model.events import Deleted, Edited, GuildGone, PlaceSeen
from model.messages import Author, Message, PlaceKind
from model.servers import Servers
from services.conversations import phrases
from services.discord.slash import Call, CommandRefused
from services.documents import FileRefused
from services.documents.store import protocol
from services.documents.store.protocol import Document, State, StoreUnavailable
from services.privacy import TeamData
from tests.contract.test_approval import REVIEW, ReviewChannel, decide
from tests.world import (
    ANNA,
    BEN,
    BOT,
    GUIDE,
    GUILD,
    HELP,
    ROBOT,
    TESS,
    Script,
    Uploads,
    World,
    answer,
    forum_post,
    thread,
)

LOG = "\n".join(
    [f"2026-02-16T00:00:{n:02} INFO  web: request {n} served" for n in range(30)]
    + ["2026-02-16T00:00:30 ERROR db: connection to 10.0.0.7 refused (E-1042)"]
    + [f"2026-02-16T00:00:{n:02} INFO  web: request {n} served" for n in range(31, 59)]
)
CASE_TOOL = "answer_from_case_evidence"


@dataclass
class Stage:
    """A world in which files are posted."""

    world: World
    uploads: Uploads
    over: bool = False

    def posts(
        self,
        author: Author,
        name: str,
        content: str | bytes = LOG,
        *,
        where: int = HELP,
        text: str = "",
        size: int | None = None,
    ) -> Message:
        """A message with a file; `size`: what is announced, where that is not true."""
        return self.world.says(author, text, where=where, attachments=(self.uploads.file(name, content, size),))

    async def asked(self, text: str = "which line says ERROR? see the log") -> Message:
        """A question with a log attached, answered in a thread of its own."""
        message = self.posts(ANNA, "app.log", text=text)
        await self.world.wait(120)
        return message

    async def asked_without(self) -> Message:
        """A question without a file, answered in a thread of its own."""
        question = self.world.says(ANNA, "how do I begin?")
        await self.world.wait(120)
        return question

    async def held(self, case_id: int) -> tuple[Document, ...]:
        assert self.world.documents is not None
        described = await self.world.documents.store.describe(protocol.case_collection(str(case_id)))
        return () if described is None else described.documents

    async def names(self, case_id: int) -> list[str]:
        return [doc.filename for doc in await self.held(case_id)]

    @property
    def commands(self) -> EvidenceCommands:
        assert self.world.documents is not None
        services = self.world.parts.services
        return EvidenceCommands(self.world.documents, services.history, services.viewing)

    async def close(self) -> None:
        if not self.over:
            self.over = True
            await self.world.close()


class Begin(Protocol):
    async def __call__(
        self, *, script: Script | None = ..., uploads: Uploads | None = ..., below: str = ..., **settings: Any
    ) -> Stage: ...


@pytest.fixture
async def begin(tmp_path: Path) -> AsyncIterator[Begin]:
    """Sets stages, and closes those that the test leaves open."""
    begun: list[Stage] = []

    async def start(
        *, script: Script | None = None, uploads: Uploads | None = None, below: str = "", **settings: Any
    ) -> Stage:
        uploads = uploads or Uploads()
        script = script or Script(picks=[])
        stage = Stage(await World.begin(tmp_path / below, uploads=uploads, script=script, **settings), uploads)
        begun.append(stage)
        return stage

    yield start
    for stage in begun:
        await stage.close()


def collections(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("case_*.sqlite"))


async def test_a_file_of_a_question_belongs_to_the_thread_that_the_answer_opens(begin: Begin) -> None:
    stage = await begin()
    world = stage.world
    question = await stage.asked()
    assert world.story == ["replied"]
    assert world.script.offered == [[CASE_TOOL, "query_file"]]
    assert "app.log:31" in world.script.found[0]
    assert world.script.told_files[0][0].startswith("app.log (")
    (document,) = await stage.held(question.id)
    assert (document.state, document.origin.uploader_id, document.origin.message_id) == (
        State.LEXICAL,
        ANNA.id,
        question.id,
    )
    assert "✅" in world.board.reactions


async def test_without_files_nothing_is_said_of_them_and_nothing_is_made(begin: Begin, tmp_path: Path) -> None:
    stage = await begin(script=Script())
    world = stage.world
    await stage.asked_without()
    assert world.story == ["replied"]
    assert (world.script.told_files, world.script.offered) == ([()], [])
    await stage.close()
    assert not collections(tmp_path)
    assert not (tmp_path / "data" / "evidence").exists()


async def test_files_are_left_alone_where_documents_are_switched_off(begin: Begin) -> None:
    stage = await begin(documents={"enabled": False})
    world, uploads = stage.world, stage.uploads
    await stage.asked()
    assert world.story == ["skipped: no sources"]
    assert not uploads.downloaded


async def test_a_citation_of_a_line_that_was_found_is_kept_and_others_are_not(begin: Begin) -> None:
    said = answer("It was refused.", "app.log:31 (00:00:30)", "app.log:99", "other.log:3", GUIDE)
    stage = await begin(script=Script(picks=[], answers=[said]))
    world = stage.world
    await stage.asked("what does the first ERROR in app.log say?")
    assert world.outcomes[0].sources == ("app.log:31", "app.log")


async def test_an_answer_from_files_needs_its_citation_as_well(begin: Begin) -> None:
    script = Script(picks=[], answers=[answer("It was refused.")])
    stage = await begin(script=script, ai_response={"require_citations": True})
    world = stage.world
    await stage.asked()
    assert world.story == ["skipped: no citation"]


async def test_verification_sees_what_was_found_in_files(begin: Begin) -> None:
    stage = await begin(ai_response={"enable_verification": True})
    world = stage.world
    await stage.asked()
    assert world.story == ["replied"]
    assert world.script.steps == ["gate", "select", "generate", "verify"]


async def test_files_that_follow_in_the_thread_are_read_as_they_come(begin: Begin) -> None:
    stage = await begin(script=Script())
    world = stage.world
    question = await stage.asked_without()
    stage.posts(BEN, "ben.log", where=question.id)
    stage.posts(ROBOT, "robot.log", where=question.id)
    await world.wait(1)
    assert await stage.names(question.id) == ["ben.log"]


async def test_elsewhere_files_are_nobodys_business(begin: Begin) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    world.opens(thread(77, owner=BEN))
    stage.posts(ANNA, "a.log", where=77)
    stage.posts(TESS, "b.log", text="look at this")
    await world.wait(120)
    assert not uploads.downloaded


async def test_the_files_of_a_forum_post_count_when_it_is_answered(begin: Begin) -> None:
    stage = await begin()
    world = stage.world
    world.opens(forum_post(88, ANNA))
    stage.posts(ANNA, "app.log", where=88, text="what does the first ERROR say?")
    await world.wait(120)
    assert world.story == ["replied"]
    assert await stage.names(88) == ["app.log"]


async def test_a_question_that_gets_no_answer_leaves_no_files(begin: Begin, tmp_path: Path) -> None:
    stage = await begin(script=Script(picks=[], answers=[answer(None)]))
    world, uploads = stage.world, stage.uploads
    await stage.asked()
    assert world.story == ["skipped: no answer in sources"]
    assert uploads.downloaded
    assert not collections(tmp_path)


async def test_an_answer_waits_for_its_files_and_no_longer_than_it_may(begin: Begin) -> None:
    stage = await begin(uploads=Uploads(seconds=5), discord={"message_batch_wait_seconds": 60})
    world, uploads = stage.world, stage.uploads
    stage.posts(ANNA, "app.log", text="which ERROR is in it?")
    await world.wait(64)
    assert not world.ends
    await world.wait(2)
    assert world.story == ["replied"]
    assert world.script.found
    uploads.seconds = 60
    stage.posts(BEN, "late.log", text="which ERROR is in it?")
    await world.wait(71)
    assert len(world.ends) == 2
    assert "still being indexed" in world.script.found[1] or "being read" in world.script.told_files[1][0]


async def test_a_file_that_cannot_be_read_disturbs_no_other_and_its_reason_is_told(begin: Begin) -> None:
    stage = await begin(script=Script())
    world, uploads = stage.world, stage.uploads
    question = await stage.asked_without()
    files = (
        uploads.file("setup.exe", b"MZ"),
        uploads.file("nul.log", b"a\0b" * 100),
        replace(uploads.file("gone.log", LOG), id=9),
        uploads.file("good.log", LOG),
    )
    world.says(ANNA, "", where=question.id, attachments=files)
    await world.wait(1)
    documents = {doc.filename: doc for doc in await stage.held(question.id)}
    assert {name: doc.state for name, doc in documents.items()} == {
        "setup.exe": State.FAILED,
        "nul.log": State.FAILED,
        "gone.log": State.FAILED,
        "good.log": State.LEXICAL,
    }
    (told,) = world.board.sent[1:]
    lines = told.text.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("⚠️")
    assert "a program" in lines[0]
    assert "could not be downloaded" in lines[2]
    assert told.reply_to is None
    assert world.board.reactions == ["⚠️", "✅"]


async def test_large_files_are_said_to_take_a_while(begin: Begin) -> None:
    stage = await begin(uploads=Uploads(seconds=3), script=Script())
    world, uploads = stage.world, stage.uploads
    question = await stage.asked_without()
    big = uploads.file("big.txt", "all is well\n" * 100_000)
    world.says(ANNA, "", where=question.id, attachments=(big,))
    await world.wait(1)
    assert world.board.reactions == ["⏳"]
    await world.wait(5)
    assert world.board.reactions == ["✅"]


async def test_pictures_are_left_to_those_who_look_at_pictures(begin: Begin) -> None:
    stage = await begin(script=Script())
    world, uploads = stage.world, stage.uploads
    question = await stage.asked_without()
    stage.posts(ANNA, "screen.png", b"\x89PNG", where=question.id)
    await world.wait(1)
    assert not uploads.downloaded
    assert not world.board.reactions


@pytest.mark.parametrize("how", ["locked", "solved", "deleted", "parent", "guild"])
async def test_the_files_of_a_closed_thread_are_gone_from_disk_at_once(begin: Begin, tmp_path: Path, how: str) -> None:
    stage = await begin()
    world = stage.world
    question = await stage.asked()
    assert collections(tmp_path) == [f"case_{question.id}.sqlite"]
    place = world.parts.services.history.place(question.id)
    match how:
        case "locked":
            world.opens(replace(place, locked=True))
        case "solved":
            world.opens(replace(place, tags=("Linux", " Solved ")))
        case "deleted":
            world.closes(question.id)
        case "parent":
            world.closes(HELP)
        case _:
            world.happens(GuildGone(0.0, GUILD))
    await world.wait(1)
    assert not collections(tmp_path)
    assert not list((tmp_path / "data" / "evidence").iterdir())


async def test_another_guilds_end_is_not_this_ones(begin: Begin, tmp_path: Path) -> None:
    stage = await begin()
    world = stage.world
    await stage.asked()
    world.happens(GuildGone(0.0, GUILD + 1))
    await world.wait(1)
    assert collections(tmp_path)


async def test_an_archived_thread_keeps_its_files_for_a_day_and_longer_when_it_is_reopened(
    begin: Begin, tmp_path: Path
) -> None:
    stage = await begin()
    world = stage.world
    question = await stage.asked()
    place = world.parts.services.history.place(question.id)
    world.opens(replace(place, archived=True))
    await world.wait(23 * 3600)
    world.opens(place)
    await world.wait(2 * 3600)
    assert collections(tmp_path)
    world.opens(replace(place, archived=True))
    await world.wait(24 * 3600 + 1)
    assert not collections(tmp_path)


async def test_closing_calls_off_what_is_under_way_and_nothing_comes_back(begin: Begin, tmp_path: Path) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    question = await stage.asked()
    uploads.seconds = 10
    stage.posts(ANNA, "late.log", where=question.id)
    await world.wait(1)
    place = world.parts.services.history.place(question.id)
    world.opens(replace(place, locked=True))
    await world.wait(30)
    assert not collections(tmp_path)
    stage.posts(ANNA, "more.log", where=question.id)
    await world.wait(30)
    assert not collections(tmp_path)


async def test_a_deleted_message_takes_its_files_along(begin: Begin) -> None:
    stage = await begin()
    world = stage.world
    question = await stage.asked()
    more = stage.posts(ANNA, "more.log", LOG + "\n!", where=question.id)
    await world.wait(1)
    world.happens(Deleted(0.0, question.id, (more.id,)))
    await world.wait(1)
    assert await stage.names(question.id) == ["app.log"]
    world.happens(Deleted(0.0, HELP, (question.id,)))
    await world.wait(1)
    assert await stage.held(question.id) == ()


async def test_files_of_people_who_opted_out_are_not_read(begin: Begin) -> None:
    stage = await begin(script=Script())
    world, uploads = stage.world, stage.uploads
    question = await stage.asked_without()
    stage.posts(BEN, "ben.log", where=question.id, text="!nobot")
    await world.parts.state.opt_outs.add(ANNA.id)
    stage.posts(ANNA, "anna.log", where=question.id)
    await world.wait(1)
    assert not uploads.downloaded


async def test_the_marker_that_is_edited_in_takes_the_files_along(begin: Begin) -> None:
    stage = await begin()
    question = await stage.asked()
    more = stage.posts(ANNA, "more.log", LOG + "\n!", where=question.id)
    await stage.world.wait(1)
    assert await stage.names(question.id) == ["app.log", "more.log"]
    stage.world.edits(more, "here is more !nobot")
    await stage.world.wait(1)
    assert await stage.names(question.id) == ["app.log"]


async def test_long_code_blocks_count_where_that_is_wanted(begin: Begin, tmp_path: Path) -> None:
    block = "which ERROR is it?\n```log\n" + LOG + "\n```\nand\n```py\nshort = 1\n```"
    stage = await begin(documents={"code_blocks": True})
    question = stage.world.says(ANNA, block)
    await stage.world.wait(120)
    (document,) = await stage.held(question.id)
    assert document.filename == f"message-{question.id}-block-1.log"
    assert document.n_lines == 59
    other = await begin(below="off")
    other.world.says(ANNA, block)
    await other.world.wait(120)
    assert not collections(tmp_path / "off")


async def test_code_blocks_stay_until_one_is_edited(begin: Begin) -> None:
    """Discord reports an edit when it adds the preview of a link, too."""
    stage = await begin(documents={"code_blocks": True})
    world = stage.world
    text = "which ERROR is it? See https://example.org\n```log\n" + LOG + "\n```"
    question = world.says(ANNA, text)
    await world.wait(120)
    for edited in (text, text.replace("See", "see")):
        world.happens(Edited(now(), HELP, question.id, edited, ()))
        await world.wait(60)
        assert await stage.names(question.id) == [f"message-{question.id}-block-1.log"]
    world.happens(Edited(now(), HELP, question.id, text.replace("ERROR", "error"), ()))
    await world.wait(60)
    assert await stage.names(question.id) == []


async def test_a_thread_holds_so_many_files_and_the_next_one_is_told_so(begin: Begin) -> None:
    stage = await begin(script=Script(), documents={"max_files_per_thread": 2})
    world = stage.world
    question = await stage.asked_without()
    for n in range(3):
        stage.posts(ANNA, f"{n}.log", f"{LOG}\n{n}", where=question.id)
    await world.wait(1)
    states = [doc.state for doc in await stage.held(question.id)]
    assert states == [State.LEXICAL, State.LEXICAL, State.FAILED]
    assert "2 is the most" in world.board.sent[-1].text


@pytest.mark.parametrize("by", ["bot", "post", "stranger"])
async def test_only_the_opener_of_a_thread_may_fill_it(begin: Begin, by: str) -> None:
    """Pitfall 64: nobody who passes by keeps the asker's files out, also if they opened a thread on the question."""
    stage = await begin(script=Script(), documents={"max_files_per_thread": 4})
    world = stage.world
    if by == "post":
        world.opens(forum_post(88, ANNA))
        stage.posts(ANNA, "asked.log", where=88, text="which ERROR is it?")
        await world.wait(120)
        thread_id = 88
    elif by == "stranger":
        thread_id = stage.posts(ANNA, "app.log", text="which line says ERROR? see the log").id
        await world.wait(5)
        world.opens(thread(thread_id, owner=BEN))
        await world.wait(115)
    else:
        thread_id = (await stage.asked()).id
    for n in range(3):
        stage.posts(BEN, f"junk-{n}.log", f"{LOG}\n{n}", where=thread_id)
    for n in range(2):
        stage.posts(ANNA, f"app-{n}.log", f"{LOG}\n\n{n}", where=thread_id)
    await world.wait(1)
    states = {doc.filename: doc.state.searchable for doc in (await stage.held(thread_id))[1:]}
    assert states == {
        "junk-0.log": True,
        "junk-1.log": True,
        "junk-2.log": False,
        "app-0.log": True,
        "app-1.log": False,
    }


async def test_after_a_restart_the_files_are_there_and_are_not_read_twice(begin: Begin) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    world.opens(forum_post(88, ANNA))
    first = stage.posts(ANNA, "app.log", where=88, text="which ERROR is it?")
    await world.wait(120)
    await stage.close()
    again = (await begin(uploads=uploads)).world
    again.opens(forum_post(88, ANNA))
    again.delivers(first)
    await again.wait(120)
    assert uploads.downloaded == [first.attachments[0].id]
    assert again.script.offered == [[CASE_TOOL, "query_file"]]


async def test_two_runs_read_the_same_and_say_the_same(begin: Begin) -> None:
    stories: list[list[str]] = []
    for run in ("one", "two"):
        stage = await begin(below=run)
        world = stage.world
        files = tuple(stage.uploads.file(f"{n}.log", f"{LOG}\n{n}") for n in range(4))
        world.says(ANNA, "which ERROR is it?", attachments=files)
        await world.wait(120)
        stories.append([*world.script.found, *world.replies, *world.script.told_files[0]])
        await stage.close()
    assert [text.replace("/one/", "/two/") for text in stories[0]] == stories[1]


async def test_a_thread_that_the_bot_only_watches_is_left_alone(begin: Begin) -> None:
    stage = await begin()
    world = stage.world
    world.happens(PlaceSeen(0.0, replace(thread(66, owner=BEN), kind=PlaceKind.THREAD, locked=True)))
    world.happens(Deleted(0.0, 66, (1,)))
    world.closes(66)
    await asyncio.sleep(1)
    assert not world.ends
    assert world.parts.services.people.is_bot_itself(BOT)


async def test_files_that_all_turn_out_unreadable_leave_the_answer_without_sources(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away, so that there is not even a file to speak of."""
    stage = await begin()
    world = stage.world

    async def never(*_: object) -> bool:
        return False

    monkeypatch.setattr("services.documents.tools.core.DocumentQATool.is_available", never)
    await stage.asked()
    assert world.story == ["skipped: no sources"]
    world.script.picks = [GUIDE]
    stage.posts(BEN, "b.log", text="which ERROR is it, see the log?")
    await world.wait(120)
    assert world.story[1] == "replied"
    assert not world.script.offered


async def test_what_an_answer_cites_or_quotes_of_a_file_and_is_not_there_is_marked_where_people_read_it(
    begin: Begin,
) -> None:
    """The rule of document tools, of the answer itself."""
    said = (
        'app.log:31 says "connection to 10.0.0.7 refused". app.log:99 says "disk is on fire", as does secret.log:3 '
        "and line 4711."
    )
    stage = await begin(script=Script(picks=[], answers=[answer(said, "app.log:31")]))
    world = stage.world
    await stage.asked("what does the first ERROR in app.log say?")
    (sent,) = [each.text for each in world.board.sent]
    assert 'app.log:31 says "connection to 10.0.0.7 refused".' in sent
    assert '"disk is on fire" (unverified)' in sent
    assert not any(made_up in sent for made_up in ("app.log:99", "secret.log:3", "4711"))


async def test_a_file_that_is_larger_than_announced_passes_no_limit(begin: Begin) -> None:
    stage = await begin(documents={"max_thread_bytes": len(LOG) + 10})
    world = stage.world
    question = await stage.asked()
    stage.posts(ANNA, "more.log", "x" * 100, size=5, where=question.id)
    await world.wait(1)
    assert [(doc.filename, doc.state) for doc in await stage.held(question.id)] == [
        ("app.log", State.LEXICAL),
        ("more.log", State.FAILED),
    ]


async def test_no_more_is_taken_in_than_the_disk_may_hold(begin: Begin) -> None:
    """Each thread has its own limit, and one person may open many threads."""
    stage = await begin(documents={"max_disk_bytes": 10_000_000})
    question = await stage.asked()
    other = stage.world.parts.state.folder.chroma_copies
    other.mkdir()
    (other / "other").write_bytes(b"x" * 10_000_000)
    stage.posts(ANNA, "more.log", f"{LOG} more", where=question.id)
    await stage.world.wait(1)
    assert [(doc.filename, doc.state.searchable) for doc in await stage.held(question.id)] == [
        ("app.log", True),
        ("more.log", False),
    ]
    assert any("more.log could not be kept just now" in each.text for each in stage.world.board.sent)
    assert stage.world.documents is not None
    with pytest.raises(StoreUnavailable, match="max_disk_bytes"):
        await stage.world.documents.runbooks.add(BEN.id, "notes.md", b"# Notes", "Notes")


async def test_pitfall_64_one_person_takes_a_part_of_the_disk_and_leaves_the_rest_to_others(begin: Begin) -> None:
    """20 people can take all of it; a runbook counts, and so does a file in a thread, also in somebody else's."""
    stage = await begin(documents={"max_disk_bytes": 20 * 50_000})
    question = await stage.asked()
    downloaded = len(stage.uploads.downloaded)
    stage.posts(ANNA, "more.log", f"{LOG} more", where=question.id)
    await stage.world.wait(1)
    said = "more.log was not read: your files and runbooks take "
    assert any(said in each.text and "one person's may take 49 KiB" in each.text for each in stage.world.board.sent)
    assert len(stage.uploads.downloaded) == downloaded
    assert stage.world.documents is not None
    runbooks = stage.world.documents.runbooks
    with pytest.raises(FileRefused, match="your_part_is_full"):
        await runbooks.add(ANNA.id, "notes.md", b"# Notes", "Notes")
    stage.posts(BEN, "ben.log", f"{LOG} ben", where=question.id)
    await stage.world.wait(1)
    assert [doc.filename for doc in await stage.held(question.id) if doc.state.searchable] == ["app.log", "ben.log"]
    await stage.commands.delete(call(ANNA, question.id), "app.log")
    await runbooks.add(ANNA.id, "notes.md", b"# Notes", "Notes")


async def test_pitfall_64_files_of_one_person_keep_those_of_others_waiting_for_one(begin: Begin) -> None:
    stage = await begin()
    stage.uploads.seconds = 50
    for thread_id in range(70, 100):
        stage.world.opens(thread(thread_id))
        stage.posts(BEN, f"{thread_id}.log", where=thread_id)
    stage.world.opens(thread(200))
    mine = stage.posts(ANNA, "mine.log", where=200)
    await stage.world.wait(60)
    assert stage.uploads.downloaded[:2] == [1000, mine.attachments[0].id]
    assert [(doc.filename, doc.state.searchable) for doc in await stage.held(200)] == [("mine.log", True)]
    assert len(stage.uploads.downloaded) == 3


async def test_pitfall_64_runbooks_of_one_person_are_downloaded_one_at_a_time_and_few_wait(begin: Begin) -> None:
    stage = await begin()
    assert stage.world.documents is not None
    commands, uploads = RunbookCommands(stage.world.documents.runbooks, stage.uploads), stage.uploads
    uploads.seconds = 50

    def add(by: Author, name: str) -> asyncio.Task[str]:
        return asyncio.create_task(commands.add(call(by, HELP), uploads.file(name, f"# {name}"), None, None))

    adding = [add(BEN, f"{number}.md") for number in range(5)]
    hers = add(ANNA, "hers.md")
    await asyncio.sleep(10)
    assert uploads.downloaded == [1000, 1005]
    for refused in adding[3:]:
        with pytest.raises(CommandRefused, match="still being read"):
            await refused
    assert "Kept" in await hers
    assert all("Kept" in told for told in await asyncio.gather(*adding[:3]))
    assert "Kept" in await add(BEN, "later.md")


def call(by: Author, place_id: int, *, moderator: bool = False) -> Call:
    return Call(1, by.id, GUILD, place_id, moderator, can_view=True)


async def test_a_file_that_is_deleted_while_it_is_read_does_not_come_back(begin: Begin) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    question = await stage.asked()
    uploads.seconds = 10
    stage.posts(ANNA, "late.log", LOG + "\n!", where=question.id)
    await world.wait(1)
    assert "Forgotten" in await stage.commands.delete(call(ANNA, question.id), "late.log")
    await world.wait(30)
    assert [doc.filename for doc in await stage.held(question.id) if doc.state is not State.FAILED] == ["app.log"]


async def test_forgetting_a_person_takes_what_is_being_read_of_theirs(begin: Begin) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    question = await stage.asked()
    stage.posts(BEN, "ben.log", LOG + "\n?", where=question.id)
    await world.wait(1)
    uploads.seconds = 10
    stage.posts(ANNA, "late.log", LOG + "\n!", where=question.id)
    await world.wait(1)
    assert world.documents is not None
    assert await world.documents.forget(ANNA.id) == (2, 0)
    await world.wait(30)
    assert await stage.names(question.id) == ["ben.log"]


async def test_opting_out_stops_what_is_being_read_and_leaves_the_rest(begin: Begin, tmp_path: Path) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    question = await stage.asked()
    uploads.seconds = 10
    stage.posts(ANNA, "late.log", LOG + "\n!", where=question.id)
    await world.wait(1)
    taught = TeamKnowledgeFiles(TeamData(world.parts.state.folder, tmp_path / "raw"))
    await Privacy(world.parts, Servers({None: taught}), world.documents).opt_out(call(ANNA, question.id))
    await world.wait(30)
    assert await stage.names(question.id) == ["app.log"]


@pytest.mark.parametrize("how", ["delete", "forget"])
async def test_answers_from_a_file_are_forgotten_with_it(begin: Begin, how: str) -> None:
    stage = await begin()
    question = await stage.asked()
    documents = stage.world.documents
    assert documents is not None
    cache = documents.answers
    assert len(cache) == 1
    if how == "delete":
        await stage.commands.delete(call(ANNA, question.id), "app.log")
    else:
        await documents.forget(ANNA.id)
    assert len(cache) == 0


async def test_anothers_file_of_the_same_name_keeps_nobody_from_deleting_their_own(begin: Begin) -> None:
    stage = await begin()
    world = stage.world
    question = await stage.asked()
    stage.posts(BEN, "app.log", LOG + "\n!", where=question.id)
    await world.wait(1)
    commands = stage.commands
    hers, others = (await commands.list(call(ANNA, question.id))).splitlines()[1:]
    assert (hers.split(" ")[1], str(BEN.id) in hers) == ("app.log", False)
    assert (others.split(" ")[1], f"<@{BEN.id}>" in others) == ("app-2.log", True)
    with pytest.raises(CommandRefused, match="Only whoever posted"):
        await commands.delete(call(ANNA, question.id), "app-2.log")
    with pytest.raises(CommandRefused, match="Only whoever posted"):
        await commands.delete(call(TESS, question.id), "app.log")
    assert "Forgotten" in await commands.delete(call(ANNA, question.id), "app.log")
    left = [doc.origin.uploader_id for doc in await stage.held(question.id) if doc.state is not State.FAILED]
    assert left == [BEN.id]
    assert "Forgotten" in await commands.delete(call(TESS, question.id, moderator=True), "app.log")


async def test_a_long_name_can_be_given_as_it_is_listed(begin: Begin, tmp_path: Path) -> None:
    stage = await begin()
    world = stage.world
    name = "very-" * 30 + "long.log"
    stage.posts(ANNA, name, text="which line says ERROR? see the log")
    await world.wait(120)
    (case_id,) = [int(file.removeprefix("case_").removesuffix(".sqlite")) for file in collections(tmp_path)]
    assert "Forgotten" in await stage.commands.delete(call(ANNA, case_id), f"{name[:79]}…")


@pytest.mark.parametrize("how", ["message", "forget", "opt-out", "delete", "moderator"])
async def test_a_file_that_two_have_posted_stays_until_the_last_of_them_takes_it_back(begin: Begin, how: str) -> None:
    stage = await begin()
    world = stage.world
    question = await stage.asked()
    again = stage.posts(BEN, "app.log", where=question.id)
    await world.wait(1)
    (document,) = await stage.held(question.id)
    assert [origin.uploader_id for origin in document.origins] == [ANNA.id, BEN.id]
    assert world.documents is not None
    match how:
        case "message":
            world.happens(Deleted(0.0, HELP, (question.id,)))
        case "forget":
            assert await world.documents.forget(ANNA.id) == (1, 0)
        case "opt-out":
            await world.documents.stop_reading_of(BEN.id)
        case "delete":  # else whoever posts a copy of a file could take it from the others
            await stage.commands.delete(call(BEN, question.id), "app.log")
        case _:
            await stage.commands.delete(call(BEN, question.id, moderator=True), "app.log")
    await world.wait(1)
    left = [doc for doc in await stage.held(question.id) if doc.state is not State.FAILED]
    expected = {"message": [[BEN.id]], "forget": [[BEN.id]], "opt-out": [[ANNA.id, BEN.id]]}
    expected |= {"delete": [[ANNA.id]], "moderator": []}
    assert [[origin.uploader_id for origin in doc.origins] for doc in left] == expected[how]
    if how == "message":
        world.happens(Deleted(0.0, question.id, (again.id,)))
        await world.wait(1)
        assert await stage.held(question.id) == ()


async def test_the_same_file_again_takes_no_room(begin: Begin) -> None:
    stage = await begin(documents={"max_files_per_thread": 1})
    question = await stage.asked()
    stage.posts(BEN, "app.log", where=question.id)
    await stage.world.wait(1)
    assert [doc.state for doc in await stage.held(question.id)] == [State.LEXICAL]
    # As long as the other, and not it.
    stage.posts(BEN, "app.log", LOG.replace("E-1042", "E-1043"), where=question.id)
    await stage.world.wait(1)
    assert [doc.state for doc in await stage.held(question.id)] == [State.LEXICAL, State.FAILED]


async def test_what_somebody_had_forgotten_stays_so_when_the_thread_is_reopened(begin: Begin, tmp_path: Path) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    world.opens(forum_post(88, ANNA))
    first = stage.posts(ANNA, "app.log", where=88, text="what does the first ERROR say?")
    await world.wait(120)
    await stage.commands.delete(call(ANNA, 88), "app.log")
    world.opens(replace(forum_post(88, ANNA), locked=True))
    await world.wait(1)
    assert not collections(tmp_path)
    world.opens(forum_post(88, ANNA))
    world.says(ANNA, "and the last ERROR, what does it say?", where=88)
    await world.wait(120)
    assert uploads.downloaded == [first.attachments[0].id]
    assert "no files of this thread" in await stage.commands.list(call(ANNA, 88))
    kept = (tmp_path / "data" / "state" / "gone-files.json").read_text()
    assert str(first.attachments[0].id) in kept
    assert "app.log" not in kept
    # Nothing was lost by the closing, so that nobody is told to post anything.
    assert phrases("en").post_again not in [sent.text for sent in world.board.sent]
    await stage.close()
    again = await begin(uploads=uploads)
    again.world.opens(forum_post(88, ANNA))
    again.world.says(ANNA, "what was in the log?", where=88)
    again.world.delivers(first)
    await again.world.wait(120)
    assert uploads.downloaded == [first.attachments[0].id]
    # It can be posted again, on purpose.
    again.posts(ANNA, "app.log", where=88, text="what does the first ERROR say?")
    await again.world.wait(120)
    assert await again.names(88) == ["app.log"]


async def test_a_reopened_thread_is_told_once_that_its_files_have_to_be_posted_again(begin: Begin) -> None:
    stage = await begin()
    world, uploads = stage.world, stage.uploads
    question = await stage.asked()
    place = world.parts.services.history.place(question.id)
    world.opens(replace(place, locked=True))
    await world.wait(1)
    for _ in range(2):
        world.opens(place)
        await world.wait(1)
    told = [sent for sent in world.board.sent if sent.text == phrases("en").post_again]
    assert [sent.place_id for sent in told] == [question.id]
    world.says(ANNA, "what does the first ERROR say?", where=question.id)
    await world.wait(120)
    assert len(uploads.downloaded) == 1
    stage.posts(ANNA, "app.log", where=question.id)
    await world.wait(1)
    assert await stage.names(question.id) == ["app.log"]


async def test_a_deleted_message_is_no_longer_remembered_as_having_brought_a_removed_file(
    begin: Begin, tmp_path: Path
) -> None:
    stage = await begin()
    question = await stage.asked()
    await stage.commands.delete(call(ANNA, question.id), "app.log")
    kept = tmp_path / "data" / "state" / "gone-files.json"
    assert str(question.id) in kept.read_text()
    stage.world.happens(Deleted(0.0, HELP, (question.id,)))
    await stage.world.wait(1)
    assert str(question.id) not in kept.read_text()


@pytest.mark.parametrize("others", [False, True], ids=["removed from the question", "deleted with another's message"])
async def test_an_answer_from_a_file_that_is_deleted_while_it_waits_is_not_posted(
    begin: Begin, *, others: bool
) -> None:
    quoting = answer("Line 31 says: ERROR db: connection to 10.0.0.7 refused (E-1042)", "app.log:31")
    stage = await begin(
        script=Script(picks=[], answers=[quoting]),
        durable=True,
        reviews=(channel := ReviewChannel()),
        ai_response={"approval": "all", "approval_minutes": 1440},
        discord={"review_channel_id": REVIEW},
    )
    world = stage.world
    world.opens(forum_post(88, ANNA))
    question = "which line of app.log says ERROR?"
    posted = stage.posts(BEN if others else ANNA, "app.log", where=88, text="mine" if others else question)
    await world.wait(120)
    asked = world.says(ANNA, question, where=88) if others else posted
    await world.wait(120)
    draft = world.parts.services.drafts.find(asked.id)
    assert draft is not None
    assert "E-1042" in channel.last.texts[-1]
    if others:
        world.deletes(posted)
    else:
        world.happens(Edited(posted.at, 88, posted.id, question, ()))
    await world.wait(3600)
    told = await decide(world, asked.id, "post")
    assert told == "The question is gone, or a file that the answer is from, so nothing is posted."
    assert [world.replies, world.story[-1]] == [[], "cancelled: deleted"]


@pytest.mark.parametrize("approval", ["all", "off"])
async def test_a_runbook_that_is_made_private_while_the_answer_waits_or_is_written_is_not_shown(
    begin: Begin, approval: str
) -> None:
    channel = ReviewChannel()
    stage = await begin(
        script=Script(
            picks=[], seconds={"generate": 40}, answers=[answer("Your runbook says: it hangs at door 7.", "mine.md")]
        ),
        reviews=channel,
        durable=True,
        ai_response={"approval": approval, "approval_minutes": 1440},
        discord={"review_channel_id": REVIEW},
    )
    world = stage.world
    assert world.documents is not None
    commands = RunbookCommands(world.documents.runbooks, stage.uploads)
    runbook = stage.uploads.file("mine.md", "# Spare key\n\nThe spare key hangs at door 7.")
    await commands.add(call(ANNA, HELP), runbook, None, None)
    await commands.show_in_threads(call(ANNA, HELP), "thread")
    await world.wait(60)
    asked = world.says(ANNA, f"<@{BOT.id}> where does the spare key hang?", mentions=((BOT.id, "Millrace"),))
    await world.wait(3600 if approval == "all" else 80)
    assert "generate" in world.script.steps
    await commands.show_in_threads(call(ANNA, HELP), "private")
    await world.wait(3600)
    if approval == "all":
        assert "door 7" in channel.last.texts[-1]
        told = await decide(world, asked.id, "post")
        assert told == "The question is gone, or a file that the answer is from, so nothing is posted."
    assert [world.replies, world.story[-1]] == [[], "cancelled: deleted"]
