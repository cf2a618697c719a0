"""`--eval`, from the options to the exit code."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from assembly.knowledge import temporary_index
from assembly.redaction import redactor_of
from assembly.reports import prices_of
from assembly.running import run_async, terminated_as_interrupted
from commands.evaluating.asking import ModelUnavailable, asked, index_of, key_of_run
from commands.evaluating.comparing import Change, Comparison, compared
from commands.evaluating.from_votes import write_from_votes
from commands.evaluating.judging import figures, fits
from commands.evaluating.questions import QuestionFile, read_questions
from commands.evaluating.runs import SavedRun, read_run, render_summary
from commands.evaluating.showing import EvalReport, eval_document, spent_in_words
from commands.evaluating.underway import EvalRun, unfinished
from commands.exit_codes import DONE, FAILED
from commands.progress import counted
from reporting.reading import TimeSpan
from reporting.rendering import markdown, show
from services.knowledge import IndexEntry
from services.telemetry import number_of
from settings import Settings

SAVE, BASELINE = "--save", "--baseline"
DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """`save`: where the run is kept; `baseline`: an earlier one to compare with; `guild_id`: the server in which all is
    asked, None: one that has nothing of its own.
    """

    file: Path
    save: Path | None = None
    baseline: Path | None = None
    as_json: bool = False
    llm_record: Path | None = None
    llm_replay: Path | None = None
    guild_id: int | None = None


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--eval`. Gives the exit code."""
    if options.from_votes:
        until = time.time()
        period = TimeSpan(until - options.since * DAY if options.since else 0.0, until)
        out = options.from_votes if isinstance(options.from_votes, Path) else None
        _tell(write_from_votes(settings, period, out) + (f": {out}" if out is not None else ""))
        return DONE
    chosen = EvalOptions(
        file=options.eval,
        save=options.save,
        baseline=options.baseline,
        as_json=options.json,
        llm_record=options.llm_record,
        llm_replay=options.llm_replay,
        guild_id=options.guild,
    )
    with terminated_as_interrupted():
        return evaluate(settings, chosen)


def evaluate(settings: Settings, options: EvalOptions) -> int:
    """Ask all questions, print what they came to, and give the exit code: 1 where a threshold is missed, or something
    failed or was cut off.
    """
    server = settings if options.guild_id is None else settings.servers[options.guild_id]
    addressed = server.discord.reply_mode == "mention"
    file = read_questions(options.file, redactor_of(settings), addressed=addressed)
    baseline = None if options.baseline is None else read_run(options.baseline, BASELINE)
    earlier = unfinished(options.save, SAVE)
    asking = EvalRun(file.questions, prices_of(settings).answering, options.save)
    began = time.monotonic()
    try:
        with temporary_index(settings) as indexed:
            index = run_async(_evaluate(indexed, asking, earlier, options))
    except KeyboardInterrupt:
        return _cut_off(asking, "interrupted")
    except ModelUnavailable as error:
        return _cut_off(asking, f"the model cannot answer ({error})")
    report = EvalReport(
        name=options.file.name,
        judged=asking.judged,
        least=file.least,
        figures=figures(asking.judged),
        todo=len(file.todo),
        resumed=asking.resumed,
        not_indexed=not_indexed(file, index),
        seconds=time.monotonic() - began,
        spent=asking.spent,
        baseline=None if baseline is None else compared(asking.judged, baseline.got),
    )
    asking.finish(_summary(report, compare=False))
    if options.as_json:
        print(*asking.lines, _summary(report), sep="\n")  # noqa: T201 (the command's output)
    else:
        _print(report)
    if report.below:
        _tell(f"below the thresholds of {options.file}: {report.below}")
    return FAILED if report.below or asking.failed else DONE


async def _evaluate(
    settings: Settings, asking: EvalRun, earlier: SavedRun, options: EvalOptions
) -> Sequence[IndexEntry]:
    guild_id = options.guild_id
    index = await index_of(settings, guild_id)
    asking.key = key_of_run(settings if guild_id is None else settings.servers[guild_id], index)
    asking.resume(earlier)
    with counted(Console(stderr=True), lambda: asking.count):
        record, replay = options.llm_record, options.llm_replay
        await asked(settings, asking.left, asking.add, record=record, replay=replay, guild_id=guild_id)
    return index


def not_indexed(file: QuestionFile, index: Iterable[IndexEntry]) -> list[str]:
    """List expected sources that the index does not contain."""
    ids = [entry.id for entry in index]
    expected = dict.fromkeys(source for question in file.questions for source in question.sources)
    return [source for source in expected if not any(fits(source, each) for each in ids)]


def _summary(report: EvalReport, *, compare: bool = True) -> str:
    spent = report.spent
    spent_fields = {
        "llm_calls": spent.calls,
        "tokens": [spent.prompt, spent.completion],
        "cost": None if spent.money is None or not spent.calls else round(spent.money, 6),
    }
    more: dict[str, object] = {"todo": report.todo, "not_indexed": list(report.not_indexed)}
    if compare and report.baseline is not None:
        more["baseline"] = _changes(report.baseline)
    return render_summary(report.figures, report.least, spent_fields, more)


def _changes(found: Comparison) -> dict[str, object]:
    def told(changes: Sequence[Change]) -> list[object]:
        return [
            {
                "question": each.question.text,
                "addressed": each.question.addressed,
                "baseline": each.before,
                "now": each.after,
            }
            for each in changes
        ]

    return {"better": told(found.better), "worse": told(found.worse), "new": found.new, "gone": found.gone}


def _cut_off(asking: EvalRun, why: str) -> int:
    done = f"{len(asking.got) - asking.failed} of {number_of(len(asking.questions), 'question')} done"
    said = [f"{why}: {done}."]
    if asking.spent.calls:
        said.append(spent_in_words(asking.spent))
    if asking.save is not None:
        said.append(f"{asking.save} keeps them; the same command goes on from there.")
    else:
        said.append(f"Nothing is kept; with {SAVE} FILE the same command would go on from there.")
    _tell(" ".join(said))
    return FAILED


def _print(report: EvalReport) -> None:
    blocks = list(eval_document(report))
    if sys.stdout.isatty():
        show(blocks, Console())
    else:
        print(markdown(blocks), end="")  # noqa: T201 (the command's output)


def _tell(line: str) -> None:
    print(f"app.py: {line}", file=sys.stderr)  # noqa: T201 (for whoever waits)
