"""Images of a captured conversation, replaced by summaries in words (SPEC 6, "Image summary")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from model.conversations import Conversation, Image, Role, Turn
from services.assistant.curator import ImageSummaryResult
from services.assistant.prompts import IMAGE_SUMMARY_CHARS
from services.llm import BadOutput, clean
from services.team import Capture, Picture, Speaker


def conversation_with(capture: Capture, images: Mapping[Picture, Image]) -> Conversation:
    """One turn for each message, with its images among `images`."""
    return Conversation(
        tuple(
            Turn(
                role=Role.USER if said.turn.speaker is Speaker.USER else Role.ASSISTANT,
                text=said.turn.text,
                images=tuple(image for picture, image in images.items() if picture.message_id == said.message_id),
                from_team=said.turn.speaker is Speaker.TEAM,
            )
            for said in capture.said
        )
    )


def summaries_in(result: ImageSummaryResult, pictures: Iterable[Picture]) -> dict[Picture, str]:
    """The summary of each of `pictures`, all that the model was shown.

    Raises:
        BadOutput: one is missing or empty.
    """
    given = {(each.message_id.strip(), each.image_index): " ".join(each.summary.split()) for each in result.summaries}
    found: dict[Picture, str] = {}
    shown: Counter[int] = Counter()
    for picture in pictures:
        summary = given.get((str(picture.message_id), shown[picture.message_id]))
        if not summary:
            raise BadOutput(f"LLM, step summarise_images: no summary of attachment {picture.attachment.id}")
        shown[picture.message_id] += 1
        found[picture] = summary
    return found


def in_words(capture: Capture, summaries: Mapping[Picture, str], redact: Callable[[str], str] = str) -> Capture:
    """The capture with `[image: <summary>]` in place of its placeholders; those without a summary stay."""
    lines = {said.message_id: said.turn.text.split("\n") for said in capture.said}
    for picture, summary in summaries.items():
        lines[picture.message_id][picture.line] = f"[image: {_harmless(redact(summary))}]"
    said = (replace(each, turn=replace(each.turn, text="\n".join(lines[each.message_id]))) for each in capture.said)
    return replace(capture, said=tuple(said))


def _harmless(summary: str) -> str:
    """In one line, without the brackets that would end the placeholder."""
    line = " ".join(clean(summary).split()).replace("[", "(").replace("]", ")")
    return line if len(line) <= IMAGE_SUMMARY_CHARS else f"{line[:IMAGE_SUMMARY_CHARS].rstrip()}…"
