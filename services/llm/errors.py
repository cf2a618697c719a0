"""What can go wrong with a model.

    LLMError
    ├── Unavailable      not reached, overloaded or broken (connection, 408, 409, 429, 5xx): worth another try
    ├── TimedOut         no answer in time, here or there (504); a job may run on, and be billed, so no try by itself
    ├── Rejected         the request is refused (other 4xx): configuration or credit; a person has to act
    ├── BadOutput        it answered, but nothing that can be used
    └── UnknownRequest   a replay holds no answer to this request

Each message is one readable line: who failed, and what to do. What a server wrote is not passed on in them, because
servers echo keys and prompts; the one exception is `UnknownRequest`, whose purpose is to show how two prompts differ.
"""

from __future__ import annotations


class LLMError(Exception):
    """A step has no usable result."""


class Unavailable(LLMError):
    """The endpoint cannot serve now. `retry_after`: seconds it asked to be left alone, if it said so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(LLMError):
    """No answer within the time allowed."""


class Rejected(LLMError):
    """The endpoint understood, and refused."""


class BadOutput(LLMError):
    """The answer is no chat completion, or holds no object of the wanted shape, also when asked again."""


class UnknownRequest(LLMError):
    """The file of a replay has no exchange for this request."""
