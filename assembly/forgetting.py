"""Leaves people alone and forgets them, as they ask (`Privacy`); finds and opens the files that this has to change."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from assembly.answering import KB_FILE, TEAM_FILE, drop_team_passages
from assembly.data_folder import LEARNED_KB_PATHS, MADE_KB_PATHS
from assembly.documents import Documents, NamedStore, published_files, stored_files, unused_stores
from assembly.graph_parts import GraphParts, ServerParts
from assembly.team import open_team
from clock import SharedCalls, now
from model.bounded import RateLimit
from model.messages import snowflake_at
from model.servers import Servers
from services.conversations import History, Phrases, phrases
from services.discord.slash import Call, CommandRefused
from services.documents import Runbooks, Tombstones, forget_evidence
from services.documents.store import DocumentStore, StoreUnavailable
from services.documents.tools import TEAM
from services.knowledge import LibrarySearch
from services.privacy import (
    ConfiguredFiles,
    ForgetResult,
    TeamData,
    collect_texts,
    find_remaining_words,
    forget_in_all_servers,
    has_archived_text,
    planned_renames,
    rename_sources,
)
from services.search import PassageStore, passage_files
from services.storage import DataFolder, in_thread
from services.team import LibraryUnusable, LibraryUnwritable, TeamLibrary
from settings import Settings

log = logging.getLogger(__name__)

NATS_FOLDER = "nats"
"""The folder in `app.data_dir` with one of each process, where the transport is NATS."""


class TeamKnowledgeFiles(NamedTuple):
    """Files and search of one team: that of a server of its own, or that of all others."""

    data: TeamData
    search: LibrarySearch | None = None


def team_files(servers: Servers[ServerParts]) -> Servers[TeamKnowledgeFiles]:
    """Collect the team knowledge files of each server."""

    def of(server: ServerParts) -> TeamKnowledgeFiles:
        curation = server.captures.curation
        library = None if curation is None else curation.library
        return TeamKnowledgeFiles(team_data(server.settings, library), server.search)

    return servers.map(of)


def team_data(settings: Settings, library: TeamLibrary | None) -> TeamData:
    return TeamData(DataFolder(settings.app.data_dir), settings.kb.team_raw_dir, library, settings.kb.internal_topics)


def all_server_settings(settings: Settings) -> list[Settings]:
    """Return the settings of all servers, also of removed ones that still have a folder. Blocking. Raises OSError."""
    return [*settings.servers.values(), *settings_of_removed_servers(settings)]


def settings_of_removed_servers(settings: Settings) -> list[Settings]:
    """Return the settings of servers that are not in `guilds` and still have a folder. Blocking. Raises OSError."""
    there = DataFolder(settings.app.data_dir).guild_ids()
    return [settings.for_removed_server(guild_id) for guild_id in there if guild_id not in settings.servers]


def open_team_data(settings: Settings) -> TeamData:
    """Open the team knowledge, which no other process may have open. Blocking. Raises as `open_team`."""
    return team_data(settings, open_team(settings))


def open_removed_team(settings: Settings) -> tuple[TeamData, list[str]]:
    """Open the team knowledge of a server that was removed from `guilds`. Returns it and lines for the operator. If it
    cannot be opened, people are still forgotten elsewhere: its topics are left alone, and a line says what is wrong.
    """
    try:
        return open_team_data(settings), []
    except (OSError, LibraryUnusable, LibraryUnwritable) as error:
        left = f"{error}; the topics of this server, which is not in guilds, were left as they are"
        return team_data(settings, None), [left]


def forget_in_search(settings: Sequence[Settings], user_id: int) -> None:
    """Delete the search index of each team whose archive may have words of the person. Blocking. Raises OSError."""
    for each in settings:
        if has_archived_text(each.kb.team_raw_dir, user_id):
            drop_team_passages(each)


async def forget_documents(
    stores: Iterable[NamedStore], folder: DataFolder, user_id: int, tombstones: Tombstones
) -> ForgetResult:
    """Delete a person's files and runbooks from the stores, and close these. `tombstones`: gets an entry for each file.
    If a store cannot be used, a line names it, and the others are still handled. Raises OSError.
    """
    done = ForgetResult()
    for each in stores:
        try:
            await _forget_in_store(each.store, folder, user_id, tombstones, done)
        except StoreUnavailable as error:
            done.left.append(f"{each.place}: {error}")
    return done


async def _forget_in_store(
    store: DocumentStore, folder: DataFolder, user_id: int, tombstones: Tombstones, done: ForgetResult
) -> None:
    try:
        runbooks = Runbooks(store=store, shown_path=folder.shown_runbooks, run=in_thread)
        await runbooks.open()
        done.files += await forget_evidence(store, user_id, tombstones)
        done.runbooks += await runbooks.forget(user_id)
    finally:
        await store.close()


def published_texts(settings: Sequence[Settings]) -> Iterator[str]:
    """Yield the documentation, as it is searched: anybody can read it, so its words identify nobody. Blocking."""
    for path in dict.fromkeys(each.kb.index_path.with_name(KB_FILE) for each in settings):
        if path.exists():
            with closing(PassageStore(path, read_only=True)) as store:
                yield from store.texts()


def data_not_in_nats(settings: Settings) -> list[Path]:
    """List what lies in the data folder, or where the configuration has archive and topics, although the servers of
    NATS hold what counts: what was moved to them, is from before, or was put there. Documents, logs and the folder of
    the processes are no part of it. Blocking. Raises OSError.
    """
    root, log_file = settings.app.data_dir, settings.logging.file.path
    used, learned = {DataFolder(root).lock_file, root / NATS_FOLDER}, set[Path]()
    homes = all_server_settings(settings)
    for each in homes:
        kb = each.kb
        used |= {DataFolder(each.app.data_dir).knowledge_base, *kb.document_folders, kb.links_file_path}
        used |= {getattr(kb, key) for key in MADE_KB_PATHS}
        learned |= {getattr(kb, key) for key in LEARNED_KB_PATHS}
    used |= {log_file, *log_file.parent.glob(f"{log_file.name}.*")} if log_file is not None else set()
    leads_to_used = used.union(*(path.parents for path in used))
    folders = [each.app.data_dir for each in homes if each.app.data_dir.is_dir()]
    found = {path for folder in folders for path in folder.iterdir() if path not in leads_to_used}
    found |= {path for path in learned if not path.is_relative_to(root)}
    return sorted(path for path in found if path.is_file() or any(each.is_file() for each in path.rglob("*")))


def list_configured_files(settings: Settings, *, is_running: bool = False) -> ConfiguredFiles:
    """List the other paths in the data folder that forgetting has to look at. `is_running`: a bot writes to the folder.
    Blocking. Raises OSError.

    Its databases are those of the configuration and of the stores: others, such as those of an earlier configuration,
    nobody opens.
    """
    folder = DataFolder(settings.app.data_dir)
    documents, team_paths = list[Path](), stored_files(folder)
    if not is_running:
        team_paths += published_files(folder)
    for each in all_server_settings(settings):
        kb = each.kb
        documents += [
            *kb.document_folders,
            kb.links_file_path,
            kb.index_path,
            kb.index_cache_path,
            kb.web_fetch_cache_dir,
        ]
        documents += passage_files(kb.index_path.with_name(KB_FILE))
        team_paths += [kb.team_index_path, kb.team_index_cache_path]
        # Other files in these folders, such as packed copies, are not handled.
        for place, patterns in ((kb.team_raw_dir, ("*.txt", "*.torn")), (kb.team_topics_dir, ("*.txt", "*.rejected*"))):
            team_paths += [path for pattern in patterns for path in place.glob(pattern)]
        team_paths += [kb.team_state_path, *passage_files(kb.team_index_path.with_name(TEAM_FILE))]
    return ConfiguredFiles([*documents, *team_paths], documents, settings.logging.file.path, is_running)


MAX_OPT_INS, OPT_IN_SECONDS = 2, 600.0
"""How often somebody may opt in again within these seconds: with each opt-out, answers of others begin again."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """Carries out /privacy opt-out, opt-in and forget.

    Attributes:
        team_files: the team knowledge of each server that has its own, and that of all others.
        other_archives: archives of other processes, in which a person's words are found.
        settings: those of the data folder, whose other files are looked through too. None in a worker, whose folder
            holds copies of other processes' files.
    """

    parts: GraphParts
    team_files: Servers[TeamKnowledgeFiles]
    documents: Documents | None = None
    other_archives: Sequence[Path] = ()
    settings: Settings | None = None
    _opted_in: RateLimit = field(default_factory=lambda: RateLimit(MAX_OPT_INS, OPT_IN_SECONDS), init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _removals: SharedCalls = field(default_factory=SharedCalls, init=False)
    _round: Counter[int] = field(default_factory=Counter[int], init=False)  # removals begun, by person
    _until: dict[int, int] = field(default_factory=dict[int, int], init=False)  # by person whose removal waits
    _renamed_elsewhere: dict[int, dict[str, str]] = field(
        default_factory=dict[int, dict[str, str]], init=False
    )  # likewise

    async def opt_out(self, call: Call) -> str:
        say = phrases(call.language)
        if call.user_id in self.parts.state.opt_outs:
            return say.already_out
        self.parts.services.in_flight.withdraw(call.user_id)
        try:
            await self.parts.state.opt_outs.add(call.user_id)
        except OSError as error:
            raise _unwritten(call, error) from error
        finally:
            if self.documents is not None:
                await self.documents.stop_reading_of(call.user_id)
        return f"{say.opted_out} {say.stays_until_forgotten}"

    async def opt_in(self, call: Call) -> str:
        if call.user_id not in self.parts.state.opt_outs:
            return phrases(call.language).already_in
        if self._opted_in.is_reached(call.user_id, now()):
            raise CommandRefused(phrases(call.language).opted_in_lately)
        self._opted_in.note(call.user_id, now())
        try:
            await self.parts.state.opt_outs.discard(call.user_id)
        except OSError as error:
            raise _unwritten(call, error) from error
        return phrases(call.language).opted_in

    async def forget(self, call: Call) -> str:
        """Forget the caller, in memory and in the files of the data folder, and return the reply."""
        try:
            done = await self.remove(call.user_id, call.id)
        except (OSError, StoreUnavailable, LibraryUnusable, LibraryUnwritable) as error:
            raise not_forgotten(call, error) from error
        for line in done.left:
            log.warning("/privacy forget: %s", line)
        return summary(done, phrases(call.language))

    async def remove(
        self, user_id: int, until: int | None = None, renamed: Mapping[str, str] | None = None
    ) -> ForgetResult:
        """Remove everything of a person and return the counts. Raises OSError, StoreUnavailable, LibraryUnwritable,
        LibraryUnusable; data that is removed by then stays removed.

        `until`: the id of the request. Messages with ids up to it leave nothing behind, even those under way. None: all
        up to now (`newest_by_now`). `renamed`: as `planned_renames`, if another process keeps the archive.

        One removal runs at a time, as each reads every file. A second request of the same person joins their waiting
        removal.
        """
        known = newest_by_now(self.parts.services.history) if until is None else until
        self._until[user_id] = max(known, self._until.get(user_id, 0))
        # At once: their turn may come late.
        self.parts.state.forget_messages(user_id, self._until[user_id])
        self.parts.services.in_flight.withdraw(user_id)
        self._renamed_elsewhere.setdefault(user_id, {}).update(renamed or {})
        return await self._removals.share((user_id, self._round[user_id]), lambda: self._remove_in_turn(user_id))

    async def planned_renames(self, user_id: int) -> dict[str, str]:
        """Return the new ids, by the old ones, of the topics that the removal of a person renames. Raises OSError."""
        shared, *servers = [each.data for each in self.team_files.values()]
        return await in_thread(planned_renames, shared, servers, user_id)

    async def _remove_in_turn(self, user_id: int) -> ForgetResult:
        async with self._turn:
            self._round[user_id] += 1  # a request from now on is for another removal
            until, renamed = self._until.pop(user_id), self._renamed_elsewhere.pop(user_id)
            with self.parts.services.in_flight.forgetting(user_id):
                return await self._remove(user_id, until, renamed)

    async def _remove(self, user_id: int, until: int, renamed: Mapping[str, str]) -> ForgetResult:
        self.parts.services.posts.forget(user_id, until)
        for each in self.parts.servers.values():
            each.captures.recent_captures.forget(user_id)
        await self.parts.state.record.forget(user_id, until)
        removed_servers, configured = list[Settings](), None
        if self.settings is not None:
            removed_servers = await in_thread(settings_of_removed_servers, self.settings)
            configured = await in_thread(list_configured_files, self.settings, is_running=True)
        opened = [await in_thread(open_removed_team, each) for each in removed_servers]
        shared, *servers = [*(each.data for each in self.team_files.values()), *(team for team, _ in opened)]
        texts = await in_thread(collect_texts, [shared, *servers], user_id, self.other_archives)
        documented = [*(each.settings for each in self.parts.servers.values()), *removed_servers]
        async with self._without_copies(user_id, removed_servers):
            done = await in_thread(
                forget_in_all_servers,
                shared,
                servers,
                user_id,
                texts,
                configured,
                renamed,
                partial(published_texts, documented),
                self.other_archives,
            )
        self.parts.state.drafts.forget(user_id)
        # What has begun again meanwhile may have read the topics as they were.
        self.parts.services.in_flight.work.withdraw(user_id)
        await self._rename_in_memory(done.renamed)
        done.left += [line for _, problems in opened for line in problems]
        folder = self.parts.state.folder
        if self.documents is not None:
            done.files, done.runbooks = await self.documents.forget(user_id)
        if self.settings is not None:
            unused = await self._forget_in_unused_stores(self.settings, user_id)
            done.files += unused.files
            done.runbooks += unused.runbooks
            done.left += unused.left
        if configured is not None:
            done.left += await in_thread(find_remaining_words, folder.root, texts, configured, done.left)
        return done

    async def _forget_in_unused_stores(self, settings: Settings, user_id: int) -> ForgetResult:
        """Raises OSError."""
        folder = self.parts.state.folder
        if self.documents is None:
            stores = await in_thread(unused_stores, folder, None)
            return await forget_documents(stores, folder, user_id, Tombstones(folder.tombstones))
        stores = await in_thread(unused_stores, folder, settings.documents.store)
        return await forget_documents(stores, folder, user_id, self.documents.cases.tombstones)

    async def _rename_in_memory(self, ids: Mapping[str, str]) -> None:
        """Rename, also in files again: a vote may have been written with an old id meanwhile. Raises OSError."""
        if ids:
            self.parts.services.posts.rename_sources(ids)
            self.parts.state.drafts.rename_sources(ids)
            await self.parts.state.record.rename_sources(ids)
            await in_thread(rename_sources, self.parts.state.folder, ids)

    @asynccontextmanager
    async def _without_copies(self, user_id: int, removed_servers: Sequence[Settings]) -> AsyncGenerator[None]:
        """Drop the search copies of topics that may hold the person's words; none is made before the end of the block.
        `removed_servers`: servers whose topics nobody searches. Raises OSError.
        """
        async with AsyncExitStack() as stack:
            found = self.team_files.values()
            teams = [each for each in found if await in_thread(has_archived_text, each.data.raw, user_id)]
            await in_thread(forget_in_search, removed_servers, user_id)
            for each in teams:
                if each.search is not None:
                    await stack.enter_async_context(each.search.team_passages_dropped())
            try:
                if teams and self.documents is not None:
                    self.documents.answers.purge(TEAM)
                yield
            finally:
                if teams and self.documents is not None:
                    self.documents.answers.purge(TEAM)  # answers from topics meanwhile


FORGET_SECONDS = 600.0
"""The least time between two removals of one person: each reads every file, and others wait for their turn."""


def not_too_often(forget: Callable[[Call], Coroutine[Any, Any, str]]) -> Callable[[Call], Coroutine[Any, Any, str]]:
    """Wrap `forget`, which carries out `/privacy forget`: who was forgotten lately is refused. What fails may be tried
    again at once.
    """
    done = RateLimit(1, FORGET_SECONDS)

    async def forgotten(call: Call) -> str:
        if done.is_reached(call.user_id, now()):
            raise CommandRefused(phrases(call.language).forgotten_lately)
        reply = await forget(call)
        done.note(call.user_id, now())
        return reply

    return forgotten


def newest_by_now(history: History) -> int:
    """Return the highest id by our clock, or of a message seen: the clock may be behind Discord's."""
    return max(history.newest_id, snowflake_at(now()))


def not_forgotten(call: Call, error: Exception) -> CommandRefused:
    log.error("/privacy forget: %s", error)
    return CommandRefused(phrases(call.language).not_forgotten)


def summary(done: ForgetResult, say: Phrases, *, is_complete: bool = True) -> str:
    """Describe to the person what was removed. Unless `is_complete`, it adds that the rest follows."""
    found = (
        (done.turns, say.removed_turns),
        (done.posts, say.removed_posts),
        (done.topics, say.removed_topics),
        (done.pending, say.removed_pending),
        (done.votes, say.removed_votes),
        (done.questions, say.removed_questions),
        (done.files, say.removed_files),
        (done.runbooks, say.removed_runbooks),
        (done.exchanges, say.removed_exchanges),
        (done.ends, say.removed_ends),
    )
    lines = [f"- {line(count)}" for count, line in found if count]
    removed = ["\n".join([say.removed, *lines])] if lines else [say.nothing_kept] if is_complete else []
    follows = [] if is_complete else [say.rest_follows]
    return "\n\n".join([*removed, *follows, f"{say.out_of_reach} {say.may_see_again}"])


def _unwritten(call: Call, error: OSError) -> CommandRefused:
    log.error("/privacy: %s", error)
    return CommandRefused(phrases(call.language).not_written)
