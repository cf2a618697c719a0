"""Who thinks: the steps of answering and of filing team knowledge, with a model or without one.

`Assistant`, `Curator` and `Describer` are the seams; `ModelAssistant` and its like ask a model, `extractive` quotes.
"""

# pyright: reportUnusedImport=false
from services.assistant import prompts
from services.assistant.citing import keep_citations, linkable_texts, links_block
from services.assistant.curator import Curator, IntegrationResult
from services.assistant.describing import Describer, ModelDescriber, NotDescribed, key_of
from services.assistant.inquiry import CaptureJob, Inquiry, end, replied, skipped
from services.assistant.links import remove_foreign_links
from services.assistant.model_assistant import ModelAssistant
from services.assistant.model_curator import ModelCurator
from services.assistant.picturing import conversation_with, in_words, summaries_in
from services.assistant.prompts import Tasks
from services.assistant.protocol import AnswerResult, Assistant, GatingResult
