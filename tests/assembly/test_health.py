"""What the program knows of its own health."""

from __future__ import annotations

import asyncio
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reactivex.subject import Subject

from assembly import health
from assembly.health import HealthMonitor, UpdateWatch, budget_condition, disk_condition
from clock import now
from model.health import TOPICS, Condition, HealthTopic, Trouble, merge_conditions
from model.servers import Servers
from services.discord import GatewayHealth
from services.knowledge import Trouble as Failure
from services.knowledge import UpdateReport
from services.knowledge.source_kinds import SourceRecords
from services.llm import Budget, BudgetLimits, Limiter, LLMError, PromptRefused
from services.llm.endpoint import Rejected, TimedOut, Unavailable
from settings import Settings
from settings.knowledge import KnowledgeSettings
from tests.disk_room import disk_with
from tests.shelves import Shelf

MODEL, OTHER = "LLM one at 10.0.0.1", "LLM two at 10.0.0.2"
AT = 1_771_200_000.0


@pytest.fixture
def monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HealthMonitor:
    monkeypatch.setattr(shutil, "disk_usage", disk_with(total=1e12, free=5e11))
    return HealthMonitor(Settings().resolve_paths(tmp_path))


async def of(monitor: HealthMonitor, topic: HealthTopic) -> Condition:
    [found] = [each for each in await monitor.sample() if each.topic is topic]
    return found


def test_every_topic_has_its_words() -> None:
    assert list(TOPICS) == list(HealthTopic)
    assert Condition(topic=HealthTopic.DISK).words.title == "Disk"


# The disk


@pytest.mark.parametrize(
    ("total", "free", "is_well"),
    [
        (4e9, 499e6, False),
        (4e9, 501e6, True),
        (40e9, 1.9e9, False),
        (40e9, 2.1e9, True),
        (4e12, 4.9e9, False),
        (4e12, 5.1e9, True),
    ],
)
def test_a_disk_is_nearly_full_below_500_mb_or_5_percent_of_at_most_100_gb(
    total: float, free: float, is_well: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[object]()
    monkeypatch.setattr(shutil, "disk_usage", disk_with(total=total, free=free, asked=asked))
    assert disk_condition(tmp_path / "not" / "made" / "yet", 500, AT).is_well is is_well
    assert asked == [tmp_path]


def test_a_disk_that_cannot_be_asked_is_in_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> Any:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(shutil, "disk_usage", broken)
    found = disk_condition(tmp_path, 500, AT, "host")
    assert found.troubles == {"host": Trouble(AT, AT)}
    assert found.detail == f"{tmp_path}: Input/output error; look after the disk and its mount"


# Discord


async def test_discord_is_lost_since_the_connection_went_or_fell_silent(monitor: HealthMonitor) -> None:
    assert HealthTopic.DISCORD not in {each.topic for each in await monitor.sample()}
    began = now()
    monitor.gateway = gateway = GatewayHealth(began)
    assert (await of(monitor, HealthTopic.DISCORD)).since == began
    gateway.note_connected(now())
    assert (await of(monitor, HealthTopic.DISCORD)).is_well
    await asyncio.sleep(170)
    gateway.note_frame(heard := now())
    await asyncio.sleep(170)
    assert (await of(monitor, HealthTopic.DISCORD)).is_well
    await asyncio.sleep(20)
    assert (await of(monitor, HealthTopic.DISCORD)).since == heard
    gateway.note_disconnected(now())
    assert (await of(monitor, HealthTopic.DISCORD)).since == now()


# Models


async def test_a_model_is_in_trouble_after_two_failed_calls_in_a_row_since_the_first(monitor: HealthMonitor) -> None:
    changes = list[None]()
    monitor.changed.subscribe(changes.append)
    monitor.on_call(OTHER, None)
    monitor.on_call(MODEL, Unavailable("away"))
    first = now()
    assert (await of(monitor, HealthTopic.MODEL)).is_well
    assert changes == []
    await asyncio.sleep(60)
    monitor.on_call(MODEL, TimedOut("late"))
    found = await of(monitor, HealthTopic.MODEL)
    assert found.troubles == {MODEL: Trouble(first, first + 60)}
    assert found.well == {OTHER: first}
    assert found.detail == "2 calls in a row: TimedOut"
    await asyncio.sleep(60)
    monitor.on_call(MODEL, None)
    assert (await of(monitor, HealthTopic.MODEL)).is_well
    assert len(changes) == 2


@pytest.mark.parametrize(
    ("error", "is_well"),
    [(Rejected("no credit"), False), (PromptRefused("this prompt"), True)],
    ids=["credit", "prompt"],
)
async def test_a_refusal_of_all_calls_counts_and_that_of_a_prompt_does_not(
    monitor: HealthMonitor, error: LLMError, is_well: bool
) -> None:
    for _ in range(5):
        monitor.on_call(MODEL, error)
    assert (await of(monitor, HealthTopic.MODEL)).is_well is is_well


# Knowledge


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def watch_of(shelf: Shelf, **chosen: Any) -> UpdateWatch:
    kb = KnowledgeSettings.model_validate(
        {
            "sources_dir": str(shelf.sources),
            "links_file_path": str(shelf.links),
            "web_fetch_cache_dir": str(shelf.pages),
            **chosen,
        }
    )
    return UpdateWatch(kb, shelf.parts.source_records, Subject[None](), now())


async def updated(shelf: Shelf, watch: UpdateWatch) -> None:
    report = await shelf.update()
    watch.source_records = shelf.parts.source_records
    for event in (*shelf.events, report):
        watch.on_event(event)


async def test_knowledge_is_late_after_three_updates_that_did_not_succeed_and_an_hour(shelf: Shelf) -> None:
    shelf.write("a.md", "A file\n")
    watch, changed = watch_of(shelf, runtime_refresh_tick_seconds=2000), list[None]()
    watch.changed.subscribe(changed.append)
    await updated(shelf, watch)
    began = now()
    await asyncio.sleep(3601)
    assert watch.timeliness(now()).is_well
    failed = UpdateReport()
    failed.add(Failure(str(shelf.sources), "discover", "cannot be read", fatal=True))
    watch.on_event(failed)
    await asyncio.sleep(2400)
    found = watch.timeliness(now())
    assert found.since == began
    assert found.detail.endswith("; .: discover")
    shelf.write("b.md", "Another\n")
    await updated(shelf, watch)
    assert watch.timeliness(now()).is_well
    assert len(changed) == 3


async def test_a_long_update_that_makes_progress_is_not_late(shelf: Shelf) -> None:
    watch = watch_of(shelf)
    shelf.write("a.md", "A file\n")
    await shelf.update()
    [event] = [each for each in shelf.events if type(each).__name__ == "UpToDate"]
    for _ in range(5):
        await asyncio.sleep(3000)
        watch.on_event(event)
        assert watch.timeliness(now()).is_well
    await asyncio.sleep(3601)
    assert not watch.timeliness(now()).is_well


async def test_a_source_fails_from_its_first_failure_until_it_is_read(shelf: Shelf) -> None:
    """Also between two attempts, when no update speaks of it."""
    url = "https://one.example/a?key=s3cret"
    shelf.link(url)
    shelf.write("a.md", "A file\n")
    watch = watch_of(shelf)
    await updated(shelf, watch)
    first = now()
    found = await watch.source_failures(first)
    assert found.troubles == {"https://one.example/a": Trouble(first, first)}
    assert found.detail == "1 failure among 2 sources"
    await asyncio.sleep(100)
    await updated(shelf, watch)
    assert shelf.web.asked == []  # not due again
    assert (await watch.source_failures(now())).troubles == {"https://one.example/a": Trouble(first, first + 100)}
    shelf.web.serve(url, "Page one\n")
    await asyncio.sleep(300)
    await updated(shelf, watch)
    assert (await watch.source_failures(now())).is_well


async def test_what_cannot_be_described_or_listed_is_a_failing_source_by_its_short_name(shelf: Shelf) -> None:
    shelf.write("guides/a.md", "A file\n")
    shelf.describer.failing["guides/a.md"] = Unavailable("away")
    watch = replace(watch_of(shelf), prefix="@7/")
    await updated(shelf, watch)
    assert list((await watch.source_failures(now())).troubles) == ["@7/guides/a.md"]
    failed = UpdateReport()
    for about in (str(shelf.sources / "secret"), "/srv/elsewhere/links.txt"):
        failed.add(Failure(about, "discover", "cannot be read"))
    watch.on_event(failed)
    assert {"@7/secret", "@7/links.txt"} <= set((await watch.source_failures(now())).troubles)


async def test_lines_that_failed_are_failing_sources(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.links.write_text("sitemap: https://docs.example/sitemap.xml\n")
    watch, line = watch_of(shelf), SimpleNamespace(failed=True)

    def kinds(_: object) -> list[SimpleNamespace]:
        def line_result(_: object) -> SimpleNamespace:
            return line

        return [SimpleNamespace(line_result=line_result)]

    monkeypatch.setattr(health, "source_kinds", kinds)
    watch.on_event(UpdateReport())
    assert list((await watch.source_failures(now())).troubles) == ["https://docs.example/sitemap.xml"]
    line.failed = False
    watch.on_event(UpdateReport())
    assert (await watch.source_failures(now())).is_well


async def test_no_more_sources_are_named_than_a_message_between_processes_holds(shelf: Shelf) -> None:
    """Those that have failed for longest are among them."""
    watch, failed = watch_of(shelf), UpdateReport()
    failed.add(Failure("https://two.example/old", "fetch", "404"))
    watch.on_event(failed)
    assert len((await watch.source_failures(first := now())).troubles) == 1
    await asyncio.sleep(60)
    for number in range(5000):
        failed.add(Failure(f"https://one.example/{number}", "fetch", "404"))
    watch.on_event(failed)
    found = await watch.source_failures(now())
    assert len(found.troubles) == health.MAX_SUBJECTS
    assert found.troubles["https://two.example/old"].since == first
    assert found.detail.startswith("5001 failures among")


async def test_an_update_that_ends_while_its_forerunner_is_looked_through_is_looked_through_next(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, later = watch_of(shelf), UpdateReport()
    later.add(Failure("https://one.example/a", "fetch", "404"))
    watch.on_event(UpdateReport())
    real = health.in_thread

    async def slow(*given: Any) -> Any:
        watch.on_event(later)
        monkeypatch.setattr(health, "in_thread", real)
        return await real(*given)

    monkeypatch.setattr(health, "in_thread", slow)
    assert (await watch.source_failures(now())).is_well
    assert list((await watch.source_failures(now())).troubles) == ["https://one.example/a"]


async def test_only_who_keeps_the_knowledge_reports_it(monitor: HealthMonitor) -> None:
    kb = KnowledgeSettings()
    async with monitor.watching_updates(7, kb, SourceRecords(Path("none"), ())):
        topics = {each.topic for each in await monitor.sample()}
        assert {HealthTopic.KNOWLEDGE, HealthTopic.SOURCES} <= topics
    assert not {HealthTopic.KNOWLEDGE, HealthTopic.SOURCES} & {each.topic for each in await monitor.sample()}


# Budgets


async def test_a_budget_that_is_used_up_is_named_by_its_key() -> None:
    shared = Budget(BudgetLimits(tokens_per_day=10))
    own = Budget(BudgetLimits(answers_per_day=1), key="guilds.7.limits")
    budgets: Servers[Limiter] = Servers({None: shared, 7: own})
    assert [each.is_well for each in await budget_condition(budgets, AT)] == [True]
    shared.used(10, AT)
    own.answered(AT)
    [found] = await budget_condition(budgets, AT)
    assert set(found.troubles) == {"limits.tokens_per_day", "guilds.7.limits.answers_per_day"}
    assert [each.is_well for each in await budget_condition(budgets, AT + 86_400)] == [True]


async def test_a_budget_that_nobody_can_tell_is_left_out() -> None:
    class Silent(Budget):
        async def used_up(self, now: float) -> str | None:
            await asyncio.Event().wait()

    assert await budget_condition(Servers({None: Silent(BudgetLimits())}), AT) == []


# The log


async def test_the_last_error_is_shown_for_an_hour_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.model_validate({"alerts": {"webhook_url": "https://hooks.example/s3cret"}})
    monitor, log = HealthMonitor(settings.resolve_paths(tmp_path)), logging.getLogger("tests.health")
    await asyncio.sleep(100)
    async with monitor.watching_errors():
        assert (await of(monitor, HealthTopic.ERRORS)).is_well
        log.warning("nothing")
        assert (await of(monitor, HealthTopic.ERRORS)).is_well
        with monkeypatch.context() as patch:
            patch.setattr("time.time", now)
            log.error("cannot post to\n%s", "https://hooks.example/s3cret")
        found = await of(monitor, HealthTopic.ERRORS)
        assert found.since == pytest.approx(now())
        assert found.detail.startswith("tests.health: cannot post to\\n")
        assert "s3cret" not in found.detail
        await asyncio.sleep(3601)
        assert (await of(monitor, HealthTopic.ERRORS)).is_well
    log.error("later")
    assert "later" not in (await of(monitor, HealthTopic.ERRORS)).detail


async def test_sampling_goes_on_after_a_bug(
    monitor: HealthMonitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: object = None) -> list[Condition]:
        raise ZeroDivisionError

    sampling = asyncio.create_task(monitor.keep_sampling())
    await asyncio.sleep(1)
    assert {each.topic for each in monitor.latest} == {HealthTopic.DISK, HealthTopic.ERRORS}
    with monkeypatch.context() as patch:
        patch.setattr(monitor, "sample", broken)
        await asyncio.sleep(health.SAMPLE_SECONDS)
    monitor.gateway = GatewayHealth(now())
    await asyncio.sleep(health.SAMPLE_SECONDS)
    assert HealthTopic.DISCORD in {each.topic for each in monitor.latest}
    assert "the health of this process is not known" in caplog.text
    sampling.cancel()
    await asyncio.gather(sampling, return_exceptions=True)


# Several processes


def of_model(since: float = 0, seen: float = 0, well: float | None = None) -> Condition:
    return Condition(
        topic=HealthTopic.MODEL,
        troubles={MODEL: Trouble(since, seen)} if since else {},
        well={} if well is None else {MODEL: well},
        detail="it fails" if since else "",
    )


@pytest.mark.parametrize(
    ("reports", "troubles"),
    [
        ([of_model(10, 20), of_model(well=15)], {MODEL: Trouble(10, 20)}),
        ([of_model(10, 20), of_model(well=25)], {}),
        ([of_model(10, 20), of_model(5, 12)], {MODEL: Trouble(5, 20)}),
        ([of_model(well=25)], {}),
    ],
    ids=["failed last", "answered last", "both fail", "well"],
)
def test_of_a_model_that_several_processes_ask_the_last_call_counts(
    reports: list[Condition], troubles: dict[str, Trouble]
) -> None:
    for order in (reports, reports[::-1]):
        [merged] = merge_conditions([each] for each in order)
        assert merged.troubles == troubles
        assert (merged.detail == "it fails") is bool(troubles)


def test_one_machine_of_two_processes_is_named_once_and_two_machines_both() -> None:
    def disk(host: str) -> list[Condition]:
        return [Condition(topic=HealthTopic.DISK, troubles={host: Trouble(AT, AT)}, detail=f"4 MB on {host}")]

    [merged] = merge_conditions([disk("one"), disk("one"), disk("two")])
    assert list(merged.troubles) == ["one", "two"]
    assert merged.detail == "4 MB on one; 4 MB on two"
    assert merge_conditions([]) == []
