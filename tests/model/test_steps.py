"""The table of steps: the graph has no step and no decision that it lacks, and what reads it drops none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.flow import StepDuration
from dashboard.views import step_views
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind
from model.steps import DECISIONS, STEP_NAMES, STEPS, DecisionInfo, StepInfo
from reporting.cost import KNOWLEDGE_STEPS
from services.telemetry import part_outcome_of, render_part_outcome
from settings import AnswerSettings, KnowledgeSettings
from tests.dashboard.made import showing

ROOT = Path(__file__).parents[2]
TABLE = "model/steps.py: STEPS"
MADE = re.compile(r'\b(?:step|run|capture_step)\(\s*"(\w+)"')
DECIDED = re.compile(r'\bdecisions\["(\w+)"\] = ')
ASKED = re.compile(r'(?:_asker|assistant)\.ask\(\s*"(\w+)"')


def named_in(pattern: re.Pattern[str], *folders: str) -> set[str]:
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {name for path in files for name in pattern.findall(path.read_text())}


def recorded(decision: DecisionInfo, decided: object) -> object:
    message = Message(41, 7, Author(3, "ada"), "how?", 90.0, 1)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(7, PlaceKind.CHANNEL, "help", 1), 100.0)
    outcome = Outcome(part, 101.0, OutcomeKind.REPLIED, decisions={decision.name: decided})
    return json.loads(render_part_outcome(part_outcome_of(outcome, str))).get("path", {}).get(decision.name)


def test_the_steps_of_the_answer_chain_are_in_the_table_once_each() -> None:
    made = named_in(MADE, "streams")
    assert {"gather", "gate", "extract"} <= made
    assert sorted(made - set(STEP_NAMES)) == [], f"each needs a row in {TABLE}"
    assert len(STEP_NAMES) == len(set(STEP_NAMES))


def test_what_steps_decide_is_in_the_table() -> None:
    decided = named_in(DECIDED, "operators", "streams", "services")
    assert sorted(decided - set(DECISIONS)) == [], f"each needs `decision=DecisionInfo(…)` in a row of {TABLE}"
    assert sorted(set(DECISIONS) - decided) == [], f"{TABLE} has a decision that no step notes in `inquiry.decisions`"


@pytest.mark.parametrize("decision", DECISIONS.values(), ids=lambda decision: decision.name)
def test_the_record_keeps_what_the_table_says_and_no_words_of_a_model(decision: DecisionInfo) -> None:
    fields: dict[str, object] = {"score": 0.5, "texts": ["a", "b"]}
    assert recorded(decision, fields) == (fields if decision.is_recorded else None)
    if decision.reason_field:
        assert recorded(decision, {**fields, decision.reason_field: "because of Ada"}) == fields
        counted = {**fields, decision.reason_field: 2}
        assert recorded(decision, {**fields, decision.reason_field: ["because", "of Ada"]}) == counted


@pytest.mark.parametrize("info", [each for each in STEPS if each.handles_parts], ids=lambda info: info.name)
def test_the_path_on_the_dashboard_shows_each_step_of_a_part_in_its_place(info: StepInfo) -> None:
    message = Message(41, 7, Author(3, "ada"), "how?", 90.0, 1)
    part = Part(1, (message,), AuthorType.COMMUNITY_USER, Place(7, PlaceKind.CHANNEL, "help", 1), 100.0)
    decided = {} if info.decision is None else {info.decision.name: {"score": 0.5}}
    entry = part_outcome_of(Outcome(part, 101.0, OutcomeKind.REPLIED, decisions={**decided, "older": {}}), str)
    took = [StepDuration(info.name, 1.0), StepDuration("another", 1.0)]
    assert [each.name for each in step_views(entry, took, showing())] == [*info.path_keys, "another", "older"]


def test_decisions_with_words_of_a_model_are_of_steps_that_ask_one() -> None:
    assert [each.name for each in STEPS if each.decision and each.decision.reason_field and each.model is None] == []


def test_what_is_asked_of_a_model_has_its_price() -> None:
    asking = {each.name for each in STEPS if each.model is not None}
    asked, tasks = (
        named_in(ASKED, "services/assistant", "operators"),
        {*AnswerSettings().tasks, *KnowledgeSettings().tasks},
    )
    assert sorted(asked - asking) == [], f"they ask a model: add `model=AskedModel.…` to their rows in {TABLE}"
    assert sorted(asking - asked) == [], f"they ask no model: remove `model` from their rows in {TABLE}"
    remedy = "add a key `…_prompt` with `TaskOf` for each to settings/answering.py (or knowledge.py)"
    assert sorted(asking - tasks) == [], f"they have no task: {remedy}"
    assert sorted(tasks - asking) == [], f"no row of {TABLE} asks a model under the name of this `TaskOf`"
    assert asking > KNOWLEDGE_STEPS


def test_what_another_lane_waits_for_is_a_step() -> None:
    assert {each.feeds for each in STEPS if each.feeds} <= set(STEP_NAMES)


def test_a_decision_for_record_is_recorded_as_it_is() -> None:
    plain = replace(DECISIONS["gate"], reason_field="")
    assert plain.for_record({"": "x", "reason": "so"}) == {"": "x", "reason": "so"}
