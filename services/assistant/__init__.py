"""The thinking steps: answering, curating team knowledge, and describing sources.

Each has a Protocol - `Assistant`, `Curator`, `Describer` - with two implementations: `Model…` composes the prompts and
asks a language model, `Extractive…` (the package `extractive`) needs none and quotes. The rest is for both: what an
answer may cite and link to, and an `Inquiry` on its way through the answer chain.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.assistant import prompts
    from services.assistant.addresses import Addresses
    from services.assistant.answering import AnswerResult, Assistant, GatingResult, ModelAssistant, VerificationResult
    from services.assistant.citations import (
        linkable_texts,
        links_block,
        remove_foreign_links,
        resolve_citations,
        resolve_ids,
        trusted_text,
    )
    from services.assistant.curator import (
        ClassificationResult,
        Curator,
        IntegrationResult,
        ModelCurator,
        conversation_of_capture,
        match_summaries,
        with_image_summaries,
    )
    from services.assistant.describing import Describer, ModelDescriber, NotDescribed, SaysNothing, description_key
    from services.assistant.inquiry import CaptureJob, Inquiry, Unanswered, outcome_of, reply_outcome, skip_outcome
    from services.assistant.pointing import is_worth_showing, linkable_hit_texts, nothing_found, pointers
    from services.assistant.prompts import CURATING_RULES, Choice, ConfiguredTasks
    from services.assistant.quoting import first_quote, is_team_answer, line_that_asks

__getattr__ = lazy_exports(__name__)
