"""Fold the dispatches about one server into a single GUILD_CREATE that describes its present state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from services.discord import Dispatch

_LISTS = ("roles", "channels", "threads")
_WHOLE = frozenset({"members", "unavailable"})  # what GUILD_UPDATE does not speak of


class GuildSnapshot:
    """Follows one server from its GUILD_CREATE on. Odd payloads change nothing."""

    def __init__(self) -> None:
        self._at = 0.0
        self._fields: dict[str, Any] | None = None
        self._lists: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _LISTS}

    def see(self, dispatch: Dispatch) -> None:
        d: Mapping[str, Any] = dispatch.d
        if dispatch.t == "GUILD_CREATE":
            self._fields = {name: value for name, value in d.items() if name not in _LISTS}
            self._lists = {name: _by_id(d.get(name)) for name in _LISTS}
        elif self._fields is not None:
            try:
                self._change(self._fields, dispatch.t, d)
            except (KeyError, TypeError, AttributeError):
                return
        self._at = dispatch.at

    def as_guild_create(self) -> Dispatch | None:
        """As a GUILD_CREATE of now; None where none was seen, or the server is away."""
        if self._fields is None or self._fields.get("unavailable"):
            return None
        lists = {name: list(each.values()) for name, each in self._lists.items()}
        return Dispatch(self._at, "GUILD_CREATE", {**self._fields, **lists})

    def _change(self, fields: dict[str, Any], type_: str, d: Mapping[str, Any]) -> None:
        if type_.startswith("THREAD_"):
            self._change_threads(type_, d)
        elif type_.startswith("CHANNEL_"):
            self._change_channels(type_, d)
        elif type_ == "GUILD_ROLE_DELETE":
            self._lists["roles"].pop(d["role_id"], None)
        elif type_.startswith("GUILD_ROLE_"):
            self._lists["roles"][d["role"]["id"]] = d["role"]
        elif type_ == "GUILD_MEMBER_UPDATE":
            own: list[dict[str, Any]] = fields.get("members") or []
            fields["members"] = [{**each, **d} if each["user"]["id"] == d["user"]["id"] else each for each in own]
        elif type_ == "GUILD_UPDATE":
            if "roles" in d:
                self._lists["roles"] = _by_id(d["roles"])
            fields.update({name: value for name, value in d.items() if name in fields and name not in _WHOLE})
        elif type_ == "GUILD_DELETE":
            fields["unavailable"] = True

    def _change_channels(self, type_: str, d: Mapping[str, Any]) -> None:
        if type_ == "CHANNEL_DELETE":
            self._lists["channels"].pop(d["id"], None)
            self._lists["threads"] = self._threads_outside({d["id"]})
        else:
            self._lists["channels"][d["id"]] = dict(d)

    def _change_threads(self, type_: str, d: Mapping[str, Any]) -> None:
        threads = self._lists["threads"]
        if type_ == "THREAD_LIST_SYNC":
            of = d.get("channel_ids")
            self._lists["threads"] = ({} if of is None else self._threads_outside(of)) | _by_id(d["threads"])
        elif type_ == "THREAD_DELETE" or (type_ != "THREAD_MEMBERS_UPDATE" and d["thread_metadata"]["archived"]):
            threads.pop(d["id"], None)  # those that arrive with a server are the active ones
        elif type_ != "THREAD_MEMBERS_UPDATE":
            threads[d["id"]] = {**threads.get(d["id"], {}), **d}

    def _threads_outside(self, channel_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        return {id_: each for id_, each in self._lists["threads"].items() if each["parent_id"] not in channel_ids}


def _by_id(listed: object) -> dict[str, dict[str, Any]]:
    if not isinstance(listed, list):
        return {}
    dicts = [cast("dict[str, Any]", each) for each in cast("list[object]", listed) if isinstance(each, dict)]
    return {str(each.get("id")): each for each in dicts}
