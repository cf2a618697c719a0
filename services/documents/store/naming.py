"""Names of collections: spelt in one place, and safe as names of files."""

from __future__ import annotations

import hashlib
import re

GLOBAL = "global_kb"
CASE_PREFIX = "case_"
USER_PREFIX = "user_"
TEAM_PREFIX = "team_"

_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_PLAIN = re.compile(r"[a-z0-9-]{1,40}")
_DIGITS = re.compile(r"[0-9]{1,20}")


def case(thread_id: str) -> str:
    return f"{CASE_PREFIX}{_snowflake(thread_id)}"


def user(user_id: str) -> str:
    return f"{USER_PREFIX}{_snowflake(user_id)}_kb"


def team(team_id: str) -> str:
    """`team_id`: a guild's id, or the name of a team; one that is no plain word is hashed."""
    if not team_id.strip():
        raise ValueError("a team is needed")
    if _PLAIN.fullmatch(team_id):
        return f"{TEAM_PREFIX}{team_id}_kb"
    # A plain name holds no underscore: two teams never share a collection.
    return f"{TEAM_PREFIX}x_{hashlib.sha256(team_id.encode()).hexdigest()[:24]}_kb"


def documentation(guild_id: int | None = None) -> str:
    """Of what all share; `guild_id`: of that together with what one server has of its own."""
    return GLOBAL if guild_id is None else f"global_{guild_id}_kb"


def checked(name: str) -> str:
    """`name`, when a file may be called that. Raises ValueError: it may not: it could lead out of its folder."""
    if not _SAFE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a collection")
    return name


def _snowflake(scope_id: str) -> str:
    if not _DIGITS.fullmatch(scope_id):
        raise ValueError(f"{scope_id!r} is no id")
    return scope_id
