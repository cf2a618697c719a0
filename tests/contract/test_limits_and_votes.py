"""Budgets, feedback, and images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from model.conversations import Image
from model.messages import Attachment
from services.discord.attachments import RecordedAttachments
from services.llm.images import AttachedImages, ImageFailed
from services.llm.usage import read_spent
from tests.world import ANNA, BEN, BOT, GUIDE, ROBOT, START, TESS, Noticeboard, Script, World, picture, thread

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def ask(world: World, text: str, seconds: float = 61) -> None:
    world.says(ANNA, text)
    await world.wait(seconds)


async def test_nobody_starts_more_chains_an_hour_than_allowed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = await World.begin(tmp_path, limits={"chains_per_user_per_hour": 2}, script=Script(picks=[]))
    for number in range(4):
        await ask(world, f"{number}?")
    world.says(BEN, "And I?")
    await world.wait(61)
    assert world.story == ["skipped: no sources"] * 2 + ["skipped: budget"] * 2 + ["skipped: no sources"]
    assert caplog.text.count("is used up") == 1
    await world.wait(3600)
    await ask(world, "Now?")
    assert world.story[-1] == "skipped: no sources"


async def test_a_chain_counts_when_its_gate_starts(tmp_path: Path) -> None:
    """Chatter that never comes to a gate costs nothing."""
    world = await World.begin(tmp_path, limits={"chains_per_user_per_hour": 1})
    world.says(ANNA, "Hello Ben", to=world.says(BEN, "Hello"))
    await world.wait(300)
    await ask(world, "How?")
    await ask(world, "And how else?")
    assert [told for told in world.story if "ignored" not in told] == ["replied", "replied", "skipped: budget"]


async def test_answers_a_day_are_counted_by_utc_days(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, limits={"answers_per_day": 1})
    await world.wait(86_400 - 200)
    await ask(world, "First?")
    await ask(world, "Second?")
    await world.wait(60)
    await ask(world, "Third?")
    assert world.story == ["replied", "skipped: budget", "replied"]


async def test_tokens_a_day_are_counted_by_utc_days(tmp_path: Path) -> None:
    """Every call counts, also of chains that end without an answer."""
    world = await World.begin(tmp_path, limits={"tokens_per_day": 20}, script=Script(picks=[]))
    for number in range(3):  # each asks for a gate and a selection, at ten tokens
        await ask(world, f"{number}?")
    await world.wait(86_400)
    await ask(world, "Now?")
    assert world.story == [
        "skipped: no sources",
        "skipped: budget",
        "skipped: budget",
        "skipped: no sources",
    ]


def votes(folder: Path) -> list[dict[str, object]]:
    path = folder / "data" / "feedback.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def answered(folder: Path, **discord: object) -> World:
    world = await World.begin(folder, discord={"feedback": True, **discord}, board=Noticeboard())
    await ask(world, "How?")
    return world


async def test_votes_are_offered_kept_and_withdrawn(tmp_path: Path) -> None:
    world = await answered(tmp_path)
    assert world.board.reactions == ["👍", "👎"]
    reply = world.last_reply_id
    world.reacts(BEN, reply, "👍")
    world.reacts(BEN, reply, "👎")
    world.reacts(BEN, reply, "👍", added=False)
    world.reacts(BEN, reply, "👎", added=False)
    world.reacts(ANNA, reply, "👍")
    await world.close()
    kept = votes(tmp_path)
    assert [line["vote"] for line in kept] == ["up", "down", "withdrawn", "up"]
    assert kept[0]["voter"] == kept[2]["voter"] != kept[3]["voter"]
    assert str(BEN.id) not in str(kept[0]["voter"])
    assert kept[0] | {"voter": ""} == {
        "at": "2026-02-16T00:01:01.000Z",
        "message_id": str(reply),
        "voter": "",
        "question": "How?",
        "sources": [GUIDE],
        "vote": "up",
    }


async def test_a_vote_behind_one_that_a_crash_cut_off_is_a_line_of_its_own(tmp_path: Path) -> None:
    world = await answered(tmp_path)
    path = tmp_path / "data" / "feedback.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"at": "2026-02-1')
    world.reacts(BEN, world.last_reply_id, "👍")
    await world.close()
    _, kept = path.read_text().splitlines()
    assert json.loads(kept)["vote"] == "up"


async def test_only_votes_of_the_community_on_replies_count(tmp_path: Path) -> None:
    """Pitfall 23."""
    world = await answered(tmp_path)
    reply = world.last_reply_id
    for author in (TESS, ROBOT):
        world.reacts(author, reply, "👍")
    world.reacts(BEN, reply, "🎉")
    world.reacts(BEN, reply + 1, "👍")
    await world.close()
    assert votes(tmp_path) == []


async def test_votes_are_not_kept_unless_they_are_asked_for(tmp_path: Path) -> None:
    world = await answered(tmp_path, feedback=False)
    assert world.board.reactions == []
    world.reacts(BEN, world.last_reply_id, "👍")
    await world.close()
    assert votes(tmp_path) == []


async def test_a_call_for_help_leads_to_the_thread_and_pings_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = await answered(tmp_path, escalation_channel_id=99)
    world.reacts(ANNA, world.last_reply_id, "🆘")
    world.reacts(ANNA, world.last_reply_id, "🆘", added=False)
    await world.close()
    (sent,) = world.board.sent[1:]
    assert sent.place_id == 99
    assert f"<#{world.board.sent[0].place_id}>" in sent.text
    assert "@" not in sent.text
    assert "asks for a person" in caplog.text


async def test_a_call_for_help_without_a_channel_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = await answered(tmp_path)
    world.reacts(ANNA, world.last_reply_id, "🆘")
    await world.close()
    assert len(world.board.sent) == 1
    assert "asks for a person" in caplog.text


async def test_a_vote_that_cannot_be_written_disturbs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = await answered(tmp_path)
    (tmp_path / "data" / "feedback.jsonl").mkdir(parents=True)
    world.reacts(BEN, world.last_reply_id, "👍")
    await ask(world, "And why?")
    await world.close()
    assert world.story == ["replied", "replied"]
    assert "was not kept" in caplog.text


async def test_what_the_asker_says_in_the_bots_thread_counts_as_a_vote_and_a_strangers_thanks_do_not(
    tmp_path: Path,
) -> None:
    world = await World.begin(tmp_path, discord={"feedback": True}, board=Noticeboard(), durable=True)
    question = world.says(ANNA, "How?")
    await world.wait(61)
    reply = world.last_reply_id
    world.opens(thread(question.id))
    world.says(BEN, "thanks, that worked", where=question.id)
    await world.wait(10)
    assert votes(tmp_path) == []
    world.says(ANNA, "Bot, which one?", where=question.id, mentions=((BOT.id, BOT.name),))
    await world.wait(61)
    later = world.last_reply_id
    assert later > reply
    thanks = world.says(ANNA, "thanks, that worked", where=question.id)
    await world.wait(10)
    world.says(ANNA, "no, that didn't work", where=question.id)
    world.delivers(thanks)
    await world.close()
    up, down = votes(tmp_path)
    assert up | {"voter": ""} == {
        "at": "2026-02-16T00:02:12.000Z",
        "message_id": str(later),
        "voter": "",
        "question": "Bot, which one?",
        "sources": [GUIDE],
        "vote": "up",
        "inferred": True,
    }
    assert down == up | {"at": "2026-02-16T00:02:22.000Z", "vote": "down"}


async def test_what_the_asker_says_where_they_asked_counts_as_well(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, discord={"feedback": True}, board=Noticeboard(), durable=True)
    await ask(world, "How?")
    world.says(ANNA, "thanks, that worked !nobot")
    world.says(ANNA, "ah, that worked")
    await world.close()
    assert [(line["vote"], line["inferred"]) for line in votes(tmp_path)] == [("up", True)]


async def test_nothing_is_inferred_about_answers_that_nobody_has_seen(tmp_path: Path) -> None:
    """In a replay or a dry run, thanks are for something else."""
    world = await answered(tmp_path)
    world.says(ANNA, "thanks, that worked")
    await world.close()
    assert votes(tmp_path) == []


def recorded(folder: Path, *contents: bytes) -> AttachedImages:
    images = folder / "attachments"
    images.mkdir()
    for number, content in enumerate(contents, 1):
        (images / str(number)).write_bytes(content)
    return AttachedImages(RecordedAttachments(images))


async def test_images_are_shown_to_the_model_in_order(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, images=recorded(tmp_path, PNG, PNG), script=Script(picks=[]))
    world.says(ANNA, "This?", attachments=(picture(2, "b.png"), picture(1, "a.png")))
    await world.wait(61)
    # An image makes an answer possible where no source does.
    assert world.story == ["replied"]
    assert world.script.images[0] == ["b.png", "a.png"]
    assert "[image: b.png]\n[image: a.png]" in world.script.asked[0].text


@pytest.mark.parametrize("content", [None, b"<html>", PNG + bytes(10_000_000)])
async def test_an_image_that_cannot_be_used_stays_a_placeholder(tmp_path: Path, content: bytes | None) -> None:
    """Pitfall 21."""
    images = recorded(tmp_path, *([] if content is None else [content]))
    world = await World.begin(tmp_path, images=images)
    world.says(ANNA, "This?", attachments=(picture(),))
    await world.wait(61)
    assert world.story == ["replied"]
    assert world.script.images[0] == []
    assert "[image: screen.png]" in world.script.asked[0].text


class Unreachable:
    """An image source whose network fails."""

    async def load(self, attachment: Attachment) -> Image:
        raise ImageFailed(f"attachment {attachment.id} could not be downloaded")


async def test_an_image_of_the_askers_that_cannot_be_loaded_now_means_no_reply(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, images=Unreachable())
    world.says(ANNA, "This?", attachments=(picture(),))
    await world.wait(61)
    assert world.story == ["failed: ImageFailed at gather"]
    assert (world.script.asked, world.replies) == ([], [])


@pytest.mark.parametrize("content", [None, b"<html>", PNG + bytes(10_000_000)])
async def test_an_image_of_somebody_else_ends_no_question(tmp_path: Path, content: bytes | None) -> None:
    images = Unreachable() if content is None else recorded(tmp_path, content)
    world = await World.begin(tmp_path, images=images)
    asked = world.says(ANNA, "How do I install it?")
    world.says(BEN, "lol", to=asked, attachments=(picture(),))
    await world.wait(61)
    assert "failed: ImageFailed at gather" not in world.story
    assert world.story.count("replied") == 1


async def test_images_of_the_team_and_of_bots_are_not_loaded(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, images=recorded(tmp_path))
    place = world.opens(thread(77))
    world.says(TESS, "See here", where=place.id, attachments=(picture(),))
    world.says(ROBOT, "A chart", where=place.id, attachments=(picture(),))
    await world.wait(61)
    world.says(ANNA, "Bot, why?", where=place.id, mentions=((1, "Millrace"),))
    await world.wait(61)
    assert world.story[-1] == "replied"


async def test_what_was_spent_outlives_a_restart(tmp_path: Path) -> None:
    usage = tmp_path / "data" / "state" / "usage.json"
    usage.parent.mkdir(parents=True)
    usage.write_text(json.dumps({"day": START // 86_400, "answers": 1, "tokens": 5, "chains": {}}))
    world = await World.begin(tmp_path, limits={"answers_per_day": 1})
    await ask(world, "How?")
    assert world.story == ["skipped: budget"]
    assert read_spent(usage).answers == 1
