"""`--eval`: reads the questions, asks several at once, and prints or saves the result."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import reactivex as rx
from reactivex import operators as ops

from assembly import Unusable
from assembly.answering import ModelOptions, open_answering, server_libraries
from assembly.reports import prices_of
from assembly.running import run_async, terminated_as_interrupted
from assembly.sources import temporary_index
from commands.arguments import DONE, FAILED, print_error
from commands.evaluating.questions import EvalQuestion, QuestionFile, read_questions, write_from_votes
from commands.evaluating.runs import (
    SAVE,
    EvalReport,
    EvalRun,
    QuestionResult,
    SavedRun,
    compare,
    eval_document,
    matches_source,
    measure,
    read_run,
    read_unfinished,
    render_summary,
    spent_in_words,
)
from commands.progress import show_progress
from commands.report import choose_period, print_blocks
from dataflow import map_async
from model.conversations import Conversation, Role, Turn
from model.outcomes import OutcomeKind
from model.steps import DECISIONS
from services.assistant import description_key
from services.knowledge import IndexEntry
from services.llm import PromptRefused, Rejected, TimedOut, Unavailable
from services.redaction import Redactor
from services.telemetry import number_of
from settings import Settings
from streams.answerer import AIResult, RequestContext

_ENDS = tuple(name for name, decision in DECISIONS.items() if decision.can_end_answer)
MAX_FAILURES = 3
"""After this many failures in a row, the other questions are not asked."""

_NOT_THERE = Unavailable.__name__
_CANNOT_SERVE = (_NOT_THERE, TimedOut.__name__, Rejected.__name__, PromptRefused.__name__)


class ModelUnavailable(Exception):
    """The model cannot be used. The message is the reason of the last failure."""


async def ask_all(
    settings: Settings,
    questions: Sequence[EvalQuestion],
    on_result: Callable[[EvalQuestion, QuestionResult], object],
    models: ModelOptions,
    guild_id: int | None = None,
) -> None:
    """Ask all questions, each by itself, and call `on_result` with each result as soon as it is there. `guild_id`: as
    for `open_answering`.

    Raises:
        ModelUnavailable: several questions in a row fail, or the model cannot be reached for the first.
        UnreadableExchanges, OSError: as `assembly.answering.open_llm`. Exceptions of `on_result` are passed on.
    """
    failures = 0

    def note(question: EvalQuestion, result: QuestionResult) -> None:
        nonlocal failures
        on_result(question, result)
        why = (result.reason or "") if result.outcome is OutcomeKind.FAILED else ""
        failures = failures + 1 if why.startswith(_CANNOT_SERVE) else 0
        if failures == MAX_FAILURES or (question is questions[0] and why.startswith(_NOT_THERE)):
            raise ModelUnavailable(why)

    async with open_answering(settings, models, guild_id=guild_id) as answering:

        async def ask(question: EvalQuestion) -> tuple[EvalQuestion, QuestionResult]:
            turn = Turn(Role.USER, question.text, asked_now=True)
            context = RequestContext(addressed=question.addressed)
            return question, question_result(await answering.answerer.generate_reply(Conversation((turn,)), context))

        def failed(question: EvalQuestion, error: Exception) -> tuple[EvalQuestion, QuestionResult]:
            return question, QuestionResult(outcome=OutcomeKind.FAILED, reason=type(error).__name__)

        if questions:
            # The first one alone prepares shared data, and shows in one line if the model is missing.
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
    step, why = None, ""
    if result.should_reply:
        why = _describe_changes(debug)
    else:
        step = next((each for each in reversed(_ENDS) if each in debug), None)
        why = _describe_end(step, debug) if outcome is OutcomeKind.SKIPPED else ""
    return QuestionResult(
        outcome=outcome,
        level=debug.get("level"),
        reason=debug["reason"],
        step=step,
        why=why,
        sources=result.citations,
        reply=result.reply_text or "",
        llm_calls=debug["llm_calls"],
        tokens=tokens,
    )


def _describe_changes(path: Mapping[str, Any]) -> str:
    """Describe the changes that steps made to an answer."""
    lines = {name: info.describe for name, info in DECISIONS.items() if info.alters_answer and name in path}
    return "; ".join(f"{name}: {describe(path[name])}" for name, describe in lines.items() if describe is not None)


def _describe_end(step: str | None, path: Mapping[str, Any]) -> str:
    """Explain the end of an answer from the step at which it ended."""
    if step is None:
        return ""
    if field := DECISIONS[step].reason_field:
        reason = path[step][field]
        return reason if isinstance(reason, str) else "; ".join(reason)
    ranked = path["select"]["ranked"]
    return f"the search finds {ranked[0][0]} ({path['point']['confidence']:.2f})" if ranked and "point" in path else ""


async def index_of(settings: Settings, guild_id: int | None = None) -> Sequence[IndexEntry]:
    """Load the index of a server, or the shared one. Raises Unusable: it is empty."""
    index = await server_libraries(settings)[guild_id].all.index()
    if not index:
        remedy = "app.py --init-kb builds it"
        raise Unusable(f"kb.index_path: {settings.kb.index_path} holds nothing to answer from; {remedy}")
    return index


def key_of_run(settings: Settings, index: Sequence[IndexEntry]) -> str:
    """Make a key that changes with everything replies depend on: model, prompts, limits, search and index."""
    chosen = settings.model_dump_json(include=_KEY_SETTINGS, exclude=_OTHER_SETTINGS)
    return description_key(chosen, *(f"{entry.id} {entry.description}" for entry in index))


_KEY_SETTINGS = {"ai_response": True, "search": True, "kb": {"source_base_url", "internal_topics"}}
_OTHER_SETTINGS = {
    "ai_response": {
        "llm": {"api_key", "timeout_seconds", "max_retries", "retry_timeouts", "price_per_million"},
        "max_concurrent_answers": True,
        "max_waiting_answers": True,
        "graph_timeout_seconds": True,
    }
}
"""Settings on which no reply depends: an operator may change them to finish a run."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--eval`. Returns the exit code."""
    if options.from_votes:
        settings, period = choose_period(settings, options.since, options.data)
        out = options.from_votes if isinstance(options.from_votes, Path) else None
        print_error(write_from_votes(settings, period, out, options.guild) + (f": {out}" if out is not None else ""))
        return DONE
    with terminated_as_interrupted():
        return evaluate(settings, options)


def evaluate(settings: Settings, options: argparse.Namespace) -> int:
    """Ask all questions and print the results. Returns the exit code: 1 if a threshold is missed, or on a failure."""
    path: Path = options.eval
    addressed = settings.servers[options.guild].discord.reply_mode == "mention"
    file = read_questions(path, Redactor(settings.secrets), addressed=addressed)
    baseline = None if options.baseline is None else read_run(options.baseline, "--baseline")
    earlier = read_unfinished(options.save)
    asking = EvalRun(file.questions, prices_of(settings).answering, options.save)
    models = ModelOptions(options.llm_record, options.llm_replay)
    began = time.monotonic()
    try:
        with temporary_index(settings) as indexed:
            index = run_async(_evaluate(indexed, asking, earlier, models, options.guild))
    except KeyboardInterrupt:
        return _cut_off(asking, "interrupted")
    except ModelUnavailable as error:
        return _cut_off(asking, f"the model cannot answer ({error})")
    report = EvalReport(
        name=path.name,
        file=file,
        run=asking,
        figures=measure(asking.judged),
        not_indexed=not_indexed(file, index),
        seconds=time.monotonic() - began,
    )
    asking.finish(render_summary(report))
    if baseline is not None:
        report = replace(report, baseline=compare(asking.judged, baseline.results))
    if options.json:
        print(*asking.lines, render_summary(report), sep="\n")  # noqa: T201 (the command's output)
    else:
        print_blocks(list(eval_document(report)))
    if report.below:
        print_error(f"below the thresholds of {path}: {report.below}")
    return FAILED if report.below or asking.failed else DONE


async def _evaluate(
    settings: Settings, asking: EvalRun, earlier: SavedRun, models: ModelOptions, guild_id: int | None
) -> Sequence[IndexEntry]:
    index = await index_of(settings, guild_id)
    asking.key = key_of_run(settings.servers[guild_id], index)
    asking.resume(earlier)
    with show_progress(lambda: asking.count):
        await ask_all(settings, asking.left, asking.add, models, guild_id)
    return index


def not_indexed(file: QuestionFile, index: Iterable[IndexEntry]) -> list[str]:
    """List expected sources that the index does not contain."""
    ids = [entry.id for entry in index]
    expected = dict.fromkeys(source for question in file.questions for source in question.sources)
    return [source for source in expected if not any(matches_source(source, each) for each in ids)]


def _cut_off(asking: EvalRun, why: str) -> int:
    done = f"{len(asking.results) - asking.failed} of {number_of(len(asking.questions), 'question')} done"
    said = [f"{why}: {done}."]
    if asking.spent.calls:
        said.append(spent_in_words(asking.spent))
    if asking.save is not None:
        said.append(f"{asking.save} keeps them; the same command goes on from there.")
    else:
        said.append(f"Nothing is kept; with {SAVE} FILE the same command would go on from there.")
    return print_error(" ".join(said))
