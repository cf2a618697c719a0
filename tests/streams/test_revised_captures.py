"""Edits and deletions on their way to the archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from reactivex import Observable

from model.events import Deleted, Edited, PlaceGone, PlaceSeen, Posted
from model.messages import Place, PlaceKind
from operators.capturing import revisions_of
from operators.doubting import Doubt, DoubtedPair
from services.conversations.context import Context, ContextRules
from services.team import Pair, PairTurn, Revision, Speaker
from services.team.archive_files import ArchiveUnwritable
from services.team.captures import Capture, CapturedMessage
from streams.captures import RemoteRevisions, revised_captures, store_remote_captures
from tests.marbles import play
from tests.talk import ANN, CHANNEL, GUILD, STAFF, START, Talk
from tests.team import pair
from transport.captures import decode_revisions, encode_revisions

TALK = Talk()
POSTED = Posted(START, TALK.says(ANN, "How?"))
VALUES: dict[str, Any] = {
    "m": POSTED,
    "e": Edited(START, CHANNEL.id, POSTED.message.id, "How so?"),
    "d": Deleted(START, CHANNEL.id, (5, 6)),
    "u": Edited(START, CHANNEL.id, 7, None),
}


class Desk:
    """Captures again all that it is told of, each message as one pair; an exception is raised."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[tuple[int | None, list[int]]] = []
        self.error = error

    async def revise(self, guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        self.told.append((guild_id, [each.message_id for each in revisions]))
        if self.error is not None:
            raise self.error
        return [pair(number + 1) for number, _ in enumerate(revisions)]

    def revised(self, events: Observable[Any]) -> Observable[Any]:
        context = Context(TALK.history, TALK.people, TALK.tracker, ContextRules())
        return revised_captures(events, context, self.revise, lambda place_id: TALK.history.place(place_id).guild_id)


def number_of(each: Any) -> str:
    return {pair(1).id: "1", pair(2).id: "2"}.get(getattr(each, "id", ""), "o")


async def test_each_edit_and_deletion_gives_what_is_captured_again() -> None:
    desk = Desk()
    assert await play("-m-e--u-d-|", desk.revised, values=VALUES, show=number_of) == "---1----(1 2)-|"
    assert desk.told == [(GUILD, [POSTED.message.id]), (GUILD, [5, 6])]


def test_an_edit_of_a_message_from_before_the_start_is_of_its_author() -> None:
    """`/privacy opt-out` holds for it."""
    context = Context(
        TALK.history, TALK.people, TALK.tracker, ContextRules(withheld=lambda each: each.author.id == ANN.id)
    )
    edits = [Edited(START, CHANNEL.id, 7, "my illness", author_id=author.id) for author in (ANN, STAFF)]
    assert [revisions_of(each, context)[0].text for each in edits] == [None, "my illness"]


async def test_whoever_deletes_message_after_message_has_few_revisions_stored() -> None:
    """Each stores a whole conversation, and pauses double."""
    desk = Desk()
    diagram = await play("d" * 60 + "-" * 400 + "d-|", desk.revised, values=VALUES, show=lambda _: "x")
    assert len(desk.told) == 8, "after 0, 1, 3, 7, 15, 31 and 63 s, and anew after a long pause"
    assert diagram.endswith("(x x)-|")


async def test_at_the_end_nothing_waits() -> None:
    desk = Desk()
    values = VALUES | {"f": Deleted(START, CHANNEL.id, (7,))}
    assert await play("-d-d-df|", desk.revised, values=values, show=number_of) == "-(1 2)-(1 2)-(1 2)-(1 |)"
    assert desk.told[-1] == (GUILD, [7])


@pytest.mark.parametrize(("error", "traced"), [(ArchiveUnwritable("the disk is full"), False), (KeyError("x"), True)])
async def test_what_could_not_be_captured_again_is_told_and_holds_up_nothing(
    caplog: pytest.LogCaptureFixture, error: Exception, *, traced: bool
) -> None:
    assert await play("-d---|", Desk(error).revised, values=VALUES) == "-----|"
    said = "messages, channels or pairs 5, 6 were deleted, edited or doubted, and what was captured stays"
    assert f"{said}: {error}; see --kb remove" in caplog.messages
    assert ("Traceback" in caplog.text) == traced


async def test_what_is_deleted_while_the_disk_is_full_is_captured_again_when_there_is_room() -> None:
    desk = Desk(ArchiveUnwritable("the disk is full"))

    async def revise(guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        if len(desk.told) == 3:
            desk.error = None
        return await desk.revise(guild_id, revisions)

    def revised(events: Observable[Any]) -> Observable[Any]:
        context = Context(TALK.history, TALK.people, TALK.tracker, ContextRules())
        return revised_captures(events, context, revise, lambda _: GUILD)

    values = VALUES | {"f": Deleted(START, CHANNEL.id, (7,))}
    assert "o" in await play("-d-f----------|", revised, values=values, show=lambda _: "o")
    assert [told for _, told in desk.told] == [[5, 6], [5, 6], [5, 6, 7], [5, 6, 7]]


async def test_a_doubt_is_kept_beside_an_edit_of_the_same_message() -> None:
    desk, told = Desk(), list[Revision]()

    async def revise(guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        told.extend(revisions)
        return await desk.revise(guild_id, revisions)

    def revised(events: Observable[Any]) -> Observable[Any]:
        context = Context(TALK.history, TALK.people, TALK.tracker, ContextRules())
        return revised_captures(events, context, revise, lambda _: GUILD)

    values = VALUES | {"x": Doubt(CHANNEL.id, POSTED.message.id)}
    await play("-d-(ex)-|", revised, values=values, show=lambda _: "o")
    assert [(each.message_id, each.is_doubt) for each in told[2:]] == [
        (POSTED.message.id, False),
        (POSTED.message.id, True),
    ]
    assert decode_revisions(encode_revisions(told)) == tuple(told), "so it goes over NATS"


async def test_a_pair_is_doubted_in_the_library_that_it_is_from(caplog: pytest.LogCaptureFixture) -> None:
    told = list[tuple[int | None, Sequence[Revision]]]()

    async def revise(guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        told.append((guild_id, revisions))
        raise KeyError("x")

    def revised(events: Observable[Any]) -> Observable[Any]:
        context = Context(TALK.history, TALK.people, TALK.tracker, ContextRules())
        return revised_captures(events, context, revise, lambda _: GUILD)

    pairs = (DoubtedPair(None, "qa_1"), DoubtedPair(None, "qa_2"), DoubtedPair(9, "qa_1"))
    await play("(abcd)-|", revised, values=dict(zip("abcd", (*pairs, pairs[0]), strict=True)))
    doubts = [Revision(0, is_doubt=True, pair_id=each.pair_id) for each in pairs]
    assert told == [(None, tuple(doubts[:2])), (9, (doubts[2],))]
    assert decode_revisions(encode_revisions(doubts)) == tuple(doubts), "so it goes over NATS"
    assert "pairs qa_1, qa_2 were deleted, edited or doubted" in caplog.text


async def test_a_deleted_channel_takes_its_threads_along() -> None:
    desk, told, talk = Desk(), list[Revision](), Talk()
    for place in (Place(5, PlaceKind.THREAD, parent_id=CHANNEL.id), Place(6, PlaceKind.THREAD, parent_id=99)):
        talk.history.observe(PlaceSeen(START, place))

    async def revise(guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        told.extend(revisions)
        return await desk.revise(guild_id, revisions)

    def revised(events: Observable[Any]) -> Observable[Any]:
        context = Context(talk.history, talk.people, talk.tracker, ContextRules())
        return revised_captures(events, context, revise, lambda _: None)

    await play("-g-|", revised, values={"g": PlaceGone(START, CHANNEL.id, GUILD)})
    assert {Revision(CHANNEL.id, is_place=True), Revision(5, is_place=True)} < set(told)
    assert Revision(6, is_place=True) not in told
    assert [guild_id for guild_id, _ in desk.told] == [GUILD]


@pytest.mark.parametrize("error", [None, ArchiveUnwritable("the disk is full")])
async def test_what_another_process_has_seen_is_acknowledged_once_it_is_stored(error: Exception | None) -> None:
    desk, ended = Desk(error), list[bool]()
    part = TALK.part(TALK.says(STAFF))

    async def archive(capture: Capture) -> Any:
        assert capture.part is not None
        return capture.conversation_id

    def stored(remote: Observable[Any]) -> Observable[Any]:
        return store_remote_captures(remote, archive, desk.revise)

    values = {
        "c": Capture(part, "reply_1", (CapturedMessage(5, STAFF.id, PairTurn(Speaker.TEAM, "So.")),)),
        "r": RemoteRevisions(GUILD, (Revision(5),), ended.append),
    }
    diagram = await play("-c-r-|", stored, values=values, show=number_of)
    assert (diagram, ended) == (("-o-1-|", [True]) if error is None else ("-o---|", [False]))
    assert desk.told == [(GUILD, [5])]
