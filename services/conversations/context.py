"""Collects the messages of a conversation, and turns them into what a model reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from model.conversations import REPLY, THREAD, Conversation, Image, Role, Turn, seconds_to_answer
from model.events import Edited
from model.messages import Author, AuthorType, Message, Part, Place, Reference, snowflake_at
from services.conversations.history import History, is_private
from services.conversations.people import People
from services.conversations.tracking import ConversationTracker
from services.discord import render
from services.storage import in_thread

THREAD_MESSAGES = 200  # how much of a thread is read, newest first
_AT_ONCE_CHARS = 20_000
"""Secrets in texts of this length are removed on the event loop, in some milliseconds; longer ones in a thread."""


@dataclass(frozen=True, slots=True)
class ContextRules:
    reply_chain_max_depth: int = 20
    grouping_seconds: float = 300.0
    withheld: Callable[[Message], bool] | None = None  # messages of people who opted out: no LLM sees them
    redact: Callable[[str], str] | None = None  # removes secrets from a text


class Context:
    """Collects the messages of conversations. Methods that may ask Discord raise `LookupFailed`."""

    def __init__(self, history: History, people: People, tracker: ConversationTracker, rules: ContextRules) -> None:
        self._history = history
        self._people = people
        self._tracker = tracker
        self._rules = rules

    async def thread(self, place: Place) -> Sequence[Message]:
        """Return a thread's newest messages, its starter, and what these reply to elsewhere; in order of id."""
        messages = [*await self._history.newest(place.id, THREAD_MESSAGES), await self._history.starter(place)]
        found = {message.id: message for message in messages if message is not None}
        replies = [message.reply_to for message in found.values() if message.reply_to is not None]
        await self._walk([reply for reply in replies if reply.channel_id != place.id], found)
        return self.readable(found)

    async def read_from(self, place: Place) -> int:
        """Return the id of the oldest message of a thread that `thread` reads; 0: it reads all, or it is a channel."""
        newest = await self._history.newest(place.id, THREAD_MESSAGES) if place.is_thread else ()
        return newest[0].id if len(newest) == THREAD_MESSAGES else 0

    async def replies(self, messages: Iterable[Message]) -> Sequence[Message]:
        """Return these messages, the known ones of their conversations here, and the chains they reply to; by id."""
        found = {message.id: message for message in messages}
        # As a rule one: a part is of one conversation in one place.
        conversations = {(self._tracker.conversation_of(each.id), each.channel_id): None for each in found.values()}
        for conversation_id, place_id in conversations:
            for message_id in self._tracker.messages_of(conversation_id, place_id):
                if message_id not in found:
                    followed = await self._history.message(place_id, message_id)
                    if followed is not None:
                        found[message_id] = followed
        await self._walk([message.reply_to for message in found.values() if message.reply_to], found)
        return self.readable(found)

    async def messages_to_capture(self, part: Part) -> tuple[str, Sequence[Message]]:
        """Return the id of a team member's conversation (see `KINDS`), and its messages to capture, in order of id.

        Messages known to be of another conversation are left out, and so are private messages if the part is public.
        The part is as it was when its window closed: later edits have no effect. A community user's text is as it was
        when the team began to answer (`seconds_to_answer`), so that no edit can change the question above the answer.
        If it was edited later, and its earlier text is not known, it is empty.
        """
        place, conversation_id = part.place, self._tracker.conversation_of(part.last.id)
        kind = self._tracker.kind_of(part.last.id)
        if kind.opening:
            return kind.make_id(part.last.id), part.messages
        around = await self.thread(place) if place.is_thread else await self.replies(part.messages)
        messages = {
            each.id: each
            for each in around
            if self._tracker.conversation_of(each.id) in {None, conversation_id}
            and (self._history.place(each.channel_id).public or not place.public)
        }
        messages |= {each.id: each for each in part.messages}
        whole = await self._as_answered([messages[message_id] for message_id in sorted(messages)])
        if kind is THREAD or (place.is_thread and conversation_id is None):
            return THREAD.make_id(place.id), whole
        first = part.messages[0].id if conversation_id is None else conversation_id
        while first in messages and (reply := messages[first].reply_to) is not None and reply.message_id in messages:
            if reply.message_id >= first:  # an answer cannot be older than its question; this rules out endless loops
                break
            first = reply.message_id
        return REPLY.make_id(first), whole

    async def _as_answered(self, messages: Sequence[Message]) -> Sequence[Message]:
        found: list[Message] = []
        answer: Message | None = None
        for message in reversed(messages):
            kind, read = await self.author_type(message), message
            if kind is AuthorType.TEAM_MEMBER:
                answer = message
            elif kind is AuthorType.COMMUNITY_USER and answer is not None:
                read = self._history.version_at(message, snowflake_at(answer.at - seconds_to_answer(answer.text)))
            if read is None:
                read = replace(message, text="", attachments=())
            elif read is not message:
                read = replace(read, edited_at=message.edited_at)
            if read is message or self.may_be_read(read):  # it may have been withheld then
                found.append(read)
        return found[::-1]

    def threads_of(self, channel_id: int) -> Sequence[int]:
        """As `History.threads_of`."""
        return self._history.threads_of(channel_id)

    async def quotable(
        self, channel_id: int, place_id: int, message_ids: Iterable[int], allowed: Collection[int]
    ) -> Sequence[Message] | None:
        """Return messages as they are on Discord now; None: not everybody may be told what they say, as one is gone or
        withheld, or their place is none whose conversations are captured. `allowed`: as in `is_private`.
        """
        if self._history.is_unlisted(channel_id):
            return None
        await self._history.find_place(place_id)  # such as an archived thread
        if is_private(self._history.place(place_id), allowed):
            return None
        found = {each: await self._history.message_now(place_id, each) for each in message_ids}
        there = [message for message in found.values() if message is not None]
        withheld = self._rules.withheld
        is_whole = len(there) == len(found) and not (withheld and any(map(withheld, there)))
        return there if is_whole else None

    async def written_by_users(self, place_id: int, low: int, high: int) -> Mapping[int, int] | None:
        """Return the authors of what community users wrote in a place, by message, from `low` up to `high`, also of
        what was deleted or is withheld; 0: unknown, or another bot. None: not all of it is known.
        """
        found = self._tracker.written_by_users(place_id, low, high, self._people.bot_id)
        if found is None or self._tracker.conversation_of(high) is None:
            return None
        if not self._history.is_from_before(low):
            return found
        earlier = await self._history.since(place_id, low)
        if earlier is None:
            return None
        types = {each.id: await self.author_type(each) for each in earlier if each.id < high and not each.is_system}
        users = {
            each.id: 0 if each.author.is_bot else each.author.id
            for each in earlier
            if types.get(each.id, AuthorType.TEAM_MEMBER) is not AuthorType.TEAM_MEMBER
            and not self._people.is_bot_itself(each.author)
        }
        deleted = self._history.deleted_between(place_id, low, high)
        return dict.fromkeys(deleted, 0) | found | users

    async def _walk(self, references: Iterable[Reference], found: dict[int, Message]) -> None:
        """Follow replies from message to message and add each message to `found` once. A message from before the start
        is added together with its author's adjacent ones.
        """
        ahead = deque((reference, 1) for reference in references)
        while ahead:
            reference, depth = ahead.popleft()
            if reference.gone or depth > self._rules.reply_chain_max_depth or reference.message_id in found:
                continue
            message = await self._history.message(reference.channel_id, reference.message_id)
            if message is None:
                continue
            known = self._tracker.conversation_of(message.id) is not None
            run = [message] if known else await self._history.adjacent_messages(message, self._rules.grouping_seconds)
            for adjacent in run:
                if adjacent.id not in found:
                    found[adjacent.id] = adjacent
                    if adjacent.reply_to is not None:
                        ahead.append((adjacent.reply_to, depth + 1))

    def readable(self, found: dict[int, Message]) -> Sequence[Message]:
        """Return those of the messages, by id, that may be read, in order of id."""
        return [message for _, message in sorted(found.items()) if self.may_be_read(message)]

    def may_be_read(self, message: Message) -> bool:
        """Return False for messages of Discord itself, and for what nobody may read (any more)."""
        withheld = self._rules.withheld
        return not message.is_system and not (withheld is not None and withheld(message))

    async def author_type(self, message: Message) -> AuthorType:
        return await self._people.look_up(message.author, message.guild_id, self._history.guild_of(message))

    def text_of(self, message: Message) -> str:
        """Return the text of a message: trimmed, with names for mentions, placeholders for files, and no secrets. That
        of the first message of a forum post begins with the title of the post, unless it says that itself.
        """
        text = render(message, self._history.names).removeprefix(self._tracker.kind_of(message.id).opening)
        title = " ".join(self._history.title_of(message).split())
        if title.casefold() not in text.casefold():
            text = f"{title}\n{text}".strip()
        return text if self._rules.redact is None else self._rules.redact(text)

    def title_above(self, message: Message) -> str:
        """Return the name of a message's thread or forum post, unless its text has that (`text_of`), or the thread was
        opened by the team or the bot, which names it after a question.
        """
        place = self._history.place(message.channel_id)
        if not place.is_thread or place.owner_id == self._people.bot_id or self._history.title_of(message):
            return ""
        by_team = place.owner_id is not None and self._people.is_team(Author(place.owner_id, ""), place.guild_id)
        return "" if by_team else place.name

    def after_edit(self, edit: Edited) -> Message | None:
        """Return a message after an edit; None: it is unknown, or nothing of it may be captured."""
        message = self._history.in_memory(edit.channel_id, edit.message_id)
        if message is None and edit.text is not None:
            files = edit.attachments or ()
            author = Author(edit.author_id, "")
            message = Message(edit.message_id, edit.channel_id, author, edit.text, edit.at, attachments=files)
        withheld = self._rules.withheld
        return None if message is None or message.is_empty or (withheld and withheld(message)) else message

    async def conversation(
        self, messages: Iterable[Message], asked: frozenset[int], images: dict[int, tuple[Image, ...]]
    ) -> Conversation:
        """Build the turns that a model sees, without messages of other bots. `asked`: ids of the messages to answer.
        `images`: those that are shown, by message, for each message whose images may be shown.
        """
        turns: list[Turn] = []
        messages = list(messages)
        asker_ids = {message.author.id for message in messages if message.id in asked}
        types = {message.id: await self.author_type(message) for message in messages}
        users = {each.id: each.author.id for each in messages if types[each.id] is AuthorType.COMMUNITY_USER}
        if sum(len(message.text) for message in messages) <= _AT_ONCE_CHARS:
            texts = list(map(self.text_of, messages))
        else:
            texts = await in_thread(lambda: list(map(self.text_of, messages)))
        for message, text in zip(messages, texts, strict=True):
            kind = types[message.id]
            replied_to = {users.get(message.reply_to.message_id)} if message.reply_to else set(users.values())
            if not text or (kind is AuthorType.BOT and not self._people.is_bot_itself(message.author)):
                continue
            shown = images.get(message.id, ())
            posted = sum(each.is_image for each in message.attachments) if message.id in images else 0
            turns.append(
                Turn(
                    role=Role.USER if kind is AuthorType.COMMUNITY_USER else Role.ASSISTANT,
                    text=text,
                    images=shown,
                    unseen_images=posted - len(shown),
                    from_team=kind is AuthorType.TEAM_MEMBER,
                    asked_now=message.id in asked,
                    by_asker=message.author.id in asker_ids,
                    maybe_to_others=kind is AuthorType.TEAM_MEMBER and not asker_ids.issuperset(replied_to),
                    message_id=message.id,
                )
            )
        return Conversation(tuple(turns))
