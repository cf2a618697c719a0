"""The kinds of captured conversations: whoever stores, keeps or hands over captures knows each of them."""

from __future__ import annotations

import re

import pytest

from model.conversations import ID_FORMS, KINDS, ConversationKind, kind_of
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind, snowflake_time
from services.team import (
    Capture,
    CapturedMessage,
    Pair,
    PairTurn,
    PendingCapture,
    RecentCaptures,
    Speaker,
    archive,
    pair_links,
    pending,
)
from sinks.team import merge
from transport.captures import decode_capture, encode_capture

STAMP, LATER = "2026-02-01T03:10:56Z", "2026-02-01T03:10:57Z"
PLACE = Place(8, PlaceKind.THREAD, guild_id=9, parent_id=7)
WRITTEN = Message(51, 8, Author(2, ""), "", snowflake_time(51), 9)
PART = Part(3, (WRITTEN,), AuthorType.TEAM_MEMBER, PLACE, 0.0)
ASKED = CapturedMessage(50, 1, PairTurn(Speaker.USER, "how?"))
ANSWERED = CapturedMessage(51, 2, PairTurn(Speaker.TEAM, "use --restore"), ASKED.author_id)
THANKED = CapturedMessage(52, 1, PairTurn(Speaker.USER, "thanks"))
LONG = 10**25
"""More digits than any id of Discord has."""


def pair(conversation_id: str, stamp: str, *said: CapturedMessage) -> Pair:
    messages, authors = tuple(each.message_id for each in said), tuple(each.author_id for each in said)
    turns = tuple(each.turn for each in said)
    return Pair(archive.qa_id(stamp), stamp, stamp, conversation_id, messages, authors, turns)


@pytest.mark.parametrize("number", [0, 1, 10**19, LONG])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_is_known_to_archive_waiting_captures_and_the_hand_over(
    kind: ConversationKind, number: int
) -> None:
    name = kind.make_id(number)
    assert kind_of(name) is kind
    stored = pair(name, STAMP, ASKED, ANSWERED)
    assert archive.parse(archive.render(stored)) == [stored]

    capture = Capture(PART, name, (ASKED, ANSWERED))
    waiting = PendingCapture(5.0, Capture(None, name, capture.messages), ())
    assert pending.parse_pending(pending.render_pending(waiting)) == waiting

    handed = decode_capture(*encode_capture(capture, PART), 4)
    assert (handed.conversation_id, handed.messages) == (name, capture.messages)
    assert [each.addressee_id for each in handed.messages] == [0, ASKED.author_id]
    assert handed.part is not None
    assert (handed.part.number, handed.part.message_ids) == (4, PART.message_ids)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_joins_by_messages_goes_on_and_another_is_read_as_a_whole(kind: ConversationKind) -> None:
    name, other = kind.make_id(50), kind.make_id(60)
    known = RecentCaptures([pair(name, STAMP, ASKED, ANSWERED)])
    joined = known.join(Capture(PART, other, (ASKED, THANKED)))
    assert (joined.conversation_id == name) is kind.joins_by_messages
    assert (ANSWERED in joined.messages) is kind.joins_by_messages

    # A later reading has less than an earlier capture, which comes late.
    late = merge(pair(name, LATER, ASKED, THANKED), Capture(None, name, (ASKED, ANSWERED)))
    assert (late is not None) is kind.joins_by_messages


@pytest.mark.parametrize("kind", KINDS)
def test_answers_link_to_what_is_on_discord(kind: ConversationKind) -> None:
    line = pair_links.pair_link_line("qa_1", Capture(PART, kind.make_id(50), (ASKED, ANSWERED)))
    assert (line is not None) is kind.is_on_discord


@pytest.mark.parametrize(
    "name", ["", "thread", "thread_", "thread_x", "thread_1 ", "thread_1\n", "Reply_1", "../17", "x_1"]
)
def test_what_is_no_id_is_refused_everywhere(name: str) -> None:
    with pytest.raises(ValueError, match=ID_FORMS):
        kind_of(name)
    with pytest.raises(archive.Malformed, match=f"^conversation_id {re.escape(repr(name))} is neither {ID_FORMS}$"):
        pair(name, STAMP, ASKED, ANSWERED)
    with pytest.raises(pending.DamagedCapture, match="conversation_id"):
        pending.parse_pending(pending.render_pending(PendingCapture(5.0, Capture(None, name, (ASKED, ANSWERED)), ())))


def test_no_kind_begins_like_another() -> None:
    prefixes = [kind.prefix for kind in KINDS]
    assert [each for each in prefixes if sum(other.startswith(each) for other in prefixes) > 1] == []
