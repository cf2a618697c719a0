"""Notes about files are in the language of those who posted them."""

from __future__ import annotations

from model.events import Posted
from model.messages import Author, Message
from services.conversations import History, People
from services.discord import Rehearsal
from services.documents import Tombstones
from sinks.evidence import FileNotes


def notes(history: History, reply_language: str = "question") -> FileNotes:
    people = People(frozenset(), frozenset(), None)
    return FileNotes(
        poster=Rehearsal(), history=history, people=people, gone=Tombstones(), reply_language=reply_language
    )


def test_a_thread_speaks_as_the_people_in_it_do_and_not_as_bots_do() -> None:
    history = History(None)
    for number, (who, text) in enumerate(
        [(1, "Wieso startet der Dienst nicht mehr?"), (2, "why is it so, what is the cause of this and that")], 1
    ):
        history.observe(Posted(100.0 + number, Message(number, 9, Author(who, "x", is_bot=who == 2), text, 100.0, 7)))
    assert notes(history)._language(9) == "de"  # pyright: ignore[reportPrivateUsage]
    assert notes(history, "fr")._language(9) == "fr"  # pyright: ignore[reportPrivateUsage]
    assert notes(History(None))._language(9) == "en"  # pyright: ignore[reportPrivateUsage]
