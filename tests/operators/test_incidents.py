"""When a trouble becomes an incident, and when that is over. One character is one minute here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import reactivex as rx
from hypothesis import given

from model.health import Condition, HealthTopic, Notice, Stage, Trouble
from operators.incidents import (
    DAY,
    GROWN_SECONDS,
    HOUR,
    LONGEST_SETTLE_SECONDS,
    SETTLE_SECONDS,
    IncidentUpdate,
    Sample,
    States,
    TopicState,
    states_at_start,
    track_incidents,
)

AFTER = {HealthTopic.DISCORD: 300.0, HealthTopic.SOURCES: DAY, HealthTopic.BUDGET: 0.0}
MARKS = {Stage.BEGUN: "B", Stage.GROWN: "G", Stage.ENDED: "E"}
START = 1_771_200_000.0


def condition(topic: HealthTopic, at: float, *subjects: str, detail: str = "") -> Condition:
    return Condition(topic=topic, troubles={each: Trouble(at, at) for each in subjects}, detail=detail)


def tracked(samples: Sequence[Sample], known: States | None = None) -> list[IncidentUpdate]:
    """What the operator makes of samples."""
    found = list[IncidentUpdate]()
    rx.from_iterable(samples).pipe(track_incidents(known or {}, AFTER)).subscribe(found.append)
    return found


def drawn(
    diagram: str, topic: HealthTopic = HealthTopic.DISCORD, known: States | None = None, minutes: float = 1
) -> str:
    """A sample a minute: `t` trouble, `w` well, `?` not known. The notices as a diagram."""
    samples = [
        Sample(
            at := START + number * minutes * 60,
            () if mark == "?" else (condition(topic, at, *([""] if mark == "t" else [])),),
        )
        for number, mark in enumerate(diagram)
    ]
    return "".join("".join(MARKS[each.stage] for each in one.notices) or "-" for one in tracked(samples, known))


def test_an_incident_begins_when_its_trouble_has_lasted_and_ends_when_all_has_been_well_for_a_while() -> None:
    assert drawn("wtttttttwwwwwwww") == "------B------E--"
    assert drawn("wtttttwwwtttttww") == "----------------"


def test_what_is_told_at_once_is_told_at_the_first_sample() -> None:
    assert drawn("wttwwwwwwwww", HealthTopic.BUDGET) == "-B------E---"


def test_the_end_tells_when_all_was_well_again_and_not_when_that_was_believed() -> None:
    samples = [
        Sample(START + n * 60, (condition(HealthTopic.DISCORD, START + n * 60, *[""] * (n < 10)),)) for n in range(20)
    ]
    [begun, ended] = [notice for each in tracked(samples) for notice in each.notices]
    assert (begun.incident.since, begun.incident.begun) == (START, START + 300)
    assert ended.incident.ended == START + 600


def test_a_trouble_that_began_earlier_than_the_first_sample_counts_from_then_on() -> None:
    early = Condition(topic=HealthTopic.DISCORD, troubles={"": Trouble(START - 280, START)})
    [notice] = tracked([Sample(START, (early,)), Sample(START + 30, (early,))])[-1].notices
    assert notice.incident.since == START - 280


def test_a_topic_that_is_not_known_stays_as_it_is() -> None:
    assert drawn("tttttt????wwwwww") == "-----B---------E"
    assert drawn("ttt???t") == "------B"


def test_topics_without_a_limit_make_no_incidents() -> None:
    assert drawn("tttttttttttt", HealthTopic.ERRORS) == "------------"


def test_a_trouble_that_comes_and_goes_for_a_day_makes_few_notices() -> None:
    """Six minutes away, six minutes back: each long enough to count."""
    assert drawn(("tttttt" + "wwwwww") * 120).strip("-").count("B") == 2
    assert drawn("tw" * 720).count("B") == 0
    assert drawn("tttttt" + "tw" * 700).count("B") == 1


def test_an_hour_after_its_end_an_incident_is_a_new_one_with_the_usual_patience() -> None:
    calm = "w" * 70
    assert drawn(f"tttttt{calm}tttttt{calm}") == "-----B" + "-----E" + "-" * 64 + "-----B" + "-----E" + "-" * 64


def test_no_patience_is_longer_than_an_hour() -> None:
    state = TopicState(last_end=START - 1, repeats=8)
    told = drawn("tttttt" + "w" * 70, known={HealthTopic.DISCORD: state})
    assert told.index("E") - 6 == LONGEST_SETTLE_SECONDS / 60


def test_many_sources_are_one_notice_and_later_ones_are_told_once_a_day() -> None:
    hours = [f"page {number}" for number in range(200)]

    def at(hour: int) -> Sample:
        """One more page fails each hour, for 50 hours; after 100 hours all are well."""
        failing = hours[: min(hour + 1, 50)] if hour < 100 else []
        return Sample(START + hour * HOUR, (condition(HealthTopic.SOURCES, START + hour * HOUR, *failing),))

    told = [
        (hour, notice.stage, len(notice.incident.subjects))
        for hour, each in enumerate(tracked([at(hour) for hour in range(110)]))
        for notice in each.notices
    ]
    begun, *grown, ended = told
    assert begun == (24, Stage.BEGUN, 1)
    assert grown == [(48, Stage.GROWN, 25), (72, Stage.GROWN, 49), (96, Stage.GROWN, 50)]
    assert ended == (101, Stage.ENDED, 50)


def test_a_source_that_fails_for_a_moment_keeps_no_incident_of_others_open() -> None:
    def at(hour: int) -> Sample:
        seconds, failing = START + hour * HOUR, ["old"] if hour < 30 else ["new"] * (hour % 2)
        return Sample(seconds, (condition(HealthTopic.SOURCES, seconds, *failing),))

    assert [notice.stage for each in tracked([at(hour) for hour in range(40)]) for notice in each.notices] == [
        Stage.BEGUN,
        Stage.ENDED,
    ]


def test_a_clock_that_was_set_back_delays_no_end() -> None:
    state = drawn_state("ttttttw")
    later = replace(state, well_since=START + 10 * DAY)
    assert drawn("wwwwwww", known={HealthTopic.DISCORD: later}) == "-----E-"


def drawn_state(diagram: str) -> TopicState:
    samples = [
        Sample(START - 3600 + n * 60, (condition(HealthTopic.DISCORD, START - 3600 + n * 60, *[""] * (mark == "t")),))
        for n, mark in enumerate(diagram)
    ]
    return tracked(samples)[-1].states[HealthTopic.DISCORD]


def test_a_restart_repeats_no_open_incident_and_tells_its_end() -> None:
    known = states_at_start({HealthTopic.DISCORD: drawn_state("tttttttt")}, AFTER)
    assert drawn("tttwwwwwwww", known=known) == "--------E--"


def test_after_a_restart_a_short_trouble_is_measured_anew_and_a_long_one_goes_on() -> None:
    short, long = TopicState(troubles={"": START - 200}), TopicState(troubles={"page": START - DAY + 60})
    known = states_at_start({HealthTopic.DISCORD: short, HealthTopic.SOURCES: long, HealthTopic.DISK: short}, AFTER)
    assert known == {HealthTopic.DISCORD: TopicState(), HealthTopic.SOURCES: long}
    assert drawn("ttttttt", known=known) == "-----B-"
    page = [Sample(START + n * 60, (condition(HealthTopic.SOURCES, START + n * 60, "page"),)) for n in range(3)]
    assert [len(each.notices) for each in tracked(page, known)] == [0, 1, 0]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([HealthTopic.DISCORD, HealthTopic.SOURCES, HealthTopic.BUDGET]),
        st.sampled_from([10.0, 60.0, 300.0, HOUR, DAY]),
        st.frozensets(st.sampled_from(["", "one", "two"])),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_is_seen_begins_and_ends_of_a_topic_alternate_and_keep_their_distance(steps: Any) -> None:
    at, samples = START, list[Sample]()
    for topic, seconds, subjects in steps:
        at += seconds
        samples.append(Sample(at, (condition(topic, at, *subjects),)))
    told: dict[HealthTopic, list[tuple[float, Notice]]] = {topic: [] for topic in AFTER}
    last: Mapping[HealthTopic, TopicState] = {}
    for each in tracked(samples):
        last = each.states
        for notice in each.notices:
            told[notice.incident.topic].append((each.at, notice))
    for topic, notices in told.items():
        stages = [notice.stage for _, notice in notices if notice.stage is not Stage.GROWN]
        assert stages == [Stage.BEGUN, Stage.ENDED] * (len(stages) // 2) + [Stage.BEGUN] * (len(stages) % 2)
        assert (len(stages) % 2 == 1) == (topic in last and last[topic].incident is not None)
        for (before, _), (at, notice) in pairwise(notices):
            assert notice.stage is not Stage.GROWN or at - before >= GROWN_SECONDS
            if notice.stage is Stage.ENDED:
                assert notice.incident.ended is not None
                assert at - notice.incident.ended >= SETTLE_SECONDS
                assert notice.incident.begun >= notice.incident.since
        for at, notice in notices:
            if notice.stage is Stage.BEGUN:
                assert at - notice.incident.since >= AFTER[topic]
