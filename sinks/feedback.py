"""Votes, and calls for help to a person."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Container

from clock import HOUR, rfc3339, run_blocking
from model.bounded import BoundedDict, RateLimit
from model.events import Reaction
from model.messages import Author, AuthorType
from model.servers import Servers
from operators.inferred_votes import InferredVote
from services.conversations import People, Post, Posts
from services.discord import Poster, PostFailed
from services.privacy import pseudonym, pseudonym_key
from services.storage import DataFolder, files

UP, DOWN, WITHDRAWN = "up", "down", "withdrawn"
VOTES = {"👍": UP, "👎": DOWN}
REMEMBERED = 20_000
"""Votes of this run that are kept in memory to compare later ones with; the oldest are forgotten first."""
MAX_CHANGES = 10
"""Changes of one voter's vote about one answer that are written in this run: each is a line with the question."""
CALL_SECONDS = HOUR
"""For so long after a call for help from a thread, others from there are dropped: anybody could fill the team's
channel.
"""
MAX_CALLS = 3
"""So many calls of one person are passed on in that time, each from another thread."""

log = logging.getLogger(__name__)


class Feedback:
    """Appends votes by community users to the feedback file, and posts calls for help.

    One line a change: `at`, `message_id`, `voter` (a keyed hash), `question`, `sources`, `vote` (`up`, `down` or
    `withdrawn`), and `inferred: true` for a vote inferred from the asker's words. The last vote of a voter about a
    message counts; an inferred one only if there is no other. No vote is inferred for a person who has voted on that
    answer in this run.

    `escalation_channels`: where calls for help are posted, if anywhere; `guild_of`: the server of a place.
    `keeps_votes`, `infers_votes`: votes are kept; inferred ones as well, as people see the answers. `opted_out`: votes
    by these people, or about answers to them, are not kept.
    """

    def __init__(
        self,
        folder: DataFolder,
        posts: Posts,
        people: People,
        poster: Poster,
        escalation_emoji: str,
        escalation_channels: Servers[int | None],
        *,
        keeps_votes: bool,
        infers_votes: bool,
        guild_of: Callable[[int], int | None] = lambda _place_id: None,
        opted_out: Container[int] = (),
    ) -> None:
        self._folder = folder
        self._posts = posts
        self._people = people
        self._poster = poster
        self._emoji = escalation_emoji
        self._escalation_channels = escalation_channels
        self._guild_of = guild_of
        self._opted_out = opted_out
        self._keeps_votes = keeps_votes
        self._infers_votes = keeps_votes and infers_votes
        self._votes = BoundedDict[tuple[int, int], str](REMEMBERED)  # by message and voter
        self._inferred = BoundedDict[tuple[int, int], str](REMEMBERED)
        self._changes = BoundedDict[tuple[int, int], int](REMEMBERED)  # by message and voter
        self._called = BoundedDict[int, float](REMEMBERED)  # by thread: when a call for help was passed on
        self._callers = RateLimit(MAX_CALLS, CALL_SECONDS)
        self._key: bytes | None = None

    async def handle(self, vote: Reaction | InferredVote) -> None:
        """Record one vote. A call for help that cannot be posted is logged. Raises OSError: the vote could not be
        written.
        """
        if isinstance(vote, Reaction):
            await self._react(vote)
        elif self._infers_votes:
            await self._keep_inferred(vote)

    async def _react(self, reaction: Reaction) -> None:
        post = self._posts.find(reaction.message_id)
        voter = Author(reaction.user_id, "", reaction.is_bot, reaction.role_ids)
        guild_id = self._guild_of(reaction.channel_id)
        if post is None or post.message_id != reaction.message_id:  # votes are offered under the last piece alone
            return
        if self._people.type_of(voter, guild_id) is not AuthorType.COMMUNITY_USER:
            return
        if reaction.emoji == self._emoji:
            if reaction.added:
                await self._escalate(post, reaction)
        elif self._keeps_votes and reaction.emoji in VOTES:
            await self._vote(post, reaction, VOTES[reaction.emoji])

    async def _vote(self, post: Post, reaction: Reaction, vote: str) -> None:
        key = (post.message_id, reaction.user_id)
        if reaction.added:
            self._votes[key] = vote
        elif self._votes.get(key, vote) == vote:
            vote = WITHDRAWN
            self._votes[key] = vote
        else:
            return  # an older vote is withdrawn after a newer one
        self._changes[key] = changes = self._changes.get(key, 0) + 1
        if changes <= MAX_CHANGES:
            await self._write(post, reaction.user_id, reaction.at, vote)

    async def _keep_inferred(self, inferred: InferredVote) -> None:
        post, vote = inferred.post, UP if inferred.worked else DOWN
        key = (post.message_id, post.asker_id)
        forgotten = self._posts.find(post.message_id) is None  # meanwhile
        if forgotten or key in self._votes or self._inferred.get(key) == vote:
            return
        await self._write(post, post.asker_id, inferred.at, vote, inferred=True)
        self._inferred[key] = vote

    async def _write(self, post: Post, user_id: int, at: float, vote: str, *, inferred: bool = False) -> None:
        if user_id in self._opted_out or post.asker_id in self._opted_out:
            return
        line: dict[str, object] = {
            "at": rfc3339(at),
            "message_id": str(post.message_id),
            "voter": await self._pseudonym(user_id),
            "question": post.question,
            "sources": list(post.sources),
            "vote": vote,
        }
        if inferred:
            line["inferred"] = True
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        await run_blocking(files.append, self._folder.feedback, data, own_line=True)

    async def _escalate(self, post: Post, reaction: Reaction) -> None:
        at, caller = reaction.at, reaction.user_id
        called = self._called.get(post.place_id, -CALL_SECONDS)
        if abs(at - called) < CALL_SECONDS or self._callers.is_reached(caller, at):
            return
        self._called[post.place_id] = at
        self._callers.note(caller, at)
        log.warning("a user asks for a person in thread %d", post.place_id)
        channel_id = self._escalation_channels[self._guild_of(post.place_id)]
        if channel_id is None:
            return
        nonce = f"{post.message_id:x}-help"
        try:
            await self._poster.send(channel_id, f"Somebody asks for a person in <#{post.place_id}>.", nonce=nonce)
        except PostFailed as error:
            del self._called[post.place_id]
            log.error("discord.escalation_channel_id: the call for help was not passed on: %s", error)  # noqa: TRY400 (for the operator)

    async def _pseudonym(self, user_id: int) -> str:
        """Return the voter's pseudonym: always the same on one installation, and meaningless elsewhere."""
        if self._key is None:
            self._key = await run_blocking(pseudonym_key, self._folder.feedback_key)
        return pseudonym(self._key, user_id)
