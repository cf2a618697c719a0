"""Channel payloads → places."""

from __future__ import annotations

import pytest

from model.messages import Place, PlaceKind
from services.discord.wire import ADMINISTRATOR, CONNECT, READ_MESSAGE_HISTORY, VIEW_CHANNEL, Decoder, OddPayload

GUILD, TEXT, FORUM, THREAD = 1, 20, 21, 30
HIDDEN = {"id": str(GUILD), "type": 0, "allow": "0", "deny": str(VIEW_CHANNEL)}
SHOWN = {"id": str(GUILD), "type": 0, "allow": str(VIEW_CHANNEL | READ_MESSAGE_HISTORY), "deny": "0"}
NO_HISTORY = {"id": str(GUILD), "type": 0, "allow": "0", "deny": str(READ_MESSAGE_HISTORY)}
OTHERS = {"id": "77", "type": 0, "allow": "0", "deny": str(VIEW_CHANNEL)}


def channel(**more: object) -> dict[str, object]:
    return {"id": str(TEXT), "type": 0, "name": "help", "guild_id": str(GUILD), **more}


def thread(**more: object) -> dict[str, object]:
    known: dict[str, object] = {"id": str(THREAD), "type": 11, "parent_id": str(TEXT), "guild_id": str(GUILD)}
    return {**known, "owner_id": "7", **more}


READ = VIEW_CHANNEL | READ_MESSAGE_HISTORY


def guild(everyone: int | None = READ, **more: object) -> dict[str, object]:
    roles = [{"id": "99", "permissions": "0"}, {"id": str(GUILD), "permissions": str(everyone)}]
    return {"id": str(GUILD), **({} if everyone is None else {"roles": roles}), **more}


def place(payload: dict[str, object], places: Decoder | None = None) -> Place:
    return (places or Decoder()).update(payload)[0]


def public(places: Decoder, payload: dict[str, object]) -> bool:
    return places.update(payload)[0].public


@pytest.mark.parametrize("kind", [0, 2, 5, 13, 15, 16])
def test_channels_of_every_type_that_people_write_in_are_channels(kind: int) -> None:
    found = place(channel(type=kind, parent_id="555", owner_id="5"))
    assert found == Place(TEXT, PlaceKind.CHANNEL, "help", GUILD)


@pytest.mark.parametrize("kind", [10, 11, 12])
def test_threads_know_their_parent_and_owner(kind: int) -> None:
    found = place(thread(type=kind, name="GPU?"))
    invited = kind == 12
    expected = Place(THREAD, PlaceKind.THREAD, "GPU?", GUILD, TEXT, 7, not invited, not invited, invited_only=invited)
    assert found == expected


def test_a_thread_in_a_known_forum_is_a_post() -> None:
    places = Decoder()
    places.update(channel(type=15))
    assert place(thread(), places).kind is PlaceKind.FORUM_POST
    assert place(thread(parent_id=None), places).kind is PlaceKind.THREAD


def test_threads_may_be_locked_or_archived() -> None:
    found = place(thread(thread_metadata={"locked": True, "archived": False}))
    assert (found.locked, found.archived) == (True, False)
    found = place(thread(thread_metadata={"archived": True}))
    assert (found.locked, found.archived) == (False, True)


@pytest.mark.parametrize("kind", [1, 3, 4, 14, 99])
def test_categories_and_direct_messages_are_no_places(kind: int) -> None:
    with pytest.raises(OddPayload, match="no place to write in"):
        place(channel(type=kind))


def test_a_guild_gives_its_channels_then_its_threads_and_leaves_out_what_is_odd() -> None:
    found = Decoder().add_guild(
        guild(
            channels=[channel(guild_id=None), {"id": "4", "type": 4}, "?", channel(id="21", type=15)],
            threads=[thread(), thread(id="31", parent_id="21")],
        )
    )
    kinds = {each.id: each.kind for each in found}
    assert kinds == {20: "channel", 21: "channel", 30: "thread", 31: "forum post"}
    assert {each.guild_id for each in found} == {GUILD}
    assert all(each.public for each in found)


def test_an_unavailable_guild_has_no_places() -> None:
    assert Decoder().add_guild({"id": "1", "unavailable": True}) == []


@pytest.mark.parametrize(
    ("everyone", "overwrites", "expected"),
    [
        (READ, [], True),
        (READ, [OTHERS], False),
        (READ, [{**OTHERS, "deny": str(READ_MESSAGE_HISTORY)}], False),
        (READ, [OTHERS, HIDDEN], False),
        (READ, [{**OTHERS, "deny": str(1 << 11)}], True),
        (0, [], False),
        (0, [SHOWN], True),
        (ADMINISTRATOR, [HIDDEN], True),
        (None, [], True),
        (None, [HIDDEN], False),
        (None, [NO_HISTORY], False),
        # Who looks in later sees nothing of what was asked before.
        (READ, [NO_HISTORY], False),
        (VIEW_CHANNEL, [], False),
        (VIEW_CHANNEL, [{**NO_HISTORY, "allow": str(READ_MESSAGE_HISTORY), "deny": "0"}], True),
    ],
)
def test_a_channel_is_public_when_everyone_can_read_it(
    everyone: int | None, overwrites: list[object], expected: bool
) -> None:
    """A recording carries no permissions (None): there every channel is public that nothing hides."""
    places = Decoder()
    places.add_guild(guild(everyone))
    assert public(places, channel(permission_overwrites=overwrites)) is expected
    assert public(places, thread()) is expected
    assert public(places, thread(type=12)) is False


@pytest.mark.parametrize(
    ("everyone", "overwrites", "expected"),
    [
        (READ, [], True),
        (READ, [NO_HISTORY], True),
        (READ, [OTHERS], True),
        (READ, [OTHERS, HIDDEN], False),
        (0, [], False),
        (0, [SHOWN], True),
        (ADMINISTRATOR, [HIDDEN], True),
        (None, [HIDDEN], False),
    ],
)
def test_a_channel_may_be_viewable_though_it_is_not_public(
    everyone: int | None, overwrites: list[object], expected: bool
) -> None:
    """A post is seen by everybody who looks then, even if a role is shut out or the history is hidden."""
    places = Decoder()
    places.add_guild(guild(everyone))
    assert place(channel(permission_overwrites=overwrites, nsfw=True), places).viewable is expected
    assert place(thread(), places).viewable is expected
    assert not place(thread(type=12), places).viewable


def test_a_channel_that_is_age_restricted_is_not_public() -> None:
    assert not public(Decoder(), channel(nsfw=True))
    assert public(Decoder(), channel(nsfw=False))


@pytest.mark.parametrize("kind", [2, 13])
def test_what_is_written_in_a_voice_channel_is_public_only_where_everyone_may_connect(kind: int) -> None:
    """Discord shows it to nobody else, though the channel is in everybody's list."""
    places = Decoder()
    locked = {"id": "1", "type": 0, "allow": "0", "deny": str(CONNECT)}
    for everyone, overwrites, expected in (
        (READ | CONNECT, [], True),
        (READ, [], False),
        (READ | CONNECT, [locked], False),
        (READ | CONNECT, [HIDDEN], False),
        (READ, [{**locked, "allow": str(CONNECT), "deny": "0"}], True),
        (ADMINISTRATOR, [locked], True),
    ):
        places.add_guild(guild(everyone))
        assert public(places, channel(type=kind, permission_overwrites=overwrites)) is expected
    assert public(Decoder(), channel(type=kind))
    assert not public(Decoder(), channel(type=kind, permission_overwrites=[locked]))


def test_a_thread_whose_parent_is_not_known_is_private_where_permissions_are_known() -> None:
    places = Decoder()
    assert public(places, thread())
    assert public(places, thread(parent_id=None))
    places.add_guild(guild())
    assert not public(places, thread(parent_id=555))


def test_hiding_a_channel_hides_its_known_threads_too() -> None:
    places = Decoder()
    places.add_guild(guild(channels=[channel()], threads=[thread(), thread(id="31", parent_id="21")]))
    found = places.update(channel(permission_overwrites=[HIDDEN]))
    assert [(each.id, each.public) for each in found] == [(TEXT, False), (THREAD, False)]
    assert [each.id for each in places.update(channel(permission_overwrites=[HIDDEN], name="x"))] == [TEXT]


def test_a_change_of_the_everyone_role_changes_what_is_public() -> None:
    places = Decoder()
    places.add_guild(guild(channels=[channel(), channel(id="21", permission_overwrites=[SHOWN])], threads=[thread()]))
    other = {"guild_id": "1", "role": {"id": "99", "permissions": "0"}}
    assert places.update_role(other) == []
    found = places.update_role({"guild_id": "1", "role": {"id": "1", "permissions": "0"}})
    assert [(each.id, each.public) for each in found] == [(TEXT, False), (THREAD, False)]
    assert places.update_role({"guild_id": "2", "role": {"id": "2", "permissions": "0"}}) == []


def test_only_channels_and_open_threads_are_remembered() -> None:
    places = Decoder()
    places.add_guild(guild(channels=[channel()], threads=[thread()]))
    places.update(thread(thread_metadata={"archived": True}))
    places.update(thread(id="31"))
    assert places.remove({"id": "31"}) == 31
    assert not places._threads  # pyright: ignore[reportPrivateUsage] (what is kept is the point)
    assert places.remove({"id": str(TEXT)}) == TEXT
    assert not places._channels  # pyright: ignore[reportPrivateUsage] (as above)
