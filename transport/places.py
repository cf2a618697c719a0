"""What is published about servers and threads: a server without its members, and a thread's facts as a header of each
message written in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import discord

from services.discord import Dispatch
from transport.partitions import partition_of

PLACE = "Place"
"""The header of a message in a thread: its facts as compact JSON in ASCII."""

_OF_A_SERVER = frozenset(
    {
        "id",
        "name",
        "owner_id",
        "unavailable",
        "roles",
        "channels",
        "threads",
        "joined_at",
        "large",
        "member_count",
        "features",
        "preferred_locale",
    }
)
"""Fields that the decoder, or discord.py's cache of channels and permissions, reads."""

_OF_A_THREAD = frozenset({"THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE"})
FOLDED = "Folded"
"""The header of a GUILD_CREATE that says nothing new: the server with all its changes so far, told anew."""

ThreadFacts = Callable[[int, int], Mapping[str, object] | None]
"""By the ids of a server and a thread in it: the thread's payload as far as it is known; None for what is no thread."""


def strip_guild(dispatch: Dispatch, own_id: int | None) -> Dispatch:
    """A GUILD_CREATE or GUILD_UPDATE reduced to the fields that the program reads; of the members only the bot itself."""
    fields: dict[str, object] = {name: value for name, value in dispatch.d.items() if name in _OF_A_SERVER}
    members = dispatch.d.get("members")
    if isinstance(members, list):
        fields["members"] = [each for each in cast("list[object]", members) if _user_id(each) == own_id]
    return Dispatch(dispatch.at, dispatch.t, fields)


def partition_of_thread(dispatch: Dispatch, partitions: int) -> int | None:
    """The partition of the channel that a thread dispatch (THREAD_CREATE, _UPDATE, _DELETE) belongs to; None for any
    other dispatch, which every partition gets.
    """
    return _home(dispatch.d, partitions) if dispatch.t in _OF_A_THREAD else None


def for_partition(dispatch: Dispatch, number: int, partitions: int) -> Dispatch | None:
    """The dispatch as one partition gets it: a GUILD_CREATE keeps only the threads in channels of the partition. None:
    it concerns other partitions only.
    """
    if dispatch.t == "GUILD_CREATE":
        threads = dispatch.d.get("threads")
        listed = cast("list[Mapping[str, Any]]", threads) if isinstance(threads, list) else []
        # What is no object is left for the decoder to complain of.
        own = [each for each in listed if not hasattr(each, "get") or _home(each, partitions) in {None, number}]
        return Dispatch(dispatch.at, dispatch.t, {**dispatch.d, "threads": own})
    return dispatch if partition_of_thread(dispatch, partitions) in {None, number} else None


def _home(thread: Mapping[str, Any], partitions: int) -> int | None:
    """None: it names no channel."""
    parent = thread.get("parent_id")
    return partition_of(int(parent), partitions) if isinstance(parent, str) and parent.isdecimal() else None


def _user_id(member: object) -> int | None:
    try:
        return int(cast("dict[str, Any]", member)["user"]["id"])
    except (KeyError, TypeError, ValueError):
        return None


def thread_facts(client: discord.Client) -> ThreadFacts:
    """Look threads up in the cache of a gateway's client, which is up to date by the time a message is published."""

    def known(guild_id: int, thread_id: int) -> Mapping[str, object] | None:
        guild = client.get_guild(guild_id)
        thread = None if guild is None else guild.get_thread(thread_id)
        if thread is None:
            return None
        state: dict[str, object] = {"archived": thread.archived, "locked": thread.locked}
        return {
            "id": str(thread.id),
            "type": thread.type.value,
            "guild_id": str(guild_id),
            "parent_id": str(thread.parent_id),
            "owner_id": str(thread.owner_id),
            "name": thread.name,
            "thread_metadata": state,
            "applied_tags": [str(tag.id) for tag in thread.applied_tags],
        }

    return known


def rendered(facts: Mapping[str, object]) -> str:
    """The value of the header, in ASCII: a name may hold anything."""
    return json.dumps(facts, separators=(",", ":"))


def place_payload(headers: Mapping[str, str] | None) -> dict[str, object] | None:
    """The thread that a message was written in, for a decoder that has not seen it; None where the message names none.

    To be shown to a decoder that does not know the place: it says less than the thread's own events.
    """
    written = None if headers is None else headers.get(PLACE)
    if written is None:
        return None
    try:
        read: object = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", read) if isinstance(read, dict) else None
