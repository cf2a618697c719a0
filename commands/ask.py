"""`--ask`: one question, answered in the terminal, with the path to the answer."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from assembly.asking import conversation_of, open_answering
from assembly.knowledge import temporary_index
from assembly.running import run_async
from commands.exit_codes import DONE, FAILED
from model.outcomes import OutcomeKind
from settings import Settings
from streams.answers import AIResult


def run(settings: Settings, options: argparse.Namespace) -> int:
    """`commands.dispatch.Verb`."""
    return ask(settings, options.ask, record=options.llm_record, replay=options.llm_replay, guild_id=options.guild)


def ask(
    settings: Settings, question: str, *, record: Path | None, replay: Path | None, guild_id: int | None = None
) -> int:
    """Print the path to stderr and the answer, or that there is none, to stdout. Gives the exit code: 1 when a step
    failed. `guild_id`: the server in which it is asked; None: one that has nothing of its own.
    """
    with temporary_index(settings) as indexed:
        result = run_async(_ask(indexed, question, record, replay, guild_id))
    for step, decision in result.debug.items():
        print(f"{step}: {json.dumps(decision, ensure_ascii=False)}", file=sys.stderr)  # noqa: T201 (as said)
    print(result.reply_text if result.should_reply else "(no answer)")  # noqa: T201 (as said)
    return FAILED if result.debug["result"] == OutcomeKind.FAILED else DONE


async def _ask(
    settings: Settings, question: str, record: Path | None, replay: Path | None, guild_id: int | None
) -> AIResult:
    async with open_answering(settings, record=record, replay=replay, guild_id=guild_id) as answering:
        return await answering.answerer.generate_reply(conversation_of(settings, question))


async def replies_to(settings: Settings, questions: Sequence[str]) -> list[str]:
    """The text of the reply to each of `questions`, each asked by itself; empty where there is none."""
    async with open_answering(settings) as answering:
        asked = [conversation_of(settings, question) for question in questions]
        results = [await answering.answerer.generate_reply(each) for each in asked]
    return [result.reply_text or "" for result in results]
