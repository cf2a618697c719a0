from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clock import now
from model.conversations import Conversation, Image
from model.messages import Attachment
from operators import capturing as module
from operators.capturing import summarise_images, without_withdrawn
from services.assistant.curator import ImageSummaryResult
from services.conversations import PersonalWork
from services.llm.endpoint import BadOutput, PromptRefused, Unavailable
from services.llm.images import ImageFailed, ImageUnusable
from services.llm.usage import Usage
from services.team.archive import PairTurn, Speaker
from services.team.captures import Capture, CapturedImage, CapturedMessage
from services.team.pending import PendingCapture, PendingFolder
from services.telemetry import current_people
from tests.team import ScriptedCurator

DAY = 86_400.0


class Pictures:
    """An image source; `far` cannot be had now, `fake` at no time."""

    def __init__(self, *far: int, fake: frozenset[int] = frozenset()) -> None:
        self.far = set(far)
        self.fake = fake
        self.loaded: list[int] = []

    async def load(self, attachment: Attachment) -> Image:
        self.loaded.append(attachment.id)
        if attachment.id in self.far:
            raise ImageFailed(f"attachment {attachment.id} is far")
        if attachment.id in self.fake:
            raise ImageUnusable(f"attachment {attachment.id} is no image")
        return Image(attachment.filename, "image/png", bytes([attachment.id]))


def picture(attachment: int, message: int = 1, index: int = 0, line: int = -1) -> CapturedImage:
    return CapturedImage(message, index, line, Attachment(attachment, f"{attachment}.png", 1, "u", "image/png"))


def waiting(*pictures: CapturedImage) -> PendingCapture:
    lines = "\n".join(f"[image: {each.attachment.filename}]" for each in pictures)
    said = (
        CapturedMessage(1, 11, PairTurn(Speaker.USER, lines)),
        CapturedMessage(2, 50, PairTurn(Speaker.TEAM, "Restart.")),
    )
    return PendingCapture(5.0, Capture(None, "thread_1", said), pictures)


def words(capture: Capture) -> str:
    return capture.messages[0].turn.text


async def test_images_are_put_into_words_in_their_messages(tmp_path: Path) -> None:
    curator, usage, pending = ScriptedCurator(), Usage(), PendingFolder(tmp_path)
    summarised = summarise_images(curator, Pictures(), pending, usage)
    capture = await summarised(waiting(picture(1, line=-2), picture(2, index=1)))
    assert words(capture) == "[image: 1.png in words]\n[image: 2.png in words]"
    assert curator.asked == [("summarise_images", "1,2")]
    assert current_people.get() == {11, 50}
    assert usage.calls == {"summarise_images": 1}
    assert list(pending.all()) == []


async def test_an_image_is_looked_at_once_however_often_its_conversation_is_captured(tmp_path: Path) -> None:
    curator, source = ScriptedCurator(), Pictures()
    summarised = summarise_images(curator, source, PendingFolder(tmp_path), Usage())
    await summarised(waiting(picture(1)))
    capture = await summarised(waiting(picture(1, line=-2), picture(2, index=1)))
    assert words(capture) == "[image: 1.png in words]\n[image: 2.png in words]"
    assert words(await summarised(waiting(picture(2)))) == "[image: 2.png in words]"
    assert source.loaded == [1, 2]
    assert len(curator.asked) == 2


async def test_of_many_images_the_newest_are_looked_at_and_the_next_capture_takes_others(tmp_path: Path) -> None:
    source = Pictures()
    summarised = summarise_images(ScriptedCurator(), source, PendingFolder(tmp_path), Usage())
    seven = [picture(number, index=number - 1, line=number - 8) for number in range(1, 8)]
    await summarised(waiting(*seven))
    capture = await summarised(waiting(*seven))
    assert source.loaded == [3, 4, 5, 6, 7, 1, 2]
    assert words(capture).count("in words") == len(seven)


async def test_only_so_many_summaries_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SUMMARIES_KEPT", 1)
    curator = ScriptedCurator()
    summarised = summarise_images(curator, Pictures(), PendingFolder(tmp_path), Usage())
    for number in (1, 2, 2, 1):
        await summarised(waiting(picture(number)))
    assert len(curator.asked) == 3


@pytest.mark.parametrize("error", [Unavailable("down"), BadOutput("prose")])
async def test_a_capture_whose_images_fail_waits_with_them_on_the_disk(tmp_path: Path, error: Exception) -> None:
    pending = PendingFolder(tmp_path)
    summarised = summarise_images(
        ScriptedCurator(pictured=lambda _conversation, _ids: error), Pictures(), pending, Usage()
    )
    one = picture(1)
    with pytest.raises(type(error)):
        await summarised(waiting(one))
    [kept] = pending.all()
    assert (kept.since, kept.image_refs, kept.images) == (5.0, (one,), {one: Image("1.png", "image/png", b"\x01")})
    assert words(kept.capture) == "[image: 1.png]"


async def test_a_conversation_that_grows_waits_once_and_no_more_is_kept_than_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending, source = PendingFolder(tmp_path), Pictures()
    away = ScriptedCurator(pictured=lambda _conversation, _ids: Unavailable("down"))
    summarised = summarise_images(away, source, pending, Usage())
    one = waiting(picture(1))
    said = CapturedMessage(3, 50, PairTurn(Speaker.TEAM, "And so."))
    grown = replace(one, since=9.0, capture=replace(one.capture, messages=(*one.capture.messages, said)))
    for each in (one, grown):
        with pytest.raises(Unavailable):
            await summarised(each)
    [kept] = pending.all()
    assert (kept.capture, kept.since, source.loaded) == (grown.capture, one.since, [1])
    monkeypatch.setattr("services.team.pending.MAX_PENDING_BYTES", 1)
    assert words(await summarised(waiting(picture(2)))) == words(waiting(picture(2)).capture)


async def test_images_that_could_be_had_need_not_be_had_again(tmp_path: Path) -> None:
    source, pending = Pictures(1), PendingFolder(tmp_path)
    summarised = summarise_images(ScriptedCurator(), source, pending, Usage())
    with pytest.raises(ImageFailed, match="attachment 1 is far"):
        await summarised(waiting(picture(1, line=-2), picture(2, index=1)))
    [kept] = pending.all()
    source.far.clear()
    assert words(await summarised(kept)) == "[image: 1.png in words]\n[image: 2.png in words]"
    assert source.loaded == [1, 2, 1]


async def test_several_images_that_cannot_be_had_are_one_failure(tmp_path: Path) -> None:
    summarised = summarise_images(ScriptedCurator(), Pictures(1, 2), PendingFolder(tmp_path), Usage())
    with pytest.raises(ImageFailed, match="attachment 1 is far"):
        await summarised(waiting(picture(1, line=-2), picture(2, index=1)))


async def test_an_image_that_is_none_stays_a_placeholder_and_holds_nothing_up(tmp_path: Path) -> None:
    curator, source, pending = ScriptedCurator(), Pictures(fake=frozenset({1})), PendingFolder(tmp_path)
    summarised = summarise_images(curator, source, pending, Usage())
    assert words(await summarised(waiting(picture(1)))) == "[image: 1.png]"
    assert curator.asked == []
    capture = await summarised(waiting(picture(1, line=-2), picture(2, index=1)))
    assert words(capture) == "[image: 1.png]\n[image: 2.png in words]"
    assert source.loaded == [1, 2]
    assert list(pending.all()) == []


async def test_of_many_images_those_that_are_none_take_no_room_from_the_next_capture(tmp_path: Path) -> None:
    source = Pictures(fake=frozenset({2, 3, 4, 5, 6}))
    summarised = summarise_images(ScriptedCurator(), source, PendingFolder(tmp_path), Usage())
    six = [picture(number, index=number - 1, line=number - 7) for number in range(1, 7)]
    assert "in words" not in words(await summarised(waiting(*six)))
    assert words(await summarised(waiting(*six))).startswith("[image: 1.png in words]")


async def test_after_a_day_what_cannot_be_loaded_stays_a_placeholder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pending = PendingFolder(tmp_path)
    summarised = summarise_images(ScriptedCurator(), Pictures(1), pending, Usage())
    both = waiting(picture(1, line=-2), picture(2, index=1))
    await asyncio.sleep(both.since + DAY - 1 - now())
    with pytest.raises(ImageFailed):
        await summarised(both)
    await asyncio.sleep(1)
    assert words(await summarised(both)) == "[image: 1.png]\n[image: 2.png in words]"
    assert "images stay placeholders, as they could not be loaded for a day: attachment 1 is far" in caplog.messages


@pytest.mark.parametrize(("error", "traceback"), [(Unavailable("down"), False), (ZeroDivisionError("down"), True)])
async def test_after_a_day_a_capture_is_stored_although_its_images_cannot_be_described(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, traceback: bool
) -> None:
    curator, pending = ScriptedCurator(), PendingFolder(tmp_path)
    summarised = summarise_images(curator, Pictures(), pending, Usage())
    await summarised(waiting(picture(1)))
    curator.pictured = lambda _conversation, _ids: error
    late = waiting(picture(1, line=-2), picture(2, index=1))
    await asyncio.sleep(late.since + DAY - now())
    assert words(await summarised(late)) == "[image: 1.png in words]\n[image: 2.png]"
    assert f"{late.name} is stored without what its images show" in caplog.text
    assert ("Traceback" in caplog.text) is traceback
    assert list(pending.all()) == []


async def test_what_is_withdrawn_while_images_are_described_is_left_out(tmp_path: Path) -> None:
    personal, forgotten, pending = PersonalWork(), set[int](), PendingFolder(tmp_path)
    curator = ScriptedCurator(seconds=60)
    summarised = summarise_images(curator, Pictures(), pending, Usage())
    allowed = without_withdrawn(summarised, lambda said: said.author_id in forgotten, personal)
    describing = asyncio.create_task(allowed(waiting(picture(1), picture(2, message=2))))
    await asyncio.sleep(1)
    forgotten.add(11)
    personal.withdraw(11)
    capture = await describing
    assert [said.author_id for said in capture.messages] == [50]
    assert curator.asked == [("summarise_images", "1,2"), ("summarise_images", "2")]
    assert list(pending.all()) == []


async def test_an_image_that_the_endpoint_refuses_stays_a_placeholder_and_holds_nothing_up(tmp_path: Path) -> None:
    """Anybody may post a file that begins like a picture and is none."""

    in_words = ScriptedCurator().pictured

    def refused(conversation: Conversation, ids: Sequence[int]) -> ImageSummaryResult | Exception:
        images = [image for turn in conversation.turns for image in turn.images]
        return (
            PromptRefused("HTTP 400") if any(image.data == b"\x01" for image in images) else in_words(conversation, ids)
        )

    curator, pending = ScriptedCurator(pictured=refused), PendingFolder(tmp_path)
    summarised = summarise_images(curator, Pictures(), pending, Usage())
    capture = await summarised(waiting(picture(1, line=-2), picture(2, index=1)))
    assert words(capture) == "[image: 1.png]\n[image: 2.png in words]"
    assert list(pending.all()) == []
    asked = len(curator.asked)
    assert words(await summarised(waiting(picture(1)))) == "[image: 1.png]"
    assert len(curator.asked) == asked
