"""The whole program at one glance.

                       Discord gateway | recording | export
                                       │ events
              history and people hear of them; screen: each message once
                                       │ messages (edits and deletions amend what waits)
                        quiet window per (place, author)
                                       │ batches
                        cut where the reply target changes, route
              ┌────────────────────────┼──────────────────────┐
          inquiries                 ignored                lessons
              │ one asker at a time                           │ in order
    gather → gate → select → load →          extract → summarise images → archive sink
       generate → verify → reply sink                         │ one pair at a time, in the background
              │ files of the answer's thread  │             classify → integrate → topics ── index
    chunk → embed → collections               │
              └────────────────────────┼──────────────────────┘
                                     ends ── log, metrics, terminal, state

Nothing here does any work: this file says what flows where.
"""

from __future__ import annotations

import reactivex as rx
from reactivex import Observable
from reactivex.subject import Subject

from model.events import Event
from model.outcomes import Ignored, Outcome, Removed, Result
from operators import fork, only, supervised
from operators.cut import cut
from operators.route import route
from operators.screen import screen
from services.assistant import Inquiry, Lesson
from streams.answers import answers
from streams.conversations import batches, remembered, settled
from streams.curation import curation, stored
from streams.evidence import evidence
from streams.feedback import votes
from streams.lessons import lessons
from streams.wiring import Rules, Services, Sinks


def graph(events: Observable[Event], services: Services, sinks: Sinks, rules: Rules) -> Observable[Result]:
    """Wire the bot. Completes when `events` has and all work is done; every message comes out in one `Result`.

    A `fork` stands wherever branches part: what comes before it runs once, however many follow.
    """
    s = services
    heard = remembered(events, s.history, s.people, s.seen).pipe(fork("events"))
    screened = heard.pipe(screen(s.people, s.history, s.team, s.in_flight, rules.screen), fork("screen"))
    spoken = batches(screened, rules.quiet_seconds, rules.max_window_seconds, s.gauge)
    parts = spoken.pipe(cut(s.people, s.history, s.in_flight), route(s.router, s.usage, s.gauge), fork("parts"))

    gathered: Subject[Inquiry] = Subject()  # completes with the answers
    answered = answers(parts.pipe(only(Inquiry)), services, sinks.reply, rules.answers, gathered).pipe(fork("answers"))
    filed = evidence(heard, gathered, answered, s.evidence, rules.evidence).pipe(supervised("evidence"))
    learned = lessons(parts.pipe(only(Lesson)), s.context, sinks.archive, s.images_of_lessons, s.gauge)
    taught = learned.pipe(fork("lessons"))

    ends = rx.merge(
        answered,
        filed.pipe(only(Outcome)),
        taught.pipe(only(Outcome)),
        curation(stored(taught), s.curation, rules.curation, sinks.decided).pipe(supervised("curation")),
        screened.pipe(only(Ignored, Removed)),
        parts.pipe(only(Ignored, Outcome)),
        votes(heard, sinks.feedback).pipe(supervised("votes")),
    )
    return settled(ends, s.in_flight, s.seen, sinks.ends)
