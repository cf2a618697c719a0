"""DiscordChatExporter's JSON → dispatches."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.events import PlaceSeen, Posted
from model.messages import Attachment, Message, Place, PlaceKind, Reference, snowflake_time
from services.discord import exports
from services.discord.exports import Export, NotAnExport
from services.discord.wire import Decoder

CHANNEL: dict[str, object] = {
    "id": "20",
    "type": "GuildTextChat",
    "categoryId": "500",
    "category": "Support",
    "name": "help",
    "topic": None,
}
ADA: dict[str, object] = {
    "id": "7",
    "name": "ada",
    "discriminator": "0000",
    "nickname": "Ada L.",
    "color": None,
    "isBot": False,
    "roles": [{"id": "55", "name": "Staff", "color": None, "position": 3}],
    "avatarUrl": "https://cdn/x.png",
}


def said(message_id: int, **more: object) -> dict[str, object]:
    return {
        "id": str(message_id),
        "type": "Default",
        "timestamp": "2023-01-01T12:00:00.123+00:00",
        "timestampEdited": None,
        "callEndedTimestamp": None,
        "isPinned": False,
        "content": "hi",
        "author": ADA,
        "attachments": [],
        "embeds": [],
        "stickers": [],
        "reactions": [],
        "mentions": [],
        **more,
    }


def export(path: Path, *messages: object, channel: dict[str, object] | None = None) -> Path:
    whole = {
        "guild": {"id": "1", "name": "Guild", "iconUrl": "https://cdn/y.png"},
        "channel": channel or CHANNEL,
        "dateRange": {"after": None, "before": None},
        "exportedAt": "2024-01-01T00:00:00+00:00",
        "messages": messages,
        "messageCount": len(messages),
    }
    path.write_text(json.dumps(whole, indent=2), encoding="utf-8-sig")
    return path


def events(path: Path) -> tuple[list[Place], list[Message]]:
    decoder = Decoder()
    seen = [event for dispatch in Export(path).dispatches() for event in decoder.decode(dispatch)]
    places = [event.place for event in seen if isinstance(event, PlaceSeen)]
    return places, [event.message for event in seen if isinstance(event, Posted)]


def only(path: Path) -> Message:
    _, (message,) = events(path)
    return message


def test_a_channel_with_its_messages_becomes_what_a_recording_would_hold(tmp_path: Path) -> None:
    first, second = 5 << 22, 6 << 22
    files = [{"id": "8", "url": "https://cdn/a.png", "fileName": "a.png", "fileSizeBytes": 12}]
    mentions = [{"id": "9", "name": "bob", "nickname": "Bobby", "isBot": False}]
    path = export(
        tmp_path / "a.json",
        said(first, attachments=files, mentions=mentions),
        said(second, type="Reply", reference={"messageId": str(first), "channelId": "20", "guildId": "1"}),
    )
    places, messages = events(path)
    assert places == [Place(20, PlaceKind.CHANNEL, "help", 1)]
    assert [message.id for message in messages] == [first, second]
    assert messages[0].at == snowflake_time(first)
    assert messages[0].guild_id == 1
    assert messages[0].attachments == (Attachment(8, "a.png", 12, "https://cdn/a.png"),)
    assert messages[0].mentions == ((9, "Bobby"),)
    assert (messages[0].author.name, messages[0].author.role_ids) == ("Ada L.", (55,))
    assert messages[1].reply_to == Reference(first, 20)


def test_a_mention_that_is_a_name_in_the_text_is_a_mention_again(tmp_path: Path) -> None:
    """Pitfall 19."""
    mentions = [
        {"id": "8", "name": "9"},
        {"id": "9", "name": "bob", "nickname": "Bob https://evil.example/a"},
        {"id": "7", "name": "bo", "nickname": "Bob"},
    ]
    path = export(tmp_path / "a.json", said(1, content="@Bob https://evil.example/a ask @9, @Bob", mentions=mentions))
    assert only(path).text == "<@9> ask <@8>, <@7>"


def test_bots_are_bots_and_roles_may_be_unknown(tmp_path: Path) -> None:
    """Pitfall 23."""
    author = only(export(tmp_path / "a.json", said(1, author={"id": "3", "name": "b", "isBot": True}))).author
    assert (author.name, author.is_bot, author.role_ids) == ("b", True, None)


def test_an_edited_message_keeps_when_it_was_edited(tmp_path: Path) -> None:
    path = export(tmp_path / "a.json", said(1, timestampEdited="2023-01-02T00:00:00+00:00"))
    *_, posted = Export(path).dispatches()
    assert posted.d["edited_timestamp"] == "2023-01-02T00:00:00+00:00"


@pytest.mark.parametrize(
    "kind", ["GuildMemberJoin", "ChannelPinnedMessage", "ThreadCreated", "RecipientAdd", "21", "8"]
)
def test_whatever_is_neither_a_plain_message_nor_a_reply_is_a_system_message(tmp_path: Path, kind: str) -> None:
    """Pitfall 31."""
    assert only(export(tmp_path / "a.json", said(1, type=kind))).is_system


@pytest.mark.parametrize("kind", ["Default", "Reply", "0", 19])
def test_plain_messages_and_replies_are_what_people_write(tmp_path: Path, kind: object) -> None:
    assert not only(export(tmp_path / "a.json", said(1, type=kind))).is_system


@pytest.mark.parametrize("reference", [None, {"messageId": None, "channelId": "20", "guildId": None}])
def test_a_reply_whose_target_is_not_named_is_none(tmp_path: Path, reference: object) -> None:
    assert only(export(tmp_path / "a.json", said(1, type="Reply", reference=reference))).reply_to is None


def test_a_reply_may_be_to_a_message_elsewhere(tmp_path: Path) -> None:
    reference = {"messageId": "1", "channelId": "21", "guildId": "1"}
    assert only(export(tmp_path / "a.json", said(2, type="Reply", reference=reference))).reply_to == Reference(1, 21)
    nowhere = said(2, type="Reply", reference={"messageId": "1"})
    assert only(export(tmp_path / "a.json", nowhere)).reply_to == Reference(1, 20)


def test_a_forward_is_no_reply(tmp_path: Path) -> None:
    path = export(tmp_path / "a.json", said(2, reference={"messageId": "1"}, forwardedMessage={"content": "x"}))
    assert only(path).reply_to is None


@pytest.mark.parametrize(
    ("more", "has"),
    [
        ({}, False),
        ({"forwardedMessage": {"content": "x"}}, True),
        ({"stickers": [{"id": "5", "name": "No!"}]}, True),
        ({"embeds": [{"title": "No!"}]}, True),
        ({"content": "see https://a.b/c", "embeds": [{"url": "https://a.b/c", "title": "the guide"}]}, False),
        ({"content": "see https://a.b/c", "embeds": [{"url": "https://a.b/d", "title": "another"}]}, True),
    ],
)
def test_what_a_message_shows_besides_its_text_is_noticed(
    tmp_path: Path, more: dict[str, object], *, has: bool
) -> None:
    assert only(export(tmp_path / "a.json", said(2, **more))).has_unread_parts is has


@pytest.mark.parametrize(("kind", "public"), [("GuildPublicThread", True), ("GuildPrivateThread", False)])
def test_a_thread_hangs_below_the_channel_that_the_export_calls_its_category(
    tmp_path: Path, kind: str, public: bool
) -> None:
    channel = {**CHANNEL, "type": kind, "id": "30", "name": "GPU?", "categoryId": "20", "category": "help"}
    places, _ = events(export(tmp_path / "a.json", said(31, type="21"), said(32), channel=channel))
    assert places == [
        Place(20, PlaceKind.CHANNEL, "help", 1),
        Place(30, PlaceKind.THREAD, "GPU?", 1, parent_id=20, public=public, viewable=public, invited_only=not public),
    ]


def test_a_thread_that_contains_its_own_starter_is_a_forum_post(tmp_path: Path) -> None:
    channel = {**CHANNEL, "type": "GuildPublicThread", "id": "30", "name": "GPU?", "categoryId": "20"}
    places, _ = events(export(tmp_path / "a.json", said(30), said(32), channel=channel))
    assert places[1] == Place(30, PlaceKind.FORUM_POST, "GPU?", 1, parent_id=20, owner_id=7)
    guild = next(Export(tmp_path / "a.json").dispatches()).d
    assert guild["channels"] == [{"id": "20", "type": 15, "guild_id": "1", "name": "Support"}]
    unnamed = export(tmp_path / "b.json", said(30), channel={**channel, "category": None})
    assert events(unnamed)[0][0].name == ""


def test_a_thread_without_a_known_parent_is_still_a_channel_to_read(tmp_path: Path) -> None:
    channel = {**CHANNEL, "type": "GuildPublicThread", "categoryId": None}
    places, messages = events(export(tmp_path / "a.json", said(1), channel=channel))
    assert [each.kind for each in places] == [PlaceKind.THREAD]
    assert len(messages) == 1


def test_messages_come_in_order_of_id_also_when_the_newest_was_written_first(tmp_path: Path) -> None:
    """Pitfall 25."""
    _, messages = events(export(tmp_path / "a.json", said(3), said(2), said(5), said(1)))
    assert [message.id for message in messages] == [1, 2, 3, 5]


def test_an_odd_message_is_reported_with_its_number_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = export(tmp_path / "a.json", said(1), {"id": "my secret"}, said(3), "my secret")
    with caplog.at_level(logging.WARNING):
        _, messages = events(path)
    assert [message.id for message in messages] == [1, 3]
    assert caplog.messages == [
        f"{path}, message 2: skipped, `id` is odd",
        f"{path}, message 4: skipped, it is no object",
    ]


def test_an_export_that_is_cut_off_gives_what_is_there_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = export(tmp_path / "a.json", said(1), said(2))
    path.write_text(path.read_text(encoding="utf-8")[:-400], encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        _, messages = events(path)
    assert [message.id for message in messages] == [1]
    assert caplog.messages == [f"{path} ends early, after message 1: a value is cut off or malformed"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([None, 1]), st.booleans())
def test_texts_are_those_that_json_reads(tmp_path: Path, text: str, indent: int | None, ascii_only: bool) -> None:
    path = export(tmp_path / "a.json", said(1, content=text))
    whole = json.loads(path.read_text(encoding="utf-8-sig"))
    path.write_text(json.dumps(whole, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    assert only(path).text == text


@pytest.mark.parametrize("number", [9007199254740993, 2**63 - 1])
def test_ids_are_exact_also_as_numbers(tmp_path: Path, number: int) -> None:
    assert only(export(tmp_path / "a.json", {**said(1), "id": number})).id == number


def test_bytes_that_are_no_text_spoil_only_themselves(tmp_path: Path) -> None:
    path = export(tmp_path / "a.json", said(1, content="a?b"))
    path.write_bytes(path.read_bytes().replace(b"a?b", b"a\xffb"))
    assert only(path).text == "a\ufffdb"


@pytest.mark.parametrize(
    "rest", ["5 6]}", "?]}", "my secret", "", '{"n": 1' + "0" * 6000 + "}]}", "NaN]}", "[" * 5_000]
)
def test_what_is_malformed_ends_an_export_in_one_line_that_shows_nothing_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rest: str
) -> None:
    path = export(tmp_path / "a.json", said(1))
    text = json.dumps(json.loads(path.read_text(encoding="utf-8-sig")))
    before, _, _ = text.partition('], "messageCount"')
    path.write_text(f"{before}, {rest}", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert only(path).id == 1
    assert caplog.messages[-1].startswith(f"{path} ends early, after message ")
    assert caplog.messages[-1].endswith(": a value is cut off or malformed")


def test_memory_is_bounded_from_one_message_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exports, "MAX_VALUE_CHARS", 200_000)
    long = export(tmp_path / "a.json", *(said(each, content="x" * 10_000) for each in range(50)))
    assert len(events(long)[1]) == 50
    endless = export(tmp_path / "b.json", said(1), said(2, content="x" * 500_000), said(3))
    assert [message.id for message in events(endless)[1]] == [1]
    assert caplog.messages == [f"{endless} ends early, after message 1: a value is too large"]
    endless.write_text('{"guild": "' + "x" * 500_000, encoding="utf-8")
    with pytest.raises(NotAnExport, match="too large"):
        Export(endless)
    endless.write_text('{"guild": ' + "[" * 100_000, encoding="utf-8")
    with pytest.raises(NotAnExport, match="too large"):
        Export(endless)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "5",
        "{",
        "[" * 5_000,
        '{"guild" 2}',
        "{1: 2}",
        '{"guild": {"id": "1"}}',
        '{"guild": {}, "channel": {}, "messages": []}',
        '{"messages": []}',
        '{"guild": {"id": "1"}, "channel": {"id": "2", "type": 0}, "messages": {}}',
    ],
)
def test_what_lacks_the_exporters_keys_is_no_export(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NotAnExport):
        Export(path)
