"""Short descriptions of sources, by which the right ones are chosen for a question."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Protocol

from pydantic import BaseModel

from services.assistant import prompts
from services.llm import Asker, Usage

MAX_CHARS = 40_000
"""Of a text, shown to a model: of a longer one its beginning, and the headings of the rest."""


class SummaryResult(BaseModel):
    summary: str


class NotDescribed(Exception):
    """There is no description; the message says why in a few words."""


class Describer(Protocol):
    @property
    def key(self) -> str:
        """Changes with everything that descriptions depend on besides the text: prompt, model, method."""
        ...

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        """A few sentences of plain English about `text`, the content of `source_id` (without a namespace).

        Raises:
            NotDescribed: the answer is empty.
            TimeoutError: there was no answer within `timeout_seconds`.
            LLMError: there is no usable answer (services.llm.endpoint).
        """
        ...


class ModelDescriber:
    """Asks a model, with the operator's task and our own rules."""

    def __init__(
        self,
        asker: Asker,
        *,
        model: str,
        task: str,
        project_introduction: str = "",
        redact: Callable[[str], str] = str,
        usage: Usage | None = None,
    ) -> None:
        self._asker = asker
        self._tasks = prompts.Tasks(summarise=task, project_introduction=project_introduction)
        self._redact = redact
        self._usage = usage
        self.key = key_of(model, prompts.summarise(self._tasks, "", "").system)

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        prompt = prompts.summarise(self._tasks, source_id, self._redact(shortened(text)))
        async with asyncio.timeout(timeout_seconds):
            result = await self._asker.ask("summarise", prompt, SummaryResult, Usage(self._usage))
        summary = self._redact(result.summary).strip()
        if not summary:
            raise NotDescribed("the model gave an empty description")
        return summary


def key_of(*parts: str) -> str:
    """A short hash that changes when one of `parts` does."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def shortened(text: str) -> str:
    """`text`, or the beginning of a long one with the headings that follow."""
    if len(text) <= MAX_CHARS:
        return text
    head, rest = text[: MAX_CHARS * 3 // 4], text[MAX_CHARS * 3 // 4 :]
    headings = "\n".join(line for line in rest.split("\n") if line.startswith("#"))
    return f"{head}\n\n[shortened; headings of the rest:]\n{headings[: MAX_CHARS // 5]}"
