"""Where documents are kept: one protocol, a store of SQLite files behind it, and Chroma where processes share one."""

# pyright: reportUnusedImport=false
from services.documents.store import naming
from services.documents.store.chroma import ChromaStore
from services.documents.store.embedded import SUFFIX, EmbeddedStore, Folders
from services.documents.store.protocol import (
    Document,
    DocumentStore,
    NewDocument,
    Origin,
    State,
    StoreUnavailable,
    Weights,
)
from services.documents.store.reachable import chroma_unreachable_because
