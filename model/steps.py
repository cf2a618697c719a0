"""The steps of the graph, each told once: its place in the picture and in the answer chain, which model it asks, and
what is done with its decision. Everything that lists steps reads `STEPS`; a new step is a row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, cast

from model.words import number_of

SHOWN = 5
"""Sources that a line of `--ask` names beside the selected ones."""


class Lane(Enum):
    """A column of the picture, whose steps stand one below the other in the order of the table."""

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
    """A metric of a decision: counts by the field's yes and no, or with `sizes` by how many values the field lists."""

    name: str
    says: str
    field: str
    sizes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a step notes of how it decided, in `Inquiry.decisions`.

    Attributes:
        name: the key there.
        recorded: whether the record on disk keeps it; if not, it is in memory only.
        words: the field in which a model says why, in its own words. These may repeat a file, or a person who is
            forgotten later: the record leaves out a text, and counts a list.
        of_sources: whether its lists name sources.
        ends: whether `--eval` names the step as the one at which an answer ended.
        alters: whether `--eval` says it of an answer that was given, in the words of `says`.
        says: the line of `--ask`; None: it has none.
    """

    name: str
    recorded: bool
    words: str = ""
    of_sources: bool = True
    ends: bool = False
    alters: bool = False
    says: Callable[[Any], str] | None = None
    metric: DecisionMetric | None = None

    def without_words(self, decided: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is recorded of a decision."""
        kept = dict(decided)
        said = kept.get(self.words) if self.words else None
        if isinstance(said, str):
            del kept[self.words]
        elif isinstance(said, (list, tuple)):
            kept[self.words] = len(cast("Sequence[object]", said))
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """A step, as everything beside the graph knows it.

    Attributes:
        name: in the graph, in metrics, and in counts of tokens.
        title, says: its box in the picture.
        lane: the column of its box.
        feeds: a step of another lane that waits for it.
        of_parts: whether its items are parts. What others work on may have begun with one, and outlives it.
        timed: False where it tells only how many items it holds: one that is gone is done.
        asks: the model; None: none.
        decides: what it notes of how it decided; None: nothing.
    """

    name: str
    lane: Lane
    title: str
    says: str
    feeds: str = ""
    of_parts: bool = False
    timed: bool = True
    asks: AskedModel | None = None
    decides: Decision | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The keys under which a part's path tells of it, in order."""
        return (self.name,) if self.decides is None else tuple(dict.fromkeys((self.decides.name, self.name)))


def _gated(decided: Mapping[str, Any]) -> str:
    if not decided["question"]:
        return f"not a question: {decided['reason']}"
    return f"a question, {'answerable' if decided['answerable'] else 'not answerable'}: {decided['reason']}"


def _selected(decided: Mapping[str, Any]) -> str:
    ranked = dict(decided["ranked"])
    chosen = [f"{each} ({ranked[each]:.2f})" if each in ranked else each for each in decided["selected"]]
    others = [f"{each} ({score:.2f})" for each, score in ranked.items() if each not in decided["selected"]][:SHOWN]
    rest = f"; next: {', '.join(others)}" if others else ""
    return f"{_listed(chosen)}, of {number_of(decided['offered'], 'source')}{rest}"


def _generated(decided: Mapping[str, Any]) -> str:
    if not decided["answer"]:
        return "the sources do not hold the answer"
    cited = f", from {_listed(decided['citations'])}" if decided.get("citations") else ", citing nothing"
    return f"{number_of(decided['characters'], 'character')}{cited}"


def _verified(decided: Mapping[str, Any]) -> str:
    return "good" if decided["good_enough"] else f"not good enough: {'; '.join(decided['issues'])}"


def _pointed(decided: Mapping[str, Any]) -> str:
    return f"no answer that is sure enough; best confidence {decided['confidence']:.2f}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "nothing"


STEPS = (
    StepInfo(
        name="quiet_window",
        lane=Lane.ARRIVALS,
        title="quiet window",
        says="collects what one person writes until they fall quiet",
        timed=False,
    ),
    StepInfo(
        name="route",
        lane=Lane.ARRIVALS,
        title="cut, route",
        says="cuts where the conversation changes; who is it for?",
    ),
    StepInfo(
        name="queue",
        lane=Lane.ANSWERS,
        title="one asker at a time",
        says="waits for the same asker's earlier question",
    ),
    StepInfo(
        name="gather",
        lane=Lane.ANSWERS,
        title="gather",
        says="the conversation, the thread, images",
        of_parts=True,
    ),
    StepInfo(
        name="permit",
        lane=Lane.ANSWERS,
        title="permit",
        says="ends what could not be posted",
        of_parts=True,
    ),
    StepInfo(
        name="announce",
        lane=Lane.ANSWERS,
        title="announce",
        says="which files there are",
        of_parts=True,
        decides=Decision(
            name="files",
            recorded=False,  # what is known of a file goes with its thread
            says=lambda names: f"looked at {_listed(names)}",
        ),
    ),
    StepInfo(
        name="gate",
        lane=Lane.ANSWERS,
        title="gate",
        says="is it a question that can be answered?",
        of_parts=True,
        asks=AskedModel.ANSWERING,
        decides=Decision(
            name="gate",
            recorded=True,
            words="reason",
            ends=True,
            says=_gated,
            metric=DecisionMetric("ai_gate", "Decisions of the gate", "answerable"),
        ),
    ),
    StepInfo(
        name="select",
        lane=Lane.ANSWERS,
        title="select",
        says="which sources may answer it",
        of_parts=True,
        asks=AskedModel.ANSWERING,
        decides=Decision(
            name="select",
            recorded=True,
            ends=True,
            says=_selected,
            metric=DecisionMetric("ai_selected_sources", "Sources selected for a question", "selected", sizes=True),
        ),
    ),
    StepInfo(
        name="load",
        lane=Lane.ANSWERS,
        title="load",
        says="their texts",
        of_parts=True,
        decides=Decision(
            name="load", recorded=True, ends=True, says=lambda decided: f"read {_listed(decided['loaded'])}"
        ),
    ),
    StepInfo(
        name="retrieve",
        lane=Lane.ANSWERS,
        title="retrieve",
        says="waits for files that are being read",
        of_parts=True,
        decides=Decision(
            name="tools",
            recorded=False,  # they follow from the files
            of_sources=False,
            says=lambda names: f"may use {_listed(names)}",
        ),
    ),
    StepInfo(
        name="generate",
        lane=Lane.ANSWERS,
        title="generate",
        says="the draft",
        of_parts=True,
        asks=AskedModel.ANSWERING,
        decides=Decision(name="generate", recorded=True, ends=True, says=_generated),
    ),
    StepInfo(
        name="point",
        lane=Lane.ANSWERS,
        title="point",
        says="without an answer: the nearest pages, for who addressed the bot",
        of_parts=True,
        decides=Decision(name="point", recorded=True, says=_pointed),
    ),
    StepInfo(
        name="verify",
        lane=Lane.ANSWERS,
        title="verify",
        says="a second look at the draft",
        of_parts=True,
        asks=AskedModel.ANSWERING,
        decides=Decision(
            name="verify",
            recorded=True,
            words="issues",
            ends=True,
            says=_verified,
            metric=DecisionMetric("ai_verification", "Verified drafts", "good_enough"),
        ),
    ),
    StepInfo(
        name="hold",
        lane=Lane.ANSWERS,
        title="hold",
        says="while a team member types",
        of_parts=True,
        decides=Decision(name="hold", recorded=True),
    ),
    StepInfo(
        name="reply",
        lane=Lane.ANSWERS,
        title="reply",
        says="posts it",
        of_parts=True,
    ),
    StepInfo(
        name="extract",
        lane=Lane.TEAM,
        title="extract",
        says="the conversation that a team member answered in",
        of_parts=True,
    ),
    StepInfo(
        name="summarise_images",
        lane=Lane.TEAM,
        title="describe images",
        says="before anything is stored",
        of_parts=True,
        asks=AskedModel.KNOWLEDGE,
    ),
    StepInfo(
        name="archive",
        lane=Lane.TEAM,
        title="archive",
        says="one append, flushed to the disk",
        of_parts=True,
    ),
    StepInfo(
        name="classify",
        lane=Lane.TEAM,
        title="classify",
        says="which topic does it belong to?",
        asks=AskedModel.KNOWLEDGE,
    ),
    StepInfo(
        name="integrate",
        lane=Lane.TEAM,
        title="integrate",
        says="what it replaces there",
        asks=AskedModel.KNOWLEDGE,
    ),
    # Its calls are counted as those of `summarise`.
    StepInfo(name="describe", lane=Lane.TEAM, title="describe", says="the topics that changed"),
    StepInfo(
        name="chunk",
        lane=Lane.FILES,
        title="read files",
        says="what people attach, cut up for searching",
        feeds="retrieve",
    ),
    StepInfo(name="embed", lane=Lane.FILES, title="embed files", says="their vectors"),
    StepInfo(name="discover", lane=Lane.KNOWLEDGE, title="discover", says="which sources there are"),
    StepInfo(name="examine", lane=Lane.KNOWLEDGE, title="examine files", says="those that have changed"),
    StepInfo(name="fetch", lane=Lane.KNOWLEDGE, title="fetch pages", says="those that are due"),
    StepInfo(name="copy", lane=Lane.KNOWLEDGE, title="copy repositories", says="of git: what has changed"),
    StepInfo(
        name="summarise",
        lane=Lane.KNOWLEDGE,
        title="summarise",
        says="a description of what is new",
        asks=AskedModel.KNOWLEDGE,
    ),
    StepInfo(name="write", lane=Lane.KNOWLEDGE, title="write index", says="index and cache"),
)
"""In the order of the flow: the answer chain runs them in it, and the dashboard shows them in it."""

DECISIONS: Mapping[str, Decision] = {each.decides.name: each.decides for each in STEPS if each.decides is not None}
"""By the key in `Inquiry.decisions`."""

STEP_NAMES = tuple(each.name for each in STEPS)
