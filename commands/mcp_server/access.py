"""Whose files assistants may read.

Whoever asks over MCP is nobody whom Discord knows, so Discord cannot be asked what they may see. The operator names
channels and threads (`mcp.channels`), and so says that whoever reaches this server may read the files there. Of a
channel these are the files of threads that the bot has opened there, by its record of posts: such threads are public,
and whoever views the channel can view them. Threads that people opened may be private: each has to be named itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.conversations import read_posts
from services.storage import Signature, confined, in_thread


@dataclass(slots=True)
class ReadableThreads:
    """The threads that the operator has opened to assistants.

    Attributes:
        channels: channels and threads, as named by the operator.
        posts: the bot's record of its posts.
    """

    channels: frozenset[int]
    posts: Path
    _known: tuple[Signature | None, Mapping[int, int]] = field(default=(None, {}))

    async def admits(self, thread_id: int) -> bool:
        """Tell whether assistants may read the files of a thread."""
        return thread_id in self.channels or await self.channel_of(thread_id) in self.channels

    async def channel_of(self, thread_id: int) -> int | None:
        """Give the channel in which the bot opened a thread; None where it did not or no longer knows."""
        seen = confined.look(self.posts)
        if seen is None:
            return None
        if self._known[0] != seen:
            self._known = seen, await in_thread(_opened, self.posts)
        return self._known[1].get(thread_id)


def _opened(posts: Path) -> dict[int, int]:
    """The channel of each thread that the bot opened."""
    return {post.place_id: post.asked_in for post in read_posts(posts) if post.opened_thread}
