"""The four libraries: files of a thread, runbooks, the team's notes, the documentation (DOCUMENT_QA 2.3, 7)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from services.documents.results import Status
from services.documents.store import naming
from services.documents.tools.config import NO_RESULT, KBConfig, Metadata, first_tags, footer, parts, score_part
from services.knowledge import belongs_to

HOUR = 3600

MINILM_THRESHOLD = 0.25
"""For all-MiniLM-L6-v2: keeps 98 of 100 right passages, refuses every question about something else.

Derived by `python -m benchmarks.documents gate`; another embedder needs a figure of its own.
"""

KEYWORD_THRESHOLD = 0.35

_CLOCK = re.compile(r"[T ](\d{2}:\d{2}:\d{2}(?:[.,]\d+)?Z?)")


class _Library(KBConfig):
    """How long the answers of a library keep, in seconds, and whether it belongs to a thread, a person or a team."""

    lifetime: int
    scoped = True

    def __init__(self, *, cache_ttl: int | None = None) -> None:
        self._cache_ttl = self.lifetime if cache_ttl is None else cache_ttl

    @property
    def requires_scope_id(self) -> bool:
        return self.scoped

    @property
    def cache_ttl(self) -> int:
        return self._cache_ttl


class CaseEvidence(_Library):
    """Files posted in a support thread. No gate: the closest content is always worth showing."""

    exact_paths = True
    spread = False
    max_answer_tokens = 500
    filterable_fields = frozenset({"filename"})
    lifetime = HOUR

    @property
    def system_prompt(self) -> str:
        return """\
You read evidence: logs, configuration and other files from one support case. Name the exact file, line and time of
everything you state. Quote error codes and messages letter by letter. Keep events in the order in which they happened,
and tell severities apart: a warning is not an error. Say which part of the question the evidence does not show."""

    def get_collection_name(self, scope_id: str | None) -> str:
        return naming.case(_needed(scope_id, "a thread"))

    def format_chunk_metadata(self, metadata: Metadata, score: float | None) -> str:
        start, end = metadata.get("line_start"), metadata.get("line_end")
        name = "Line" if start == end else "Lines"
        lines = start if start == end or start is None else f"{start}-{end}"
        return parts(
            score_part(score),
            ("Source", self.extract_source_name(metadata)),
            (name, lines),
            ("Time", metadata.get("timestamp")),
        )

    def extract_source_name(self, metadata: Metadata) -> str:
        return metadata.get("filename") or metadata.get("source_id") or "Unknown"

    def get_citation_format(self) -> str:
        return "server.log:1045 (14:32:15Z), with the line's own number and time"

    def cite(self, metadata: Metadata) -> str:
        start, end = metadata.get("line_start"), metadata.get("line_end")
        lines = "" if start is None else f":{start}" + (f"-{end}" if end and end != start else "")
        clock = _CLOCK.search(metadata.get("timestamp") or "")
        return f"{self.extract_source_name(metadata)}{lines}" + (f" ({clock[1]})" if clock else "")

    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str:
        return answer + footer("📎 Sources:", sources, chunk_count, confidence, 3)

    def no_result_message(self, reason: Status) -> str:
        if reason is Status.NOT_INDEXED:
            return "No file has been posted in this thread yet; ask the user to post it here."
        return NO_RESULT[reason]


class UserKB(_Library):
    """One person's own runbooks."""

    relevance_threshold = MINILM_THRESHOLD
    keyword_threshold = KEYWORD_THRESHOLD
    lifetime = 24 * HOUR

    @property
    def system_prompt(self) -> str:
        return """\
You read a person's own runbooks. Give the procedure as numbered steps, in the document's order and in the words that
its author uses; leave no step out, keep every branch ("if it still fails, …") where it stands. Name the document."""

    def get_collection_name(self, scope_id: str | None) -> str:
        return naming.user(_needed(scope_id, "a user"))

    def format_chunk_metadata(self, metadata: Metadata, score: float | None) -> str:
        return parts(
            score_part(score),
            ("Doc", self.extract_source_name(metadata)),
            ("Section", metadata.get("section")),
            ("Category", metadata.get("category")),
            ("Tags", first_tags(metadata.get("tags"))),
        )

    def extract_source_name(self, metadata: Metadata) -> str:
        return metadata.get("document_title") or "Unknown document"

    def get_citation_format(self) -> str:
        return '"Database Timeout Runbook" section 3, with the title and section of the document'

    def cite(self, metadata: Metadata) -> str:
        section = metadata.get("section")
        return f'"{self.extract_source_name(metadata)}"' + (f" section {section}" if section else "")

    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str:
        return answer + footer("📚 From your runbooks:", sources, chunk_count, confidence, 5)

    def no_result_message(self, reason: Status) -> str:
        return "There are no runbooks yet." if reason is Status.NOT_INDEXED else NO_RESULT[reason]


class TeamKB(_Library):
    """What the team answered before."""

    relevance_threshold = MINILM_THRESHOLD
    keyword_threshold = KEYWORD_THRESHOLD
    lifetime = 12 * HOUR

    def __init__(self, *, cache_ttl: int | None = None, internal: Collection[str] = ()) -> None:
        """`internal`: topics for the team only, whether or not they have been indexed as such yet."""
        super().__init__(cache_ttl=cache_ttl)
        self._internal = internal

    def is_internal(self, metadata: Metadata) -> bool:
        return super().is_internal(metadata) or belongs_to(metadata.get("topic", ""), self._internal)

    @property
    def system_prompt(self) -> str:
        return """\
You read how this team answered before. Only what stands behind "Team:" is the team's word; what users wrote is their
question. Keep the team's terms and practices, and say when and under which topic they answered."""

    def get_collection_name(self, scope_id: str | None) -> str:
        return naming.team(_needed(scope_id, "a team"))

    def format_chunk_metadata(self, metadata: Metadata, score: float | None) -> str:
        return parts(
            score_part(score),
            ("Team", metadata.get("team_name")),
            ("Topic", metadata.get("topic")),
            ("Date", metadata.get("date")),
        )

    def extract_source_name(self, metadata: Metadata) -> str:
        return metadata.get("topic") or "Unknown topic"

    def get_citation_format(self) -> str:
        return 'topic "login-errors" (2026-01-30), with the topic and the date'

    def cite(self, metadata: Metadata) -> str:
        date = metadata.get("date")
        return f'topic "{self.extract_source_name(metadata)}"' + (f" ({date})" if date else "")

    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str:
        return answer + footer("👥 Team notes:", sources, chunk_count, confidence, 5)

    def no_result_message(self, reason: Status) -> str:
        return "The team has no notes yet." if reason is Status.NOT_INDEXED else NO_RESULT[reason]


class GlobalKB(_Library):
    """The documentation: configured folders and web pages."""

    relevance_threshold = MINILM_THRESHOLD
    keyword_threshold = KEYWORD_THRESHOLD
    lifetime = 168 * HOUR
    scoped = False

    @property
    def system_prompt(self) -> str:
        return """\
You read product documentation and teach from it. Where it names several ways, give each with its trade-offs; name the
official source of each statement; mention the pitfalls and the reasons that it gives."""

    def get_collection_name(self, scope_id: str | None) -> str:  # noqa: ARG002 (one for all)
        return naming.GLOBAL

    def format_chunk_metadata(self, metadata: Metadata, score: float | None) -> str:
        return parts(
            score_part(score),
            ("Article", metadata.get("kb_article_id")),
            ("Title", metadata.get("title")),
            ("Category", metadata.get("category")),
        )

    def extract_source_name(self, metadata: Metadata) -> str:
        return metadata.get("kb_article_id") or metadata.get("title") or "Unknown article"

    def get_citation_format(self) -> str:
        return 'KB-1234 "API Performance Guide", with the id and title of the article'

    def cite(self, metadata: Metadata) -> str:
        title = metadata.get("title")
        name = self.extract_source_name(metadata)
        return f'{name} "{title}"' if title and title != name else name

    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str:
        return answer + footer("📖 Knowledge Base:", sources, chunk_count, confidence, 5)

    def no_result_message(self, reason: Status) -> str:
        return "No documentation has been indexed yet." if reason is Status.NOT_INDEXED else NO_RESULT[reason]


def _needed(scope_id: str | None, what: str) -> str:
    if not scope_id:
        raise ValueError(f"{what} is needed")
    return scope_id
