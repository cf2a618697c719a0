"""The platform-neutral history that the answering and learning steps see."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    """The bot and team members; rendered to the LLM as `You:`."""


@dataclass(frozen=True, slots=True)
class Image:
    """A downloaded image."""

    name: str
    media_type: str
    """Told from the bytes, never from the name."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    text: str
    """Trimmed, mentions as names, a placeholder for each attachment."""
    images: tuple[Image, ...] = ()
    from_team: bool = False
    """Written by a team member: what it links to may be linked to."""
    asked_now: bool = False
    """Belongs to the part that is being answered."""


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: tuple[Turn, ...]

    @property
    def last_user_text(self) -> str:
        return next((turn.text for turn in reversed(self.turns) if turn.role is Role.USER), "")

    @property
    def asked_text(self) -> str:
        """The text of the part that is being answered, all its messages."""
        return "\n".join(turn.text for turn in self.turns if turn.asked_now)

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(image for turn in self.turns for image in turn.images)
