"""The wanted shape: the JSON schema of a model class on the wire, and the object of that shape in a reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

MAX_TRIES = 100
"""Opening braces tried, so that a reply with thousands of nested ones does not take minutes."""

_MAX_ERRORS = 3


class NotFound(ValueError):
    """No object fits. The message completes "was not usable because" and quotes no values."""


def wire_schema(model: type[BaseModel]) -> dict[str, object]:
    """Pydantic's schema of `model`, made strict: every key required, no others.

    OpenAI's strict mode requires this (guide "Structured model outputs", supported schemas), and servers that build a
    grammar from the schema then cannot leave a key out. Titles and defaults are dropped, as they only cost tokens.
    """
    return _strict(cast("Mapping[str, object]", model.model_json_schema()))


def first_that_fits(text: str, model: type[M]) -> M:
    """The first JSON object in `text` that validates as `model`: bare, fenced, between sentences or in another object.

    Raises:
        NotFound: there is none; the message says what is wrong with the first object, if there is one.
    """
    decoder = json.JSONDecoder()
    wrong = ""
    start = -1
    for _ in range(MAX_TRIES):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            found, _end = decoder.raw_decode(text, start)
            return model.model_validate(found)
        except ValidationError as error:
            wrong = wrong or _summary(error)
        except (ValueError, RecursionError):
            continue
    raise NotFound(wrong or ("it holds no complete JSON object" if text.strip() else "it was empty"))


def json_object(text: str) -> dict[str, object] | None:
    """`text` as one JSON object; None if it is not one."""
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", read) if isinstance(read, dict) else None


def _strict(schema: Mapping[str, object]) -> dict[str, object]:
    kept = {key: _inside(key, value) for key, value in schema.items() if key not in {"title", "default"}}
    if "properties" in kept:
        kept["required"] = list(cast("Mapping[str, object]", kept["properties"]))
        kept["additionalProperties"] = False
    return kept


def _inside(key: str, value: object) -> object:
    if key in {"properties", "$defs"}:
        # Keys in here are names, one of which may be "title".
        named = cast("Mapping[str, Mapping[str, object]]", value)
        return {name: _strict(schema) for name, schema in named.items()}
    if isinstance(value, Mapping):
        return _strict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        return [_strict(cast("Mapping[str, object]", item)) if isinstance(item, Mapping) else item for item in items]
    return value


def _summary(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(map(str, each['loc'])) or 'the object'}: {each['msg']}" for each in errors[:_MAX_ERRORS]]
    return "its JSON object does not fit (" + "; ".join(said) + ")"
