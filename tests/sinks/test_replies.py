"""What is left of an answer that Discord refuses to take whole."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from model.conversations import ShownPair
from model.messages import Author, Message, Place, PlaceKind, Reference
from model.servers import Servers
from services.conversations import History, Post, Posts, StartedReply
from services.discord import DryRunPoster, LookupFailed, PostFailed, TakenBack
from services.llm import Budget, BudgetLimits
from sinks.replies import Replies
from tests.talk import SmallFetcher, people_of
from tests.world import ANNA, BEN, BOT, GUILD, HELP, TESS

QUESTION, FIRST = 500, 501
PIECES = ("The first piece.", "The second piece.")


def said(message_id: int, author: Author, text: str, *, system: bool = False) -> Message:
    return Message(message_id, QUESTION, author, text, 0.0, GUILD, is_system=system)


class Thread(SmallFetcher):
    """One thread, as REST tells of it. `closed`: it cannot be asked for its owner."""

    def __init__(self, *others: Message, owner: Author = BOT, gone: bool = False, closed: bool = False) -> None:
        super().__init__(said(QUESTION, BOT, "", system=True), said(FIRST, BOT, PIECES[0]), *others)
        self._owner, self._gone, self._closed = owner, gone, closed

    async def place(self, place_id: int) -> Place | None:
        if self._closed:
            raise LookupFailed("Discord did not answer in time")
        return None if self._gone else Place(place_id, PlaceKind.THREAD, "t", GUILD, HELP, self._owner.id)


class Refusing(DryRunPoster):
    """Takes no message, and notes which threads it is to delete."""

    def __init__(self, thread: Thread, *, may_delete: bool = True) -> None:
        super().__init__()
        self.thread = thread
        self.deleted: list[int] = []
        self._may_delete = may_delete

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        raise PostFailed("nothing sent")

    async def delete(self, place_id: int, message_id: int) -> None:
        del self.thread.there[message_id]

    async def delete_thread(self, thread_id: int) -> None:
        if not self._may_delete:
            raise PostFailed("the bot lacks Manage Threads there")
        self.deleted.append(thread_id)


async def taken_back(poster: Refusing, *, last_asked_id: int = QUESTION, asked_in: int = HELP) -> None:
    """What is left of a reply of two pieces, of which the second is refused."""
    thread = poster.thread
    people = people_of(frozenset({TESS.id}), frozenset(), None)
    people.bot_id = BOT.id
    replies = Replies(poster, Posts(), History(None), people, Servers({None: Budget(BudgetLimits())}), fetcher=thread)
    post = Post(0.0, 0, QUESTION, asked_in, ANNA.id, last_asked_id, asked_in != QUESTION, "how?", ())
    with pytest.raises(TakenBack):
        await replies.finish(StartedReply(post, PIECES, (last_asked_id,), GUILD))
    assert FIRST not in thread.there


async def test_an_empty_thread_of_the_bots_own_is_deleted() -> None:
    """Pitfall 24."""
    poster = Refusing(Thread())
    await taken_back(poster)
    assert poster.deleted == [QUESTION]


async def test_a_thread_that_somebody_has_written_in_stays() -> None:
    poster = Refusing(Thread(said(FIRST + 1, BEN, "Same here.")))
    await taken_back(poster)
    assert poster.deleted == []


@pytest.mark.parametrize(
    "thread", [Thread(owner=ANNA), Thread(gone=True)], ids=["somebody else opened it", "it is gone"]
)
async def test_what_is_not_the_bots_to_delete_stays(thread: Thread) -> None:
    poster = Refusing(thread)
    await taken_back(poster)
    assert poster.deleted == []


@pytest.mark.parametrize(
    ("last_asked_id", "asked_in"), [(QUESTION - 9, HELP), (QUESTION, QUESTION)], ids=["used again", "a forum post"]
)
async def test_a_thread_that_was_there_before_stays(last_asked_id: int, asked_in: int) -> None:
    poster = Refusing(Thread())
    await taken_back(poster, last_asked_id=last_asked_id, asked_in=asked_in)
    assert poster.deleted == []


@pytest.mark.parametrize(
    ("poster", "why"),
    [
        (Refusing(Thread(), may_delete=False), "the bot lacks Manage Threads there"),
        (Refusing(Thread(closed=True)), "Discord did not answer in time"),
    ],
)
async def test_one_line_tells_of_a_thread_that_could_not_be_deleted(
    poster: Refusing, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sinks.replies")
    await taken_back(poster)
    (told,) = [record for record in caplog.records if "stays" in record.getMessage()]
    assert told.levelno == logging.INFO
    assert told.getMessage() == f"the thread {QUESTION} of an answer that was taken back stays: {why}"


ASKED = QUESTION + 1


def by_bot(text: str, to: int | None) -> Message:
    """A message in the thread after the question `ASKED`; `to`: what it replies to."""
    return replace(said(ASKED + 1, BOT, text), reply_to=None if to is None else Reference(to, QUESTION))


@pytest.mark.parametrize(
    ("there", "posts"),
    [
        ([], ["So it is."]),
        ([by_bot("So  it is.", ASKED)], []),  # by an earlier try; Discord has changed the white space
        ([by_bot("So it is.", None)], []),  # likewise, when the question was gone
        ([by_bot("So it is.", ASKED - 1)], ["So it is."]),  # it answers somebody else
        ([replace(by_bot("So it is.", ASKED), author=BEN)], ["So it is."]),
    ],
    ids=["nothing", "posted", "posted without the question", "another answer", "by a person"],
)
async def test_a_reply_is_posted_unless_it_is_there(there: list[Message], posts: list[str]) -> None:
    poster = DryRunPoster()
    people = people_of(frozenset({TESS.id}), frozenset(), None)
    people.bot_id = BOT.id
    discord, budgets = SmallFetcher(*there), Servers({None: Budget(BudgetLimits())})
    replies = Replies(poster, kept := Posts(), history := History(None), people, budgets, fetcher=discord)
    post = Post(0.0, 0, QUESTION, QUESTION, ANNA.id, ASKED, False, "how?", ())
    await replies.post_approved(StartedReply(post, ("So it is.",), (ASKED,), GUILD), "")
    assert [message.text for message in history.recent(QUESTION)] == posts
    assert kept.has_answered(ASKED)


async def test_the_record_of_a_reply_has_all_its_pieces_also_those_of_an_earlier_run() -> None:
    people = people_of(frozenset({TESS.id}), frozenset(), None)
    people.bot_id = BOT.id
    budgets = Servers({None: Budget(BudgetLimits())})
    replies = Replies(DryRunPoster(), kept := Posts(), History(None), people, budgets, fetcher=Thread())
    pairs = (ShownPair(None, "qa_1"),)
    post = Post(0.0, 0, QUESTION, HELP, ANNA.id, QUESTION, True, "how?", (), pairs)
    await replies.finish(StartedReply(post, PIECES, (QUESTION,), GUILD))
    found = kept.find(FIRST)
    assert found is not None
    assert (found, found.earlier_ids, found.shown_pairs) == (kept.find(found.message_id), (FIRST,), pairs)
