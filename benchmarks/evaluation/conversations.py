"""Captured conversations against annotated ones. Arithmetic only: what is compared has been read before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Written:
    """As much of a message as the figures need."""

    author_id: int
    reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares from 0 to 1. What there is nothing of is 1: it misses nothing."""

    replies: Fraction
    """Of the staff's replies to community members: those that stand in one pair with the message they answer."""
    precision: Fraction
    """Of a captured conversation's annotated messages, those of its annotated conversation; the mean."""
    recall: Fraction
    """Of that annotated conversation, the messages which the captured one holds; the mean."""
    held: Fraction
    """Of the messages in annotated conversations between users and staff, those that any capture holds."""
    reply_count: int
    captured_count: int
    """Captured conversations with annotated messages: those that the means are over."""
    mixed_count: int
    """Messages in annotated conversations between users and staff."""


def figures(
    captured: Sequence[Collection[int]],
    annotated: Sequence[Collection[int]],
    written: Mapping[int, Written],
    staff: Collection[int],
) -> Figures:
    """`captured`: the message ids of each conversation, as its last pair has them."""
    replies = list(replies_of_staff(written, staff))
    matches = [match for ids in captured if (match := matched(ids, annotated)) is not None]
    mixed = {i for ids in annotated if between_users_and_staff(ids, written, staff) for i in ids}
    everything = {i for ids in captured for i in ids}
    return Figures(
        replies=share(sum(any(pair <= set(ids) for ids in captured) for pair in replies), len(replies)),
        precision=mean([precision for precision, _ in matches]),
        recall=mean([recall for _, recall in matches]),
        held=share(len(mixed & everything), len(mixed)),
        reply_count=len(replies),
        captured_count=len(matches),
        mixed_count=len(mixed),
    )


def replies_of_staff(written: Mapping[int, Written], staff: Collection[int]) -> Iterable[set[int]]:
    """Each as two ids: the reply, and the message of a community member that it answers."""
    for message_id, message in written.items():
        target = None if message.reply_to is None else written.get(message.reply_to)
        if target is not None and message.author_id in staff and target.author_id not in staff:
            yield {message_id, message.reply_to or 0}


def matched(ids: Collection[int], annotated: Sequence[Collection[int]]) -> tuple[Fraction, Fraction] | None:
    """Precision and recall against the annotated conversation with which most messages are shared; of several such,
    the longest, so that a tie never flatters. None: no message of it is annotated.
    """
    shared = [(len(set(ids) & set(each)), len(each)) for each in annotated]
    all_annotated = sum(common for common, _ in shared)
    if not all_annotated:
        return None
    common, length = max(shared)
    return Fraction(common, all_annotated), Fraction(common, length)


def between_users_and_staff(ids: Iterable[int], written: Mapping[int, Written], staff: Collection[int]) -> bool:
    sides = {written[i].author_id in staff for i in ids if i in written}
    return sides == {True, False}


def share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(1)


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values) if values else Fraction(1)
