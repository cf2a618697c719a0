"""The thinking steps: answering, curating team knowledge, and describing sources.

Each has a Protocol - `Assistant`, `Curator`, `Describer` - with two implementations: `Model…` composes the prompts and
asks a language model, `Extractive…` (the package `extractive`) needs none and quotes. The rest is for both: what an
answer may cite and link to, and an `Inquiry` on its way through the answer chain.
"""

# pyright: reportUnusedImport=false
from services.assistant import prompts
from services.assistant.addresses import Addresses
from services.assistant.answering import AnswerResult, Assistant, GatingResult, ModelAssistant, VerificationResult
from services.assistant.citations import (
    cited_in,
    linkable_texts,
    links_block,
    remove_foreign_links,
    resolve_ids,
    trusted_text,
)
from services.assistant.curator import (
    ClassificationResult,
    Curator,
    IntegrationResult,
    ModelCurator,
    conversation_with,
    summaries_in,
    with_image_summaries,
)
from services.assistant.describing import Describer, ModelDescriber, NotDescribed, SaysNothing, key_of
from services.assistant.inquiry import CaptureJob, Inquiry, Unanswered, end, replied, skipped
from services.assistant.pointing import is_worth_showing, linkable_in, nothing_found, pointers
from services.assistant.prompts import CURATING_RULES, Offered, Tasks
from services.assistant.quoting import first_quote
