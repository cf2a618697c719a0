"""The team branch alone, for old messages: what the team wrote is captured, and nothing is answered.

       recordings | exports
               │ events
  observed, screened, batched and cut as in streams/graph.py
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

from model.events import Event
from model.messages import AuthorType
from model.outcomes import Ignored, Outcome, Removed, Result
from operators import fork, only, supervised
from operators.cut import StartedPart, cut
from operators.route import not_addressed
from operators.screen import screen
from services.assistant import Lesson
from streams.conversations import batches, remembered, routed, settled
from streams.lessons import lessons
from streams.wiring import Rules, Services, Sinks


def learning(events: Observable[Event], services: Services, sinks: Sinks, rules: Rules) -> Observable[Result]:
    """Completes after `events`, once all is stored. Every message gets one `Result`."""
    s = services
    observed = remembered(events, s.history, s.people, s.seen)
    screened = observed.pipe(screen(s.people, s.history, s.team, s.in_flight, rules.screen), fork("screen"))
    windows = batches(screened, rules.quiet_seconds, rules.max_window_seconds, s.gauge)
    begun = windows.pipe(cut(s.people, s.history, s.in_flight), fork("begun"))
    parts = routed(begun.pipe(ops.filter(is_of_the_team)), s.router, s.gauge).pipe(fork("parts"))

    ends = rx.merge(
        lessons(parts.pipe(only(Lesson)), s.context, sinks.archive, gauge=s.gauge).pipe(supervised("lessons")),
        screened.pipe(only(Ignored, Removed)),
        parts.pipe(only(Ignored, Outcome)),
        begun.pipe(ops.filter(lambda each: not is_of_the_team(each)), ops.map(lambda each: not_addressed(each.part))),
    )
    return settled(ends, s.in_flight, s.seen, sinks.ends)


def is_of_the_team(begun: StartedPart) -> bool:
    return begun.part.author_type is AuthorType.TEAM_MEMBER
