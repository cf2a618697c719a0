"""`--kb list | show TOPIC | remove QA_ID | restore QA_ID`: shows and corrects the knowledge of the team."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator

from rich.console import Console

from assembly import Unusable
from assembly.data_folder import lock_data_folder
from assembly.team import open_team, team_paths
from clock import rfc3339
from commands.arguments import DONE, check_data_dir
from services.knowledge import is_topic_name, topic_name
from services.team import Overview, Pair, corrections, labelled_turns, overview
from services.telemetry import number_of
from settings import Settings
from sinks.terminal import one_line, visible_lines

_INDENT = "    "
_DAY, _MINUTE = 10, 16
"""The lengths of a time stamp without its time, and without its seconds."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--kb`. Returns the exit code."""
    return team_knowledge(settings.servers[options.guild], *options.kb, conflicts=options.conflicts, locked=settings)


def team_knowledge(
    settings: Settings, action: str, name: str = "", *, conflicts: bool = False, locked: Settings | None = None
) -> int:
    """Print the knowledge of the team, or correct it and print a line. Returns the exit code. `conflicts`: list only
    these; `locked`: the settings of the whole data folder, if `settings` are those of one server.
    """
    root = (locked or settings).app.data_dir
    check_data_dir(root)
    if action in {"remove", "restore"}:
        return _print([_correct(settings, action, name, locked or settings)])
    found = overview(team_paths(settings), settings.kb.qa_raw_last_processed_id, time.time())
    if action == "show":
        return _print(_topic_lines(found, name))
    return _print(_conflict_lines(found) if conflicts else _list_lines(found))


def _correct(settings: Settings, action: str, pair_id: str, locked: Settings) -> str:
    with lock_data_folder(locked, f"app.py --kb {action}"):
        library = open_team(settings)
        correct = corrections.remove if action == "remove" else corrections.restore
        try:
            return correct(library, pair_id, rfc3339(time.time()))
        except corrections.CorrectionRefused as error:
            raise Unusable(f"--kb {action}: {error}") from None


def _list_lines(found: Overview) -> Iterator[str]:
    held = sum(len(topic.pairs) for topic in found.topics.values())
    topics = number_of(len(found.topics), "topic")
    yield f"{topics} with {number_of(held, 'conversation')}; {found.captured} captured in all."
    if found.undecided:
        yield f"{number_of(found.undecided, 'conversation')} to be filed when the bot runs."
    if found.failed:
        yield f"{number_of(found.failed, 'conversation')} could not be filed; --regen tries again."
    if found.conflicts:
        yield f"{number_of(len(found.conflicts), 'open conflict')}; --kb list --conflicts shows what contradicts what."
    for name, topic in found.topics.items():
        days = [pair.said_at[:_DAY] for pair in topic.pairs]
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        yield ""
        yield f"{name}  ({number_of(len(topic.pairs), 'conversation')}, {span})"
        yield from _indented(found.descriptions[name])
    if found.removed:
        yield ""
        yield "Removed by hand; --kb restore QA_ID takes it back:"
        for pair_id, topic in found.removed:
            yield f"{_INDENT}{pair_id}" + (f"  from {topic}" if topic is not None else "")


def _conflict_lines(found: Overview) -> Iterator[str]:
    topic_of = {pair.id: name for name, topic in found.topics.items() for pair in topic.pairs}
    yield f"{number_of(len(found.conflicts), 'open conflict')}" + (
        "; --kb remove QA_ID settles one." if found.conflicts else "."
    )
    for newer, older, what in found.conflicts:
        yield ""
        for pair in (newer, older):
            yield f"{topic_of[pair.id]}: {pair.id}  (said {_minute(pair)})"
        yield from _indented(what)


def _topic_lines(found: Overview, asked: str) -> Iterator[str]:
    name = asked if is_topic_name(asked) else topic_name(asked)
    topic = found.topics.get(name)
    if topic is None:
        raise Unusable(f"--kb show: there is no topic {one_line(asked)!r}; --kb list shows all")
    yield f"{name}  ({number_of(len(topic.pairs), 'conversation')})"
    yield from _indented(found.descriptions[name])
    for pair in topic.pairs:
        yield ""
        yield f"{pair.id}  (said {_minute(pair)}, {pair.conversation_id})"
        if replaced := found.replaced.get(pair.id):
            yield f"{_INDENT}[replaces {', '.join(replaced)}]"
        for by, what in found.corrected.get(pair.id, ()):
            [shown] = visible_lines(what)
            yield f"{_INDENT}[superseded in part by {by.id}, said {_minute(by)}: {shown}]"
        for label, turn in labelled_turns(pair):
            first, *rest = visible_lines(turn.text)
            yield f"{_INDENT}{label}: {first}"
            yield from (f"{_INDENT}  {line}".rstrip() for line in rest)


def _minute(pair: Pair) -> str:
    return f"{pair.said_at[:_MINUTE].replace('T', ' ')} UTC"


def _indented(text: str) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in visible_lines(text))


def _print(lines: Iterable[str]) -> int:
    out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    for line in lines:
        out.print(line)
    return DONE
