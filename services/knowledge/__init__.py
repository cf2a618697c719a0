"""The knowledge base: where sources come from, what is known of each, and the library that answers read.

`source_kinds` says what a kind of source is, `source_files` and `source_pages` are the two there are; `cache` and
`index_file` are the formats on disk, `web` fetches pages.
"""

# pyright: reportUnusedImport=false
from services.knowledge import cache, excerpts, index_file
from services.knowledge.cache import Record, hash_text
from services.knowledge.choosing import NOT_CHOSEN, NOT_DOCUMENTATION, Choice
from services.knowledge.index_file import IndexEntry, harmless
from services.knowledge.ledger import Ledger
from services.knowledge.library import DiskLibrary, Library, Source, SourceUnavailable
from services.knowledge.searching import LibrarySearch, Search
from services.knowledge.source_files import HIDDEN, FileFacts, FileRecord, TextFiles
from services.knowledge.source_kinds import (
    AnyKind,
    CannotList,
    Discovered,
    Due,
    How,
    LeftOut,
    Pending,
    Purged,
    Settled,
    Trouble,
    UpdateEvent,
    UpdateReport,
    kind_of,
)
from services.knowledge.source_pages import FetchStatus, UrlRecord, Web, WebPages, page_name
from services.knowledge.topic_names import belongs_to, files_of, first_of, is_topic_name, next_file, topic_name
from services.knowledge.topic_texts import answered_in, as_shown, pair_ids
