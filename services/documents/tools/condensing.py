"""From passages to an answer that cites them: condensed, checked, and with its notes (DOCUMENT_QA 6)."""

from __future__ import annotations

import logging
from dataclasses import replace

from services.documents.asking import checking
from services.documents.asking.passages import CitedPassage, Retrieved
from services.documents.asking.rewriting import Resolved
from services.documents.asking.synthesis import ExtractiveSynthesiser, Material, Synthesiser
from services.documents.results import QAResult, Status
from services.documents.tools.config import KBConfig
from services.llm import LLMError

VERBATIM_PASSAGES = 3

log = logging.getLogger(__name__)


async def condensed(
    name: str, config: KBConfig, synthesiser: Synthesiser, found: Retrieved, resolved: Resolved
) -> QAResult:
    """What `name` answers from passages. Where no model could condense them, the best ones as they are."""
    material = _material(config, found, resolved)
    status, extra = Status.OK, ""
    try:
        answer = await synthesiser.answer(material)
    except LLMError as error:
        log.warning("%s: the passages could not be condensed: %s", name, type(error).__name__)
        answer = ""
    if not answer.strip():
        status, extra = Status.SYNTHESIS_ERROR, config.no_result_message(Status.SYNTHESIS_ERROR)
        answer = await _verbatim(material)
    allowed = [resolved.query, resolved.question, *material.headers, *material.citations, found.facts]
    checked = checking.check(answer, found.passages, allowed)
    if checked.unverified:
        log.info("%s: citations or quotes that are in no passage: %d", name, checked.unverified)
    noted = [f"Note: {note}." for note in found.notes if note]
    text = "\n".join(part for part in (extra, checked.answer.strip(), *noted) if part)
    sources = dict.fromkeys(config.extract_source_name(_metadata(passage)) for passage in found.passages)
    relevances = [passage.relevance for passage in found.passages if passage.relevance is not None]
    confidence = sum(relevances) / len(relevances) if relevances else 0.0
    return QAResult(
        answer=text,
        status=status,
        sources=tuple(sources),
        chunk_count=len(found.passages),
        confidence=min(max(confidence, 0.0), 1.0),
        citations=checked.cited or tuple(passage.citation for passage in found.passages),
        plan={} if found.count is None else {"count": found.count},
        unverified=checked.unverified,
    )


def _material(config: KBConfig, found: Retrieved, resolved: Resolved) -> Material:
    described = [_metadata(passage) for passage in found.passages]
    headers = [
        f"[Chunk {number} - {config.format_chunk_metadata(metadata, passage.score)}]"
        for number, (metadata, passage) in enumerate(zip(described, found.passages, strict=True), start=1)
    ]
    return Material(
        question=resolved.question,
        query=resolved.query,
        passages=found.passages,
        headers=tuple(headers),
        citations=tuple(config.cite(metadata) for metadata in described),
        system_prompt=config.system_prompt,
        citation_format=config.get_citation_format(),
        facts=found.facts,
        count=found.count,
        notes=found.notes,
        max_tokens=config.max_answer_tokens,
    )


def _metadata(passage: CitedPassage) -> dict[str, str]:
    """What a `KBConfig` formats."""
    citation = passage.citation
    facts = {
        **passage.metadata,
        "filename": passage.source,
        "line_start": str(citation.line_start),
        "line_end": str(citation.line_end),
        "line_number": str(citation.line_start),
        "timestamp": passage.timestamp or "",
    }
    facts.setdefault("section", passage.metadata.get("heading", ""))
    facts.setdefault("document_title", passage.metadata.get("title", ""))
    return {name: value for name, value in facts.items() if value}


async def _verbatim(material: Material) -> str:
    """The best passages as they are, where no model could condense them."""
    best = replace(
        material,
        passages=material.passages[:VERBATIM_PASSAGES],
        headers=material.headers[:VERBATIM_PASSAGES],
        citations=material.citations[:VERBATIM_PASSAGES],
    )
    return await ExtractiveSynthesiser().answer(best)
