"""Conversations on Discord: history and people, which conversation a message belongs to, routing, what is in flight,
what the bot has posted, and the bot's own fixed sentences.
"""

# pyright: reportUnusedImport=false
from typing import TYPE_CHECKING

from services import lazy_exports

if TYPE_CHECKING:
    from services.conversations.addressing import find_addressees
    from services.conversations.context import Context, ContextRules
    from services.conversations.drafts import (
        FORGOTTEN,
        MAX_REVIEW_QUESTION_CHARS,
        UNKNOWN_DRAFT,
        Draft,
        DraftAction,
        DraftEnd,
        DraftRequest,
        Drafts,
        DraftState,
        forget_drafts,
        parse_draft,
        read_drafts,
        render_draft,
    )
    from services.conversations.fixed_phrases import Phrases, in_language, phrases
    from services.conversations.history import History, apply_edit, is_private
    from services.conversations.in_flight import InFlight, PersonalWork, Withdrawn, WorkCancelled
    from services.conversations.people import (
        TYPING_SECONDS,
        OptOutFile,
        OptOutRegistry,
        People,
        TeamActivity,
        TeamIds,
        ThreadAccess,
        TypingTracker,
    )
    from services.conversations.posts import (
        KEPT_POSTS,
        Outbox,
        Post,
        Posts,
        StartedReply,
        Watermark,
        Watermarks,
        forget_started,
        parse_posts,
        read_posts,
        read_started,
        read_watermarks,
        render_watermarks,
        replies_with,
    )
    from services.conversations.routing import Router, RouteRules, RoutingResult
    from services.conversations.tracking import ConversationTracker, RecentIds, TrackingRules

__getattr__ = lazy_exports(__name__)
