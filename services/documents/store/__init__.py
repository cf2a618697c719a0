"""The store of documents: SQLite files behind it, or Chroma where processes share one."""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.documents.store import protocol
    from services.documents.store.chroma import chroma_store, chroma_unreachable_because
    from services.documents.store.collection_files import (
        SUFFIX,
        DiskFull,
        DiskSpace,
        Folders,
        OpenFile,
        SqliteCollections,
        personal_files,
    )
    from services.documents.store.document_store import DocumentStore, SharedDocuments, SharedStore, sqlite_store
    from services.documents.store.protocol import (
        Collection,
        CollectionSummary,
        Document,
        Origin,
        State,
        StoreUnavailable,
        Weights,
    )

__getattr__ = lazy_exports(__name__)
