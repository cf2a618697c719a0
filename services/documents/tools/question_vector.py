"""The vector of one question."""

from __future__ import annotations

import logging

from services.search.embedding import Embedder, EmbeddingFailed, Vectors

log = logging.getLogger(__name__)


class QuestionVector:
    """Made once, and only if somebody wants it."""

    def __init__(self, tool: str, embedder: Embedder | None, text: str) -> None:
        """`tool`: who asks, for the log."""
        self._tool = tool
        self._embedder = embedder
        self._text = text
        self._known: tuple[Vectors, str] | None = None
        self.failed = False
        """Whether there should be one, and is none: an answer found without is worth less than the next one."""

    async def get(self) -> tuple[Vectors, str] | None:
        """It, and whose it is; None where there is none."""
        if self._embedder is not None and self._known is None and not self.failed:
            try:
                self._known = (await self._embedder.embed([self._text]))[0], self._embedder.id
            except EmbeddingFailed as error:
                log.warning("%s: searched by words only: %s", self._tool, error)
                self.failed = True
        return self._known
