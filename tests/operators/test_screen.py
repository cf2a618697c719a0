"""Which messages are let through, and what becomes of edits and deletions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from reactivex.subject import Subject

from dataflow.quiet_window import Amend, Keep
from model.events import Deleted, Edited, Event, Posted, Ready, Typing
from model.messages import AuthorType, Key, Message
from model.outcomes import Ignored, Reason, Removed
from model.servers import Servers
from operators import screen as module
from operators.screen import ChannelLists, ScreenedItem, ScreenRules, decode, screen
from services.conversations.in_flight import InFlight, WorkCancelled
from services.conversations.tracking import ConversationTracker
from services.discord.dispatches import Dispatch
from services.discord.wire import Decoder
from tests.marbles import watch
from tests.talk import ANN, BEN, BOT, CHANNEL, GUILD, STAFF, THREAD, SmallFetcher, Talk

RULES = ScreenRules(
    withheld=lambda message: message.author.id == BEN.id or "!nobot" in message.text,
)


DENIED = ChannelLists(denied=frozenset({CHANNEL.id}))


def rules(channels: dict[int | None, ChannelLists]) -> ScreenRules:
    return replace(RULES, channels=Servers(channels))


@dataclass
class Door:
    """A screen, the talk before it, and what has come through."""

    rules: ScreenRules = RULES
    talk: Talk = field(default_factory=Talk)
    in_flight: InFlight = field(default_factory=InFlight)
    tracker: ConversationTracker = field(default_factory=ConversationTracker)
    seen: list[ScreenedItem] = field(default_factory=list[ScreenedItem])

    def __post_init__(self) -> None:
        talk = self.talk
        self.events: Subject[Event] = Subject()
        self.events.pipe(
            screen(talk.people, talk.history, self.tracker, talk.team, self.in_flight, self.rules)
        ).subscribe(self.seen.append)

    def gets(self, event: Event) -> list[ScreenedItem]:
        """What comes of one event."""
        before = len(self.seen)
        self.talk.history.observe(event)
        self.events.on_next(event)
        return self.seen[before:]

    def hears(self, message: Message) -> list[str]:
        return told(self.gets(Posted(message.at, message)))


def told(items: Iterable[ScreenedItem]) -> list[str]:
    return [item.reason if isinstance(item, Ignored) else type(item).__name__.lower() for item in items]


def test_a_place_that_discord_has_not_told_of_may_be_denied_and_is_not_public() -> None:
    talk = Talk(fetcher=SmallFetcher())
    untold = replace(talk.says(ANN), channel_id=99)
    assert not talk.history.place(99).public
    assert Door(rules({None: DENIED}), talk).hears(untold) == [Reason.NOT_ADDRESSED]
    assert Door(talk=Talk(fetcher=SmallFetcher())).hears(untold) == ["posted"]


def test_people_are_let_through_and_bots_system_messages_and_empty_ones_are_not() -> None:
    """Pitfalls 23 and 31."""
    door, said = Door(), Talk().says
    assert door.hears(said(ANN)) == ["posted"]
    assert door.hears(said(STAFF, second=2)) == ["posted"]
    assert door.hears(said(BOT, second=3)) == [Reason.BOT]
    assert door.hears(replace(said(ANN, second=4), is_system=True)) == [Reason.SYSTEM]
    assert door.hears(said(ANN, " ", second=5)) == [Reason.EMPTY]
    assert len(door.in_flight) == 2


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (RULES, "posted"),
        (rules({None: DENIED}), Reason.NOT_ADDRESSED),
        (rules({None: ChannelLists(allowed=frozenset({CHANNEL.id}))}), "posted"),
        (rules({None: ChannelLists(allowed=frozenset({4}))}), Reason.NOT_ADDRESSED),
        (rules({None: ChannelLists(), GUILD: DENIED}), Reason.NOT_ADDRESSED),
        (rules({None: DENIED, GUILD: ChannelLists()}), "posted"),
        (rules({None: ChannelLists(), GUILD + 1: DENIED}), "posted"),
    ],
    ids=["no rule", "denied", "allowed", "another is allowed", "denied here", "allowed here", "denied elsewhere"],
)
def test_channels_are_allowed_or_denied_with_their_threads(rules: ScreenRules, expected: str) -> None:
    door = Door(rules)
    assert [door.hears(door.talk.says(ANN, place=place)) for place in (CHANNEL, THREAD)] == [[expected], [expected]]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (rules({None: ChannelLists(denied=frozenset({THREAD.id}))}), ["posted", Reason.NOT_ADDRESSED]),
        (rules({None: ChannelLists(allowed=frozenset({THREAD.id}))}), [Reason.NOT_ADDRESSED, "posted"]),
    ],
    ids=["denied", "allowed"],
)
def test_a_thread_is_allowed_or_denied_by_its_own_id(rules: ScreenRules, expected: list[str]) -> None:
    door = Door(rules)
    assert [door.hears(door.talk.says(ANN, place=place))[0] for place in (CHANNEL, THREAD)] == expected


def test_whoever_opted_out_is_ignored_and_so_is_a_message_with_the_marker() -> None:
    door = Door()
    assert door.hears(door.talk.says(BEN)) == [Reason.OPTED_OUT]
    assert door.hears(door.talk.says(ANN, "between us !nobot")) == [Reason.OPTED_OUT]


def test_a_message_is_let_through_once_and_not_again_after_a_restart() -> None:
    """Pitfall 25."""
    door = Door()
    message = door.talk.says(ANN)
    assert [door.hears(message) for _ in range(2)] == [["posted"], [Reason.DUPLICATE]]

    def ended(channel_id: int, message_id: int) -> bool:
        return (channel_id, message_id) == (CHANNEL.id, message.id)

    restarted = Door(replace(RULES, has_outcome=ended))
    assert restarted.hears(message) == [Reason.DUPLICATE]
    assert restarted.hears(restarted.talk.says(ANN, second=9)) == ["posted"]


def test_typing_keeps_the_window_of_who_types_open() -> None:
    door = Door()
    assert door.gets(Typing(5.0, CHANNEL.id, ANN)) == [Keep(Key(CHANNEL.id, ANN.id), 5.0, module.TYPING_SECONDS)]


def test_duplicates_are_told_among_the_newest_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 25, in bounded memory."""
    monkeypatch.setattr(module, "IDS_KEPT", 1)
    door = Door()
    first, second = door.talk.says(ANN), door.talk.says(ANN)
    assert [door.hears(each) for each in (first, second, second, first)] == [
        ["posted"],
        ["posted"],
        [Reason.DUPLICATE],
        ["posted"],
    ]


def test_a_deletion_or_an_edit_may_come_before_its_message() -> None:
    door = Door()
    deleted, changed = door.talk.says(ANN, unheard=True), door.talk.says(ANN, "old", unheard=True)
    assert door.gets(Deleted(deleted.at, CHANNEL.id, (deleted.id,))) == []
    assert door.hears(deleted) == ["removed"]
    door.gets(Edited(changed.at, CHANNEL.id, changed.id, "new"))
    (posted,) = door.gets(Posted(changed.at, changed))
    assert isinstance(posted, Posted)
    assert posted.message.text == "new"


def applied(items: Iterable[ScreenedItem], waiting: Posted) -> Posted | None:
    """What becomes of a waiting message."""
    (amend,) = [item for item in items if isinstance(item, Amend)]
    assert amend.key == Key(CHANNEL.id, ANN.id)
    return amend.edit(waiting)


def test_an_edit_changes_what_still_waits_and_nothing_else() -> None:
    door = Door()
    message, other = door.talk.says(ANN, "old"), door.talk.says(ANN, "other")
    door.hears(message)
    changes = door.gets(Edited(message.at, CHANNEL.id, message.id, "new"))
    changed = applied(changes, Posted(1.0, message))
    assert changed is not None
    assert changed.message.text == "new"
    assert applied(changes, Posted(1.0, other)) == Posted(1.0, other)
    door.in_flight.begin(door.talk.part(message))
    assert door.gets(Edited(message.at, CHANNEL.id, message.id, "newer")) == []


@pytest.mark.parametrize(("text", "reason"), [("!nobot", Reason.OPTED_OUT), ("", Reason.EMPTY)])
def test_an_edit_may_take_a_waiting_message_back(text: str, reason: Reason) -> None:
    door = Door()
    message = door.talk.says(ANN)
    door.hears(message)
    changes = door.gets(Edited(message.at, CHANNEL.id, message.id, text))
    assert applied(changes, Posted(1.0, message)) is None
    assert told(changes) == ["amend", reason]


def test_an_edit_of_a_waiting_message_that_the_history_has_dropped_is_passed_on() -> None:
    door = Door()
    message = door.talk.says(ANN, unheard=True)
    door.in_flight.hold(message, AuthorType.COMMUNITY_USER, in_thread=False)
    assert told(door.gets(Edited(message.at, CHANNEL.id, message.id, "new"))) == ["amend"]


def test_a_deletion_takes_back_what_waits_and_later_cancels_the_answer() -> None:
    """Pitfall 29."""
    door = Door()
    message = door.talk.says(ANN)
    door.hears(message)
    gone = door.gets(Deleted(message.at, CHANNEL.id, (message.id, 5)))
    assert applied(gone, Posted(1.0, message)) is None
    assert gone[1:] == [Removed(CHANNEL.id, message.id)]
    answered = door.talk.says(ANN)
    door.hears(answered)
    part = door.talk.part(answered)
    door.in_flight.begin(part)
    assert door.gets(Deleted(answered.at, CHANNEL.id, (answered.id,))) == []
    assert isinstance(part.token.error, WorkCancelled)


def test_a_team_members_message_cancels_the_answer_that_it_makes_unnecessary() -> None:
    door = Door()
    question = door.talk.says(ANN)
    door.hears(question)
    part = door.talk.part(question)
    door.in_flight.begin(part)
    door.hears(door.talk.says(STAFF, to=question))
    assert isinstance(part.token.error, WorkCancelled)
    assert part.token.error.reason is Reason.TEAM_ANSWERED


def test_a_team_member_who_goes_on_with_the_conversation_cancels_the_answer_and_a_greeting_does_not() -> None:
    """Pitfall 63."""
    door, talk = Door(), Talk()

    def heard(message: Message) -> None:
        door.tracker.follow(message, talk.people.type_of(message.author, None), CHANNEL)
        door.hears(message)

    question = talk.says(ANN, "How do I start it?", second=0)
    heard(question)
    part = talk.part(question)
    door.in_flight.begin(part)
    heard(talk.says(STAFF, "good morning", second=10))
    assert part.token.error is None
    heard(talk.says(STAFF, "Press the button.", second=20, mentions=[ANN]))
    assert isinstance(part.token.error, WorkCancelled)
    assert part.token.error.reason is Reason.TEAM_ANSWERED


def test_other_events_are_nothing_to_the_screen() -> None:
    assert Door().gets(Ready(1.0, BOT.id, BOT.name)) == []


async def test_dispatches_become_events_and_those_that_are_not_used_nothing() -> None:
    ready = Dispatch(1.0, "READY", {"user": {"id": "9", "username": "helper"}})
    values = {"t": Dispatch(0.0, "TYPING_START", {}), "r": ready}
    assert await watch("t-r|", decode(), values=values) == [(2, Ready(1.0, 9, "helper")), (3, "|")]
    assert await watch("r|", decode(Decoder()), values=values) == [(0, Ready(1.0, 9, "helper")), (1, "|")]
