"""A draft, for the tests of what keeps and shows drafts."""

from __future__ import annotations

from typing import Any

from services.conversations.drafts import Draft
from services.conversations.posts import Post, StartedReply


def made_draft(
    draft_id: int = 8, *, channel_id: int = 20, asker_id: int = 301, question: str = "How?", **changes: Any
) -> Draft:
    """An answer to a question in a channel, which waits from second 100 on."""
    post = Post(0.0, 0, draft_id, channel_id, asker_id, draft_id, True, question, ("kb:restore.md",))
    fields: dict[str, Any] = {
        "reply": StartedReply(post, (), (draft_id,), 1),
        "channel_id": channel_id,
        "thread_name": "restore",
        "text": "Run restore.",
        "level": "answer",
        "confidence": 0.421,
        "held_at": 100.0,
        "until": 86_500.0,
        "is_public": True,
        "review_channel_id": 77,
        "review_id": 78,
    }
    return Draft(**fields | changes)
