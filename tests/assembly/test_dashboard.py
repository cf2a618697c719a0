"""What the dashboard is given of a run, and who may reach it by the configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from yarl import URL

from assembly.dashboard import DashboardTeam, LocalOutcomeHistory, address_of, costs_of, known_sources, place_name
from clock import now, rfc3339
from model.messages import Place, PlaceKind
from reporting.cost import Price, Prices
from reporting.reading import TimeSpan
from services.conversations import History
from services.knowledge import IndexEntry, Source
from services.knowledge.source_kinds import stored_name
from services.llm import StepTokens, TokenDays
from services.team import PairLinks, corrections
from services.telemetry import PartOutcome, render_part_outcome
from settings import MetricsSettings, Settings, SettingsError, load
from sinks.results import OutcomeRecord
from tests.dashboard.made import AT, REPLIED, UNANSWERED

ROOT = Path(__file__).parents[2]
DAY = 86_400.0


class Shelf:
    """A library with these entries."""

    def __init__(self, *entries: IndexEntry) -> None:
        self.entries = entries

    async def index(self) -> Sequence[IndexEntry]:
        return self.entries

    async def load(self, source_id: str) -> Source:
        return Source(source_id, "text")


def written(folder: Path, *entries: PartOutcome) -> None:
    folder.mkdir(exist_ok=True)
    for entry in entries:
        with (folder / f"{rfc3339(entry.at)[:10]}.jsonl").open("ab") as file:
            file.write(render_part_outcome(entry))


async def test_the_last_ends_come_from_files_and_memory_each_once_oldest_first(tmp_path: Path) -> None:
    older, newer = replace(UNANSWERED, at=AT - DAY), replace(REPLIED, at=AT + 0.0004)
    written(tmp_path / "outcomes", older, newer)
    record = OutcomeRecord(None, str)
    record.recent.append(newer)
    found = await LocalOutcomeHistory(record, tmp_path / "outcomes", TokenDays()).last()
    assert [entry.message_ids for entry in found] == [older.message_ids, newer.message_ids]
    assert found[1].reply == REPLIED.reply  # which only memory has


async def test_without_files_there_is_what_is_in_memory(tmp_path: Path) -> None:
    record = OutcomeRecord(None, str)
    record.recent.append(REPLIED)
    kept = LocalOutcomeHistory(record, tmp_path / "outcomes", TokenDays())
    assert await kept.last() == [REPLIED]
    assert await kept.of(TimeSpan(AT - DAY, AT + DAY)) == [REPLIED]
    assert await kept.of(TimeSpan(AT + 1, AT + DAY)) == []


async def test_costs_are_those_of_the_last_days_at_the_price_of_each_model(tmp_path: Path) -> None:
    written(tmp_path / "outcomes", replace(REPLIED, at=now() - 40 * DAY), replace(REPLIED, at=now() - DAY))
    steps = {"gate": StepTokens(2, 1_000_000, 0), "summarise": StepTokens(1, 1_000_000, 0)}
    spent = TokenDays({rfc3339(now() - days * DAY)[:10]: steps for days in (0, 1, 29, 30, 40)})
    prices = Prices(Price(2.0, 10.0), Price(0.5, 0.5))
    found = await costs_of(LocalOutcomeHistory(OutcomeRecord(None, str), tmp_path / "outcomes", spent), prices, 30)
    assert (found.total.calls, found.total.money) == (9, 7.5)
    assert [place.calls for place in found.channels.values()] == [REPLIED.llm_calls]


def test_threads_are_named_after_questions_so_their_names_are_texts() -> None:
    history = History(None)
    history.add_place(Place(5, PlaceKind.CHANNEL, "help"))
    history.add_place(Place(6, PlaceKind.THREAD, "my password is hunter2", parent_id=5))
    history.add_place(Place(7, PlaceKind.FORUM_POST, "again"))
    assert place_name(history, 5, texts=False) == "#help"
    assert place_name(history, 6, texts=False) == "#help, a thread"
    assert place_name(history, 6, texts=True) == "#help, my password is hunter2"
    assert place_name(history, 7, texts=False) == "a forum post"
    assert place_name(history, 8, texts=False) == "#8"


def record_of(**changes: object) -> dict[str, object]:
    plain = {
        "content_hash": "a" * 64,
        "summary_text": "About it.",
        "summary_key": "k",
        "last_indexed_at": "2026-02-01T00:00:00Z",
        "summary_pending": False,
    }
    return plain | changes


def url_of(url: str, status: str) -> dict[str, object]:
    times = {"last_fetched_at": "2026-02-01T00:00:00Z", "next_check_at": "2026-02-04T00:00:00Z"}
    facts = {"url": url, "etag": None, "last_modified": None, "fetch_status": status, **times}
    return {"source_type": "url", "url": facts}


async def test_sources_are_told_with_what_is_the_matter_with_them(tmp_path: Path) -> None:
    page, broken = "https://example.org/a", "https://example.org/b"
    sources = {
        "a.md": record_of(source_type="file", file={"rel_path": "a.md", "size_bytes": 12, "mtime_ns": 5_000_000_000}),
        "b.md": record_of(
            source_type="file",
            gone_at="2026-02-02T10:20:30Z",
            file={"rel_path": "b.md", "size_bytes": 1, "mtime_ns": 1},
        ),
        "c.md": record_of(
            source_type="file", summary_pending=True, file={"rel_path": "c.md", "size_bytes": 1, "mtime_ns": 1}
        ),
        page: record_of(**url_of(page, "success")),
        broken: record_of(**url_of(broken, "timeout")),
    }
    settings = Settings().resolve_paths(tmp_path)
    settings.kb.index_cache_path.parent.mkdir(parents=True)
    settings.kb.index_cache_path.write_text(
        json.dumps({"schema_version": 1, "generated_at": "2026-02-01T00:00:00Z", "sources": sources})
    )
    settings.kb.web_fetch_cache_dir.mkdir(parents=True)
    (settings.kb.web_fetch_cache_dir / stored_name(page)).write_text("twelve bytes")
    entries = [IndexEntry(f"kb:{name}", "About it.") for name in ("a.md", "c.md", page)]
    held = await known_sources(settings.kb, Shelf(*entries, IndexEntry("team:t.txt", "A topic")))
    assert [(each.id.removeprefix("kb:"), each.state, each.trouble, each.size) for each in held] == [
        ("a.md", "indexed", False, 12),
        ("c.md", "to be described", False, 1),
        (page, "indexed", False, 12),
        ("b.md", "gone since 2026-02-02 10:20", True, 1),
        (broken, "not fetched (timeout)", True, None),
    ]
    assert held[0].changed_at == 5.0


async def test_without_a_cache_the_index_tells_what_there_is(tmp_path: Path) -> None:
    (only,) = await known_sources(Settings().resolve_paths(tmp_path).kb, Shelf(IndexEntry("kb:a.md", "About it.")))
    assert (only.state, only.size, only.changed_at, only.kind) == ("indexed", None, None, "file")


async def test_a_library_that_is_only_shown_is_not_corrected(tmp_path: Path) -> None:
    team = DashboardTeam(Settings().resolve_paths(tmp_path), None, PairLinks(tmp_path / "places.jsonl"))
    assert (await team.overview()).captured == 0
    assert team.address("qa_20260201_031057.000000") is None
    with pytest.raises(corrections.CorrectionRefused):
        await team.correct("remove", "qa_20260201_031057.000000")


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:9/"), ("0.0.0.0", "http://127.0.0.1:9/"), ("::1", "http://[::1]:9/")],  # noqa: S104
)
def test_the_address_is_one_that_a_browser_takes(host: str, address: str) -> None:
    told = address_of(MetricsSettings(host=host, port=9))
    assert told == address
    assert URL(told).port == 9


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            "dashboard: {enabled: true}",
            "config.yaml:1: dashboard.enabled is true, but metrics.port is 0: set metrics.port",
        ),
        (
            "dashboard: {enabled: true}\nmetrics: {port: 9090, host: 0.0.0.0}",
            "config.yaml:2: metrics.host is 0.0.0.0, where others reach the dashboard: set dashboard.token",
        ),
        ("dashboard: {token: short}", "dashboard.token must be at least 16"),
        ("dashboard: {token: 'sixteen letters with blanks'}", "dashboard.token must be at least 16"),
    ],
)
def test_a_dashboard_that_nobody_or_everybody_could_open_is_refused(keys: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(keys)
    with pytest.raises(SettingsError) as refused:
        load(tmp_path / "config.yaml", {})
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "short" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_loopback_no_token_is_needed(host: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"dashboard: {{enabled: true}}\nmetrics: {{port: 9090, host: '{host}'}}")
    assert load(tmp_path / "config.yaml", {}).dashboard.enabled


def test_elsewhere_with_a_token(tmp_path: Path) -> None:
    keys = "dashboard: {enabled: true, token: a-token-of-some-length}\nmetrics: {port: 9090, host: bot.example}"
    (tmp_path / "config.yaml").write_text(keys)
    assert load(tmp_path / "config.yaml", {}).metrics.host == "bot.example"


def test_where_it_is_off_nothing_of_it_is_imported() -> None:
    code = "import sys, commands.live, commands.replay; print({'dashboard', 'jinja2'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
