"""Notes about files are in the language of those who posted them."""

from __future__ import annotations

import pytest

from model.events import PlaceSeen, Posted
from model.messages import Author, Message, Place, PlaceKind
from model.servers import Servers
from services.conversations import History, phrases
from services.discord import DryRunPoster
from services.documents import Tombstones
from sinks.evidence import FileNotes
from tests.talk import people_of

THREAD = 9
GERMAN = (1, "Wieso startet der Dienst nicht mehr?")
ENGLISH_BOT = (2, "why is it so, what is the cause of this and that")


class Notebook(DryRunPoster):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        self.texts.append(text)
        return await super().send(place_id, text, nonce=nonce, reply_to=reply_to)


@pytest.mark.parametrize(
    ("said", "reply_language", "told"),
    [([GERMAN, ENGLISH_BOT], "question", "de"), ([GERMAN, ENGLISH_BOT], "fr", "fr"), ([], "question", "en")],
)
async def test_a_thread_speaks_as_the_people_in_it_do_and_not_as_bots_do(
    said: list[tuple[int, str]], reply_language: str, told: str
) -> None:
    history = History(None)
    for number, (who, text) in enumerate(said, 1):
        author = Author(who, "x", is_bot=who == ENGLISH_BOT[0])
        history.observe(Posted(100.0 + number, Message(number, THREAD, author, text, 100.0, 7)))
    gone, poster = Tombstones(), Notebook()
    await gone.close(THREAD, 200.0)
    people = people_of(frozenset(), frozenset(), None)
    notes = FileNotes(
        poster=poster, history=history, people=people, tombstones=gone, reply_languages=Servers({None: reply_language})
    )
    await notes.on_reopen(THREAD)
    assert poster.texts == [phrases(told).post_again]


@pytest.mark.parametrize(("guild_id", "told"), [(7, "fr"), (8, "de"), (None, "de")])
async def test_a_server_may_have_a_language_of_its_own(guild_id: int | None, told: str) -> None:
    history, gone, poster = History(None), Tombstones(), Notebook()
    history.observe(PlaceSeen(100.0, Place(THREAD, PlaceKind.THREAD, "x", guild_id)))
    await gone.close(THREAD, 200.0)
    people = people_of(frozenset(), frozenset(), None)
    languages = Servers({None: "de", 7: "fr"})
    notes = FileNotes(poster=poster, history=history, people=people, tombstones=gone, reply_languages=languages)
    await notes.on_reopen(THREAD)
    assert poster.texts == [phrases(told).post_again]
