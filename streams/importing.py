"""The team branch alone, for messages of long ago: what the team wrote is captured, and nobody is answered.

       recordings | exports
               │ events
  remembered, screened, batched and cut as in streams/graph.py
      ┌────────┴─────────┐
community_user      team_member
      │ ignored          │ routed
      │             ┌────┴────┐
      │          lessons   ignored
      │             │ extract → archive sink
      └────────┬────┴─────────┘
             ends
"""

from __future__ import annotations

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from model.batches import Part
from model.events import Event
from model.messages import AuthorType
from model.outcomes import Ignored, Outcome, Reason, Removed, Result
from operators import fork, only, supervised
from operators.cut import cut
from operators.route import ignored, route
from operators.screen import screen
from services.assistant import Lesson
from streams.conversations import batches, remembered, settled
from streams.lessons import lessons
from streams.wiring import Rules, Services, Sinks


def learning(events: Observable[Event], services: Services, sinks: Sinks, rules: Rules) -> Observable[Result]:
    """Completes when `events` has and all is stored; every message comes out in one `Result`."""
    s = services
    heard = remembered(events, s.history, s.people, s.seen)
    screened = heard.pipe(screen(s.people, s.history, s.team, s.in_flight, rules.screen), fork("screen"))
    spoken = batches(screened, rules.quiet_seconds, rules.max_window_seconds, s.gauge)
    parts = spoken.pipe(cut(s.people, s.history, s.in_flight), fork("parts"))
    routed = parts.pipe(ops.filter(is_of_the_team), route(s.router, s.usage, s.gauge), fork("routed"))

    ends = rx.merge(
        lessons(routed.pipe(only(Lesson)), s.context, sinks.archive, gauge=s.gauge).pipe(supervised("lessons")),
        screened.pipe(only(Ignored, Removed)),
        routed.pipe(only(Ignored, Outcome)),
        parts.pipe(
            ops.filter(lambda part: not is_of_the_team(part)),
            ops.map(lambda part: ignored(part, Reason.NOT_ADDRESSED)),
        ),
    )
    return settled(ends, s.in_flight, s.seen, sinks.ends)


def is_of_the_team(part: Part) -> bool:
    return part.author_type is AuthorType.TEAM_MEMBER
