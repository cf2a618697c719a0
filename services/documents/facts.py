"""Facts from files as a library: add files, ask questions and run queries, without the rest of the program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.documents.asking import clauses, line_query, query_lines
from services.documents.asking.passages import Findings, Scope
from services.documents.asking.plan import plan
from services.documents.asking.query_lines import FoundLines
from services.documents.asking.retrieving import Ranking, retrieve
from services.documents.limits import FileLimits
from services.documents.reading import prepare
from services.documents.store.collection_files import Folders
from services.documents.store.document_store import sqlite_store
from services.documents.store.protocol import Collection, Document, NewDocument, Origin
from services.storage import in_thread

_FILES = Collection("case_0", "case", "0")


class Files:
    """Files that answer questions. They are kept in a folder, as one SQLite file, until it is deleted.

    Attributes:
        limits: the sizes that files may have.
    """

    def __init__(self, folder: Path, limits: FileLimits | None = None) -> None:
        self.limits = limits or FileLimits()
        self._store = sqlite_store(Folders(folder, folder))

    async def add(self, filename: str, data: bytes) -> Document:
        """Read a file, redact its secrets, and keep it. It replaces a file of the same name.

        Raises FileRefused: it is too large, of a kind that is not accepted, or not text.
        """
        prepared = await in_thread(prepare, filename, data, limits=self.limits)
        [document] = await self._store.add(_FILES, [NewDocument(Origin(filename), prepared)])
        return document

    async def ask(self, question: str, k: int = 5) -> Findings:
        """Answer a question in English: find at most `k` passages, best first, and facts about whole files."""
        await clauses.prepare()
        scope = await self._scope()
        return await retrieve(scope, plan(question, scope.documents), k, Ranking(), _no_vector)

    async def query(self, form: Mapping[str, Any]) -> FoundLines:
        """Find, count or group lines by exact conditions; `line_query.LineQuery` lists the fields.

        Raises QueryRefused: a field has no valid value.
        """
        scope = await self._scope()
        return await query_lines.answer(scope, line_query.read(form, scope.documents))

    async def close(self) -> None:
        await self._store.close()

    async def _scope(self) -> Scope:
        documents = await self._store.documents(_FILES.name)
        return Scope(self._store, _FILES.name, tuple(doc for doc in documents if doc.current and doc.state.searchable))


async def _no_vector() -> None:
    """Return nothing: passages are ranked by words alone."""
