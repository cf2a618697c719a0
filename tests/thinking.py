"""A model that takes its time, and whose answers follow from the words of each request alone."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel

from services.llm.prompting import Prompt
from services.llm.structured import AskOptions
from services.llm.usage import Usage

M = TypeVar("M", bound=BaseModel)

_SUBJECT = re.compile(r"about ([a-z]+)")
_TOPIC = re.compile(r"team:([a-z]+-[0-9a-f]{4})\.txt")
_ID = re.compile(r"\bqa_[0-9._]+[0-9]")


@dataclass
class Thinking:
    """Implements `services.llm.Asker`. A pair "about backups" joins the first topic of the index whose name begins with
    that word, or founds one; about one in ten is skipped, and about one in ten replaces another. Names, descriptions
    and choices change with every letter of the request, so that a library shows what its model was shown.

    Attributes:
        seconds: what each call takes, by its number.
        calls: their steps. `spent`: what they took, cancelled ones too. `most`: under way at one time.
    """

    seconds: Callable[[int], float] = lambda _number: 0.1
    calls: list[str] = field(default_factory=list[str])
    spent: float = 0.0
    most: int = 0
    busy: int = 0

    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **more: Unpack[AskOptions]) -> M:
        seconds = self.seconds(len(self.calls))
        self.calls.append(step)
        self.spent += seconds
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.busy -= 1
        usage.add(step, prompt_tokens=1, completion_tokens=1)
        return model.model_validate(said(step, prompt.user))


def said(step: str, text: str) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    chance = int(digest[:8], 16) % 10
    if step == "summarise":
        return {"summary": f"Described as {digest[:12]}."}
    if step == "integrate":
        return {"skip": chance == 0, "remove_ids": _ID.findall(text)[:1] if chance == 1 else []}
    assert step == "classify"
    subject = _SUBJECT.findall(text)[-1]
    known = [name for name in _TOPIC.findall(text) if name.startswith(f"{subject}-")]
    return {"skip": subject == "chatter", "topic_name": known[0] if known else f"{subject}-{digest[:4]}"}
