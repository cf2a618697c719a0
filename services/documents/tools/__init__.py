"""The document tools: one core, and a library's own words and rules in a `KBConfig` each."""

# pyright: reportUnusedImport=false
from services.documents.tools.cache import AnswerCache
from services.documents.tools.factory import Lifetimes, Toolbox, build
