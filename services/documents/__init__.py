"""Facts from files: reads files, keeps them searchable, and answers questions about them.

`reading` turns bytes into chunks, `store` keeps documents, `asking` reads questions and finds lines: these three work
alone (docs/facts-from-files.md). `tools` offers them to a model as tools; `condensing` asks a model for answers.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.documents.askers_files import names_for, with_distinct_names
    from services.documents.limits import FileLimits, FileRefused, check_file, check_share, display_name, format_size
    from services.documents.lookup import Lookup, OwnRunbook, UnreadableFile
    from services.documents.reading import DocumentRedactors, prepare_document
    from services.documents.runbooks import SHOWN, NoSuchRunbook, Runbooks, TooManyRunbooks, TooManyWaiting, title_of
    from services.documents.store.document_store import embed_document
    from services.documents.thread_files import (
        CLOSED,
        GONE,
        PLACE_ID,
        Candidate,
        IngestJob,
        ThreadFiles,
        Tombstones,
        candidates_in,
        forget_evidence,
        is_closed,
        read_tombstones,
        remove_file,
        render_tombstones,
    )
    from services.documents.tools import Toolset
    from services.documents.tools.core import describe_failure, refusal_text
    from services.documents.tools.libraries import QAResult, Status, ToolContext

__getattr__ = lazy_exports(__name__)
