"""A conversation with the team, as it is shown to a model that files it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.llm import Field
from services.team import Correction, Pair, as_read

PAIR_CHARS = 24_000
"""Of one conversation, shown to a model: of a longer one its beginning and its end."""
TURN_CHARS = 6_000
_DAY, _MINUTE = 10, 16
"""Characters of a time stamp."""


def turn_label(place: int) -> str:
    """The label of a turn in a prompt in which turns may be named: `t1` for the first (place 0)."""
    return f"t{place + 1}"


def pair_fields(
    pair: Pair, label: str = "", corrections: Sequence[Correction] = (), *, name_turns: bool = False
) -> Iterable[Field]:
    """The middle of a very long conversation is left out: its subject comes first, its solution last. `label`: what it
    is called, if it may be named; `name_turns`: whether its turns may be.
    """
    if label:
        yield Field("Id", label)
    yield Field("Said", pair.said_at[:_MINUTE].replace("T", " "))
    for each in corrections:
        yield Field(f"Superseded in part on {each.said_at[:_DAY]}", each.what)
    turns = as_read(pair)
    texts = [middle_cut(turn.text, TURN_CHARS) for turn in turns]
    room = PAIR_CHARS - sum(map(len, texts))
    at = len(texts) // 2
    first = last = at
    while room < 0:  # grow the gap outwards from the middle, so that both ends stay
        if last - at <= at - first and last < len(texts):
            room += len(texts[last])
            last += 1
        else:
            first -= 1
            room += len(texts[first])
    for number, (turn, text) in enumerate(zip(turns, texts, strict=True)):
        if number == first < last:
            yield Field("Left out", f"{last - first} messages")
        if not first <= number < last:
            yield Field(f"{turn.label} ({turn_label(number)})" if name_turns else turn.label, text)


def middle_cut(text: str, max_chars: int) -> str:
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}\n[…]\n{text[-half:]}"
