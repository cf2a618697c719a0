"""The knowledge base: the kinds of sources, their records and file formats, and the library that answers are made from.

`source_kinds` defines what a kind of source is. Each module `source_…` is one kind, and `kinds` is their table.
`library` reads the sources, each server's apart, and `library_search` searches a library. `links_file`, `cache`,
`index_file` and `topic_files` are the formats on disk. `refreshed_lines` updates the sources of lines of the links
file. `web` fetches from the web.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.knowledge import cache, excerpts, index_file, kinds
    from services.knowledge.cache import Record, hash_text
    from services.knowledge.file_selection import NOT_CHOSEN, NOT_DOCUMENTATION, PathFilter, site_generator_of
    from services.knowledge.index_file import IndexEntry, make_harmless
    from services.knowledge.kinds import web_address
    from services.knowledge.library import (
        DiskLibrary,
        JoinedLibrary,
        Library,
        OwnLibrary,
        Source,
        SourceUnavailable,
        address_in,
    )
    from services.knowledge.library_search import LibrarySearch, Search
    from services.knowledge.links_file import LINE_FORMS, begins_line, parse_links, read_links, site_host
    from services.knowledge.source_files import HIDDEN, FileFacts, FileRecord, TextFiles
    from services.knowledge.source_kinds import (
        AnyKind,
        CannotList,
        Discovered,
        Due,
        LeftOut,
        LineResult,
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
        DOUBTED,
        INDENT,
        MARKER,
        UNREAD,
        Correction,
        Exchange,
        PairTurn,
        Speaker,
        TopicBlock,
        answered_pairs,
        belongs_to,
        exchanges,
        files_of,
        first_file_of,
        fold_name_word,
        is_topic_name,
        name_words,
        next_file,
        pair_for_model,
        pair_ids,
        part_for_model,
        render_block,
        topic_blocks,
        topic_for_model,
        topic_name,
        whole_answer,
    )
    from services.knowledge.web_interface import FetchStatus, Page, WebError, WebFetchers

__getattr__ = lazy_exports(__name__)
