"""The object of a wanted shape in what a model wrote, be it bare, fenced or between sentences."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

MOST_TRIES = 100
"""Opening braces looked at: a reply that nests thousands of them must not cost minutes."""

_MOST_ERRORS = 3


class NotFound(ValueError):
    """No object fits. The message completes "was not usable because", and quotes no values."""


def first_that_fits(text: str, model: type[M]) -> M:
    """The first JSON object in `text` that validates as `model`, also one inside of another object.

    Raises:
        NotFound: there is none; it says what is wrong with the first object, if any.
    """
    decoder = json.JSONDecoder()
    wrong = ""
    start = -1
    for _ in range(MOST_TRIES):
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
    if wrong:
        raise NotFound(wrong)
    raise NotFound("it holds no complete JSON object" if text.strip() else "it was empty")


def _summary(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(map(str, each['loc'])) or 'the object'}: {each['msg']}" for each in errors[:_MOST_ERRORS]]
    return "its JSON object does not fit (" + "; ".join(said) + ")"
