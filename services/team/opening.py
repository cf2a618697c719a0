"""Opens a team library: reads, checks and repairs what is on the disk.

Topic files are written as archive and decisions say. One that differs is either out of date since a crash, and is
overwritten; or somebody changed it, and it is kept as `<topic>.txt.rejected`.

Blocking; for the holder of the data folder's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from services.knowledge import PairTurn, TopicBlock, is_topic_name, topic_blocks
from services.storage import files
from services.team import archive, decisions
from services.team.archive import REMOVED, Pair, piece_of
from services.team.archive_files import ArchiveReader
from services.team.decisions import Decision, DecisionLog
from services.team.index import TeamIndex
from services.team.library import TeamLibrary
from services.team.state import LibraryUnusable, TeamPaths, TeamState, read_state, render_state, start_cursor
from services.team.topics import Placement, Topic, TopicFold, has_team_text, sort_key, topic_block

log = logging.getLogger(__name__)


def open_library(
    paths: TeamPaths,
    *,
    configured_cursor: str = "",
    max_topic_chars: int = 40_000,
    describer_key: str = "",
    described_in: Path | None = None,
    time: Callable[[], float],
) -> TeamLibrary:
    """Open and repair the library in `paths`.

    `configured_cursor` is `kb.qa_raw_last_processed_id`; `describer_key` names the prompt and model that descriptions
    must come from; `described_in` is the cache of another library, whose descriptions of the same content are used;
    `time` gives seconds since 1970, from any thread (`clock.utc_clock`). Raises OSError, and
    LibraryUnusable: a cursor or a file is invalid; nothing was changed.
    """
    decision_log = DecisionLog(paths.decisions)
    known = read_state(paths.state)
    start = start_cursor(paths, known, configured_cursor, time())
    has_decisions = paths.decisions.exists()
    start_qa_id = known.start_id(has_decisions=has_decisions)
    for folder in {paths.raw, *(file.parent for file in (decision_log.path, paths.index, paths.cache, paths.state))}:
        if folder.is_dir():
            files.clear_leftovers(folder)
    if has_decisions:
        decision_log.repair_tail()
    elif start_qa_id != known.start_qa_id:
        # Until now the start cursor was `last_processed_qa_id`, which the next decision replaces.
        known = TeamState(known.last_processed_qa_id, start_qa_id)
        files.replace(paths.state, render_state(known))
    reader = ArchiveReader(paths.raw)
    content = decision_log.content()
    in_files, later = _split(content, str(decision_log.path), known.filed_bytes)
    placement = Placement((*in_files, *later), start)
    wanted = placement.topic_of.keys() | placement.removed
    known_pairs = [pair for pair in reader.survey(placement.is_undecided) if pair.key in wanted]
    active = [pair for pair in known_pairs if pair.key in placement.topic_of]
    if missing := count_missing(paths.raw, placement, active):
        log.warning("%s: %d filed conversations are not there, and left out of their topics", paths.raw, missing)
    fold = TopicFold(placement, known_pairs)
    _repair(paths.topics, fold.topics, None if known.is_swapping_in(content) else TopicHistory(reader, in_files, later))
    index = TeamIndex(paths.index, paths.cache, describer_key)
    index.load(fold.topics, described_in)
    library = TeamLibrary(
        paths=paths,
        reader=reader,
        decisions=decision_log,
        fold=fold,
        state=known,
        team_index=index,
        max_topic_chars=max_topic_chars,
        time=time,
    )
    library.flush()
    return library


def check_library(paths: TeamPaths, *, configured_cursor: str = "", now: float) -> None:
    """Raise what `open_library` would raise, and change nothing. `now`: seconds since 1970."""
    start = start_cursor(paths, read_state(paths.state), configured_cursor, now)
    placement = Placement(DecisionLog(paths.decisions).read(), start)
    pairs = ArchiveReader(paths.raw).survey(placement.is_undecided)
    count_missing(paths.raw, placement, [pair for pair in pairs if pair.key in placement.topic_of])


def count_missing(raw: Path, placement: Placement, active: Collection[Pair]) -> int:
    """Return how many filed pairs are not among the `active` ones read from `raw`. Raises LibraryUnusable if all are
    missing.
    """
    missing = len(placement.topic_of) - len({pair.key for pair in active})
    if missing and not active:
        raise LibraryUnusable(
            f"{raw} holds none of the {missing} captured conversations that are filed under topics; "
            "is the folder mounted, and the right one?"
        )
    return missing


def _split(data: bytes, file: str, filed_bytes: int) -> tuple[list[Decision], list[Decision]]:
    """Return the decisions that topic files are known to contain, and the later ones."""
    split = max(filed_bytes, 0)
    if split > len(data) or decisions.sound_length(data[:split]) < split:
        split = 0
    line = data[:split].count(b"\n") + 1
    return decisions.parse(data[:split], file), decisions.parse(data[split:], file, line)


class _TopicContent(NamedTuple):
    """The content of a topic at one time: the keys of its pairs, with the messages that were in it (None: all); and
    their corrections: corrected pair, correcting pair, text.
    """

    pieces: frozenset[tuple[Decimal, frozenset[int] | None]]
    corrections: frozenset[tuple[Decimal, Decimal, str]]

    @property
    def keys(self) -> frozenset[Decimal]:
        return frozenset(key for key, _ in self.pieces)

    def allows_corrections_of(self, block: TopicBlock, pair: Pair, pairs: Mapping[Decimal, Pair]) -> bool:
        """Return True if a block may have its corrections from that time, possibly before people were forgotten.
        `pairs`: the pairs of the archive, by key.
        """
        own = [(pairs[by], what) for key, by, what in self.corrections if key == pair.key and by in pairs]
        own = [(by, what) for by, what in own if sort_key(by) > sort_key(pair)]
        known = {(by.said_at, what) for by, what in own}
        dates = {each.said_at for each in block.corrections}
        return all(
            (each.said_at, each.text) in known or (each.said_at, REMOVED) in known for each in block.corrections
        ) and all(by.said_at in dates for by, _ in own if has_team_text(by))


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """The content of topics after each of the latest decisions. Topic files are known to contain the decisions
    `in_files`; those of `later` came after them.
    """

    reader: ArchiveReader
    in_files: Sequence[Decision]
    later: Sequence[Decision]

    def includes(self, topic: str, text: str) -> bool:
        """Return True if `text` was the topic's file after one of these decisions, possibly before people were
        forgotten.
        """
        try:
            blocks = {archive.instant(block.id): block for block in topic_blocks(text)}
        except archive.BadId:
            return False
        if "".join(block.text for block in blocks.values()) != text:
            return False
        return any(self._fits(blocks, then) for then in self._contents_of(topic) if blocks.keys() <= then.keys)

    def _fits(self, blocks: Mapping[Decimal, TopicBlock], then: _TopicContent) -> bool:
        """Return True if these are the blocks of a topic with the content `then`, as far as the archive has its
        pairs.
        """
        found = self.reader.find(then.keys)
        pieces_by_key = {key: piece_of(found[key], messages) for key, messages in then.pieces if key in found}
        pairs = {key: piece for key, piece in pieces_by_key.items() if piece is not None}
        if any(has_team_text(pair) for key, pair in pairs.items() if key not in blocks):
            return False
        order = [key for key in sorted(pairs, key=lambda key: sort_key(pairs[key])) if key in blocks]
        if order != [key for key in blocks if key in pairs]:
            return False
        known = found | self.reader.find({by for _, by, _ in then.corrections} - then.keys)
        return all(
            _is_block_of(blocks[key], pairs[key]) and then.allows_corrections_of(blocks[key], pairs[key], known)
            for key in order
        )

    def _contents_of(self, topic: str) -> Iterator[_TopicContent]:
        """Yield the contents of the topic, oldest first."""
        placement = Placement(self.in_files)
        last: _TopicContent | None = None
        for decision in (None, *self.later):
            moves = placement.apply(decision) if decision is not None else []
            if last is None or placement.corrected or any(topic in move[1:] for move in moves):
                places = ((key, placement.messages_by_topic(key)) for key in placement.topic_of)
                pieces = frozenset((key, own[topic]) for key, own in places if topic in own)
                corrected = {key for key, _ in pieces} & placement.corrected.keys()
                corrections = ((key, *each) for key in corrected for each in placement.corrections(key))
                now = _TopicContent(pieces, frozenset(corrections))
                if now != last:
                    yield now
                last = now


def _is_block_of(block: TopicBlock, pair: Pair) -> bool:
    """Return True if this is a block of the pair, possibly from before texts were removed, or in the earlier format."""
    if (block.id, block.timestamp) != (pair.id, pair.timestamp) or block.said_at not in {pair.said_at, None}:
        return False
    current = topic_block(pair)
    if block.said_at is None:
        current = replace(current, speakers=())
    turns = iter(_turns_of(block))
    return len(block.turns) <= len(pair.turns) and all(turn in turns for turn in _turns_of(current))


def _turns_of(block: TopicBlock) -> list[tuple[str, PairTurn]]:
    """Return the turns with their speakers, without "(to …)", which depends on turns that may have been removed. The
    only user may be `User` or `User A`.
    """
    speakers = (label.partition(" (")[0].removesuffix(" A") for label in block.labels)
    return list(zip(speakers, block.turns, strict=True))


def _repair(folder: Path, topics: Mapping[str, Topic], history: TopicHistory | None) -> None:
    """Write the files of the topics. A file that is not in `history` is moved aside, unless that is None. Raises
    OSError.
    """
    files.clear_leftovers(folder)
    existing = {path.stem for path in folder.glob("*.txt") if is_topic_name(path.stem)}
    for name in sorted({*existing, *topics}):
        wanted = topics[name].text.encode() if name in topics else None
        path = folder / f"{name}.txt"
        if name in existing:
            found = path.read_bytes() if path.is_file() and not path.is_symlink() else None
            if found is not None and found == wanted:
                continue
            if found is None or (history is not None and not history.includes(name, found.decode(errors="replace"))):
                aside = files.move_aside(path, ".rejected")
                log.warning("%s was changed by hand; moved to %s. Use --kb remove and --kb restore", path, aside.name)
        if wanted is not None:
            files.replace(path, wanted)
        else:
            files.remove(path)
