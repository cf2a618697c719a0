"""Removes one person's words from recorded exchanges with models (`--llm-record`). Blocking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from services.assistant import GatingResult
from services.llm import NotFound, first_valid_object
from services.privacy.text_match import TextMatch
from services.storage import Record, edit, read_records
from services.telemetry import number_of


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many exchanges were removed; `left`: lines for the operator."""

    exchanges: int
    left: list[str]


def drop_exchanges(recordings: Iterable[Path], user_id: int, texts: list[str], ids: Collection[str] = ()) -> Dropped:
    """Drop what is about a person's conversations, and what holds one of their `texts`, or the id of a source that is
    called by a word of theirs. Raises OSError.
    """
    match, count = TextMatch(texts), 0
    left: list[str] = []
    for path in recordings:
        # Steps after the gate may have been asked in its words.
        either, unmarked = TextMatch([*texts, *_rewritten(path, match)]), 0

        def without(exchange: Record) -> Record | None:
            nonlocal unmarked
            people, said = exchange.get("people"), _said(exchange)
            if isinstance(people, list) and str(user_id) in people:
                return None
            if either.found_in(said) or any(each in said for each in ids):  # noqa: B023 (called at once)
                return None
            unmarked += "people" not in exchange
            return exchange

        edited = edit(path, without)
        count += edited.dropped
        if edited.damaged:
            left.append(f"{path}: {number_of(edited.damaged, 'damaged line')}")
        if unmarked:
            left.append(
                f"{path}: {number_of(unmarked, 'exchange')} of an earlier program, which did not note whose words they "
                "hold: what they asked and got no reply to cannot be told apart"
            )
        if match.too_short:
            short = number_of(match.too_short, "text")
            left.append(f"{path}: {short} of theirs not searched for, too short to be anybody's own")
    return Dropped(count, left)


def _rewritten(path: Path, match: TextMatch) -> list[str]:
    """The queries that the gate has made of the person's questions."""
    queries: list[str] = []
    for exchange in read_records(path):
        if exchange.get("step") == "gate" and match.found_in(_said(exchange)):
            with suppress(NotFound):
                result = first_valid_object("\n".join(_strings(exchange.get("response"))), GatingResult)
                queries.append(result.rewrite_query or "")
    return [query for query in queries if query.strip()]


def _said(exchange: Record) -> str:
    return "\n".join(_strings([exchange.get("request"), exchange.get("response"), exchange.get("error")]))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        parts = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for each in parts:
            yield from _strings(each)
