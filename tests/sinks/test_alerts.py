"""What people are told of incidents, what of it outlasts a crash, and what becomes of targets that do not take it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from clock import VirtualLoop, now
from model.health import TOPICS, HealthTopic, Incident, Notice, Stage
from model.outcomes import Reason
from operators.incidents import IncidentUpdate, TopicState
from services.conversations import WorkCancelled
from services.discord import DryRunPoster, PostFailed
from services.storage import files
from services.telemetry import Webhook, WebhookFailed
from sinks.alerts import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    MAX_WAITING,
    POST_SECONDS,
    Alerts,
    SavedAlerts,
    message_of,
    parse_alerts,
    render_alerts,
    send_to_channel,
    send_to_webhook,
)
from tests.loopback.web_server import WebServer, drop, hang, status
from tests.services.storage.power import Machine

START = 1_771_200_000.0
AFTER = {HealthTopic.DISCORD: 300.0, HealthTopic.DISK: 0.0}


def incident(topic: HealthTopic = HealthTopic.DISCORD, since: float = START, **more: Any) -> Incident:
    return Incident(topic=topic, since=since, begun=since + 300, told_at=since + 300, **more)


BEGUN = Notice(Stage.BEGUN, incident())
ENDED = Notice(Stage.ENDED, incident(ended=START + 1200))


def tracked(*notices: Notice, at: float = START) -> IncidentUpdate:
    last = notices[-1] if notices else None
    state = (
        TopicState() if last is None else TopicState(incident=last.incident if last.stage is not Stage.ENDED else None)
    )
    return IncidentUpdate(at, {HealthTopic.DISCORD: state}, notices)


class Told:
    """A target. `fails`: what happens to the next posts, None for one that works."""

    def __init__(self, *fails: Exception | None) -> None:
        self.notices = list[Notice]()
        self.fails = list(fails)
        self.tried = list[float]()

    async def send(self, notice: Notice) -> None:
        self.tried.append(now())
        if self.fails and (error := self.fails.pop(0)) is not None:
            raise error
        self.notices.append(notice)

    @property
    def stages(self) -> list[Stage]:
        return [notice.stage for notice in self.notices]


def play(work: Callable[[], Coroutine[Any, Any, object]], at: float = START) -> object:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(at)) as runner:
        return runner.run(work())


def alerts(folder: Path, **targets: Callable[[Notice], Awaitable[object]]) -> Alerts:
    return Alerts(folder / "state" / "alerts.json", targets, AFTER)


# What is said


def test_a_message_says_what_is_wrong_since_when_and_what_to_do() -> None:
    said = message_of(Notice(Stage.BEGUN, incident(subjects=("",), detail="")))
    assert said == f"**Discord is not connected**, since 2026-02-16 00:00 UTC.\n{TOPICS[HealthTopic.DISCORD].remedy}"
    assert message_of(ENDED) == (
        "**Discord is connected again.** The trouble lasted 20 minutes: "
        "from 2026-02-16 00:00 UTC to 2026-02-16 00:20 UTC."
    )


@pytest.mark.parametrize(
    ("seconds", "said"), [(5, "1 minute"), (3540, "59 minutes"), (5400, "1.5 hours"), (200_000, "2.3 days")]
)
def test_the_end_says_how_long_it_took(seconds: float, said: str) -> None:
    assert f"The trouble lasted {said}:" in message_of(Notice(Stage.ENDED, incident(ended=START + seconds)))


def test_many_sources_are_one_short_message_with_the_newest_named() -> None:
    pages = tuple(f"https://docs.example.org/{number}" for number in range(300))
    said = message_of(
        Notice(Stage.GROWN, incident(HealthTopic.SOURCES, subjects=pages, detail="300 failures among 900 sources"))
    )
    assert said.startswith("**More than before: Sources cannot be read**, since")
    assert "`https://docs.example.org/299` and 295 others" in said
    assert "300 failures among 900 sources" in said
    assert len(said) < 1000


def test_a_name_neither_ends_its_code_nor_mentions_anybody() -> None:
    said = message_of(
        Notice(Stage.BEGUN, incident(HealthTopic.SOURCES, subjects=("a`@everyone <!channel> <@42>",), detail="<!here>"))
    )
    assert "<" not in said
    assert "`a @everyone  !channel   @42`" in said


@pytest.mark.parametrize("topic", [each for each in HealthTopic if each is not HealthTopic.ERRORS])
@pytest.mark.parametrize("stage", Stage)
def test_every_message_fits_into_one_of_discord(topic: HealthTopic, stage: Stage) -> None:
    subjects = tuple("x" * 120 for _ in range(200))
    notice = Notice(stage, incident(topic, subjects=subjects, detail="y" * 200, ended=START + 9e6))
    assert len(f"Millrace: {message_of(notice)}") < 2000


# Who is told, and how often


def test_each_target_is_told_once_of_the_begin_and_once_of_the_end(tmp_path: Path) -> None:
    one, two = Told(), Told()

    async def outage() -> None:
        sink = alerts(tmp_path, one=one.send, two=two.send)
        for each in (tracked(BEGUN), tracked(), tracked(ENDED), tracked()):
            await sink.tell(each)

    play(outage)
    assert one.stages == two.stages == [Stage.BEGUN, Stage.ENDED]


def test_a_target_that_is_away_is_tried_with_growing_pauses_and_keeps_no_other_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away, there = Told(*[PostFailed("Discord answered 500")] * 30), Told()

    async def hours() -> None:
        sink = alerts(tmp_path, away=away.send, there=there.send)
        await sink.tell(tracked(BEGUN))
        for _ in range(480):
            await asyncio.sleep(30)
            await sink.tell(tracked())

    play(hours)
    assert there.stages == [Stage.BEGUN]
    pauses = [after - before for before, after in zip(away.tried, away.tried[1:], strict=False)]
    assert pauses[:6] == [30, 60, 120, 240, 480, 900]
    assert set(pauses[5:]) == {LONGEST_PAUSE_SECONDS}
    assert away.tried[0] == START
    assert caplog.text.count("alerts.away: not posted (Discord answered 500)") == len(away.tried) < 25


def test_a_target_that_gives_no_answer_is_told_in_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    silent = Told(TimeoutError())

    async def once() -> None:
        await alerts(tmp_path, silent=silent.send).tell(tracked(BEGUN))

    play(once)
    assert "alerts.silent: not posted (no answer within 15 s)" in caplog.text


def test_an_end_takes_the_place_of_a_begin_that_could_not_be_posted(tmp_path: Path) -> None:
    away = Told(PostFailed("away"))

    async def outage() -> None:
        sink = alerts(tmp_path, away=away.send)
        await sink.tell(tracked(BEGUN))
        await sink.tell(tracked(ENDED))
        await asyncio.sleep(FIRST_PAUSE_SECONDS)
        await sink.tell(tracked())

    play(outage)
    assert away.stages == [Stage.ENDED]
    assert "from 2026-02-16 00:00 UTC to 2026-02-16 00:20 UTC" in message_of(away.notices[0])


def test_a_begin_that_could_not_be_posted_waits_while_all_is_well_again(tmp_path: Path) -> None:
    away = Told(PostFailed("away"))
    calm = TopicState(incident=BEGUN.incident, well_since=START + 30)

    async def outage(after: TopicState, *notices: Notice) -> None:
        sink = alerts(tmp_path, away=away.send)
        await sink.tell(tracked(BEGUN))
        for _ in range(5):
            await asyncio.sleep(FIRST_PAUSE_SECONDS)
            await sink.tell(IncidentUpdate(now(), {HealthTopic.DISCORD: calm}))
        assert away.notices == []
        await sink.tell(IncidentUpdate(now(), {HealthTopic.DISCORD: after}, notices))

    play(lambda: outage(TopicState(), ENDED))
    assert away.stages == [Stage.ENDED]
    away.notices.clear()
    away.fails.append(PostFailed("away"))
    play(lambda: outage(TopicState(incident=BEGUN.incident)))
    assert away.stages == [Stage.BEGUN]


def test_what_grew_before_its_begin_was_posted_is_told_as_the_begin(tmp_path: Path) -> None:
    away = Told(PostFailed("away"))
    grown = Notice(Stage.GROWN, incident(subjects=("one", "two")))

    async def outage() -> None:
        sink = alerts(tmp_path, away=away.send)
        await sink.tell(tracked(BEGUN))
        await sink.tell(tracked(grown))
        await asyncio.sleep(FIRST_PAUSE_SECONDS)
        await sink.tell(tracked())

    play(outage)
    assert away.notices == [Notice(Stage.BEGUN, grown.incident)]


def test_a_pause_that_a_target_asks_for_is_kept(tmp_path: Path) -> None:
    away = Told(WebhookFailed("it answered 429", retry_after=200))

    async def outage() -> None:
        sink = alerts(tmp_path, away=away.send)
        for _ in range(10):
            await sink.tell(tracked(BEGUN) if not away.tried else tracked())
            await asyncio.sleep(30)

    play(outage)
    assert [at - START for at in away.tried] == [0, 210]


def test_a_target_that_never_answers_costs_some_seconds(tmp_path: Path) -> None:
    async def never(_: Notice) -> None:
        await asyncio.Event().wait()

    async def outage() -> float:
        await alerts(tmp_path, silent=never).tell(tracked(BEGUN))
        return now()

    assert play(outage) == START + POST_SECONDS


def test_what_waits_is_bounded_and_what_is_dropped_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    away = Told(*[PostFailed("away")] * 1000)

    async def year() -> None:
        sink = alerts(tmp_path, away=away.send)
        for day in range(MAX_WAITING + 3):
            await sink.tell(
                tracked(Notice(Stage.ENDED, incident(since=START + day * 86_400, ended=START + day * 86_400 + 1)))
            )

    play(year)
    kept = parse_alerts((tmp_path / "state" / "alerts.json").read_bytes(), tmp_path)
    assert len(kept.waiting["away"]) == MAX_WAITING
    assert caplog.text.count("too many wait; dropped: Discord is connected again.") == 3


def test_the_metric_shows_what_is_open(tmp_path: Path) -> None:
    shown = list[dict[str, bool]]()

    async def outage() -> None:
        sink = Alerts(tmp_path / "alerts.json", {}, AFTER, lambda is_open: shown.append(dict(is_open)))
        for each in (tracked(), tracked(BEGUN), tracked(ENDED)):
            await sink.tell(each)

    play(outage)
    assert [each["discord"] for each in shown] == [False, True, False]
    assert {each["disk"] for each in shown} == {False}


# What outlasts the process


def test_a_restart_neither_repeats_what_was_told_nor_loses_what_was_not(tmp_path: Path) -> None:
    one, away = Told(), Told(PostFailed("away"))

    async def first() -> None:
        await alerts(tmp_path, one=one.send, away=away.send).tell(tracked(BEGUN))

    async def second() -> None:
        sink = alerts(tmp_path, one=one.send, away=away.send)
        assert sink.states[HealthTopic.DISCORD].incident == BEGUN.incident
        await sink.tell(IncidentUpdate(START, sink.states))
        await sink.tell(tracked(ENDED))

    play(first)
    play(second, START + 60)
    assert one.stages == away.stages == [Stage.BEGUN, Stage.ENDED]


def test_a_crash_at_any_write_loses_no_message_and_repeats_at_most_the_last_one(tmp_path: Path) -> None:
    whole = False
    for last, partial in product(range(40), (None, 20)):
        folder, told = tmp_path / f"{last} {partial}", Told()

        async def outage(folder: Path = folder, told: Told = told) -> None:
            await alerts(folder, one=told.send).tell(tracked(BEGUN))

        async def restart(folder: Path = folder, told: Told = told) -> None:
            sink = alerts(folder, one=told.send)
            known = sink.states.get(HealthTopic.DISCORD, TopicState()).incident
            # What was never written is found again, as the trouble is still there.
            await sink.tell(IncidentUpdate(START, sink.states) if known is not None else tracked(BEGUN))
            await sink.tell(tracked(ENDED))

        whole = Machine(last, partial).run(lambda outage=outage: play(outage))
        play(restart)
        assert told.stages in ([Stage.BEGUN, Stage.ENDED], [Stage.BEGUN, Stage.BEGUN, Stage.ENDED])
        assert not whole or told.stages == [Stage.BEGUN, Stage.ENDED]
        if whole:
            break
    assert whole


def test_a_full_disk_keeps_nobody_from_being_told_and_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told, full = Told(), Notice(Stage.BEGUN, incident(HealthTopic.DISK))
    real = os.open

    def open_(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, flags, *rest, **more)

    async def hour(*notices: Notice) -> None:
        sink = alerts(tmp_path, one=told.send)
        for notice in (*notices, None, None):
            await sink.tell(tracked() if notice is None else tracked(notice))

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(os, "open", open_)
        play(lambda: hour(full))
    assert told.stages == [Stage.BEGUN]
    [line] = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    path = tmp_path / "state" / "alerts.json"
    assert line == f"alerts: a restart may tell again what was told: {path}: No space left on device; make room"
    play(hour)
    assert path.exists()


def test_who_has_lost_the_folder_to_another_process_posts_nothing(tmp_path: Path) -> None:
    told = Told()

    class Refusing:
        def commit(self, change: files.FileChange) -> None:
            assert change.path
            raise WorkCancelled(Reason.SHUTDOWN)

    async def outage() -> None:
        with files.use_journal(tmp_path, Refusing()), pytest.raises(WorkCancelled):
            await alerts(tmp_path, one=told.send).tell(tracked(BEGUN))

    play(outage)
    assert told.tried == []


def test_a_damaged_file_is_logged_and_counts_as_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state" / "alerts.json"
    path.parent.mkdir()
    path.write_bytes(b'{"states": {"discord": {"troubles": 3}}}')
    assert alerts(tmp_path).states == {}
    assert f"{path} is damaged" in caplog.text


TIMES = st.floats(0, 4e9)
INCIDENTS = st.builds(
    Incident,
    topic=st.sampled_from(HealthTopic),
    since=TIMES,
    begun=TIMES,
    subjects=st.lists(st.text(max_size=5)).map(tuple),
    detail=st.text(max_size=9),
    told_at=TIMES,
    ended=st.none() | TIMES,
)


@given(
    st.lists(st.builds(Notice, st.sampled_from(Stage), INCIDENTS), max_size=3),
    st.dictionaries(st.text(max_size=5), TIMES),
)
def test_what_is_written_can_be_read(notices: list[Notice], troubles: dict[str, float]) -> None:
    state = TopicState(troubles=troubles, incident=notices[0].incident if notices else None, well_since=1.5, repeats=2)
    kept = SavedAlerts({HealthTopic.DISK: state}, {"webhook_url": tuple(notices)})
    assert parse_alerts(render_alerts(kept), Path("alerts.json")) == kept


# The targets


async def test_a_channel_is_told_with_a_nonce_that_a_repeated_post_shares() -> None:
    sent = list[tuple[int, str, str]]()

    class Poster(DryRunPoster):
        async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
            sent.append((place_id, text, nonce))
            return 1

    send = send_to_channel(Poster(), 42)
    for notice in (BEGUN, BEGUN, ENDED, Notice(Stage.BEGUN, incident(HealthTopic.KNOWLEDGE))):
        await send(notice)
    assert [each[:2] for each in sent[:3]] == [
        (42, message_of(BEGUN)),
        (42, message_of(BEGUN)),
        (42, message_of(ENDED)),
    ]
    nonces = [nonce for _, _, nonce in sent]
    assert nonces[0] == nonces[1]
    assert len(set(nonces)) == 3
    assert all(len(each) <= 25 for each in nonces)


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("path", "is_discord"),
    [("/api/webhooks/1/secret", True), ("/api/webhooks/1/secret/slack", False), ("/hook", False)],
)
async def test_a_webhook_gets_what_discord_or_others_take_and_mentions_nobody(path: str, is_discord: bool) -> None:
    bodies = list[Any]()

    async def take(request: Any) -> Any:
        bodies.append(await request.json())
        return await status(204)(request)

    async with WebServer({path: take}) as server:
        await send_to_webhook(Webhook(f"{server.origin}{path}"))(BEGUN)
    text = f"Millrace: {message_of(BEGUN)}"
    plain = {"text": text.replace("**", "")}
    assert bodies == [{"content": text, "allowed_mentions": {"parse": []}} if is_discord else plain]


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("answer", "says", "retry_after"),
    [
        (status(500), "it answered 500", 0),
        (status(429, Retry_After="7"), "it answered 429", 0),
        (status(429, **{"Retry-After": "7"}), "it answered 429", 7),
        (status(429, **{"Retry-After": "Mon, 16 Feb 2026 00:00:00 GMT"}), "it answered 429", 0),
        (status(302, Location="http://127.0.0.1:1/"), "it answered 302", 0),
        (drop, "it cannot be reached: it closed the connection without an answer", 0),
        (hang, "it did not answer within 0.2 s", 0),
    ],
    ids=["500", "429", "429 with seconds", "429 with a date", "elsewhere", "drops", "hangs"],
)
async def test_a_webhook_that_does_not_take_it_says_why_without_its_address(
    answer: Any, says: str, retry_after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.telemetry.webhook.SECONDS", 0.2)
    async with WebServer({"/hook/secret": answer}) as server:
        webhook = Webhook(f"{server.origin}/hook/secret")
        with pytest.raises(WebhookFailed) as caught:
            await webhook.send("text")
    assert str(caught.value).startswith(says)
    assert caught.value.retry_after == retry_after
    assert "secret" not in f"{caught.value} {webhook}"
    assert caught.value.__cause__ is None
    assert server.count("/hook/secret") == 1
