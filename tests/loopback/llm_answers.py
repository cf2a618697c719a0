"""What a well-behaved model would say, made from the request alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "VerificationResult": {"is_good_enough": True, "issues": [], "suggested_fix": None},
    "ClassificationResult": {"skip": False, "topic_name": "What the team says"},
    "IntegrationResult": {"skip": False, "remove_ids": []},
}
PICTURED = re.compile(r"\(message_id (\d+); ([^)]*)\)")
SOURCE_ID = re.compile(r"(?:kb|team):[^\s\"'<>\]),]+")


def wanted(body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and schema that a request asks for, by either method; where tools are offered, it is the last."""
    if "response_format" in body:
        asked = body["response_format"]["json_schema"]
        return asked["name"], asked["schema"]
    asked = body["tools"][-1]["function"]
    return asked["name"], asked["parameters"]


def offered(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tools that may be called before the answer: their schemas by name."""
    functions = [tool["function"] for tool in body.get("tools", ())[:-1]]
    return {function["name"]: function["parameters"] for function in functions}


def results(body: Mapping[str, Any]) -> list[str]:
    """What the tools called so far have given."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def first_call(body: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The first tool, asked what the prompt asks; None where there is none, or it has been called."""
    tools = offered(body)
    if not tools or results(body):
        return None
    name, schema = next(iter(tools.items()))
    questions = QUESTION.findall(prompt(body))
    arguments = {key: _instance(each, {}) for key, each in schema["properties"].items() if key in schema["required"]}
    return name, arguments | ({"question": questions[-1]} if questions and "question" in arguments else {})


def prompt(body: Mapping[str, Any]) -> str:
    return "\n".join(
        message["content"] if isinstance(message["content"], str) else json.dumps(message["content"])
        for message in body["messages"]
        if message["content"] is not None
    )


def plausible(body: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the wanted shape; the first source id of the prompt is the one selected and cited."""
    name, schema = wanted(body)
    text = prompt(body)
    first = SOURCE_ID.findall(text)[:1]
    if name == "GatingResult":
        asks = "?" in text
        return {
            "is_question": asks,
            "is_answerable": asks,
            "rewrite_query": None,
            "reason": "it asks" if asks else "talk",
        }
    if name == "SelectionResult":
        return {"selected_source_ids": first}
    if name == "AnswerResult":
        return {"answer": f"As {first[0]} says." if first else None, "citations": first}
    if name == "ImageSummaryResult":
        return {"summaries": [summary for label in PICTURED.findall(text) for summary in _summaries(*label)]}
    if name in ALWAYS:
        return dict(ALWAYS[name])
    return _instance(schema, schema.get("$defs", {}))


def _summaries(message_id: str, images: str) -> list[dict[str, Any]]:
    return [
        {"message_id": message_id, "image_index": index, "summary": "An error message."}
        for index in range(images.count("image_index"))
    ]


def _instance(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """The smallest value of a schema."""
    if "$ref" in schema:
        return _instance(named[schema["$ref"].rpartition("/")[2]], named)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], named)
    if schema.get("type") == "object":
        return {key: _instance(each, named) for key, each in schema.get("properties", {}).items()}
    plain: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": []}
    return plain.get(schema.get("type", "null"))
