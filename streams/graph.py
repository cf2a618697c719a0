"""The whole program on one screen: what flows where. The work is done elsewhere.

                 Discord gateway | recording | export
                                  │ events
       history, people, watermarks, typists observe them ────────── reactions → feedback sink
                      follow: each message's conversation
  screen: each message once; typing, edits and deletions change waiting messages
                                  │ messages ────────────── inferred votes → feedback sink
                      quiet window per (place, author)
                                  │ batches
                   cut where the conversation changes, route
     ┌────────────────────────────┼─────────────────────────────┐
 inquiries                     ignored                      captures
     │ one asker at a time        │                             │ in order
gather, permit ► evidence◄─ events│            extract → summarise images → archive sink
gate, select,    chunk → embed    │      edits, deletions, doubts ──────┤
load             → collections    │                             │ one pair at a time, in the background
retrieve ◄───────────┘            │             curation: classify → integrate → topic sink
generate, …                       │                                      → describe → index
hold while the team types         │                             │
approve ──► drafts ◄── the team   │                             │
reply sink ◄───┘ ───► discard     │                             │
     └────────────────────────────┼─────────────────────────────┘
                               results
     release: messages let go, watermarks moved; then journal, metrics, terminal

 ticks ─► sample what is well ─► incidents ─► alert sink      until the events end; nothing waits for it

`model/steps.py: STEPS` names all steps in their order. Beside the graph, replies that an earlier run left half posted
are finished (`unfinished`). `import_graph` is the graph of an import.
"""

from __future__ import annotations

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from dataflow import fork, of_type, supervise
from model.events import Event, Posted, Reaction
from model.messages import AuthorType, Part
from model.outcomes import Ignored, Outcome, Reason, Removed, Result
from operators.doubting import doubts
from operators.inferred_votes import inferred_votes
from operators.route import RoutedItem, cut, ignored, route
from operators.screen import ScreenedItem, follow, screen
from services.assistant import CaptureJob, Inquiry
from services.team import Capture, Pair
from streams.alerts import alerts
from streams.answers import answers, approvals, unfinished
from streams.captures import RemoteRevisions, captures, revised_captures, store_remote_captures
from streams.conversations import batches, observe, release, votes
from streams.curation import curations, only_stored
from streams.evidence import evidence
from streams.wiring import Rules, Services, Sinks

NO_REMOTE_CAPTURES: Observable[Capture | RemoteRevisions] = rx.empty()


def incoming(
    events: Observable[Event], s: Services, rules: Rules
) -> tuple[Observable[Event], Observable[ScreenedItem], Observable[Part]]:
    """Return the streams of events, of screened messages and of parts, for any number of subscribers each."""
    follow_messages = follow(s.tracker, s.people, s.history, rules.screen.withheld)
    events = observe(events, s.history, s.people, s.watermarks, s.typists).pipe(follow_messages, fork("events"))
    screened = events.pipe(screen(s.people, s.history, s.tracker, s.team, s.in_flight, rules.screen), fork("screen"))
    batched = batches(screened, s.tracker, s.typists, rules.window, s.gauge)
    return events, screened, batched.pipe(cut(s.people, s.history, s.tracker, s.in_flight), fork("parts"))


def routing(parts: Observable[Part], s: Services) -> Observable[RoutedItem]:
    return parts.pipe(route(s.router, s.servers.map(lambda each: each.usage), s.gauge), fork("routed"))


def revisions(
    events: Observable[Event], parts: Observable[Part], s: Services, sinks: Sinks, rules: Rules
) -> Observable[Pair]:
    doubted = parts.pipe(doubts(s.history, s.tracker, s.people, s.posts, rules.screen.withheld), supervise("doubts"))
    changes = rx.merge(events, doubted)
    return revised_captures(changes, s.context, sinks.revise, lambda place_id: s.history.place(place_id).guild_id)


def graph(
    events: Observable[Event],
    services: Services,
    sinks: Sinks,
    rules: Rules,
    remote_captures: Observable[Capture | RemoteRevisions] = NO_REMOTE_CAPTURES,
) -> Observable[Result]:
    """Wire the bot. Completes when `events` has and all work is done; every message ends in exactly one `Result`.
    Operators before a `fork` run once, however many branches follow; a branch that dies of a bug is restarted.

    `remote_captures`: captures of other processes, and changes of their messages, which are stored here.
    """
    s = services
    events, screened, parts = incoming(events, s, rules)
    routed = routing(parts, s)

    gathered: Subject[Inquiry] = Subject()  # each inquiry once it is gathered and permitted
    answered = answers(routed.pipe(of_type(Inquiry)), s, sinks.reply, rules.answers, gathered).pipe(fork("answers"))
    approved = approvals(events, answered, s.drafts, s.in_flight, sinks.draft).pipe(supervise("drafts"), fork("drafts"))
    ended = rx.merge(answered, approved)
    files = evidence(events, gathered, ended, s.evidence, rules.evidence).pipe(supervise("evidence"))
    jobs, image_services = routed.pipe(of_type(CaptureJob)), s.servers.map(lambda each: each.image_services)
    capturing = captures(jobs, s.context, sinks.archive, image_services, s.gauge, may_wait=rules.captures_may_wait)
    revised = revisions(events, parts, s, sinks, rules)
    remote = store_remote_captures(remote_captures, sinks.archive, sinks.revise)
    captured = rx.merge(capturing, revised, remote).pipe(fork("captures"))
    curation_services = s.servers.map(lambda each: each.curation)
    stored = rx.merge(only_stored(captured), approved.pipe(ops.filter(lambda outcome: outcome.qa_id is not None)))
    curated = curations(stored, curation_services, rules.curation, sinks.on_decided)
    alerting = rx.empty() if s.alerts is None else alerts(events, s.alerts).pipe(supervise("alerts"))
    inferred = screened.pipe(of_type(Posted), inferred_votes(s.posts, s.tracker, s.people))
    results = rx.merge(
        ended,
        unfinished(events, s.outbox, sinks.finish).pipe(supervise("unfinished")),
        # `files` emits no outcomes. It is merged, like curation, votes and alerts, so that the graph waits for its end.
        files.pipe(of_type(Outcome)),
        alerting,
        captured.pipe(of_type(Outcome)),
        *(each.pipe(supervise("curation")) for each in curated),
        screened.pipe(of_type(Ignored, Removed)),
        routed.pipe(of_type(Ignored, Outcome)),
        votes(rx.merge(events.pipe(of_type(Reaction)), inferred), sinks.feedback).pipe(supervise("votes")),
    )
    return release(results, s.in_flight, s.watermarks, sinks.results)


def import_graph(events: Observable[Event], services: Services, sinks: Sinks, rules: Rules) -> Observable[Result]:
    """Wire an import of messages of long ago: capture what the team wrote, answer nobody. Completes when `events` has
    and all is stored; every message ends in exactly one `Result`.

    parts     --u1--t1--t2------|      u1 is by a community user, t1 and t2 are by the team
    captures  ------c1----------|
    ignored   --u1------t2------|
    """
    s = services
    events, screened, parts = incoming(events, s, rules)
    routed = routing(parts.pipe(ops.filter(is_by_team)), s)
    others = parts.pipe(ops.filter(lambda part: not is_by_team(part)))
    captured = captures(routed.pipe(of_type(CaptureJob)), s.context, sinks.archive, gauge=s.gauge, may_wait=False)
    results = rx.merge(
        captured.pipe(supervise("captures")),
        # This branch emits no outcomes. It is merged so that the graph waits for its end.
        revisions(events, parts, s, sinks, rules).pipe(of_type(Outcome)),
        screened.pipe(of_type(Ignored, Removed)),
        routed.pipe(of_type(Ignored, Outcome)),
        others.pipe(ops.map(lambda part: ignored(part, Reason.NOT_ADDRESSED))),
    )
    return release(results, s.in_flight, s.watermarks, sinks.results)


def is_by_team(part: Part) -> bool:
    return part.author_type is AuthorType.TEAM_MEMBER
