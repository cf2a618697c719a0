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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from model.messages import is_snowflake
from model.source_ids import topic_id, with_owner
from services.conversations import forget_drafts, forget_started, read_drafts, read_posts, replies_with
from services.knowledge import belongs_to, name_words
from services.llm import read_spent, render_spent
from services.privacy.recordings import (
    PersonInRecording,
    attachments_folder,
    drop_llm_calls,
    find_in_recording,
    published_in,
    remove_from_recording,
    said_in_recording,
)
from services.privacy.text_match import LONG_CHARS, OwnWords, Said, TextMatch, blocks_in, pairs_in, said_in_archive
from services.privacy.unknown_files import ConfiguredFiles, FileKind, kind_of, logs_among, report_lines, unknown_files
from services.storage import DataFolder, Record, edit_records, files, read_object, read_records, replace_strings
from services.team import REMOVED, DecisionLog, Pair, TeamLibrary, archive, filing
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
    """Read the key of an installation, or make it. Blocking. Raises OSError."""
    if not path.exists():
        files.replace(path, new_pseudonym_key())
    return path.read_bytes()


def new_pseudonym_key() -> bytes:
    return secrets.token_hex(32).encode()


def outcome_files(folder: DataFolder) -> list[Path]:
    return sorted(folder.outcomes.glob("*.jsonl"))


def questions_of(folder: DataFolder, user_id: int) -> Iterator[str]:
    """Yield the person's questions, including those without a reply."""
    for path in outcome_files(folder):
        entries = (parse_part_outcome(line) for line in path.read_bytes().splitlines())
        yield from (entry.question for entry in entries if entry and entry.author_id == user_id and entry.question)


def said_in(folder: DataFolder) -> Iterator[Said]:
    """Yield the questions in a data folder: of outcomes, posts, drafts and votes. Blocking. Raises OSError."""
    for path in outcome_files(folder):
        entries = (parse_part_outcome(line) for line in path.read_bytes().splitlines())
        known = (entry for entry in entries if entry and entry.message_ids)
        yield from (Said(entry.message_ids[-1], entry.author_id, entry.question) for entry in known)
    posts = read_posts(folder.posts)
    yield from (Said(post.last_asked_id, post.asker_id, post.question) for post in posts)
    for draft in read_drafts(folder.drafts):
        if not draft.is_reworded:  # else it is not known since when it reads so
            yield Said(draft.id, draft.reply.post.asker_id, "\n".join((draft.reply.post.question, *draft.asked_texts)))
    answers = {str(post.message_id) for post in posts}
    for row in read_records(folder.feedback):
        message_id, question = str(row.get("message_id")), row.get("question")
        if message_id not in answers and is_snowflake(message_id) and isinstance(question, str):
            yield Said(int(message_id), archive.UNKNOWN, question)


def outcomes_without(user_id: int, match: TextMatch) -> Callable[[Record], Record | None]:
    """Return a function for `edit_records` that drops the records of the person's parts. In questions of others, lines
    that repeat the person's words become `[removed]`.
    """

    def change(row: Record) -> Record | None:
        if row.get("author_id") == str(user_id):
            return None
        question = row.get("question")
        return {**row, "question": match.redacted(question)} if isinstance(question, str) else row

    return change


def rename_sources(folder: DataFolder, ids: Mapping[str, str]) -> None:
    """Replace the ids of sources in outcomes, votes, posts, drafts and the outbox. `ids`: new by old."""
    on_their_way = (*folder.drafts.glob("*.json"), *folder.outbox.glob("*.json"))
    for path in (folder.feedback, folder.posts, *outcome_files(folder), *on_their_way) if ids else ():
        edit_records(path, lambda row: cast("Record", replace_strings(row, ids)))


NAME_WORD_CHARS = 3
"""The shortest word of a person that is taken out of the names of topics."""
INNER_WORD_CHARS = 5
"""The shortest word that is looked for inside other words of a topic's name."""


@dataclass(slots=True)
class ForgetResult:
    """Counts of what was found and removed.

    Attributes:
        turns: texts in the raw archive that became `[removed]`.
        votes, questions: rows of the feedback file that were dropped; questions in other rows that became `[removed]`.
        exchanges, pending: calls in LLM recordings, and waiting captures, that were dropped.
        recorded: dispatches in recordings that were dropped, or lost the person's words.
        ends: records of outcomes that were dropped.
        files, runbooks, topics: documents that the caller deleted; topics without the person's words now.
        copies: search copies of topics that the caller deleted.
        left: lines for the operator: what could not be dealt with.
        renamed: new ids by old ids of sources whose names had a word of the person.
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
    def found_anything(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in {"left", "renamed"})


def has_archived_text(raw: Path, user_id: int) -> bool:
    """Return True if the raw archive holds a text of the person, so that copies of topics may, too: delete these first,
    as `forget` changes the archive. Blocking.
    """
    return any(True for _ in _texts_by(raw, user_id))


class TeamData(NamedTuple):
    """The data of one team: its data folder, its raw archive, and its library (None: topics are left alone). Topics in
    `named_by_operator` keep their names.
    """

    folder: DataFolder
    raw: Path
    library: TeamLibrary | None = None
    named_by_operator: Collection[str] = ()


@dataclass(slots=True)
class _Removal:
    """Removes a person from the data of one team: from its folder, its archive, and the topics, which follow from that.

    `texts`: the person's, which are searched for; those that are found are added. `own_words`: tells which lines in
    records of others count as the person's. `done`: the counts so far.

    Only for the holder of the data folder's lock, which may be the running bot. Every file is replaced whole.
    """

    data: TeamData
    user_id: int
    texts: list[str]
    own_words: OwnWords
    done: ForgetResult = field(default_factory=ForgetResult, init=False)

    def run(
        self,
        configured: ConfiguredFiles | None = None,
        renamed_elsewhere: Mapping[str, str] | None = None,
        servers: Sequence[TeamData] = (),
    ) -> ForgetResult:
        """Remove the person, and return the counts. Raises OSError and LibraryUnwritable: a file cannot be read or
        written; what was done until then stays done.

        `configured`: unless it is None, every other file of the folder is dealt with or reported. `renamed_elsewhere`:
        new ids by old ones of sources renamed outside of the folder; those of topics of `servers` are added. Without a
        library, topics are left and reported; the next opening of the library removes the person from them. A topic
        whose name has a word of the person is renamed, unless the operator named it.

        First come recordings, votes and descriptions of topics, which are found by the person's texts and the replies
        to them; then the archive, topics and posts, which hold these texts. So after a crash, another call finishes the
        work.
        """
        folder, raw, team, _ = self.data
        self._clear_leftovers(configured)
        self.texts += texts_in(folder, raw, self.user_id)
        found = self._find_recordings(configured)
        self.texts += [text for of_person in found.recordings.values() for text in of_person.texts]
        renamed = self._topics_to_rename()
        elsewhere = {**(renamed_elsewhere or {}), **_renames_in(servers, self.user_id, self.texts)}
        ids = self.done.renamed = {**_source_ids(renamed), **elsewhere}
        match, questions, redacted = self._forget_recorded(found, ids)
        self._forget_votes(match, questions)
        _forget_counts(folder.usage)
        self._forget_outcomes(match, redacted)
        rename_sources(folder, ids)
        self._forget_pending()
        if team is not None:
            team.drop_descriptions_of(self.user_id)  # first, as it finds them by the texts in topics
            team.rename(renamed)
        for path in sorted(raw.glob("*.txt")):
            with files.locked_for_edit(path):
                self._forget_turns(path)
        if team is not None:
            self.done.topics = len(team.forget(self.user_id))
        else:
            theirs = {pair.key for pair in pairs_in(raw) if self.user_id in pair.author_ids}
            DecisionLog(folder.decisions).forget(theirs)
        self.done.posts, _ = self._edit(folder.posts, lambda row: None if row.get("asker_id") == self.user_id else row)
        self._edit(folder.audit, lambda row: {**row, "by": ""} if row.get("by") == str(self.user_id) else row)
        self.done.posts += forget_started(folder.outbox, self.user_id)
        self.done.posts += forget_drafts(folder.drafts, self.user_id, match.found_in)
        self.done.left += self._lines_about_rest()
        return self.done

    def _clear_leftovers(self, configured: ConfiguredFiles | None) -> None:
        """Delete copies that crashes have left, and a rebuild that was cut off."""
        folder = self.data.folder
        folders = [folder.root, folder.posts.parent, folder.outbox, folder.drafts, folder.outcomes]
        folders += [folder.llm_recordings, folder.pending, self.data.raw]
        if configured is not None:
            folders += (path for path in folder.root.rglob("*") if path.is_dir())
        for each in folders:
            files.clear_leftovers(each)
        files.remove_folder(folder.regeneration)

    def _topics_to_rename(self) -> dict[str, str]:
        """Return the new names of topics by the old ones, and report topics that keep a word of the person."""
        renamed, with_word, with_inner_word = _topics_to_rename(self.data, self.user_id, self.texts)
        prefix = f"{self.data.folder.decisions} and {self.data.folder.team_topics}: the name of the topic"
        self.done.left += [f"{prefix} {topic} has a word of theirs" for topic in sorted(with_word)]
        inner = [topic for topic in with_inner_word if topic not in with_word]
        self.done.left += [f"{prefix} {topic} holds a word of theirs within another" for topic in inner]
        return renamed

    def _find_recordings(self, configured: ConfiguredFiles | None) -> _Recordings:
        """Find the recordings in the folder. With `configured`, also report every other file that is not the
        program's.
        """
        folder, left = self.data.folder, self.done.left
        recorded = folder.llm_recordings.glob("**/*.jsonl")
        found = _Recordings({path for path in recorded if path.is_file() and not path.is_symlink()})
        if configured is None:
            return found
        paths = [path for path in unknown_files(folder, configured.ours) if path not in found.llm_files]
        logs = logs_among(paths, configured.log)
        if configured.is_running:
            why = "not looked into while the bot runs; app.py --forget does so"
            left += report_lines(sorted({*paths, *logs}), why)
            return found
        left += report_lines(logs, "a log; its lines have their id, and may repeat what they wrote")
        links = [path for path in paths if path.is_symlink() and path not in logs]
        left += report_lines(links, "a link; what it leads to is not looked into")
        by_kind = self._by_kind(path for path in paths if path not in logs and path not in links)
        found.llm_files.update(by_kind[FileKind.LLM_CALLS])
        for path in by_kind[FileKind.RECORDING]:
            of_person = found.recordings[path] = find_in_recording(path, self.user_id)
            self._report_damaged(path, of_person.damaged)
        attachments = {attachments_folder(path) for path in found.recordings}
        others = [path for path in by_kind[FileKind.OTHER] if path.parent not in attachments]
        left += report_lines(others, "none of this program's, not looked into")
        unused = (
            "a database that this configuration does not use, not looked into; delete it unless something else does"
        )
        left += report_lines(by_kind[FileKind.DATABASE], unused)
        return found

    def _by_kind(self, paths: Iterable[Path]) -> Mapping[FileKind, list[Path]]:
        """Group files by their kind, and report those that cannot be read."""
        found: defaultdict[FileKind, list[Path]] = defaultdict(list)
        for path in paths:
            try:
                found[kind_of(path)].append(path)
            except OSError as error:
                why = f"cannot be read ({error.strerror}), so it is not known whose words it holds"
                self.done.left.append(f"{path}: {why}")
        return found

    def _forget_recorded(self, found: _Recordings, ids: Mapping[str, str]) -> tuple[TextMatch, set[str], int]:
        """Forget the person in recordings. Returns the match that finds their words in records of others, those of
        their texts that have words of their own, and how many LLM calls of others lost lines.
        """
        paths = sorted(found.llm_files)
        self.own_words.records = [
            *self.own_words.records,
            *(partial(said_in_recording, each, self.user_id) for each in found.recordings),
        ]
        in_prompts = OwnWords(self.user_id, published=lambda: (text for path in paths for text in published_in(path)))

        def own(texts: list[str]) -> list[str]:
            return in_prompts.of(self.own_words.of(texts))

        dropped = drop_llm_calls(paths, self.user_id, self.texts, ids, own)
        self.done.exchanges = dropped.calls
        self.done.left += dropped.left
        own_texts = own(self.texts)
        match = TextMatch(own_texts, LONG_CHARS)
        pairs = zip(self.texts, own_texts, strict=True)
        questions = {text for text, rest in pairs if rest == text or TextMatch([rest]).found_in(text)}
        for path, of_person in found.recordings.items():
            self.done.recorded += remove_from_recording(path, self.user_id, of_person, match)
        return match, questions, dropped.redacted

    def _forget_votes(self, match: TextMatch, questions: Collection[str]) -> None:
        """Drop the person's votes, and remove their questions and words from those of others. `questions`: theirs, by
        which votes are found whose post has no record.
        """
        try:
            voter = pseudonym(self.data.folder.feedback_key.read_bytes(), self.user_id)
        except FileNotFoundError:
            voter = None  # nobody has voted, or nobody can tell any more who did
        askers = {str(post.message_id): post.asker_id for post in read_posts(self.data.folder.posts)}

        def change(row: Record) -> Record | None:
            if voter is not None and row.get("voter") == voter:
                return None
            question, asker = row.get("question"), askers.get(str(row.get("message_id")))
            if asker == self.user_id or (asker is None and question in questions):
                return {**row, "question": REMOVED}
            return {**row, "question": match.redacted(question)} if isinstance(question, str) else row

        self.done.votes, self.done.questions = self._edit(self.data.folder.feedback, change)

    def _forget_outcomes(self, match: TextMatch, redacted: int) -> None:
        """Drop the outcomes of the person's parts, and report how many records of others repeated their words.
        `redacted`: the number of such LLM calls.
        """
        changed = 0
        for path in outcome_files(self.data.folder):
            dropped, edited = self._edit(path, outcomes_without(self.user_id, match))
            self.done.ends += dropped
            changed += edited
        counts = ((redacted, "exchange", " with a model"), (changed, "question", ""))
        changes = " and ".join(f"{number_of(count, what)}{more}" for count, what, more in counts if count)
        if changes:
            self.done.left.append(f"of others, {changes} repeated lines of theirs, which are {REMOVED} now")

    def _forget_pending(self) -> None:
        """Drop the waiting captures that hold a message of the person, whole: the rest would be of little use."""
        pending = self.data.folder.pending
        for path in sorted(pending.glob("*")) if pending.is_dir() else []:
            authors = _authors(path) if path.is_file() else None
            if authors is None:
                self.done.left.append(f"{path}: cannot tell whose it is")
            elif self.user_id in authors:
                files.remove(path)
                self.done.pending += 1

    def _forget_turns(self, path: Path) -> None:
        """Remove the person's texts from a file of the archive."""
        pieces: list[str] = []
        removed = unreadable = unknown = 0
        for piece, pair in blocks_in(path):
            if not isinstance(pair, Pair):
                unreadable += 1
                pieces.append(piece)
                continue
            unknown += archive.UNKNOWN in pair.author_ids
            kept = archive.remove_texts(pair, self.user_id)
            removed += sum(before != after for before, after in zip(pair.turns, kept.turns, strict=True))
            pieces.append(piece if kept == pair else archive.render(kept))
        if removed:
            files.replace(path, "".join(pieces).encode("utf-8", "surrogateescape"))
            self.done.turns += removed
        if unreadable:
            self.done.left.append(f"{path}: {number_of(unreadable, 'malformed or truncated block')}")
        if unknown:
            stored = number_of(unknown, "conversation")
            self.done.left.append(f"{path}: {stored} stored by an earlier program, which did not note who wrote what")

    def _edit(self, path: Path, change: Callable[[Record], Record | None]) -> tuple[int, int]:
        """Edit a file. Returns how many lines were dropped, and how many changed."""
        edited = edit_records(path, change)
        self._report_damaged(path, edited.damaged)
        return edited.dropped, edited.changed

    def _report_damaged(self, path: Path, lines: int) -> None:
        if lines:
            self.done.left.append(f"{path}: {number_of(lines, 'damaged line')}")

    def _lines_about_rest(self) -> Iterator[str]:
        """Yield a line for the operator about each thing that may still hold words of the person."""
        folder, raw, team, _ = self.data
        unfinished = "a reply to somebody else that is being posted, or that the next start finishes; it may quote them"
        for path in replies_with(folder.outbox, self.user_id):
            yield f"{path}: {unfinished}, and is removed then"
        if damaged := DecisionLog(folder.decisions).count_damaged():
            yield f"{folder.decisions}: {number_of(damaged, 'damaged line')}"
        yield from (f"{path}: a block truncated by a crash" for path in sorted(raw.glob("*.torn")))
        if team is not None:
            rejected = sorted(team.paths.topics.glob("*.rejected*"))
            yield from (f"{path}: a topic that somebody changed by hand" for path in rejected)
        elif folder.team_topics.is_dir() and any(folder.team_topics.iterdir()):
            yield f"{folder.team_topics}: not looked through"


def _forget_counts(path: Path) -> None:
    """Drop the counts of an earlier program, which were kept by the ids of people. The counts of this program stay for
    an hour, without an id: else a person who is forgotten would get a new budget.
    """
    if "chains" in read_object(path):
        files.replace(path, render_spent(read_spent(path)))


def texts_in(folder: DataFolder, raw: Path, user_id: int) -> list[str]:
    """Collect a person's texts from a data folder and a raw archive. Blocking. Raises OSError."""
    asked = (post.question for post in read_posts(folder.posts) if post.asker_id == user_id)
    return [*_texts_by(raw, user_id), *asked, *questions_of(folder, user_id)]


def _texts_by(raw: Path, user_id: int) -> Iterator[str]:
    for pair in pairs_in(raw):
        turns = zip(pair.author_ids, pair.turns, strict=True)
        yield from (turn.text for author_id, turn in turns if author_id == user_id and turn.text != REMOVED)


@dataclass(frozen=True, slots=True)
class _Recordings:
    """The files with recorded LLM calls; and recordings of Discord, each with what it holds of the person."""

    llm_files: set[Path]
    recordings: dict[Path, PersonInRecording] = field(default_factory=dict[Path, PersonInRecording])


def _topics_to_rename(data: TeamData, user_id: int, texts: list[str]) -> tuple[dict[str, str], set[str], list[str]]:
    """Find topics whose names have words that only this person used in the pairs filed there. Returns new names without
    these words, by the old ones; the topics that keep such a name; and those with one of the person's words inside
    another word.
    """
    filed: defaultdict[Decimal, set[str]] = defaultdict(set)
    for decision in DecisionLog(data.folder.decisions).read():
        filed[decision.key].update(decision.topics)
    words_of_others: defaultdict[str, set[str]] = defaultdict(set)
    theirs: set[str] = set()
    for pair in pairs_in(data.raw):
        turns = zip(pair.author_ids, pair.turns, strict=True)
        others = name_words(turn.text for author_id, turn in turns if author_id != user_id)
        for topic in filed.get(pair.key, ()):
            words_of_others[topic] |= others
        if user_id in pair.author_ids:
            theirs |= filed.get(pair.key, set())
    own = {word for word in name_words(texts) if len(word) >= NAME_WORD_CHARS}
    taken = {topic for topics in filed.values() for topic in topics}
    new_names, with_inner_word = dict[str, str](), list[str]()
    for topic in sorted(theirs):
        words = own - words_of_others[topic]
        if (name := filing.remove_words(topic, words, {*taken, *new_names.values()})) != topic:
            new_names[topic] = name
        if filing.has_inner_word(name, words, INNER_WORD_CHARS):
            with_inner_word.append(name)
    kept = {topic for topic in new_names if data.library is None or belongs_to(topic, data.named_by_operator)}
    return {topic: name for topic, name in new_names.items() if topic not in kept}, kept, with_inner_word


def _authors(path: Path) -> set[int] | None:
    """Return the authors in a waiting capture, from its first line: `{…, "said": [{"author_id": "311", …}, …]}`."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        head: Any = json.loads(line)
        return {int(message["author_id"]) for message in head["said"]}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def collect_texts(teams: Sequence[TeamData], user_id: int, others: Sequence[Path] = ()) -> list[str]:
    """Collect a person's texts. `others`: further archives, which are only read. Blocking. Raises OSError."""
    texts = [text for team in teams for text in texts_in(team.folder, team.raw, user_id)]
    return [*texts, *(text for raw in others for text in _texts_by(raw, user_id))]


def planned_renames(shared: TeamData, servers: Sequence[TeamData], user_id: int) -> dict[str, str]:
    """Return the new ids, by the old ones, of the topics that forgetting a person renames. Blocking. Raises OSError."""
    texts = collect_texts([shared, *servers], user_id)
    renamed, _, _ = _topics_to_rename(shared, user_id, texts)
    return _source_ids(renamed) | _renames_in(servers, user_id, texts)


def _renames_in(servers: Sequence[TeamData], user_id: int, texts: list[str]) -> dict[str, str]:
    """Do as `planned_renames`, for `servers`. The name of each folder is the id of its server."""
    ids = dict[str, str]()
    for server in servers:
        renamed, _, _ = _topics_to_rename(server, user_id, texts)
        owner = int(server.folder.root.name)
        ids |= {with_owner(old, owner): with_owner(new, owner) for old, new in _source_ids(renamed).items()}
    return ids


def _source_ids(names: Mapping[str, str]) -> dict[str, str]:
    return {topic_id(old): topic_id(new) for old, new in names.items()}


def forget_in_all_servers(
    shared: TeamData,
    servers: Sequence[TeamData],
    user_id: int,
    texts: list[str],
    configured: ConfiguredFiles | None = None,
    renamed: Mapping[str, str] | None = None,
    published: Callable[[], Iterable[str]] = tuple,
    other_archives: Sequence[Path] = (),
) -> ForgetResult:
    """Remove a person from the shared data and from that of each server, and add up the results. Blocking. Raises as
    `_Removal.run`. `texts`: the person's; those found in recordings are added. `renamed`: the `planned_renames` of an
    archive that another process keeps; `other_archives`: such archives, which are only read. `published`: gives the
    documentation.
    """
    teams = shared, *servers
    archives = *(team.raw for team in teams), *other_archives
    records = [*(partial(said_in, team.folder) for team in teams), *(partial(said_in_archive, raw) for raw in archives)]
    own_words = OwnWords(user_id, records, published)
    for server in servers:
        files.remove_folder(server.folder.regeneration)  # else reported, though gone by then
    done = _Removal(shared, user_id, texts, own_words).run(configured, renamed, servers)
    for server in servers:
        done.add(_Removal(server, user_id, texts, own_words).run())
    return done
