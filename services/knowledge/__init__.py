"""The knowledge base: the kinds of sources, the records and formats on disk, and the library that answers are given
from.

`source_kinds` says what a kind of source is, the modules `source_…` are one each, and `kinds` is their table; `library`
keeps servers apart, `library_search` searches one; `links_file`, `cache`, `index_file` and `topic_files`, which
hold what the team has answered, are the formats on disk; `refreshed_lines` asks again for what lines of the links file
bring; `web` fetches what sources need.
"""

# pyright: reportUnusedImport=false
from services.knowledge import cache, excerpts, index_file, kinds
from services.knowledge.cache import Record, hash_text
from services.knowledge.file_selection import NOT_CHOSEN, NOT_DOCUMENTATION, PathFilter, site_generator_of
from services.knowledge.index_file import IndexEntry, harmless
from services.knowledge.kinds import web_address
from services.knowledge.library import (
    DiskLibrary,
    JoinedLibrary,
    Library,
    OwnLibrary,
    Source,
    SourceUnavailable,
    address_in,
    bare_name,
    owned,
    owner_of,
    unowned,
)
from services.knowledge.library_search import LibrarySearch, Search
from services.knowledge.links_file import LINES, begins_line, parse_links, read_links
from services.knowledge.source_files import HIDDEN, FileFacts, FileRecord, TextFiles
from services.knowledge.source_kinds import (
    AnyKind,
    CannotList,
    Discovered,
    Due,
    LeftOut,
    Pending,
    Purged,
    RefreshSchedule,
    SourceDetails,
    SourceRecords,
    SourceSetup,
    Trouble,
    UpdateEvent,
    UpdateReport,
    UpdateResult,
    UpToDate,
    kind_of,
)
from services.knowledge.source_repositories import hosted_address
from services.knowledge.topic_files import (
    INDENT,
    MARKER,
    Correction,
    Exchange,
    PairTurn,
    Speaker,
    TopicBlock,
    answered_pairs,
    belongs_to,
    exchanges,
    files_of,
    first_of,
    is_topic_name,
    name_word,
    name_words,
    next_file,
    pair_for_model,
    pair_ids,
    render_block,
    topic_blocks,
    topic_for_model,
    topic_name,
)
from services.knowledge.web_interface import FetchStatus, Page, WebError, WebFetchers
