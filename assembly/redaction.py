"""Makes the redactor that knows the configured secrets."""

from __future__ import annotations

from services.redaction import Redactor
from settings import Settings


def redactor_of(settings: Settings) -> Redactor:
    """Knows the configured secrets by value, and others by shape."""
    return Redactor(secrets_of(settings))


def secrets_of(settings: Settings) -> list[str]:
    """The configured secrets, which must show up nowhere."""
    documents = settings.documents
    searching = settings.search.embeddings
    endpoints = (
        settings.ai_response.llm,
        settings.kb.llm,
        documents.synthesis_llm,
        documents.embeddings,
        None if isinstance(searching, str) else searching,
    )
    keys = [endpoint.api_key.get_secret_value() for endpoint in endpoints if endpoint is not None]
    tokens = (settings.discord.token, settings.dashboard.token, settings.mcp.token)
    return [*(token.get_secret_value() for token in tokens), *keys]
