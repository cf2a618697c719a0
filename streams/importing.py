"""The graph of an import, for messages of long ago: captures what the team wrote, and answers nobody.

       recordings | exports
               │ events
               │ streams/graph.py: incoming
      ┌────────┴─────────┐
community_user      team_member
      │ ignored          │ routed
      │             ┌────┴────┐
      │         captures   ignored
      │             │ extract → archive sink
      └────────┬────┴─────────┘
               results
"""

from __future__ import annotations

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from dataflow import fork, of_type, supervise
from model.events import Event
from model.messages import AuthorType, Part
from model.outcomes import Ignored, Outcome, Reason, Removed, Result
from operators.doubting import doubts
from operators.route import ignored, route
from services.assistant import CaptureJob
from streams.captures import captures, revised_captures
from streams.conversations import release
from streams.graph import incoming
from streams.wiring import Rules, Services, Sinks


def import_graph(events: Observable[Event], services: Services, sinks: Sinks, rules: Rules) -> Observable[Result]:
    """Return the graph of an import: capture what the team wrote, answer nobody. Completes when `events` has and all is
    stored; every message comes out in one `Result`.
    """
    s = services
    events, screened, parts = incoming(events, s, rules)
    routed = parts.pipe(
        ops.filter(is_by_team), route(s.router, s.servers.map(lambda each: each.usage), s.gauge), fork("routed")
    )
    doubted = parts.pipe(doubts(s.history, s.tracker, s.people, rules.screen.withheld), supervise("doubts"))
    changes = rx.merge(events, doubted)
    results = rx.merge(
        captures(routed.pipe(of_type(CaptureJob)), s.context, sinks.archive, gauge=s.gauge, may_wait=False).pipe(
            supervise("captures")
        ),
        # This branch emits no results. It is merged so that the graph waits for its end.
        revised_captures(changes, s.context, sinks.revise, lambda place_id: s.history.place(place_id).guild_id).pipe(
            of_type(Outcome)
        ),
        screened.pipe(of_type(Ignored, Removed)),
        routed.pipe(of_type(Ignored, Outcome)),
        parts.pipe(
            ops.filter(lambda part: not is_by_team(part)),
            ops.map(lambda part: ignored(part, Reason.NOT_ADDRESSED)),
        ),
    )
    return release(results, s.in_flight, s.watermarks, sinks.results)


def is_by_team(part: Part) -> bool:
    return part.author_type is AuthorType.TEAM_MEMBER
