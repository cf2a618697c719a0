"""Whether a part is answered, captured, or left alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from model.batches import Key, Part
from model.messages import AuthorType, Message, Place, PlaceKind
from model.outcomes import Ignored, Outcome, Reason
from operators.cut import StartedPart
from services.assistant import CaptureJob, Inquiry, skipped
from services.conversations import History, People, Post, Posts, TeamActivity
from services.llm import Usage

THREAD_MESSAGES = 200
"""How much of a thread is read, newest first."""
REMEMBERED = 10_000
"""Captured parts that a team member may go on with; those of longest ago are forgotten first."""


@dataclass(frozen=True, slots=True)
class RouteRules:
    reply_mode: str = "all"
    """`all`, `mention` or `off`."""
    reply_mode_by_channel: Mapping[int, str] = field(default_factory=dict[int, str])
    capture_channels: frozenset[int] = frozenset()
    """Captured from although `@everyone` cannot view them."""
    team_active_seconds: float = 120.0
    capture_continuations: bool = False
    grouping_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Routed:
    """Where a part goes, or how it ended."""

    key: Key
    to: Inquiry | CaptureJob | Ignored | Outcome


class Router:
    """The routing table of one bot. `route` gives an `Inquiry`, a `CaptureJob`, or the part's end.

    The table asks Discord only where what it knows does not decide: the target of a reply that came without it,
    the earlier messages of a thread that it has not followed from the start.
    """

    def __init__(
        self,
        people: People,
        history: History,
        team: TeamActivity,
        posts: Posts,
        rules: RouteRules,
        usage: Usage | None = None,
    ) -> None:
        """`usage` adds up what all inquiries together use."""
        self._people = people
        self._history = history
        self._team = team
        self._posts = posts
        self._rules = rules
        self._usage = usage
        self._captured: OrderedDict[Key, Message] = OrderedDict()
        """By team member and channel, the end of the last part that was captured."""

    async def route(self, begun: StartedPart) -> Inquiry | CaptureJob | Ignored | Outcome:
        """Decide about one part.

        Raises:
            LookupFailed: Discord could not be asked for what the decision needs; never taken for "no reply".
        """
        part = begun.part
        target = await self._target(part)
        if part.author_type is AuthorType.TEAM_MEMBER:
            if await self._teaches(part, target):
                return self._capture_job(begun, target)
            return not_addressed(part)
        return await self._for_community(begun, target)

    def _capture_job(self, begun: StartedPart, target: Message | None) -> CaptureJob:
        part = begun.part
        if part.place.is_thread:
            return CaptureJob(part, target, begun.token)
        goes_on = None if target is not None else self._captured.get(part.key)
        self._captured[part.key] = part.last
        self._captured.move_to_end(part.key)
        if len(self._captured) > REMEMBERED:
            self._captured.popitem(last=False)
        return CaptureJob(part, target, begun.token, None if goes_on is None else goes_on.id)

    async def _target(self, part: Part) -> Message | None:
        """The first message that the part replies to, of those that still exist; None where there is none.

        A part may reply to several messages of one person.
        """
        for message in part.messages:
            reference = message.reply_to
            if reference is not None and not reference.gone:
                target = await self._history.message(reference.channel_id, reference.message_id)
                if target is not None:
                    return target
        return None

    async def _for_community(self, begun: StartedPart, target: Message | None) -> Inquiry | Ignored | Outcome:
        part = begun.part
        if await self._answered_before(part):
            return Ignored(Reason.DUPLICATE, part.place.id, part.message_ids, part.number)
        addressed = self._addresses_bot(part, target)
        inquiry = Inquiry(part, begun.token, addressed, Usage(self._usage), decisions={})
        if part.place.is_thread:
            if not addressed and not await self._thread_is_ours(part):
                return not_addressed(part)
        elif not addressed and target is not None and target.author.id != part.author.id:
            return not_addressed(part)
        mode = self._rules.reply_mode_by_channel.get(part.place.channel_id, self._rules.reply_mode)
        if mode == "off" or (mode == "mention" and not addressed):
            return skipped(inquiry, Reason.REPLY_MODE)
        # What is called off already ends as cancelled, for the reason that came first.
        if not addressed and begun.token.error is None and await self._team_is_answering(part):
            return skipped(inquiry, Reason.TEAM_IS_ANSWERING)
        return inquiry

    async def _answered_before(self, part: Part) -> bool:
        """Whether an earlier run has answered what catch-up brings: its post is there, noted down or not."""
        last = part.last
        if self._posts.answered(last.id):
            return True
        if not self._history.is_from_before(last.id):
            return False
        if part.place.is_thread:
            later = await self._history.newest(part.place.id, THREAD_MESSAGES)
            return any(
                m.reply_to and m.reply_to.message_id == last.id and self._people.is_bot_itself(m.author) for m in later
            )
        # The thread on the question, or the one that the asker was answered in before.
        for thread_id in (last.id, self._posts.opened_for(part.place.id, part.author.id)):
            post = None if thread_id is None else await self._unnoted_post(part, thread_id)
            if post is not None:
                await self._posts.add(found_again(part, post))  # or the asker's next question would take it for its own
                return True
        return any(map(self._is_post, await self._history.newest(last.id, THREAD_MESSAGES)))

    async def _unnoted_post(self, part: Part, thread_id: int) -> Message | None:
        """The end of an answer that stands in a thread, replies to nothing there, and was never taken note of.

        An asker's questions in a channel are answered one after another: the first that has no end is the one that the
        bot was answering when it was killed.
        """
        after = max(part.last.id, self._posts.newest_in(thread_id))
        own = [
            message
            for message in await self._history.newest(thread_id, THREAD_MESSAGES)
            if message.id > after and message.reply_to is None and self._is_post(message)
        ]
        return own[-1] if own else None

    def _is_post(self, message: Message) -> bool:
        """Whether the bot said it. Discord's word that the bot has opened a thread is no answer yet."""
        return self._people.is_bot_itself(message.author) and not message.is_system

    def _addresses_bot(self, part: Part, target: Message | None) -> bool:
        bot_id = self._people.bot_id
        mentioned = any(user_id == bot_id for message in part.messages for user_id, _ in message.mentions)
        return mentioned or (target is not None and target.author.id == bot_id)

    async def _thread_is_ours(self, part: Part) -> bool:
        place = part.place
        if place.owner_id == self._people.bot_id or self._posts.in_thread(place.id):
            return True
        if any(self._people.is_bot_itself(message.author) for message in self._history.recent(place.id)):
            return True
        if place.kind is not PlaceKind.FORUM_POST or place.owner_id != part.author.id:
            return False
        return not await self._team_has_posted(part, after=0)

    async def _team_is_answering(self, part: Part) -> bool:
        first = part.messages[0]
        if part.place.is_thread:
            earlier = await self._history.newest(part.place.id, THREAD_MESSAGES)
            own = [message.id for message in earlier if message.author.id == part.author.id and message.id < first.id]
            return await self._team_has_posted(part, after=max(own, default=0))
        since = first.at - self._rules.team_active_seconds
        return self._team.helped(part.place.id, part.author.id, since, first.at)

    async def _team_has_posted(self, part: Part, *, after: int) -> bool:
        """Whether a team member has posted in the part's thread, after a message of it."""
        for message in await self._history.newest(part.place.id, THREAD_MESSAGES):
            if message.id > after and not message.is_system:
                kind = await self._people.look_up(message.author, part.place.guild_id)
                if kind is AuthorType.TEAM_MEMBER:
                    return True
        return False

    async def _teaches(self, part: Part, target: Message | None) -> bool:
        place = part.place
        if not self._may_capture(place) or (target and not self._may_capture(self._history.place(target.channel_id))):
            return False
        kind = None if target is None else await self._people.look_up(target.author, place.guild_id)
        if kind is AuthorType.COMMUNITY_USER:
            return True
        if place.is_thread:
            return kind is not AuthorType.TEAM_MEMBER and await self._community_has_posted(part)
        return target is None and self._continues(part)

    def _may_capture(self, place: Place) -> bool:
        """Private talk must not become public knowledge."""
        return place.public or not self._rules.capture_channels.isdisjoint({place.id, place.channel_id})

    async def _community_has_posted(self, part: Part) -> bool:
        for message in await self._history.newest(part.place.id, THREAD_MESSAGES):
            if not message.is_system:
                kind = await self._people.look_up(message.author, part.place.guild_id)
                if kind is AuthorType.COMMUNITY_USER:
                    return True
        starter = await self._history.starter(part.place)
        return starter is not None and (
            await self._people.look_up(starter.author, part.place.guild_id) is AuthorType.COMMUNITY_USER
        )

    def _continues(self, part: Part) -> bool:
        """Whether a part without a reply goes on with what the same team member was just captured saying."""
        captured = self._captured.get(part.key)
        if not self._rules.capture_continuations or captured is None:
            return False
        first = part.messages[0]
        fresh = first.at - captured.at < self._rules.grouping_seconds
        return fresh and not self._team.written_to(part.place.id, part.author.id, captured.at, first.at)


def found_again(part: Part, post: Message) -> Post:
    """The note of a post that was made, and not taken note of."""
    return Post(
        at=post.at,
        message_id=post.id,
        place_id=post.channel_id,
        asked_in=part.place.id,
        asker_id=part.author.id,
        last_asked_id=part.last.id,
        opened_thread=True,
        question="",
        sources=(),
    )


def not_addressed(part: Part) -> Ignored:
    return Ignored(Reason.NOT_ADDRESSED, part.messages[0].channel_id, part.message_ids, part.number)
