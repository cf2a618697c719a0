"""Message payloads → messages."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from model.messages import Attachment, Reference, snowflake_time
from services.discord.wire import OddPayload, read_message, read_quoted_message

ID = 618939541356544000


def payload(**more: object) -> dict[str, object]:
    return {
        "id": str(ID),
        "channel_id": "2",
        "author": {"id": "7", "username": "ada"},
        "content": "hi",
        "type": 0,
        **more,
    }


def test_a_plain_message_keeps_its_text_author_place_and_time() -> None:
    read = read_message(payload(guild_id="1", content="  <@5> hi\n"))
    assert (read.id, read.channel_id, read.guild_id, read.text) == (ID, 2, 1, "  <@5> hi\n")
    assert (read.author.id, read.author.name, read.author.is_bot, read.author.role_ids) == (7, "ada", False, None)
    assert read.at == snowflake_time(ID) == 1567637086.0
    assert (read.is_system, read.reply_to, read.mentions, read.attachments) == (False, None, (), ())


def test_ids_may_be_numbers_and_optional_fields_may_be_missing_or_null() -> None:
    """History that other programs wrote is less tidy than the gateway."""
    bare: dict[str, object] = {"id": ID, "channel_id": 2, "author": {"id": 7}}
    nulls = ("content", "type", "mentions", "attachments", "member", "message_reference", "webhook_id", "guild_id")
    assert read_message(bare) == read_message({**bare, **dict.fromkeys(nulls)})
    assert read_message(bare).author.name == "7"
    assert read_message(bare).text == ""
    assert not read_message(bare).is_system


def test_any_mapping_will_do_and_unknown_fields_are_ignored() -> None:
    assert read_message(MappingProxyType(payload(soundboard={"x": [1]}))) == read_message(payload())


@pytest.mark.parametrize(
    ("author", "member", "name"),
    [
        ({"id": "7", "username": "ada", "global_name": "Ada L."}, {"nick": "Countess"}, "Countess"),
        ({"id": "7", "username": "ada", "global_name": "Ada L."}, {"nick": None}, "Ada L."),
        ({"id": "7", "username": "ada", "global_name": None}, None, "ada"),
    ],
)
def test_the_name_is_the_one_that_people_see(author: object, member: object, name: str) -> None:
    assert read_message(payload(author=author, member=member)).author.name == name


def test_roles_are_known_when_the_gateway_sends_the_member() -> None:
    assert read_message(payload(member={"roles": ["5", 6]})).author.role_ids == (5, 6)
    assert read_message(payload(member={"roles": []})).author.role_ids == ()
    assert read_message(payload(member={})).author.role_ids is None


def test_bots_and_webhooks_are_bots() -> None:
    """Pitfall 23."""
    assert read_message(payload(author={"id": "7", "username": "b", "bot": True})).author.is_bot
    assert read_message(payload(webhook_id="9")).author.is_bot


@pytest.mark.parametrize("kind", [*range(1, 19), *range(20, 47)])
def test_whatever_is_neither_a_plain_message_nor_a_reply_is_a_system_message(kind: int) -> None:
    """Pitfall 31: joins, pins, boosts, "started a thread"."""
    assert read_message(payload(type=kind)).is_system


@pytest.mark.parametrize("kind", [0, 19])
def test_plain_messages_and_replies_are_what_people_write(kind: int) -> None:
    """Pitfall 31."""
    assert not read_message(payload(type=kind)).is_system


def test_a_message_with_only_a_file_is_not_empty() -> None:
    """Pitfall 32."""
    files = [
        {"id": "8", "filename": "a.log", "size": 9, "url": "https://cdn/x", "content_type": "text/plain"},
        {"id": 9},
    ]
    read = read_message(payload(content="", attachments=files))
    assert read.attachments == (
        Attachment(8, "a.log", 9, "https://cdn/x", "text/plain"),
        Attachment(9, "file", 0, "", None),
    )
    assert not read.is_empty


def test_mentions_carry_the_name_that_people_see() -> None:
    people = [{"id": "5", "username": "bob", "member": {"nick": "Bobby"}}, {"id": "6", "username": "eve"}]
    assert read_message(payload(mentions=people)).mentions == ((5, "Bobby"), (6, "eve"))


def test_a_reply_points_at_its_target() -> None:
    reference = {"message_id": "33", "channel_id": "3", "guild_id": "1"}
    assert read_message(payload(type=19, message_reference=reference)).reply_to == Reference(33, 3)
    assert read_message(payload(message_reference={"message_id": 33, "type": 0})).reply_to == Reference(33, 2)


def test_a_reply_to_a_deleted_message_says_that_it_is_gone() -> None:
    reply = payload(type=19, message_reference={"message_id": "33"}, referenced_message=None)
    assert read_message(reply).reply_to == Reference(33, 2, gone=True)
    assert read_quoted_message(reply) is None


@pytest.mark.parametrize("reference", [{"message_id": "33", "type": 1}, {"channel_id": "3"}])
def test_a_forward_or_a_followed_channel_is_no_reply(reference: object) -> None:
    assert read_message(payload(message_reference=reference)).reply_to is None


def test_the_quoted_message_comes_along_with_the_guild_of_the_reply() -> None:
    reply = payload(guild_id="1", message_reference={"message_id": "33"}, referenced_message=payload(id="33"))
    target = read_quoted_message(reply)
    assert target is not None
    assert (target.id, target.guild_id, target.text) == (33, 1, "hi")
    assert read_message(reply).reply_to == Reference(33, 2)
    assert read_quoted_message({**reply, "referenced_message": payload(id="33", guild_id="4")}) == read_message(
        payload(id="33", guild_id="4")
    )


def test_an_odd_quoted_message_does_not_spoil_the_reply() -> None:
    reply = payload(message_reference={"message_id": "33"}, referenced_message={"id": "33"})
    assert read_quoted_message(reply) is None
    assert read_message(reply).reply_to == Reference(33, 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "my secret"}, "Message: id: int_parsing"),
        ({"id": None}, "Message: id: int_type"),
        ({"id": "-4"}, "Message: id: greater_than_equal"),
        ({"id": str(2**63)}, "Message: id: less_than"),
        ({"author": "my secret"}, "Message: author: model_type"),
        ({"author": {"username": "my secret"}}, "Message: author.id: missing"),
        ({"content": ["my secret"]}, "Message: content: string_type"),
    ],
)
def test_an_odd_payload_is_refused_in_words_that_show_none_of_its_content(
    change: dict[str, object], reason: str
) -> None:
    """Pitfall 22."""
    with pytest.raises(OddPayload) as caught:
        read_message({**payload(), **change})
    assert str(caught.value) == reason
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("key", ["poll", "sticker_items", "message_snapshots"])
def test_what_people_see_and_nothing_here_reads_is_noted(key: str) -> None:
    assert read_message({**payload(), key: [{"odd": 1}]}).has_unread_parts
    assert not read_message({**payload(), key: None}).has_unread_parts
