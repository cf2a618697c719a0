"""`--llm-replay FILE`: answers from a file, without any network."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import clock
from services.llm.endpoint import Reply, Request
from services.llm.errors import UnknownRequest
from services.llm.exchanges import Exchange, kept, read, request_hash

_MOST_COMPARED = 200
"""Recorded requests of the step that are looked at for the nearest."""

_MOST_SHOWN = 4
"""Differing lines shown of each side."""

_LINE_CHARS = 100


class ReplayEndpoint:
    """Requests asked more than once are answered in recorded order, and the last answer is repeated.

    A recorded failure is raised again. What the file does not hold is an `UnknownRequest` that shows, in one line,
    what differs from the nearest recorded request of that step.

    Raises:
        UnreadableExchanges: the file is missing or holds no exchange.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_hash: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._by_step: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._next: defaultdict[str, int] = defaultdict(int)
        for exchange in read(path):
            self._by_hash[exchange.hash].append(exchange)
            self._by_step[exchange.step].append(exchange)

    async def complete(self, request: Request) -> Reply:
        exchange = self._find(request)

        # By way of the outside, as the recorded call went: so both runs do everything in the same order.
        async def answer() -> Reply:
            return exchange.outcome()

        return await clock.real_time(answer)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def _find(self, request: Request) -> Exchange:
        key = request_hash(request)
        recorded = self._by_hash.get(key)
        if recorded is None:
            raise UnknownRequest(
                f"{self._path} holds no answer to this request of step {request.step}: {self._differs(request)}"
            )
        turn = self._next[key]
        self._next[key] = turn + 1
        return recorded[min(turn, len(recorded) - 1)]

    def _differs(self, request: Request) -> str:
        candidates = self._by_step.get(request.step, [])[:_MOST_COMPARED]
        if not candidates:
            return f"no exchange of that step is recorded, only of {', '.join(sorted(self._by_step))}"
        mine = list(_lines(kept(request)))
        nearest = max((list(_lines(each.request)) for each in candidates), key=lambda theirs: _alike(mine, theirs))
        changes = [line for line in difflib.ndiff(nearest, mine) if line.startswith(("- ", "+ "))]
        recorded = [line[2:] for line in changes if line.startswith("- ")]
        asked = [line[2:] for line in changes if line.startswith("+ ")]
        return f"the nearest one recorded says {_shown(recorded)}, this one says {_shown(asked)}"


def _lines(request: Mapping[str, object]) -> Iterator[str]:
    """A request as lines of `key: text`, so that a change in a long prompt shows as the line it is in."""
    for key, value in request.items():
        parts = cast("list[object]", value) if isinstance(value, list) else [value]
        for part in parts:
            text = part if isinstance(part, str) else json.dumps(part, sort_keys=True, ensure_ascii=False)
            yield from (f"{key}: {line}" for line in text.replace("\\n", "\n").splitlines())


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _shown(lines: Sequence[str]) -> str:
    if not lines:
        return "nothing there"
    cut = [line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…" for line in lines[:_MOST_SHOWN]]
    more = f" and {len(lines) - _MOST_SHOWN} more lines" if len(lines) > _MOST_SHOWN else ""
    return " | ".join(json.dumps(line, ensure_ascii=False) for line in cut) + more
