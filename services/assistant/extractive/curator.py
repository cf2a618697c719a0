"""The curator that needs no model: topics by likeness of words, duplicates by overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from model.conversations import Conversation
from services.assistant.curator import ClassificationResult, ImageSummary, ImageSummaryResult, IntegrationResult
from services.assistant.extractive.subjects import Subject, TopicVectors, share, subject_of
from services.knowledge import IndexEntry, exchanges
from services.llm import Usage
from services.storage import in_thread
from services.team import By, Pair

# ruff: noqa: ARG002 (the Protocol's arguments: likeness of words needs no index, topic names or `usage`)


ALIKE = 0.19
"""The likeness from which a conversation belongs to a topic. On two days of real support chat, with 95 and 21
conversations that answer something, 0.12 makes 40 and 16 topics, with up to 8 and 4 conversations, many of which a
reader would not put together; this value 63 and 19, with up to 7 and 2.
"""
_MIN_ANSWERED = 4
"""Terms of a question that can be told from another one."""
_SAME_ANSWER = 0.8
_SAME_MATTER = 0.6
_SAME_QUESTION = 0.8


class ExtractiveCurator:
    """Implements `Curator`. Calls no model, so that it counts nothing in `Usage`.

    `topics` returns the pairs that each topic holds now; it may block and is called off the event loop.
    """

    by = By.EXTRACTIVE

    def __init__(self, topics: Callable[[], Mapping[str, Sequence[Pair]]]) -> None:
        self._topics = topics
        self._vectors = TopicVectors()
        self._alone = threading.Lock()  # pairs may be looked at in several threads

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        """Their file names, as there is no model to look at them."""
        named = [
            ImageSummary(message_id=str(message_id), image_index=index, summary=image.name)
            for turn, message_id in zip(conversation.turns, message_ids, strict=True)
            for index, image in enumerate(turn.images)
        ]
        return ImageSummaryResult(summaries=named)

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        topic = await in_thread(self._topic_for, pair)
        return ClassificationResult(skip=not topic, topic_name=topic)

    async def integrate(self, pair: Pair, topic: str, held: Sequence[Pair], usage: Usage) -> IntegrationResult:
        new = subject_of(pair)
        olds = [(each.id, old) for each, old in zip(held, self._vectors.subjects(topic, held), strict=True)]
        if any(_says_all_of(old, new) for _, old in olds):
            return IntegrationResult(skip=True, remove_ids=[])
        replaced = [old_id for old_id, old in olds if _says_all_of(new, old) or _asks_the_same(new, old)]
        return IntegrationResult(skip=False, remove_ids=replaced)

    def _topic_for(self, pair: Pair) -> str:
        subject = subject_of(pair)
        if not teaches(pair):
            return ""
        topics = self._topics()
        for name, held in topics.items():
            if any(each.conversation_id == pair.conversation_id for each in held):
                return name  # a continued conversation stays in its topic
        with self._alone:
            self._vectors.update(topics)
            nearest, likeness = self._vectors.nearest(subject)
            return nearest if likeness >= ALIKE else self._vectors.name(subject)


def teaches(pair: Pair) -> bool:
    """True if the pair could help others: the team answered something in it, and nobody said that it did not help."""
    return any(
        each.answer and each.helped is not False for each in exchanges((turn.speaker, turn.text) for turn in pair.turns)
    )


def _says_all_of(one: Subject, other: Subject) -> bool:
    return (
        share(other.answered, one.answered) >= _SAME_ANSWER
        and share(other.asked, one.asked | one.answered) >= _SAME_MATTER
    )


def _asks_the_same(new: Subject, old: Subject) -> bool:
    """In which case the newer answer replaces the older one."""
    return len(new.asked) >= _MIN_ANSWERED and (
        share(new.asked, old.asked) >= _SAME_QUESTION and share(old.asked, new.asked) >= _SAME_QUESTION
    )
