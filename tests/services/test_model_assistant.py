from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest
from pydantic import BaseModel

from model.conversations import Conversation, Image, Role, Turn
from services import prompts
from services.assistant import AnswerResult, Assistant, GatingResult, SelectionResult, Usage, VerificationResult
from services.library import IndexEntry, Source
from services.model_assistant import ModelAssistant

M = TypeVar("M", bound=BaseModel)
TASKS = prompts.Tasks(gate="Judge.", project_introduction="About us.")
IMAGE = Image("a.png", "image/png", b"a")
CONVERSATION = Conversation((Turn(Role.USER, "Why?", (IMAGE,), asked_now=True),))
SOURCES = [Source("kb:a.md", "Because.")]
INDEX = [IndexEntry("kb:a.md", "Why.")]


class ScriptedAsker:
    """Gives the answers it was given, and keeps what it was asked."""

    def __init__(self, *answers: BaseModel | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, prompts.Prompt]] = []

    async def ask(
        self, step: str, system: str, user: str, model: type[M], usage: Usage, images: Sequence[Image] = ()
    ) -> M:
        self.asked.append((step, prompts.Prompt(system, user, tuple(images))))
        usage.add(step, prompt_tokens=2, completion_tokens=1)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, model)
        return answer


async def test_each_step_asks_once_with_its_own_prompt_and_model() -> None:
    results = (
        GatingResult(is_question=True, is_answerable=True, rewrite_query=None, reason="r"),
        SelectionResult(selected_source_ids=["kb:a.md"]),
        AnswerResult(answer="Because.", citations=["kb:a.md"]),
        VerificationResult(is_good_enough=True, issues=[], suggested_fix=None),
    )
    asker, usage = ScriptedAsker(*results), Usage()
    assistant: Assistant = ModelAssistant(asker, TASKS)
    assert await assistant.gate(CONVERSATION, usage) is results[0]
    assert await assistant.select("Why?", INDEX, 3, usage) is results[1]
    assert await assistant.generate(CONVERSATION, "Why?", SOURCES, usage, max_chars=9, shorten=True) is results[2]
    assert await assistant.verify(CONVERSATION, "Because.", SOURCES, usage) is results[3]
    assert asker.asked == [
        ("gate", prompts.gate(TASKS, CONVERSATION)),
        ("select", prompts.select(TASKS, "Why?", INDEX, 3)),
        ("generate", prompts.generate(TASKS, CONVERSATION, "Why?", SOURCES, max_chars=9, shorten=True)),
        ("verify", prompts.verify(TASKS, CONVERSATION, "Because.", SOURCES)),
    ]
    assert usage.calls == {"gate": 1, "select": 1, "generate": 1, "verify": 1}


async def test_what_the_asker_raises_is_passed_on() -> None:
    assistant = ModelAssistant(ScriptedAsker(TimeoutError("no answer")), TASKS)
    with pytest.raises(TimeoutError, match="no answer"):
        await assistant.gate(CONVERSATION, Usage())
