"""The table of the steps of the graph, `STEPS`: for each step its position in the picture and in the answer chain, the
model that it asks, and what is done with its decision. Everything that lists steps reads it; a new step is a new row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, cast

from model.words import number_of

MAX_OTHERS = 5
"""The most sources that a line of `--ask` names beside the selected ones."""


class Lane(Enum):
    """A column of the dashboard's picture of the graph. It shows its steps in the order of the table."""

    ARRIVALS = "arrivals"
    ANSWERS = "answers"
    TEAM = "the team"
    KNOWLEDGE = "knowledge base"
    FILES = "files"


class AskedModel(Enum):
    """The model that a step asks, by the settings that name it."""

    ANSWERING = "ai_response.llm"
    KNOWLEDGE = "kb.llm"


class DecisionMetric(NamedTuple):
    """A metric of one field of a decision: counts yes and no, or with `counts_values` how many values it lists."""

    name: str
    help: str
    field: str
    counts_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInfo:
    """The notes that a step makes in `Inquiry.decisions` about how it decided.

    Attributes:
        name: the key of the notes.
        is_recorded: True if the record on disk keeps the notes.
        reason_field: the field in which a model gives reasons in its own words. These may repeat a file, or a person
            who is forgotten later: the record leaves out a text, and counts a list.
        names_sources: True if the lists in the notes name sources.
        can_end_answer: True if `--eval` names the step as the one at which an answer ended.
        alters_answer: True if `--eval` shows the line of `describe` with an answer.
        describe: makes the line of `--ask` from the notes; None: it has none.
    """

    name: str
    is_recorded: bool
    reason_field: str = ""
    names_sources: bool = True
    can_end_answer: bool = False
    alters_answer: bool = False
    describe: Callable[[Any], str] | None = None
    metric: DecisionMetric | None = None

    def for_record(self, notes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the notes as they are recorded."""
        kept = dict(notes)
        reason = kept.get(self.reason_field) if self.reason_field else None
        if isinstance(reason, str):
            del kept[self.reason_field]
        elif isinstance(reason, (list, tuple)):
            kept[self.reason_field] = len(cast("Sequence[object]", reason))
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """The description of a step.

    Attributes:
        name: in the graph, in metrics, and in counts of tokens.
        title, subtitle: the text of its box in the picture.
        lane: the column of its box.
        feeds: a step of another lane that waits for it; empty: none.
        handles_parts: True if its items are parts. The items of other steps may outlive the part they come from.
        is_timed: False if only the number of its items is known, and not when each begins and ends.
        model: the model that it asks; None: none.
        decision: the notes that it makes about how it decided; None: none.
    """

    name: str
    lane: Lane
    title: str
    subtitle: str
    feeds: str = ""
    handles_parts: bool = False
    is_timed: bool = True
    model: AskedModel | None = None
    decision: DecisionInfo | None = None

    @property
    def path_keys(self) -> tuple[str, ...]:
        """The keys of this step in the path of a part, in order."""
        return (self.name,) if self.decision is None else tuple(dict.fromkeys((self.decision.name, self.name)))


def _describe_gate(notes: Mapping[str, Any]) -> str:
    if not notes["question"]:
        return f"not a question: {notes['reason']}"
    return f"a question, {'answerable' if notes['answerable'] else 'not answerable'}: {notes['reason']}"


def _describe_selection(notes: Mapping[str, Any]) -> str:
    ranked = dict(notes["ranked"])
    chosen = [f"{each} ({ranked[each]:.2f})" if each in ranked else each for each in notes["selected"]]
    others = [f"{each} ({score:.2f})" for each, score in ranked.items() if each not in notes["selected"]][:MAX_OTHERS]
    rest = f"; next: {', '.join(others)}" if others else ""
    return f"{_join(chosen)}, of {number_of(notes['offered'], 'source')}{rest}"


def _describe_draft(notes: Mapping[str, Any]) -> str:
    if not notes["answer"]:
        return "the sources do not hold the answer"
    cited = f", from {_join(notes['citations'])}" if notes.get("citations") else ", citing nothing"
    return f"{number_of(notes['characters'], 'character')}{cited}"


def _describe_verification(notes: Mapping[str, Any]) -> str:
    return "good" if notes["good_enough"] else f"not good enough: {'; '.join(notes['issues'])}"


def _describe_pointer(notes: Mapping[str, Any]) -> str:
    return f"no answer that is sure enough; best confidence {notes['confidence']:.2f}"


def _join(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "nothing"


STEPS = (
    StepInfo(
        name="quiet_window",
        lane=Lane.ARRIVALS,
        title="quiet window",
        subtitle="collects what one person writes until they fall quiet",
        is_timed=False,
    ),
    StepInfo(
        name="route",
        lane=Lane.ARRIVALS,
        title="cut, route",
        subtitle="cuts where the conversation changes; who is it for?",
    ),
    StepInfo(
        name="queue",
        lane=Lane.ANSWERS,
        title="one asker at a time",
        subtitle="waits for the same asker's earlier question",
    ),
    StepInfo(
        name="gather",
        lane=Lane.ANSWERS,
        title="gather",
        subtitle="the conversation, the thread, images",
        handles_parts=True,
    ),
    StepInfo(
        name="permit",
        lane=Lane.ANSWERS,
        title="permit",
        subtitle="ends what could not be posted",
        handles_parts=True,
    ),
    StepInfo(
        name="announce",
        lane=Lane.ANSWERS,
        title="announce",
        subtitle="which files there are",
        handles_parts=True,
        decision=DecisionInfo(
            name="files",
            is_recorded=False,  # what is known of a file goes with its thread
            describe=lambda names: f"looked at {_join(names)}",
        ),
    ),
    StepInfo(
        name="gate",
        lane=Lane.ANSWERS,
        title="gate",
        subtitle="is it a question that can be answered?",
        handles_parts=True,
        model=AskedModel.ANSWERING,
        decision=DecisionInfo(
            name="gate",
            is_recorded=True,
            reason_field="reason",
            can_end_answer=True,
            describe=_describe_gate,
            metric=DecisionMetric("ai_gate", "Decisions of the gate", "answerable"),
        ),
    ),
    StepInfo(
        name="select",
        lane=Lane.ANSWERS,
        title="select",
        subtitle="which sources may answer it",
        handles_parts=True,
        model=AskedModel.ANSWERING,
        decision=DecisionInfo(
            name="select",
            is_recorded=True,
            can_end_answer=True,
            describe=_describe_selection,
            metric=DecisionMetric(
                "ai_selected_sources", "Sources selected for a question", "selected", counts_values=True
            ),
        ),
    ),
    StepInfo(
        name="load",
        lane=Lane.ANSWERS,
        title="load",
        subtitle="their texts",
        handles_parts=True,
        decision=DecisionInfo(
            name="load", is_recorded=True, can_end_answer=True, describe=lambda notes: f"read {_join(notes['loaded'])}"
        ),
    ),
    StepInfo(
        name="retrieve",
        lane=Lane.ANSWERS,
        title="retrieve",
        subtitle="waits for files that are being read",
        handles_parts=True,
        decision=DecisionInfo(
            name="tools",
            is_recorded=False,  # they follow from the files
            names_sources=False,
            describe=lambda names: f"may use {_join(names)}",
        ),
    ),
    StepInfo(
        name="generate",
        lane=Lane.ANSWERS,
        title="generate",
        subtitle="the draft",
        handles_parts=True,
        model=AskedModel.ANSWERING,
        decision=DecisionInfo(name="generate", is_recorded=True, can_end_answer=True, describe=_describe_draft),
    ),
    StepInfo(
        name="point",
        lane=Lane.ANSWERS,
        title="point",
        subtitle="without an answer: the nearest pages, for who addressed the bot",
        handles_parts=True,
        decision=DecisionInfo(name="point", is_recorded=True, describe=_describe_pointer),
    ),
    StepInfo(
        name="verify",
        lane=Lane.ANSWERS,
        title="verify",
        subtitle="a second look at the draft",
        handles_parts=True,
        model=AskedModel.ANSWERING,
        decision=DecisionInfo(
            name="verify",
            is_recorded=True,
            reason_field="issues",
            can_end_answer=True,
            describe=_describe_verification,
            metric=DecisionMetric("ai_verification", "Verified drafts", "good_enough"),
        ),
    ),
    StepInfo(
        name="hold",
        lane=Lane.ANSWERS,
        title="hold",
        subtitle="while a team member types",
        handles_parts=True,
        decision=DecisionInfo(name="hold", is_recorded=True),
    ),
    StepInfo(
        name="approve",
        lane=Lane.ANSWERS,
        title="approve",
        subtitle="keeps the draft for a person, where the operator wants that",
        handles_parts=True,
        decision=DecisionInfo(name="approve", is_recorded=True),
    ),
    StepInfo(
        name="reply",
        lane=Lane.ANSWERS,
        title="reply",
        subtitle="posts it",
        handles_parts=True,
    ),
    StepInfo(
        name="extract",
        lane=Lane.TEAM,
        title="extract",
        subtitle="the conversation that a team member answered in",
        handles_parts=True,
    ),
    StepInfo(
        name="summarise_images",
        lane=Lane.TEAM,
        title="describe images",
        subtitle="before anything is stored",
        handles_parts=True,
        model=AskedModel.KNOWLEDGE,
    ),
    StepInfo(
        name="archive",
        lane=Lane.TEAM,
        title="archive",
        subtitle="one append, flushed to the disk",
        handles_parts=True,
    ),
    StepInfo(
        name="classify",
        lane=Lane.TEAM,
        title="classify",
        subtitle="which topic does it belong to?",
        model=AskedModel.KNOWLEDGE,
    ),
    StepInfo(
        name="integrate",
        lane=Lane.TEAM,
        title="integrate",
        subtitle="what it replaces there",
        model=AskedModel.KNOWLEDGE,
    ),
    # Its calls are counted as those of `summarise`.
    StepInfo(name="describe", lane=Lane.TEAM, title="describe", subtitle="the topics that changed"),
    StepInfo(
        name="chunk",
        lane=Lane.FILES,
        title="read files",
        subtitle="what people attach, cut up for searching",
        feeds="retrieve",
    ),
    StepInfo(name="embed", lane=Lane.FILES, title="embed files", subtitle="their vectors"),
    StepInfo(name="discover", lane=Lane.KNOWLEDGE, title="discover", subtitle="which sources there are"),
    StepInfo(name="examine", lane=Lane.KNOWLEDGE, title="examine files", subtitle="those that have changed"),
    StepInfo(name="fetch", lane=Lane.KNOWLEDGE, title="fetch pages", subtitle="those that are due"),
    StepInfo(name="copy", lane=Lane.KNOWLEDGE, title="copy repositories", subtitle="of git: what has changed"),
    StepInfo(
        name="summarise",
        lane=Lane.KNOWLEDGE,
        title="summarise",
        subtitle="a description of what is new",
        model=AskedModel.KNOWLEDGE,
    ),
    StepInfo(name="write", lane=Lane.KNOWLEDGE, title="write index", subtitle="index and cache"),
)
"""In the order in which items flow: the answer chain and the dashboard use this order."""

DECISIONS: Mapping[str, DecisionInfo] = {
    each.decision.name: each.decision for each in STEPS if each.decision is not None
}
"""The decisions that steps note, by their key in `Inquiry.decisions`."""

STEP_NAMES = tuple(each.name for each in STEPS)
