"""Finds and opens the team knowledge files that forgetting a person has to change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assembly.answering import KB_FILE, TEAM_FILE, drop_team_passages
from assembly.documents import NamedStore, published_files, stored_files
from assembly.team import open_team
from model.servers import Servers
from services.documents import Runbooks, Tombstones, forget_evidence
from services.documents.store import DocumentStore, StoreUnavailable
from services.knowledge import LibrarySearch
from services.privacy import FolderContents, ForgetResult, TeamData, has_archived_text
from services.search import PassageStore, passage_files
from services.storage import DataFolder, in_thread
from services.team import LibraryUnusable, LibraryUnwritable
from settings import Settings
from streams.curation import CurationServices

if TYPE_CHECKING:
    from assembly.graph_parts import ServerParts

NATS_FOLDER = "nats"
"""The folder in `app.data_dir` with one of each process, where the transport is NATS."""


@dataclass(frozen=True, slots=True)
class TeamKnowledgeFiles:
    """Files and search of one team: that of a server of its own, or that of all others."""

    folder: DataFolder
    raw: Path
    """The raw archive."""
    curation: CurationServices | None = None
    search: LibrarySearch | None = None
    internal_topics: Collection[str] = ()

    @property
    def data(self) -> TeamData:
        library = None if self.curation is None else self.curation.library
        return TeamData(self.folder, self.raw, library, self.internal_topics)


def team_files(servers: Servers[ServerParts]) -> Servers[TeamKnowledgeFiles]:
    """Collect the team knowledge files of each server."""

    def of(server: ServerParts) -> TeamKnowledgeFiles:
        folder, kb = DataFolder(server.settings.app.data_dir), server.settings.kb
        return TeamKnowledgeFiles(folder, kb.team_raw_dir, server.captures.curation, server.search, kb.internal_topics)

    return servers.map(of)


def all_server_settings(settings: Settings) -> list[Settings]:
    """Return the shared settings, those of each server in `guilds`, and those of removed servers that still have a
    folder. Blocking. Raises OSError.
    """
    return [*settings.servers.values(), *settings_of_removed_servers(settings)]


def settings_of_removed_servers(settings: Settings) -> list[Settings]:
    """Return the settings of each server that was removed from `guilds` and still has a folder. Blocking. Raises
    OSError.
    """
    there = DataFolder(settings.app.data_dir).guild_ids()
    return [settings.for_removed_server(guild_id) for guild_id in there if guild_id not in settings.servers]


def open_team_data(settings: Settings) -> TeamData:
    """Open the team knowledge of these settings, which no other process may have open. Blocking. Raises as
    `open_team`.
    """
    folder, raw = DataFolder(settings.app.data_dir), settings.kb.team_raw_dir
    return TeamData(folder, raw, open_team(settings), settings.kb.internal_topics)


def open_removed_team(settings: Settings) -> tuple[TeamData, list[str]]:
    """Open the team knowledge of a server that was removed from `guilds`. Returns it and lines for the operator. If it
    cannot be opened, people are still forgotten elsewhere: its topics are left alone, and a line says what is wrong.
    """
    try:
        return open_team_data(settings), []
    except (OSError, LibraryUnusable, LibraryUnwritable) as error:
        folder, raw = DataFolder(settings.app.data_dir), settings.kb.team_raw_dir
        left = f"{error}; the topics of this server, which is not in guilds, were left as they are"
        return TeamData(folder, raw, None, settings.kb.internal_topics), [left]


def forget_in_search(settings: Sequence[Settings], user_id: int) -> None:
    """Delete the search index of each team whose archive may contain words of the person. No search may be open.
    Blocking. Raises OSError.
    """
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
        used |= {DataFolder(each.app.data_dir).knowledge_base, *kb.document_folders, kb.links_file_path, kb.index_path}
        used |= {kb.index_cache_path, kb.web_fetch_cache_dir}
        learned |= {kb.team_raw_dir, kb.team_topics_dir, kb.team_index_path, kb.team_index_cache_path}
        learned.add(kb.team_state_path)
    used |= {log_file, *log_file.parent.glob(f"{log_file.name}.*")} if log_file is not None else set()
    leads_to_used = used.union(*(path.parents for path in used))
    folders = [each.app.data_dir for each in homes if each.app.data_dir.is_dir()]
    found = {path for folder in folders for path in folder.iterdir() if path not in leads_to_used}
    found |= {path for path in learned if not path.is_relative_to(root)}
    return sorted(path for path in found if path.is_file() or any(each.is_file() for each in path.rglob("*")))


def list_folder_contents(settings: Settings, *, running: bool = False) -> FolderContents:
    """List the other paths in the data folder that forgetting has to look at. `running`: a bot writes to the folder.
    Blocking. Raises OSError.

    Its databases are those of the configuration and of the stores: others, such as those of an earlier configuration,
    nobody opens.
    """
    folder = DataFolder(settings.app.data_dir)
    documents, team_paths = list[Path](), stored_files(folder)
    if not running:
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
    return FolderContents([*documents, *team_paths], documents, settings.logging.file.path, running)
