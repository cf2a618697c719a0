"""`--forget USER_ID`: removes what is kept of a person, and prints what was found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assembly.answering import drop_team_passages
from assembly.data_folder import lock_data_folder
from assembly.documents import NamedStore, named_store, remove_published, unused_stores
from assembly.forgetting import (
    NATS_FOLDER,
    all_server_settings,
    data_not_in_nats,
    forget_documents,
    list_configured_files,
    open_removed_team,
    open_team_data,
    published_texts,
    settings_of_removed_servers,
)
from assembly.running import run_async
from commands.arguments import DONE, check_data_dir, requires_nats_extra, visible
from services.documents import Tombstones
from services.documents.store import DocumentStore, StoreUnavailable
from services.privacy import (
    ForgetResult,
    collect_texts,
    find_remaining_words,
    forget_in_all_servers,
    has_archived_text,
)
from services.storage import DataFolder, drop_left_folders
from services.telemetry import number_of
from settings import Settings

OUT_OF_REACH = (
    "Discord itself: the person's messages, and the bot's replies and threads",
    "what others wrote about or quoted from them; the id stays in author_ids and addressee_ids, and in opt-outs",
    "ids of messages, in the raw archive and in places.jsonl",
    "what is read of theirs again (a conversation goes on, --import, --replay): /privacy opt-out keeps it out",
    "log files, recordings and LLM recordings outside of the data folder",
    "backups and copies of the data folder, such as those of --backup: delete them, or forget again after a restore",
    "what killed commands have left in the temporary folder of another user, machine or container (millrace-copies-…)",
    "a server of Chroma that documents.store no longer names",
    "whatever the LLM's provider keeps",
)
IN_THE_SERVERS = (
    "of NATS: messages and captures that were handled, and places (streams MESSAGES, CAPTURES, PLACES); what earlier "
    "versions replaced (stream LOG, bucket blobs); with replicas, the servers' journals. Their store keeps these bytes "
    "until it makes block files anew: docs/scaling.md says how to be rid of them at once"
)
A_LOG = "a log; its lines have their id, and may repeat what they wrote"
NOT_IN_NATS = (
    "not looked into, as what counts is in NATS; delete it, or move it elsewhere and run --forget on it with "
    "transport: local"
)
ON_OTHER_MACHINES = (
    "nats/ in the data folder of machines without a worker: copies that a killed process has left there stay until "
    "another begins, or --forget is called there"
)
PROCESSES_SECONDS = 30.0
"""How long the processes have to answer, where the transport is NATS."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Run `--forget`. Returns the exit code."""
    drop_left_folders()
    return (forget if settings.local else forget_over_nats)(settings, options.forget)


def forget_over_nats(settings: Settings, user_id: int) -> int:
    """Ask the processes behind NATS to forget a person and print what they found. Returns the exit code. Raises
    Unusable, OSError: nobody was asked.
    """
    with requires_nats_extra():
        from assembly.distributed.forgetting import forget_from_command  # noqa: PLC0415 (nothing of it is imported for one process)
        from assembly.distributed.process import drop_copies_of_ended_processes  # noqa: PLC0415 (as above)
    result = run_async(forget_from_command(settings, user_id, PROCESSES_SECONDS))
    drop_copies_of_ended_processes(settings.app.data_dir / NATS_FOLDER)
    result.done.left += [f"{path}: {NOT_IN_NATS}" for path in data_not_in_nats(settings)]
    log_file = settings.logging.file.path
    if log_file is not None and log_file.is_relative_to(settings.app.data_dir) and log_file.exists():
        result.done.left.append(f"{log_file}: {A_LOG}")
    show(Console(), user_id, result.done, result.left, (*OUT_OF_REACH, IN_THE_SERVERS, ON_OTHER_MACHINES))
    return DONE


def forget(settings: Settings, user_id: int) -> int:
    """Remove a person from the data folder and print what was found. Returns the exit code.

    After LibraryUnwritable or OSError, running it again finishes the work.
    """
    root = settings.app.data_dir
    check_data_dir(root)
    with lock_data_folder(settings, "app.py --forget"):
        folder = DataFolder(root)
        copies, left = _drop_copies(settings, folder, user_id)
        opened = [open_removed_team(each) for each in settings_of_removed_servers(settings)]
        learned = [open_team_data(each) for each in settings.servers.values()]
        learned += [removed for removed, _ in opened]
        texts, about = collect_texts(learned, user_id), list_configured_files(settings)
        published = partial(published_texts, all_server_settings(settings))
        done = forget_in_all_servers(learned[0], learned[1:], user_id, texts, about, published=published)
        done.copies, done.left = copies, [*left, *done.left, *(line for _, lines in opened for line in lines)]
        stores, gone = _all_stores(settings), Tombstones(folder.tombstones)
        documents = run_async(forget_documents(stores, folder, user_id, gone))
        done.files, done.runbooks = documents.files, documents.runbooks
        done.left += documents.left
        done.left += find_remaining_words(root, texts, about, done.left)
        show(Console(), user_id, done)
    return DONE


def _drop_copies(settings: Settings, folder: DataFolder, user_id: int) -> tuple[int, list[str]]:
    """Delete what was made of topics for searching, if they may hold words of the person. Returns how many copies there
    were, and lines for the operator. Raises OSError.
    """
    written = [each for each in all_server_settings(settings) if has_archived_text(each.kb.team_raw_dir, user_id)]
    if not written:
        return 0, []
    count = sum([drop_team_passages(each) for each in written])
    left = list[str]()
    for each in _all_stores(settings):
        try:
            count += run_async(_remove_published(each.store, folder))
        except StoreUnavailable as error:
            left.append(f"{folder.chroma_copies}: {error}; topics of an earlier release may be left there")
    return count, left


def _all_stores(settings: Settings) -> list[NamedStore]:
    """Return the store that `documents.store` names, and those that it may have named before. Raises OSError."""
    folder, address = DataFolder(settings.app.data_dir), settings.documents.store
    return [named_store(folder, address), *unused_stores(folder, address)]


async def _remove_published(store: DocumentStore, folder: DataFolder) -> int:
    try:
        return await remove_published(store, folder)
    finally:
        await store.close()


def show(
    console: Console,
    user_id: int,
    done: ForgetResult,
    follows: Sequence[str] = (),
    out_of_reach: Sequence[str] = OUT_OF_REACH,
) -> None:
    """Print what was found of a person. `follows`: what will be forgotten later, by itself."""
    votes, questions = number_of(done.votes, "vote"), number_of(done.questions, "question")
    table = Table(title=f"User {user_id}", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for what, result in (
        ("raw archive", f"{number_of(done.turns, 'text')} replaced by [removed]"),
        ("topics", f"{done.topics} written again; described again when the bot runs"),
        ("copies for search", f"{done.copies} deleted; made again when the bot runs"),
        ("captures waiting", f"{done.pending} dropped"),
        ("feedback", f"{votes} dropped, {questions} replaced by [removed]"),
        ("posts", f"{done.posts} dropped"),
        ("how questions ended", f"{done.ends} dropped"),
        ("files in threads", f"{done.files} deleted"),
        ("runbooks", f"{done.runbooks} deleted"),
        ("LLM recordings", f"{number_of(done.exchanges, 'exchange')} dropped"),
        ("recordings", f"{number_of(done.recorded, 'event')} dropped or without their words"),
    ):
        table.add_row(Text(what), Text(result))
    console.print(table)
    if not done.found_anything:
        console.print("Nothing of theirs was found." if not follows else "Nothing of theirs was found so far.")
    sections = (
        ("Still to come, by itself:", follows),
        ("Look at these yourself:", done.left),
        ("Out of reach:", out_of_reach),
    )
    for title, lines in sections:
        if lines:
            console.print(Text("\n".join(["", title, *(f"  {visible(line)}" for line in lines)])), soft_wrap=True)
