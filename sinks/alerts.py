"""Tells people of incidents, and keeps in a file what is known of them and who has yet to be told.

The file is written before a message is posted, and again afterwards. So a crash loses no message, and may have the last
one of each target posted twice. While the file cannot be written, messages are posted all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clock import now, run_blocking, utc_minute
from clock.timeouts import Backoff
from model.health import TOPICS, HealthTopic, Notice, Stage
from model.words import number_of
from operators.incidents import IncidentUpdate, States, TopicState, states_at_start
from services.discord import Poster, PostFailed
from services.storage import files
from services.telemetry import Webhook, WebhookFailed

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 30.0, 900.0
"""The first and the longest pause between two attempts to post to a target."""
POST_SECONDS = 15.0
"""The most time for one attempt."""
MAX_WAITING = 50
"""Notices that may wait for one target; older ones are dropped, and logged."""
MAX_NAMED = 5

log = logging.getLogger(__name__)

Send = Callable[[Notice], Awaitable[object]]
"""Posts a notice to a target. Raises PostFailed, WebhookFailed, TimeoutError."""


def send_to_channel(poster: Poster, channel_id: int) -> Send:
    """Post to a channel. A repeated post within some minutes is dropped by Discord, by its nonce."""

    async def send(notice: Notice) -> None:
        incident = notice.incident
        nonce = f"{int(incident.told_at):x}-{incident.topic}-{notice.stage[0]}"
        await poster.send(channel_id, message_of(notice), nonce=nonce)

    return send


def send_to_webhook(webhook: Webhook) -> Send:
    async def send(notice: Notice) -> None:
        await webhook.send(f"Millrace: {message_of(notice)}")

    return send


def message_of(notice: Notice) -> str:
    """Write a notice as a message: what is wrong, since when, and what to do; or what it was, and for how long."""
    stage, incident = notice
    words, begun = TOPICS[incident.topic], utc_minute(incident.since)
    names = _named(incident.subjects)
    if stage is Stage.ENDED and incident.ended is not None:
        took = f"The trouble lasted {_duration(incident.ended - incident.since)}"
        lines = [f"**{words.well} again.** {took}: from {begun} to {utc_minute(incident.ended)}.", names]
    else:
        more = "More than before: " if stage is Stage.GROWN else ""
        lines = [f"**{more}{words.trouble}**, since {begun}.", names, _harmless(incident.detail), words.remedy]
    return "\n".join(line for line in lines if line)


def _line(notice: Notice) -> str:
    """Write a notice as one line of the log."""
    return " ".join(message_of(notice).replace("**", "").split())


def _named(subjects: Sequence[str]) -> str:
    names = [f"`{_harmless(each)}`" for each in subjects if each]
    rest = len(names) - MAX_NAMED
    # The newest are last.
    return ", ".join(names[-MAX_NAMED:]) + (f" and {number_of(rest, 'other')}" if rest > 0 else "")


def _harmless(text: str) -> str:
    """Return a text that neither ends a code span nor mentions anybody, in Discord or Slack."""
    return text.translate({ord(letter): " " for letter in "`<>*~|"}).strip()


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 60:  # noqa: PLR2004 (an hour)
        return number_of(max(1, minutes), "minute")
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"  # noqa: PLR2004 (two days)


@dataclass(frozen=True, slots=True)
class SavedAlerts:
    """The content of the file: the state of each topic, and the notices that wait for each target."""

    states: dict[HealthTopic, TopicState] = field(default_factory=dict[HealthTopic, TopicState])
    waiting: dict[str, tuple[Notice, ...]] = field(default_factory=dict[str, tuple[Notice, ...]])


_KEPT = TypeAdapter(SavedAlerts)


def render_alerts(kept: SavedAlerts) -> bytes:
    return _KEPT.dump_json(kept) + b"\n"


def parse_alerts(data: bytes, path: Path) -> SavedAlerts:
    """Read the file; empty if it is damaged, which is logged."""
    try:
        return _KEPT.validate_json(data)
    except ValidationError:
        log.warning("%s is damaged: what it said of open incidents is forgotten", path)
        return SavedAlerts()


@dataclass(slots=True)
class _Target:
    """A place where notices are posted, with those that wait. `not_before`: the time of the next attempt."""

    send: Send
    waiting: tuple[Notice, ...] = ()
    not_before: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS))


class Alerts:
    """Posts notices to each target by itself, and repeats an attempt that failed, with growing pauses. `states`: of all
    topics, as after the last sample.
    """

    def __init__(
        self,
        path: Path,
        targets: Mapping[str, Send],
        after: Mapping[HealthTopic, float],
        on_open: Callable[[Mapping[str, bool]], object] | None = None,
    ) -> None:
        """Read the file at `path`. Blocking. `after`: as in `track_incidents`; `on_open`: called with the topics, and
        which of them have an open incident. Raises OSError: the file cannot be read.
        """
        data = path.read_bytes() if path.exists() else b"{}"
        self._written = kept = parse_alerts(data, path)
        self.states: States = states_at_start(kept.states, after)
        self._path, self._after, self._on_open = path, after, on_open
        self._targets = {name: _Target(send, kept.waiting.get(name, ())) for name, send in targets.items()}
        self._unwritten = ""

    def is_told(self, topic: HealthTopic) -> bool:
        """Return True if there is an open incident of a topic, and no message about it waits."""
        waiting = (each.incident.topic for target in self._targets.values() for each in target.waiting)
        return topic in self.states and self.states[topic].incident is not None and topic not in waiting

    async def tell(self, update: IncidentUpdate) -> None:
        """Write what has changed, and post what waits, as far as its time has come.

        Raises WorkCancelled: another process posts by now.
        """
        self.states = update.states
        if self._on_open is not None:
            states = self.states
            self._on_open({topic: topic in states and states[topic].incident is not None for topic in self._after})
        for notice in update.notices:
            log.log(
                logging.INFO if notice.stage is Stage.ENDED else logging.WARNING,
                "alerts: %s: %s",
                notice.incident.topic,
                _line(notice),
            )
            for name, target in self._targets.items():
                target.waiting = _with(target.waiting, notice, name)
        await self._write()
        await asyncio.gather(*(self._post(name, target) for name, target in self._targets.items()))

    async def _post(self, name: str, target: _Target) -> None:
        while now() >= target.not_before and (due := [each for each in target.waiting if not self._is_calm(each)]):
            try:
                async with asyncio.timeout(POST_SECONDS):
                    await target.send(due[0])
            except (PostFailed, WebhookFailed, TimeoutError) as error:
                pause = target.backoff.pause(getattr(error, "retry_after", 0.0))
                target.not_before = now() + pause
                why = str(error) or f"no answer within {POST_SECONDS:g} s"  # a TimeoutError has no text
                log.warning("alerts.%s: not posted (%s); tried again in %g s", name, why, pause)
                return
            target.waiting = tuple(each for each in target.waiting if each is not due[0])
            target.backoff.reset()
            await self._write()

    def _is_calm(self, notice: Notice) -> bool:
        """Return True if a message that an incident has begun would come too late: all is well for now, and the message
        about its end will tell everything.
        """
        state = self.states.get(notice.incident.topic)
        return notice.stage is not Stage.ENDED and state is not None and state.well_since is not None

    async def _write(self) -> None:
        kept = SavedAlerts(
            dict(self.states), {name: each.waiting for name, each in self._targets.items() if each.waiting}
        )
        if kept == self._written:
            return
        try:
            await run_blocking(files.replace, self._path, render_alerts(kept))
        except OSError as error:
            line = files.describe_error(error)
            if line != self._unwritten:
                log.error("alerts: a restart may tell again what was told: %s", line)  # noqa: TRY400 (one line)
            self._unwritten = line
        else:
            self._written, self._unwritten = kept, ""


def _with(waiting: Sequence[Notice], notice: Notice, name: str) -> tuple[Notice, ...]:
    """Add a notice. It replaces those of its incident that were not posted: the newest one tells everything."""
    begun, topic = notice.incident.begun, notice.incident.topic
    earlier = [each for each in waiting if (each.incident.begun, each.incident.topic) != (begun, topic)]
    untold = any(each.stage is Stage.BEGUN for each in waiting if each not in earlier)
    stage = Stage.BEGUN if untold and notice.stage is Stage.GROWN else notice.stage
    if len(earlier) >= MAX_WAITING:
        log.error("alerts.%s: too many wait; dropped: %s", name, _line(earlier[0]))
        earlier = earlier[1:]
    return (*earlier, Notice(stage, notice.incident))
