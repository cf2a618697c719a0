"""`--ask`: one question, answered in the terminal, with the path to the answer."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from assembly.graph_parts import answer_rules, library_of, redactor_of
from assembly.llm import assistant_for
from assembly.temporary_index import temporary_index
from model.conversations import Conversation, Role, Turn
from model.outcomes import OutcomeKind
from settings import Settings
from streams.single_answer import AIResult, Answerer


def ask(settings: Settings, question: str, *, record: Path | None, replay: Path | None) -> int:
    """Print the answer, or why there is none. Gives the exit code: 1 when a step failed."""
    with temporary_index(settings) as indexed:
        return asyncio.run(_ask(indexed, question, record, replay))


async def _ask(settings: Settings, question: str, record: Path | None, replay: Path | None) -> int:
    library = library_of(settings)
    text = redactor_of(settings).text(question.strip())
    conversation = Conversation((Turn(Role.USER, text, asked_now=True),))
    async with assistant_for(settings.ai_response, library, record=record, replay=replay) as assistant:
        result = await Answerer(assistant, library, answer_rules(settings)).generate_reply(conversation)
    show(result)
    return 1 if result.debug["result"] == OutcomeKind.FAILED else 0


def show(result: AIResult) -> None:
    """The path to stderr, the answer to stdout, so that it can be piped on."""
    for step, decision in result.debug.items():
        print(f"{step}: {json.dumps(decision, ensure_ascii=False)}", file=sys.stderr)  # noqa: T201 (as said)
    print(result.reply_text if result.should_reply else "(no answer)")  # noqa: T201 (as said)
