"""Captures with images, on their way to the archive."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

from reactivex.subject import Subject

from clock import now
from clock.cancellation import CancelToken
from model.conversations import Image
from model.messages import Attachment, Message
from model.outcomes import Outcome, OutcomeKind, Reason
from model.servers import Servers
from operators.capturing import summarise_images
from services.assistant.inquiry import CaptureJob
from services.conversations.context import Context, ContextRules
from services.conversations.in_flight import WorkCancelled
from services.llm.endpoint import Unavailable
from services.llm.images import ImageFailed
from services.llm.usage import Usage
from services.team.archive import Pair
from services.team.archive_files import pairs_in
from services.team.captures import RecentCaptures
from services.team.pending import PendingFolder
from sinks.team import RawArchive
from streams.captures import ImageServices, captures
from tests.talk import ANN, BEN, STAFF, THREAD, Talk
from tests.team import ScriptedCurator

TICK = 300.0


class Shots:
    """An image source."""

    def __init__(self) -> None:
        self.gone = False

    async def load(self, attachment: Attachment) -> Image:
        if self.gone:
            raise ImageFailed(f"attachment {attachment.id} is gone")
        return Image(attachment.filename, "image/png", b"\x89PNG")


def shot(number: int = 1) -> Attachment:
    return Attachment(number, f"{number}.png", 4, f"https://cdn.discordapp.com/{number}", "image/png")


@dataclass
class Office:
    """Lessons that go to an archive on disk, with somebody who looks at images."""

    folder: Path
    talk: Talk = field(default_factory=Talk)
    curator: ScriptedCurator = field(default_factory=ScriptedCurator)
    shots: Shots = field(default_factory=Shots)
    ends: list[Outcome | Pair] = field(default_factory=list[Outcome | Pair])
    done: asyncio.Event = field(default_factory=asyncio.Event)
    source: Subject[CaptureJob] = field(default_factory=Subject[CaptureJob])

    def __post_init__(self) -> None:
        archive = RawArchive(self.folder / "raw", RecentCaptures(pairs_in(self.folder / "raw", 2)))
        self.pending = PendingFolder(self.folder / "pending")
        work = summarise_images(self.curator, self.shots, self.pending, Usage())
        images = ImageServices(work, self.pending, archive.store_late, lambda _: False, TICK)
        context = Context(self.talk.history, self.talk.people, self.talk.tracker, ContextRules())
        stream = captures(self.source, context, archive.keep, Servers({None: images}))
        self.subscription = stream.subscribe(self.ends.append, on_completed=self.done.set)

    def teaches(self, *messages: Message) -> CancelToken:
        job = CaptureJob(self.talk.part(*messages))
        self.source.on_next(job)
        return job.token

    async def closes(self) -> None:
        self.source.on_completed()
        await self.done.wait()

    @property
    def results(self) -> list[OutcomeKind]:
        return [end.result for end in self.ends if isinstance(end, Outcome)]

    @property
    def stored(self) -> list[list[str]]:
        return [[turn.text for turn in pair.turns] for pair in pairs_in(self.folder / "raw", 2)]


async def test_images_of_both_sides_are_in_words_before_anything_is_stored(tmp_path: Path) -> None:
    office = Office(tmp_path)
    asked = office.talk.says(ANN, "It shows this:", attachments=(shot(1), shot(2)))
    answer = office.talk.says(STAFF, "", to=asked, attachments=(shot(3),))
    office.teaches(answer)
    await office.closes()
    assert office.stored == [
        ["It shows this:\n[image: 1.png in words]\n[image: 2.png in words]", "[image: 3.png in words]"]
    ]
    assert office.curator.asked == [("summarise_images", f"{asked.id},{answer.id}")]


async def test_a_capture_whose_images_fail_is_failed_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    office = Office(tmp_path, curator=ScriptedCurator(pictured=lambda _conversation, _ids: Unavailable("down")))
    asked = office.talk.says(ANN, "It shows this:", attachments=(shot(),))
    office.teaches(office.talk.says(STAFF, "Restart.", to=asked))
    await office.closes()
    [end] = office.ends
    assert isinstance(end, Outcome)
    assert (end.result, end.reason) == (OutcomeKind.FAILED, "Unavailable at summarise_images")
    assert office.stored == []
    [waiting] = office.pending.all()
    assert list(waiting.images.values()) == [Image("1.png", "image/png", b"\x89PNG")]


async def test_it_is_tried_again_at_later_ticks_and_stored_when_the_model_is_back(tmp_path: Path) -> None:
    office = Office(tmp_path, curator=ScriptedCurator(pictured=lambda _conversation, _ids: Unavailable("down")))
    asked = office.talk.says(ANN, "It shows this:", attachments=(shot(),))
    office.teaches(office.talk.says(STAFF, "Restart.", to=asked))
    await asyncio.sleep(3 * TICK + 1)
    assert len(office.curator.asked) == 4
    office.curator.pictured = ScriptedCurator.pictured
    office.shots.gone = True  # its address has expired: what was downloaded serves
    await asyncio.sleep(TICK)
    assert office.stored == [["It shows this:\n[image: 1.png in words]", "Restart."]]
    assert list(office.pending.all()) == []
    assert isinstance(office.ends[-1], Pair)
    await office.closes()
    assert office.results == [OutcomeKind.FAILED]


async def test_it_is_tried_again_at_the_next_start(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.shots.gone = True
    asked = office.talk.says(ANN, "It shows this:", attachments=(shot(),))
    office.teaches(office.talk.says(STAFF, "Restart.", to=asked))
    await office.closes()
    assert office.stored == []
    again = Office(tmp_path)
    await asyncio.sleep(1)
    assert again.stored == [["It shows this:\n[image: 1.png in words]", "Restart."]]
    await again.closes()


async def test_a_late_capture_takes_nothing_from_what_was_captured_meanwhile(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.shots.gone = True
    office.teaches(office.talk.says(STAFF, "Hello.", place=THREAD))
    office.talk.says(ANN, "It shows this:", place=THREAD, attachments=(shot(),))
    office.teaches(office.talk.says(STAFF, "Restart.", place=THREAD))
    await asyncio.sleep(1)
    office.shots.gone = False
    office.teaches(office.talk.says(STAFF, "And update.", place=THREAD))
    await asyncio.sleep(2 * TICK)
    assert office.stored == [["Hello.", "It shows this:\n[image: 1.png in words]", "Restart.", "And update."]]
    assert list(office.pending.all()) == []
    await office.closes()


async def test_captures_leave_in_order_also_when_images_take_long(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.curator.seconds = 30
    first = office.talk.says(ANN, "One?", attachments=(shot(),))
    second = office.talk.says(BEN, "Two?")
    began = now()
    office.teaches(office.talk.says(STAFF, "One!", to=first))
    office.teaches(office.talk.says(STAFF, "Two!", to=second))
    await office.closes()
    assert now() - began == 30
    assert [texts[-1] for texts in office.stored] == ["One!", "Two!"]


async def test_a_shutdown_while_images_are_looked_at_leaves_the_capture_to_catch_up(tmp_path: Path) -> None:
    """Pitfall 8."""
    office = Office(tmp_path)
    office.curator.seconds = 30
    asked = office.talk.says(ANN, "One?", attachments=(shot(),))
    token = office.teaches(office.talk.says(STAFF, "One!", to=asked))
    await asyncio.sleep(1)
    token.cancel(WorkCancelled(Reason.SHUTDOWN))
    await office.closes()
    assert office.results == [OutcomeKind.CANCELLED]
    assert list(office.pending.all()) == []
    assert office.stored == []


async def test_without_anybody_to_look_at_images_the_placeholder_stays(tmp_path: Path) -> None:
    """Pitfall 3."""
    talk = Talk()
    asked = talk.says(ANN, "", attachments=(shot(),))
    archive = RawArchive(tmp_path, RecentCaptures())
    source: Subject[CaptureJob] = Subject()
    ends: list[Outcome | Pair] = []
    context = Context(talk.history, talk.people, talk.tracker, ContextRules())
    done = asyncio.Event()
    captures(source, context, archive.keep).subscribe(ends.append, on_completed=done.set)
    source.on_next(CaptureJob(talk.part(talk.says(STAFF, "Restart.", to=asked))))
    source.on_completed()
    await done.wait()
    assert [[turn.text for turn in pair.turns] for pair in pairs_in(tmp_path, 1)] == [["[image: 1.png]", "Restart."]]


async def test_the_pending_file_names_its_messages(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.shots.gone = True
    asked = office.talk.says(ANN, "Why?", attachments=(shot(),))
    answer = office.talk.says(STAFF, "So.", to=asked)
    office.teaches(answer)
    await office.closes()
    [path] = (tmp_path / "pending").iterdir()
    assert path.name == f"{asked.id}-{answer.id}.capture"
    head = json.loads(path.read_bytes().split(b"\n")[0])
    assert head["conversation_id"] == f"reply_{asked.id}"
