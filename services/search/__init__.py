"""Finding text: words and stems, passages, keyword ranking, and vectors of meaning.

`embedding` turns text into vectors; it loads numpy, so it is a package of its own.
"""

# pyright: reportUnusedImport=false
from services.search import tokenizer
from services.search.passages import Passage, passages
from services.search.queries import BEFORE, Query, asked_now, read_query
from services.search.questions import asking_sentences, continues, is_question
from services.search.ranking import Fit, Postings, rank, weigh
from services.search.tokenizer import QUERY_STOP_WORDS, parts, query_tokens, tokens
from services.search.words import STOP_WORDS, stem, terms
