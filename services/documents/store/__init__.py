"""The store of documents: one protocol, SQLite files behind it, or Chroma where processes share one."""

# pyright: reportUnusedImport=false
from services.documents.store import protocol
from services.documents.store.chroma import ChromaStore, chroma_unreachable_because
from services.documents.store.collection_files import SUFFIX, Folders
from services.documents.store.embedded import EmbeddedStore
from services.documents.store.protocol import (
    ChunkHit,
    ChunkSearch,
    Collection,
    CollectionSummary,
    Document,
    DocumentStore,
    LineWhere,
    MatchingLines,
    NewDocument,
    Origin,
    State,
    StoredChunk,
    StoreUnavailable,
    Together,
    Unembedded,
    Weights,
    unfinished,
)
