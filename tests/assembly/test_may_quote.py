"""Which question may be told to everybody as it was asked."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from assembly.graph_parts import GraphParts
from assembly.teaching import LessonStore
from model.events import Deleted, PlaceSeen, Posted
from model.messages import Author, Message, Place, PlaceKind
from model.servers import Servers
from services.conversations import Context, ContextRules, ConversationTracker, RouteRules
from services.conversations.history import History
from services.discord import Fetcher, LookupFailed
from services.redaction import Redactor
from tests.reporting.asked import asked
from tests.talk import people_of

ASKED = asked("Where is the lantern?\nIt is dark.", message_ids=(31, 32), place_id=9)
HELP = Place(7, PlaceKind.CHANNEL, guild_id=1)
THREAD = Place(9, PlaceKind.THREAD, guild_id=1, parent_id=7, archived=True)
TEXTS = {31: "Where is the lantern?", 32: "It is dark."}


class Discord:
    """One thread with messages; `place` and `texts` as they are now."""

    def __init__(self) -> None:
        self.place_now: Place | None = THREAD
        self.texts = dict(TEXTS)
        self.refuses = False

    async def place(self, place_id: int) -> Place | None:
        return self.place_now

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        if self.refuses:
            raise LookupFailed("Missing Access")
        text = self.texts.get(message_id)
        return None if text is None else written(message_id, text)


def written(message_id: int, text: str) -> Message:
    return Message(message_id, THREAD.id, Author(ASKED.author_id, "ada"), text, 0.0, guild_id=1)


def teaching(
    history: History, *, capture_channels: frozenset[int] = frozenset(), opted_out: bool = False
) -> LessonStore:
    rules = Servers({None: RouteRules(capture_channels=capture_channels)})

    def withheld(_message: Message) -> bool:
        return opted_out

    people = people_of(frozenset(), frozenset(), None)
    context = Context(history, people, ConversationTracker(), ContextRules(withheld=withheld))
    services = SimpleNamespace(context=context, router=SimpleNamespace(rules=rules))
    return LessonStore(cast("GraphParts", SimpleNamespace(services=services)), Redactor())


def live(discord: Discord, *places: Place) -> History:
    history = History(cast("Fetcher", discord))
    for place in places:
        history.observe(PlaceSeen(0.0, place))
    return history


async def test_a_question_may_be_told_while_everybody_can_read_it_as_it_was_asked() -> None:
    discord = Discord()
    one = teaching(live(discord, HELP))  # the thread is archived: it is looked up
    assert await one.may_quote(ASKED)
    discord.texts[32] = "It is no more."
    assert not await one.may_quote(ASKED)
    del discord.texts[32]
    assert not await one.may_quote(ASKED)
    discord.texts, discord.refuses = dict(TEXTS), True
    assert not await one.may_quote(ASKED)


@pytest.mark.parametrize(
    ("thread", "listed", "may"),
    [
        (THREAD, (), True),
        (replace(THREAD, public=False), (), False),
        (replace(THREAD, public=False), (7,), True),
        (replace(THREAD, public=False, invited_only=True), (7,), False),
        (replace(THREAD, public=False, invited_only=True), (9,), True),
        (None, (), False),
    ],
)
async def test_a_place_whose_conversations_are_not_captured_is_not_told_of(
    thread: Place | None, listed: tuple[int, ...], *, may: bool
) -> None:
    discord = Discord()
    discord.place_now = thread
    assert await teaching(live(discord, HELP), capture_channels=frozenset(listed)).may_quote(ASKED) is may


async def test_a_channel_that_discord_has_not_listed_may_be_private() -> None:
    assert not await teaching(live(Discord())).may_quote(ASKED)


async def test_the_words_of_who_has_opted_out_are_not_told() -> None:
    assert not await teaching(live(Discord(), HELP), opted_out=True).may_quote(ASKED)


async def test_a_replay_goes_by_what_it_has_seen() -> None:
    history = History(None)
    for message_id, text in TEXTS.items():
        history.observe(Posted(0.0, written(message_id, text)))
    one = teaching(history)
    assert await one.may_quote(ASKED)
    history.observe(Deleted(1.0, THREAD.id, (31,)))
    assert not await one.may_quote(ASKED)
