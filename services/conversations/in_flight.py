"""The messages and parts that have no end yet, and what may call them off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clock.cancel_token import CancelToken
from model.batches import Key, Part
from model.events import Deleted
from model.messages import AuthorType, Message
from model.outcomes import Ignored, Outcome, Reason, Result


class CalledOff(Exception):
    """Nobody wants the answer any more."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class _Held:
    message: Message
    author_type: AuthorType
    error: CalledOff | None = None
    """Called off before its window closed."""
    token: CancelToken | None = None
    """Its part's, once there is one."""
    thread_id: int | None = None
    """Where team members make an answer needless by posting at all."""


class InFlight:
    """Every message between its arrival and its end.

    Deletions and team members' posts are told to it once each; it finds the parts they concern. What the branches
    know of a part's fate, they know through its token.
    """

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._in_threads: dict[int, set[int]] = {}
        """Community users' messages by thread."""
        self._tokens: dict[int, CancelToken] = {}
        self._stopping = False

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, message: Message, author_type: AuthorType, *, in_thread: bool) -> None:
        self._held[message.id] = _Held(message, author_type)
        if in_thread and author_type is AuthorType.COMMUNITY_USER:
            self._move(message.id, message.channel_id)

    def waiting_key(self, message_id: int) -> Key | None:
        """The window in which a message still waits."""
        held = self._held.get(message_id)
        if held is None or held.token is not None:
            return None
        return Key(held.message.channel_id, held.message.author.id)

    def begin(self, part: Part) -> CancelToken:
        """The part's token, already cancelled where one of its messages was called off while waiting."""
        token = CancelToken()
        for message_id in part.message_ids:
            held = self._held.get(message_id)
            if held is not None:
                held.token = token
                if held.error is not None:
                    token.cancel(held.error)
        if self._stopping:
            token.cancel(CalledOff(Reason.SHUTDOWN))
        self._tokens[part.number] = token
        return token

    def reply_in(self, part: Part, thread_id: int) -> None:
        """A part from a channel is going to be answered in this thread, which makes it the part's own."""
        for message_id in part.message_ids:
            self._move(message_id, thread_id)

    def deleted(self, event: Deleted) -> None:
        """Call off the answers to deleted messages; those still waiting are the window's affair."""
        for message_id in event.message_ids:
            self._call_off(message_id, Reason.DELETED)

    def team_posted(self, message: Message) -> None:
        """A team member replied to a message in hand, or posted in its thread."""
        if message.reply_to is not None:
            self._call_off(message.reply_to.message_id, Reason.TEAM_ANSWERED)
        # A thread has the id of the message that it was opened on.
        self._call_off(message.channel_id, Reason.TEAM_ANSWERED)
        for message_id in tuple(self._in_threads.get(message.channel_id, ())):
            self._call_off(message_id, Reason.TEAM_ANSWERED)

    def withdraw(self, author_id: int) -> None:
        """Call off what a person is waiting for: they want nothing of theirs looked at any more."""
        for message_id in [i for i, held in self._held.items() if held.message.author.id == author_id]:
            self._call_off(message_id, Reason.DELETED)

    def settle(self, end: Result) -> None:
        """The messages have their end."""
        if isinstance(end, Outcome):
            self._release(end.part.message_ids)
            self._drop_token(end.part.number)
        elif isinstance(end, Ignored):
            self._release(end.message_ids)
            if end.part_number is not None:
                self._drop_token(end.part_number)
        else:
            self._release((end.message_id,))

    def stop(self) -> None:
        """Call off every part, those still to come included: the grace period is over."""
        self._stopping = True
        for token in tuple(self._tokens.values()):
            token.cancel(CalledOff(Reason.SHUTDOWN))

    def _call_off(self, message_id: int, reason: Reason) -> None:
        held = self._held.get(message_id)
        if held is None or held.author_type is not AuthorType.COMMUNITY_USER:
            return
        error = CalledOff(reason)
        if held.token is not None:
            held.token.cancel(error)
        elif held.error is None:
            held.error = error

    def _release(self, message_ids: Iterable[int]) -> None:
        for message_id in message_ids:
            self._move(message_id, None)
            self._held.pop(message_id, None)

    def _move(self, message_id: int, thread_id: int | None) -> None:
        held = self._held.get(message_id)
        if held is None:
            return
        if held.thread_id is not None:
            there = self._in_threads[held.thread_id]
            there.discard(message_id)
            if not there:
                del self._in_threads[held.thread_id]
        held.thread_id = thread_id
        if thread_id is not None:
            self._in_threads.setdefault(thread_id, set()).add(message_id)

    def _drop_token(self, number: int) -> None:
        token = self._tokens.pop(number, None)
        if token is not None:
            token.close()
