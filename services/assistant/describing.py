"""Short descriptions of sources, by which sources are chosen for a question: how a long document is cut for the model,
and the describer that asks it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import BaseModel

from services.assistant import prompts
from services.knowledge import topic_for_model
from services.llm import Usage, at_most
from services.search.text import Article, Block, BlockKind, Section
from services.storage import in_thread

if TYPE_CHECKING:
    from services.llm import Asker

OUTLINE_SHARE = 3
"""The headings of a long document take at most a third of `max_chars`."""
_LEAST_CHARS = 60
"""A shorter beginning of a section says nothing."""
_FEW_WORDS = 60
"""A page full of links has content if it has at least so many words of prose."""

_LINK = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)|<?https?://[^\s<>]+>?")
_WORD = re.compile(r"\w+")


def summary_text(article: Article, max_chars: int) -> str:
    """Return the article in `max_chars` characters: whole, or its headings and the beginning of each section."""
    whole = article.markdown.strip()
    if len(whole) <= max_chars:
        return whole
    outline = article.contents(max_chars // OUTLINE_SHARE)
    parts = [f"Outline:\n{outline}"] if outline else []
    room = max_chars - sum(map(len, parts)) - len("\n\nBeginnings of its sections:\n\n")
    beginnings = "\n\n".join(_beginnings(article, room))
    if beginnings:
        parts.append(f"Beginnings of its sections:\n\n{beginnings}")
    return "\n\n".join(parts)[:max_chars]


def plain_article(text: str) -> Article:
    """Make an article of plain text: a section for each paragraph."""
    paragraphs = (paragraph.strip("\n") for paragraph in text.split("\n\n"))
    sections = (Section((), "", (Block(BlockKind.PROSE, each),)) for each in paragraphs if each.strip())
    return Article("", tuple(sections))


def has_no_content(article: Article) -> bool:
    """Return True if a page has no content of its own: only a title, a table of contents, or a list of links."""
    words = linked = 0
    for section in article.sections:
        for block in section.blocks:
            if block.kind in {BlockKind.CODE, BlockKind.TABLE}:
                return False
            links = [match["label"] or "link" for match in _LINK.finditer(block.text)]
            linked += sum(_words(label) or 1 for label in links)
            words += _words(_LINK.sub(" ", block.text))
    return not words or (linked >= words and words < _FEW_WORDS)


def _words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _beginnings(article: Article, max_chars: int) -> Iterator[str]:
    """Yield the beginnings of the longest sections: of so many that each beginning is worth reading."""
    longest = sorted((section for section in article.sections if section.text), key=lambda each: -len(each.text))
    rooms: dict[Section, int] = {}
    total = 0
    for section in longest:
        total += len(section.text)
        frame = len(section.heading) + 4  # the empty lines around it
        if max_chars * len(section.text) // total - frame < _LEAST_CHARS:
            total -= len(section.text)
            break
        rooms[section] = frame
    for section in article.sections:
        if section in rooms:
            beginning = _cut(section.text, max_chars * len(section.text) // total - rooms[section])
            yield f"{section.heading}\n\n{beginning}".strip()


def _cut(text: str, max_chars: int) -> str:
    """Return the beginning of `text`, up to the end of a line, else of a word."""
    if len(text) <= max_chars:
        return text
    kept = text[: max_chars - 2]
    for end in ("\n", " "):
        before = kept.rpartition(end)[0].rstrip()
        if len(before) >= max_chars // 2:
            return f"{before} …"
    return f"{kept} …"


MAX_CHARS = 12_000
"""A longer text is shown to the model as its outline and the beginning of each section."""

Read = Callable[[str, str], Article]
"""Makes an article of a source's id and text."""


class SummaryResult(BaseModel):
    summary: Annotated[str, at_most(4 * prompts.LONGEST_DESCRIPTION_CHARS)]


class NotDescribed(Exception):
    """There is no description; the message says why in a few words."""


class SaysNothing(NotDescribed):
    """The source has no content of its own: a title, a table of contents, links. No later try changes that."""


class Describer(Protocol):
    @property
    def key(self) -> str:
        """A text that changes with all that descriptions depend on besides the source: prompt, model, method."""
        ...

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        """Return a few sentences of plain English about `text`, the content of `source_id` (without a namespace).

        Raises:
            SaysNothing: the text is a table of contents or the like, which does not belong into an index.
            NotDescribed: the answer is empty.
            TimeoutError: there was no answer within `timeout_seconds`.
            LLMError: there is no usable answer (services.llm.endpoint).
        """
        ...


class ModelDescriber:
    """Asks a model, with the operator's task and our own rules. `read`: finds the sections of a source; None: the
    sources are topics of the team.
    """

    def __init__(
        self,
        asker: Asker,
        *,
        model: str,
        task: str,
        project_introduction: str = "",
        read: Read | None = None,
        redact: Callable[[str], str] = str,
        usage: Usage | None = None,
    ) -> None:
        self._asker = asker
        self._tasks = prompts.ConfiguredTasks({"summarise": task}, project_introduction)
        self._read = read
        self._redact = redact
        self._usage = usage
        self.key = description_key(model, prompts.summarise(self._tasks, "", "").system)

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        shown = self._redact(await in_thread(self._shown, source_id, text))
        prompt = prompts.summarise(self._tasks, source_id, shown, len(text))
        async with asyncio.timeout(timeout_seconds):
            result = await self._asker.ask("summarise", prompt, SummaryResult, Usage(self._usage))
        summary = self._redact(result.summary).strip()
        if not summary:
            raise NotDescribed("the model gave an empty description")
        return summary

    def _shown(self, source_id: str, text: str) -> str:
        """Return as much of a source as a model is shown. Blocking: reading a long document takes a while."""
        if self._read is None:
            topic = topic_for_model(text, {})
            return topic if len(topic) <= MAX_CHARS else summary_text(plain_article(topic), MAX_CHARS)
        article = self._read(source_id, text)
        if has_no_content(article):
            raise SaysNothing("it has no content but a title, headings or links")
        return summary_text(article, MAX_CHARS)


def description_key(*parts: str) -> str:
    """Return a short hash that changes when one of `parts` does."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
