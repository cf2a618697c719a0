"""The four tools as they are called: who may ask is decided here, before the cache and the core (DOCUMENT_QA 8.1)."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from services.documents.results import ConversationContext, QAResult, Status, ToolContext
from services.documents.store.protocol import CollectionSummary, DocumentStore, StoreUnavailable
from services.documents.tools.core import DEFAULT_K, DocumentQATool

log = logging.getLogger(__name__)

Shares = Callable[[int], bool]
"""Whether a person lets their runbooks be quoted in public threads."""


class DocumentTool(ABC):
    """What the four have in common: deny, or ask the core. Subclasses say whose library it is, and who may."""

    def __init__(self, core: DocumentQATool) -> None:
        self._core = core

    def __call__(self, *_args: object, **_named: object) -> str:
        """There is no blocking call: it would stop the bot."""
        raise NotImplementedError(f"{self.name} is asynchronous: await its run()")

    @property
    def name(self) -> str:
        return self._core.name

    async def offered(self, ctx: ToolContext) -> bool:
        """Whether there is something to ask here that this person may see."""
        try:
            await self._admit(ctx)
        except PermissionError:
            return False
        return await self._core.has_content(self._scope(ctx), self._filters(ctx))

    async def run(
        self,
        ctx: ToolContext,
        question: str,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
    ) -> str:
        """The answer as text, with its sources. Never raises but for a cancelled call."""
        return self.response(await self.ask(ctx, question, k, conversation_context))

    def response(self, result: QAResult) -> str:
        """A result as the text that the agent is given."""
        return self._core.response(result)

    async def ask(
        self,
        ctx: ToolContext,
        question: str,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
    ) -> QAResult:
        """As `run`, with everything that is known about the answer."""
        try:
            await self._admit(ctx)
        except PermissionError:
            # Ids, no content: and nothing in the answer says whether there is anything.
            log.info(
                "%s: denied to %s in guild %s, thread %s (%s)",
                self.name,
                ctx.asker_id,
                ctx.guild_id,
                ctx.thread_id,
                ctx.execution_id,
            )
            return QAResult(self._core.config.no_result_message(Status.DENIED), Status.DENIED)
        context = conversation_context if conversation_context is not None else ctx.conversation
        return await self._core.answer_question(question, self._scope(ctx), k, context, self._filters(ctx))

    @abstractmethod
    def _scope(self, ctx: ToolContext) -> str | None:
        """Whose collection is asked; None: nobody's, or there is none here."""

    @abstractmethod
    async def _admit(self, ctx: ToolContext) -> None:
        """Raises:
        PermissionError: this person may not ask this here.
        """

    def _filters(self, ctx: ToolContext) -> Mapping[str, str]:  # noqa: ARG002 (others look at it)
        return {}


class _OfOneGuild(DocumentTool):
    """A library that belongs to a guild: nobody asks it from another."""

    def __init__(self, core: DocumentQATool, store: DocumentStore) -> None:
        super().__init__(core)
        self._store = store

    async def _same_guild(self, ctx: ToolContext) -> None:
        described = await self._described(ctx)
        owner = None if described is None else described.collection.guild_id
        if owner is not None and owner != ctx.guild_id:
            raise PermissionError("another guild's")

    async def _described(self, ctx: ToolContext) -> CollectionSummary | None:
        try:
            return await self._store.describe(self._core.config.get_collection_name(self._scope(ctx)))
        except (ValueError, StoreUnavailable):
            return None  # the core says what is wrong


class AnswerFromCaseEvidence(_OfOneGuild):
    """Files of this thread, for those who can view the thread now."""

    def _scope(self, ctx: ToolContext) -> str | None:
        return None if ctx.thread_id is None else str(ctx.thread_id)

    async def _admit(self, ctx: ToolContext) -> None:
        if not ctx.asker_can_view:
            raise PermissionError("the thread is not theirs to see")
        await self._same_guild(ctx)


class AnswerFromUserKB(DocumentTool):
    """The asker's own runbooks: the owner is whoever asks, and nobody can ask for another's."""

    def __init__(self, core: DocumentQATool, shares: Shares) -> None:
        super().__init__(core)
        self._shares = shares

    def _scope(self, ctx: ToolContext) -> str | None:
        return str(ctx.asker_id)

    async def _admit(self, ctx: ToolContext) -> None:
        in_public = ctx.thread_id is not None and ctx.thread_is_public
        if in_public and not self._shares(ctx.asker_id):
            raise PermissionError("their runbooks are private, and others read here")


class AnswerFromTeamKB(_OfOneGuild):
    """What the team of this guild answered before; internal topics for its members only."""

    def _scope(self, ctx: ToolContext) -> str | None:
        return ctx.team_id or (None if ctx.guild_id is None else str(ctx.guild_id))

    async def _admit(self, ctx: ToolContext) -> None:
        await self._same_guild(ctx)

    def _filters(self, ctx: ToolContext) -> Mapping[str, str]:
        # Also a member's question in a public thread is answered where everybody reads.
        private = ctx.asker_is_team and not (ctx.thread_id is not None and ctx.thread_is_public)
        return {} if private else {"internal": "hidden"}


class AnswerFromGlobalKB(DocumentTool):
    """The documentation, for everyone."""

    def _scope(self, ctx: ToolContext) -> str | None:  # noqa: ARG002 (one for all)
        return None

    async def _admit(self, ctx: ToolContext) -> None:
        """Everybody may ask."""
