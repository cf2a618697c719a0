"""The document tools. Their core is the same; a `KBConfig` each says how libraries differ."""

# pyright: reportUnusedImport=false
from services.documents.tools.core import AnswerCache, DocumentQATool
from services.documents.tools.libraries import CASE, GLOBAL, LIBRARIES, TEAM, USER, KBConfig
from services.documents.tools.toolset import (
    QUERY_ALTERNATIVE,
    QUERY_FILE,
    QUERY_PARAMETERS,
    QUERY_RULES,
    QUERY_USE,
    ToolModel,
    Toolset,
    build,
)
