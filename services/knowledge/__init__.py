"""The knowledge base: the kinds of sources, the records and formats on disk, and the library that answers are given
from.

`source_kinds` says what a kind of source is, `source_files`, `source_repositories` and `source_pages` are those there
are; `owned` keeps servers apart; `links_file`, `cache` and `index_file` are the formats on disk, `web` fetches pages,
lists of them, repositories.
"""

# pyright: reportUnusedImport=false
from services.knowledge import cache, excerpts, index_file
from services.knowledge.asked_lines import RefreshSchedule
from services.knowledge.cache import Record, hash_text
from services.knowledge.choosing import NOT_CHOSEN, NOT_DOCUMENTATION, PathFilter
from services.knowledge.exchanges import exchanges
from services.knowledge.index_file import IndexEntry, harmless
from services.knowledge.ledger import SourceRecords
from services.knowledge.library import DiskLibrary, Library, Source, SourceUnavailable
from services.knowledge.links_file import parse_links, read_links
from services.knowledge.owned import JoinedLibrary, OwnLibrary
from services.knowledge.searching import LibrarySearch, Search
from services.knowledge.site_parts import site_generator_of
from services.knowledge.sites import Sites
from services.knowledge.source_files import HIDDEN, FileFacts, FileRecord, TextFiles
from services.knowledge.source_ids import bare_name, owned, owner_of, unowned
from services.knowledge.source_kinds import (
    AnyKind,
    CannotList,
    Discovered,
    Due,
    LeftOut,
    Pending,
    Purged,
    Settled,
    Trouble,
    UpdateEvent,
    UpdateReport,
    UpdateResult,
    kind_of,
)
from services.knowledge.source_pages import FetchStatus, UrlRecord, WebPages, page_name
from services.knowledge.source_repositories import Repositories, hosted_address
from services.knowledge.topic_names import belongs_to, files_of, first_of, is_topic_name, next_file, topic_name
from services.knowledge.topic_texts import answered_pairs, pair_ids, topic_for_model
from services.knowledge.web_answers import Page, WebError
from services.knowledge.webs import WebFetchers
