"""What `ai_response.speculate` saves and costs: the same questions with it and without.

    python -m benchmarks.speculation [--gate 1] [--select 1] [--generate 3] [--reworded 0.5]

The questions are those of the tests about the knowledge base of the examples, a third of which it cannot answer, and
as many lines of chatter. The gate lets all questions through and no chatter, and puts a share of the questions in other
words: its own without the first two. The backend without a model selects and answers. Each step takes its virtual
seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assembly.answering import (
    addresses_of,
    answer_rules,
    assistant_of,
    library_of,
    open_embedder,
    open_search,
    point_rules,
)
from benchmarks.day import sentence
from benchmarks.evaluation.asking import ROOT, prepared
from benchmarks.evaluation.questions import read
from benchmarks.verdicts import verdict
from clock import VirtualLoop
from model.conversations import Conversation, Role, Turn
from services.assistant import Assistant, GatingResult
from services.assistant.answering import AnswerResult, SelectionResult
from settings import Settings, load
from streams.answerer import AIResult, Answerer
from streams.chain import ServerContext

DOCUMENTS = ROOT / "examples" / "knowledge-base" / "sources"
QUESTIONS = ROOT / "tests" / "evaluation" / "questions" / "questions.jsonl"
CHATTER = "chatter"


@dataclass
class Thinking:
    """An assistant that takes its time, and puts some questions in other words."""

    inner: Assistant
    seconds: dict[str, float]
    reworded: float
    calls: Counter[str] = field(default_factory=Counter[str])

    async def gate(self, conversation: Conversation, *_args: Any, **_known: Any) -> GatingResult:
        await self._think("gate")
        text = conversation.asked_text
        if text.startswith(CHATTER):
            return GatingResult(is_question=False, is_answerable=False, rewrite_query=None, reason="chatter")
        dice = random.Random(text)  # noqa: S311 (not a secret)
        other = " ".join(text.split()[2:]) if dice.random() < self.reworded else None
        return GatingResult(is_question=True, is_answerable=True, rewrite_query=other, reason="a question")

    async def select(self, *args: Any, **known: Any) -> SelectionResult:
        await self._think("select")
        return await self.inner.select(*args, **known)

    async def generate(self, *args: Any, **known: Any) -> AnswerResult:
        await self._think("generate")
        return await self.inner.generate(*args, **known)

    async def _think(self, step: str) -> None:
        self.calls[step] += 1
        await asyncio.sleep(self.seconds[step])


@dataclass(frozen=True)
class Found:
    answers: Sequence[AIResult]
    seconds: Sequence[float]
    """Of each that was answered."""
    calls: Counter[str]

    def line(self, name: str) -> str:
        calls = ", ".join(f"{count} {step}" for step, count in self.calls.items())
        return f"{name:<12} {statistics.median(self.seconds):5.2f} s to an answer (median); calls: {calls}"


async def asked(settings: Settings, texts: Sequence[str], seconds: dict[str, float], reworded: float) -> Found:
    library = library_of(settings)
    async with open_embedder("packaged") as embedder, open_search(settings, library, embedder) as search:
        thinking = Thinking(assistant_of(settings, search, None), seconds, reworded)
        assistant: Any = thinking
        answerer = Answerer(
            ServerContext(
                assistant=assistant,
                library=library,
                search=search,
                addresses=addresses_of(settings),
                pointing=point_rules(settings),
            ),
            answer_rules(settings),
        )
        answers, took = list[AIResult](), list[float]()
        for text in texts:
            began = asyncio.get_running_loop().time()
            result = await answerer.generate_reply(Conversation((Turn(Role.USER, text, asked_now=True),)))
            answers.append(result)
            if result.should_reply:
                took.append(asyncio.get_running_loop().time() - began)
    return Found(answers, took, thinking.calls)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for step, seconds in (("gate", 1.0), ("select", 1.0), ("generate", 3.0)):
        parser.add_argument(f"--{step}", type=float, default=seconds, help="virtual seconds of a call")
    parser.add_argument("--reworded", type=float, default=0.5, help="share of the questions put in other words")
    options = parser.parse_args()
    seconds = {"gate": options.gate, "select": options.select, "generate": options.generate}
    dice = random.Random("chatter")  # noqa: S311 (not a secret)
    questions = [question.text for question in read(QUESTIONS)]
    texts = questions + [f"{CHATTER}: {sentence(dice)}" for _ in questions]
    found: dict[bool, Found] = {}
    with tempfile.TemporaryDirectory() as folder:
        for speculate in (False, True):
            config = prepared(DOCUMENTS, Path(folder), {"ai_response": {"speculate": speculate}})
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                found[speculate] = runner.run(asked(load(config), texts, seconds, options.reworded))
            print(found[speculate].line("speculating" if speculate else "in turn"))
    plain, sooner = found[False], found[True]
    other = sum(one.reply_text != two.reply_text for one, two in zip(plain.answers, sooner.answers, strict=True))
    more = sooner.calls["select"] - plain.calls["select"]
    print(f"{more} more selections for {len(texts)} messages; {other} of {len(plain.seconds)} replies are others")
    saved = statistics.median(plain.seconds) - statistics.median(sooner.seconds)
    best = min(options.gate, options.select)
    return verdict((0 < saved <= best, f"{saved:.2f} s saved of each answer (median), at most {best:.2f}"))


if __name__ == "__main__":
    sys.exit(main())
