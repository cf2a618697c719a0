"""Facts from files: reading them, keeping them searchable, and answering questions about them.

`store` keeps documents, `asking` reads questions and finds lines, `tools` offers the result to a model.
"""

# pyright: reportUnusedImport=false
from services.documents.cases import IngestJob, ThreadFiles
from services.documents.indexing import drop_topics, fill, index_global, index_team
from services.documents.ingesting import ingested
from services.documents.limits import FileLimits, FileRefused, amount, check_file, shown
from services.documents.lookup import Lookup, OwnRunbook, UnreadableFile
from services.documents.posted import (
    PLACE_ID,
    Candidate,
    candidates_in,
    is_closed,
)
from services.documents.reading import DocumentRedactors
from services.documents.results import QAResult, Status, ToolContext
from services.documents.runbooks import NoSuchRunbook, Runbooks, TooManyRunbooks, title_of
from services.documents.tombstones import Tombstones, forget_evidence, remove_file
from services.documents.tools import Toolset
from services.documents.tools.judging import unreadable
