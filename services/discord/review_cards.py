"""The messages in which the team decides about drafts: their text and buttons, and what the id of a button says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

MAX_CARD_CHARS = 4_000
"""The characters of all texts of a message with components (API reference, "Component Reference")."""
MAX_HEADING_CHARS = 2_500
MAX_FORM_CHARS = 4_000
"""The most that a text input takes (ibid.)."""

_ID = re.compile(r"draft:([0-9]{1,20}):([0-9]{1,20}):([a-z]{1,10})(?::([0-9a-f]{8}))?")


class DraftButton(NamedTuple):
    """The content of a button's id, so that any process knows what was pressed.

    Attributes:
        channel_id: of the question: it tells which process has the draft.
        action: `post`, `edit`, `discard` or `keep`.
        version: of the question and answer above it (`version_of`); empty on a message of an earlier version of the
            program.
    """

    channel_id: int
    draft_id: int
    action: str
    version: str = ""

    @property
    def custom_id(self) -> str:
        return ":".join(filter(None, ("draft", str(self.channel_id), str(self.draft_id), self.action, self.version)))


def version_of(text: str) -> str:
    """Return eight characters that tell a text from others."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()


def parse_button(custom_id: object) -> DraftButton | None:
    """Return what an id says; None: it is of something else."""
    found = _ID.fullmatch(custom_id) if isinstance(custom_id, str) else None
    return None if found is None else DraftButton(int(found[1]), int(found[2]), found[3], found[4] or "")


def button_in(payload: Mapping[str, Any]) -> DraftButton | None:
    """Return the button of a draft, or of its form, that an interaction is about; None: it is about something else."""
    data: object = payload.get("data")
    return parse_button(cast("Mapping[str, object]", data).get("custom_id")) if isinstance(data, dict) else None


def buttons_on(message: Mapping[str, Any]) -> Iterator[DraftButton]:
    """Yield the buttons of drafts below a message of the bot, given its payload."""
    for row in message.get("components") or ():
        yield from filter(None, (parse_button(each.get("custom_id")) for each in row.get("components") or ()))


@dataclass(frozen=True, slots=True)
class ReviewCard:
    """A message in the review channel, in Markdown; a long `answer` is cut. Without `actions` it has no buttons.

    `version`: of the draft, as in `DraftButton`.
    """

    draft_id: int
    channel_id: int
    heading: str
    answer: str = ""
    actions: tuple[str, ...] = ()
    version: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, cut so that they fit into one message together."""
        heading = self.heading[:MAX_HEADING_CHARS]
        room = MAX_CARD_CHARS - len(heading)
        if len(self.answer) <= room:
            return (heading, self.answer) if self.answer else (heading,)
        note = (
            f"…\n-# {len(self.answer):,} characters: *Edit* or the dashboard shows all of them, and *Post* posts them."
        )
        return heading, self.answer[: room - len(note)] + note


class Reviews(Protocol):
    """Posts and changes the cards. Nobody is pinged. Each call raises `PostFailed`."""

    async def offer(self, channel_id: int, card: ReviewCard, *, nonce: str) -> int:
        """Post a card and return the id of its message. A repeated call with the same `nonce` posts nothing new."""
        ...

    async def show(self, channel_id: int, message_id: int, card: ReviewCard) -> None:
        """Replace the card of a message; a missing message is no failure."""
        ...

    async def find(self, channel_id: int, draft_id: int) -> int | None:
        """Return the message with the buttons of a draft; None: there is none. Raises LookupFailed instead."""
        ...
