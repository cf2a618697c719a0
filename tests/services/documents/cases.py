"""Invented documents, and the tools over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, Unpack

from pydantic import BaseModel

from services.documents.condensing import CondensedAnswer, RewrittenQuestion
from services.documents.limits import FileLimits
from services.documents.reading.preparing import prepare
from services.documents.store import protocol
from services.documents.store.collection_files import Folders
from services.documents.store.document_store import DocumentStore, embed_document, sqlite_store
from services.documents.store.protocol import Collection, Document, NewDocument, Origin
from services.documents.tools.core import DocumentQATool
from services.documents.tools.libraries import ToolContext
from services.documents.tools.toolset import ToolModel, build
from services.knowledge.library_search import LibrarySearch
from services.llm.endpoint import LLMError
from services.llm.prompting import Prompt
from services.llm.structured import AskOptions
from services.llm.usage import Usage
from services.search.embedding import Embedder
from tests.hashing import HashingEmbedder

M = TypeVar("M", bound=BaseModel)

GUILD, THREAD, OTHER_THREAD, FRAN, MARA = 7, 100, 200, 311, 312

LOG = """\
2031-03-04 10:00:00,100 INFO [main] shop.app.Lifecycle: Starting version 5.1
2031-03-04 10:00:02,200 INFO [main] shop.db.Pool: 50 connections opened
2031-03-04 10:01:15,000 WARN [pool-1] shop.http.Server: Slow response: GET /cart took 8123 ms
2031-03-04 10:02:00,500 ERROR [pool-2] shop.payment.Gateway: Charge for order ord-58213 declined: card expired
2031-03-04 10:02:00,900 INFO [pool-2] shop.payment.Gateway: Customer of ord-58213 notified
2031-03-04 10:03:30,000 ERROR [pool-3] shop.mail.Sender: SMTP connection to 10.20.30.40:2525 refused
2031-03-04 10:04:00,000 FATAL [main] shop.db.Pool: No free connection for 30 s
2031-03-04 10:04:01,000 INFO [main] shop.app.Lifecycle: Shutting down
"""
OTHER_LOG = """\
2031-03-05 08:00:00,100 INFO [main] depot.app.Lifecycle: Starting version 2.0
2031-03-05 08:10:00,000 ERROR [pool-1] depot.robot.Arm: Collision near shelf zx-99
2031-03-05 08:10:05,000 INFO [main] depot.app.Lifecycle: Paused
"""
COMPOSE = """\
services:
  storefront:
    image: registry.example.net/storefront:5.1
    restart: unless-stopped
    ports:
      - "8443:443"
  ledger:
    image: registry.example.net/ledger:2.2
    restart: always
"""
RUNBOOK = """\
# Database timeout runbook

## Check the pool

Look at the connection pool first: run `poolctl show` and note how many connections are taken.

## Restart the ledger

If more than forty are taken, restart the ledger with `ledgerctl restart`. If it still fails, call Mara.
"""


def folders(root: Path) -> Folders:
    return Folders(root / "evidence", root / "runbooks")


def new_store(root: Path) -> DocumentStore:
    return sqlite_store(folders(root))


def new(filename: str, text: str, **extra: str) -> NewDocument:
    return NewDocument(Origin(filename, extra=extra), prepare(filename, text.encode(), limits=FileLimits()))


def case(thread: int = THREAD, guild: int = GUILD) -> Collection:
    return Collection(protocol.case_collection(str(thread)), "case", str(thread), guild)


async def keep_as_before(data: Path, name: str, text: str) -> None:
    """A collection of documentation or topics as releases before this one made it in a data folder."""
    store = sqlite_store(Folders(data / "documents", data / "documents"))
    await store.add(Collection(name, "team"), [new("topic.md", text)])
    await store.close()


async def post(
    store: DocumentStore, filename: str, text: str, thread: int = THREAD, uploader: int | None = None
) -> Document:
    made = new(filename, text)
    origin = replace(made.origin, uploader_id=uploader, message_id=uploader)
    (document,) = await store.add(case(thread), [replace(made, origin=origin)])
    await embed_document(store, HashingEmbedder(), case(thread).name, document.doc_id)
    return document


async def write_runbook(store: DocumentStore, text: str, user: int, title: str = "Database timeout runbook") -> None:
    collection = Collection(protocol.user_collection(str(user)), "user", str(user))
    (document,) = await store.add(collection, [new("runbook.md", text, title=title, category="Procedures")])
    await embed_document(store, HashingEmbedder(), collection.name, document.doc_id)


def tools_over(
    store: DocumentStore,
    search: LibrarySearch | None = None,
    *,
    embedder: Embedder | None = None,
    asker: ScriptedAsker | None = None,
    sharing: Sequence[int] = (),
    store_seconds: float = 10.0,
) -> dict[str, DocumentQATool]:
    return build(
        store=store,
        search=search,
        embedder=embedder,
        model=None if asker is None else ToolModel(asker, "scripted", Usage()),
        shares=lambda user: user in sharing,
        store_seconds=store_seconds,
    )


def context(
    thread: int | None = THREAD,
    asker: int = FRAN,
    *,
    guild: int | None = GUILD,
    public: bool = True,
) -> ToolContext:
    return ToolContext(guild, thread, asker, thread_is_public=public, asker_can_view=True)


class ScriptedAsker:
    """Answers what it was told to, and remembers what it was asked."""

    def __init__(self, *answers: str | LLMError, rewrites: Sequence[str | LLMError] = ()) -> None:
        self._answers = list(answers)
        self._rewrites = list(rewrites)
        self.asked: list[tuple[str, str, str]] = []

    async def ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage, **more: Unpack[AskOptions]) -> M:
        self.asked.append((step, prompt.system, prompt.user))
        script = self._rewrites if step == "rewrite" else self._answers
        answer = script.pop(0)
        if isinstance(answer, LLMError):
            raise answer
        made = RewrittenQuestion(question=answer) if step == "rewrite" else CondensedAnswer(answer=answer)
        assert isinstance(made, model)
        return made
