"""What is answered of questions that people have about real documentations, and how quiet the bot is among others.

    python -m benchmarks.evaluation.answers [FOLDER…]                  the figures, beside what is wanted
    python -m benchmarks.evaluation.answers --signals FILE [FOLDER…]   what the search shows of each question
    python -m benchmarks.evaluation.answers --fit FILE                 the weights that tell its confidence from that

FOLDER has a `questions.jsonl`; its documents are in the folder of the same name in the one that `EVAL_DOCUMENTS` names.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from benchmarks.evaluation import data, excerpts, fitting, questions, signals
from benchmarks.evaluation.asking import counted, prepared, replayed
from benchmarks.evaluation.conversations import share
from benchmarks.evaluation.judging import Counts
from benchmarks.verdicts import verdict

CHATTED_OVER = "uv"
"""The documentation over which the chats about other things are played."""
_MAX_FALSE = Fraction("0.12")
_MAX_CHAT_REPLIES = Fraction(8, 1_200)
_LEAST_SHOWN, _MAX_CHARS = Fraction("0.95"), 7_500
"""Of what a model is shown: excerpts that hold the words, and characters for one question."""


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.answers", description="Figures of answered questions.")
    cli.add_argument("--signals", type=Path, metavar="FILE", help="write what the search shows of each question")
    cli.add_argument("--fit", type=Path, metavar="FILE", help="fit the weights of the confidence to such a file")
    cli.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="folders with a questions.jsonl")
    options = cli.parse_args(arguments)
    if options.fit is not None:
        return fitting.main(options.fit)
    named: list[Path] = options.folders or list(data.answers().values())
    projects = {folder: documents for folder in named if (documents := data.documents_of(folder)) is not None}
    for folder in named:
        if folder not in projects:
            print(f"skipped: {folder.name}: no documents; set {data.DOCUMENTS} to a folder that holds {folder.name}")
    if not projects:
        print(f"skipped: no questions with documents; {data.VARIABLE} and {data.DOCUMENTS} name their folders")
        return 0
    if options.signals is not None:
        return asyncio.run(signals.written(projects, options.signals, chats()))
    return evaluated(projects)


def chats() -> list[Path]:
    return sorted((data.folder() / "recordings").glob("*.jsonl"))


def evaluated(projects: Mapping[Path, Path]) -> int:
    """Print the figures of each set of questions and of all of them together; `projects`: their documents."""
    found: dict[str, tuple[Counts, Counts]] = {}
    said: list[tuple[bool, str]] = []
    shown: list[excerpts.Shown] = []
    for documents, folders in data.of_one_documentation(projects).items():
        with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
            config = prepared(documents, Path(made))
            for folder in folders:
                asking = questions.read(folder / "questions.jsonl")
                plain, addressed = (counted(asking, config, addressed=each) for each in (False, True))
                found[folder.name] = plain, addressed
                shown += excerpts.shown(asking, config)
                print(line_of(f"{folder.name}, not addressed", plain))
                print(line_of(f"{folder.name}, addressed", addressed), flush=True)
            if documents.name == CHATTED_OVER:
                said = [replies_in(chat, config) for chat in chats()]
    apart = [both for name, both in found.items() if name.endswith(data.OTHER_WORDS)]
    if apart:
        print(line_of("in other words, not addressed", sum((plain for plain, _ in apart), Counts())))
        print(line_of("in other words, addressed", sum((addressed for _, addressed in apart), Counts())))
    return verdict(
        *requirements({name: both for name, both in found.items() if not name.endswith(data.OTHER_WORDS)}),
        *excerpted(shown),
        *said,
    )


def line_of(what: str, counts: Counts) -> str:
    return (
        f"      {what}: {counts.right_page} of {counts.answerable} right page, {counts.right_words} right words, "
        f"{counts.replies} replies, {counts.false_answers} of {counts.unanswerable} false answers"
    )


def requirements(found: Mapping[str, tuple[Counts, Counts]]) -> list[tuple[bool, str]]:
    """`found`: by the name of each set, what came of its questions put to everybody, and of the same put to the bot."""
    plain = sum((one for one, _ in found.values()), Counts())
    addressed = sum((other for _, other in found.values()), Counts())
    rows = (
        ("addressed: right page shown", addressed.page_share, Fraction("0.90")),
        ("addressed: right words shown", addressed.words_share, Fraction("0.56")),
        ("not addressed: right page shown", plain.page_share, Fraction("0.62")),
        ("not addressed: right words shown", plain.words_share, Fraction("0.36")),
        ("not addressed: replies that show the right page", plain.good_replies, Fraction("0.88")),
    )
    answerable = {name: one for name, (one, _) in found.items() if one.answerable}
    if answerable:
        last = min(answerable, key=lambda name: answerable[name].page_share)
        rows += ((f"not addressed, the least of all ({last})", answerable[last].page_share, Fraction("0.40")),)
    judged = [
        (part >= least, f"{what}: {float(part):.2f}, at least {float(least):.2f} wanted") for what, part, least in rows
    ]
    most = math.floor(_MAX_FALSE * plain.unanswerable)
    false = f"{plain.false_answers} of {plain.unanswerable}, at most {most} wanted"
    stated = f"{addressed.false_answers} of {addressed.unanswerable}, besides pointing"
    print(f"      addressed: false answers: {stated}")
    return [*judged, (plain.false_answers <= most, f"not addressed: false answers: {false}")]


def excerpted(shown: Sequence[excerpts.Shown]) -> list[tuple[bool, str]]:
    """Judge the excerpts that a model would be shown, of all sets."""
    if not shown:
        return []
    held, most = sum(each.holds for each in shown), max(each.chars for each in shown)
    mean = sum(each.chars for each in shown) / len(shown)
    words = f"{held} of {len(shown)}, at least {float(_LEAST_SHOWN):.2f} wanted"
    chars = f"{mean:,.0f} characters a question, {most:,} at most, {_MAX_CHARS:,} wanted"
    return [
        (Fraction(held, len(shown)) >= _LEAST_SHOWN, f"excerpts of the right page hold the words: {words}"),
        (most <= _MAX_CHARS, f"excerpts: {chars}"),
    ]


def replies_in(chat: Path, config: Path) -> tuple[bool, str]:
    """A chat about other things; nobody is known as staff, so that nothing is learned from it."""
    _, summary = replayed(chat, config)
    replies, messages = int(summary["replied"]), int(summary["messages"])
    quiet = share(replies, messages) <= _MAX_CHAT_REPLIES
    most = f"at most {float(_MAX_CHAT_REPLIES * messages):.0f} wanted"
    return quiet, f"{chat.name}, {messages} messages about other things: {replies} replies, {most}"


if __name__ == "__main__":
    sys.exit(main())
