"""The knowledge base: where sources come from, what is known of each, and the library that answers read.

`updates` is the vocabulary of one update (what was discovered, what became of it), `cache` and `index_file` are the
formats on disk, `web` fetches pages.
"""

# pyright: reportUnusedImport=false
from services.knowledge import cache, index_file
from services.knowledge.cache import FileFacts, Record, UrlFacts, hash_text
from services.knowledge.disk_library import DiskLibrary
from services.knowledge.index_file import harmless
from services.knowledge.ledger import Ledger, Unfit
from services.knowledge.library import IndexEntry, Library, Source, SourceUnavailable
from services.knowledge.narrowing import narrow, narrowed
from services.knowledge.pages import FetchFailed, FetchTimedOut, NotModified, Page, Web, WebError
from services.knowledge.source_files import HIDDEN, Listing, NotText, list_files, read_text
from services.knowledge.source_links import Links, read_links
from services.knowledge.topic_names import belongs_to, files_of, first_of, is_topic_name, next_file, topic_name
from services.knowledge.updates import (
    Discovered,
    DuePage,
    How,
    LeftOut,
    Pending,
    Purged,
    Settled,
    SourcePaths,
    Suspect,
    Trouble,
    UpdateEvent,
    UpdateReport,
)
from services.knowledge.web_cache import drop_page, page_name, page_names, read_page, write_page
