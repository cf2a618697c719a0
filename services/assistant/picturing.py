"""Images of a captured conversation, put into the places that their placeholders hold (SPEC 6, "Image summary")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from model.conversations import Conversation, Image, Role
from model.conversations import Turn as Shown
from services.assistant.curator import ImageSummaryResult
from services.assistant.prompts import IMAGE_SUMMARY_CHARS
from services.llm import BadOutput, clean
from services.team import Capture, PairTurn, Picture, Speaker


def conversation_with(capture: Capture, images: Mapping[Picture, Image]) -> Conversation:
    """A turn for each message, with those of `images` that belong to it."""
    by_message: dict[int, list[Image]] = {}
    for picture, image in images.items():
        by_message.setdefault(picture.message_id, []).append(image)
    return Conversation(
        tuple(
            Shown(
                role=Role.USER if said.turn.speaker is Speaker.USER else Role.ASSISTANT,
                text=said.turn.text,
                images=tuple(by_message.get(said.message_id, ())),
                from_team=said.turn.speaker is Speaker.TEAM,
            )
            for said in capture.said
        )
    )


def summaries_in(result: ImageSummaryResult, pictures: Iterable[Picture]) -> dict[Picture, str]:
    """The summary of each of `pictures`, of which the model was shown no others.

    Raises:
        BadOutput: one is missing or empty.
    """
    given = {(each.message_id.strip(), each.image_index): " ".join(each.summary.split()) for each in result.summaries}
    found: dict[Picture, str] = {}
    counts: dict[int, int] = {}
    for picture in pictures:
        shown = counts.get(picture.message_id, 0)
        counts[picture.message_id] = shown + 1
        summary = given.get((str(picture.message_id), shown))
        if not summary:
            raise BadOutput(f"LLM, step summarise_images: nothing is said about attachment {picture.attachment.id}")
        found[picture] = summary
    return found


def in_words(capture: Capture, summaries: Mapping[Picture, str], redact: Callable[[str], str] = str) -> Capture:
    """The capture with `[image: <summary>]` where placeholders were; those without a summary stay."""
    lines: dict[int, list[str]] = {said.message_id: said.turn.text.split("\n") for said in capture.said}
    for picture, summary in summaries.items():
        lines[picture.message_id][picture.line] = f"[image: {_harmless(redact(summary))}]"
    said = (replace(each, turn=PairTurn(each.turn.speaker, "\n".join(lines[each.message_id]))) for each in capture.said)
    return replace(capture, said=tuple(said))


def _harmless(summary: str) -> str:
    """In one line, and without what would end the place it stands in."""
    line = " ".join(clean(summary).split()).replace("[", "(").replace("]", ")")
    return line if len(line) <= IMAGE_SUMMARY_CHARS else f"{line[:IMAGE_SUMMARY_CHARS].rstrip()}…"
