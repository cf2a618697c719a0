"""Find the one line of a passage that shows best why it is worth reading."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from services.search import Kept, terms

_LEAST_CHARS = 20
_LINE_CHARS = 180
_CODE_CHARS = 80
"""Of one line of code that is shown with the sentence that announces it."""
_CODE_SHARE = 0.5
"""What a line of code counts beside a sentence: it says what to type, not what for."""
_FENCED = re.compile(r"^(```+)[^\n`]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_NO_END = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|resp|approx|incl|esp|z\.B|bzw|ca)|(?:^|\s)\w)\.$|\.\.\.$", re.IGNORECASE)
"""A full stop that ends no sentence."""
_MARKUP = re.compile(r"!?\[([^\[\]\n]*+)\]\([^)\[\n]*+\)|\*\*|^[ \t]*(?:>[ \t]*)?(?:[-*+]|\d+\.)?[ \t]+", re.MULTILINE)
_WRAPPED = re.compile(r"(?<=[^\W_]|,)\n(?=[a-z])")
"""A break in the middle of a sentence, as plain text has them."""
_COMMENT = re.compile(r"(?:#|//|--|;|/\*|<!--)(?:\s|$)")
_PROMPT = re.compile(r"^(?:[$>]|>>>)\s+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MARKS = ("`", "**", "*", "~~", "||")


def best_line(kept: Kept, query: str) -> str:
    """The sentence of a passage that has most of the query's words, or a line of code where that has far more; empty
    if there is none. What announces code has a line of it behind it.
    """
    asked = set(terms(query))
    lines = [(line, share) for line, share in _lines(kept.text) if len(line) >= _LEAST_CHARS]
    if not lines:
        return ""
    # Among equals the earlier one: what is said first is said in general.
    return _tidy(max(lines, key=lambda each: each[1] * _fit(each[0], asked))[0])


def sentences(text: str) -> list[str]:
    """The sentences of a line. None ends at an abbreviation, or within brackets or code."""
    found: list[str] = []
    held = ""
    for part in _SENTENCE_END.split(text):
        held = f"{held} {part}" if held else part
        if not _NO_END.search(held[-12:]) and held.count("`") % 2 == 0 and held.count("(") <= held.count(")"):
            found.append(held)
            held = ""
    return [each.strip() for each in (*found, held) if each.strip()]


def _lines(text: str) -> Iterator[tuple[str, float]]:
    """Sentences and lines of code, each with what it counts."""
    end = 0
    for fenced in _FENCED.finditer(text):
        said = _prose(text[end : fenced.start()])
        announced = said.pop() if said and said[-1].endswith((":", "：")) else ""
        yield from ((sentence, 1.0) for sentence in said)
        yield from _code(announced, [line.strip() for line in fenced[2].split("\n") if line.strip()])
        end = fenced.end()
    yield from ((sentence, 1.0 if sentence[-1] not in ":：" else _CODE_SHARE) for sentence in _prose(text[end:]))


def _prose(text: str) -> list[str]:
    lines = _WRAPPED.sub(" ", text).split("\n")
    return [each for line in lines for each in sentences(_MARKUP.sub(r"\1", line))]


def _code(announced: str, lines: list[str]) -> Iterator[tuple[str, float]]:
    """Each line with the sentence that announces it. A listing of one line counts as that sentence does."""
    if announced:
        yield announced, _CODE_SHARE
    share = 1.0 if announced and len(lines) == 1 else _CODE_SHARE
    for line in lines:
        code = _PROMPT.sub("", line, count=1)
        if len(code) <= _CODE_CHARS and "`" not in code and _WORD.search(code) and not _COMMENT.match(code):
            yield f"{announced} `{code}`".strip(), share


def _fit(line: str, asked: Collection[str]) -> float:
    words = terms(line)
    return len(set(words).intersection(asked)) / (4 + len(words)) ** 0.5


def _tidy(line: str) -> str:
    line = " ".join(line.split())
    if len(line) > _LINE_CHARS:
        line = f"{line[: _LINE_CHARS - 1].rpartition(' ')[0] or line[: _LINE_CHARS - 2]} …"
    for mark in _MARKS:
        line = line if line.count(mark) % 2 == 0 else line.replace(mark, "")
    return line
