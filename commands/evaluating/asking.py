"""The questions of a file, put to the whole chain as it answers in Discord, several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import reactivex as rx
from reactivex import operators as ops

from assembly import Unusable
from assembly.answering import library_of, server_library
from assembly.asking import open_answering
from commands.evaluating.judging import QuestionResult
from commands.evaluating.questions import EvalQuestion
from model.conversations import Conversation, Role, Turn
from model.outcomes import OutcomeKind
from operators import map_async
from services.assistant import key_of
from services.knowledge import IndexEntry
from services.llm import Rejected, TimedOut, Unavailable
from settings import Settings
from streams.answers import AIResult, RequestContext

MOST_FAILURES = 3
"""So many failures in a row tell that the others would fail as well."""

_STEPS = ("gate", "select", "load", "generate", "verify")
_NOT_THERE = Unavailable.__name__
_CANNOT_SERVE = (_NOT_THERE, TimedOut.__name__, Rejected.__name__)


class ModelUnavailable(Exception):
    """The model cannot serve: the message is the reason of the last failure."""


async def asked(
    settings: Settings,
    questions: Sequence[EvalQuestion],
    on_got: Callable[[EvalQuestion, QuestionResult], object],
    *,
    record: Path | None,
    replay: Path | None,
    guild_id: int | None = None,
) -> None:
    """Ask all questions, each on its own, and call `on_got` with each result as it is done. `guild_id`: as for
    `open_answering`.

    Raises:
        ModelUnavailable: one question after another fails, or the model is not reached for the first.
        UnreadableExchanges, OSError: as `assembly.llm.open_llm`; what `on_got` raises.
    """
    failures = 0

    def note(question: EvalQuestion, got: QuestionResult) -> None:
        nonlocal failures
        on_got(question, got)
        why = (got.reason or "") if got.outcome is OutcomeKind.FAILED else ""
        failures = failures + 1 if why.startswith(_CANNOT_SERVE) else 0
        if failures == MOST_FAILURES or (question is questions[0] and why.startswith(_NOT_THERE)):
            raise ModelUnavailable(why)

    async with open_answering(settings, record=record, replay=replay, guild_id=guild_id) as answering:

        async def ask(question: EvalQuestion) -> tuple[EvalQuestion, QuestionResult]:
            turn = Turn(Role.USER, question.text, asked_now=True)
            context = RequestContext(addressed=question.addressed)
            return question, question_result(await answering.answerer.generate_reply(Conversation((turn,)), context))

        def failed(question: EvalQuestion, error: Exception) -> tuple[EvalQuestion, QuestionResult]:
            return question, QuestionResult(outcome=OutcomeKind.FAILED, reason=type(error).__name__)

        if questions:
            # Alone: what all of them share is made ready, and one line tells that a model is not there.
            note(*await ask(questions[0]))
        most = settings.ai_response.max_concurrent_answers
        await rx.from_iterable(questions[1:]).pipe(
            map_async(ask, on_failure=failed, max_concurrent=most),
            ops.do_action(lambda each: note(*each)),
            ops.last_or_default(None),
        )


def question_result(result: AIResult) -> QuestionResult:
    debug: Mapping[str, Any] = result.debug
    outcome, tokens = OutcomeKind(debug["result"]), dict[str, tuple[int, int]]()
    for name, count in debug["tokens"].items():
        step, _, kind = name.rpartition(".")
        asked_for, said = tokens.get(step, (0, 0))
        tokens[step] = (count, said) if kind == "prompt" else (asked_for, count)
    step = None if result.should_reply else next((each for each in reversed(_STEPS) if each in debug), None)
    return QuestionResult(
        outcome=outcome,
        level=debug.get("level"),
        reason=debug["reason"],
        step=step,
        why="" if step is None or outcome is not OutcomeKind.SKIPPED else _why(step, debug),
        sources=result.citations,
        reply=result.reply_text or "",
        llm_calls=debug["llm_calls"],
        tokens=tokens,
    )


def _why(step: str, path: Mapping[str, Any]) -> str:
    """Explain the end of an answer from the step at which it ended."""
    if step == "gate":
        return path["gate"]["reason"]
    if step == "verify":
        return "; ".join(path["verify"]["issues"])
    ranked = path["select"]["ranked"]
    return f"the search finds {ranked[0][0]} ({path['point']['confidence']:.2f})" if ranked and "point" in path else ""


async def index_of(settings: Settings, guild_id: int | None = None) -> Sequence[IndexEntry]:
    """Load the index of a server, or the shared one. Raises Unusable: it is empty."""
    shared = library_of(settings)
    index = await (shared if guild_id is None else server_library(settings, guild_id, shared)[1]).index()
    if not index:
        remedy = "app.py --init-kb builds it"
        raise Unusable(f"kb.index_path: {settings.kb.index_path} holds nothing to answer from; {remedy}")
    return index


def key_of_run(settings: Settings, index: Sequence[IndexEntry]) -> str:
    """Make a key that changes with everything replies depend on: model, prompts, limits, search and index."""
    chosen = settings.model_dump_json(include=_DECIDES, exclude=_DECIDES_NOTHING)
    return key_of(chosen, *(f"{entry.id} {entry.description}" for entry in index))


_DECIDES = {"ai_response": True, "search": True, "kb": {"source_base_url", "internal_topics"}}
_DECIDES_NOTHING = {
    "ai_response": {
        "llm": {"api_key", "timeout_seconds", "max_retries", "retry_timeouts", "price_per_million"},
        "max_concurrent_answers": True,
        "max_waiting_answers": True,
        "graph_timeout_seconds": True,
    }
}
"""An operator may change these to get a run to its end."""
