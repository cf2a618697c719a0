"""Answers without a model: the backend of a newcomer, who has no key yet.

words       text into terms                       ranking        BM25 over terms
questions   is somebody asking?                   queries        what is asked, and what only told
passages    documentation into quotable pieces    team_answers   team knowledge into the same
cutting     the pieces of a source, kept          shelf          all sources, ready to be searched
quoting     the pieces that answer a query        checking       is a draft made of them?
fitness     does a passage say enough?
recent      keeps what was built lately           describing     what a source or topic is about, for the index
subjects    what conversations are about          curator        topics by likeness of words
looking_up  answers from files and runbooks       assistant      how answers are made of it (`Assistant`)
"""

# pyright: reportUnusedImport=false
from services.assistant.extractive.assistant import ExtractiveAssistant
from services.assistant.extractive.curator import ExtractiveCurator
from services.assistant.extractive.describing import ExtractiveDescriber, ExtractiveTopicDescriber, describe
from services.assistant.extractive.quoting import first_quote
from services.search import asking_sentences
