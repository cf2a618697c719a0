"""Replies of a model with megabytes in single fields: what is kept of them is bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from services.assistant.answering import AnswerResult, GatingResult, SelectionResult, VerificationResult
from services.assistant.curator import ClassificationResult, ImageSummaryResult, IntegrationResult
from services.assistant.describing import SummaryResult
from services.documents.condensing import CondensedAnswer, RewrittenQuestion
from services.llm.structured import first_valid_object

RESULTS: tuple[type[BaseModel], ...] = (
    GatingResult,
    SelectionResult,
    AnswerResult,
    VerificationResult,
    ClassificationResult,
    ImageSummaryResult,
    IntegrationResult,
    SummaryResult,
    CondensedAnswer,
    RewrittenQuestion,
)
KEPT_CHARS = 120_000


def filled(schema: Mapping[str, Any], text: str, entries: int) -> Any:
    """An object of the schema with this text in each field, and so many entries in each outermost list."""

    def of(part: Mapping[str, Any], length: int) -> Any:
        if "$ref" in part:
            return of(schema["$defs"][part["$ref"].rpartition("/")[2]], length)
        if "anyOf" in part:
            return of(part["anyOf"][0], length)
        match part["type"]:
            case "object":
                return {name: of(each, length) for name, each in part["properties"].items()}
            case "array":
                return [of(part["items"], 1)] * length
            case "string":
                return text
            case kind:
                return {"boolean": True, "integer": 0}[kind]

    return of(schema, entries)


@pytest.mark.parametrize("model", RESULTS)
@pytest.mark.parametrize(("text", "entries"), [("word " * 100_000, 1), ("kb:a", 100_000)], ids=["texts", "lists"])
def test_what_is_kept_of_a_filled_reply_is_bounded(model: type[BaseModel], text: str, entries: int) -> None:
    said = filled(model.model_json_schema(), text, entries)
    kept = first_valid_object(json.dumps(said), model).model_dump_json()
    assert len(kept) < KEPT_CHARS


@pytest.mark.parametrize("model", RESULTS)
def test_an_ordinary_reply_stays_as_it_is(model: type[BaseModel]) -> None:
    said = filled(model.model_json_schema(), "x" * 300, 20)
    assert first_valid_object(json.dumps(said), model).model_dump() == said
