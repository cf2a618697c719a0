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

from assembly.dashboard import (
    DashboardTeam,
    DismissedGaps,
    LocalOutcomeHistory,
    access_control,
    address_of,
    costs_of,
    known_sources,
    place_name,
    recorded_places,
)
from clock import from_rfc3339, now, rfc3339
from commands.check import operator_rows
from model.messages import Place, PlaceKind
from model.permissions import Operator
from reporting.cost import Price, Prices
from reporting.reading import DismissedQuestions, TimeSpan
from services.conversations import History, Post
from services.knowledge import IndexEntry, Source
from services.knowledge.source_kinds import stored_name
from services.llm import StepTokens, TokenDays
from services.storage import DataFolder
from services.team import AuditLog, PairLinks, read_audit, removals
from services.telemetry import PartOutcome, render_part_outcome
from settings import MetricsSettings, Settings, SettingsError, load
from sinks.results import OutcomeRecord
from tests.dashboard.made import AT, REPLIED, TOKEN, UNANSWERED

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


def local_history(
    root: Path, record: OutcomeRecord, spent: TokenDays | None = None, posts: Sequence[Post] = ()
) -> LocalOutcomeHistory:
    by_message = {post.message_id: post for post in posts}
    return LocalOutcomeHistory(record, DataFolder(root), spent or TokenDays(), by_message.get)


def written(folder: Path, *entries: PartOutcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        with (folder / f"{rfc3339(entry.at)[:10]}.jsonl").open("ab") as file:
            file.write(render_part_outcome(entry))


async def test_the_last_ends_come_from_files_and_memory_each_once_oldest_first(tmp_path: Path) -> None:
    older, newer = replace(UNANSWERED, at=AT - DAY), replace(REPLIED, at=AT + 0.0004)
    written(tmp_path / "state" / "outcomes", older, newer)
    record = OutcomeRecord(None, str)
    record.recent.append(newer)
    found = await local_history(tmp_path, record).last()
    assert [entry.message_ids for entry in found] == [older.message_ids, newer.message_ids]
    assert found[1].reply == REPLIED.reply  # which only memory has


async def test_without_files_there_is_what_is_in_memory(tmp_path: Path) -> None:
    record = OutcomeRecord(None, str)
    record.recent.append(REPLIED)
    kept = local_history(tmp_path, record)
    assert await kept.last() == [REPLIED]
    assert await kept.of(TimeSpan(AT - DAY, AT + DAY)) == [REPLIED]
    assert await kept.of(TimeSpan(AT + 1, AT + DAY)) == []


async def test_a_period_has_what_is_not_written_yet(tmp_path: Path) -> None:
    first, last = replace(REPLIED, at=AT + 0.0004), replace(UNANSWERED, at=AT + 2)
    written(tmp_path / "state" / "outcomes", first)
    record = OutcomeRecord(None, str)
    record.recent += [first, last]
    found = await local_history(tmp_path, record).of(TimeSpan(AT, AT + DAY))
    assert [entry.message_ids for entry in found] == [first.message_ids, last.message_ids]


async def test_a_vote_leads_to_the_question_of_the_answer(tmp_path: Path) -> None:
    row: dict[str, object] = {"at": rfc3339(AT), "voter": "v", "question": "q", "sources": [], "vote": "down"}
    lines = [json.dumps({**row, "message_id": str(message_id)}) for message_id in (71, 72)]
    (tmp_path / "feedback.jsonl").write_text("\n".join(lines))
    post = Post(AT, 71, 5, 5, 9, 0xA2, opened_thread=True, question="q", sources=())
    kept = local_history(tmp_path, OutcomeRecord(None, str), posts=[post])
    votes = await kept.votes(TimeSpan(AT - DAY, AT + DAY))
    assert [(vote.message_id, vote.asked_id, vote.downs) for vote in votes] == [(71, 0xA2, 1), (72, None, 1)]
    assert await kept.votes(TimeSpan(0, AT - DAY)) == []


async def test_dismissed_gaps_are_kept_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "dismissed.json"
    path.parent.mkdir()
    gaps = DismissedGaps(DismissedQuestions(path), AuditLog(tmp_path / "audit.jsonl"))
    assert await gaps.read() == frozenset()
    await gaps.change("dismiss", {2**63, 5}, "ana")
    await gaps.change("dismiss", {6}, "ana")
    assert await DismissedGaps(DismissedQuestions(path), AuditLog()).read() == {2**63, 5, 6}
    await gaps.change("restore", {5, 7}, "bob")
    assert await gaps.read() == {2**63, 6}
    for damaged in (b"{", b'{"questions": 3}', b'{"questions": [["a"]]}', b'{"questions": ["a"]}'):
        path.write_bytes(damaged)
        assert await gaps.read() == frozenset()
    noted = [(each.by, each.action, each.about) for each in read_audit(tmp_path / "audit.jsonl")]
    assert noted == [
        ("ana", "dismiss gap", str(2**63)),
        ("ana", "dismiss gap", "6"),
        ("bob", "restore gap", "7"),
    ]


async def test_what_cannot_be_noted_is_not_done(tmp_path: Path) -> None:
    path, log = tmp_path / "dismissed.json", tmp_path / "audit.jsonl"
    log.mkdir()
    with pytest.raises(OSError, match="audit"):
        await DismissedGaps(DismissedQuestions(path), AuditLog(log)).change("dismiss", {5}, "ana")
    assert not path.exists()


def test_channels_have_the_names_that_were_recorded() -> None:
    name = recorded_places(
        [replace(REPLIED, channel="help"), replace(REPLIED, place_id=7), replace(REPLIED, channel_id=8, place_id=8)]
    )
    assert [name(each) for each in (REPLIED.channel_id, 7, 8, 9)] == ["#help", "#help, a thread", "#8", "#9"]


async def test_costs_are_those_of_the_last_days_at_the_price_of_each_model(tmp_path: Path) -> None:
    outcomes = tmp_path / "state" / "outcomes"
    written(outcomes, replace(REPLIED, at=now() - 40 * DAY), replace(REPLIED, at=now() - DAY))
    steps = {"gate": StepTokens(2, 1_000_000, 0), "summarise": StepTokens(1, 1_000_000, 0)}
    spent = TokenDays({rfc3339(now() - days * DAY)[:10]: steps for days in (0, 1, 29, 30, 40)})
    prices = Prices(Price(2.0, 10.0), Price(0.5, 0.5))
    found = await costs_of(local_history(tmp_path, OutcomeRecord(None, str), spent), prices, 30)
    assert (found.total.calls, found.total.money) == (9, 7.5)
    earlier = await costs_of(local_history(tmp_path, OutcomeRecord(None, str), spent), prices, 30, now() - 40 * DAY)
    assert earlier.total.calls == 3
    assert [place.calls for place in found.channels.values()] == [REPLIED.llm_calls]


def test_threads_are_named_after_questions_so_their_names_are_texts() -> None:
    history = History(None)
    history.add_place(Place(5, PlaceKind.CHANNEL, "help"))
    history.add_place(Place(6, PlaceKind.THREAD, "my password is hunter2", parent_id=5))
    history.add_place(Place(7, PlaceKind.FORUM_POST, "again"))
    assert place_name(history, 5, texts=False) == "#help"
    assert place_name(history, 6, texts=False) == "#help, a thread"
    assert place_name(history, 6, texts=True) == "#help, my password is hunter2"
    assert place_name(history, 6, texts=True, is_withheld=lambda place: place.id == 6) == "#help, a thread"
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


def url_of(url: str, status: str, failure: str | None = None) -> dict[str, object]:
    times = {"last_fetched_at": "2026-02-01T00:00:00Z", "next_check_at": "2026-02-04T00:00:00Z"}
    facts = {"url": url, "etag": None, "last_modified": None, "fetch_status": status, "failure": failure, **times}
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
        broken: record_of(**url_of(broken, "error", "HTTP 404")),
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
    assert [(each.id.removeprefix("kb:"), each.state, each.has_trouble, each.size) for each in held] == [
        ("a.md", "indexed", False, 12),
        ("c.md", "to be described", False, 1),
        (page, "indexed", False, 12),
        ("b.md", "gone since 2026-02-02 10:20", True, 1),
        (broken, "not fetched: HTTP 404", True, None),
    ]
    read_at = from_rfc3339("2026-02-01T00:00:00Z")
    assert (held[0].changed_at, held[0].read_at) == (5.0, read_at)
    assert (held[2].changed_at, held[2].read_at) == (read_at, read_at)


async def test_without_a_cache_the_index_tells_what_there_is(tmp_path: Path) -> None:
    (only,) = await known_sources(Settings().resolve_paths(tmp_path).kb, Shelf(IndexEntry("kb:a.md", "About it.")))
    assert (only.state, only.size, only.changed_at, only.kind) == ("indexed", None, None, "file")


async def test_a_library_that_is_only_shown_is_not_corrected(tmp_path: Path) -> None:
    team = DashboardTeam(Settings().resolve_paths(tmp_path), None, PairLinks(tmp_path / "places.jsonl"), AuditLog())
    assert (await team.overview()).captured == 0
    assert team.address("qa_20260201_031057.000000") is None
    with pytest.raises(removals.RemovalRefused):
        await team.correct("remove", "qa_20260201_031057.000000", "ana")


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:9/"), ("0.0.0.0", "http://127.0.0.1:9/"), ("::1", "http://[::1]:9/")],  # noqa: S104
)
def test_the_address_is_one_that_a_browser_takes(host: str, address: str) -> None:
    told = address_of(MetricsSettings(host=host, port=9))
    assert told == address
    assert URL(told).port == 9


ANA = f"{{role: corrects, token: {TOKEN}}}"


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
        (
            f"dashboard:\n  operators:\n    ana: {ANA}\n    bob: {ANA}",
            "config.yaml:4: dashboard.operators.bob.token is the same as dashboard.operators.ana.token: give each",
        ),
        (
            f"dashboard: {{token: {TOKEN}, operators: {{ana: {ANA}}}}}",
            "config.yaml:1: dashboard.operators.ana.token is the same as dashboard.token: give each a token of its own",
        ),
        (
            f"dashboard: {{operators: {{ana: {{role: looks on, token: {TOKEN}}}}}}}",
            "dashboard.operators.ana.role must be one of `looks_on`, `corrects`, `administers`",
        ),
        (
            "dashboard: {operators: {ana: {role: corrects}}}",
            "dashboard.operators.ana needs token as well; set them in the file or as APP__DASHBOARD__OPERATORS__ANA__T",
        ),
        (
            f"dashboard: {{operators: {{ana: {{token: {TOKEN}}}}}}}",
            "dashboard.operators.ana needs role as well; set them in the file or as APP__DASHBOARD__OPERATORS__ANA__R",
        ),
        (
            "dashboard: {operators: {ana: {role: corrects, token: short}}}",
            "dashboard.operators.ana.token must be at least 16 plain letters, digits and signs, in quotes",
        ),
        (
            "dashboard: {operators: {ana: {role: corrects, token: ''}}}",
            "dashboard.operators.ana.token must be at least 16 plain letters, digits and signs, in quotes",
        ),
        (
            "dashboard:\n  operators:\n    ana: {role: corrects}\n    ana: {role: administers}",
            "config.yaml:4: dashboard.operators.ana stands here again, after line 3; keep one of the two",
        ),
        *(
            (
                f"dashboard:\n  operators:\n    {name}: {ANA}",
                "config.yaml:3: dashboard.operators takes as names at most 32 lower-case letters, digits and single ",
            )
            for name in ("operator", "terminal", "Ana", "a__b", "_a", "311", "a.b", "'a b'", "a" * 33, "''")
        ),
        ("dashboard: {operators: [ana]}", "dashboard.operators must be a mapping of operator names"),
        ("dashboard: {operators: {ana: {rol: x}}}", "did you mean dashboard.operators.ana.role?"),
    ],
)
def test_a_dashboard_that_nobody_or_everybody_could_open_is_refused(keys: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(keys)
    with pytest.raises(SettingsError) as refused:
        load(tmp_path / "config.yaml", {})
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "short" not in str(refused.value)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_loopback_no_token_is_needed(host: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"dashboard: {{enabled: true}}\nmetrics: {{port: 9090, host: '{host}'}}")
    assert load(tmp_path / "config.yaml", {}).dashboard.enabled


def test_operators_are_named_in_the_file_and_have_their_tokens_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "dashboard:\n  enabled: true\n  operators:\n    ana: {role: corrects}\n    bob: {role: looks_on}\n"
        "metrics: {port: 9090, host: bot.example}\n"
    )
    (tmp_path / ".env").write_text(f"APP__DASHBOARD__OPERATORS__ANA__TOKEN={TOKEN}\n")
    settings = load(tmp_path / "config.yaml", {"APP__DASHBOARD__OPERATORS__BOB__TOKEN": f"{TOKEN}-of-bob"})
    assert settings.dashboard.has_login
    assert {TOKEN, f"{TOKEN}-of-bob"} <= set(settings.secrets)  # which are kept out of logs
    access = access_control(settings)
    assert access.find_operator(TOKEN, "") == Operator("ana", "corrects")
    assert access.find_operator(f"{TOKEN}-of-bob", "") == Operator("bob", "looks_on")
    assert access.find_operator("", "") is None
    assert TOKEN not in repr(access)
    assert [each.says for each in operator_rows(settings)] == ["ana (corrects), bob (looks on)"]


def test_elsewhere_with_a_token(tmp_path: Path) -> None:
    keys = "dashboard: {enabled: true, token: a-token-of-some-length}\nmetrics: {port: 9090, host: bot.example}"
    (tmp_path / "config.yaml").write_text(keys)
    assert load(tmp_path / "config.yaml", {}).metrics.host == "bot.example"


def test_where_it_is_off_nothing_of_it_is_imported() -> None:
    code = "import sys, commands.live, commands.replay; print({'dashboard', 'jinja2'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
