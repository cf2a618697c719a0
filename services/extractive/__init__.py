"""Answers without a model: the backend of a newcomer, who has no key yet.

words       text into terms                       ranking        BM25 over terms
questions   is somebody asking?                   index          which entries fit
passages    documentation into quotable pieces    team_answers   team knowledge into the same
quoting     the pieces that answer a query        checking       is a draft made of them?
recent      keeps what was built from a text      assistant      all of it behind `services.assistant.Assistant`
"""

from services.extractive.assistant import ExtractiveAssistant
from services.extractive.index import Ranked, rank_index
from services.extractive.quoting import NOTICE

__all__ = ["NOTICE", "ExtractiveAssistant", "Ranked", "rank_index"]
