"""What is mutated, and the tests that have to notice: fast ones, which are about that code."""

from __future__ import annotations

from dataclasses import dataclass

_TEAM_FILES = (
    *("archive", "archive_files", "captures", "decisions", "index"),
    *("library", "pair_links", "pending", "state", "topics"),
)

_TESTS_OF_TEAM_FILES = (
    *("archive", "archive_reader", "corrections_in_part", "decisions", "index", "library", "pending", "pieces"),
    *("places", "reporting_damage", "speakers", "superseding", "topics", "week_files"),
)


@dataclass(frozen=True)
class Area:
    """Attributes:
    code: the modules; patterns with `*` are allowed.
    tests: files and folders. All of them run once, and those that reach a mutant once for it; none that is marked slow.
    without: files and folders among these that are left out.
    at_import: functions that are called while modules are imported, as mutmut names them. It puts its mutants in later,
        so what survives of these is tried once more, in a process that has the mutant from its start.
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    at_import: tuple[str, ...] = ()


AREAS = {
    "operators": Area(("dataflow/*.py", "operators/*.py"), ("tests/operators",)),
    "quiet_window": Area(
        ("dataflow/quiet_window.py",),
        tuple(f"tests/operators/test_{name}.py" for name in ("deadlines", "quiet_window", "quiet_window_model")),
    ),
    "serialise": Area(
        ("dataflow/serialize_by_key.py", "dataflow/map_async.py"),
        ("tests/operators/test_serialize_by_key.py", "tests/operators/test_map_async.py"),
    ),
    "routing": Area(
        ("operators/route.py", "services/conversations/routing.py", "services/conversations/addressing.py"),
        (
            *(f"tests/operators/test_{name}.py" for name in ("cut", "extract", "route", "screen", "screen_team")),
            "tests/operators/test_whom_the_team_answers.py",
            "tests/services/conversations",
        ),
    ),
    "library": Area(
        tuple(f"services/team/{name}.py" for name in ("library", "filing", "decisions", "topics")),
        (
            "tests/services/team",
            "tests/services/privacy/test_forgetting_topics.py",
            *(f"tests/streams/test_{name}.py" for name in ("curation", "regeneration")),
            "tests/operators/test_prefetching.py",
        ),
        without=("tests/services/team/test_growth.py", "tests/services/team/test_cost_of_filing.py"),
    ),
    "fence": Area(
        ("transport/fenced_log.py", "transport/lease.py", "transport/partition.py"),
        tuple(
            f"tests/transport/test_{name}.py"
            for name in ("fence", "acknowledging", "held_roles", "partition", "shares", "retry")
        ),
    ),
    "plan": Area(
        ("services/documents/asking/*.py",),
        ("tests/services/documents/asking", "tests/services/documents/tools"),
        at_import=(
            *(f"services.documents.asking.vocabulary.x_{name}" for name in ("any_of", "_compiled")),
            *(
                f"services.documents.asking.grammar.x__{name}"
                for name in ("phrase", "phrases", "beside", "steps", "set_in", "story")
            ),
        ),
    ),
    "tracker": Area(
        ("services/conversations/tracking.py", "operators/screen.py"),
        (
            *(
                f"tests/services/conversations/test_{name}.py"
                for name in ("following", "following_model", "newest", "shared_words")
            ),
            *(
                f"tests/operators/test_{name}.py"
                for name in ("cut", "extract", "follow", "route", "screen", "screen_team")
            ),
            "tests/operators/test_whom_the_team_answers.py",
        ),
    ),
    "formats": Area(
        (
            *(f"services/team/{name}.py" for name in _TEAM_FILES),
            "services/knowledge/cache.py",
            "services/knowledge/index_file.py",
            "services/knowledge/topic_files.py",
            "services/conversations/posts.py",
            "services/discord/dispatches.py",
            "services/discord/exports.py",
            "services/discord/recordings.py",
            "services/storage/json_state.py",
            "sinks/team.py",
            "sinks/feedback.py",
        ),
        (
            *(f"tests/services/team/test_{name}.py" for name in _TESTS_OF_TEAM_FILES),
            "tests/services/knowledge/test_cache.py",
            "tests/services/knowledge/test_index_file.py",
            "tests/services/knowledge/test_topic_names.py",
            "tests/services/conversations/test_conversations.py",
            "tests/services/conversations/test_opt_outs.py",
            "tests/services/discord",
            "tests/services/storage",
            "tests/sinks/test_archive.py",
            "tests/sinks/test_captures_together.py",
            "tests/sinks/test_feedback.py",
        ),
        without=("tests/services/discord/live",),
    ),
    "redaction": Area(
        ("services/redaction/*.py",),
        (
            "tests/services/redaction",
            "tests/services/documents/test_redacting.py",
            "tests/services/documents/test_code_and_tables.py",
        ),
        at_import=(
            "services.redaction.named_secrets.x_compile_run",
            "services.redaction.redactor.x__without_samples",
            "services.redaction.redactor.x__shape",
            "services.redaction.redactor.x_label",
        ),
    ),
    "web": Area(
        tuple(f"services/knowledge/web/{name}.py" for name in ("contents", "exchange", "fetcher")),
        ("tests/services/knowledge/web",),
        without=("tests/services/knowledge/web/test_browser.py",),
    ),
}
"""The browser of `services/knowledge/web` is left out: its tests need Chromium."""
