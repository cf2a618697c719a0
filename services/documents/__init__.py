"""Facts from files: reading them, keeping them searchable, and answering questions about them.

`store` keeps documents, `asking` reads questions and finds lines, `tools` offers the result to a model.
"""

# pyright: reportUnusedImport=false
from services.documents.bound import BoundTools
from services.documents.candidates import Candidate, is_closed, offers_of
from services.documents.cases import Cases, IngestJob
from services.documents.deletion import forget_evidence, remove_file
from services.documents.filling import fill
from services.documents.indexing import index_global, index_team
from services.documents.limits import FileLimits, FileRefused, amount, check_offer, shown
from services.documents.reading import DocumentRedactors, prepare
from services.documents.results import ConversationContext, QAResult, Status, ToolContext
from services.documents.runbooks import NoSuchRunbook, Runbooks, TooManyRunbooks, title_of
from services.documents.tombstones import Tombstones
from services.documents.toolset import Toolset
from services.documents.unreadable import unreadable
