"""What a callback is told of a call, and what it may raise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from model.messages import Attachment

Answer = Awaitable[str]
"""What the caller reads: Markdown of any length, shown to nobody else."""


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls a command, and where."""

    id: int
    """The interaction's: a snowflake, made when the command was called."""
    user_id: int
    guild_id: int
    place_id: int
    """A channel or a thread."""
    is_moderator: bool
    """May manage messages or threads there, as Discord says."""
    can_view: bool
    """The caller can view the channel, as Discord says; which counts for private threads whose members alone see
    them only together with being one."""
    role_ids: tuple[int, ...] = ()


class CommandRefused(Exception):
    """The command cannot be done; the message is one line for the caller, and says what to do instead."""


class RunbookActions(Protocol):
    """`/kb`: what a person keeps for themselves. Each raises `CommandRefused`."""

    def add(self, call: Call, document: Attachment | str, title: str | None) -> Answer:
        """`document`: a file, or the text itself."""
        ...

    def list(self, call: Call) -> Answer: ...

    def remove(self, call: Call, title: str) -> Answer: ...

    def forget(self, call: Call) -> Answer:
        """Remove all of them."""
        ...

    def show_in_threads(self, call: Call, *, shown: bool) -> Answer:
        """Whether answers in public threads may be taken from them."""
        ...


class EvidenceActions(Protocol):
    """`/evidence`: the files of a thread. Each raises `CommandRefused`."""

    def list(self, call: Call) -> Answer: ...

    def delete(self, call: Call, filename: str) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What the commands do. Each raises `CommandRefused`; where something is None, its command does not exist."""

    ask: Callable[[Call, str], Answer]
    opt_out: Callable[[Call], Answer]
    opt_in: Callable[[Call], Answer]
    forget: Callable[[Call], Answer]
    runbooks: RunbookActions | None = None
    evidence: EvidenceActions | None = None
