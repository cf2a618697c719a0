"""`--forget`: what is kept of a person, found and taken out (SPEC 5, "Privacy"; Pitfall 49).

Only for the holder of the data folder's lock, which may be the running bot (`/privacy forget`). Every file is replaced
whole, and nothing that helps to find the rest is taken out before the rest is: after a crash, running it again finishes
the work; after that, it finds nothing.

    what the person wrote        archive, posts   → where else it stands: recordings of the LLM
    the bot's posts for them     posts            → votes on them
    so: recordings, votes, usage; then archive and posts
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from services import archive, files, state
from services.archive import REMOVED
from services.assistant import GatingResult
from services.budget import Budget, Limits
from services.data_folder import DataFolder
from services.line_files import Record, edit
from services.llm.finding import NotFound, first_that_fits
from services.pseudonyms import pseudonym
from services.text_traces import Traces


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
    """Posted in threads; taken out of their collections by whoever calls (services.documents.taking_back)."""
    runbooks: int = 0
    left: list[str] = field(default_factory=list[str])
    """Lines for the operator, who has to look there in person."""

    @property
    def anything(self) -> bool:
        counts = (self.turns, self.votes, self.questions, self.posts, self.exchanges, self.files, self.runbooks)
        return self.usage or any(counts)


def forget(folder: DataFolder, raw: Path, user_id: int) -> Forgotten:
    """Take a person out of `folder` and of the raw archive in `raw`.

    Raises:
        OSError: a file cannot be read or written; what was done until then stays done.
    """
    for place in (folder.root, folder.posts.parent, folder.llm_recordings, raw):
        files.clear_leftovers(place)  # a crash may have left copies
    done = Forgotten()
    asked = [post for post in state.read_posts(folder.posts) if post.asker_id == user_id]
    texts = [*_written_by(raw, user_id), *(post.question for post in asked)]
    _forget_exchanges(folder, texts, done)
    _forget_votes(folder, user_id, {str(post.message_id) for post in asked}, done)
    _forget_usage(folder, user_id, done)
    _forget_turns(raw, user_id, done)
    _forget_posts(folder, user_id, done)
    _look_where_nothing_was_done(folder, raw, done)
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
        traces = Traces([*texts, *_rewritten(path, Traces(texts))])
        edited = edit(path, lambda exchange: None if traces.found_in(_said(exchange)) else exchange)  # noqa: B023 (called at once)
        done.exchanges += edited.dropped
        if edited.damaged:
            done.left.append(f"{path}: {edited.damaged} lines that are no exchanges")
    too_short = Traces(texts).too_short
    if too_short and folder.llm_recordings.is_dir():
        done.left.append(f"{folder.llm_recordings}: {too_short} texts of theirs are too short to be told from others'")


def _rewritten(path: Path, traces: Traces) -> list[str]:
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
    budget = Budget(Limits(), state.read_spent(folder.usage))
    done.usage = budget.forget(user_id)
    if done.usage:
        files.replace(folder.usage, state.render_spent(budget.spent))


def _forget_turns(raw: Path, user_id: int, done: Forgotten) -> None:
    for path in _archive_files(raw):
        with files.alone(path):
            _forget_turns_in(path, user_id, done)


def _forget_turns_in(path: Path, user_id: int, done: Forgotten) -> None:
    pieces: list[str] = []
    removed = unreadable = 0
    for piece, pair in _blocks(path):
        without = None if pair is None else _without(pair, user_id)
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
        done.left.append(f"{path}: {unreadable} blocks that are malformed or torn")


def _without(pair: archive.Pair, user_id: int) -> archive.Pair:
    turns = tuple(
        replace(turn, text=REMOVED) if author_id == user_id else turn
        for author_id, turn in zip(pair.author_ids, pair.turns, strict=True)
    )
    return replace(pair, turns=turns)


def _forget_posts(folder: DataFolder, user_id: int, done: Forgotten) -> None:
    edited = edit(folder.posts, lambda post: None if post.get("asker_id") == user_id else post)
    done.posts = edited.dropped
    if edited.damaged:
        done.left.append(f"{folder.posts}: {edited.damaged} damaged lines")


def _look_where_nothing_was_done(folder: DataFolder, raw: Path, done: Forgotten) -> None:
    done.left += [f"{path}: the end of a block that a crash tore" for path in sorted(raw.glob("*.torn"))]
    others = (folder.team_topics, folder.pending)
    done.left += [f"{place}: not looked through" for place in others if place.is_dir() and any(place.iterdir())]
