"""One place that builds the document tools, and registers those that can work (DOCUMENT_QA 8.5)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from services.documents.asking.rewriting import ModelRewriter
from services.documents.asking.synthesis import ExtractiveSynthesiser, ModelSynthesiser
from services.documents.results import ToolContext
from services.documents.store.protocol import DocumentStore, Weights
from services.documents.tools import schemas
from services.documents.tools.breaker import Breaker
from services.documents.tools.cache import AnswerCache
from services.documents.tools.config import KBConfig
from services.documents.tools.configs import CaseEvidence, GlobalKB, TeamKB, UserKB
from services.documents.tools.core import STORE_SECONDS, DocumentQATool, Shared
from services.documents.tools.schemas import ToolSchema
from services.documents.tools.wrappers import (
    AnswerFromCaseEvidence,
    AnswerFromGlobalKB,
    AnswerFromTeamKB,
    AnswerFromUserKB,
    DocumentTool,
    Shares,
)
from services.llm import Asker, Usage
from services.search.embedding import Embedder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long answers keep, in seconds."""

    case: int = 3600
    user: int = 86_400
    team: int = 43_200
    shared: int = 604_800


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools that are there, and what the answering side needs to know about them."""

    tools: dict[str, DocumentTool]
    schemas: dict[str, ToolSchema]
    shared: Shared

    async def offered(self, ctx: ToolContext) -> dict[str, DocumentTool]:
        """Those with something in them that this person may ask here."""
        return {name: tool for name, tool in self.tools.items() if await tool.offered(ctx)}

    def forget(self, collection: str) -> int:
        """Drop kept answers from a collection that is gone."""
        return self.shared.cache.purge(collection)

    def register(self, tool: DocumentTool, schema: ToolSchema) -> None:
        """Add a library of one's own."""
        self.tools[tool.name] = tool
        self.schemas[tool.name] = schema


def build(
    *,
    store: DocumentStore | None,
    embedder: Embedder | None = None,
    asker: Asker | None = None,
    model: str = "",
    usage: Usage | None = None,
    cache: AnswerCache | None = None,
    weights: Weights | None = None,
    lifetimes: Lifetimes | None = None,
    shares: Shares | None = None,
    internal_topics: Collection[str] = (),
    store_seconds: float = STORE_SECONDS,
) -> Toolbox | None:
    """Tools over one store, with one embedder, synthesiser and cache between them.

    `asker`: who condenses passages and rewrites follow-ups; None: passages are quoted. `model`: its name. `shares`:
    whether a person shows their runbooks in public threads; None: there are no runbooks. `internal_topics`: of the
    team's notes, those for its members only. Without a store there is no tool.
    """
    if store is None:
        log.info("Document tools: none, as there is no store")
        return None
    counted = usage if usage is not None else Usage()
    shared = Shared(
        store=store,
        cache=cache if cache is not None else AnswerCache(),
        breaker=Breaker(),
        embedder=embedder,
        synthesiser=ExtractiveSynthesiser() if asker is None else ModelSynthesiser(asker, counted, model),
        rewriter=None if asker is None else ModelRewriter(asker, counted),
        store_seconds=store_seconds,
    )
    toolbox = Toolbox({}, {}, shared)
    kept = lifetimes if lifetimes is not None else Lifetimes()
    asked = weights if weights is not None else Weights()

    def core(name: str, config: KBConfig) -> DocumentQATool:
        config.weights = asked
        return DocumentQATool(name, config, shared)

    def register(tool: DocumentTool) -> None:
        toolbox.register(tool, schemas.SCHEMAS[tool.name])

    register(AnswerFromCaseEvidence(core(schemas.CASE, CaseEvidence(cache_ttl=kept.case)), store))
    if shares is not None:
        register(AnswerFromUserKB(core(schemas.USER, UserKB(cache_ttl=kept.user)), shares))
    register(AnswerFromTeamKB(core(schemas.TEAM, TeamKB(cache_ttl=kept.team, internal=internal_topics)), store))
    register(AnswerFromGlobalKB(core(schemas.GLOBAL, GlobalKB(cache_ttl=kept.shared))))
    log.info(
        "Document tools: %s; %s; %s",
        ", ".join(toolbox.tools),
        "keyword search only" if embedder is None else f"embeddings by {embedder.id}",
        f"condensed by {shared.synthesiser.id}",
    )
    return toolbox
