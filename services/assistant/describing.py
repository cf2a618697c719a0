"""Short descriptions of sources, by which the right ones are chosen for a question."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Protocol

from pydantic import BaseModel

from services.assistant import prompts
from services.assistant.outlines import plain_article, says_nothing, summary_text
from services.llm import Asker, Usage
from services.search.text import Article
from services.storage import in_thread

MAX_CHARS = 12_000
"""Of a text, shown to a model: of a longer one its outline, and the beginning of each section."""

Read = Callable[[str, str], Article]
"""Makes an article of a source's id and text."""


class SummaryResult(BaseModel):
    summary: str


class NotDescribed(Exception):
    """There is no description; the message says why in a few words."""


class SaysNothing(NotDescribed):
    """The source has no content of its own: a title, a table of contents, links. No later try changes that."""


class Describer(Protocol):
    @property
    def key(self) -> str:
        """Changes with everything that descriptions depend on besides the text: prompt, model, method."""
        ...

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        """A few sentences of plain English about `text`, the content of `source_id` (without a namespace).

        Raises:
            SaysNothing: the text is a table of contents or the like, which belongs into no index.
            NotDescribed: the answer is empty.
            TimeoutError: there was no answer within `timeout_seconds`.
            LLMError: there is no usable answer (services.llm.endpoint).
        """
        ...


class ModelDescriber:
    """Asks a model, with the operator's task and our own rules.

    `read`: finds the sections of a source; None for text that has no more form than paragraphs, such as a topic.
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
        self._tasks = prompts.Tasks(summarise=task, project_introduction=project_introduction)
        self._read = read
        self._redact = redact
        self._usage = usage
        self.key = key_of(model, prompts.summarise(self._tasks, "", "").system)

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
        """Blocking: reading a long document takes a while."""
        if self._read is None:
            return text if len(text) <= MAX_CHARS else summary_text(plain_article(text), MAX_CHARS)
        article = self._read(source_id, text)
        if says_nothing(article):
            raise SaysNothing("it has no content but a title, headings or links")
        return summary_text(article, MAX_CHARS)


def key_of(*parts: str) -> str:
    """A short hash that changes when one of `parts` does."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
