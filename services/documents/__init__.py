"""Facts from files: reads files, keeps them searchable, and answers questions about them.

`reading` turns bytes into chunks, `store` keeps documents, `asking` understands questions and finds lines: these stand
alone (docs/facts-from-files.md). `tools` offers the result to a model, which `condensing` asks for answers.
"""

# pyright: reportUnusedImport=false
from services.documents.ingesting import fill, ingested, refusal_text
from services.documents.limits import FileLimits, FileRefused, amount, check_file, shown
from services.documents.lookup import Lookup, OwnRunbook, UnreadableFile
from services.documents.reading import DocumentRedactors
from services.documents.results import QAResult, Status, ToolContext
from services.documents.runbooks import SHOWN, NoSuchRunbook, Runbooks, TooManyRunbooks, TooManyWaiting, title_of
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
from services.documents.tools.core import unreadable
