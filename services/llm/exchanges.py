"""The file format of recorded exchanges with a model: JSON Lines, one call a line.

    {"step", "hash", "request": {"system", "user", "schema_name", "schema"},
     "response": {"text", "finish_reason"}, "usage": {"prompt_tokens", "completion_tokens"}}

If tools were offered, the request also has "tools" and "rounds" (the calls so far), and the response "calls". A call
that failed has `"error": {"kind", "message"}` instead of response and usage, so that a replay fails where the recorded
run failed. A cancelled call leaves no line. Images are kept as their SHA-256.

The hash covers the step and the request as kept. It leaves out the method: the reply reads the same either way, and a
replay may run without the recorded configuration.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError, model_validator

from services.llm.endpoint import Reply, Request, Round
from services.llm.errors import LLMError

log = logging.getLogger(__name__)

_KINDS: dict[str, type[LLMError]] = {kind.__name__: kind for kind in LLMError.__subclasses__()}


class UnreadableExchanges(Exception):
    """The file is missing or holds no exchange; the message names it."""


class Tokens(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Failure(BaseModel):
    kind: str
    message: str


class Exchange(BaseModel):
    """One line. `request` is only read to show differences: calls are found by `hash`, so text may be removed later."""

    step: str
    hash: str
    request: dict[str, Any] = {}
    response: Reply | None = None
    usage: Tokens = Tokens()
    error: Failure | None = None

    @model_validator(mode="after")
    def _ended_one_way(self) -> Exchange:
        if (self.response is None) == (self.error is None):
            raise ValueError("wants a response or an error, and not both")
        return self

    def outcome(self) -> Reply:
        """The reply.

        Raises:
            LLMError: of the recorded kind, if the call failed.
        """
        if self.error is not None:
            raise _KINDS.get(self.error.kind, LLMError)(self.error.message)
        return replace(self.response or Reply(""), **dict(self.usage))


def kept(request: Request) -> dict[str, object]:
    """`request` as it is written to the file."""
    plain: dict[str, object] = {
        "system": request.system,
        "user": [_without_data(part) for part in request.user],
        "schema_name": request.schema_name,
        "schema": request.schema,
    }
    # Left out if empty, so that recordings from before there were tools still match.
    if request.tools:
        plain["tools"] = [asdict(tool) for tool in request.tools]
    if request.rounds:
        plain["rounds"] = [{"text": each.text, "calls": list(_calls(each))} for each in request.rounds]
    return plain


def _calls(one: Round) -> Iterator[dict[str, str]]:
    """Without the ids of calls, which a server makes up anew each time."""
    for call, result in zip(one.calls, one.results, strict=True):
        yield {"name": call.name, "arguments": call.arguments, "result": result}


def _without_data(value: object) -> object:
    """Inline data as its hash, which tells images apart without lines of megabytes."""
    if isinstance(value, str) and value.startswith("data:"):
        head, _, data = value.partition(",")
        return f"{head},sha256:{_sha256(data)}"
    if isinstance(value, Mapping):
        return {key: _without_data(each) for key, each in cast("Mapping[str, object]", value).items()}
    return value


def request_hash(request: Request) -> str:
    return _sha256(json.dumps({"step": request.step, **kept(request)}, sort_keys=True, ensure_ascii=False))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def render(request: Request, outcome: Reply | LLMError) -> str:
    """One line, with its line end."""
    line: dict[str, object] = {"step": request.step, "hash": request_hash(request), "request": kept(request)}
    if isinstance(outcome, LLMError):
        line["error"] = {"kind": type(outcome).__name__, "message": str(outcome)}
    else:
        fields = asdict(outcome)
        line["response"] = {key: fields[key] for key in ("text", "finish_reason")}
        line["response"] |= {key: fields[key] for key in ("calls", "content") if fields[key]}
        line["usage"] = {key: fields[key] for key in Tokens.model_fields}
    # Escaped, so that no character of a message can end the line or fail to be written.
    return json.dumps(line) + "\n"


def read(path: Path) -> list[Exchange]:
    """All exchanges of a file, in order. A line that is none is logged and left out.

    Raises:
        UnreadableExchanges: the file cannot be read, or no line of it is an exchange.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UnreadableExchanges(f"{path} cannot be read ({error.strerror}); record it with --llm-record") from None
    exchanges: list[Exchange] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            # Pydantic's own parser refuses half of a surrogate pair, which prompts may hold.
            exchanges.append(Exchange.model_validate(json.loads(line)))
        except ValueError as error:
            log.warning("%s line %d is no exchange and is left out (%s)", path, number, _why(error))
    if not exchanges:
        raise UnreadableExchanges(f"{path} holds no exchange with an LLM; record it with --llm-record")
    return exchanges


def _why(error: ValueError) -> str:
    """In short, without the line's text."""
    if not isinstance(error, ValidationError):
        return "it is no JSON"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
