"""Work with people's texts, which stops when one of them opts out or asks to be forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Generator
from contextlib import contextmanager

from clock.cancellation import CancelToken


class Withdrawn(Exception):
    """Raised by work with the texts of somebody who has opted out, or asks to be forgotten: `user_id`."""

    def __init__(self, user_id: int) -> None:
        super().__init__("somebody whose texts it works with has opted out, or asks to be forgotten")
        self.user_id = user_id


class PersonalWork:
    """Knows with whose texts each running task works, and stops the tasks that work with those of one person."""

    def __init__(self) -> None:
        self._handled: dict[CancelToken, Collection[int]] = {}
        self._being_forgotten = Counter[int]()

    @contextmanager
    def handling(self, people: Collection[int], *, archived: bool = False) -> Generator[CancelToken]:
        """Stop the block with `Withdrawn` when one of `people` withdraws their texts. More people may be added to the
        collection meanwhile. After the `commit` of the token that is given, the block is not stopped any more.

        `archived`: the texts are from the archive. They stay there while their writer is being forgotten, so the block
        does not even begin then.
        """
        if archived:
            self._refuse(people)
        token, task = CancelToken(), asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 (for the type checker)
        token.attach(task.cancel)
        self._handled[token] = people
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
        for token in [token for token, people in self._handled.items() if user_id in people]:
            token.cancel(Withdrawn(user_id))

    @contextmanager
    def forgetting(self, user_id: int) -> Generator[None]:
        """Stop what works with the texts of a person. During the block nothing begins that works with those in the
        archive.
        """
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
