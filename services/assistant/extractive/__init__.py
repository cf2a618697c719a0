"""Thinking without a model, for a newcomer who has no key yet: rules decide, BM25 selects, and sources are quoted.

assistant   the answer chain (`Assistant`), from sources, files and runbooks
lookup      answers from files and runbooks
curator     topics by likeness of words (`Curator`)
describing  descriptions for the index (`Describer`)
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.assistant.extractive.assistant import ExtractiveAssistant
    from services.assistant.extractive.curator import ExtractiveCurator
    from services.assistant.extractive.describing import ExtractiveDescriber, ExtractiveTopicDescriber, describe

__getattr__ = lazy_exports(__name__)
