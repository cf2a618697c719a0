"""Finds and removes what is kept of a person, in the data that all servers share and in that of each server."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, cast

from services.conversations import forget_started, read_posts
from services.knowledge import belongs_to, name_words, with_owner
from services.llm import read_spent, render_spent
from services.privacy.own_words import OwnWords, blocks_in
from services.privacy.recordings import (
    PersonInRecording,
    attachments_of,
    drop_exchanges,
    find_in_recording,
    published_in,
    remove_from_recording,
)
from services.privacy.text_match import LONG_CHARS, TextMatch
from services.privacy.unknown_files import FolderContents, Kind, kind_of, logs_among, named, unknown_files
from services.storage import DataFolder, Record, edit, files, read_object, replace_strings
from services.team import REMOVED, DecisionLog, Pair, TeamLibrary, archive, library
from services.telemetry import number_of, parse_part_outcome


def pseudonym(key: bytes, user_id: int, purpose: str = "") -> str:
    """Return the pseudonym of a person, the same each time on one installation. Only the owner of its `key` can trace
    it back, or tell that those for different purposes are of one person.
    """
    return hmac.new(key, f"{purpose}{user_id}".encode(), hashlib.sha256).hexdigest()[:16]


def limits_pseudonym(key: bytes, user_id: int) -> str:
    """Return the pseudonym by which a person's questions of the last hour are counted."""
    return pseudonym(key, user_id, "limits ")


def pseudonym_key(path: Path) -> bytes:
    """The key of an installation, made where there is none yet. Blocking. Raises OSError."""
    if not path.exists():
        files.replace(path, new_pseudonym_key())
    return path.read_bytes()


def new_pseudonym_key() -> bytes:
    """Make a key, for an installation that has none yet."""
    return secrets.token_hex(32).encode()


def outcome_files(folder: DataFolder) -> list[Path]:
    return sorted(folder.outcomes.glob("*.jsonl"))


def questions_of(folder: DataFolder, user_id: int) -> Iterator[str]:
    """Return what the person asked, including questions without a reply."""
    for path in outcome_files(folder):
        entries = (parse_part_outcome(line) for line in path.read_bytes().splitlines())
        yield from (entry.question for entry in entries if entry and entry.author_id == user_id and entry.question)


def outcomes_without(user_id: int, match: TextMatch) -> Callable[[Record], Record | None]:
    """Return an edit for `storage.edit`: it drops the records of the person's parts. Others may have repeated the
    person's words: such lines of a question become `[removed]`.
    """

    def change(row: Record) -> Record | None:
        if row.get("author_id") == str(user_id):
            return None
        question = row.get("question")
        return {**row, "question": match.redacted(question)} if isinstance(question, str) else row

    return change


def rename_sources(folder: DataFolder, ids: Mapping[str, str]) -> None:
    """Replace the ids of sources in recorded outcomes, votes and posts. `ids`: the new ids by the old ones."""
    for path in (folder.feedback, folder.posts, *outcome_files(folder)) if ids else ():
        edit(path, lambda row: cast("Record", replace_strings(row, ids)))


NAME_CHARS = 3
"""Of a word that a topic may be called by."""
HELD_CHARS = 5
"""Of a word that is looked for within those of a topic's name: shorter ones are in many others."""


@dataclass(slots=True)
class ForgetResult:
    """Counts of what was found and removed.

    Attributes:
        turns: texts in the raw archive that became `[removed]`.
        votes, questions: rows of the feedback file that were dropped; questions in others' that became `[removed]`.
        exchanges, pending: exchanges in LLM recordings, and waiting captures, that were dropped.
        recorded: dispatches in recordings that were dropped, or lost what was theirs.
        ends: how parts of theirs ended, dropped.
        files, runbooks, topics: documents that the caller deleted; topics without the person's words now.
        copies: of topics, made for searching, that the caller deleted.
        left: lines for the operator: what could not be dealt with.
        renamed: the new ids of sources that were called by a word of theirs, by the old ids.
    """

    turns: int = 0
    votes: int = 0
    questions: int = 0
    posts: int = 0
    exchanges: int = 0
    files: int = 0
    runbooks: int = 0
    topics: int = 0
    copies: int = 0
    pending: int = 0
    recorded: int = 0
    ends: int = 0
    left: list[str] = field(default_factory=list[str])
    renamed: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, other: ForgetResult) -> None:
        """Add the counts of another result."""
        self.renamed |= other.renamed
        for name, value in asdict(other).items():
            if name != "renamed":
                setattr(self, name, getattr(self, name) + value)

    @property
    def anything(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in {"left", "renamed"})


def has_archived_text(raw: Path, user_id: int) -> bool:
    """True if the raw archive holds a text of the person, so that what was derived from it may as well. Blocking.

    What is made of topics has to go first: once `forget` has changed the archive, nothing tells any more.
    """
    return any(True for _ in _written_by(raw, user_id))


def forget(
    folder: DataFolder,
    raw: Path,
    user_id: int,
    team: TeamLibrary | None = None,
    surroundings: FolderContents | None = None,
    texts: list[str] | None = None,
    named_by_operator: Collection[str] = (),
    renamed_elsewhere: Callable[[list[str]], Mapping[str, str]] = lambda _texts: {},
    own_words: OwnWords | None = None,
) -> ForgetResult:
    """Remove a person from `folder`, from the raw archive in `raw`, and from the `team`'s topics, which follow from it.
    `texts`: what the person wrote elsewhere, which is looked for as well; what is found here is added to it.

    `surroundings`: every file of the folder is dealt with, or named. Without `team`, topics are left, and reported; its
    next opening removes the person from them. A topic that is called by a word of theirs gets another name, unless it
    is one of those `named_by_operator`. `renamed_elsewhere`: gives the new ids, by the old ones, of sources
    outside of `folder` that are renamed as well, for the texts of the person. `own_words`: tells which lines count as
    the person's in records of others; None: `raw` does.

    Raises OSError and LibraryUnwritable: a file cannot be read or written; what was done until then stays done.

    Only for the holder of the data folder's lock, which may be the running bot. Every file is replaced whole, and what
    helps to find the rest is removed last. First come recordings, votes and descriptions of topics, which are
    found by what the person wrote and was answered; then archive, topics and posts. So after a crash, another call
    finishes the work.
    """
    places = [folder.root, folder.posts.parent, folder.outbox, folder.outcomes, folder.llm_recordings]
    places += [folder.pending, raw]
    if surroundings is not None:
        places += (path for path in folder.root.rglob("*") if path.is_dir())
    for place in places:
        files.clear_leftovers(place)  # a crash may have left copies
    files.remove_folder(folder.regeneration)  # and so may a rebuild that was cut off
    done = ForgetResult()
    asked = [post for post in read_posts(folder.posts) if post.asker_id == user_id]
    texts = [] if texts is None else texts
    texts += texts_in(folder, raw, user_id)
    others = _looked_through(folder, surroundings, user_id, done)
    texts += [text for found in others.recordings.values() for text in found.texts]
    renamed, fixed, alike = _topics_to_rename(TeamData(folder, raw, team, named_by_operator), user_id, texts)
    about = f"{folder.decisions} and {folder.team_topics}: the name of the topic"
    done.left += [f"{about} {topic} has a word of theirs" for topic in sorted(fixed)]
    done.left += [f"{about} {topic} holds a word of theirs within another" for topic in alike if topic not in fixed]
    ids = done.renamed = {**_source_ids(renamed), **renamed_elsewhere(texts)}
    own_words = OwnWords(user_id, [raw]) if own_words is None else own_words
    of_others, redacted = _forget_recorded(others, user_id, texts, ids, own_words, done)
    _forget_votes(folder, user_id, {str(post.message_id) for post in asked}, set(texts), done)
    _forget_counts(folder.usage)
    _forget_ends(folder, user_id, of_others, redacted, done)
    rename_sources(folder, ids)
    _forget_waiting(folder.pending, user_id, done)
    if team is not None:
        team.drop_descriptions_of(user_id)  # before the words are out of the topics, which show what may repeat them
        team.rename(renamed)
    for path in sorted(raw.glob("*.txt")):
        with files.locked_for_edit(path):
            _forget_turns(path, user_id, done)
    if team is not None:
        done.topics = len(team.forget(user_id))
    else:
        DecisionLog(folder.decisions).forget(set(_taken_part_in(raw, user_id)))
    done.posts, _ = _edit(folder.posts, lambda post: None if post.get("asker_id") == user_id else post, done)
    done.posts += forget_started(folder.outbox, user_id)
    done.left += _damaged_decisions(folder.decisions)
    done.left += [f"{path}: a block truncated by a crash" for path in sorted(raw.glob("*.torn"))]
    if team is not None:
        rejected = sorted(team.paths.topics.glob("*.rejected*"))
        done.left += [f"{path}: a topic that somebody changed by hand" for path in rejected]
    elif folder.team_topics.is_dir() and any(folder.team_topics.iterdir()):
        done.left.append(f"{folder.team_topics}: not looked through")
    return done


def _forget_recorded(
    about: _Recordings, user_id: int, texts: list[str], ids: Mapping[str, str], own_words: OwnWords, done: ForgetResult
) -> tuple[TextMatch, int]:
    """Forget a person in recordings. Returns the match of their words in records of others, and how many exchanges of
    others lost lines.
    """
    exchanges = sorted(about.exchanges)
    shown = OwnWords(user_id, published=lambda: (text for path in exchanges for text in published_in(path)))

    def own(texts: list[str]) -> list[str]:
        return shown.of(own_words.of(texts))

    dropped = drop_exchanges(exchanges, user_id, texts, ids, own)
    done.exchanges, done.left = dropped.exchanges, [*done.left, *dropped.left]
    of_others = TextMatch(own(texts), LONG_CHARS)
    for path, found in about.recordings.items():
        done.recorded += remove_from_recording(path, user_id, found, of_others)
    return of_others, dropped.redacted


def _forget_counts(path: Path) -> None:
    """Drop the counts of an earlier program, which had them by people's ids. Those of today outlast a request to be
    forgotten, for an hour and without an id: else it would give as many chains anew.
    """
    if "chains" in read_object(path):
        files.replace(path, render_spent(read_spent(path)))


def _forget_ends(folder: DataFolder, user_id: int, of_others: TextMatch, redacted: int, done: ForgetResult) -> None:
    """Forget how a person's parts ended, and say in how many records others repeated their words. `redacted`: in how
    many exchanges with a model.
    """
    changed = 0
    for path in outcome_files(folder):
        dropped, edited = _edit(path, outcomes_without(user_id, of_others), done)
        done.ends += dropped
        changed += edited
    counts = ((redacted, "exchange", " with a model"), (changed, "question", ""))
    told = " and ".join(f"{number_of(count, what)}{more}" for count, what, more in counts if count)
    if told:
        done.left.append(f"of others, {told} repeated lines of theirs, which are {REMOVED} now")


def _damaged_decisions(path: Path) -> list[str]:
    damaged = DecisionLog(path).damaged()
    return [f"{path}: {number_of(damaged, 'damaged line')}"] if damaged else []


def texts_in(folder: DataFolder, raw: Path, user_id: int) -> list[str]:
    """Collect what a person wrote, from a data folder and a raw archive. Blocking. Raises OSError."""
    asked = (post.question for post in read_posts(folder.posts) if post.asker_id == user_id)
    return [*_written_by(raw, user_id), *asked, *questions_of(folder, user_id)]


def _edit(path: Path, change: Callable[[Record], Record | None], done: ForgetResult) -> tuple[int, int]:
    """The numbers of lines that were dropped and changed."""
    edited = edit(path, change)
    if edited.damaged:
        done.left.append(f"{path}: {number_of(edited.damaged, 'damaged line')}")
    return edited.dropped, edited.changed


def _written_by(raw: Path, user_id: int) -> Iterator[str]:
    for path in sorted(raw.glob("*.txt")):
        for pair in (pair for _, pair in blocks_in(path) if isinstance(pair, Pair)):
            turns = zip(pair.author_ids, pair.turns, strict=True)
            yield from (turn.text for author_id, turn in turns if author_id == user_id and turn.text != REMOVED)


def _taken_part_in(raw: Path, user_id: int) -> Iterator[Decimal]:
    """The keys of the pairs that they take part in."""
    for path in sorted(raw.glob("*.txt")):
        yield from (pair.key for _, pair in blocks_in(path) if isinstance(pair, Pair) and user_id in pair.author_ids)


@dataclass(frozen=True, slots=True)
class _Recordings:
    """The files of recorded exchanges; and recordings of Discord, each with what it holds of the person."""

    exchanges: set[Path]
    recordings: dict[Path, PersonInRecording] = field(default_factory=dict[Path, PersonInRecording])


def _looked_through(
    folder: DataFolder, surroundings: FolderContents | None, user_id: int, done: ForgetResult
) -> _Recordings:
    """Find the recordings in the folder. If asked for (`surroundings`), also name every other file that is not the
    program's.
    """
    recorded = folder.llm_recordings.glob("**/*.jsonl")
    about = _Recordings({path for path in recorded if path.is_file() and not path.is_symlink()})
    if surroundings is None:
        return about
    paths = [path for path in unknown_files(folder, surroundings.ours) if path not in about.exchanges]
    logs = logs_among(paths, surroundings.log)
    if surroundings.running:
        done.left += named(sorted({*paths, *logs}), "not looked into while the bot runs; app.py --forget does so")
        return about
    done.left += named(logs, "a log; its lines have their id, and may repeat what they wrote")
    links = [path for path in paths if path.is_symlink() and path not in logs]
    done.left += named(links, "a link; what it leads to is not looked into")
    paths = [path for path in paths if path not in links]
    kinds = dict[Path, Kind]()
    for path in paths:
        if path in logs:
            continue
        try:
            kinds[path] = kind_of(path)
        except OSError as error:
            done.left.append(f"{path}: cannot be read ({error.strerror}), so it is not known whose words it holds")
    about.exchanges.update(path for path, kind in kinds.items() if kind is Kind.EXCHANGES)
    for path in (path for path, kind in kinds.items() if kind is Kind.RECORDING):
        found = about.recordings[path] = find_in_recording(path, user_id)
        if found.damaged:
            done.left.append(f"{path}: {number_of(found.damaged, 'damaged line')}")
    saved = {attachments_of(path) for path in about.recordings}
    others = [path for path, kind in kinds.items() if kind is Kind.OTHER and path.parent not in saved]
    done.left += named(others, "none of this program's, not looked into")
    databases = [path for path, kind in kinds.items() if kind is Kind.DATABASE]
    unused = "a database that this configuration does not use, not looked into; delete it unless something else does"
    done.left += named(databases, unused)
    return about


def _topics_to_rename(learned: TeamData, user_id: int, texts: list[str]) -> tuple[dict[str, str], set[str], list[str]]:
    """Find topics whose names contain words that only this person used in what was filed there. Returns new names
    without these words, by the old ones; the topics that keep their names all the same; and the topics in whose names a
    word merely holds one of theirs.
    """
    raw = learned.raw
    filed: defaultdict[Decimal, set[str]] = defaultdict(set)
    for decision in DecisionLog(learned.folder.decisions).read():
        filed[decision.key].update(decision.topics)
    left: defaultdict[str, set[str]] = defaultdict(set)
    theirs: set[str] = set()
    for path in sorted(raw.glob("*.txt")):
        for pair in (pair for _, pair in blocks_in(path) if isinstance(pair, Pair)):
            turns = zip(pair.author_ids, pair.turns, strict=True)
            others = name_words(turn.text for author_id, turn in turns if author_id != user_id)
            for topic in filed.get(pair.key, ()):
                left[topic] |= others
            if user_id in pair.author_ids:
                theirs |= filed.get(pair.key, set())
    own = {word for word in name_words(texts) if len(word) >= NAME_CHARS}
    taken = {topic for topics in filed.values() for topic in topics}
    names, alike = dict[str, str](), list[str]()
    for topic in sorted(theirs):
        words = own - left[topic]
        if (name := library.name_without(topic, words, {*taken, *names.values()})) != topic:
            names[topic] = name
        if library.holds_word(name, words, HELD_CHARS):
            alike.append(name)
    fixed = {topic for topic in names if learned.team is None or belongs_to(topic, learned.named_by_operator)}
    return {topic: name for topic, name in names.items() if topic not in fixed}, fixed, alike


def _forget_votes(folder: DataFolder, user_id: int, asked: set[str], texts: set[str], done: ForgetResult) -> None:
    """`asked`: the ids of the posts that answer the person; `texts`: what they wrote, if a post is noted no more."""
    try:
        voter = pseudonym(folder.feedback_key.read_bytes(), user_id)
    except FileNotFoundError:
        voter = None  # either nobody has voted, or it can no longer be told who did

    def without(row: Record) -> Record | None:
        if voter is not None and row.get("voter") == voter:
            return None
        theirs = row.get("message_id") in asked or row.get("question") in texts
        return {**row, "question": REMOVED} if theirs else row

    done.votes, done.questions = _edit(folder.feedback, without, done)


def _forget_turns(path: Path, user_id: int, done: ForgetResult) -> None:
    pieces: list[str] = []
    removed = unreadable = unknown = 0
    for piece, pair in blocks_in(path):
        if not isinstance(pair, Pair):
            unreadable += 1
            pieces.append(piece)
            continue
        unknown += archive.UNKNOWN in pair.author_ids
        if (without := archive.without(pair, user_id)) != pair:
            removed += sum(before != after for before, after in zip(pair.turns, without.turns, strict=True))
            pieces.append(archive.render(without))
            continue
        pieces.append(piece)
    if removed:
        files.replace(path, "".join(pieces).encode("utf-8", "surrogateescape"))
        done.turns += removed
    if unreadable:
        done.left.append(f"{path}: {number_of(unreadable, 'malformed or truncated block')}")
    if unknown:
        stored = number_of(unknown, "conversation")
        done.left.append(f"{path}: {stored} stored by an earlier program, which did not note who wrote what")


def _forget_waiting(pending: Path, user_id: int, done: ForgetResult) -> None:
    """Waiting captures are dropped whole: without these messages and their images they are of little use."""
    for path in sorted(pending.glob("*")) if pending.is_dir() else []:
        authors = _authors(path) if path.is_file() else None
        if authors is None:
            done.left.append(f"{path}: cannot tell whose it is")
        elif user_id in authors:
            files.remove(path)
            done.pending += 1


def _authors(path: Path) -> set[int] | None:
    """Who wrote what is in a waiting capture, by its first line: `{…, "said": [{"author_id": "311", …}, …]}`."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        head: Any = json.loads(line)
        return {int(said["author_id"]) for said in head["said"]}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


class TeamData(NamedTuple):
    """The knowledge of one team: its data folder, its raw archive, and its library (None: topics are left alone).
    Topics in `named_by_operator` keep their names.
    """

    folder: DataFolder
    raw: Path
    team: TeamLibrary | None = None
    named_by_operator: Collection[str] = ()


def collect_texts(learned: Sequence[TeamData], user_id: int, others: Sequence[Path] = ()) -> list[str]:
    """Collect what a person wrote, before anything is removed. `others`: further archives, which are only read.
    Blocking. Raises OSError.
    """
    texts = [text for each in learned for text in texts_in(each.folder, each.raw, user_id)]
    return [*texts, *(text for each in others for text in texts_in(learned[0].folder, each, user_id))]


def planned_renames(shared: TeamData, servers: Sequence[TeamData], user_id: int) -> dict[str, str]:
    """Return the new ids, by the old ones, of the topics that forgetting a person renames. Blocking. Raises OSError."""
    texts = collect_texts([shared, *servers], user_id)
    renamed, _, _ = _topics_to_rename(shared, user_id, texts)
    return _source_ids(renamed) | _renames_in(servers, user_id, texts)


def _renames_in(servers: Sequence[TeamData], user_id: int, texts: list[str]) -> dict[str, str]:
    """`servers`: each in its folder, which is called by the id of the server."""
    ids = dict[str, str]()
    for server in servers:
        renamed, _, _ = _topics_to_rename(server, user_id, texts)
        owner = int(server.folder.root.name)
        ids |= {with_owner(old, owner): with_owner(new, owner) for old, new in _source_ids(renamed).items()}
    return ids


def _source_ids(names: Mapping[str, str]) -> dict[str, str]:
    return {f"team:{old}.txt": f"team:{new}.txt" for old, new in names.items()}


def forget_in_all_servers(
    shared: TeamData,
    servers: Sequence[TeamData],
    user_id: int,
    texts: list[str],
    surroundings: FolderContents | None = None,
    renamed: Mapping[str, str] | None = None,
    published: Callable[[], Iterable[str]] = tuple,
    other_archives: Sequence[Path] = (),
) -> ForgetResult:
    """Run `forget` on the shared data and on that of each server, and add up the results. `texts`: what the person
    wrote; texts found in recordings are added to it. `renamed`: as `planned_renames`, of an archive that is kept by
    another process; so are `other_archives`, which are only read. `published`: gives the documentation.
    """
    own_words = OwnWords(user_id, [*(each.raw for each in (shared, *servers)), *other_archives], published)

    def renamed_elsewhere(texts: list[str]) -> Mapping[str, str]:
        return {**(renamed or {}), **_renames_in(servers, user_id, texts)}

    for server in servers:
        files.remove_folder(server.folder.regeneration)  # or it would be named, and gone by then
    done = forget(
        shared.folder,
        shared.raw,
        user_id,
        shared.team,
        surroundings,
        texts,
        shared.named_by_operator,
        renamed_elsewhere,
        own_words,
    )
    for server in servers:
        named_by_operator = server.named_by_operator
        done.add(
            forget(server.folder, server.raw, user_id, server.team, None, texts, named_by_operator, own_words=own_words)
        )
    return done
