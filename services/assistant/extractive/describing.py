"""Descriptions without a model: a document's own headings, and the terms that tell it from others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from services.assistant.extractive.team_answers import team_answers
from services.search import STOP_WORDS, asking_sentences, passages
from services.storage import in_thread

_LONGEST_READ: Final = 100_000
"""Characters. What a document is about stands at its beginning; the rest would only cost time."""
_HEADINGS: Final = 8
_TERMS: Final = 12
_SENTENCE_CHARS: Final = 200
_HEADING_CHARS: Final = 80
_SHORTEST_TERM: Final = 4
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[._-][A-Za-z0-9]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*`#>|]+|(?<![^\W_])_+|_+(?![^\W_])")
"""An underscore within a word is no markup: `require_mount` keeps its."""
_ADDRESS = re.compile(r"\b\w+://\S+")
_KEY: Final = "extractive 2"
"""Raise the number when descriptions of the same text would change."""


class ExtractiveDescriber:
    """Implements `services.assistant.describing.Describer`."""

    @property
    def key(self) -> str:
        return _KEY

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds  # some milliseconds are all it takes, which is still too much for the event loop
        return await in_thread(describe, source_id, text)


class ExtractiveTopicDescriber:
    """Implements `services.assistant.describing.Describer` for topics of the team."""

    @property
    def key(self) -> str:
        return f"{_KEY}, topics"

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds  # as above
        return describe_topic(source_id, text)


def describe_topic(source_id: str, text: str) -> str:
    """One or two sentences about the text of a topic file: what was asked, newest last, and its telling words."""
    asked = [(passage.heading, passage.text) for passage in team_answers(text[-_LONGEST_READ:])]
    questions = list(dict.fromkeys(_question(heading) for heading, _ in asked))[-_HEADINGS:]
    name = _name(source_id.removeprefix("team:"))
    title = name[:1].upper() + name[1:]
    sentences = [f"{title}: {_listed(questions)}" if questions else f"{title}."]
    said = sentences[0].lower()
    words = plain(_ADDRESS.sub(" ", "\n".join(f"{heading}\n{answer}" for heading, answer in asked)))
    telling = [term for term in _terms(words) if term.lower() not in said][:_TERMS]
    if telling:
        sentences.append(f"Mentions {_listed(telling)}.")
    return " ".join(sentences)


def _question(asked: str) -> str:
    """The sentence that asks, else how it begins."""
    asking, told = asking_sentences(asked)
    sentence = plain(next(iter([*asking, *told]), ""))
    return sentence if len(sentence) <= _HEADING_CHARS else sentence[:_HEADING_CHARS].rpartition(" ")[0] + " …"


def describe(source_id: str, text: str) -> str:
    """Two or three sentences: the title and how the text opens, its headings, its most frequent telling words."""
    text = text[:_LONGEST_READ]
    pieces = passages(text)
    headings = list(dict.fromkeys(plain(title) for piece in pieces for title in piece.heading.split(" › ") if title))
    title = headings[0] if headings else _name(source_id)
    opening = next((_first_sentence(piece.text) for piece in pieces if _is_prose(piece.text)), "")
    sentences = [f"{title}: {opening}" if opening else f"{title}."]
    if headings[1:]:
        sentences.append(f"Covers {_listed(heading[:_HEADING_CHARS] for heading in headings[1 : 1 + _HEADINGS])}.")
    said = " ".join(sentences).lower()
    telling = [term for term in _terms(_ADDRESS.sub(" ", plain(text))) if term.lower() not in said][:_TERMS]
    if telling:
        sentences.append(f"Mentions {_listed(telling)}.")
    return " ".join(sentences)


def plain(text: str) -> str:
    """Without markup, in one line."""
    return " ".join(_MARKUP.sub(r"\1", text).split())


def _name(source_id: str) -> str:
    path, _, last = source_id.partition("?")[0].rstrip("/").rpartition("/")
    named = last if path.endswith(":/") else last.rpartition(".")[0] or last  # a host has no ending to leave out
    return plain(re.sub(r"[-_.]+", " ", named)) or source_id


def _is_prose(text: str) -> bool:
    return len(text.split()) > 3 and not text.lstrip().startswith(("```", "~~~", "|"))  # noqa: PLR2004 (words)


def _first_sentence(text: str) -> str:
    sentence = _SENTENCE_END.split(plain(text[: 4 * _SENTENCE_CHARS]), maxsplit=1)[0]
    if len(sentence) > _SENTENCE_CHARS:
        sentence = sentence[:_SENTENCE_CHARS].rpartition(" ")[0] + " …"
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


def _terms(text: str) -> list[str]:
    """The words that occur most, those that occur first leading among equals."""
    counted = Counter(
        word for word in _WORD.findall(text) if len(word) >= _SHORTEST_TERM and word.lower() not in STOP_WORDS
    )
    return [word for word, _ in counted.most_common(4 * _TERMS)]


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
