"""What /privacy, /kb and /evidence do, and say."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assembly.documents import Documents
from assembly.graph_parts import Parts
from model.messages import Attachment
from services.conversations import History, Viewing
from services.discord import AttachmentFailed, Attachments, inert
from services.discord.slash import Call, CommandRefused
from services.documents import (
    FileRefused,
    NoSuchRunbook,
    Runbooks,
    TooManyRunbooks,
    amount,
    check_file,
    remove_file,
    shown,
    title_of,
    unreadable,
)
from services.documents.store import Document, State, StoreUnavailable, naming
from services.privacy import Forgotten, forget, note_documents
from services.storage import in_thread
from services.team import REMOVED
from services.telemetry import number_of

OPTED_OUT = (
    "From now on I read, learn and record nothing that you write. What I have kept until now stays; "
    "`/privacy forget` removes it, and `/privacy opt-in` counts you in again."
)
OPTED_IN = "You are counted in again: I answer your questions, and learn from what the team tells you."
ALREADY_OUT = "You have opted out already. `/privacy opt-in` counts you in again."
ALREADY_IN = "You have not opted out."
NOTHING_KEPT = "I have kept nothing of yours."
NOT_WRITTEN = "This holds until the bot is restarted; it could not be written down. Please tell those who run the bot."
NOT_FORGOTTEN = "Not all could be removed. Please try again; if it goes on, tell the people who run this bot."
OUT_OF_REACH = (
    "Out of my reach: your messages on Discord, what others wrote about you, logs, backups and recordings elsewhere. "
    "As long as you have not opted out, I may come across your messages again: `/privacy opt-out`."
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Privacy:
    parts: Parts
    raw: Path
    """The raw archive."""
    documents: Documents | None = None

    async def opt_out(self, call: Call) -> str:
        if call.user_id in self.parts.state.opt_outs:
            return ALREADY_OUT
        self.parts.services.in_flight.withdraw(call.user_id)
        try:
            await self.parts.state.opt_outs.add(call.user_id)
        except OSError as error:
            raise _unwritten(error) from error
        finally:
            if self.documents is not None:
                await self.documents.leave_alone(call.user_id)
        return OPTED_OUT

    async def opt_in(self, call: Call) -> str:
        if call.user_id not in self.parts.state.opt_outs:
            return ALREADY_IN
        try:
            await self.parts.state.opt_outs.discard(call.user_id)
        except OSError as error:
            raise _unwritten(error) from error
        return OPTED_IN

    async def forget(self, call: Call) -> str:
        """As `--forget`, in the process that holds the data folder: first memory, then the files."""
        services = self.parts.services
        services.in_flight.withdraw(call.user_id)
        services.posts.forget(call.user_id)
        counted = services.budget.forget(call.user_id)
        self.parts.captures.forget(call.user_id, REMOVED)
        try:
            team = None if services.curation is None else services.curation.library
            done = await in_thread(forget, self.parts.state.folder, self.raw, call.user_id, team)
            if self.documents is not None:
                note_documents(done, self.parts.state.folder, *await self.documents.forget(call.user_id))
        except (OSError, StoreUnavailable) as error:
            log.error("/privacy forget: %s", error)  # noqa: TRY400 (one line for the operator)
            raise CommandRefused(NOT_FORGOTTEN) from error
        for line in done.left:
            log.warning("/privacy forget: %s", line)
        return summary(done, counted=counted)


def summary(done: Forgotten, *, counted: bool) -> str:
    """What was removed, for the person."""
    found = (
        (done.turns, "message", " in captured conversations"),
        (done.posts, "answer", " that I remembered giving you"),
        (done.topics, "topic", " of the team that your words stood in"),
        (done.pending, "conversation", " that waited to be kept"),
        (done.votes, "vote", ""),
        (done.questions, "question", " under others' votes"),
        (done.files, "file", " in threads"),
        (done.runbooks, "runbook", ""),
        (done.exchanges, "recorded exchange", " with a language model"),
        (int(done.usage or counted), "count", " of your questions"),
    )
    lines = [f"- {number_of(count, what)}{more}" for count, what, more in found if count]
    removed = "Removed:\n" + "\n".join(lines) if lines else NOTHING_KEPT
    return f"{removed}\n\n{OUT_OF_REACH}"


def _unwritten(error: OSError) -> CommandRefused:
    log.error("/privacy: %s", error)
    return CommandRefused(NOT_WRITTEN)


UNAVAILABLE = "Files cannot be looked at just now. Please try again in a few minutes."
NOT_DOWNLOADED = "The file could not be downloaded from Discord. Please send it again."
NO_RUNBOOKS = "You have no runbooks. `/kb add` keeps one."
NO_SUCH_RUNBOOK = "You have no runbook of that title. `/kb list` shows those you have."
NO_FILES = "There are no files of this thread that I can search."
NOT_A_THREAD = "Files belong to threads: call this in the thread that they were posted in."
NO_SUCH_FILE = "There is no such file here. `/evidence list` shows those there are."
NOT_YOURS = "Only whoever posted a file, and moderators, can have it forgotten."
SHOWN = "From now on I also answer you from your runbooks in threads, where others read along."
HIDDEN = "Your runbooks are private: I answer you from them in `/ask` only."

_UNSAFE = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class RunbookCommands:
    runbooks: Runbooks
    attachments: Attachments

    async def add(self, call: Call, document: Attachment | str, title: str | None) -> str:
        try:
            if isinstance(document, str):
                name, data = f"{_UNSAFE.sub('-', title or '').strip('-') or 'runbook'}.md", document.encode()
            else:
                name = document.filename
                check_file(name, document.size, self.runbooks.limits)
                data = await self.attachments.content(document, self.runbooks.limits.max_file_bytes)
            with _store_errors():
                kept = await self.runbooks.add(call.user_id, name, data, (title or name).strip())
        except (FileRefused, TooManyRunbooks) as refused:
            raise CommandRefused(inert(str(refused))) from refused
        except AttachmentFailed as error:
            log.warning("/kb add: %s", error)
            raise CommandRefused(NOT_DOWNLOADED) from error
        hidden = sum(kept.redactions.values())
        secrets = f" Passwords, keys or personal details made unreadable in it: {hidden}." if hidden else ""
        where = "" if self.runbooks.shown_in_threads(call.user_id) else f" {HIDDEN} `/kb visibility` changes that."
        return f"Kept: {runbook_line(kept)}.{secrets}{where}"

    async def list(self, call: Call) -> str:
        with _store_errors():
            known = await self.runbooks.documents(call.user_id)
        if not known:
            return NO_RUNBOOKS
        where = SHOWN if self.runbooks.shown_in_threads(call.user_id) else HIDDEN
        return "\n".join(["Your runbooks:", *(f"- {runbook_line(doc)}" for doc in known), "", where])

    async def remove(self, call: Call, title: str) -> str:
        try:
            with _store_errors():
                await self.runbooks.remove(call.user_id, title)
        except NoSuchRunbook as error:
            raise CommandRefused(NO_SUCH_RUNBOOK) from error
        return f"Removed: {inert(title)}."

    async def forget(self, call: Call) -> str:
        with _store_errors():
            count = await self.runbooks.forget(call.user_id)
        return f"Removed: {number_of(count, 'runbook')}." if count else NO_RUNBOOKS

    async def show_in_threads(self, call: Call, *, shown: bool) -> str:
        with _store_errors():
            await self.runbooks.show_in_threads(call.user_id, shown=shown)
        return SHOWN if shown else HIDDEN


@dataclass(frozen=True, slots=True)
class EvidenceCommands:
    documents: Documents
    history: History
    viewing: Viewing

    async def list(self, call: Call) -> str:
        documents = await self._documents(call)
        if not documents:
            return NO_FILES
        return "\n".join(["Files of this thread:", *(f"- {file_line(doc)}" for doc in documents)])

    async def delete(self, call: Call, filename: str) -> str:
        wanted, name = filename.strip().casefold(), naming.case(str(call.place_id))
        called = [
            doc
            for doc in await self._documents(call)
            if wanted in {doc.filename.casefold(), shown(doc.filename).casefold()}
        ]
        if not called:
            raise CommandRefused(NO_SUCH_FILE)
        # Others may have posted files of the same name.
        meant = [doc for doc in called if call.is_moderator or is_poster(doc, call.user_id)]
        if not meant:
            raise CommandRefused(NOT_YOURS)
        with _store_errors():
            await self.documents.call_off(
                lambda candidate: candidate.case_id == call.place_id and any(map(candidate.is_in, meant))
            )
            for doc in meant:
                await remove_file(self.documents.store, self.documents.cases.gone, name, doc)
            self.documents.answers.purge(name)
        log.info("/evidence delete: thread %d: %s by %d", call.place_id, number_of(len(meant), "file"), call.user_id)
        return f"Forgotten: {inert(filename.strip())}."

    async def _documents(self, call: Call) -> tuple[Document, ...]:
        """Those of the thread, without removed ones."""
        if self.history.knows(call.place_id) and not self.history.place(call.place_id).is_thread:
            raise CommandRefused(NOT_A_THREAD)
        if not await self._can_view(call):
            log.info("/evidence: denied to %d in thread %d", call.user_id, call.place_id)
            return ()
        with _store_errors():
            described = await self.documents.store.describe(naming.case(str(call.place_id)))
        known = () if described is None else described.documents
        return tuple(doc for doc in known if doc.state is not State.FAILED or doc.origin.uploader_id is not None)

    async def _can_view(self, call: Call) -> bool:
        """Moderators see a private thread without being its member, and may delete its files."""
        seen_in = call.place_id if call.can_view else None
        return (call.can_view and call.is_moderator) or await self.viewing.can_view(
            call.user_id, call.place_id, seen_in=seen_in
        )


def is_poster(doc: Document, user_id: int) -> bool:
    return any(origin.uploader_id == user_id for origin in doc.origins)


def runbook_line(doc: Document) -> str:
    """A runbook, in a few words."""
    return f"{inert(shown(title_of(doc)))} ({doc.kind}, {amount(doc.size)})"


def file_line(doc: Document) -> str:
    """A file of a thread, in a few words."""
    name = inert(shown(doc.filename))
    match doc.state:
        case State.FAILED:
            return inert(unreadable(doc))
        case State.PENDING:
            return f"{name}: being read"
        case _:
            newer = "" if doc.current else ", replaced by a newer one of its name"
            return f"{name} ({doc.kind}, {amount(doc.size)}, {number_of(doc.n_lines, 'line')}{newer})"


@contextmanager
def _store_errors() -> Generator[None]:
    """What cannot be read or written just now, told to people."""
    try:
        yield
    except (StoreUnavailable, OSError) as error:
        log.error("documents: %s", error)  # noqa: TRY400 (one line for the operator)
        raise CommandRefused(UNAVAILABLE) from error
