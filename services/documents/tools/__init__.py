"""The document tools: one core, and what differs between libraries in a `KBConfig` each."""

# pyright: reportUnusedImport=false
from services.documents.tools import toolset
from services.documents.tools.core import AnswerCache, DocumentQATool
from services.documents.tools.libraries import CASE, LIBRARIES
from services.documents.tools.toolset import (
    OTHERWISE_QUERY,
    QUERY_FILE,
    QUERY_PARAMETERS,
    QUERY_RULES,
    QUERY_USE,
    Toolset,
    build,
)
