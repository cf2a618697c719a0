"""How long a message may still follow another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FollowRules:
    """After how many seconds a message no longer follows another. In a thread only `breath` and `leading` count.

    Attributes:
        breath: how soon a team member goes on saying the same thing. They serve several people, and turn to the next.
        own: how soon anybody else does.
        heard: how soon somebody answers, without replying, what was said to them, or to all. They have to see it first.
        leading: how soon a reply follows a line that leads to it. Both are in one batch then, so none was captured yet.
        remembered: how soon who turns to the team again goes on with their conversation. Later it is over, and filed
            (`kb.settle_minutes`).
        named: how long a name or mention means what that person was talking about.
    """

    breath: float = 90.0
    own: float = 300.0
    heard: float = 600.0
    leading: float = 60.0
    remembered: float = 600.0
    named: float = 3600.0
