"""Whom a message pings, by the text and by `allowed_mentions` (Discord: "Allowed Mentions Object")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.loopback.refusals import invalid_form

_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


@dataclass(frozen=True)
class Pings:
    """Who would be called. False when nobody would."""

    users: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    everyone: bool = False

    def __bool__(self) -> bool:
        return bool(self.users or self.roles or self.everyone)


NOBODY = Pings()


def pings(text: str, replied_to: int | None, allowed: Mapping[str, Any] | None) -> Pings:
    """Whom `text`, in reply to the user `replied_to`, calls.

    `allowed` None means that the payload had no `allowed_mentions`: then Discord calls everybody named.
    The author's own permission to ping roles and everyone is left out: a test wants to know what an
    administrator's bot would do.

    Raises:
        Refused: `allowed` contradicts itself.
    """
    users = {int(found) for found in _USER.findall(text)}
    roles = {int(found) for found in _ROLE.findall(text)}
    everyone = _EVERYONE.search(text) is not None
    if allowed is not None:
        parse = {str(each) for each in allowed.get("parse") or ()}
        users = _allowed(users, "users", parse, allowed)
        roles = _allowed(roles, "roles", parse, allowed)
        everyone = everyone and "everyone" in parse
    if replied_to is not None and (allowed is None or allowed.get("replied_user")):
        users.add(replied_to)
    return Pings(frozenset(users), frozenset(roles), everyone)


def _allowed(named: set[int], kind: str, parse: set[str], allowed: Mapping[str, Any]) -> set[int]:
    listed = {int(one) for one in allowed.get(kind) or ()}
    if kind not in parse:
        return named & listed
    if listed:
        raise invalid_form("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", f"parse:[{kind!r}] excludes")
    return named
