"""`--kb list | show | remove | restore | add | edit`: shows, corrects and adds to the knowledge of the team."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from assembly import Unusable
from assembly.data_folder import lock_data_folder
from assembly.running import run_async, terminated_as_interrupted
from assembly.team import open_team, team_paths
from clock import rfc3339
from commands.arguments import DONE, check_data_dir, requires_nats_extra
from model.messages import snowflake_at
from model.permissions import TERMINAL
from model.words import clean
from services.knowledge import is_topic_name, topic_name
from services.redaction import Redactor
from services.storage import DataFolder, temporary_folder
from services.team import (
    REMOVED,
    AuditLog,
    Lesson,
    LessonForm,
    LessonRefused,
    LibraryUnwritable,
    Overview,
    Pair,
    RecentCaptures,
    Speaker,
    TeamLibrary,
    archive,
    archive_files,
    asker_among,
    exchanges_of,
    labelled_turns,
    lesson_of,
    names_users,
    overview,
    removals,
)
from services.telemetry import number_of
from settings import Settings
from sinks.team import RawArchive
from sinks.terminal import printable_line, visible_lines

_INDENT = "    "
_DAY, _MINUTE = 10, 16
"""The lengths of a time stamp without its time, and without its seconds."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--kb`. Returns the exit code."""
    out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    with terminated_as_interrupted():  # so that copies are deleted
        for line in _run_locally(settings, options) if settings.local else _run_over_nats(settings, options):
            out.print(line)
    return DONE


def _run_locally(settings: Settings, options: argparse.Namespace) -> Iterable[str]:
    check_data_dir(settings.app.data_dir)
    action, server = options.kb[0], settings.servers[options.guild]
    if action in {"add", "edit"}:
        return _teach(settings, server, options)
    if action in {"remove", "restore"}:
        return [_correct(settings, server, options)]
    return _knowledge_lines(server, options)


def _run_over_nats(settings: Settings, options: argparse.Namespace) -> Iterable[str]:
    """Work on a copy of what NATS holds. Changes are made by the process that keeps the archive."""
    with requires_nats_extra():
        from assembly.distributed import keepers  # noqa: PLC0415 (nothing of it is imported for one process)
    (action, *names), guild_id = options.kb, options.guild

    def correct(correction: str, pair_id: str) -> str:
        try:
            return run_async(keepers.correct_from_command(settings, guild_id, correction, pair_id))
        except removals.RemovalRefused as error:
            raise Unusable(f"--kb {correction}: {error}") from None

    if action in {"remove", "restore"}:
        return [correct(action, *names)]
    with temporary_folder() as folder:
        run_async(keepers.copy_archive(settings, folder))
        server = settings.with_data_in(folder).servers[guild_id]
        if action not in {"add", "edit"}:
            return _knowledge_lines(server, options)
        made = _make_lesson(settings, options, _read_lesson(options), open_team(server))
    said = made.said
    taught = partial(made.lesson.capture, made.lesson_id, conversation_id=made.conversation_id)
    said.append(run_async(keepers.teach_from_command(settings, made.form, made.lesson_id, made.action, taught)))
    if made.replaced is not None and made.conversation_id:
        said.append(f"It replaces {made.replaced.id}.")
    elif made.replaced is not None and not made.is_withdrawn:
        said.append(correct("remove", made.replaced.id))
    return said


def _knowledge_lines(settings: Settings, options: argparse.Namespace) -> Iterator[str]:
    """Describe a topic (`show`) or the knowledge of the team. `settings`: those of the server."""
    action, *names = options.kb
    found = overview(team_paths(settings), settings.kb.qa_raw_last_processed_id, time.time())
    if action == "show":
        return _topic_lines(found, *names)
    return _conflict_lines(found) if options.conflicts else _list_lines(found)


def _correct(whole: Settings, settings: Settings, options: argparse.Namespace) -> str:
    """Remove or restore a pair. `whole`, `settings`: as for `_teach`. Returns a line about it. Raises Unusable."""
    action, pair_id = options.kb
    with lock_data_folder(whole, f"app.py --kb {action}"):
        library = open_team(settings)
        correct = removals.remove if action == "remove" else removals.restore
        try:
            note = partial(audit_log(whole).note, time.time(), TERMINAL, f"{action} conversation")
            return correct(library, pair_id, rfc3339(time.time()), note)
        except removals.RemovalRefused as error:
            raise Unusable(f"--kb {action}: {error}") from None


def audit_log(settings: Settings) -> AuditLog:
    """Return the audit log of a data folder."""
    return AuditLog(DataFolder(settings.app.data_dir).audit)


def _teach(whole: Settings, settings: Settings, options: argparse.Namespace) -> Iterator[str]:
    """Store a question and its answer, or the newer version of a pair. `whole`: the settings of the data folder;
    `settings`: those of the server.
    """
    written = _read_lesson(options)
    with lock_data_folder(whole, f"app.py --kb {options.kb[0]}"):
        library = open_team(settings)
        made = _make_lesson(whole, options, written, library)
        yield from made.said
        now = time.time()
        capture = made.lesson.capture(made.lesson_id, conversation_id=made.conversation_id)
        audit_log(whole).note(now, TERMINAL, made.action, capture.conversation_id)
        archived = RawArchive(settings.kb.team_raw_dir, RecentCaptures(), on_stored=library.add_block)
        try:
            [pair] = archived.write([capture], now)
        except archive_files.ArchiveUnwritable as error:
            raise LibraryUnwritable(str(error)) from error
        yield f"{pair.id} is stored, and will be filed at the next start of the bot."
        if made.replaced is not None and made.conversation_id:
            yield f"It replaces {made.replaced.id} then."
        elif made.replaced is not None and not made.is_withdrawn:
            yield removals.remove(library, made.replaced.id, rfc3339(now))


class _MadeLesson(NamedTuple):
    """A lesson to store.

    Attributes:
        lesson_id: the id of its first message, unused so far.
        conversation_id: of the lesson that it replaces; empty: it begins a conversation.
        replaced: the pair that was edited; None: the lesson is new.
        is_withdrawn: the edited pair is in no topic.
        said: lines for the operator.
    """

    lesson: Lesson
    form: LessonForm
    lesson_id: int
    conversation_id: str
    replaced: Pair | None
    is_withdrawn: bool
    said: list[str]

    @property
    def action(self) -> str:
        """The word for the audit log."""
        return "teach" if self.replaced is None else "edit conversation"


def _make_lesson(
    whole: Settings, options: argparse.Namespace, written: tuple[str | None, str | None], library: TeamLibrary
) -> _MadeLesson:
    """Make the lesson of `add` or `edit`. `written`: its question and answer, if given. Raises Unusable."""
    (action, *names), (question, answer) = options.kb, written
    old, author_id, asker_id, conversation_id = None, options.author or archive.UNKNOWN, None, ""
    said: list[str] = []
    is_withdrawn = False
    try:
        if action == "edit":
            old = removals.find_pair(library, names[0])
            said += [_heading(old), *_turn_lines(old), ""]
            if question is None:
                question, asker_id = _question_answered(old)
                said += ["The new answer is to:", *_indented(question)]
            else:
                asker_id = asker_among(question, _questions_of(old))
            is_withdrawn = old.key in library.fold.placement.withdrawn
            if not old.kind.is_on_discord:
                author_id = options.author or old.author_ids[-1]
                # What was removed keeps later versions out.
                is_removed = old.key in library.fold.placement.removed or library.fold.removed_with(old)
                conversation_id = "" if is_removed else old.conversation_id
        form = LessonForm(options.guild, question or "", answer or "", author_id=author_id, asker_id=asker_id)
        lesson = lesson_of(form, Redactor(whole.secrets).redact_and_count)
    except (LessonRefused, removals.RemovalRefused) as error:
        raise Unusable(f"--kb {action}: {error}") from None
    if lesson.hidden:
        said.append(lesson.note)
    lesson_id = snowflake_at(time.time())
    return _MadeLesson(lesson, form, lesson_id, conversation_id, old, is_withdrawn, said)


def _question_answered(pair: Pair) -> tuple[str, int]:
    """Return the question that the team answered, and who asked it. Raises LessonRefused: there is not exactly one."""
    asked = pair.turns[0]
    if not pair.kind.is_on_discord and asked.speaker is Speaker.USER and asked.text != REMOVED:
        return asked.text, pair.author_ids[0]
    found = list(exchanges_of(pair))
    # What the team told the only user may be no answer, such as "let me check".
    is_certain = [each.asker_known or not (each.answer or names_users(pair)) for each in found]
    if is_certain != [True] or not found[0].question or found[0].context:
        raise LessonRefused(
            "the conversation holds several questions, or it is not certain which one the team answered: write the "
            'question with --question "…".'
        )
    label, _ = labelled_turns(pair)[found[0].turns[0]]
    return found[0].question, dict(zip(archive.labels_of(pair), pair.author_ids, strict=True))[label]


def _questions_of(pair: Pair) -> Iterator[tuple[int, str]]:
    """Yield the users of a conversation, each with all that this user wrote."""
    turns = zip(pair.author_ids, pair.turns, strict=True)
    said = [(author, turn.text) for author, turn in turns if turn.speaker is Speaker.USER]
    for user in dict.fromkeys(author for author, _ in said):
        yield user, "\n".join(text for author, text in said if author == user)


def _read_lesson(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the question and the answer as they were given; None: it was not. Raises Unusable."""
    action, *names = options.kb
    files = names[1:] if action == "edit" else names
    if not files:
        if options.answer is None or (action == "add" and options.question is None):
            raise Unusable(f'--kb {action} needs --question "…" and --answer "…", or a FILE with both (- is the input)')
        return options.question, options.answer
    if options.question is not None or options.answer is not None:
        raise Unusable(f"--kb {action}: write a FILE, or --question and --answer, not both")
    try:
        text = sys.stdin.read() if files[0] == "-" else Path(files[0]).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unusable(f"--kb {action}: {files[0]} is not a text in UTF-8") from None
    except OSError as error:
        raise Unusable(f"--kb {action}: {files[0]}: {error.strerror}") from None
    question, blank, answer = clean(text).strip().partition("\n\n")
    if not blank:
        raise Unusable(f"--kb {action}: {files[0]} needs the question, an empty line, and the answer")
    return question, answer


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
        raise Unusable(f"--kb show: there is no topic {printable_line(asked)!r}; --kb list shows all")
    yield f"{name}  ({number_of(len(topic.pairs), 'conversation')})"
    yield from _indented(found.descriptions[name])
    for pair in topic.pairs:
        yield ""
        yield _heading(pair)
        if replaced := found.replaced.get(pair.id):
            yield f"{_INDENT}[replaces {', '.join(replaced)}]"
        for by, what in found.corrected.get(pair.id, ()):
            [shown] = visible_lines(what)
            yield f"{_INDENT}[superseded in part by {by.id}, said {_minute(by)}: {shown}]"
        yield from _turn_lines(pair)


def _heading(pair: Pair) -> str:
    return f"{pair.id}  (said {_minute(pair)}, {pair.conversation_id})"


def _turn_lines(pair: Pair) -> Iterator[str]:
    for label, turn in labelled_turns(pair):
        first, *rest = visible_lines(turn.text)
        yield f"{_INDENT}{label}: {first}"
        yield from (f"{_INDENT}  {line}".rstrip() for line in rest)


def _minute(pair: Pair) -> str:
    return f"{pair.said_at[:_MINUTE].replace('T', ' ')} UTC"


def _indented(text: str) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in visible_lines(text))
