"""`--ask`: answers one question in the terminal: the answer, how a channel would see it, and the steps to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from assembly.answering import AS_CONFIGURED, ModelOptions, conversation_of, open_answering
from assembly.running import run_async
from assembly.sources import temporary_index
from commands.arguments import DONE, FAILED
from model.outcomes import OutcomeKind
from model.steps import DECISIONS
from model.words import without_invisible
from services.search import Level
from services.telemetry import number_of
from settings import Settings
from streams.answerer import AIResult, RequestContext


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--ask`. Returns the exit code."""
    return ask(settings, options.ask, ModelOptions(options.llm_record, options.llm_replay), guild_id=options.guild)


def ask(settings: Settings, question: str, models: ModelOptions = AS_CONFIGURED, *, guild_id: int | None = None) -> int:
    """Print the answer to stdout, or that there is none; to stderr what the bot would do if it were not addressed, and
    each step, without what a terminal would obey. Returns the exit code: 1 if a step failed. `guild_id`: the server of
    the question; None: any server without its own knowledge.
    """
    with temporary_index(settings) as indexed:
        result, unaddressed = run_async(_ask(indexed, question, models, guild_id))
    answer = result.reply_text or "" if result.should_reply else "(no answer)"
    print(without_invisible(answer), flush=True)  # noqa: T201 (the output of the command)
    print(f"\n{without_invisible(_in_a_channel(result, unaddressed))}\n", file=sys.stderr)  # noqa: T201 (the output of the command)
    for line in _step_lines(result.debug):
        print(without_invisible(line), file=sys.stderr)  # noqa: T201 (the output of the command)
    return FAILED if result.debug["result"] == OutcomeKind.FAILED else DONE


async def _ask(
    settings: Settings, question: str, models: ModelOptions, guild_id: int | None
) -> tuple[AIResult, AIResult | None]:
    """Return the result if the bot is addressed, and if it is not; the latter is None if it would need a model."""
    async with open_answering(settings, models, guild_id=guild_id) as answering:
        asked = conversation_of(settings, question)
        result = await answering.answerer.generate_reply(asked)
        if answering.llm is not None:
            return result, None
        return result, await answering.answerer.generate_reply(asked, RequestContext(addressed=False))


def _in_a_channel(result: AIResult, unaddressed: AIResult | None) -> str:
    """Describe what a channel would show where the bot is not addressed. With a model, only the level decides."""
    if result.debug["result"] == OutcomeKind.FAILED:
        return "A step failed: in a channel nothing would be posted."
    posted = result.debug.get("level") == Level.ANSWER if unaddressed is None else unaddressed.should_reply
    if not posted:
        return "In a channel, not addressed: silent. Addressed, it says the above."
    if unaddressed is None or unaddressed.reply_text == result.reply_text:
        return "In a channel, not addressed: the same."
    return f"In a channel, not addressed:\n{unaddressed.reply_text}"


def _step_lines(debug: Mapping[str, Any]) -> Iterator[str]:
    """Describe each step of the answer chain in a line."""
    for name, decision in debug.items():
        known = DECISIONS.get(name)
        if known is not None and known.describe is not None:
            yield f"{name:<9} {known.describe(decision)}"
    calls = debug["llm_calls"]
    ended = f"{debug['result']}, {debug['reason']}" if debug["reason"] else f"{debug['result']} ({debug.get('level')})"
    yield f"{'end':<9} {ended}; {debug['latency_ms']:,} ms, {number_of(calls, 'call')} of a model{_tokens(debug)}"


def _tokens(debug: Mapping[str, Any]) -> str:
    tokens = ", ".join(f"{name} {count:,}" for name, count in debug["tokens"].items())
    return f"; tokens: {tokens}" if tokens else ""
