"""The steps of filing team knowledge: Curator, and the one with a language model behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import BaseModel, Field

from model.conversations import Conversation, Role, Turn
from services.assistant import prompts
from services.assistant.citations import clean_id, resolve_conversations, resolve_ids
from services.assistant.prompts import IMAGE_SUMMARY_CHARS, turn_label
from services.llm import BadOutput, ShortText, at_most, clean
from services.search import rank
from services.storage import in_thread
from services.team import Actor, Remark, Speaker, utterances_of

if TYPE_CHECKING:
    from model.conversations import Image
    from services.knowledge import IndexEntry
    from services.llm import Asker, Usage
    from services.team import Capture, CapturedImage, Correction, Pair

_Ids = Annotated[list[ShortText], at_most(1_000)]  # of messages and conversations
_Remarks = Annotated[list[Remark], at_most(100)]


class ImageSummary(BaseModel):
    message_id: ShortText
    image_index: int
    summary: ShortText


class ImageSummaryResult(BaseModel):
    summaries: Annotated[list[ImageSummary], at_most(1_000)]


class TopicPiece(BaseModel):
    message_ids: _Ids
    topic_name: ShortText


class ClassificationResult(BaseModel):
    """The topic of a pair. `pieces`: the topics of its pieces; None: all of it goes into `topic_name`."""

    skip: bool
    topic_name: ShortText
    pieces: Annotated[list[TopicPiece], at_most(100)] | None = None


class IntegrationResult(BaseModel):
    """What adding a pair to its topic means for the other pairs in it. `remove_ids`: those that it makes obsolete.
    `superseded_parts`: statements in others that it corrects. `conflicts`: contradictions that nobody can decide.
    """

    skip: bool
    remove_ids: _Ids
    superseded_parts: _Remarks = Field(default_factory=list[Remark])
    conflicts: _Remarks = Field(default_factory=list[Remark])


class Curator(Protocol):
    """Decides for the steps of filing. Each method raises an `LLMError` if it has no usable result."""

    @property
    def actor(self) -> Actor:
        """The name under which its decisions are logged."""
        ...

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        """Describe the images of a conversation. `message_ids`: one for each turn of it."""
        ...

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        """Choose the topic of a pair, a known or a new one. `index`: the team's topics, with their descriptions."""
        ...

    async def integrate(self, pair: Pair, topic: str, topic_pairs: Sequence[Pair], usage: Usage) -> IntegrationResult:
        """Decide whether a pair is added to its topic, and what it changes there. `topic_pairs`: the pairs of the
        topic, without earlier captures of the same conversation.
        """
        ...


class ModelCurator:
    """A `Curator` that asks a model. It composes the prompts, and leaves calls and retries to the asker.

    `max_entries`, `max_topic_chars`: the most of the index, and of a topic, that the model is shown. If there is more,
    it is shown what resembles the pair most. `corrections`: gives what is superseded in a pair.
    """

    actor = Actor.LLM

    def __init__(
        self,
        asker: Asker,
        tasks: prompts.ConfiguredTasks,
        *,
        max_entries: int = 30,
        max_topic_chars: int = 60_000,
        corrections: Callable[[Pair], Sequence[Correction]] = lambda _pair: (),
    ) -> None:
        self._asker = asker
        self._tasks = tasks
        self._max_entries = max_entries
        self._max_topic_chars = max_topic_chars
        self._corrections = corrections

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        prompt = prompts.summarise_images(self._tasks, conversation, message_ids)
        return await self._asker.ask("summarise_images", prompt, ImageSummaryResult, usage)

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        shown = await in_thread(_most_similar_topics, index, pair, self._max_entries)
        prompt = prompts.classify(self._tasks, pair, shown)
        result = await self._asker.ask("classify", prompt, ClassificationResult, usage)
        ids = [entry.id for entry in index]
        pieces = [
            TopicPiece(message_ids=_messages(piece.message_ids, pair), topic_name=_topic(piece.topic_name, ids))
            for piece in result.pieces or ()
        ]
        return ClassificationResult(skip=result.skip, topic_name=_topic(result.topic_name, ids), pieces=pieces or None)

    async def integrate(self, pair: Pair, topic: str, topic_pairs: Sequence[Pair], usage: Usage) -> IntegrationResult:
        shown = await in_thread(_most_similar_pairs, topic_pairs, pair, self._max_topic_chars)
        prompt = prompts.integrate(self._tasks, pair, topic, shown, self._corrections)
        result = await self._asker.ask("integrate", prompt, IntegrationResult, usage)
        ids = [each.id for each in shown]
        known, unknown = resolve_conversations(result.remove_ids, ids)
        return IntegrationResult(
            skip=result.skip,
            remove_ids=[*known, *map(clean_id, unknown)],
            superseded_parts=[Remark(_conversation(each.id, ids), each.what) for each in result.superseded_parts],
            conflicts=[Remark(_conversation(each.id, ids), each.what) for each in result.conflicts],
        )


def _topic(named: str, ids: Sequence[str]) -> str:
    known, _ = resolve_ids([named], ids)
    return known[0] if known else clean_id(named)


def _messages(named: Sequence[str], pair: Pair) -> list[str]:
    """Return the ids of the messages in the turns that a model named; what is neither a label nor an id stays."""
    by_name = {str(message_id): [str(message_id)] for message_id in pair.message_ids}
    by_name |= {turn_label(at): list(map(str, turn.message_ids)) for at, turn in enumerate(utterances_of(pair))}
    known, unknown = resolve_ids(named, by_name)
    return [*dict.fromkeys(message_id for each in known for message_id in by_name[each]), *unknown]


def _conversation(named: str, shown: Sequence[str]) -> str:
    known, _ = resolve_conversations([named], shown)
    return known[0] if known else clean_id(named)


def _text(pair: Pair) -> str:
    return "\n".join(turn.text for turn in pair.turns)


def _most_similar_topics(index: Sequence[IndexEntry], pair: Pair, max_topics: int) -> list[IndexEntry]:
    """Return the topics that resemble a pair most, in the order of the index; blocking."""
    if len(index) <= max_topics:
        return list(index)
    order = rank([f"{entry.id} {entry.description}" for entry in index], _text(pair))
    return [index[at] for at in sorted(order[:max_topics])]


def _most_similar_pairs(pairs: Sequence[Pair], pair: Pair, max_chars: int) -> list[Pair]:
    """Return the `pairs` that resemble `pair` most, as many as fit into `max_chars`, in their order; blocking."""
    texts = [_text(each) for each in pairs]
    if sum(map(len, texts)) <= max_chars:
        return list(pairs)
    chosen: list[int] = []
    room = max_chars
    for at in rank(texts, _text(pair)):
        if len(texts[at]) <= room:
            chosen.append(at)
            room -= len(texts[at])
    return [pairs[at] for at in sorted(chosen)]


def conversation_of_capture(capture: Capture, images: Mapping[CapturedImage, Image]) -> Conversation:
    """Return a conversation with one turn for each message of a capture, and its `images`."""
    return Conversation(
        tuple(
            Turn(
                role=Role.USER if each.turn.speaker is Speaker.USER else Role.ASSISTANT,
                text=each.turn.text,
                images=tuple(image for picture, image in images.items() if picture.message_id == each.message_id),
                from_team=each.turn.speaker is Speaker.TEAM,
            )
            for each in capture.messages
        )
    )


def match_summaries(result: ImageSummaryResult, pictures: Iterable[CapturedImage]) -> dict[CapturedImage, str]:
    """Find the summary of each of `pictures`, which are all that the model saw. Raises BadOutput: one is missing."""
    given = {(each.message_id.strip(), each.image_index): " ".join(each.summary.split()) for each in result.summaries}
    found: dict[CapturedImage, str] = {}
    shown: Counter[int] = Counter()
    for picture in pictures:
        summary = given.get((str(picture.message_id), shown[picture.message_id]))
        if not summary:
            raise BadOutput(f"LLM, step summarise_images: no summary of attachment {picture.attachment.id}")
        shown[picture.message_id] += 1
        found[picture] = summary
    return found


def with_image_summaries(
    capture: Capture, summaries: Mapping[CapturedImage, str], redact: Callable[[str], str] = str
) -> Capture:
    """Return the capture with `[image: <summary>]` in place of its placeholders; those without a summary stay."""
    lines = {each.message_id: each.turn.text.split("\n") for each in capture.messages}
    for picture, summary in summaries.items():
        lines[picture.message_id][picture.line] = f"[image: {_harmless(redact(summary))}]"
    new = (replace(each, turn=replace(each.turn, text="\n".join(lines[each.message_id]))) for each in capture.messages)
    return replace(capture, messages=tuple(new))


def _harmless(summary: str) -> str:
    """Return the summary in one line, without the brackets that would end the placeholder."""
    line = " ".join(clean(summary).split()).replace("[", "(").replace("]", ")")
    return line if len(line) <= IMAGE_SUMMARY_CHARS else f"{line[:IMAGE_SUMMARY_CHARS].rstrip()}…"
