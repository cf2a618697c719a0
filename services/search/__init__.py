"""Search: terms in any language, the wording of questions and replies, passages, ranking, and embeddings.

`embedding` is a package of its own, as it imports numpy.
"""

# pyright: reportUnusedImport=false
from services.search import scoring, taught, tokenizer
from services.search.alike import ranked
from services.search.asked_for import asked_for, holds, is_too_general
from services.search.confidence import NEAREST, Level
from services.search.cutting import Passage, passages
from services.search.finding import NOTHING, Found, Hit, QueryVector, find, pages_of
from services.search.greetings import without_greeting
from services.search.languages import ENGLISH, language_of
from services.search.passage_file import delete_passages
from services.search.questions import (
    BEFORE,
    asking_sentences,
    asks_for_something,
    continues,
    current_question,
    is_question,
    looks_finished,
    may_ask,
    searched,
)
from services.search.scoring import Floats, Places, Postings
from services.search.statements import answers, statements, without_addressee
from services.search.store import PassageStore, PreparedSource, StoredPassage
from services.search.thanks import says_it_worked
from services.search.tokenizer import QUERY_STOP_WORDS, parts, query_tokens, tokens
from services.search.words import STOP_WORDS, stem, terms
