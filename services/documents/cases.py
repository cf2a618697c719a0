"""The files under way, by the thread that they belong to, and what may call them off."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from clock.cancel_token import CancelToken
from services.documents.candidates import Candidate
from services.documents.tombstones import Tombstones

REMEMBERED = 5_000
"""Threads whose files are remembered; those of longest ago are forgotten first, and looked up in the store again."""


class CaseClosed(Exception):
    """The thread of a file has been closed, or the file was taken back."""


@dataclass(frozen=True, slots=True)
class IngestJob:
    """A file on its way into its thread's collection."""

    candidate: Candidate
    token: CancelToken


@dataclass(slots=True)
class _Case:
    seen: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    """The files, with their messages."""
    open: dict[tuple[int, str], IngestJob] = field(default_factory=dict[tuple[int, str], IngestJob])
    """Neither searchable nor failed yet."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Cases:
    """Every file between its offer and the moment when it can be searched, and which threads have files at all."""

    def __init__(self, with_files: Iterable[int] = (), gone: Tombstones | None = None) -> None:
        """`with_files`: the threads whose collections are there at the start. `gone`: what is not to be read again."""
        self.gone = Tombstones() if gone is None else gone
        self._cases: OrderedDict[int, _Case] = OrderedDict()
        self._with_files = set(with_files)

    def __iter__(self) -> Iterator[int]:
        """The threads that have files."""
        return iter(sorted(self._with_files))

    def has_files(self, case_id: int) -> bool:
        return case_id in self._with_files

    def know(self, case_id: int) -> None:
        """There is a collection of that thread."""
        self._with_files.add(case_id)

    def begin(self, candidate: Candidate) -> IngestJob | None:
        """Take an offer on; None: it is known already, or was removed."""
        if self.gone.holds(candidate):
            return None
        case = self._cases.setdefault(candidate.case_id, _Case())
        self._cases.move_to_end(candidate.case_id)
        if candidate.key in case.seen:
            return None
        filing = IngestJob(candidate, CancelToken())
        case.seen[candidate.key] = candidate.message_id
        case.open[candidate.key] = filing
        self._with_files.add(candidate.case_id)
        self._trim()
        return filing

    def settle(self, filing: IngestJob) -> None:
        """It can be searched now, or never will be."""
        case = self._cases.get(filing.candidate.case_id)
        if case is not None and case.open.get(filing.candidate.key) is filing:
            del case.open[filing.candidate.key]
            case.changed.set()
            case.changed = asyncio.Event()

    def unread(self, case_id: int) -> list[Candidate]:
        """The files that cannot be searched yet."""
        case = self._cases.get(case_id)
        return [] if case is None else [filing.candidate for filing in case.open.values()]

    async def wait(self, case_id: int, seconds: float) -> bool:
        """Wait until all files of a thread can be searched; whether they can."""
        try:
            async with asyncio.timeout(seconds):
                while (case := self._cases.get(case_id)) is not None and case.open:
                    await case.changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self, case_id: int) -> None:
        """Call off what is under way in a thread. Files that come later are new ones."""
        case = self._cases.get(case_id)
        if case is not None:
            case.seen.clear()
            for filing in case.open.values():
                filing.token.cancel(CaseClosed("the thread was closed"))
        self._with_files.discard(case_id)

    def with_files_of(self, message_ids: Iterable[int]) -> set[int]:
        """The threads that files of these messages went to, as far as it is remembered."""
        gone = frozenset(message_ids)
        return {case_id for case_id, case in self._cases.items() if not gone.isdisjoint(case.seen.values())}

    def take_back(self, gone: Callable[[Candidate], bool]) -> set[int]:
        """Call off the files of which `gone` is true; the threads that they were for."""
        meant = [filing for case in self._cases.values() for filing in case.open.values() if gone(filing.candidate)]
        for filing in meant:
            filing.token.cancel(CaseClosed("the file was taken back"))
        return {filing.candidate.case_id for filing in meant}

    def _trim(self) -> None:
        while len(self._cases) > REMEMBERED:
            oldest = next((case_id for case_id, case in self._cases.items() if not case.open), None)
            if oldest is None:
                return
            del self._cases[oldest]
