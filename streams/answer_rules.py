"""The limits of answering, in the graph and outside of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from operators.pointing import PointRules


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """The limits of answering; `chain_seconds` is for all steps of one answer together."""

    chain_seconds: float = 200.0
    max_concurrent: int = 32
    max_waiting: int = 1000
    max_sources: int = 3
    max_index_entries: int = 30
    max_source_chars: int = 24_000
    max_answer_chars: int = 3000
    require_citations: bool = False
    enable_verification: bool = False
    speculate: bool = False
    thread_reuse_seconds: float = 900.0
    pointing: PointRules = field(default_factory=PointRules)
