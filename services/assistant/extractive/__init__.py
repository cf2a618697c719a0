"""Thinking without a model, for a newcomer who has no key yet: rules decide, BM25 selects, and sources are quoted.

assistant       the answer chain (`Assistant`)                curator      topics by likeness of words (`Curator`)
corpus          all sources of a library, searchable          subjects     what conversations are about
excerpting      sources cut into passages, cached             describing   descriptions for the index (`Describer`)
quoting         passages that answer a query, quoted          file_answers answers from files and runbooks
"""

# pyright: reportUnusedImport=false
from services.assistant.extractive.assistant import ExtractiveAssistant
from services.assistant.extractive.curator import ExtractiveCurator
from services.assistant.extractive.describing import ExtractiveDescriber, ExtractiveTopicDescriber, describe
from services.assistant.extractive.quoting import first_quote
