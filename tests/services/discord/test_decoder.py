"""Gateway dispatches → events."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from model.events import Deleted, Edited, PlaceGone, PlaceSeen, Posted, Reaction, Ready, Typing
from model.messages import Attachment, Author, Place, PlaceKind
from services.discord.dispatches import Dispatch
from services.discord.wire import Decoder, OddPayload, read_message

POST: dict[str, object] = {"id": "40", "channel_id": "20", "author": {"id": "7", "username": "ada"}, "content": "hi"}


def decode(t: str, d: dict[str, object], decoder: Decoder | None = None) -> tuple[object, ...]:
    return tuple((decoder or Decoder()).decode(Dispatch(5.0, t, d)))


def test_ready_names_the_bot() -> None:
    assert decode("READY", {"v": 10, "user": {"id": "9", "username": "helper"}}) == (Ready(5.0, 9, "helper"),)


def test_channels_and_threads_come_change_and_go() -> None:
    decoder = Decoder()
    forum: dict[str, object] = {"id": "21", "type": 15, "name": "help", "guild_id": "1"}
    channels = [{"id": "20", "type": 0, "name": "talk"}]
    seen = decode("GUILD_CREATE", {"id": "1", "channels": channels, "threads": []}, decoder)
    assert seen == (PlaceSeen(5.0, Place(20, PlaceKind.CHANNEL, "talk", 1)),)
    assert decode("CHANNEL_CREATE", forum, decoder) == (PlaceSeen(5.0, Place(21, PlaceKind.CHANNEL, "help", 1)),)
    renamed = decode("CHANNEL_UPDATE", {**forum, "name": "ask"}, decoder)
    assert renamed == (PlaceSeen(5.0, Place(21, PlaceKind.CHANNEL, "ask", 1)),)
    post: dict[str, object] = {"id": "40", "type": 11, "name": "Q", "guild_id": "1", "parent_id": "21", "owner_id": "7"}
    opened = Place(40, PlaceKind.FORUM_POST, "Q", 1, 21, 7)
    assert decode("THREAD_CREATE", post, decoder) == (PlaceSeen(5.0, opened),)
    renamed = decode("THREAD_UPDATE", {**post, "name": "Why?"}, decoder)
    assert renamed == (PlaceSeen(5.0, replace(opened, name="Why?")), Edited(5.0, 40, 40, None))
    decode("THREAD_UPDATE", post, decoder)
    locked = decode("THREAD_UPDATE", {**post, "thread_metadata": {"locked": True, "archived": True}}, decoder)
    assert locked == (PlaceSeen(5.0, Place(40, PlaceKind.FORUM_POST, "Q", 1, 21, 7, locked=True, archived=True)),)
    assert decode("THREAD_DELETE", {"id": "40", "type": 11, "parent_id": "21"}, decoder) == (PlaceGone(5.0, 40),)
    assert decode("CHANNEL_DELETE", forum, decoder) == (PlaceGone(5.0, 21, 1),)
    assert decoder.place(post).kind is PlaceKind.THREAD


def test_a_change_of_roles_is_seen_in_the_places() -> None:
    decoder = Decoder()
    decode("GUILD_CREATE", {"id": "1", "channels": [{"id": "20", "type": 0}]}, decoder)
    hidden = decode("GUILD_ROLE_UPDATE", {"guild_id": "1", "role": {"id": "1", "permissions": "0"}}, decoder)
    assert hidden == (PlaceSeen(5.0, Place(20, PlaceKind.CHANNEL, "", 1, public=False, viewable=False)),)


def test_the_threads_of_a_hidden_channel_that_the_bot_is_let_into_are_not_public() -> None:
    decoder = Decoder()
    hides = {"id": "1", "type": 0, "allow": "0", "deny": "1024"}
    hidden = {"id": "20", "type": 0, "permission_overwrites": [hides]}
    for roles in ([{"id": "1", "permissions": "1024"}, {"id": "5", "permissions": None}], [{"id": "1"}]):
        decode("GUILD_CREATE", {"id": "1", "roles": roles, "channels": [hidden], "threads": []}, decoder)
        thread = {"id": "40", "type": 11, "parent_id": "20"}
        told = decode("THREAD_LIST_SYNC", {"guild_id": "1", "threads": [{"id": "x"}, thread]}, decoder)
        assert told == (PlaceSeen(5.0, Place(40, PlaceKind.THREAD, "", 1, 20, public=False, viewable=False)),)


def test_where_the_role_of_everyone_cannot_be_read_nothing_is_public() -> None:
    channel = {"id": "20", "type": 0}
    seen = decode("GUILD_CREATE", {"id": "1", "roles": [{"id": "1", "permissions": None}], "channels": [channel]})
    assert seen == (PlaceSeen(5.0, Place(20, PlaceKind.CHANNEL, "", 1, public=False, viewable=False)),)


def test_a_message_comes_with_what_it_quotes() -> None:
    target: dict[str, object] = {**POST, "id": "39"}
    reply = {**POST, "type": 19, "message_reference": {"message_id": "39"}, "referenced_message": target}
    assert decode("MESSAGE_CREATE", POST) == (Posted(5.0, read_message(POST)),)
    assert decode("MESSAGE_CREATE", reply) == (Posted(5.0, read_message(reply), read_message(target)),)


def test_an_edit_says_what_is_new_and_nothing_else() -> None:
    where: dict[str, object] = {"id": "40", "channel_id": "20"}
    assert decode("MESSAGE_UPDATE", {**where, "embeds": []}) == (Edited(5.0, 20, 40, None, None),)
    changed = decode("MESSAGE_UPDATE", {**where, "content": "", "attachments": [{"id": "8", "filename": "a"}]})
    assert changed == (Edited(5.0, 20, 40, "", (Attachment(8, "a", 0, ""),)),)
    assert decode("MESSAGE_UPDATE", {**where, "author": {"id": "7"}}) == (Edited(5.0, 20, 40, None, None, 7),)


def test_messages_are_deleted_singly_or_in_bulk() -> None:
    assert decode("MESSAGE_DELETE", {"id": "40", "channel_id": "20"}) == (Deleted(5.0, 20, (40,)),)
    assert decode("MESSAGE_DELETE_BULK", {"ids": ["40", 41], "channel_id": "20"}) == (Deleted(5.0, 20, (40, 41)),)


def test_reactions_are_added_and_removed() -> None:
    vote: dict[str, object] = {"user_id": "7", "channel_id": "20", "message_id": "40", "emoji": {"name": "👍"}}
    member = {"roles": ["5"], "user": {"id": "7", "bot": True}}
    added = decode("MESSAGE_REACTION_ADD", {**vote, "member": member})
    assert added == (Reaction(5.0, 20, 40, 7, "👍", added=True, is_bot=True, role_ids=(5,)),)
    assert decode("MESSAGE_REACTION_REMOVE", vote) == (Reaction(5.0, 20, 40, 7, "👍", added=False),)


def test_a_custom_emoji_never_passes_for_a_standard_one() -> None:
    vote: dict[str, object] = {"user_id": "7", "channel_id": "20", "message_id": "40"}
    for emoji, name in (({"id": "3", "name": "👍"}, "👍:3"), ({"id": "3", "name": None}, ":3"), ({"name": None}, "")):
        (seen,) = decode("MESSAGE_REACTION_ADD", {**vote, "emoji": emoji})
        assert isinstance(seen, Reaction)
        assert seen.emoji == name


def test_typing_tells_who_and_where_and_the_roles_by_which_the_team_is_known() -> None:
    where: dict[str, object] = {"user_id": "7", "channel_id": "20", "guild_id": "9", "timestamp": 4}
    member = {"roles": ["5"], "nick": "Annie", "user": {"id": "7", "username": "ann"}}
    assert decode("TYPING_START", {**where, "member": member}) == (Typing(5.0, 20, Author(7, "", role_ids=(5,))),)
    assert decode("TYPING_START", where) == (Typing(5.0, 20, Author(7, "")),)
    robot = {"roles": ["5"], "user": {"id": "7", "bot": True}}
    typing = Typing(5.0, 20, Author(7, "", is_bot=True, role_ids=(5,)))
    assert decode("TYPING_START", {**where, "member": robot}) == (typing,)
    assert decode("TYPING_START", {"user_id": "7"}) == ()


@pytest.mark.parametrize("kind", ["PRESENCE_UPDATE", "INTERACTION_CREATE", "MESSAGE_POLL_VOTE_ADD", ""])
def test_types_that_are_not_used_mean_nothing(kind: str) -> None:
    assert decode(kind, POST) == ()


def test_one_odd_payload_is_reported_without_its_content_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 22."""
    with caplog.at_level(logging.WARNING):
        assert decode("MESSAGE_CREATE", {"id": "my secret"}) == ()
    assert caplog.messages == ["ignored an odd MESSAGE_CREATE: Message: id: int_parsing"]


def test_a_fetched_channel_that_is_no_place_is_refused() -> None:
    with pytest.raises(OddPayload):
        Decoder().place({"id": "4", "type": 4})
