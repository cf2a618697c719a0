"""Make incidents of conditions: a trouble has to last before it counts, and to be over for a while before it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reactivex import Observable
from reactivex import operators as ops

from clock import DAY, HOUR
from model.health import Condition, HealthTopic, Incident, Notice, Stage

SETTLE_SECONDS = 300.0
"""All has to be well for so long before an incident is over."""
LONGEST_SETTLE_SECONDS = HOUR
REPEAT_SECONDS = HOUR
"""An incident that begins so soon after the last one of its topic has to be over for twice as long."""
MAX_REPEATS = 8
GROWN_SECONDS = DAY
"""So often at most people are told that an open incident has grown."""


@dataclass(frozen=True, slots=True)
class Sample:
    """All conditions at one time, in seconds since 1970. Topics that are not known now are left out."""

    at: float
    conditions: Sequence[Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """The state of a topic between two samples.

    Attributes:
        troubles: since when each subject has been in trouble without a break.
        incident: the open one.
        well_since: when the trouble of the open incident went; None: it is still there.
        last_end: when the last incident ended; 0: there was none.
        repeats: how many incidents have followed each other within `REPEAT_SECONDS`, the first one left out.
    """

    troubles: Mapping[str, float] = field(default_factory=dict[str, float])
    incident: Incident | None = None
    well_since: float | None = None
    last_end: float = 0.0
    repeats: int = 0


States = Mapping[HealthTopic, TopicState]


@dataclass(frozen=True, slots=True)
class IncidentUpdate:
    """The states after a sample, and what people are to be told of it."""

    at: float
    states: States
    notices: Sequence[Notice] = ()


def track_incidents(
    known: States, after: Mapping[HealthTopic, float]
) -> Callable[[Observable[Sample]], Observable[IncidentUpdate]]:
    """Follow the conditions. `known`: the states at the beginning; `after`: the seconds that a trouble of each topic
    has to last. Topics that are not in it make no incidents.

        samples  --w--t--t--t--t--w--w--w--|      w: well, t: trouble
        [ track_incidents(…) ]
        notices  -----------B--------------E--|   B: begun, E: ended

    The begins and ends of a topic alternate. In between, `GROWN` tells at most once a day that more is in trouble. A
    trouble that comes and goes makes few notices: an incident is over when all has been well for `SETTLE_SECONDS`, and
    for twice as long with each incident that follows another one within an hour.
    """

    def follow(earlier: IncidentUpdate, sample: Sample) -> IncidentUpdate:
        states, notices = dict(earlier.states), list[Notice]()
        for condition in sample.conditions:
            topic = condition.topic
            if topic in after:
                states[topic], notice = _advance(states.get(topic, TopicState()), condition, sample.at, after[topic])
                notices += [] if notice is None else [notice]
        return IncidentUpdate(sample.at, states, tuple(notices))

    return ops.scan(follow, IncidentUpdate(0.0, known))


def states_at_start(kept: States, after: Mapping[HealthTopic, float]) -> States:
    """Return the states for a start: where a trouble has to last for less than an hour, it is measured anew."""
    return {
        topic: state if state.incident is not None or after[topic] >= HOUR else replace(state, troubles={})
        for topic, state in kept.items()
        if topic in after
    }


def _advance(state: TopicState, condition: Condition, at: float, after: float) -> tuple[TopicState, Notice | None]:
    troubles = {
        subject: min(trouble.since, state.troubles.get(subject, at), at)
        for subject, trouble in condition.troubles.items()
    }
    lasting = [subject for subject, since in troubles.items() if at - since >= after]
    state, incident = replace(state, troubles=troubles), state.incident
    if incident is None:
        return (state, None) if not lasting else _begin(state, condition, lasting, at)
    if any(subject in incident.subjects for subject in troubles) or lasting:
        state = replace(state, well_since=None)
        joined = tuple(subject for subject in lasting if subject not in incident.subjects)
        if not joined or at - incident.told_at < GROWN_SECONDS:
            return state, None
        grown = replace(incident, subjects=(*incident.subjects, *joined), detail=condition.detail, told_at=at)
        return replace(state, incident=grown), Notice(Stage.GROWN, grown)
    well_since = at if state.well_since is None else min(state.well_since, at)
    if at - well_since < min(LONGEST_SETTLE_SECONDS, SETTLE_SECONDS * 2**state.repeats):
        return replace(state, well_since=well_since), None
    over = replace(state, incident=None, well_since=None, last_end=at)
    return over, Notice(Stage.ENDED, replace(incident, ended=well_since))


def _begin(state: TopicState, condition: Condition, lasting: Sequence[str], at: float) -> tuple[TopicState, Notice]:
    since = min(state.troubles[subject] for subject in lasting)
    incident = Incident(
        topic=condition.topic, since=since, begun=at, subjects=tuple(lasting), detail=condition.detail, told_at=at
    )
    follows = state.last_end > 0 and at - state.last_end < REPEAT_SECONDS
    repeats = min(state.repeats + 1, MAX_REPEATS) if follows else 0
    return replace(state, incident=incident, well_since=None, repeats=repeats), Notice(Stage.BEGUN, incident)
