"""Routing: the table that decides whether a part is answered, captured or ignored, and the conditions of its rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from model.messages import AuthorType, Destination, Message, Part, PlaceKind
from model.outcomes import Reason
from model.servers import Servers
from services.conversations.context import THREAD_MESSAGES
from services.conversations.drafts import Drafts
from services.conversations.history import History, is_private
from services.conversations.people import People, TeamActivity
from services.conversations.posts import Outbox, Posts, StartedReply
from services.conversations.tracking import ConversationTracker


@dataclass(frozen=True, slots=True)
class RouteRules:
    reply_mode: str = "all"  # `all`, `mention` or `off`
    reply_mode_by_channel: Mapping[int, str] = field(default_factory=dict[int, str])  # where it differs
    capture_channels: frozenset[int] = frozenset()  # captured although `@everyone` cannot view them
    team_active_seconds: float = 120.0  # of silence after a team member replied to the asker

    def reply_mode_in(self, channel_id: int) -> str:
        return self.reply_mode_by_channel.get(channel_id, self.reply_mode)


class RoutingResult(NamedTuple):
    """Where the routing table sends a part. `end_reason`: why it goes no further; None: it goes on. `addressed`:
    it mentions the bot, replies to it, or opens a forum post.
    """

    to: Destination
    end_reason: Reason | None = None
    addressed: bool = False


@dataclass(frozen=True, slots=True)
class PartFacts:
    """The conditions of the routing table, for one part and the `target` that it replies to. Discord is asked only if
    the known messages do not decide. Each method may raise `LookupFailed`.
    """

    router: Router
    part: Part
    target: Message | None

    async def addresses_bot(self) -> bool:
        bot_id = self.router.people.bot_id
        mentioned = any(user_id == bot_id for message in self.part.messages for user_id, _ in message.mentions)
        return mentioned or (self.target is not None and self.target.author.id == bot_id)

    async def replies_to_another(self) -> bool:
        return self.target is not None and self.target.author.id != self.part.author.id

    async def others_wrote(self) -> bool:
        """Return True if the part continues a conversation between people, with or without a reply."""
        return self.router.tracker.others_wrote(self.part.messages[0].id)

    async def bot_takes_part(self) -> bool:
        """Return True if the bot owns the thread or has posted in it."""
        place, people = self.part.place, self.router.people
        if place.owner_id == people.bot_id or self.router.posts.has_posted_in(place.id):
            return True
        return any(people.is_bot_itself(message.author) for message in self.router.history.recent(place.id))

    async def is_own_forum_post_without_team(self) -> bool:
        return self.part.place.owner_id == self.part.author.id and not await self._has_posted(TEAM)

    async def is_private(self) -> bool:
        """Return True if the part, or the message it replies to, is not public and not in one of the
        `capture_channels`: private talk must not become public knowledge.
        """
        allowed, places = self.router.rules[self.part.guild_id].capture_channels, [self.part.place]
        if self.target is not None:
            places.append(self.router.history.place(self.target.channel_id))
        return any(is_private(place, allowed) for place in places)

    async def replies_to_user(self) -> bool:
        return self.target is not None and await self._type_of(self.target) is USER

    async def helps_in_thread(self) -> bool:
        if self.target is not None and await self._type_of(self.target) is TEAM:
            return False
        if await self._has_posted(USER):
            return True
        starter = await self.router.history.starter(self.part.place)
        return starter is not None and await self._type_of(starter) is USER

    async def helps_user(self) -> bool:
        """Return True if the part continues a conversation with a community user without being a reply."""
        return self.target is None and self.router.tracker.helps_user(self.part.messages[0].id)

    async def needs_no_question(self) -> bool:
        """Return True if the part's kind of conversation is captured without a question."""
        return not self.router.tracker.kind_of(self.part.last.id).needs_question

    async def team_is_answering(self) -> bool:
        place_id, author_id, first = self.part.place.id, self.part.author.id, self.part.messages[0]
        if not self.part.place.is_thread:
            since = first.at - self.router.rules[self.part.guild_id].team_active_seconds
            return self.router.team.has_helped(place_id, author_id, since, first.at)
        earlier = await self.router.history.newest(place_id, THREAD_MESSAGES)
        own = [message.id for message in earlier if message.author.id == author_id and message.id < first.id]
        return await self._has_posted(TEAM, after=max(own, default=0))

    async def _has_posted(self, kind: AuthorType, *, after: int = 0) -> bool:
        """Return True if somebody of this type has asked or answered in the part's thread, `after` a message id."""
        kind_of = self.router.tracker.kind_of
        for message in await self.router.history.newest(self.part.place.id, THREAD_MESSAGES):
            counts = message.id > after and not message.is_system and kind_of(message.id).needs_question
            if counts and await self._type_of(message) is kind:
                return True
        return False

    async def _type_of(self, message: Message) -> AuthorType:
        return await self.router.people.look_up(message.author, self.part.place.guild_id, self.part.guild_id)


USER, TEAM, BOT = AuthorType.COMMUNITY_USER, AuthorType.TEAM_MEMBER, AuthorType.BOT
CHANNEL, FORUM = frozenset({PlaceKind.CHANNEL}), frozenset({PlaceKind.FORUM_POST})
THREAD, ANY = frozenset({PlaceKind.THREAD, PlaceKind.FORUM_POST}), frozenset(PlaceKind)
ANSWER, CAPTURE, NOTHING = Destination.ANSWER, Destination.CAPTURE, Destination.NOTHING

Row = tuple[AuthorType, frozenset[PlaceKind], Callable[[PartFacts], Awaitable[bool]] | None, Destination]

TABLE: tuple[Row, ...] = (
    # author, place, further condition, goes to
    (BOT, ANY, None, NOTHING),
    (USER, CHANNEL, PartFacts.addresses_bot, ANSWER),
    (USER, CHANNEL, PartFacts.replies_to_another, NOTHING),
    (USER, CHANNEL, PartFacts.others_wrote, NOTHING),
    (USER, CHANNEL, None, ANSWER),
    (USER, THREAD, PartFacts.addresses_bot, ANSWER),
    (USER, THREAD, PartFacts.bot_takes_part, ANSWER),
    (USER, FORUM, PartFacts.is_own_forum_post_without_team, ANSWER),
    (USER, THREAD, None, NOTHING),
    (TEAM, ANY, PartFacts.is_private, NOTHING),
    (TEAM, ANY, PartFacts.needs_no_question, CAPTURE),
    (TEAM, ANY, PartFacts.replies_to_user, CAPTURE),
    (TEAM, THREAD, PartFacts.helps_in_thread, CAPTURE),
    (TEAM, CHANNEL, PartFacts.helps_user, CAPTURE),
    (TEAM, ANY, None, NOTHING),
)
"""The destination of a part: the first row that matches decides. A thread may be a forum post."""


async def destination(facts: PartFacts) -> Destination:
    """Look up the destination of a part. Raises `LookupFailed` if Discord could not be asked about a condition."""
    for author_type, places, condition, to in TABLE:
        fits = facts.part.author_type is author_type and facts.part.place.kind in places
        if fits and (condition is None or await condition(facts)):
            return to
    return NOTHING


@dataclass(frozen=True, slots=True)
class Router:
    """Routes parts: the table, the reply mode, and the check for questions that an earlier run has answered."""

    people: People
    history: History
    team: TeamActivity
    posts: Posts
    tracker: ConversationTracker
    rules: Servers[RouteRules]
    outbox: Outbox = field(default_factory=Outbox)
    drafts: Drafts = field(default_factory=Drafts)

    async def route(self, part: Part) -> RoutingResult:
        """Decide about one part. Raises LookupFailed: Discord could not be asked, which is not "no reply"."""
        target = await self._target(part)
        if part.author_type is USER and await self._answered_before(part):
            return RoutingResult(NOTHING, Reason.DUPLICATE)
        facts = PartFacts(self, part, target)
        to = await destination(facts)
        if to is ANSWER:
            # The first message of a forum post, which has its id, asks everybody, also the bot.
            opens_forum_post = part.place.kind in FORUM and part.place.id in part.message_ids
            addressed = opens_forum_post or await facts.addresses_bot()
            return RoutingResult(to, await self._reason_for_silence(facts), addressed)
        return RoutingResult(to)

    async def _target(self, part: Part) -> Message | None:
        """Return the first existing message that the part replies to."""
        for message in part.messages:
            reference = message.reply_to
            if reference is not None and not reference.gone:
                target = await self.history.message(reference.channel_id, reference.message_id)
                if target is not None:
                    return target
        return None

    async def _reason_for_silence(self, facts: PartFacts) -> Reason | None:
        part, addressed = facts.part, await facts.addresses_bot()
        mode = self.rules[part.guild_id].reply_mode_in(part.place.channel_id)
        if mode == "off" or (mode == "mention" and not addressed):
            return Reason.REPLY_MODE
        # A part that was cancelled already ends as cancelled, for the reason that came first.
        if not addressed and part.token.error is None and await facts.team_is_answering():
            return Reason.TEAM_IS_ANSWERING
        return None

    async def _answered_before(self, part: Part) -> bool:
        """Return True if an earlier run has answered this part: by a reply on Discord, recorded or not, or a draft."""
        last = part.last
        if self.posts.has_answered(last.id) or self.drafts.has_held(last.id):
            return True
        if not self.history.is_from_before(last.id):
            return False
        # Before all replies are finished, a piece of one could be taken for another answer.
        await self.outbox.wait_until_finished()
        if self.posts.has_answered(last.id):
            return True
        if part.place.is_thread:
            later = await self.history.newest(part.place.id, THREAD_MESSAGES)
            return any(
                m.reply_to and m.reply_to.message_id == last.id and self.people.is_bot_itself(m.author) for m in later
            )
        # The thread on the question, or the asker's earlier thread.
        for thread_id in (last.id, self.posts.thread_opened_for(part.place.id, part.author.id)):
            post = None if thread_id is None else await self._unrecorded_post(part, thread_id)
            if post is not None:
                # Recorded now, else it would be taken for the answer to the asker's next question.
                reply = StartedReply.to(part, post.channel_id, question="", sources=(), people=())
                await self.posts.add(reply.as_post([post.id]))
                return True
        return any(map(self._is_by_bot, await self.history.newest(last.id, THREAD_MESSAGES)))

    async def _unrecorded_post(self, part: Part, thread_id: int) -> Message | None:
        """Return the last message of an answer that the bot posted in a thread, not as a reply, and did not record.

        An asker's questions in a channel are answered one after another: the first without an outcome is the one that
        the bot was answering when it was killed.
        """
        after = max(part.last.id, self.posts.newest_in(thread_id))
        own = [
            message
            for message in await self.history.newest(thread_id, THREAD_MESSAGES)
            if message.id > after and message.reply_to is None and self._is_by_bot(message)
        ]
        return own[-1] if own else None

    def _is_by_bot(self, message: Message) -> bool:
        """Return True if the bot wrote the message. Discord's system message about an opened thread does not count."""
        return self.people.is_bot_itself(message.author) and not message.is_system
