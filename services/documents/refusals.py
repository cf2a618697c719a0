"""Words for files that are refused."""

from __future__ import annotations

from services.conversations import phrases
from services.documents.limits import FileRefused


def refusal_text(refused: FileRefused, language: str = "en") -> str:
    """Return one line for people that says why a file is refused and what to do, in a language (ISO 639-1)."""
    said = phrases(language)
    return " ".join(said.say(sentence, **refused.values) for sentence in refused.sentences)
