"""Checks an answer against its passages, and marks what it cites or quotes that is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.documents.asking.passages import CitedPassage
from services.documents.results import Citation

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
class Checked:
    """An answer, and its citations that hold, in order, each once."""

    answer: str
    unverified: int
    cited: tuple[Citation, ...]


def check(answer: str, passages: Sequence[CitedPassage], allowed: Sequence[str] = ()) -> Checked:
    """`allowed`: more text that may be quoted: the question, the headers, what was computed."""
    held = _plain("\n".join([*(passage.text for passage in passages), *allowed]))
    cited: dict[tuple[str, int, int], Citation] = {}
    wrong: list[str] = []

    def kept(whole: str, text: str, instead: str = UNVERIFIED) -> str:
        if _plain(text) in held:
            return whole
        wrong.append(whole)
        return instead

    def located(match: re.Match[str]) -> str:
        """As in `server.log:1045 (14:32:15Z)`."""
        first, last = _span(match, 2)
        for passage in passages:
            if _same_file(passage.source, match[1]) and passage.line_start <= first <= last <= passage.line_end:
                # The time is known of the line that matched first.
                stamp = passage.timestamp if passage.matched[:1] == (first,) else None
                here = Citation(passage.doc_id, passage.source, first, last, stamp, passage.chunk_id)
                cited.setdefault((passage.doc_id, first, last), here)
                return match[0]
        # Copied from a passage, it is no citation of ours.
        return kept(match[0], match[0])

    def line(match: re.Match[str]) -> str:
        first, last = _span(match, 1)
        inside = any(passage.line_start <= first and last <= passage.line_end for passage in passages)
        return match[0] if inside else kept(match[0], match[0])

    def quote(whole: str) -> str:
        return kept(whole, whole[1:-1].strip(" .…,"), f"{whole} {UNVERIFIED}")

    checked = "\n".join(_judged_quotes(text, held, quote) for text in answer.split("\n"))
    checked = _ANY_FILE_LINE.sub(located, checked)
    checked = _ARTICLE.sub(lambda match: kept(match[0], match[0]), _BARE_LINE.sub(line, checked))
    return Checked(checked, len(wrong), tuple(cited.values()))


def _judged_quotes(line: str, held: str, judge: Callable[[str], str]) -> str:
    """Each quotation of a line, judged. A mark that belongs to what is quoted, or stands alone, parts none of them."""

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
        if whole is None and ends and not _begins_one(marks, start, line, is_held):
            written += [line[at:start], judge(line[start : ends[0] + 1])]
            at = ends[0] + 1
        elif whole is not None:
            written.append(line[at : whole + 1])
            at = whole + 1
    return "".join([*written, line[at:]])


def _begins_one(marks: Sequence[int], start: int, line: str, is_held: Callable[[int, int], bool]) -> bool:
    """Whether the next mark of this kind begins a quotation that is there: then the one at `start` stands alone."""
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
