"""`--forget`: what is kept of a person, found and taken out (SPEC 5, "Privacy"; Pitfall 49).

Only for the holder of the data folder's lock, which may be the running bot (`/privacy forget`). Every file is replaced
whole, and nothing that helps to find the rest is taken out before the rest is: after a crash, running it again finishes
the work; after that, it finds nothing.

    what the person wrote        archive, posts   → where else it stands: recordings of the LLM
    the bot's posts for them     posts            → votes on them
    descriptions of topics       topics           → which ones may tell the person's words
    topics                       archive
    so: recordings, votes, usage, descriptions; then archive, topics and posts
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from services.assistant import GatingResult
from services.conversations import read_posts
from services.llm import Budget, BudgetLimits, NotFound, first_that_fits, read_spent, render_spent
from services.privacy.pseudonyms import pseudonym
from services.privacy.text_match import TextMatch
from services.storage import DataFolder, Record, edit, files
from services.team import REMOVED, TeamLibrary, archive
from services.telemetry import number_of


@dataclass(slots=True)
class Forgotten:
    """How much was found, and what was found that could not be dealt with."""

    turns: int = 0
    """Texts in the raw archive that became `[removed]`."""
    votes: int = 0
    """Rows of the feedback file that were dropped."""
    questions: int = 0
    """Questions in other people's rows that became `[removed]`."""
    posts: int = 0
    exchanges: int = 0
    """Exchanges with an LLM that were dropped from recordings."""
    usage: bool = False
    files: int = 0
    """Posted in threads; taken out of their collections by whoever calls (services.documents.deletion)."""
    runbooks: int = 0
    topics: int = 0
    """Topics of the team that were written anew, without their words."""
    pending: int = 0
    """Captures with their words, dropped while they waited for their images to be put into words."""
    left: list[str] = field(default_factory=list[str])
    """Lines for the operator, who has to look there in person."""

    @property
    def anything(self) -> bool:
        counts = (self.turns, self.votes, self.questions, self.posts, self.exchanges)
        return self.usage or any((*counts, self.topics, self.pending, self.files, self.runbooks))


def note_documents(done: Forgotten, folder: DataFolder, files: int, runbooks: int) -> None:
    """Say what was deleted of a person's documents, and where pieces of them may still stand."""
    done.files, done.runbooks = files, runbooks
    if (files or runbooks) and folder.llm_recordings.is_dir():
        done.left.append(f"{folder.llm_recordings}: not searched for passages of their files and runbooks")


def forget(folder: DataFolder, raw: Path, user_id: int, team: TeamLibrary | None = None) -> Forgotten:
    """Take a person out of `folder`, of the raw archive in `raw`, and of the `team`'s topics, which follow from that.

    Without `team` topics are left, and reported; its next opening takes the person out of them.

    Raises:
        OSError: a file cannot be read or written; what was done until then stays done.
        LibraryUnwritable: likewise, in the `team`'s files.
    """
    for place in (folder.root, folder.posts.parent, folder.llm_recordings, folder.pending, raw):
        files.clear_leftovers(place)  # a crash may have left copies
    shutil.rmtree(folder.regeneration, ignore_errors=True)  # and so may a rebuild that was cut off
    done = Forgotten()
    asked = [post for post in read_posts(folder.posts) if post.asker_id == user_id]
    texts = [*_written_by(raw, user_id), *(post.question for post in asked)]
    _forget_exchanges(folder, texts, done)
    _forget_votes(folder, user_id, {str(post.message_id) for post in asked}, done)
    _forget_usage(folder, user_id, done)
    _forget_waiting(folder.pending, user_id, done)
    # Descriptions first: once the topics do not tell the person's words any more, nothing tells which ones may.
    if team is not None:
        team.undescribe(user_id)
    _forget_turns(raw, user_id, done)
    if team is not None:
        done.topics = len(team.forget(user_id))
    _forget_posts(folder, user_id, done)
    _look_where_nothing_was_done(folder, raw, team, done)
    return done


def _archive_files(raw: Path) -> list[Path]:
    return sorted(raw.glob("*.txt"))


def _blocks(path: Path) -> list[tuple[str, archive.Pair | None]]:
    # Bytes that are no UTF-8 come back as they were.
    return archive.blocks(path.read_bytes().decode("utf-8", "surrogateescape"))


def _written_by(raw: Path, user_id: int) -> Iterator[str]:
    for path in _archive_files(raw):
        for _, pair in _blocks(path):
            if pair is not None:
                for author_id, turn in zip(pair.author_ids, pair.turns, strict=True):
                    if author_id == user_id and turn.text != REMOVED:
                        yield turn.text


def _forget_exchanges(folder: DataFolder, texts: list[str], done: Forgotten) -> None:
    for path in sorted(folder.llm_recordings.glob("**/*.jsonl")):
        # Steps after the gate may have been asked in its words.
        traces = TextMatch([*texts, *_rewritten(path, TextMatch(texts))])
        edited = edit(path, lambda exchange: None if traces.found_in(_said(exchange)) else exchange)  # noqa: B023 (called at once)
        done.exchanges += edited.dropped
        if edited.damaged:
            done.left.append(
                f"{path}: {number_of(edited.damaged, 'line that is no exchange', 'lines that are no exchanges')}"
            )
    too_short = TextMatch(texts).too_short
    if too_short and folder.llm_recordings.is_dir():
        alike = number_of(too_short, "text of theirs that is", "texts of theirs that are")
        done.left.append(f"{folder.llm_recordings}: {alike} too short to be told from others'")


def _rewritten(path: Path, traces: TextMatch) -> list[str]:
    """The queries that the gate has made of the person's questions."""
    queries: list[str] = []

    def collect(exchange: Record) -> Record:
        if exchange.get("step") == "gate" and traces.found_in(_said(exchange)):
            try:
                result = first_that_fits("\n".join(_strings(exchange.get("response"))), GatingResult)
            except NotFound:
                return exchange
            queries.append(result.rewrite_query or "")
        return exchange

    edit(path, collect)
    return [query for query in queries if query.strip()]


def _said(exchange: Record) -> str:
    """Everything that passed in an exchange, as text."""
    return "\n".join(_strings([exchange.get("request"), exchange.get("response"), exchange.get("error")]))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _strings(each)
    elif isinstance(value, dict):
        yield from _strings(list(cast("dict[str, object]", value).values()))


def _forget_votes(folder: DataFolder, user_id: int, about: set[str], done: Forgotten) -> None:
    try:
        voter = pseudonym(folder.feedback_key.read_bytes(), user_id)
    except FileNotFoundError:
        voter = None  # nobody has voted here, or nobody can tell any more who did

    def without(row: Record) -> Record | None:
        if voter is not None and row.get("voter") == voter:
            return None
        return {**row, "question": REMOVED} if row.get("message_id") in about else row

    edited = edit(folder.feedback, without)
    done.votes, done.questions = edited.dropped, edited.changed
    if edited.damaged:
        done.left.append(f"{folder.feedback}: {edited.damaged} damaged lines")


def _forget_usage(folder: DataFolder, user_id: int, done: Forgotten) -> None:
    budget = Budget(BudgetLimits(), read_spent(folder.usage))
    done.usage = budget.forget(user_id)
    if done.usage:
        files.replace(folder.usage, render_spent(budget.spent))


def _forget_turns(raw: Path, user_id: int, done: Forgotten) -> None:
    for path in _archive_files(raw):
        with files.alone(path):
            _forget_turns_in(path, user_id, done)


def _forget_turns_in(path: Path, user_id: int, done: Forgotten) -> None:
    pieces: list[str] = []
    removed = unreadable = 0
    for piece, pair in _blocks(path):
        without = None if pair is None else archive.without(pair, user_id)
        unreadable += pair is None
        if pair is None or without is None or without == pair:
            pieces.append(piece)
            continue
        removed += sum(before != after for before, after in zip(pair.turns, without.turns, strict=True))
        pieces.append(archive.render(without))
    if removed:
        files.replace(path, "".join(pieces).encode("utf-8", "surrogateescape"))
        done.turns += removed
    if unreadable:
        done.left.append(f"{path}: {number_of(unreadable, 'block that is', 'blocks that are')} malformed or torn")


def _forget_posts(folder: DataFolder, user_id: int, done: Forgotten) -> None:
    edited = edit(folder.posts, lambda post: None if post.get("asker_id") == user_id else post)
    done.posts = edited.dropped
    if edited.damaged:
        done.left.append(f"{folder.posts}: {edited.damaged} damaged lines")


def _forget_waiting(pending: Path, user_id: int, done: Forgotten) -> None:
    """Captures that wait are dropped whole: without these messages and their images they are of little use."""
    for path in sorted(pending.glob("*")) if pending.is_dir() else []:
        said = None
        if path.is_file():
            with path.open("rb") as file:
                said = _authors(file.readline())
        if said is None:
            done.left.append(f"{path}: cannot tell whose it is")
        elif user_id in said:
            files.remove(path)
            done.pending += 1


def _authors(line: bytes) -> set[int] | None:
    """Who has said something in a capture that waits (its first line: `{…, "said": [{"author_id": "311", …}, …]}`)."""
    try:
        head: Any = json.loads(line)
        return {int(said["author_id"]) for said in head["said"]}
    except (ValueError, TypeError, KeyError):
        return None


def _look_where_nothing_was_done(folder: DataFolder, raw: Path, team: TeamLibrary | None, done: Forgotten) -> None:
    done.left += [f"{path}: the end of a block that a crash tore" for path in sorted(raw.glob("*.torn"))]
    others: list[Path] = []
    if team is None:
        others.append(folder.team_topics)
    else:
        kept = sorted(team.places.topics.glob("*.rejected*"))
        done.left += [f"{path}: a topic that somebody changed by hand" for path in kept]
    done.left += [f"{place}: not looked through" for place in others if place.is_dir() and any(place.iterdir())]
