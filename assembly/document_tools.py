"""The tools over documents, as the settings say."""

from __future__ import annotations

from collections.abc import Callable, Collection

from services.documents.store import DocumentStore, Weights
from services.documents.tools import LIBRARIES, AnswerCache, DocumentQATool, build
from services.llm import Asker, Usage
from services.search.embedding import Embedder
from settings import DocumentSettings


def tools_over(
    chosen: DocumentSettings,
    store: DocumentStore,
    embedder: Embedder | None,
    asker: Asker | None,
    *,
    model: str,
    usage: Usage,
    reply_language: str,
    answers: AnswerCache | None = None,
    shares: Callable[[int], bool] | None = None,
    internal_topics: Collection[str] = (),
    server: int | None = None,
) -> dict[str, DocumentQATool]:
    """Build the document tools over a store, with weights, lifetimes and limits from the settings."""
    ranking, cache = chosen.ranking, chosen.cache
    seconds = (cache.case_seconds, cache.user_seconds, cache.team_seconds, cache.global_seconds)
    return build(
        store=store,
        embedder=embedder,
        asker=asker,
        model=model,
        usage=usage,
        reply_language=reply_language,
        cache=answers,
        weights=Weights(
            prose=ranking.prose_weight,
            window=ranking.window_weight,
            pattern=ranking.pattern_weight,
            leaf=ranking.leaf_weight,
            identifier=ranking.identifier_weight,
            identifier_bonus=ranking.identifier_bonus,
            bm25_k1=ranking.bm25_k1,
            bm25_b=ranking.bm25_b,
        ),
        lifetimes={library.name: int(each) for library, each in zip(LIBRARIES, seconds, strict=True)},
        shares=shares,
        internal_topics=internal_topics,
        server=server,
        store_seconds=chosen.store_timeout_seconds,
    )
