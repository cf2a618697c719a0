"""Makes an answer from passages, and checks that its citations and quotes are in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from services.documents.asking.passages import Citation, CitedPassage, Findings
from services.search import query_tokens, tokens

UNVERIFIED = "(unverified)"

_ANY_FILE_LINE = re.compile(
    r"(?<![\w/.-])([\w./-]+\.[A-Za-z]\w{0,9}):(\d{1,7})(?:\s?[-–]\s?(\d{1,7}))?(?!\d|[.:]\d)(?:\s?\([^)\n]{1,40}\))?"
)
_BARE_LINE = re.compile(
    r"\blines?\s+(\d{1,7})(?:\s?(?:[-–]|to|and)\s?(\d{1,7}))?\b(?:\s+of\s+[\w./-]*\w)?", re.IGNORECASE
)
_CLOSED_BY = {"“": "”"}
_MARKS = re.compile(r"[\"`“]")
_SHORTEST_QUOTE, _LONGEST_QUOTE = 3, 400
_ARTICLE = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,8}\b")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """A checked answer, and its valid citations in order, each once."""

    answer: str
    unverified: int
    cited: tuple[Citation, ...]


def check_answer(answer: str, passages: Sequence[CitedPassage], allowed: Sequence[str] = ()) -> CheckedAnswer:
    """Mark the citations and quotes of an answer that have no source. `allowed`: other text that may be quoted."""
    held = _plain("\n".join([*(passage.text for passage in passages), *allowed]))
    cited: dict[tuple[str, int, int], Citation] = {}
    wrong: list[str] = []

    def marked_if_unsupported(whole: str, text: str, instead: str = UNVERIFIED) -> str:
        if _plain(text) in held:
            return whole
        wrong.append(whole)
        return instead

    def located(match: re.Match[str]) -> str:
        """Check a place such as `server.log:1045 (14:32:15Z)`."""
        first, last = _span(match, 2)
        for passage in passages:
            if _same_file(passage.source, match[1]) and passage.line_start <= first <= last <= passage.line_end:
                # The time is known of the line that matched first.
                stamp = passage.timestamp if passage.matched[:1] == (first,) else None
                here = Citation(passage.doc_id, passage.source, first, last, stamp, passage.chunk_id)
                cited.setdefault((passage.doc_id, first, last), here)
                return match[0]
        # It may be copied from a passage, and is no citation then.
        return marked_if_unsupported(match[0], match[0])

    def line(match: re.Match[str]) -> str:
        first, last = _span(match, 1)
        inside = any(passage.line_start <= first and last <= passage.line_end for passage in passages)
        return match[0] if inside else marked_if_unsupported(match[0], match[0])

    def quote(whole: str) -> str:
        return marked_if_unsupported(whole, whole[1:-1].strip(" .…,"), f"{whole} {UNVERIFIED}")

    checked = "\n".join(_check_quotes(text, held, quote) for text in answer.split("\n"))
    checked = _ANY_FILE_LINE.sub(located, checked)
    checked = _ARTICLE.sub(lambda match: marked_if_unsupported(match[0], match[0]), _BARE_LINE.sub(line, checked))
    return CheckedAnswer(checked, len(wrong), tuple(cited.values()))


def _check_quotes(line: str, held: str, judge: Callable[[str], str]) -> str:
    """Check each quotation of a line. A quotation mark within a quoted text, or without a partner, begins none."""

    def is_held(start: int, end: int) -> bool:
        inner = line[start + 1 : end].strip(" .…,")
        return bool(_ANY_FILE_LINE.fullmatch(inner)) or _plain(inner) in held

    marks = [found.start() for found in _MARKS.finditer(line)]
    written: list[str] = []
    at = 0
    for start in marks:
        if start < at:
            continue
        sign = _CLOSED_BY.get(line[start], line[start])
        ends = [
            end
            for end in (marks if sign == line[start] else [line.find(sign, start)])
            if _SHORTEST_QUOTE < end - start <= _LONGEST_QUOTE + 1 and line[end] == sign
        ]
        whole = next((end for end in reversed(ends) if is_held(start, end)), None)
        if whole is None and (short := line.find(sign, start + 2, start + _SHORTEST_QUOTE + 1)) > start:
            whole = short  # `su`: too short to be judged
        if whole is None and ends and not _next_begins_quote(marks, start, line, is_held):
            written += [line[at:start], judge(line[start : ends[0] + 1])]
            at = ends[0] + 1
        elif whole is not None:
            written.append(line[at : whole + 1])
            at = whole + 1
    return "".join([*written, line[at:]])


def _next_begins_quote(marks: Sequence[int], start: int, line: str, is_held: Callable[[int, int], bool]) -> bool:
    """Return True if the next mark of this kind begins a quotation from a passage: the one at `start` is alone then."""
    same = [mark for mark in marks if mark > start and line[mark] == line[start]]
    pairs = ((same[0], end) for end in same[1:] if _SHORTEST_QUOTE < end - same[0] <= _LONGEST_QUOTE + 1)
    return len(same) % 2 == 0 and any(is_held(*pair) for pair in pairs)


def _span(match: re.Match[str], group: int) -> tuple[int, int]:
    first = int(match[group])
    return first, int(match[group + 1]) if match[group + 1] else first


def _same_file(source: str, name: str) -> bool:
    source, name = source.casefold(), name.casefold()
    return source == name or source.endswith(f"/{name}")


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).casefold().strip()


CONTEXT_TOKENS = 6000
CHARS_PER_TOKEN = 4
CUT_CONTEXT = 3  # lines around a match that stay if there is no room for all

_QUOTED_CHARS = 400
_QUOTED_LINES = 6


@dataclass(frozen=True, slots=True)
class Material:
    """The material of an answer: question, passages, facts, rules of citing."""

    question: str
    query: str  # the question as it was searched
    found: Findings
    headers: tuple[str, ...]  # `[Chunk 1 - Score: 0.94, …]`, one a passage
    citations: tuple[str, ...]  # the citation of each passage in a sentence
    system_prompt: str = ""
    citation_format: str = ""
    max_tokens: int = 500


class Synthesiser(Protocol):
    @property
    def id(self) -> str:
        """Identifies the model and the version of the prompts; part of the cache's key."""
        ...

    async def answer(self, material: Material) -> str:
        """Answer the question from the material. Raises LLMError: there is no answer."""
        ...


class ExtractiveSynthesiser:
    """Quotes the passages with their places, word by word."""

    @property
    def id(self) -> str:
        return "extractive/1"

    async def answer(self, material: Material) -> str:
        parts = [f"Computed over the whole file:\n{material.found.facts}"] if material.found.facts else []
        pairs = zip(material.found.passages, material.citations, strict=True)
        parts += [quote_passage(passage, citation, material) for passage, citation in pairs]
        return "\n".join(parts)


def render_passages(material: Material) -> str:
    """Render the passages for the model, best first, as many as there is room for."""
    room = CONTEXT_TOKENS * CHARS_PER_TOKEN
    texts = [number_lines(passage) for passage in material.found.passages]
    if sum(map(len, texts)) > room:
        texts = [number_lines(shorten(passage)) for passage in material.found.passages]
    kept: list[str] = []
    for header, text in zip(material.headers, texts, strict=True):
        block = f"{header}\n{text}\n"
        if kept and len(block) > room:
            break
        kept.append(block[: max(room, 0)])
        room -= len(block)
    return "\n---\n".join(kept)


def number_lines(passage: CitedPassage) -> str:
    """Put numbers before the lines of records, so that one can be cited; matched lines are marked."""
    if not passage.has_numbers:
        return passage.text
    matched = set(passage.matched)
    return "\n".join(f"{'>' if number in matched else ' '}{number}: {line}" for number, line in passage.lines())


def shorten(passage: CitedPassage) -> CitedPassage:
    """Keep only the matched lines and those next to them."""
    if not passage.exact or not passage.matched:
        return passage
    first = max(passage.line_start, min(passage.matched) - CUT_CONTEXT)
    last = min(passage.line_end, max(passage.matched) + CUT_CONTEXT)
    lines = [line for number, line in passage.lines() if first <= number <= last]
    return replace(passage, text="\n".join(lines), line_start=first, line_end=last)


def quote_passage(passage: CitedPassage, citation: str, material: Material) -> str:
    """Quote one passage in a few lines."""
    if passage.values:
        return f"{citation}: {' '.join(passage.values)}"
    words = set(query_tokens(material.query))
    if passage.has_numbers:
        return _quoted_lines(passage, citation, words)
    return f"{citation}: {_excerpt(passage.text, words, material.max_tokens * 2)}"


def _quoted_lines(passage: CitedPassage, citation: str, words: set[str]) -> str:
    """Quote each line with its own number."""
    matched = set(passage.matched)
    lines = [(number, line.strip()) for number, line in passage.lines() if number in matched and line.strip()]
    lines.sort(key=lambda line: line[0] != passage.matched[0])  # the best first, as it is cited
    more = len(lines) - _QUOTED_LINES
    if more > 0 and not passage.exact:
        lines = sorted(sorted(lines, key=lambda line: -_shared(words, line[1]))[:_QUOTED_LINES])
        more = 0
    shown = [(number, line[:_QUOTED_CHARS]) for number, line in lines[:_QUOTED_LINES]]
    if len(shown) == 1 and more <= 0:
        return f"{citation}: {shown[0][1]}"
    cited = passage.citation
    if shown and not cited.line_start <= shown[-1][0] <= cited.line_end:
        rows = [f"{citation}: {shown[0][1]}", *(f"{passage.source}:{number}: {line}" for number, line in shown[1:])]
    else:
        rows = [f"{citation}:", *(f"  {number}: {line}" for number, line in shown)]
    return "\n".join([*rows, *([f"  (and {more} more lines)"] if more > 0 else [])])


def _excerpt(text: str, words: set[str], limit: int) -> str:
    """Return the paragraph that shares most words with the question, and following ones while there is room."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()] or [""]
    best = max(range(len(paragraphs)), key=lambda at: (_shared(words, paragraphs[at]), -at))
    taken = paragraphs[best]
    for following in paragraphs[best + 1 :]:
        if len(taken) + len(following) > limit:
            break
        taken = f"{taken}\n\n{following}"
    return taken if len(taken) <= limit else taken[:limit].rsplit(" ", 1)[0] + " …"


def _shared(words: set[str], text: str) -> int:
    return len(words & set(tokens(text)))
