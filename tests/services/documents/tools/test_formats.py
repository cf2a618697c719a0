"""What is shown to the model and to people, letter by letter."""

from __future__ import annotations

import pytest

from services.documents.tools.libraries import LIBRARIES, KBConfig

CASE, USER, TEAM, GLOBAL = LIBRARIES


@pytest.mark.parametrize(
    ("config", "metadata", "score", "header"),
    [
        (
            CASE,
            {"filename": "server.log", "line_start": "1045", "line_end": "1045", "timestamp": "2025-10-19T14:32:15Z"},
            0.94,
            "Score: 0.94, Source: server.log, Line: 1045, Time: 2025-10-19T14:32:15Z",
        ),
        (
            CASE,
            {"filename": "server.log", "line_start": "1041", "line_end": "1060"},
            0.9,
            "Score: 0.90, Source: server.log, Lines: 1041-1060",
        ),
        (CASE, {"source_id": "blob-3"}, None, "Source: blob-3"),
        (
            USER,
            {
                "document_title": "Database Timeout Runbook",
                "section": "3",
                "category": "Procedures",
                "tags": "a, b, c",
            },
            0.89,
            "Score: 0.89, Doc: Database Timeout Runbook, Section: 3, Category: Procedures, Tags: a, b",
        ),
        (
            TEAM,
            {"team_name": "Support", "topic": "login-errors", "date": "2026-01-30"},
            0.87,
            "Score: 0.87, Team: Support, Topic: login-errors, Date: 2026-01-30",
        ),
        (
            GLOBAL,
            {"kb_article_id": "KB-1234", "title": "API Timeout Troubleshooting", "category": "API"},
            0.91,
            "Score: 0.91, Article: KB-1234, Title: API Timeout Troubleshooting, Category: API",
        ),
    ],
)
def test_headers_of_passages(config: KBConfig, metadata: dict[str, str], score: float | None, header: str) -> None:
    assert config.format_chunk_metadata(metadata, score) == header


@pytest.mark.parametrize(
    ("config", "sources", "count", "confidence", "footer"),
    [
        (
            CASE,
            ["a.log", "b.yaml", "c.py", "d.md", "e.md"],
            5,
            0.94,
            "📎 Sources: a.log, b.yaml, c.py (+2 more) (5 chunks, 94% relevance)",
        ),
        (USER, ["A", "B"], 5, 0.89, "📚 From your runbooks: A, B (5 chunks, 89% relevance)"),
        (TEAM, ["topic-a", "topic-b"], 2, 0.871, "👥 Team notes: topic-a, topic-b (2 chunks, 87% relevance)"),
        (
            GLOBAL,
            ["KB-1", "KB-2", "KB-3", "KB-4", "KB-5", "KB-6"],
            7,
            0.91,
            "📖 Knowledge Base: KB-1, KB-2, KB-3, KB-4, KB-5 (+1 more) (7 chunks, 91% relevance)",
        ),
        (CASE, ["a.log"], 1, 1.7, "📎 Sources: a.log (1 chunks, 100% relevance)"),
        (CASE, ["a.log"], 1, -0.2, "📎 Sources: a.log (1 chunks, 0% relevance)"),
    ],
)
def test_footers_follow_a_blank_line(
    config: KBConfig, sources: list[str], count: int, confidence: float, footer: str
) -> None:
    assert config.format_response("An answer.", sources, count, confidence) == f"An answer.\n\n{footer}"


@pytest.mark.parametrize("config", [CASE, USER, TEAM, GLOBAL])
def test_without_sources_there_is_no_footer(config: KBConfig) -> None:
    assert config.format_response("An answer.", [], 0, 0.0) == "An answer."


@pytest.mark.parametrize(
    ("config", "metadata", "cited"),
    [
        (
            CASE,
            {"filename": "server.log", "line_start": "1045", "line_end": "1045", "timestamp": "2025-10-19T14:32:15Z"},
            "server.log:1045 (14:32:15Z)",
        ),
        (CASE, {"filename": "a.yaml", "line_start": "3", "line_end": "5"}, "a.yaml:3-5"),
        (USER, {"document_title": "Database Timeout Runbook", "section": "3"}, '"Database Timeout Runbook" section 3'),
        (TEAM, {"topic": "login-errors", "date": "2026-01-30"}, 'topic "login-errors" (2026-01-30)'),
        (GLOBAL, {"kb_article_id": "KB-1234", "title": "API Performance Guide"}, 'KB-1234 "API Performance Guide"'),
    ],
)
def test_citations_in_a_sentence(config: KBConfig, metadata: dict[str, str], cited: str) -> None:
    assert config.cite(metadata) == cited


@pytest.mark.parametrize(
    ("config", "name"),
    [(CASE, "Unknown"), (USER, "Unknown document"), (TEAM, "Unknown topic"), (GLOBAL, "Unknown article")],
)
def test_a_source_without_a_name_has_one_all_the_same(config: KBConfig, name: str) -> None:
    assert config.extract_source_name({}) == name


def test_an_article_without_an_id_goes_by_its_title() -> None:
    assert GLOBAL.extract_source_name({"title": "Limits"}) == "Limits"


@pytest.mark.parametrize(
    ("config", "scope", "name", "ttl"),
    [
        (CASE, "12", "case_12", 3600),
        (USER, "12", "user_12_kb", 86_400),
        (TEAM, "12", "team_12_kb", 43_200),
        (GLOBAL, None, "global_kb", 604_800),
    ],
)
def test_collections_and_lifetimes(config: KBConfig, scope: str | None, name: str, ttl: int) -> None:
    assert config.get_collection_name(scope) == name
    assert config.cache_ttl == ttl
    assert config.requires_scope_id is (scope is not None)


@pytest.mark.parametrize("config", [CASE, USER, TEAM])
@pytest.mark.parametrize("scope", [None, ""])
def test_a_missing_scope_is_refused(config: KBConfig, scope: str | None) -> None:
    with pytest.raises(ValueError, match="needed"):
        config.get_collection_name(scope)


@pytest.mark.parametrize("scope", ["../../etc", "12/13", "12\n", "१२", "x" * 30])
def test_no_id_leads_out_of_its_folder(scope: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        CASE.get_collection_name(scope)


def test_names_of_teams_are_never_shared() -> None:
    names = [TEAM.get_collection_name(team) for team in ("../core", "core", "Core", "core team", "x_core", "7")]
    assert len(set(names)) == len(names)
