"""Captured conversations against annotated ones, and what is wanted of them. Arithmetic only: what is compared has been
read before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

REPLIES, PRECISION, RECALL, HELD = Fraction(1), Fraction("0.88"), Fraction("0.62"), Fraction("0.9")
"""The least: of the replies in each recording, of the others in the mean of all recordings."""
SEVERAL_ASKERS = {"stripe-0": Fraction(1, 15)}
"""The most captured conversations with two askers or more, where a channel has one asker in each."""
LINE = "{:<28} {:>8} {:>10} {:>7} {:>6} {:>7} {:>7}"


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


class Captured(NamedTuple):
    """A captured conversation, and who asks in it: its community users."""

    message_ids: Collection[int]
    asker_ids: Collection[int]


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of what is annotated, and of the whole log how many captured conversations, with how many askers.

    Attributes:
        doubled: messages that stand in two captured conversations.
    """

    figures: Figures
    captured: int
    several_askers: int
    doubled: int

    @property
    def several(self) -> Fraction:
        return Fraction(self.several_askers, max(self.captured, 1))


def result(
    captured: Sequence[Captured],
    annotated: Sequence[Collection[int]],
    written: Mapping[int, Written],
    staff: Collection[int],
) -> Result:
    """`captured`: each conversation once, as its last pair has it."""
    everything = [message_id for each in captured for message_id in each.message_ids]
    return Result(
        figures([each.message_ids for each in captured], annotated, written, staff),
        len(captured),
        sum(len(set(each.asker_ids)) > 1 for each in captured),
        len(everything) - len(set(everything)),
    )


def line(what: str, found: Result) -> str:
    shares = (found.figures.replies, found.figures.precision, found.figures.recall, found.figures.held, found.several)
    return LINE.format(what, *(f"{float(each):.3f}" for each in shares), found.captured)


def requirements(found: Mapping[str, Result]) -> list[tuple[bool, str]]:
    """Print the figures of each recording, by its name, and tell which of what is wanted is met."""
    judged: list[tuple[bool, str]] = []
    print(LINE.format("", "replies", "precision", "recall", "held", "several", "convs"))
    for name, each in found.items():
        print(line(name, each))
        most = SEVERAL_ASKERS.get(name)
        judged.append((each.figures.replies >= REPLIES, f"{name}: all of staff's replies are with what they answer"))
        judged.append((not each.doubled, f"{name}: {each.doubled} messages in two conversations, none wanted"))
        if most is not None:
            text = f"{name}: {each.several_askers} of {each.captured} conversations with several askers"
            judged.append((each.several <= most, f"{text}, at most {most} of them wanted"))
    for what, shares, least in (
        ("precision", [each.figures.precision for each in found.values()], PRECISION),
        ("recall", [each.figures.recall for each in found.values()], RECALL),
        ("held", [each.figures.held for each in found.values()], HELD),
    ):
        judged.append(
            (mean(shares) >= least, f"{what} in the mean: {float(mean(shares)):.3f}, at least {float(least):.2f}")
        )
    return judged


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
