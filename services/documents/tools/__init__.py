"""The document tools: one core, and what differs between libraries in a `KBConfig` each."""

# pyright: reportUnusedImport=false
from services.documents.tools import query_file
from services.documents.tools.cache import AnswerCache
from services.documents.tools.core import DocumentQATool
from services.documents.tools.libraries import CASE, LIBRARIES
from services.documents.tools.toolset import Toolset, build
