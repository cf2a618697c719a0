"""Time limits for deciding whether a message continues a conversation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FollowRules:
    """For how many seconds an earlier message still decides which conversation the next one belongs to. In threads only
    `breath` and `leading` apply.

    Attributes:
        breath: after a team member's own last message. Short, since the team serves several people in turn.
        own: after anybody else's own last message.
        heard: after a message to the author, or to everybody, that the author answers without replying.
        leading: between a team member's opening line ("let me look…") and the reply that follows it. Both are in one
            batch then, so neither was captured yet.
        remembered: after which somebody who turns to the team again begins a new conversation. By then the old one is
            filed (`kb.settle_minutes`).
        named: how long a name or mention stands for what that person was talking about.
    """

    breath: float = 90.0
    own: float = 300.0
    heard: float = 600.0
    leading: float = 60.0
    remembered: float = 600.0
    named: float = 3600.0
