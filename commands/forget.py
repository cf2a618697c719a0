"""`--forget USER_ID`: what is kept of a person, taken out, and told what was found."""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assembly.documents import store_of
from assembly.errors import Unusable
from assembly.team import open_team
from services.documents import Runbooks, Tombstones, forget_evidence
from services.documents.store import StoreUnavailable
from services.privacy import Forgotten, note_documents
from services.privacy import forget as take_out
from services.storage import DataFolder, lock
from services.telemetry import number_of
from settings import Settings

OUT_OF_REACH = (
    "Discord itself: the person's messages, and the bot's replies and threads",
    "what others wrote about or quoted from them; the id stays in author_ids, and in opt-outs",
    "what is read of theirs again (a conversation goes on, --import, --replay): /privacy opt-out keeps it out",
    "log files, recordings and LLM recordings outside of the data folder",
    "backups and copies of the data folder",
    "whatever the LLM's provider keeps",
)


def forget(settings: Settings, user_id: int) -> int:
    """Remove a person from the data folder and print what was touched. Gives the exit code.

    Raises:
        Unusable: there is no data folder.
        FolderBusy: another process writes it.
        LibraryUnusable: the team's knowledge cannot be opened; nothing was done.
        LibraryUnwritable: as OSError.
        OSError: a file cannot be read or written; running it again goes on from there.
    """
    root = settings.app.data_dir
    if not root.is_dir():
        raise Unusable(f"app.data_dir: {root} is no folder, so nothing is kept there; is this the right --config?")
    with lock(root, "app.py --forget"):
        folder, team = DataFolder(root), open_team(settings)
        done = take_out(folder, settings.kb.team_raw_dir, user_id, team)
        try:
            counts = asyncio.run(_take_out_documents(folder, settings.documents.store, user_id))
            note_documents(done, folder, *counts)
        except StoreUnavailable as error:
            done.left.append(f"{folder.evidence} and {folder.runbooks}: {error}")
        show(Console(), user_id, done)
    return 0


async def _take_out_documents(folder: DataFolder, address: str, user_id: int) -> tuple[int, int]:
    """How many files of threads, and how many runbooks."""
    store = store_of(folder, address)
    try:
        runbooks = Runbooks(store=store, shown_path=folder.shown_runbooks)
        await runbooks.open()
        return await forget_evidence(store, user_id, Tombstones(folder.tombstones)), await runbooks.forget(user_id)
    finally:
        await store.close()


def show(console: Console, user_id: int, done: Forgotten) -> None:
    table = Table(title=f"User {user_id}", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for what, became in (
        ("raw archive", f"{number_of(done.turns, 'text')} replaced by [removed]"),
        ("topics", f"{done.topics} written anew; described anew when the bot runs"),
        ("captures waiting", f"{done.pending} dropped"),
        (
            "feedback",
            f"{number_of(done.votes, 'vote')} dropped, {number_of(done.questions, 'question')} replaced by [removed]",
        ),
        ("posts", f"{done.posts} dropped"),
        ("usage", "dropped" if done.usage else "nothing kept"),
        ("files in threads", f"{done.files} deleted"),
        ("runbooks", f"{done.runbooks} deleted"),
        ("LLM recordings", f"{number_of(done.exchanges, 'exchange')} dropped"),
    ):
        table.add_row(Text(what), Text(became))
    console.print(table)
    if not done.anything:
        console.print("Nothing of theirs was found.")
    _list(console, "Look at these yourself:", done.left)
    _list(console, "Out of reach:", OUT_OF_REACH)


def _list(console: Console, title: str, lines: list[str] | tuple[str, ...]) -> None:
    if lines:
        console.print(Text(f"\n{title}"))
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)
