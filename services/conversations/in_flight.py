"""Messages and parts that have no outcome yet, and the events that cancel them; and other work with people's texts,
which stops when one of them opts out or asks to be forgotten.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

from clock.cancellation import CancelToken
from model.events import Deleted
from model.messages import AuthorType, Key, Message, Part
from model.outcomes import Ignored, Outcome, Reason, Result


class Withdrawn(Exception):
    """Raised by work with the texts of somebody who has opted out, or asks to be forgotten: `user_id`; None: the
    `message_ids` were deleted or edited.
    """

    def __init__(self, user_id: int | None, message_ids: frozenset[int] = frozenset()) -> None:
        super().__init__("somebody whose texts it works with has withdrawn them, or a message of them")
        self.user_id = user_id
        self.message_ids = message_ids


class PersonalWork:
    """Knows with whose texts each running task works, and stops the tasks that work with those of one person."""

    def __init__(self) -> None:
        self._handled: dict[CancelToken, tuple[Collection[int], Collection[int]]] = {}  # with people and messages
        self._being_forgotten = Counter[int]()

    @contextmanager
    def handling(
        self, people: Collection[int], messages: Collection[int] = (), *, archived: bool = False
    ) -> Generator[CancelToken]:
        """Stop the block with `Withdrawn` when one of `people` withdraws their texts, or one of `messages` (ids) is
        deleted or edited. More may be added to both meanwhile. After the `commit` of the token that is given, the block
        is not stopped any more.

        `archived`: the texts are from the archive. They stay there while their writer is being forgotten, so the block
        does not even begin then.
        """
        if archived:
            self._refuse(people)
        token, task = CancelToken(), asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 (for the type checker)
        token.attach(task.cancel)
        self._handled[token] = people, messages
        try:
            yield token
        except asyncio.CancelledError:
            if token.error is None or task.uncancel():
                raise  # somebody else has cancelled the task
            raise token.error from None
        else:
            if token.error is not None:  # what the block awaited has lost the cancellation
                task.uncancel()
                raise token.error
        finally:
            del self._handled[token]

    def withdraw(self, user_id: int) -> None:
        """Stop what works with the texts of a person."""
        for token in [token for token, (people, _) in self._handled.items() if user_id in people]:
            token.cancel(Withdrawn(user_id))

    def withdraw_messages(self, message_ids: Iterable[int]) -> None:
        """Stop what works with messages that were deleted or edited."""
        gone = frozenset(message_ids)
        found = [(token, gone.intersection(messages)) for token, (_, messages) in self._handled.items()]
        for token, withdrawn in found:
            if withdrawn:
                token.cancel(Withdrawn(None, withdrawn))

    @contextmanager
    def forgetting(self, user_id: int) -> Generator[None]:
        """Do what `withdraw` does. Until the block ends, no work begins with the person's texts in the archive."""
        self._being_forgotten[user_id] += 1
        self.withdraw(user_id)
        try:
            yield
        finally:
            self._being_forgotten[user_id] -= 1
            self._being_forgotten += Counter[int]()  # drops zeros

    def _refuse(self, people: Collection[int]) -> None:
        for user_id in people:
            if self._being_forgotten[user_id]:
                raise Withdrawn(user_id)


class WorkCancelled(Exception):
    """Raised by a cancelled part: the answer is no longer needed. `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class _HeldMessage:
    message: Message
    author_type: AuthorType
    error: WorkCancelled | None = None  # it was cancelled before its window closed
    token: CancelToken | None = None  # of its part, once there is one
    thread_id: int | None = None  # the thread in which any post of a team member makes the answer unnecessary


class InFlight:
    """Holds every message from its arrival until its outcome; one that a draft answers, until the draft has ended. It
    is told of each deletion and each post of a team member once, and cancels the tokens of the parts that they concern.
    The branches look at these tokens only. `work`: other running work with people's texts.
    """

    def __init__(self) -> None:
        self.work = PersonalWork()
        self._held: dict[int, _HeldMessage] = {}
        self._in_threads: dict[int, set[int]] = {}  # community users' messages by thread
        self._tokens: dict[int, CancelToken] = {}
        self._drafted: set[int] = set()  # the messages of drafts
        self._stopping = False

    def __len__(self) -> int:
        return len(self._held) - len(self._drafted)

    def hold(self, message: Message, author_type: AuthorType, *, in_thread: bool) -> None:
        if message.id in self._drafted:
            return  # catch-up has read it again
        self._held[message.id] = _HeldMessage(message, author_type)
        if in_thread and author_type is AuthorType.COMMUNITY_USER:
            self._move(message.id, message.channel_id)

    def waiting_key(self, message_id: int) -> Key | None:
        """Return the key of the window in which a message still waits; None if it waits in none."""
        held = self._held.get(message_id)
        if held is None or held.token is not None:
            return None
        return Key(held.message.channel_id, held.message.author.id)

    def begin(self, part: Part) -> None:
        """Register a part. It is cancelled at once if one of its messages was cancelled while it waited."""
        for message_id in part.message_ids:
            held = self._held.get(message_id)
            if held is not None and message_id not in self._drafted:
                held.token = part.token
                if held.error is not None:
                    part.token.cancel(held.error)
        if self._stopping:
            part.token.cancel(WorkCancelled(Reason.SHUTDOWN))
        self._tokens[part.number] = part.token

    def hold_for_draft(self, part: Part, reply_place_id: int) -> CancelToken:
        """Hold the messages of a part beyond its outcome, until that of its draft. Returns the token that is cancelled
        by what makes the answer unnecessary. A shutdown does not cancel it.
        """
        token = CancelToken()
        for message in part.messages:
            if message.id not in self._held:
                self.hold(message, part.author_type, in_thread=part.place.is_thread)
            self._held[message.id].token = token
            self._drafted.add(message.id)
        self.move_to(part, reply_place_id)
        return token

    def end_hold_for_draft(self, part: Part) -> None:
        """Undo `hold_for_draft`: the messages are held until the next outcome."""
        self._drafted.difference_update(part.message_ids)

    def move_to(self, part: Part, thread_id: int) -> None:
        """Note that a part from a channel will be answered in this thread, so that posts there can cancel it."""
        for message_id in part.message_ids:
            self._move(message_id, thread_id)

    def cancel_deleted(self, event: Deleted) -> None:
        """Cancel the answers to deleted messages, and begin those again that are made with them. Messages that still
        wait are removed from their window elsewhere.
        """
        for message_id in event.message_ids:
            self._cancel(message_id, Reason.DELETED)
        self.work.withdraw_messages(event.message_ids)

    def cancel_answered(self, message: Message, conversation: Iterable[int]) -> None:
        """Cancel the answers that a team member's message makes unnecessary: to the message it replies to, to questions
        in its thread, and to the `conversation` (message ids) that it continues. Messages newer than it, which
        catch-up may bring first, are not cancelled.
        """
        if message.reply_to is not None:
            self._cancel(message.reply_to.message_id, Reason.TEAM_ANSWERED)
        # A thread has the id of the message that it was opened on.
        there = (message.channel_id, *self._in_threads.get(message.channel_id, ()))
        for message_id in (*there, *conversation):
            if message_id < message.id:
                self._cancel(message_id, Reason.TEAM_ANSWERED)

    def withdraw(self, author_id: int) -> None:
        """Cancel what a person waits for, and other work with their texts: they opted out, or asked to be forgotten."""
        self._cancel_all(author_id)
        self.work.withdraw(author_id)

    @contextmanager
    def forgetting(self, author_id: int) -> Generator[None]:
        """Do what `withdraw` does. Until the block ends, no work begins with the person's texts in the archive."""
        self._cancel_all(author_id)
        with self.work.forgetting(author_id):
            yield

    def release(self, end: Result) -> None:
        match end:
            case Outcome(part=part):
                if end.ends_draft:
                    self.end_hold_for_draft(part)
                self._drop(part.message_ids, part.number)
            case Ignored(message_ids=message_ids, part_number=part_number):
                self._drop(message_ids, part_number)
            case _:
                self._drop((end.message_id,))

    def stop(self) -> None:
        """Cancel every part, including those still to come: the grace period is over."""
        self._stopping = True
        for token in tuple(self._tokens.values()):
            token.cancel(WorkCancelled(Reason.SHUTDOWN))

    def _cancel_all(self, author_id: int) -> None:
        for message_id in [i for i, held in self._held.items() if held.message.author.id == author_id]:
            self._cancel(message_id, Reason.DELETED)

    def _cancel(self, message_id: int, reason: Reason) -> None:
        held = self._held.get(message_id)
        if held is None or held.author_type is not AuthorType.COMMUNITY_USER:
            return
        if held.token is not None:
            held.token.cancel(WorkCancelled(reason))
        else:
            held.error = held.error or WorkCancelled(reason)

    def _drop(self, message_ids: Iterable[int], part_number: int | None = None) -> None:
        for message_id in message_ids:
            if message_id not in self._drafted:
                self._move(message_id, None)
                self._held.pop(message_id, None)
        token = None if part_number is None else self._tokens.pop(part_number, None)
        if token is not None:
            token.close()

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
