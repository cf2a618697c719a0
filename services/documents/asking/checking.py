"""Holding an answer against its passages, in code: what cites or quotes what is not there is marked (DOCUMENT_QA 6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.documents.asking.passages import Passage
from services.documents.results import Citation

UNVERIFIED = "(unverified)"

_ANY_FILE_LINE = re.compile(
    r"(?<![\w/.-])([\w./-]+\.[A-Za-z]\w{0,9}):(\d{1,7})(?:\s?[-–]\s?(\d{1,7}))?(?![\d.:])(?:\s?\([^)\n]{1,40}\))?"
)
_BARE_LINE = re.compile(
    r"\blines?\s+(\d{1,7})(?:\s?(?:[-–]|to|and)\s?(\d{1,7}))?\b(?:\s+of\s+[\w./-]+)?", re.IGNORECASE
)
_QUOTE = re.compile(r"\"([^\"\n]{3,400})\"|“([^”\n]{3,400})”|`([^`\n]{3,400})`")
_ARTICLE = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,8}\b")
_SPACES = re.compile(r"\s+")
_SHORT_QUOTE = 2


@dataclass(frozen=True, slots=True)
class Checked:
    answer: str
    unverified: int
    cited: tuple[Citation, ...]
    """The citations of the answer that hold, in order, each once."""


def check(answer: str, passages: Sequence[Passage], allowed: Sequence[str] = ()) -> Checked:
    """`allowed`: more text that may be quoted: the question, the headers, what was computed."""
    text = "\n".join([*(passage.text for passage in passages), *allowed])
    held = _plain(text)
    cited: list[Citation] = []
    wrong = 0

    def located(match: re.Match[str]) -> str:
        nonlocal wrong
        name, first = match[1], int(match[2])
        last = int(match[3]) if match[3] else first
        for passage in passages:
            if _same_file(passage.source, name) and passage.line_start <= first <= last <= passage.line_end:
                cited.append(
                    Citation(passage.doc_id, passage.source, first, last, _stamp(passage, first), passage.chunk_id)
                )
                return match[0]
        if _plain(match[0]) in held:
            return match[0]  # copied from a passage: no citation of ours
        wrong += 1
        return UNVERIFIED

    def line(match: re.Match[str]) -> str:
        nonlocal wrong
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        inside = any(passage.line_start <= first and last <= passage.line_end for passage in passages)
        if inside or _plain(match[0]) in held:
            return match[0]
        wrong += 1
        return UNVERIFIED

    def quote(match: re.Match[str]) -> str:
        nonlocal wrong
        inner = next(group for group in match.groups() if group is not None)
        if _plain(inner).strip(" .…,") in held or _ANY_FILE_LINE.fullmatch(inner) or len(inner) <= _SHORT_QUOTE:
            return match[0]
        wrong += 1
        return f"{match[0]} {UNVERIFIED}"

    def article(match: re.Match[str]) -> str:
        nonlocal wrong
        if match[0].casefold() in held:
            return match[0]
        wrong += 1
        return UNVERIFIED

    checked = _QUOTE.sub(quote, answer)
    checked = _ANY_FILE_LINE.sub(located, checked)
    checked = _BARE_LINE.sub(line, checked)
    checked = _ARTICLE.sub(article, checked)
    unique = {(citation.doc_id, citation.line_start, citation.line_end): citation for citation in cited}
    return Checked(checked, wrong, tuple(unique.values()))


def _same_file(source: str, name: str) -> bool:
    source, name = source.casefold(), name.casefold()
    return source == name or source.endswith(f"/{name}")


def _stamp(passage: Passage, line: int) -> str | None:
    """The time is known of the line that matched first."""
    return passage.timestamp if passage.matched and passage.matched[0] == line else None


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).casefold().strip()
