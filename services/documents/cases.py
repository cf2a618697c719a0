"""The files that are being read, by thread, and what calls them off."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from clock.cancellation import CancelToken
from services.documents.posted import Candidate
from services.documents.store.shared import SharedNotes
from services.documents.tombstones import Tombstones

REMEMBERED = 5_000  # threads whose files are remembered; the oldest are looked up in the store again


class CaseClosed(Exception):
    """The thread of a file has been closed, or the file was taken back."""


@dataclass(frozen=True, slots=True)
class IngestJob:
    """A file on its way into its thread's collection."""

    candidate: Candidate
    token: CancelToken

    @property
    def case_id(self) -> int:
        return self.candidate.case_id


@dataclass(slots=True)
class _Case:
    """A thread. `seen`: its files, with their messages. `open`: those neither searchable nor failed yet. `changed`:
    made by whoever waits, since most threads are never waited for.
    """

    seen: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    open: dict[tuple[int, str], IngestJob] = field(default_factory=dict[tuple[int, str], IngestJob])
    changed: asyncio.Event | None = None


class ThreadFiles:
    """Every file from its message until it can be searched, and which threads have files at all.

    Attributes:
        gone: files that must not be read again.
    """

    def __init__(self, with_files: Iterable[int] = (), gone: Tombstones | None = None) -> None:
        """`with_files`: the threads that have collections at the start."""
        self.gone = Tombstones() if gone is None else gone
        self._cases: OrderedDict[int, _Case] = OrderedDict()
        self._with_files = set(with_files)

    async def share(self, notes: SharedNotes) -> None:
        """Know of the files that any process has had removed, and stop reading them. Raises StoreUnavailable."""
        await self.gone.share(notes, lambda: self.take_back(self.gone.holds))

    def __iter__(self) -> Iterator[int]:
        """The threads that have files."""
        return iter(sorted(self._with_files))

    def has_files(self, case_id: int) -> bool:
        return case_id in self._with_files

    def know(self, case_id: int) -> None:
        """The thread has a collection."""
        self._with_files.add(case_id)

    def forget(self, case_id: int) -> None:
        """Another process has deleted the thread's collection; what is being read here goes into a new one."""
        case = self._cases.get(case_id)
        if case is None or not case.open:
            self._with_files.discard(case_id)

    def begin(self, candidate: Candidate) -> IngestJob | None:
        """Start a file; None: it is known already, or was removed."""
        if self.gone.holds(candidate):
            return None
        case = self._cases.setdefault(candidate.case_id, _Case())
        self._cases.move_to_end(candidate.case_id)
        if candidate.key in case.seen:
            return None
        job = IngestJob(candidate, CancelToken())
        case.seen[candidate.key] = candidate.message_id
        case.open[candidate.key] = job
        self._with_files.add(candidate.case_id)
        while len(self._cases) > REMEMBERED:
            oldest = next((case_id for case_id, each in self._cases.items() if not each.open), None)
            if oldest is None:
                break
            del self._cases[oldest]
        return job

    def settle(self, job: IngestJob) -> None:
        """A file can be searched now, or never will be."""
        case = self._cases.get(job.case_id)
        if case is not None and case.open.get(job.candidate.key) is job:
            del case.open[job.candidate.key]
            if case.changed is not None:
                case.changed.set()
                case.changed = None
            self._forget_closed(job.case_id, case)

    def unread(self, case_id: int) -> list[Candidate]:
        """The files that cannot be searched yet."""
        case = self._cases.get(case_id)
        return [] if case is None else [job.candidate for job in case.open.values()]

    async def wait(self, case_id: int, seconds: float) -> bool:
        """Wait until all files of a thread can be searched; whether they can."""
        try:
            async with asyncio.timeout(seconds):
                while (case := self._cases.get(case_id)) is not None and case.open:
                    case.changed = case.changed or asyncio.Event()
                    await case.changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self, case_id: int) -> None:
        """Call off the files of a thread that are being read. Files that come later are new ones."""
        case = self._cases.get(case_id)
        if case is not None:
            case.seen.clear()
            for job in case.open.values():
                job.token.cancel(CaseClosed("the thread was closed"))
            self._forget_closed(case_id, case)
        self._with_files.discard(case_id)

    def _forget_closed(self, case_id: int, case: _Case) -> None:
        """A thread that was closed is not remembered once none of its files is being read."""
        if not case.seen and not case.open:
            del self._cases[case_id]

    def with_files_of(self, message_ids: Iterable[int]) -> set[int]:
        """The threads that files of these messages went to, as far as they are remembered."""
        gone = frozenset(message_ids)
        return {case_id for case_id, case in self._cases.items() if not gone.isdisjoint(case.seen.values())}

    def take_back(self, gone: Callable[[Candidate], bool]) -> set[int]:
        """Call off the files of which `gone` is true; gives their threads."""
        meant = [job for case in self._cases.values() for job in case.open.values() if gone(job.candidate)]
        for job in meant:
            job.token.cancel(CaseClosed("the file was taken back"))
        return {job.case_id for job in meant}
