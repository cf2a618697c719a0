"""The services and rules of curation, and its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from operators.step import Gauge
from services.assistant import Curator, Describer
from services.llm import Usage
from services.team import Decision, TeamLibrary


@dataclass(frozen=True, slots=True)
class Described:
    """A topic has a new description."""

    topic: str


Decided = Decision | Described


@dataclass(frozen=True, slots=True)
class CurationServices:
    """The services that curation uses.

    Attributes:
        last_said: when something was last said in the conversation of a message (by id), in seconds since 1970, UTC;
            None: not known. It may be asked from threads.
    """

    library: TeamLibrary
    curator: Curator
    describer: Describer
    usage: Usage = field(default_factory=Usage)
    gauge: Gauge | None = None
    last_said: Callable[[int], float | None] = lambda _message_id: None


@dataclass(frozen=True, slots=True)
class CurationRules:
    """How curation works.

    Attributes:
        describe_seconds: the limit for one description, retries included.
        to_the_end: whether the end of the captures waits until all of them have a decision, as in a replay. Otherwise
            the work stops there, between two writes, and continues at the next start.
        settle_seconds: how long after its last message a conversation counts as quiet; 0: at once.
    """

    tick_seconds: float = 300.0
    describe_seconds: float = 200.0
    to_the_end: bool = False
    settle_seconds: float = 0.0
