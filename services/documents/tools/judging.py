"""From what was found to a result: condensed, checked and with its notes, or refused."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from services.conversations import Phrases
from services.documents.asking.checking import check
from services.documents.asking.passages import MOST_NAMED, CitedPassage, Retrieved
from services.documents.asking.rewriting import Resolved
from services.documents.asking.synthesis import ExtractiveSynthesiser, Material, Synthesiser
from services.documents.limits import shown
from services.documents.results import QAResult, Status
from services.documents.store.protocol import Document, State
from services.documents.tools.libraries import KBConfig
from services.llm import LLMError
from services.telemetry import number_of

VERBATIM_PASSAGES = 3

log = logging.getLogger(__name__)


def nothing(config: KBConfig, status: Status) -> QAResult:
    return QAResult(config.no_result_message(status), status)


def unready(config: KBConfig, documents: Sequence[Document], said: Phrases) -> QAResult | None:
    """Why there is nothing to search: no file was posted, all are pending or unreadable; None: there is something."""
    if not documents:
        return nothing(config, Status.NOT_INDEXED)
    if any(doc.state.searchable for doc in documents):
        return None
    if is_pending(documents):
        return _indexing(documents, said)
    return QAResult("\n".join(f"{unreadable(doc)}." for doc in documents), Status.NOT_INDEXED)


def unreadable(doc: Document) -> str:
    """Which file could not be read and why, in one clause without a full stop; or that it was removed."""
    name, reason = shown(doc.filename), doc.error.strip().removesuffix(".")
    for called in (name, doc.filename):
        if reason.startswith(f"{called} "):
            rest = reason.removeprefix(called).strip()
            # A file that was removed keeps its name, and no uploader.
            return f"{name} {rest}" if doc.origin.uploader_id is None else f"{name} could not be read: it {rest}"
    return f"{name} could not be read: {reason}" if reason else f"{name} could not be read"


async def judged(
    config: KBConfig,
    synthesiser: Synthesiser,
    found: Retrieved,
    resolved: Resolved,
    documents: Sequence[Document],
    visible: Sequence[Document],
    said: Phrases,
) -> QAResult:
    """`documents`: those that were searched. `visible`: all that the asker may see. `said`: in the asker's language."""
    pending = is_pending(visible)
    if not found.passages and not found.facts:
        if pending:
            return _indexing(visible, said, f" {said.nothing_so_far}")
        return _not_found(documents, found, resolved.question, said)
    if _too_far(config, found):
        return nothing(config, Status.REFUSED_IRRELEVANT)
    notes = [f"{_pending(visible)} still being indexed"] if pending else []
    notes += [unreadable(doc) for doc in visible if doc.state is State.FAILED]
    return await _condensed(config, synthesiser, replace(found, notes=(*found.notes, *notes)), resolved)


def is_pending(documents: Sequence[Document]) -> bool:
    return any(doc.state is State.PENDING for doc in documents)


def _pending(documents: Sequence[Document]) -> str:
    """`1 of 2 files`."""
    return f"{sum(doc.state is State.PENDING for doc in documents)} of {number_of(len(documents), 'file')}"


def _indexing(documents: Sequence[Document], said: Phrases, also: str = "") -> QAResult:
    pending = sum(doc.state is State.PENDING for doc in documents)
    return QAResult(f"{said.indexing(pending, len(documents))}{also}", Status.INDEXING)


def _not_found(documents: Sequence[Document], found: Retrieved, asked: str, said: Phrases) -> QAResult:
    names = found.searched or tuple(doc.filename for doc in documents)
    listed = f" ({', '.join(names)})" if len(names) <= MOST_NAMED else ""
    if not found.missing and not found.notes and found.count is None:
        return QAResult(said.searched(f"{said.files(len(names))}{listed}", asked), Status.NOT_FOUND)
    # What is missing is told in English: it was understood from English words.
    text = f'Searched {number_of(len(names), "file")}{listed} for "{asked}": {found.missing or "no entry matched"}.'
    text += "".join(f" Note: {note}." for note in found.notes if note not in found.missing)
    if found.count is None:
        return QAResult(text, Status.NOT_FOUND)
    counted = f"{number_of(found.count, 'entry', 'entries')}, computed over the whole file"
    return QAResult(f"{text} That makes {counted}.", Status.NOT_FOUND, plan={"count": found.count})


def _too_far(config: KBConfig, found: Retrieved) -> bool:
    """Whether even the best passage is too far from the question. Never judged by a fused score."""
    if found.exact or not found.passages or any(passage.relevance == 1.0 for passage in found.passages):
        return False
    cosines = [passage.score for passage in found.passages if passage.score is not None]
    threshold = config.relevance_threshold if cosines else config.keyword_threshold
    best = max(cosines or [passage.relevance or 0.0 for passage in found.passages])
    return threshold is not None and best < threshold


async def _condensed(config: KBConfig, synthesiser: Synthesiser, found: Retrieved, resolved: Resolved) -> QAResult:
    """The answer from passages; the best of them as they are if no model could condense them."""
    status, extra = Status.OK, ""
    material = _material(config, found, resolved)
    try:
        answer = await synthesiser.answer(material)
    except LLMError as error:
        log.warning("%s: the passages could not be condensed: %s", config.name, type(error).__name__)
        answer = ""
    if not answer.strip():
        status, extra = Status.SYNTHESIS_ERROR, config.no_result_message(Status.SYNTHESIS_ERROR)
        best = replace(found, passages=found.passages[:VERBATIM_PASSAGES])
        answer = await ExtractiveSynthesiser().answer(_material(config, best, resolved))
    allowed = [resolved.query, resolved.question, *material.headers, *material.citations, found.facts]
    checked = check(answer, found.passages, allowed)
    if checked.unverified:
        log.info("%s: citations or quotes that are in no passage: %d", config.name, checked.unverified)
    noted = [f"Note: {note}." for note in found.notes if note]
    relevances = [passage.relevance for passage in found.passages if passage.relevance is not None]
    # What was computed over whole files is certain without any passage.
    confidence = sum(relevances) / len(relevances) if relevances else float(bool(found.facts))
    return QAResult(
        answer="\n".join(part for part in (extra, checked.answer.strip(), *noted) if part),
        status=status,
        sources=tuple(dict.fromkeys(config.extract_source_name(_metadata(passage)) for passage in found.passages))
        or found.searched,
        chunk_count=len(found.passages),
        confidence=min(max(confidence, 0.0), 1.0),
        citations=checked.cited or tuple(passage.citation for passage in found.passages),
        plan={} if found.count is None else {"count": found.count},
        unverified=checked.unverified,
    )


def _material(config: KBConfig, found: Retrieved, resolved: Resolved) -> Material:
    described = [_metadata(passage) for passage in found.passages]
    pairs = zip(described, found.passages, strict=True)
    shown = [config.format_chunk_metadata(metadata, passage.score) for metadata, passage in pairs]
    return Material(
        question=resolved.question,
        query=resolved.query,
        passages=found.passages,
        headers=tuple(f"[Chunk {number} - {header}]" for number, header in enumerate(shown, start=1)),
        citations=tuple(map(config.cite, described)),
        system_prompt=config.system_prompt,
        citation_format=config.get_citation_format(),
        facts=found.facts,
        count=found.count,
        notes=found.notes,
        max_tokens=config.max_answer_tokens,
    )


def _metadata(passage: CitedPassage) -> dict[str, str]:
    """What a `KBConfig` formats."""
    facts = {
        "section": passage.metadata.get("heading"),
        "document_title": passage.metadata.get("title"),
        **passage.metadata,
        "filename": passage.source,
        "line_start": str(passage.citation.line_start),
        "line_end": str(passage.citation.line_end),
        "line_number": str(passage.citation.line_start),
        "timestamp": passage.timestamp,
    }
    return {name: value for name, value in facts.items() if value}
