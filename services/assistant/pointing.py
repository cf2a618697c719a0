"""Pointers in the place of an answer: up to three sections, each with the line that shows best why to read it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from services.assistant.quoting import earlier_question, in_known_languages, is_team_answer
from services.search import MIN_CONFIDENCE_TO_NAME, Level, pages_of, terms

if TYPE_CHECKING:
    from services.assistant.addresses import Addresses
    from services.conversations import Phrases
    from services.search import Hit, SearchResult, StoredPassage, TeamAnswer

_LEAST_CHARS = 20
_LINE_CHARS = 180
_CODE_CHARS = 80
"""The longest line of code that is shown behind the sentence that announces it."""
_CODE_SHARE = 0.5
"""The weight of a line of code, where a sentence has 1: code says what to type, but not what for."""
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


def best_line(passage: StoredPassage, query: str) -> str:
    """Return the sentence of a passage that has most of the query's words, or a line of code if it has far more; empty
    if there is none. A sentence that announces code is followed by a line of the code.
    """
    asked = set(terms(query))
    lines = [(line, share) for line, share in _lines(passage.text) if len(line) >= _LEAST_CHARS]
    if not lines:
        return ""
    # Among equals the earlier one: what is said first is said in general.
    return _tidy(max(lines, key=lambda each: each[1] * _fit(each[0], asked))[0])


def sentences(text: str) -> list[str]:
    """Return the sentences of a line. None ends at an abbreviation, or within brackets or code."""
    found: list[str] = []
    begun = ""
    for piece in _SENTENCE_END.split(text):
        begun = f"{begun} {piece}" if begun else piece
        if not _NO_END.search(begun[-12:]) and begun.count("`") % 2 == 0 and begun.count("(") <= begun.count(")"):
            found.append(begun)
            begun = ""
    return [each.strip() for each in (*found, begun) if each.strip()]


def _lines(text: str) -> Iterator[tuple[str, float]]:
    """Yield the sentences and lines of code of a text, each with its weight."""
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
    """Yield each line of code behind the sentence that announces it, with its weight; a single one has a sentence's."""
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


_MIN_CONFIDENCE_OF_NEAREST = 0.01
"""No earlier question is named as the nearest below this, if words were compared by their meaning. Of 120 questions to
three chats in other words 70 then have the right answer quoted, pointed to or named, where 0.04 gives 50; of 90 that
nobody had answered, 34 have some earlier question named, where 0.04 gives 19.
"""
MAX_NAMED = 3
"""The most pages and answers of the team that a pointer names."""


def is_worth_showing(found: SearchResult) -> bool:
    """Return True if the result is good enough to show a few pointers to somebody who addressed the bot."""
    return found.level is not Level.SILENCE or (found.confidence >= MIN_CONFIDENCE_TO_NAME and found.is_near)


def pointers(found: SearchResult, query: str, say: Phrases, addresses: Addresses) -> tuple[str, list[StoredPassage]]:
    """Return a few lines that name the best pages, and the passages that they lead to."""
    chosen = _chosen(found, query)
    lines = [f"• {addresses.section_link(hit.passage, say)}{_why(hit, query)}" for hit in chosen]
    return "\n".join([say.may_help, *lines]), [hit.passage for hit in chosen]


def _chosen(found: SearchResult, query: str) -> list[Hit]:
    """Choose the surest answers of the team and the best pages: the surer kind first, but at least one of the other."""
    pages = list(in_known_languages(pages_of(found.documents), query) or pages_of(found.documents))
    answers = [
        each for each in found.team_answers if each.confidence >= MIN_CONFIDENCE_TO_NAME and each.hit.passage.quotable
    ]
    best = max((each.confidence for each in answers), default=0.0)
    if best < found.documents_confidence:
        return [*pages[: MAX_NAMED - 1], *(each.hit for each in answers[:1]), *pages[MAX_NAMED - 1 :]][:MAX_NAMED]
    kept = answers[: MAX_NAMED - 1] if found.documents_confidence >= MIN_CONFIDENCE_TO_NAME else answers
    return [
        *(each.hit for each in kept),
        *(pages if found.documents_confidence >= MIN_CONFIDENCE_TO_NAME or not kept else []),
    ][:MAX_NAMED]


def nothing_found(
    found: SearchResult, say: Phrases, addresses: Addresses, hint: str = ""
) -> tuple[str, list[StoredPassage]]:
    """Return one friendly sentence, and the passage of the page, or the answer of the team, that it names as the
    nearest; none if nothing is near. `hint`: a sentence that says where else to ask.
    """
    page = next(iter(pages_of(found.documents)), None) if found.is_near else None
    answers = (each for each in found.team_answers if each.hit.passage.quotable and _may_be_nearest(each))
    answer = next((each.hit for each in answers if each.confidence > found.documents_confidence), None)
    asked = earlier_question(answer.passage) if answer is not None else ""
    if answer is not None and asked:
        question = addresses.link(answer.passage, f"“{asked}”")
        text = f"{say.found_nothing_at_all} {say.nearest_question(question)}"
    else:
        answer = None
        text = say.found_nothing(addresses.section_link(page.passage, say)) if page else say.found_nothing_at_all
    nearest = answer or page
    return (f"{text} {hint}" if hint else text), [] if nearest is None else [nearest.passage]


def _may_be_nearest(answer: TeamAnswer) -> bool:
    by_meaning = answer.signals.near is not None
    return answer.confidence >= (_MIN_CONFIDENCE_OF_NEAREST if by_meaning else MIN_CONFIDENCE_TO_NAME)


def linkable_hit_texts(found: SearchResult, addresses: Addresses) -> list[str]:
    """Return the texts whose addresses a pointer may repeat: pages, and addresses of pages and of team answers."""
    said = [f"{hit.passage.title}\n{hit.passage.with_heading}" for hit in found.documents]
    hits = [*found.documents, *(each.hit for each in found.team_answers)]
    return [*said, *(addresses.section_address(hit.passage) or "" for hit in hits)]


def _why(hit: Hit, query: str) -> str:
    if is_team_answer(hit.passage):  # no sentence of its answer: the one beside it may deny it
        asked = earlier_question(hit.passage)
        return f": “{asked}”" if asked else ""
    line = best_line(hit.passage, query)
    return f": {line}" if line else ""
