"""Has a model condense what was found, and rewrite follow-up questions."""

from __future__ import annotations

import asyncio
import logging

from pydantic import BaseModel

from services.documents import prompts
from services.documents.asking.rewriting import MAX_CHARS
from services.documents.asking.synthesis import Material, rendered
from services.llm import Asker, CallOptions, LLMError, Prompt, TimedOut, Unavailable, Usage

log = logging.getLogger(__name__)

OPTIONS = CallOptions(temperature=0.0, max_tokens=150, retries=1)  # of a rewrite

ANSWER_CHARS_PER_TOKEN = 3  # what is asked for leaves room for the form that an answer comes in
SECONDS = 20.0
TEMPERATURE = 0.3
PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0


class CondensedAnswer(BaseModel):
    answer: str


class RewrittenQuestion(BaseModel):
    question: str


class ModelSynthesiser:
    """Asks a model once, and a second time if the endpoint was unavailable or too slow."""

    def __init__(self, asker: Asker, usage: Usage, model: str) -> None:
        self._asker = asker
        self._usage = usage
        self._model = model

    @property
    def id(self) -> str:
        return f"{self._model}/{prompts.CONDENSE_VERSION}"

    async def answer(self, material: Material) -> str:
        prompt = prompts.condense(
            material.system_prompt,
            material.citation_format,
            question=material.question,
            query=material.query,
            passages=rendered(material),
            facts=material.found.facts,
            notes=material.found.notes,
            max_chars=material.max_tokens * ANSWER_CHARS_PER_TOKEN,
        )
        # Asked again here alone: a client that did so as well would multiply that.
        options = CallOptions(TEMPERATURE, material.max_tokens, retries=0)
        try:
            return await self._ask(prompt, options)
        except (Unavailable, TimedOut) as error:
            asked = getattr(error, "retry_after", None) or PAUSE_SECONDS
            await asyncio.sleep(min(asked, LONGEST_PAUSE_SECONDS))
            return await self._ask(prompt, options)

    async def _ask(self, prompt: Prompt, options: CallOptions) -> str:
        try:
            async with asyncio.timeout(SECONDS):
                result = await self._asker.ask("condense", prompt, CondensedAnswer, self._usage, options=options)
        except TimeoutError:
            raise TimedOut(f"LLM, step condense: no answer within {SECONDS:g} s") from None
        return result.answer


class ModelRewriter:
    def __init__(self, asker: Asker, usage: Usage) -> None:
        self._asker = asker
        self._usage = usage

    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str | None:
        prompt = prompts.rewrite_question(question, turns, MAX_CHARS)
        try:
            result = await self._asker.ask("rewrite", prompt, RewrittenQuestion, self._usage, options=OPTIONS)
        except LLMError as error:
            log.info("A follow-up question is searched for as it is: %s", type(error).__name__)
            return None
        return result.question
