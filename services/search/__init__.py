"""Search: terms in any language, the wording of questions and replies, passages, ranking, and embeddings.

`embedding` is imported by its own name, as it loads numpy.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.search import retrieval, scoring, tokenizer
    from services.search.differences import is_another_question
    from services.search.languages import ENGLISH, language_of, normalised
    from services.search.passage_store import (
        PassageStore,
        PreparedSource,
        StoredPassage,
        delete_passages,
        passage_files,
    )
    from services.search.questions import (
        EARLIER_QUESTION,
        asking_sentences,
        asks_for_all,
        asks_for_something,
        current_question,
        is_follow_up,
        is_question,
        looks_finished,
        may_ask,
        meets,
        requirements_of,
        without_greeting,
        words_to_search,
    )
    from services.search.replies import (
        corrects,
        has_file,
        holds_for_all,
        is_answer,
        is_formality,
        may_correct,
        may_doubt,
        reply_may_doubt,
        says_it_worked,
        statements,
        takes_back,
    )
    from services.search.retrieval import (
        MIN_CONFIDENCE_TO_NAME,
        NOTHING,
        Hit,
        Level,
        QueryVector,
        SearchResult,
        TeamAnswer,
        best_passage,
        find,
        pages_of,
    )
    from services.search.scoring import Floats, Positions, Postings, rank
    from services.search.sections import (
        Place,
        advises_against,
        is_about_opposite,
        is_for_another,
        is_of_another_version,
        is_outdated,
        is_too_general,
        notices_in,
        version_folder,
        warnings_in,
    )
    from services.search.text.article import Passage, passages
    from services.search.tokenizer import (
        QUERY_STOP_WORDS,
        STOP_WORDS,
        query_tokens,
        smallest_tokens,
        stem,
        terms,
        tokens,
    )

__getattr__ = lazy_exports(__name__)
