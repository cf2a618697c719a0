"""Files in conversations: read, looked things up in, and gone with their thread."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import documents as documents_module
from commands.file_commands import EvidenceCommands
from commands.privacy import Privacy
from model.events import Deleted, GuildGone, PlaceSeen
from model.messages import Author, Message, PlaceKind
from services.discord_commands.calls import Call, CommandRefused
from services.documents.store import naming
from services.documents.store.protocol import Document, State
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


@pytest.fixture(autouse=True)
def by_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged model has its own tests; here it would only take time."""
    monkeypatch.setattr(documents_module, "installed", lambda: False)


async def begin(folder: Path, uploads: Uploads, **kwargs: Any) -> World:
    script = kwargs.pop("script", None) or Script(picks=[])
    return await World.begin(folder, uploads=uploads, script=script, **kwargs)


async def held(world: World, case_id: int) -> tuple[Document, ...]:
    assert world.documents is not None
    described = await world.documents.store.describe(naming.case(str(case_id)))
    return () if described is None else described.documents


def collections(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("case_*.sqlite"))


async def answered_with(world: World, uploads: Uploads, text: str = "which line says ERROR? see the log") -> Message:
    """A question with a log attached, answered in a thread of its own."""
    message = world.says(ANNA, text, attachments=(uploads.file("app.log", LOG),))
    await world.wait(120)
    return message


async def test_a_file_of_a_question_belongs_to_the_thread_that_the_answer_opens(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    assert world.story == ["replied"]
    assert world.script.offered == [[CASE_TOOL]]
    assert "app.log:31" in world.script.found[0]
    assert world.script.told_files[0][0].startswith("app.log (")
    (document,) = await held(world, question.id)
    assert (document.state, document.origin.uploader_id, document.origin.message_id) == (
        State.LEXICAL,
        ANNA.id,
        question.id,
    )
    assert "✅" in world.board.reactions
    await world.close()


async def test_without_files_nothing_is_said_of_them_and_nothing_is_made(tmp_path: Path) -> None:
    world = await begin(tmp_path, Uploads(), script=Script())
    world.says(ANNA, "how do I begin?")
    await world.wait(120)
    assert world.story == ["replied"]
    assert (world.script.told_files, world.script.offered) == ([()], [])
    await world.close()
    assert not collections(tmp_path)
    assert not (tmp_path / "data" / "evidence").exists()


async def test_files_are_left_alone_where_documents_are_switched_off(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, documents={"enabled": False})
    await answered_with(world, uploads)
    assert world.story == ["skipped: no sources"]
    assert not uploads.downloaded
    await world.close()


async def test_a_citation_of_a_line_that_was_found_is_kept_and_others_are_not(tmp_path: Path) -> None:
    uploads = Uploads()
    said = answer("It was refused.", "app.log:31 (00:00:30)", "app.log:99", "other.log:3", GUIDE)
    world = await begin(tmp_path, uploads, script=Script(picks=[], answers=[said]))
    await answered_with(world, uploads, "what does the first ERROR in app.log say?")
    assert world.outcomes[0].sources == ("app.log:31", "app.log")
    await world.close()


async def test_an_answer_from_files_needs_its_citation_as_well(tmp_path: Path) -> None:
    uploads = Uploads()
    script = Script(picks=[], answers=[answer("It was refused.")])
    world = await begin(tmp_path, uploads, script=script, ai_response={"require_citations": True})
    await answered_with(world, uploads)
    assert world.story == ["skipped: no citation"]
    await world.close()


async def test_verification_sees_what_was_found_in_files(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, ai_response={"enable_verification": True})
    await answered_with(world, uploads)
    assert world.story == ["replied"]
    assert world.script.steps == ["gate", "select", "generate", "verify"]
    await world.close()


async def test_files_that_follow_in_the_thread_are_read_as_they_come(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, script=Script())
    question = world.says(ANNA, "how do I begin?")
    await world.wait(120)
    world.says(BEN, "", where=question.id, attachments=(uploads.file("ben.log", LOG),))
    world.says(ROBOT, "", where=question.id, attachments=(uploads.file("robot.log", LOG),))
    await world.wait(1)
    assert [doc.filename for doc in await held(world, question.id)] == ["ben.log"]
    await world.close()


async def test_elsewhere_files_are_nobodys_business(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    world.opens(thread(77, owner=BEN))
    world.says(ANNA, "", where=77, attachments=(uploads.file("a.log", LOG),))
    world.says(TESS, "look at this", attachments=(uploads.file("b.log", LOG),))
    await world.wait(120)
    assert not uploads.downloaded
    await world.close()


async def test_the_files_of_a_forum_post_count_when_it_is_answered(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    world.opens(forum_post(88, ANNA))
    world.says(ANNA, "what does the first ERROR say?", where=88, attachments=(uploads.file("app.log", LOG),))
    await world.wait(120)
    assert world.story == ["replied"]
    assert [doc.filename for doc in await held(world, 88)] == ["app.log"]
    await world.close()


async def test_a_question_that_gets_no_answer_leaves_no_files(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, script=Script(picks=[], answers=[answer(None)]))
    await answered_with(world, uploads)
    assert world.story == ["skipped: no answer in sources"]
    assert uploads.downloaded
    assert not collections(tmp_path)
    await world.close()


async def test_an_answer_waits_for_its_files_and_no_longer_than_it_may(tmp_path: Path) -> None:
    uploads = Uploads(seconds=5)
    world = await begin(tmp_path, uploads, discord={"message_batch_wait_seconds": 60})
    world.says(ANNA, "which ERROR is in it?", attachments=(uploads.file("app.log", LOG),))
    await world.wait(64)
    assert not world.ends
    await world.wait(2)
    assert world.story == ["replied"]
    assert world.script.found
    uploads.seconds = 60
    world.says(BEN, "which ERROR is in it?", attachments=(uploads.file("late.log", LOG),))
    await world.wait(71)
    assert len(world.ends) == 2
    assert "still being indexed" in world.script.found[1] or "being read" in world.script.told_files[1][0]
    await world.close()


async def test_a_file_that_cannot_be_read_disturbs_no_other_and_its_reason_is_told(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, script=Script())
    question = world.says(ANNA, "how do I begin?")
    await world.wait(120)
    files = (
        uploads.file("setup.exe", b"MZ"),
        uploads.file("nul.log", b"a\0b" * 100),
        replace(uploads.file("gone.log", LOG), id=9),
        uploads.file("good.log", LOG),
    )
    world.says(ANNA, "", where=question.id, attachments=files)
    await world.wait(1)
    documents = {doc.filename: doc for doc in await held(world, question.id)}
    assert {name: doc.state for name, doc in documents.items()} == {
        "setup.exe": State.FAILED,
        "nul.log": State.FAILED,
        "gone.log": State.FAILED,
        "good.log": State.LEXICAL,
    }
    told = [sent.text for sent in world.board.sent[1:]]
    assert len(told) == 3
    assert all(text.startswith("⚠️") for text in told)
    assert "a program" in told[0]
    assert "could not be downloaded" in told[2]
    assert [sent.reply_to for sent in world.board.sent[1:]] == [None] * 3
    assert world.board.reactions == ["⚠️", "⚠️", "⚠️", "✅"]
    await world.close()


async def test_large_files_are_said_to_take_a_while(tmp_path: Path) -> None:
    uploads = Uploads(seconds=3)
    world = await begin(tmp_path, uploads, script=Script())
    question = world.says(ANNA, "how do I begin?")
    await world.wait(120)
    big = uploads.file("big.txt", "all is well\n" * 100_000)
    world.says(ANNA, "", where=question.id, attachments=(big,))
    await world.wait(1)
    assert world.board.reactions == ["⏳"]
    await world.wait(5)
    assert world.board.reactions == ["✅"]
    await world.close()


async def test_pictures_are_left_to_those_who_look_at_pictures(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, script=Script())
    question = world.says(ANNA, "how do I begin?")
    await world.wait(120)
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("screen.png", b"\x89PNG"),))
    await world.wait(1)
    assert not uploads.downloaded
    assert not world.board.reactions
    await world.close()


@pytest.mark.parametrize("how", ["locked", "solved", "deleted", "parent", "guild"])
async def test_the_files_of_a_closed_thread_are_gone_from_disk_at_once(tmp_path: Path, how: str) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
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
    await world.close()


async def test_another_guilds_end_is_not_this_ones(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    await answered_with(world, uploads)
    world.happens(GuildGone(0.0, GUILD + 1))
    await world.wait(1)
    assert collections(tmp_path)
    await world.close()


async def test_an_archived_thread_keeps_its_files_for_a_day_and_longer_when_it_is_reopened(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    place = world.parts.services.history.place(question.id)
    world.opens(replace(place, archived=True))
    await world.wait(23 * 3600)
    world.opens(place)
    await world.wait(2 * 3600)
    assert collections(tmp_path)
    world.opens(replace(place, archived=True))
    await world.wait(24 * 3600 + 1)
    assert not collections(tmp_path)
    await world.close()


async def test_closing_calls_off_what_is_under_way_and_nothing_comes_back(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    uploads.seconds = 10
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("late.log", LOG),))
    await world.wait(1)
    place = world.parts.services.history.place(question.id)
    world.opens(replace(place, locked=True))
    await world.wait(30)
    assert not collections(tmp_path)
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("more.log", LOG),))
    await world.wait(30)
    assert not collections(tmp_path)
    await world.close()


async def test_a_deleted_message_takes_its_files_along(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    more = world.says(ANNA, "", where=question.id, attachments=(uploads.file("more.log", LOG + "\n!"),))
    await world.wait(1)
    world.happens(Deleted(0.0, question.id, (more.id,)))
    await world.wait(1)
    assert [doc.filename for doc in await held(world, question.id)] == ["app.log"]
    world.happens(Deleted(0.0, HELP, (question.id,)))
    await world.wait(1)
    assert await held(world, question.id) == ()
    await world.close()


async def test_files_of_people_who_opted_out_are_not_read(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, script=Script())
    question = world.says(ANNA, "how do I begin?")
    await world.wait(120)
    world.says(BEN, "!nobot", where=question.id, attachments=(uploads.file("ben.log", LOG),))
    await world.parts.opt_outs.add(ANNA.id)
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("anna.log", LOG),))
    await world.wait(1)
    assert not uploads.downloaded
    await world.close()


async def test_long_code_blocks_count_where_that_is_wanted(tmp_path: Path) -> None:
    uploads = Uploads()
    block = "which ERROR is it?\n```log\n" + LOG + "\n```\nand\n```py\nshort = 1\n```"
    world = await begin(tmp_path, uploads, documents={"code_blocks": True})
    question = world.says(ANNA, block)
    await world.wait(120)
    (document,) = await held(world, question.id)
    assert document.filename == f"message-{question.id}-block-1.log"
    assert document.n_lines == 59
    await world.close()
    other = await begin(tmp_path / "off", uploads)
    other.says(ANNA, block)
    await other.wait(120)
    assert not collections(tmp_path / "off")
    await other.close()


async def test_a_thread_holds_so_many_files_and_the_next_one_is_told_so(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, script=Script(), documents={"max_files_per_thread": 2})
    question = world.says(ANNA, "how do I begin?")
    await world.wait(120)
    for n in range(3):
        world.says(ANNA, "", where=question.id, attachments=(uploads.file(f"{n}.log", f"{LOG}\n{n}"),))
    await world.wait(1)
    states = [doc.state for doc in await held(world, question.id)]
    assert states == [State.LEXICAL, State.LEXICAL, State.FAILED]
    assert "2 is the most" in world.board.sent[-1].text
    await world.close()


async def test_after_a_restart_the_files_are_there_and_are_not_read_twice(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    world.opens(forum_post(88, ANNA))
    first = world.says(ANNA, "which ERROR is it?", where=88, attachments=(uploads.file("app.log", LOG),))
    await world.wait(120)
    await world.close()
    again = await begin(tmp_path, uploads)
    again.opens(forum_post(88, ANNA))
    again.delivers(first)
    await again.wait(120)
    assert uploads.downloaded == [first.attachments[0].id]
    assert again.script.offered == [[CASE_TOOL]]
    await again.close()


async def test_two_runs_read_the_same_and_say_the_same(tmp_path: Path) -> None:
    stories: list[list[str]] = []
    for run in ("one", "two"):
        uploads = Uploads()
        world = await begin(tmp_path / run, uploads)
        files = tuple(uploads.file(f"{n}.log", f"{LOG}\n{n}") for n in range(4))
        world.says(ANNA, "which ERROR is it?", attachments=files)
        await world.wait(120)
        stories.append([*world.script.found, *world.replies, *world.script.told_files[0]])
        await world.close()
    assert [text.replace("/one/", "/two/") for text in stories[0]] == stories[1]


async def test_a_thread_that_the_bot_only_watches_is_left_alone(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    world.happens(PlaceSeen(0.0, replace(thread(66, owner=BEN), kind=PlaceKind.THREAD, locked=True)))
    world.happens(Deleted(0.0, 66, (1,)))
    world.closes(66)
    await asyncio.sleep(1)
    assert not world.ends
    assert world.parts.services.people.is_bot_itself(BOT)
    await world.close()


async def test_files_that_all_turn_out_unreadable_leave_the_answer_without_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away, so that there is not even a file to speak of."""
    uploads = Uploads()
    world = await begin(tmp_path, uploads)

    async def none(*_: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr("services.documents.tools.factory.Toolbox.offered", none)
    await answered_with(world, uploads)
    assert world.story == ["skipped: no sources"]
    world.script.picks = [GUIDE]
    world.says(BEN, "which ERROR is it, see the log?", attachments=(uploads.file("b.log", LOG),))
    await world.wait(120)
    assert world.story[1] == "replied"
    assert not world.script.offered
    await world.close()


async def test_what_an_answer_cites_or_quotes_of_a_file_and_is_not_there_is_marked_where_people_read_it(
    tmp_path: Path,
) -> None:
    """DOCUMENT_QA 6, of the answer itself."""
    uploads = Uploads()
    said = (
        'app.log:31 says "connection to 10.0.0.7 refused". app.log:99 says "disk is on fire", as does secret.log:3 '
        "and line 4711."
    )
    world = await begin(tmp_path, uploads, script=Script(picks=[], answers=[answer(said, "app.log:31")]))
    await answered_with(world, uploads, "what does the first ERROR in app.log say?")
    (sent,) = [each.text for each in world.board.sent]
    assert 'app.log:31 says "connection to 10.0.0.7 refused".' in sent
    assert '"disk is on fire" (unverified)' in sent
    assert not any(made_up in sent for made_up in ("app.log:99", "secret.log:3", "4711"))
    await world.close()


async def test_a_file_that_is_larger_than_announced_passes_no_limit(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads, documents={"max_thread_bytes": len(LOG) + 10})
    question = await answered_with(world, uploads)
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("more.log", "x" * 100, size=5),))
    await world.wait(1)
    assert [(doc.filename, doc.state) for doc in await held(world, question.id)] == [
        ("app.log", State.LEXICAL),
        ("more.log", State.FAILED),
    ]
    await world.close()


def call(by: Author, place_id: int, *, moderator: bool = False) -> Call:
    return Call(1, by.id, GUILD, place_id, moderator)


def commands_of(world: World) -> EvidenceCommands:
    assert world.documents is not None
    return EvidenceCommands(world.documents, world.parts.services.history)


async def test_a_file_that_is_deleted_while_it_is_read_does_not_come_back(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    uploads.seconds = 10
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("late.log", LOG + "\n!"),))
    await world.wait(1)
    assert "Forgotten" in await commands_of(world).delete(call(ANNA, question.id), "late.log")
    await world.wait(30)
    assert [doc.filename for doc in await held(world, question.id) if doc.state is not State.FAILED] == ["app.log"]
    await world.close()


async def test_forgetting_a_person_takes_what_is_being_read_of_theirs(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    world.says(BEN, "", where=question.id, attachments=(uploads.file("ben.log", LOG + "\n?"),))
    await world.wait(1)
    uploads.seconds = 10
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("late.log", LOG + "\n!"),))
    await world.wait(1)
    assert world.documents is not None
    assert await world.documents.forget(ANNA.id) == (2, 0)
    await world.wait(30)
    assert [doc.filename for doc in await held(world, question.id)] == ["ben.log"]
    await world.close()


async def test_opting_out_stops_what_is_being_read_and_leaves_the_rest(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    uploads.seconds = 10
    world.says(ANNA, "", where=question.id, attachments=(uploads.file("late.log", LOG + "\n!"),))
    await world.wait(1)
    await Privacy(world.parts, tmp_path / "raw", world.documents).opt_out(call(ANNA, question.id))
    await world.wait(30)
    assert [doc.filename for doc in await held(world, question.id)] == ["app.log"]
    await world.close()


async def test_answers_from_a_file_are_forgotten_with_it(tmp_path: Path) -> None:
    for how in ("delete", "forget"):
        uploads = Uploads()
        world = await begin(tmp_path / how, uploads)
        question = await answered_with(world, uploads)
        lookup = world.parts.services.lookup
        assert lookup is not None
        cache = lookup.toolbox.shared.cache
        assert len(cache) == 1
        if how == "delete":
            await commands_of(world).delete(call(ANNA, question.id), "app.log")
        else:
            assert world.documents is not None
            await world.documents.forget(ANNA.id)
        assert len(cache) == 0
        await world.close()


async def test_anothers_file_of_the_same_name_keeps_nobody_from_deleting_their_own(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    question = await answered_with(world, uploads)
    world.says(BEN, "", where=question.id, attachments=(uploads.file("app.log", LOG + "\n!"),))
    await world.wait(1)
    commands = commands_of(world)
    with pytest.raises(CommandRefused, match="Only whoever posted"):
        await commands.delete(call(TESS, question.id), "app.log")
    assert "Forgotten" in await commands.delete(call(ANNA, question.id), "app.log")
    left = [doc.origin.uploader_id for doc in await held(world, question.id) if doc.state is not State.FAILED]
    assert left == [BEN.id]
    assert "Forgotten" in await commands.delete(call(TESS, question.id, moderator=True), "app.log")
    await world.close()


async def test_a_long_name_can_be_given_as_it_is_listed(tmp_path: Path) -> None:
    uploads = Uploads()
    world = await begin(tmp_path, uploads)
    name = "very-" * 30 + "long.log"
    world.says(ANNA, "which line says ERROR? see the log", attachments=(uploads.file(name, LOG),))
    await world.wait(120)
    (case_id,) = [int(file.removeprefix("case_").removesuffix(".sqlite")) for file in collections(tmp_path)]
    assert "Forgotten" in await commands_of(world).delete(call(ANNA, case_id), f"{name[:79]}…")
    await world.close()
