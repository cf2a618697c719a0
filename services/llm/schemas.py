"""The JSON schema of a model class as it goes over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import BaseModel


def wire_schema(model: type[BaseModel]) -> dict[str, object]:
    """What Pydantic makes of `model`, made strict: every key required, no others.

    OpenAI's strict mode refuses anything less (guide "Structured model outputs", supported schemas), and servers that
    build a grammar from the schema then cannot leave a key out. Titles and defaults go, too: they only cost tokens.
    """
    return _strict(cast("Mapping[str, object]", model.model_json_schema()))


def _strict(schema: Mapping[str, object]) -> dict[str, object]:
    kept = {key: _inside(key, value) for key, value in schema.items() if key not in {"title", "default"}}
    if "properties" in kept:
        kept["required"] = list(cast("Mapping[str, object]", kept["properties"]))
        kept["additionalProperties"] = False
    return kept


def _inside(key: str, value: object) -> object:
    if key in {"properties", "$defs"}:
        # Keys in here are names, which may well be "title".
        named = cast("Mapping[str, Mapping[str, object]]", value)
        return {name: _strict(schema) for name, schema in named.items()}
    if isinstance(value, Mapping):
        return _strict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        return [_strict(cast("Mapping[str, object]", item)) if isinstance(item, Mapping) else item for item in items]
    return value
