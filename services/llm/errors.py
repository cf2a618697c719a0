"""What can go wrong with a model.

    LLMError
    ├── Unavailable      not reached, overloaded or broken (connection, 408, 409, 429, 5xx): worth a retry
    ├── TimedOut         no answer in time, here or there (504); the job may run on and be billed: no retry by default
    ├── Rejected         the request was refused (other 4xx): configuration or credit; a person has to act
    ├── BadOutput        the answer cannot be used
    └── UnknownRequest   a replay holds no answer to this request

Each message is one line that says who failed and what to do. It never quotes what a server wrote, as servers echo keys
and prompts. Only `UnknownRequest` quotes: it shows how two prompts differ.
"""

from __future__ import annotations


class LLMError(Exception):
    """A step has no usable result."""


class Unavailable(LLMError):
    """The endpoint cannot serve now. `retry_after`: the seconds it asked to wait, if it did."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(LLMError):
    """No answer within the time allowed."""


class Rejected(LLMError):
    """The endpoint refused the request."""


class BadOutput(LLMError):
    """The answer is no chat completion, or two replies in a row held no object of the wanted shape."""


class UnknownRequest(LLMError):
    """The file of a replay has no exchange for this request."""
