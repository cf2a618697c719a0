"""`--ask`: one question, answered in the terminal, with the path to the answer."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from assembly.answering import answer_rules, library_of, server_library
from assembly.knowledge import temporary_index
from assembly.llm import assistant_of, open_llm
from assembly.redaction import redactor_of
from assembly.running import run_async
from assembly.searching import open_embedder, open_search, point_rules
from commands.exit_codes import DONE, FAILED
from model.conversations import Conversation, Role, Turn
from model.outcomes import OutcomeKind
from settings import Settings
from streams.answers import AIResult, Answerer


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
    async with _answerer(settings, record=record, replay=replay, guild_id=guild_id) as answerer:
        return await answerer.generate_reply(_conversation(settings, question))


async def replies_to(settings: Settings, questions: Sequence[str]) -> list[str]:
    """The text of the reply to each of `questions`, each asked by itself; empty where there is none."""
    async with _answerer(settings) as answerer:
        results = [await answerer.generate_reply(_conversation(settings, question)) for question in questions]
    return [result.reply_text or "" for result in results]


@asynccontextmanager
async def _answerer(
    settings: Settings, *, record: Path | None = None, replay: Path | None = None, guild_id: int | None = None
) -> AsyncGenerator[Answerer]:
    """What answers single questions from the knowledge base, for as long as the block lasts."""
    library = library_of(settings)
    async with (
        open_llm(settings, settings.ai_response.llm, record=record, replay=replay) as llm,
        open_embedder(settings.search.embeddings) as embedder,
        open_search(settings, library, embedder) as search,
    ):
        if guild_id is None:
            yield Answerer(assistant_of(settings, search, llm), library, search, answer_rules(settings))
            return
        server = settings.servers[guild_id]
        own, both = server_library(settings, guild_id, library)
        rules = replace(answer_rules(server), pointing=point_rules(server, settings))
        async with open_search(server, own, embedder, beside=search) as searching:
            yield Answerer(assistant_of(server, searching, llm, settings), both, searching, rules)


def _conversation(settings: Settings, question: str) -> Conversation:
    text = redactor_of(settings).text(question.strip())
    return Conversation((Turn(Role.USER, text, asked_now=True),))
